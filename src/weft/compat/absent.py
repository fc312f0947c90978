"""The names of JAX that are missing here, with reasons and alternatives.

A module that is out of scope or planned can be imported, since libraries import it at their top
although few of their users need it. Its names are classes, so that they may be in annotations and
be derived from. Calling one raises an error with the reason.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_OUT = "is out of scope of weft"
_LATER = "is planned, and not here yet"
_GONE = "is no longer part of JAX"

# By the name of a module, for all that is in it, or of one name: the state, and what to use.
ABSENT = {
    "jax.cloud_tpu_init": (_OUT, "nothing: a TPU is found when weft starts"),
    "jax.collect_profile": (_OUT, "jax.profiler.trace"),
    "jax.experimental.array_serialization": (_OUT, "orbax"),
    "jax.experimental.colocated_python": (_OUT, "jax.pure_callback or io_callback"),
    "jax.experimental.compute_on": (_LATER, "jax.device_put to a memory of the host"),
    "jax.experimental.jax2tf": (_OUT, "jax.jit(f).lower(x).as_text() for the StableHLO"),
    "jax.experimental.mosaic": (_OUT, "operations of lax, which XLA fuses"),
    "jax.experimental.pallas": (_OUT, "operations of lax, which XLA fuses"),
    "jax.experimental.roofline": (_OUT, "jax.jit(f).lower(x).cost_analysis()"),
    "jax.experimental.source_mapper": (_OUT, "jax.jit(f).lower(x).as_text()"),
    "jax.experimental.transfer": (_OUT, "jax.device_put"),
    "jax.extend.ifrt_programs": (_OUT, "jax.jit"),
    "jax.extend.pallas": (_OUT, "operations of lax, which XLA fuses"),
    "jax.interpreters.pxla": (_OUT, "jax.sharding"),
    "jax._src.lib.gpu_triton": (_OUT, "operations of lax, which XLA fuses"),
    "jax._src.lib.triton": (_OUT, "operations of lax, which XLA fuses"),
    "jax._src.pallas": (_OUT, "operations of lax, which XLA fuses"),
    "jax.tools": (_OUT, "jax.jit(f).lower(x).as_text()"),
}

# What JAX itself once had, and names that are not weft's yet: errors, not modules.
MISSING = {
    "jax.experimental.enable_x64": (_GONE, "jax.enable_x64"),
    "jax.experimental.export": (_GONE, "jax.export"),
    "jax.experimental.global_device_array": (_GONE, "jax.Array"),
    "jax.experimental.host_callback": (_GONE, "jax.pure_callback or io_callback"),
    "jax.experimental.maps": (_GONE, "jax.shard_map"),
    "jax.linear_util": (_GONE, "jax.extend.linear_util"),
    "jax.tree_flatten": (_GONE, "jax.tree.flatten"),
    "jax.tree_leaves": (_GONE, "jax.tree.leaves"),
    "jax.tree_map": (_GONE, "jax.tree.map"),
    "jax.tree_structure": (_GONE, "jax.tree.structure"),
    "jax.tree_unflatten": (_GONE, "jax.tree.unflatten"),
    "jax.util": (_GONE, "the functions of Python's itertools"),
    "jax.xla_computation": (_GONE, "jax.jit(f).lower(x).as_text()"),
    "jax._src": ("is private to JAX", "the public name"),
}


def find_reason(name: str, table: dict = ABSENT) -> tuple[str, str] | None:
    """Why a module or name is out of scope, and what to use; None if it is not."""
    while name:
        if name in table:
            return table[name]
        name = name.rpartition(".")[0]
    return None


def explain_absence(name: str, text: str = "") -> str:
    """Return the error message for a missing name; `text` is weft's comment on it."""
    state, instead = find_reason(name) or find_reason(name, MISSING) or ("", "")
    asking = find_asking_module()
    if state:
        return f"{name}: {state}{asking and f'; {asking} asks for it'}. Hint: use {instead}."
    hint = text.partition("Hint: ")[2] or "see docs/coming-from-jax.md for what weft has of JAX."
    got = f"got one that it has not{asking and f', in {asking}'}"
    return f"{name}: must be a name that weft has; {got}. Hint: {hint}"


def find_asking_module() -> str:
    """Return the name of the module of a library that asks for a name, "" if it is the program."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("weft.compat", "importlib", "_frozen_importlib")):
            return "" if name == "__main__" else name
        frame = frame.f_back
    return ""


class _Absent(type):
    """The class of names of a module that is out of scope: to call one is an error."""

    name: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(explain_absence(cls.name))

    def __getattr__(cls, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return make_absent(f"{cls.name}.{attribute}")


def make_absent(name: str) -> type:
    """A class that stands for a name of a module that is out of scope."""
    return _Absent(name.rpartition(".")[2], (), {"name": name})


class AbsentModule(ModuleType):
    """A module that is out of scope: it imports, and fails on use."""

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return make_absent(f"{self.__name__}.{attribute}")
