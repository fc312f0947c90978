"""The house checks itself: layers, hidden imports, sizes, names, documentation, the short walk."""

import ast
import functools
import pathlib
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import weft

ROOT = pathlib.Path(weft.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# The folders, lowest first: a file imports only from folders before its own, and within a folder
# imports have no cycle. "top" are the modules beside the folders, which users import.
ORDER = """
util errors options pytrees dtypes core passes mesh watch xla primitives transforms control parallel
api lax numpy random scipy nn top example_libraries debug experimental interpreters extend cache
""".split()  # noqa: SIM905

# The order of folders is not yet kept here.
CROOKED = {
    ("weft.watch.key_reuse", "weft.xla.array"),
    ("weft.scipy.spatial.transform", "weft.tree_util"),
}

# Inside a function these may be imported: heavy, and needed by few programs.
HEAVY = {"scipy", "matplotlib", "opt_einsum", "jaxlib.xla_client", "jaxlib"}


def module_name(file: pathlib.Path) -> str:
    parts = ("weft", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(file: pathlib.Path) -> ast.Module:
    return ast.parse(file.read_text())


def folder(name: str) -> str:
    parts = name.split(".")
    return parts[1] if parts[1] in ORDER else "top"


def imported(node: ast.AST) -> Iterator[str]:
    """Modules of the package that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name.split(".")[0] == "weft")
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
        for a in node.names:
            deeper = f"{node.module}.{a.name}"
            is_module = (ROOT.parent / deeper.replace(".", "/")).with_suffix(".py").exists() or (
                ROOT.parent / deeper.replace(".", "/") / "__init__.py"
            ).exists()
            yield deeper if is_module else node.module


def functions(file: pathlib.Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_files_import_only_downward():
    wrong = []
    for file in FILES:
        mine = module_name(file)
        if file.name == "__init__.py":
            continue  # a folder's own list of names
        for node in parsed(file).body:
            for name in imported(node):
                lower = ORDER.index(folder(name)) <= ORDER.index(folder(mine))
                if not lower and (mine, name) not in CROOKED:
                    wrong.append(f"{mine} imports {name}, which comes later in the house")
    assert not wrong, "\n".join(wrong)


def test_imports_have_no_cycle():
    edges = {module_name(f): {n for node in parsed(f).body for n in imported(node)} for f in FILES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, "a cycle: " + " -> ".join((*path, name))
        if name in done:
            return
        for other in edges.get(name, ()):
            if other != name and other.count(".") >= 1 and other in edges:
                visit(other, (*path, name))
        done.add(name)

    for name in edges:
        if not name.endswith("__init__"):
            visit(name, ())


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_no_import_is_hidden_in_a_function(file):
    for function in functions(file):
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
                )
                for name in names:
                    own = (name or "weft").split(".")[0] == "weft"
                    assert not own, f"{file.name}:{node.lineno} hides an import of {name}"


def count_lines(*folders: str) -> int:
    files = [f for f in FILES if f.relative_to(ROOT).parts[0] in folders]
    return sum(len(f.read_text().splitlines()) for f in files)


def test_sizes():
    over = []
    for file in FILES:
        lines = len(file.read_text().splitlines())
        if lines > 800:
            over.append(f"{module_name(file)}: {lines} lines, budget 800")
        for f in functions(file):
            size = f.end_lineno - f.lineno + 1
            if size > 75:
                over.append(f"{module_name(file)}.{f.name}: {size} lines, budget 75")
    assert not over, "\n".join(over)
    assert count_lines("core", "transforms") <= 4000
    assert count_lines("xla") <= 4000
    assert count_lines("control") <= 4100


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_every_file_says_what_it_is(file):
    text = file.read_text()
    if text.strip():
        assert ast.get_docstring(parsed(file)), f"{module_name(file)} has no docstring"
    for word in ("TODO", "FIXME", "XXX"):
        assert word not in text, f"{module_name(file)} holds a {word}"


def public_objects() -> Iterator[tuple[str, object]]:
    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] == "weft" and hasattr(module, "__all__"):
            for key in module.__all__:
                yield f"{name}.{key}", getattr(module, key)


def test_every_public_name_exists_and_is_documented():
    bare = [
        name
        for name, x in public_objects()
        if callable(x)
        and str(getattr(x, "__module__", "")).startswith("weft")
        and not (getattr(x, "__doc__", None) or "").strip()
    ]
    assert not bare, "without a docstring: " + ", ".join(bare)


def all_primitives() -> list:
    from weft.core.primitive import Primitive

    found, todo = [], [Primitive]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        if cls.__module__.startswith("weft."):
            found.append(cls)
    return found


def overridable_members() -> set[str]:
    """What a subclass of Primitive may override, read off the class itself."""
    from weft.core.primitive import Primitive

    plain = {k for k in vars(Primitive) if not k.startswith("__")}
    return {k for k in plain if not getattr(vars(Primitive)[k], "__final__", False)}


def test_a_primitive_has_few_members():
    members = overridable_members()
    assert len(members) <= 20, f"{len(members)} members: {', '.join(sorted(members))}"


def test_every_primitive_class_is_documented_and_overrides_no_final_method():
    from weft.core.primitive import Primitive

    final = {k for k in vars(Primitive) if not k.startswith("__")} - overridable_members()
    for cls in all_primitives():
        assert (cls.__doc__ or "").strip(), f"{cls.__name__} has no docstring"
        own = set(vars(cls)) if cls is not Primitive else set()
        assert not final & own, f"{cls.__name__} overrides {final & own}"


def test_a_cold_jit_is_a_short_walk():
    seen = set()
    top = str(ROOT)

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(top):
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    x = weft.device_put(np.ones(3, np.float32))
    weft.jit(lambda x: x + x)(x)  # what a process does once is not part of the walk
    f = weft.jit(lambda x: weft.numpy.sin(x) * x)
    sys.setprofile(profile)
    try:
        f(x)
    finally:
        sys.setprofile(None)
    assert len(seen) <= 150, "\n".join(sorted(map(str, seen)))
