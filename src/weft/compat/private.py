"""The few names of `jax._src` that libraries import and which are nowhere in JAX's public modules.

Each is here for a library: brainstate (the current trace, contexts of equations), chex (fake
devices), equinox and quax (tokens, literals), flax (extended dtypes, the registry of pytrees),
jaxquantum (inexact operands), lineax (stop_gradient_p), orbax (the process's place among several),
PennyLane (what is concrete), s2fft (complex operands), saiunit (sizes), TensorFlow Probability
(classes that are arrays).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.api.callbacks import effects_barrier as wait_for_tokens
from weft.api_util import DebugInfo
from weft.compat.absent import make_absent
from weft.core.aval import ShapedArray, typeof
from weft.core.ref import AbstractRef
from weft.core.trace import current as trace_ctx  # noqa: F401 - a name of jax._src.core
from weft.core.trace import is_eager
from weft.dtypes import complex_dtype as to_complex_dtype
from weft.dtypes import inexact_dtype
from weft.errors import ConcretizationTypeError
from weft.extend.core import concrete_or_error
from weft.extend.core.primitives import CallPrimitive
from weft.lax import stop_gradient_p
from weft.mesh.client import _process_group
from weft.numpy import asarray, result_type
from weft.pytrees import is_tree_node, prefix_error, structure
from weft.util import list_public

__all__ = [
    "AbstractRef", "CallPrimitive", "DebugInfo", "TypedNdArray", "promote_dtypes_complex",
    "global_state", "stop_gradient_p", "to_complex_dtype", "trace_state_clean", "wait_for_tokens",
]  # fmt: skip
__dir__ = list_public(__name__)


class TypedNdArray(np.ndarray):
    """A NumPy array with a weak type, as JAX keeps constants; none is made here."""


class TypedInt(int):
    """An int with a dtype, likewise."""


class TypedFloat(float):
    """A float with a dtype, likewise."""


class TypedComplex(complex):
    """A complex number with a dtype, likewise."""


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the buffer that holds an array."""
    return aval.physical


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype has infinities."""
    return bool(np.isinf(np.asarray(np.inf).astype(dtype)))


DType = np.dtype

pytype_aval_mappings: dict[type, Any] = {np.ndarray: typeof}


class ExtendedDType:
    """A dtype whose elements are stored as those of another: random keys have one."""


JaxException = Exception
Out = Any
UNSPECIFIED = None  # for `jit`, no sharding


make_iota, to_elt = map(make_absent, ("batching.make_iota", "batching.to_elt"))


class JaxprEqnContext:
    """The settings under which an equation was made, of which weft keeps none."""


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number, and not symbolic."""
    return isinstance(d, int)


class _Registry:
    """The classes that are nodes of pytrees."""

    def __contains__(self, nodetype: type) -> bool:
        return is_tree_node(nodetype)


_registry = _Registry()


def prefix_errors(prefix_tree: Any, full_tree: Any) -> list[Callable[[str], Any]]:
    """Why one tree is no prefix of another: functions that give an error, of the prefix's name."""
    treedef = structure(prefix_tree)

    def make_error(name: str) -> Any:
        return prefix_error("pytree", treedef, full_tree, name, "the full tree")

    return [make_error] if make_error("") else []


class _State:
    """The place of this process among several; without them, number 0 of 1."""

    @property
    def client(self) -> Any:
        """The connection to the coordinator; None without one."""
        return next((group.client for group in _process_group), None)

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return next((group.rank for group in _process_group), 0)

    @property
    def num_processes(self) -> int:
        """How many processes there are."""
        return next((group.size for group in _process_group), 1)


global_state = _State()


def promote_dtypes_complex(*args: Any) -> list:
    """The arguments as arrays of the complex dtype that they promote to."""
    return [asarray(x, result_type(*args, 0j)) for x in args]


def is_concrete(x: Any) -> bool:
    """Whether the value of an array, which may be traced, is known to Python."""
    try:
        concrete_or_error(None, x)
    except ConcretizationTypeError:
        return False
    return True


def promote_dtypes_inexact(*args: Any) -> list:
    """The arguments as arrays of the inexact dtype that they promote to."""
    return [asarray(x, inexact_dtype(result_type(*args))) for x in args]


def trace_state_clean() -> bool:
    """Whether no function is being traced."""
    return is_eager()
