"""Names of `jax._src` that libraries import and which are nowhere in JAX's public modules.

`tests/golden/library_names.txt` says which library uses a name. Names of one private module with
many such names are in files of their own: dtypes.py, promotion.py, typing.py, util.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import api_util  # noqa: F401 - a name of jax.experimental.ode
from weft.api.callbacks import effects_barrier as wait_for_tokens
from weft.api_util import DebugInfo
from weft.compat.absent import make_absent
from weft.compat.dtypes import dtype as _dtype_of
from weft.compat.typing import DimSize, Shape  # noqa: F401 - names of jax._src.core
from weft.core.aval import ShapedArray, typeof
from weft.core.ref import AbstractRef
from weft.core.stage import StageTrace
from weft.core.trace import current as trace_ctx  # noqa: F401 - a name of jax._src.core
from weft.core.trace import is_eager
from weft.errors import ConcretizationTypeError
from weft.experimental.hijax import control_flow_allowed_effects
from weft.extend.core import concrete_or_error
from weft.extend.core.primitives import CallPrimitive
from weft.interpreters.mlir import core_call_lowering
from weft.lax import add_p, convert_element_type, eq, stop_gradient_p
from weft.mesh.client import _process_group
from weft.numpy import promote_types, zeros
from weft.numpy.promotion import shape_of
from weft.primitives.varying import ManualAxisType
from weft.pytrees import is_tree_node, leaves, prefix_error, structure, tree_map
from weft.sharding import AxisType, NamedSharding, PartitionSpec, get_abstract_mesh, get_mesh
from weft.util import SymbolicSize, list_public

__all__ = [
    "AbstractRef", "CallPrimitive", "DebugInfo", "ManualAxisType", "TypedNdArray", "global_state",
    "stop_gradient_p", "trace_state_clean", "wait_for_tokens",
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


pytype_aval_mappings: dict[type, Any] = {np.ndarray: typeof}


# Of primitives and traces: a sum of cotangents is `add`, and a program is staged by one trace.
add_any_p = add_p
_call_lowering = core_call_lowering
DynamicJaxprTrace = StageTrace
custom_staging_rules: dict[Any, Any] = {}
remat_allowed_effects = control_flow_allowed_effects
global_result_handlers: dict[type, Any] = {}  # for user-defined types: none

JaxException = Exception
Out = Any
UNSPECIFIED, UnspecifiedValue = None, type(None)  # for `jit`, no sharding


make_iota, to_elt = map(make_absent, ("batching.make_iota", "batching.to_elt"))


class JaxprEqnContext:
    """The settings under which an equation was made; weft stores none."""


class EArray:
    """The class of arrays whose dtype is a rule in Python; weft has none, so it has no instance."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "EArray: must hold a dtype that is a rule in Python; weft has none. Hint: jax.Array."
        )


class _Registry:
    """The classes that are nodes of pytrees."""

    def __contains__(self, nodetype: type) -> bool:
        return is_tree_node(nodetype)


_registry = _Registry()


def prefix_errors(prefix_tree: Any, full_tree: Any) -> list[Callable[[str], Any]]:
    """List why a tree is not a prefix of another: functions that make an error for a name."""
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
        """Return the number of processes."""
        return next((group.size for group in _process_group), 1)


global_state = _State()


def is_concrete(x: Any) -> bool:
    """Return True if the value of an array, which may be traced, is known to Python."""
    try:
        concrete_or_error(None, x)
    except ConcretizationTypeError:
        return False
    return True


trace_state_clean = is_eager


def full_lower(x: Any) -> Any:
    """Return a value unchanged: tracers have no levels."""
    return x


get_referent = full_lower


def _dtype(x: Any) -> np.dtype:
    """Return the dtype that an array or a number has under the current settings."""
    return _dtype_of(x, canonicalize=True)


def is_vmappable(x: Any) -> bool:
    """Return True if `vmap` maps over values of a class of one's own; there are none such."""
    return False


def is_dim(v: Any) -> bool:
    """Return True if a value can be the size of an axis, symbolic or not."""
    return isinstance(v, int | np.integer | SymbolicSize)


def is_constant_dim(d: Any) -> bool:
    """Return True if a size is a number, and not symbolic."""
    return isinstance(d, int)


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Return True if all sizes of a shape are numbers, and not symbolic."""
    return all(map(is_constant_dim, s))


def canonicalize_shape(shape: Sequence[Any], context: str = "shape") -> tuple:
    """Return a shape as a tuple of sizes."""
    return shape_of(context, shape)


def canonicalize_sharding(sharding: Any, api_name: str = "sharding", **options: Any) -> Any:
    """Return a sharding; a spec becomes one over the mesh in scope."""
    is_spec = isinstance(sharding, PartitionSpec)
    return NamedSharding(get_abstract_mesh(), sharding) if is_spec else sharding


def _ensure_index(x: Any) -> int | tuple[int, ...]:
    """Return a number of an argument as an int, or several as a tuple."""
    return operator.index(x) if hasattr(x, "__index__") else tuple(map(operator.index, x))


def _batch_and_remainder(x: Any, batch_size: int) -> tuple[Any, Any]:
    """Split the arrays of a tree along their first axis: batches, and the rest; None if empty."""
    count, left = divmod(leaves(x)[0].shape[0], batch_size)
    whole = count * batch_size
    batches = tree_map(lambda a: a[:whole].reshape(count, batch_size, *a.shape[1:]), x)
    return batches if count else None, tree_map(lambda a: a[whole:], x) if left else None


def _any_axis_explicit(mesh: Any) -> bool:
    return any(kind == AxisType.Explicit for kind in mesh.axis_types)


def get_concrete_mesh() -> Any:
    """Return the mesh of devices in scope, an empty one without one."""
    return get_mesh()


class _ThreadResources:
    """The mesh in scope, as `thread_resources.env.physical_mesh`."""

    @property
    def env(self) -> _ThreadResources:
        """The object itself."""
        return self

    @property
    def physical_mesh(self) -> Any:
        """The mesh of devices in scope, an empty one without one."""
        return get_mesh()


thread_resources = _ThreadResources()


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Assert that the leaves of two trees are close, as `jax.test_util` compares derivatives."""
    tree_map(
        lambda x, y: np.testing.assert_allclose(
            np.asarray(x), np.asarray(y), rtol=rtol or 1e-6, atol=atol or 1e-6, err_msg=err_msg
        ),
        xs,
        ys,
    )


def _ensure_index_tuple(x: Any) -> tuple[int, ...]:
    """Return one number or several as a tuple of ints."""
    index = _ensure_index(x)
    return (index,) if isinstance(index, int) else index


def _ensure_inbounds(allow_invalid: bool, num_args: int, argnums: Sequence[int]) -> tuple[int, ...]:
    """Return positions of arguments, counted from the start; those out of bounds are left out."""
    inside = [i for i in argnums if -num_args <= i < num_args]
    if len(inside) < len(argnums) and not allow_invalid:
        wrong = next(i for i in argnums if i not in inside)
        raise ValueError(
            f"argnums: must be positions of the {num_args} arguments of the call; got {wrong}."
        )
    return tuple([i % num_args for i in inside])


def argnums_partial2(
    f: Callable, dyn_argnums: int | Sequence[int], args: Sequence, kwargs: dict[str, Any]
) -> tuple[Callable, tuple]:
    """Return a function of some arguments of a call, with the rest fixed, and these arguments."""
    argnums = _ensure_inbounds(False, len(args), _ensure_index_tuple(dyn_argnums))

    def f_partial(*dyn_args: Any) -> Any:
        given = dict(zip(argnums, dyn_args, strict=True))
        return f(*[given.get(i, x) for i, x in enumerate(args)], **kwargs)

    return f_partial, tuple([args[i] for i in argnums])


def _const(example: Any, val: Any) -> Any:
    """Return a number in the dtype of another value; a plain one beside a Python number."""
    plain = isinstance(example, bool | int | float | complex)
    return type(example)(val) if plain else np.array(val, _dtype(example))


def _eq_meet(a: Any, b: Any) -> Any:
    """Compare two arrays in the one of their dtypes that promotes to the other one."""
    if a.dtype != b.dtype:
        least = b.dtype if promote_types(a.dtype, b.dtype) == a.dtype else a.dtype
        a, b = convert_element_type(a, least), convert_element_type(b, least)
    return eq(a, b)


def _overlap_and_add(x: Any, step_size: int) -> Any:
    """Add frames, the last axis but one of `x`, each `step_size` after the one before."""
    *batch, count, length = x.shape
    size = (count - 1) * step_size + length
    places = step_size * np.arange(count)[:, None] + np.arange(length)
    return zeros((*batch, size), x.dtype).at[..., places].add(x)
