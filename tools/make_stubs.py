"""Write the stubs (.pyi) of the modules whose names a type checker cannot see.

    python tools/make_stubs.py          write them
    python tools/make_stubs.py --check  list outdated stubs; the exit status is 1 if there are any

Names that are imported on first use, functions made from tables, and decorated functions have no
types for a type checker. Here each is written with its signature at run time. Only the source has
annotations.
"""

import argparse
import ast
import builtins
import enum
import functools
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
import types
import typing
from collections import ChainMap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.xla.typing
from weft.xla.array import Array, ArrayImpl

ROOT = Path(weft.__file__).parent
COMPARISONS = {"__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__"}
# Methods of jaxlib's class.
ENGINE = {
    "block_until_ready": "Array", "delete": "None", "is_deleted": "bool", "is_ready": "bool",
    "on_device_size_in_bytes": "int", "platform": "str", "unsafe_buffer_pointer": "int",
}  # fmt: skip
DECORATORS = (property, staticmethod, classmethod)
HEAD = '"""Written by tools/make_stubs.py; do not edit."""\n'
# Functions of these folders have types in their source that say more than a signature.
TYPED = ("weft.api.", "weft.core.", "weft.mesh.", "weft.parallel.", "weft.xla.")
MODULES = """
weft weft.numpy weft.numpy.fft weft.numpy.linalg weft.lax weft.lax.linalg weft.nn
weft.nn.initializers
weft.random weft.tree weft.tree_util weft.debug weft.export weft.flatten_util weft.image weft.ops
weft.example_libraries weft.experimental weft.experimental.sparse weft.experimental.sparse.linalg
weft.interpreters
weft.scipy weft.scipy.cluster weft.scipy.cluster.vq weft.scipy.fft weft.scipy.integrate
weft.scipy.interpolate weft.scipy.linalg weft.scipy.ndimage weft.scipy.optimize weft.scipy.signal
weft.scipy.sparse weft.scipy.sparse.linalg weft.scipy.spatial weft.scipy.spatial.transform
weft.scipy.special weft.scipy.stats
""".split()  # noqa: SIM905


class Stub:
    """The text of one module's stub, and its imports."""

    def __init__(self, module: types.ModuleType):
        self.module = module
        self.public: list[str] = sorted(getattr(module, "__all__", None) or dir(module))
        self.imports: set[str] = set()
        self.private: dict[str, list[str]] = {}  # what the module defines, and does not list
        self.lines: list[str] = []
        header, generic = read_generic()
        self.generic = generic.get(module.__name__.removeprefix("weft.").replace(".", "_"), {})
        for line in header if self.generic else ():
            start, _, names = line.partition(" import ")
            if start != f"from {module.__name__}":
                self.imports.add(line)
                continue
            name, _, known = names.partition(" as ")
            self.define_privately(name, getattr(module, name))
            self.private[name].append(f"{known} = {name}")

    def write(self) -> str:
        for name in [n for n in self.generic if n not in self.public]:
            self.lines += [ast.unparse(node) for node in self.generic[name]]
        for name in self.public:
            self.lines += self.declare(name, getattr(self.module, name))
        private = [line for lines in self.private.values() for line in lines]
        body = "\n".join([*private, *self.lines, ""])
        return "\n".join([HEAD, *list_used(self.imports, body), "", body])

    def declare(self, name: str, value: Any) -> list[str]:
        """The lines that say what a public name is."""
        if isinstance(value, types.ModuleType):
            return self.declare_module(name, value)
        if name in self.generic:
            return self.declare_generic(name, value)
        home = list_definitions().get((name, id(value)), "")
        by_signature = inspect.isfunction(value) and not home.startswith(TYPED)
        if by_signature and value.__module__.startswith("weft."):
            return self.declare_function(name, value)
        if home == self.module.__name__ and isinstance(value, type):
            return self.declare_class(value)
        if home:
            return [f"from {home} import {name} as {name}"]
        if isinstance(value, int | float):
            return [f"{name}: {type(value).__name__}"]
        if value is None:
            return [f"{name}: None"]
        for other in (np, ml_dtypes):
            if getattr(other, name, None) is value:
                return [f"from {other.__name__} import {name} as {name}"]
        if value is Array:
            return [f"from weft.xla.array import Array as {name}"]
        if isinstance(value, type) and not value.__module__.startswith("weft."):
            return [f"from {value.__module__} import {value.__name__} as {name}"]
        kind = type(value)
        return [f"{name}: {self.import_name(kind.__name__, {kind.__name__: kind})}"]

    def declare_generic(self, name: str, value: Any) -> list[str]:
        """Return a name's generic declarations; raise if they lack its present parameters."""
        given = [n for node in self.generic[name] for n in unfold_branches(node)]
        forms = [node for node in given if isinstance(node, ast.FunctionDef)]
        now = set(inspect.signature(value).parameters) if forms else set()
        listed = [{a.arg for a in ast.walk(f.args) if isinstance(a, ast.arg)} for f in forms]
        if any(names - now for names in listed) or (listed and listed[-1] != now):
            raise SystemExit(f"generic_signatures.pyi: {name} takes {sorted(now)}")
        return [ast.unparse(node) for node in self.generic[name]]

    def declare_module(self, name: str, value: types.ModuleType) -> list[str]:
        path = value.__name__
        # An object that is called; its class has the members.
        if type(value) is not types.ModuleType:
            self.imports.add(f"from {path} import {type(value).__name__} as _{name}")
            return [f"{name}: _{name}"]
        if (ROOT.parent / path.replace(".", "/")).with_suffix(".py").exists() or hasattr(
            value, "__path__"
        ):
            parent, _, own = path.rpartition(".")
            return [f"from {parent} import {own} as {name}"]
        methods = [(n, f) for n, f in vars(value).items() if inspect.isfunction(f) and n[0] != "_"]
        lines = [f"class {name}:"]
        for method, fun in methods:
            lines += ["    @staticmethod", *self.declare_function(method, fun, "    ")]
        return lines

    def declare_class(self, cls: type) -> list[str]:
        """Declare a class of the module, as in the source, without the bodies of its methods."""
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(node, ast.ClassDef)
        forms = (ast.AnnAssign, ast.FunctionDef, *(ast.Assign,) * issubclass(cls, enum.Enum))
        kept = [n for n in node.body if isinstance(n, forms)]
        for member in kept:
            if isinstance(member, ast.AnnAssign) and member.value is not None:
                member.value = ast.Constant(...)
            elif isinstance(member, ast.FunctionDef):
                member.body = [ast.Expr(ast.Constant(...))]
                member.args.defaults = [ast.Constant(...) for _ in member.args.defaults]
                made = inspect.getattr_static(cls, member.name)
                kind = next((k for k in DECORATORS if isinstance(made, k)), None)
                member.decorator_list = [ast.Name(kind.__name__)] if kind else []
        node.body, node.decorator_list = [*kept] or [ast.Expr(ast.Constant(...))], []
        arguments = [a for n in ast.walk(node) if isinstance(n, ast.arguments) for a in ast.walk(n)]
        typed = [a for a in arguments if isinstance(a, ast.arg)]
        typed += [n for n in kept if isinstance(n, ast.AnnAssign)]
        types = [n.annotation for n in typed] + [getattr(n, "returns", None) for n in kept]
        for used in [n for t in (*types, *node.bases) if t for n in ast.walk(t)]:
            if isinstance(used, ast.Name) and used.id not in self.public:
                used.id = self.import_name(used.id, vars(self.module))
        return [ast.unparse(node)]

    def define_privately(self, name: str, value: Any) -> str:
        """Define what the module defines and does not list, since others of its names need it."""
        if name in self.public or name in self.private:
            return name
        self.private[name] = []
        if isinstance(value, type):
            self.private[name] = self.declare_class(value)
            return name
        tree = ast.parse(Path(self.module.__file__ or "").read_text())
        (alias,) = [
            n
            for n in tree.body
            if ast.unparse(getattr(n, "target", n)) == name
            or (isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == name)
        ]
        text = self.annotation(ast.unparse(alias.value), vars(self.module))
        self.private[name] = [f"{name}: {self.import_name('TypeAlias', globals())} = {text}"]
        return name

    def declare_function(self, name: str, fun: Callable, indent: str = "") -> list[str]:
        signature = inspect.signature(fun)
        scope = getattr(inspect.unwrap(fun), "__globals__", {})
        parameters, stars = [], False
        listed = list(signature.parameters.values())
        for i, p in enumerate(listed):
            if p.kind is p.KEYWORD_ONLY and not stars:
                parameters.append("*")
                stars = True
            text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
            stars = stars or p.kind is p.VAR_POSITIONAL
            text += f": {self.annotation(p.annotation, scope)}"
            parameters.append(text + (" = ..." if p.default is not p.empty else ""))
            following = listed[i + 1].kind if listed[i + 1 :] else None
            if p.kind is p.POSITIONAL_ONLY and following is not p.POSITIONAL_ONLY:
                parameters.append("/")
        result = self.annotation(signature.return_annotation, scope)
        return [f"{indent}def {name}({', '.join(parameters)}) -> {result}: ..."]

    def annotation(self, written: Any, scope: dict) -> str:
        """An annotation, its names imported."""
        if written is inspect.Parameter.empty:
            return self.import_name("Any", globals())
        if not isinstance(written, str):
            written = "None" if written is None else inspect.formatannotation(written)
            written = written.replace("typing.", "")
        tree = ast.parse(fill_generic(ast.parse(written, mode="eval")), mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in ("None", "True", "False"):
                node.id = self.import_name(node.id, scope)
        return ast.unparse(tree)

    def import_name(self, name: str, scope: dict) -> str:
        """Return the name in the stub of a name in a module's annotations."""
        value = ChainMap(scope, *map(vars, (builtins, typing, weft.xla.typing)))[name]
        if getattr(builtins, name, None) is value:
            if name not in self.public:
                return name
            self.imports.add("import builtins as _builtins")
            return f"_builtins.{name}"
        if isinstance(value, types.ModuleType):
            self.imports.add(f"import {value.__name__} as _{name}")
        elif find_home(name, value) == self.module.__name__:
            return self.define_privately(name, value)
        else:
            self.imports.add(f"from {find_home(name, value)} import {name} as _{name}")
        return f"_{name}"


def list_used(head: set[str], body: str) -> list[str]:
    """The statements of a head, in order, that bind a name which the body or one of them uses."""
    words = set(re.findall(r"\w+", body))
    used = []
    for line in sorted(
        head, key=lambda line: ("import " in line, line)
    ):  # imports serve the others
        bound = line.partition(" = ")[0].rpartition("import ")[2]
        if not words.isdisjoint(x.split(" as ")[-1].strip() for x in bound.split(",")):
            used.append(line)
            words.update(re.findall(r"\w+", line.partition(" = ")[2]))
    return sorted(used)


@functools.cache
def read_generic() -> tuple[list[str], dict[str, dict[str, list[ast.stmt]]]]:
    """Return the head of generic_signatures.pyi, and its declarations by module and name."""
    tree = ast.parse(Path(__file__).with_name("generic_signatures.pyi").read_text())
    modules = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    header = [ast.unparse(n) for n in tree.body[1:] if n not in modules]
    found: dict[str, dict[str, list[ast.stmt]]] = {}
    for module in modules:
        names = found.setdefault(module.name, {})
        for node in module.body:
            first = unfold_branches(node)[0]
            name = first.targets[0].id if isinstance(first, ast.Assign) else first.name
            names.setdefault(name, []).append(node)
    return header, found


def unfold_branches(node: ast.stmt) -> list[Any]:
    """Return the declarations in the branches of an `if`, or a declaration alone."""
    return [*node.body, *node.orelse] if isinstance(node, ast.If) else [node]


@functools.cache
def list_definitions() -> dict[tuple[str, int], str]:
    """The module that defines each name, by the name and the identity of its value."""
    for name in MODULES:  # import names of first use
        module = importlib.import_module(name)
        assert all(hasattr(module, n) for n in dir(module))
    found = {}
    for module in [m for n, m in sys.modules.items() if n.startswith("weft.")]:
        file = getattr(module, "__file__", None)  # a distribution's module has none
        tree = ast.parse(Path(file).read_text() if file else "")
        for node in tree.body:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            names += [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else []
            found.update({(n, id(vars(module).get(n))): module.__name__ for n in names})
    return found


def find_home(name: str, value: Any) -> str:
    """The module that defines a name; empty where none does by a statement of its own."""
    for module in ("typing", "collections.abc"):
        if getattr(importlib.import_module(module), name, None) is value:
            return module
    home = list_definitions().get((name, id(value)), "")
    return home or (value.__module__ if isinstance(value, type) else "")


BARE = {"Callable": "[..., Any]", "tuple": "[Any, ...]", "list": "[Any]", "dict": "[str, Any]"}


def fill_generic(tree: ast.Expression) -> str:
    """Return an annotation with parameters for generic types that have none."""
    filled = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Subscript)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in filled:
            node.id += BARE.get(node.id, "")
    return ast.unparse(tree)


def write_members() -> str:
    """Return the stub of the members of arrays that weft.numpy attaches or jaxlib has."""
    stub = Stub(importlib.import_module("weft.xla.members"))
    inherited = {n for cls in Array.__mro__[:-1] for n in vars(cls)}
    result = lambda kind: stub.annotation(kind, {"Array": Array})
    lines = ["class Members:"]
    lines += [f"    def {name}(self) -> {result(kind)}: ..." for name, kind in ENGINE.items()]
    for name in sorted(set(dir(ArrayImpl)) - inherited - set(dir(object)) | COMPARISONS):
        getattr(ArrayImpl, name)  # members that are made when they are first read take their places
        member = inspect.getattr_static(ArrayImpl, name)
        fun = member.fget if isinstance(member, property) else member
        if name in ("__getattr__", *ENGINE):
            continue
        if isinstance(fun, type):
            kind = stub.import_name(fun.__name__, {fun.__name__: fun})
            lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
            continue
        if not inspect.isfunction(fun):
            continue
        (text,) = stub.declare_function(name, fun, "    ")
        text = re.sub(r"\((\w+): [^,)]*(, /)?(?=[,)])", "(self", text, count=1)
        lines += ["    @property"] * isinstance(member, property)
        lines += [text + ("  # type: ignore[override]" if name in ("__eq__", "__ne__") else "")]
    return "\n".join([HEAD, *sorted(stub.imports), "", *lines, ""])


def write_all() -> Iterator[tuple[Path, str]]:
    """Each stub's place and text."""
    yield ROOT / "xla/members.pyi", write_members()
    for name in MODULES:
        file = Path(sys.modules[name].__file__ or "")
        yield file.with_suffix(".pyi"), Stub(sys.modules[name]).write()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    old = 0
    for place, text in write_all():
        form = ["ruff", "format", "--stdin-filename", place.name, "-"]
        done = subprocess.run(
            [sys.executable, "-m", *form], input=text, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{place}: {done.stderr}")
        if not place.exists() or place.read_text() != done.stdout:
            old += 1
            print(("out of date: " if check else "wrote ") + str(place.relative_to(ROOT)))
            if not check:
                place.write_text(done.stdout)
    return bool(check and old)


if __name__ == "__main__":
    sys.exit(main())
