"""The reference of the site: a page of Markdown for each public module, from docstrings.

Sphinx's autodoc reads docstrings as reStructuredText. weft's are plain text with code in single
backquotes, where `|x|` and `<a, b>` are literal. So the pages are written here, with Sphinx's own
directives for functions and classes, which provide the index, the search and the links.
"""

import contextlib
import enum
import functools
import importlib
import inspect
import io
import re
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import weft
from weft.core.primitive import Primitive
from weft.lax import HOMES as LAX_HOMES
from weft.numpy.names import HOMES as NUMPY_HOMES

PACKAGE = Path(weft.__file__).parent
EXAMPLES = Path(__file__).with_name("examples.txt")
# Modules whose names have pages by the files that define them: too many for one page.
SPLIT = {"weft.numpy": NUMPY_HOMES, "weft.lax": LAX_HOMES}
FIRST = ("weft", "weft.numpy", "weft.lax", "weft.random", "weft.nn", "weft.scipy", "weft.tree")
# The pages of the libraries whose functions have the same names, with their parameters.
COUNTERPARTS = {
    "weft.numpy": ("numpy", "https://numpy.org/doc/stable/reference/generated/{}.html"),
    "weft.scipy": ("scipy", "https://docs.scipy.org/doc/scipy/reference/generated/{}.html"),
}
NAMES = {"weft": weft, "jnp": weft.numpy, "lax": weft.lax, "np": np}
NAMES |= {"nn": weft.nn, "random": weft.random}


def public_modules() -> dict[str, types.ModuleType]:
    """Return the modules that users import, by name: weft and the modules that they list."""
    found: dict[str, types.ModuleType] = {}
    todo = [weft]
    for file in PACKAGE.glob("*.py"):
        module = importlib.import_module(f"weft.{file.stem}") if file.stem[0] != "_" else weft
        todo += [module] if file.stem not in ("util", "options", "pytrees") else []
    while todo:
        module = todo.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            values = [getattr(module, name) for name in getattr(module, "__all__", ())]
            todo += [x for x in values if is_module(x)]
    first = {name: i for i, name in enumerate(FIRST)}
    rank = lambda name: (first.get(".".join(name.split(".")[:2]), 99), name)
    return {name: found[name] for name in sorted(found, key=rank)}


def is_module(x: object) -> bool:
    return isinstance(x, types.ModuleType) and x.__name__.split(".")[0] == "weft"


def public_names(module: types.ModuleType) -> list[str]:
    """Return a module's public names, without modules and names such as `__array_api_version__`."""
    listed = [name for name in module.__all__ if name[:2] != "__"]
    return [name for name in listed if not is_module(getattr(module, name))]


@functools.cache
def find_homes() -> dict[int, str]:
    """The full name under which each function, class and primitive is described, by its id.

    That of an alias is where its function is described.
    """
    homes: dict[int, str] = {}
    aliases: dict[int, int] = {}
    for name, module in public_modules().items():
        for key in public_names(module):
            x = getattr(module, key)
            if not isinstance(x, bool | int | float | str | tuple | frozenset | None):
                homes.setdefault(id(x), f"{name}.{key}")
                if inspect.isfunction(x) and hasattr(x, "alias_of"):
                    aliases[id(x)] = id(x.alias_of)
    homes |= {alias: homes[of] for alias, of in aliases.items() if of in homes}
    return homes


@functools.cache
def all_names() -> frozenset[str]:
    """Every public name, and every public module."""
    modules = public_modules()
    names = {f"{m}.{name}" for m, module in modules.items() for name in public_names(module)}
    return frozenset(names | set(modules))


# --- Markdown -----------------------------------------------------------------------------------


def convert_text(text: str, module: str) -> str:
    """Prose as Markdown: code in backquotes stays, and links to the public name if it is one."""
    parts = re.split(r"(`[^`\n]+(?:\n[^`\n]+)?`)", text)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = re.sub(r"([\\*_<>\[\]{}#|~$])", r"\\\1", part)
        else:
            parts[i] = link_name(re.sub(r"\s+", " ", part[1:-1]), module) or part
    return "".join(parts)


def link_name(name: str, module: str) -> str | None:
    """A link to a public name, as a docstring of a module writes it."""
    for full in (name, f"weft.{name}", f"{module}.{name}", name.replace("jnp.", "weft.numpy.", 1)):
        if full in all_names() and full.startswith("weft."):
            kind = "py:mod" if full in public_modules() else "py:obj"
            return f"{{{kind}}}`{name} <{full}>`"
    return None


def convert_docstring(doc: str, module: str) -> str:
    """A docstring as Markdown: examples and indented blocks as code, arguments as a list."""
    out: list[str] = []
    lines = doc.strip().split("\n")
    while lines:
        line = lines[0]
        if re.fullmatch(r"[A-Z]\w+:", line) and len(lines) > 1 and lines[1].startswith("  "):
            lines.pop(0)
            block = take_lines(lines, lambda text: text.startswith("  ") or not text)
            out.append(convert_section(line[:-1], block, module))
        elif line.startswith(">>>"):
            out.append(fence("pycon", take_lines(lines, bool)))
        elif line.startswith("    "):
            block = take_lines(lines, lambda text: text.startswith("    ") or not text)
            code = inspect.cleandoc("\n".join(block)).split("\n")
            out.append(fence("pycon" if code[0].startswith(">>>") else "python", code))
        elif line:
            prose = "\n".join(take_lines(lines, is_prose))
            out.append(convert_text(re.sub(r"::$", ":", prose), module))
        else:
            lines.pop(0)
    return "\n\n".join(out)


def is_prose(line: str) -> bool:
    return bool(line) and not line.startswith((">>>", "    "))


def take_lines(lines: list[str], wanted: types.FunctionType) -> list[str]:
    """Take lines off the front while they are `wanted`; the first one always is."""
    taken = [lines.pop(0)]
    while lines and wanted(lines[0]):
        taken.append(lines.pop(0))
    return taken


def fence(kind: str, lines: list[str]) -> str:
    return "\n".join([f"```{kind}", *lines, "```"]).replace("\n\n```", "\n```")


def convert_section(title: str, block: list[str], module: str) -> str:
    """`Args:` and such: the entries of a field, or paragraphs under a title."""
    text = inspect.cleandoc("\n".join(block))
    field = {"Args": "Parameters", "Attributes": "Attributes"}.get(title)
    if field is None:
        return f"**{title}:** " + convert_docstring(text, module)
    rows = []
    for entry in re.split(r"\n(?! )", text):
        names, colon, said = entry.partition(": ")
        said = convert_text(re.sub(r"\n\s*", "\n  ", said), module)
        rows.append(f"- `{names}`: {said}" if colon else f"- {convert_text(entry, module)}")
    return f"**{field}**\n\n" + "\n".join(rows)


def first_line(x: object, module: str) -> str:
    """Return the first sentence of an object's documentation, as Markdown."""
    doc = inspect.getdoc(x) or "" if describes_itself(x) else ""
    return convert_text(doc.strip().split("\n\n")[0].replace("\n", " "), module)


def describes_itself(x: object) -> bool:
    """Return True if the docstring belongs to the object, and not to its type."""
    own = getattr(x, "__doc__", None)
    is_weft = type(x).__module__.startswith("weft") and not isinstance(x, Primitive)
    return callable(x) or is_weft or (own is not None and own != type(x).__doc__)


# --- signatures ---------------------------------------------------------------------------------


def write_signature(x: object) -> str:
    """Return `(a, axis: Axis = None)`; private names and annotations of Any are omitted."""
    try:
        signature = inspect.signature(x)
    except (TypeError, ValueError):
        return "()" if inspect.isroutine(x) else ""
    empty, kept = inspect.Parameter.empty, []
    for p in signature.parameters.values():
        if p.name[0] != "_":
            default = Name(shorten_default(p.default)) if p.default is not empty else empty
            kept.append(p.replace(default=default, annotation=clean_annotation(p.annotation)))
    returns = empty if isinstance(x, type) else clean_annotation(signature.return_annotation)
    with contextlib.suppress(ValueError):  # left out one that has to be there
        signature = signature.replace(parameters=kept, return_annotation=returns)
    return str(signature)


class Name(str):
    """Text that is written without quotes."""

    def __repr__(self) -> str:
        return str(self)


def clean_annotation(x: object) -> object:
    if x is inspect.Parameter.empty or x in ("Any", "object"):
        return inspect.Parameter.empty
    text = x if isinstance(x, str) else inspect.formatannotation(x)
    text = re.sub(r"\b(typing|collections\.abc|weft(\.\w+)+)\.", "", text)
    return Name(text) if text != "Any" and "<" not in text else inspect.Parameter.empty


def shorten_default(x: object) -> str:
    """A default value as Python writes it, or `...`."""
    if isinstance(x, type | types.FunctionType):
        return x.__name__ if x.__name__.isidentifier() else "..."
    text = f"{type(x).__name__}.{x.name}" if isinstance(x, enum.Enum) else repr(x)
    return text if len(text) < 40 and "<" not in text and "\n" not in text else "..."


# --- pages --------------------------------------------------------------------------------------


@functools.cache
def read_examples() -> dict[str, str]:
    """Examples for names whose docstrings have none: {full name: lines}, from examples.txt.

    A line `[module]` says where the names are; `names: example` gives the example of each, in
    which {} stands for the name. Lines that begin with a space go on. `!names: example` is shown,
    and not run.
    """
    found, module, joined = {}, "", re.sub(r"\n +", " ;; ", EXAMPLES.read_text())
    for line in joined.split("\n"):
        if line.startswith("["):
            module = line.strip("[]")
        elif line and line[0] != "#":
            names, _, code = line.removeprefix("!").partition(": ")
            code = "!" * line.startswith("!") + code
            for name in names.split():
                accessor = shorten_name(f"{module}.{name}")
                found[f"{module}.{name}"] = code.replace("{}", accessor).replace(" ;; ", "\n")
    return found


def shorten_name(full: str) -> str:
    """A name as examples write it: `jnp.sum`, `lax.scan`, `weft.scipy.special.erf`."""
    for prefix, short in (("weft.numpy.", "jnp."), ("weft.lax.", "lax.")):
        full = full.replace(prefix, short, 1) if full.startswith(prefix) else full
    for prefix in ("weft.random.", "weft.nn."):
        full = full.removeprefix("weft.") if full.startswith(prefix) else full
    return full


def run_example(code: str) -> list[str]:
    """Return the lines of an example as a session shows them, with its output."""
    shown, names = [], dict(NAMES)
    for line in code.split("\n"):
        shown.append(f">>> {line}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(f"{line}\n", "example", "single"), names)
        shown += ["..."] * line.startswith("with ")
        shown += printed.getvalue().rstrip().split("\n") if printed.getvalue() else []
    return shown


def describe(full: str, x: object, run: bool) -> str:
    """The entry of one public name."""
    module, _, name = full.rpartition(".")
    home = find_homes().get(id(x), full)
    is_weft = str(getattr(x, "__module__", "weft")).startswith("weft")
    body = [
        f"The same as {{py:obj}}`{home}`."
        if home != full
        else convert_docstring(inspect.getdoc(x) or "", module)
        if describes_itself(x) and is_weft
        else "",
        f"The value is `{shorten_value(x)}`." if not callable(x) else "",
        "" if home != full else link_counterpart(full, x, is_weft),
    ]
    if home == full and ">>>" not in body[0] and full in read_examples():
        code = read_examples()[full]
        runs = run and not code.startswith("!")
        body.append(fence("pycon", run_example(code) if runs else [f">>> {code.lstrip('!')}"]))
    if isinstance(x, type) and home == full and is_weft:
        body += describe_members(x, full)
        kind = "exception" if issubclass(x, Exception) else "class"
    else:
        kind = "function" if callable(x) and not name.endswith("_p") else "data"
    signature = write_signature(x) if kind in ("function", "class") else ""
    return write_entry(kind, name, signature, body)


def write_entry(kind: str, name: str, signature: str, body: list[str]) -> str:
    colons = ":" * (3 if kind in ("method", "attribute") else 6)
    inner = "\n\n".join(part for part in body if part)
    return f"{colons}{{py:{kind}}} {name}{signature}\n\n{inner}\n{colons}\n"


def shorten_value(x: object) -> str:
    text = re.sub(r"\s+", " ", re.sub(r" at 0x\w+", "", repr(x))).replace("`", "'")
    return text if len(text) < 100 else text[:97] + "..."


def describe_members(cls: type, full: str) -> Iterator[str]:
    """Yield the documented methods and attributes of a class that are for users."""
    module = full.rpartition(".")[0]
    if issubclass(cls, enum.Enum):
        yield "**Members:** " + ", ".join(f"`{member.name}`" for member in cls)
        return
    if issubclass(cls, BaseException | np.generic) or not find_weft_members(cls):
        return
    for name, x in find_weft_members(cls):
        target = x.__func__ if isinstance(x, staticmethod | classmethod) else x
        doc = inspect.getdoc(target) if describes_itself(target) else None
        text = convert_docstring(doc, module) if doc else ""
        if inspect.isroutine(target):
            signature = re.sub(r"^\((self|cls)(, /)?(, )?", "(", write_signature(target))
            yield write_entry("method", name, signature, [text])
        elif text or isinstance(x, property):
            yield write_entry("attribute", name, "", [text])


def find_weft_members(cls: type) -> list[tuple[str, object]]:
    """Public members that a class of weft's defines, or inherits from one."""
    members: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == "weft":
            members |= {k: x for k, x in vars(base).items() if k[0] != "_"}
    return sorted(members.items())


def link_counterpart(full: str, x: object, is_weft: bool) -> str:
    """Return the link to NumPy's or SciPy's function of the same name."""
    for prefix, (package, url) in COUNTERPARTS.items():
        if full.startswith(prefix + "."):
            place, _, name = full.replace(prefix, package, 1).rpartition(".")
            with contextlib.suppress(ImportError):
                if callable(x) and hasattr(importlib.import_module(place), name):
                    said = "Parameters that are not described here are those of" if is_weft else ""
                    return f"{said or 'It is'} [{place}.{name}]({url.format(f'{place}.{name}')})."
    return ""


def describe_module(name: str, module: types.ModuleType) -> str:
    """The text of a module; a module that is called has the indented docstring of a function."""
    return convert_docstring(inspect.getdoc(module) or "", name)


def write_pages(folder: Path, run: bool = True) -> int:
    """Write all pages; how many names they describe. `run=False` does not run examples."""
    (folder / "names").mkdir(parents=True, exist_ok=True)
    modules, count = public_modules(), 0
    for name, module in modules.items():
        names = public_names(module)
        count += len(names)
        groups = group_names(name, names)
        text = [f"# {name}\n", f":::{{py:module}} {name}\n:::\n"]
        text.append(describe_module(name, module) + "\n")
        inner = [
            m for m in modules if m.startswith(f"{name}.") and m.count(".") == name.count(".") + 1
        ]
        if inner and name != "weft":
            text += ["**Modules:** " + ", ".join(f"[{m}]({m}.md)" for m in inner) + "\n"]
        for title, keys in groups.items():
            page = f"{name}-{title}"
            if title:
                said = first_line(importlib.import_module(find_file(name, title)), name)
                text.append(f"## [{title}]({page}.md)\n\n{said}\n")
            text.append(list_names(name, module, keys) + "\n")
            if title:
                heading = [f"# {name}: {title}\n\n{said}\n", list_names(name, module, keys) + "\n"]
                heading += describe_names(folder, page, module, keys, run)
                (folder / f"{page}.md").write_text("\n".join(heading))
        if list(groups) == [""]:
            text += describe_names(folder, name, module, names, run)
        else:
            pages = "\n".join(f"{title} <{name}-{title}>" for title in groups)
            text.append(f"```{{toctree}}\n:hidden:\n\n{pages}\n```\n")
        (folder / f"{name}.md").write_text("\n".join(text))
    write_index(folder, modules)
    return count


def describe_names(
    folder: Path, page: str, module: types.ModuleType, keys: list[str], run: bool
) -> list[str]:
    """Write a page for each function and class; return entries of the other names."""
    name = module.__name__
    current = f":::{{py:currentmodule}} {name}\n:::\n"
    entries = []
    for key in keys:
        full, x = f"{name}.{key}", getattr(module, key)
        entry = describe(full, x, run)
        if has_page(full, x):
            group = page.replace("-", ": ")
            text = f"---\norphan: true\n---\n\n# {full}\n\nOf [{group}](../{page}.md).\n\n"
            (folder / "names" / f"{full}.md").write_text(f"{text}{current}\n{entry}")
        else:
            entries.append(entry)
    return ["## Further names\n", current, *entries] if entries else []


def has_page(full: str, x: object) -> bool:
    """Return True if a name has a page of its own: a function or a class, at its home."""
    is_weft = str(getattr(x, "__module__", "weft")).startswith("weft")
    own = callable(x) and not full.endswith("_p") and is_weft
    return own and find_homes().get(id(x), full) == full


def group_names(module: str, names: list[str]) -> dict[str, list[str]]:
    """The names of a module in groups by the file that defines them; one group "" if few."""
    if module not in SPLIT:
        return {"": sorted(names, key=str.lower)}
    files = {n: home for home, listed in SPLIT[module].items() for n in listed.split()}
    groups: dict[str, list[str]] = {}
    for name in names:
        title = files.get(name, f"{module}.scalars").removeprefix(f"{module}.").split(".")[-1]
        groups.setdefault(title, []).append(name)
    return {title: sorted(groups[title], key=str.lower) for title in sorted(groups)}


def find_file(module: str, title: str) -> str:
    """The module that gives a group its title."""
    homes = [*SPLIT[module], f"{module}.{title}"]
    return next(home for home in homes if home.rpartition(".")[2] == title)


def list_names(name: str, module: types.ModuleType, keys: list[str]) -> str:
    rows = []
    for key in keys:
        said = first_line(getattr(module, key), name)
        rows.append(f"- {{py:obj}}`~{name}.{key}`" + (f": {said}" if said else ""))
    return "\n".join(rows)


def write_index(folder: Path, modules: dict[str, types.ModuleType]) -> None:
    rows, pages = [], []
    for name, module in modules.items():
        rows.append(f"- [{name}]({name}.md): {first_line(module, name)}")
        parent = name.rpartition(".")[0]
        pages += [name] if parent in ("", "weft") or parent not in modules else []
    tree = "```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n"
    intro = (
        "Every public name, by module. Examples take `import weft`, `import weft.numpy as jnp`, "
        "`from weft import lax, nn, random` and `import numpy as np` for granted.\n"
    )
    (folder / "index.md").write_text("\n".join([f"# Reference\n\n{intro}", *rows, "", tree]))
    for name in modules:
        children = [m for m in modules if m.rpartition(".")[0] == name and name != "weft"]
        if children:
            tree = "\n```{toctree}\n:hidden:\n\n" + "\n".join(children) + "\n```\n"
            with (folder / f"{name}.md").open("a") as page:
                page.write(tree)
