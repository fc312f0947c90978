"""The sources of the package as pages of the site, and where in them a public name is defined."""

import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import weft

PACKAGE = Path(weft.__file__).parent
SOURCES = "../source/"  # as a page of the reference names their folder


def find_object(full: str) -> object:
    """Return the object with a full name such as `weft.numpy.sum` or `weft.Array.at`."""
    parts = full.split(".")
    for n in range(len(parts) - 1, 0, -1):
        try:
            x = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for name in parts[n:]:  # a property of a class is not to be read
            x = inspect.getattr_static(x, name, None) if isinstance(x, type) else getattr(x, name)
        return x
    return None


def find_source(full: str) -> tuple[str, int] | None:
    """The module of the package that defines a public name, and the line."""
    x = find_object(full)
    x = getattr(x, "__func__", getattr(x, "fget", x))
    x = inspect.unwrap(x) if callable(x) else x
    name = full.rpartition(".")[2]
    code = getattr(x, "__code__", None)
    if code is not None and code.co_name == name and module_of(code.co_filename):
        return module_of(code.co_filename), code.co_firstlineno
    homes = [getattr(x, "__module__", None), type(x).__module__, module_defining(name, x)]
    for home in homes:
        if home and home.startswith("weft") and (line := find_line(home, name)):
            return home, line
    if code is not None and module_of(code.co_filename):
        return module_of(code.co_filename), code.co_firstlineno
    return None


def module_of(filename: str) -> str | None:
    """The name of the module in a file of the package."""
    path = Path(filename)
    if not path.is_relative_to(PACKAGE):
        return None
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(("weft", *parts[: -1 if parts[-1] == "__init__" else None]))


def module_defining(name: str, x: object) -> str | None:
    """The module that has a value at its top level under its own name."""
    homes = find_assignments().get(name, ())
    return next((m for m in homes if getattr(importlib.import_module(m), name, None) is x), None)


@functools.cache
def find_assignments() -> dict[str, list[str]]:
    """The modules that assign to each name at their top level."""
    found: dict[str, list[str]] = {}
    for module, text in read_package().items():
        for name in re.findall(r"^(\w+)\b.*=", text, re.M):
            found.setdefault(name, []).append(module)
    return found


@functools.cache
def read_package() -> dict[str, str]:
    """The text of each module."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {module_of(str(file)): file.read_text() for file in files}


def find_line(module: str, name: str) -> int | None:
    """The line of a module that defines a name, or a row of a table that does."""
    text, name = read_package().get(module, ""), re.escape(name)
    for pattern in (
        rf"^ *(?:def|class) {name}\b",
        rf"^{name}\b.*=",
        rf'["\']{name}\b',
        rf"\b{name}\b",
    ):
        if found := re.search(pattern, text, re.M):
            return text.count("\n", 0, found.start()) + 1 + (found[0][0] == "\n")
    return None


def link_source(domain: str, info: dict) -> str | None:
    """For sphinx.ext.linkcode: page and line of a source, seen from the folder of the reference."""
    full = f"{info['module']}.{info['fullname']}"
    place = find_source(full) if domain == "py" else None
    if place is None:
        return None
    linked.add(place[0])
    return f"{SOURCES}{place[0]}.html#L-{place[1]}"


def relocate_links(app: object, doctree: nodes.document, docname: str) -> None:
    """For the event doctree-resolved: write links to sources as the page of one name has to."""
    up = "../" * (docname.count("/") - 1)
    for link in doctree.findall(nodes.reference):
        if link.get("refuri", "").startswith(SOURCES):
            link["refuri"] = up + link["refuri"]


linked: set[str] = set()  # the modules that pages link to


def collect_pages(app: object) -> Iterator[tuple[str, dict, str]]:
    """For the event html-collect-pages: a page for each module that is linked."""
    style = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True)
    for module in sorted(linked):
        body = highlight(read_package()[module], PythonLexer(), style)
        context = {"title": module, "body": f"<h1>{module}</h1>{body}", "parents": []}
        yield f"source/{module}", context, "page.html"
