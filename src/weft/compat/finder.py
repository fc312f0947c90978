"""Find modules for `import jax.x`: modules of weft, views of several modules, or stand-ins.

A module of JAX is the module of weft with the same name, so `jax.numpy is weft.numpy`; or a view of
several modules, by the table VIEWS of places.py; or it is out of scope, and imports but fails on
use. JAX itself is never looked for, even if it is installed.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import weft
from weft.compat.absent import AbsentModule, explain_absence, find_reason
from weft.compat.places import SHARED, VIEWS
from weft.compat.version import __version__
from weft.options import config

_ABSENT: Any = object()
PRIVATE = "jax._src."
_NAMESPACE = vars(ModuleType)["__dict__"]
_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads `jax` and all below it, and says which version of JAX is installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec for a module of JAX; ModuleNotFoundError where there is none here."""
        if name.partition(".")[0] != "jax":
            return None
        if not (find_homes(name) or find_reason(name)):
            raise ModuleNotFoundError(explain_absence(name), name=name)
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        """The module of weft, or a new one."""
        homes = find_homes(spec.name)
        if not homes:
            return AbsentModule(spec.name)
        own = homes[0] == spec.name.replace("jax", "weft", 1)
        if spec.name.startswith(PRIVATE) or (len(homes) > 1 and not own):
            return ModuleType(spec.name)
        module = importlib.import_module(homes[0])
        spec.loader_state = [module.__spec__]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Make names that are absent say why."""
        spec: Any = module.__spec__
        homes = find_homes(spec.name)
        if spec.loader_state is not None:
            (module.__spec__,) = spec.loader_state
            if homes[0] == spec.name.replace("jax", "weft", 1):
                module.__name__ = spec.name  # which array_api_compat compares
        elif homes:
            if spec.name == "jax":  # programs set JAX_ENABLE_X64 and the like before they import
                config.read_environment()
            vars(module).update(read_view(homes))
        if homes and not hasattr(vars(module).get("__getattr__"), "jax_name"):
            vars(module)["__getattr__"] = make_getattr(module, spec.name, homes)
            for name, x in [*vars(module).items()]:  # those that weft itself has imported
                if isinstance(x, ModuleType) and find_homes(f"{spec.name}.{name}"):
                    importlib.import_module(f"{spec.name}.{name}")
        if spec.name == "jax":
            for name in ("core", "version"):  # which libraries look for in sys.modules
                importlib.import_module(f"jax.{name}")
        if hasattr(module, "__all__"):
            module.__class__ = PublicModule

    def find_distributions(self, context: Any) -> Iterator[importlib.metadata.Distribution]:
        """The distribution that `importlib.metadata.version("jax")` asks for."""
        if context.name in (None, "jax"):
            yield JaxDistribution()


class PublicModule(ModuleType):
    """A module whose `__dict__` holds all its public names.

    Libraries copy or wrap `vars(jax.numpy)`. Names that are imported when they are first used are
    not there until then, so all of them are imported when a program asks for the dictionary.
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in self.__all__:
            getattr(self, name, None)
        return _NAMESPACE.__get__(self)


class JaxDistribution(importlib.metadata.Distribution):
    """JAX as a package that is installed, in the version whose interface weft has."""

    def read_text(self, filename: str) -> str | None:
        """The text of a file of the package's metadata."""
        text = f"Metadata-Version: 2.1\nName: jax\nVersion: {__version__}\n"
        return text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """Return the path that a file of the package would have: there is none."""
        raise FileNotFoundError(f"jax: stands for weft, and has no file {path}.")


def find_homes(name: str) -> list[str]:
    """The modules of weft that a module of JAX shows; none if it is not here."""
    if name in VIEWS:
        return VIEWS[name].split()
    parent, _, last = name.rpartition(".")
    packages = [home for home in VIEWS.get(parent, "").split() if home.startswith("jaxlib.")]
    within = [f"{home}.{last}" for home in packages if is_module(f"{home}.{last}")]
    if within:  # jax.extend.mlir.dialects.func
        return within
    if name.startswith(PRIVATE):
        return find_homes(name.replace(PRIVATE, "jax.", 1))
    home = name.replace("jax", "weft", 1)
    return [home] if home.split(".")[1] in weft.__all__ and is_module(home) else []


def is_module(name: str) -> bool:
    """Return True if a module is imported, or can be."""
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def read_view(homes: list[str]) -> dict[str, Any]:
    """Return the first contents of a module that shows several others."""
    modules = [importlib.import_module(home) for home in homes]
    public = {n: None for m in modules for n in getattr(m, "__all__", ())}
    first = modules[0]
    return {
        "__all__": [n for n in public if not n.startswith("__")],
        "__dir__": lambda: sorted([*public, *(f"__{n}__" for n in ("doc", "name", "version"))]),
        "__doc__": first.__doc__,
        "__file__": getattr(first, "__file__", None),
    }


def make_getattr(module: ModuleType, name: str, homes: list[str]) -> Callable[[str], Any]:
    """`__getattr__` of a module under JAX's name: names, modules, or an error with advice."""
    own = vars(module).get("__getattr__")
    searched = [*homes, *SHARED.split()] if name.startswith(PRIVATE) else homes

    def get(attribute: str) -> Any:
        full, text, found = f"{name}.{attribute}", "", _ABSENT
        if full in VIEWS and full.startswith(PRIVATE):  # a function may have the same name
            return importlib.import_module(full)
        for home in searched:
            try:
                at = importlib.import_module(home)
                if at is not module:
                    found = getattr(at, attribute)
                elif own:
                    found = own(attribute)
            except AttributeError as error:
                text = text or str(error)
            if isinstance(found, ModuleType):
                if find_homes(full):
                    return importlib.import_module(full)
                if found.__spec__ and found.__spec__.name == full.replace("jax", "weft", 1):
                    found = _ABSENT  # weft's own: programs ask hasattr(jax, "api")
            if found is not _ABSENT:
                setattr(module, attribute, found)
                return found
        if attribute.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        if find_homes(full) or find_reason(full):
            return importlib.import_module(full)
        # `from jax.x import y` replaces an AttributeError by an error without advice
        caller = sys._getframe(1)
        from_import = caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM
        text = explain_absence(full, text)
        raise ImportError(text, name=name) if from_import else AttributeError(text)

    get.jax_name = name  # type: ignore[attr-defined]
    return get
