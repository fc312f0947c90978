"""`ffi_call`: a call of a function that other code has registered with XLA.

Registering is ffi.py's; what the program writes for a call is xla/foreign.py's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from weft.api.callbacks import result_types
from weft.api.functions import avals_of
from weft.control.scan import bind_scan
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Effect
from weft.core.stage import stage_closed
from weft.errors import ShapeError
from weft.mesh.plugins import GPUS
from weft.primitives.effects import VMAP_METHODS, OpaqueCall, map_operands
from weft.primitives.lapack import register_kernels
from weft.primitives.lapack_shapes import PREFIXES, fit_call
from weft.primitives.layout import batched_at_front, move_to_front
from weft.pytrees import PyTreeDef, flatten, unflatten
from weft.transforms.batch import unmapped_aval
from weft.util import check_option, merge, partition
from weft.xla.foreign import (
    Attribute,
    ForeignCall,
    refuse_private_target,
    write_dictionary,
    write_kernel_call,
)
from weft.xla.hlo import quote_text


class ForeignEffect(Effect):
    """The effect of a foreign function: its call stays if the results are unused."""

    name = "Foreign"
    repeatable = False


class FfiCall(OpaqueCall):
    """The results, of types `result_avals`, of the kernel registered as `target_name`.

    `attributes` are pairs of names and Attributes; layouts are orders of axes, the slowest first;
    `input_output_aliases` are pairs of an operand and the result that takes its buffer.
    """

    name = "ffi_call"

    def __init__(self, effect: Effect | None = None):
        self.effect = effect

    def describe(self, params):
        return repr(params["target_name"])

    def lower(self, hlo, *args, **params):
        target, outs = params["target_name"], params["result_avals"]
        attributes, version = params["attributes"], params["custom_call_api_version"]
        check_registered(target, hlo.platform)
        call = ForeignCall(target, [v.aval for v in args], outs, attributes)
        check_lapack_call(call)
        hlo.foreign_calls.append(call)
        config = write_dictionary({k: x.text for k, x in attributes})
        if version < 4:
            config = quote_text(params["legacy_backend_config"] or "")
        return write_kernel_call(
            hlo,
            target,
            args,
            outs,
            (
                [order[::-1] for order in params["input_layouts"]],
                [order[::-1] for order in params["output_layouts"]],
            ),
            {out: operand for operand, out in params["input_output_aliases"]},
            config,
            api_version=f"{version} : i32",
            has_side_effect="true" if self.effect else "false",
        )

    def batch(self, axis, args, dims, **params):
        method, aliases = params["vmap_method"], params["input_output_aliases"]
        shared = [operand for operand, _ in aliases]  # as large as the results whose buffers
        full = [d is None and i in shared for i, d in enumerate(dims)]  # they become
        args = [batched_at_front(x, None, axis.size) if f else x for x, f in zip(args, full)]
        dims = [0 if f else d for f, d in zip(full, dims, strict=True)]
        mapped = map_operands(self.name, method, axis, args, dims)
        if mapped is None:
            return self.scan(axis, args, dims, params)
        deeper = lambda orders: tuple([(0, *[i + 1 for i in order]) for order in orders])
        avals = tuple([unmapped_aval(a, axis.size, 0) for a in params["result_avals"]])
        orders = [
            order if typeof(x).ndim == len(order) else more
            for x, order, more in zip(
                mapped, params["input_layouts"], deeper(params["input_layouts"])
            )
        ]
        outs = self.apply(
            *mapped,
            **{
                **params,
                "result_avals": avals,
                "input_layouts": tuple(orders),
                "output_layouts": deeper(params["output_layouts"]),
            },
        )
        return outs, [0] * len(outs)

    def scan(self, axis, args, dims, params):
        """Call it for each element along the mapped axis, in a loop."""
        fixed = [d is None for d in dims]
        rows, consts = partition(fixed, [move_to_front(x, d) for x, d in zip(args, dims)])
        row_avals = [typeof(x).update(shape=typeof(x).shape[1:]) for x in rows]

        def call(*xs: Any) -> list:
            n = len(consts)
            return self.apply(*merge(fixed, xs[n:], xs[:n]), **params)

        jaxpr, more = stage_closed(call, [*map(typeof, consts), *row_avals])
        unroll = axis.size if params["vmap_method"] == "sequential_unrolled" else 1
        how = {"length": axis.size, "reverse": False, "unroll": max(unroll, 1)}
        outs = bind_scan(jaxpr, [*more, *consts], [], rows, how)
        return outs, [0] * len(outs)

    def pretty_params(self, params):
        return {**params, "has_side_effect": self.effect is not None}

    def read_params(self, params, avals, out_avals):
        refuse_private_target("ffi_call: a text", params["target_name"])
        read_layouts("input_layouts", params["input_layouts"], avals)
        read_layouts("output_layouts", params["output_layouts"], params["result_avals"])
        check_aliases(params["input_output_aliases"], avals, params["result_avals"])
        given = {k: v for k, v in params.items() if k != "has_side_effect"}
        return {
            **given,
            "attributes": tuple([(k, Attribute(k, v)) for k, v in params["attributes"]]),
        }


def check_lapack_call(call: ForeignCall) -> None:
    """Raise where a kernel of LAPACK would be called with shapes that it does not compare."""
    if not call.target.startswith(PREFIXES):
        return
    taken, given = ([a.shape for a in avals] for avals in (call.in_avals, call.out_avals))
    numbers = {k: x.value for k, x in call.attributes}
    integers = {k: int(x) for k, x in numbers.items() if isinstance(x, int | np.bool_ | np.integer)}
    if not fit_call(call.target, taken, given, integers):
        raise ShapeError(f"ffi_call: LAPACK must be called with shapes that fit; got {call}.")


def check_aliases(
    aliases: Sequence[tuple[int, int]],
    avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
) -> None:
    """Raise where a result cannot take the buffer of the argument that is named for it."""
    for i, o in aliases:
        if not 0 <= i < len(avals) or not 0 <= o < len(out_avals):
            raise ValueError(
                "ffi_call: input_output_aliases must name arguments and results by number; got "
                f"{i}: {o} for {len(avals)} and {len(out_avals)}."
            )
        if avals[i].update(weak_type=False, varying=None) is not out_avals[o]:
            raise ShapeError(
                "ffi_call: an argument must have the type of the result that takes its buffer; "
                f"got {avals[i]} and {out_avals[o]} for {i}: {o}."
            )


def check_registered(target: str, platform: str) -> None:
    """Raise where no function is registered for what the program is compiled for."""
    if platform in GPUS:
        return  # its plugin keeps its own list
    if target in _jax.custom_call_targets("Host" if platform == "cpu" else platform):
        return
    if platform == "cpu" and target.startswith(PREFIXES):
        register_kernels()
        return
    raise NotImplementedError(
        f"ffi_call: the target must be registered for the platform; got {target!r} on {platform}. "
        f"Hint: ffi.register_ffi_target({target!r}, ffi.pycapsule(library.handler), "
        f"platform={platform!r})."
    )


ffi_call_p = FfiCall()
effectful_ffi_call_p = FfiCall(ForeignEffect())


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> ForeignFunction:
    """Return a function that calls the foreign function which is registered under a name.

    It takes arrays by position, and attributes by keyword: bools, ints and floats (of 64 bits),
    NumPy numbers, strings, arrays and dicts. `custom_jvp` or `custom_vjp` gives it a derivative.

    Args:
      target_name: the name of the function, as in `ffi.register_ffi_target`.
      result_shape_dtypes: an array or `ShapeDtypeStruct`, or a pytree of them: the types of the
        results.
      has_side_effect: if True, the call is made even if its results are not used. The default is
        False.
      vmap_method: the method of `vmap`. "sequential" calls it for each element, in a
        loop; "sequential_unrolled" without a loop. "expand_dims" calls it once, with a leading
        axis, which has size 1 where an argument is not mapped. "broadcast_all" repeats those
        arguments, and "legacy_vectorized" leaves them without the axis. None, the default, refuses
        `vmap`.
      input_layouts: for each argument the order of its axes in memory, the slowest first, as a
        `Layout` or a sequence of ints. None, the default, is row by row.
      output_layouts: the same for each result, or for the single one.
      input_output_aliases: a dict from the number of an argument to the number of the result that
        uses its buffer. None, the default, is empty.
      custom_call_api_version: 4, the default, for the typed FFI. Lower numbers are XLA's older
        custom calls.
      legacy_backend_config: the string that such an older call is given.

    Returns:
      A function of arrays and attributes that returns arrays of the given types.

    >>> x = np.float32([[4, 1], [1, 3]])
    >>> struct = weft.ShapeDtypeStruct
    >>> factor = weft.ffi.ffi_call(
    ...     "lapack_spotrf_ffi", (struct(x.shape, x.dtype), struct((), np.int32)),
    ...     input_layouts=[(1, 0)], output_layouts=[(1, 0), None], input_output_aliases={0: 0})
    >>> factor(x, uplo=np.uint8(ord("L")))[0][0]
    Array([2., 1.], dtype=float32)
    """
    if not isinstance(target_name, str):
        raise TypeError(f"ffi_call: target_name must be a string; got {target_name!r}.")
    check_option("ffi_call", "vmap_method", vmap_method, *VMAP_METHODS, None)
    version = custom_call_api_version
    check_option("ffi_call", "custom_call_api_version", version, *range(1, 5))
    if version == 4 and legacy_backend_config is not None:
        raise ValueError(
            "ffi_call: legacy_backend_config must be left out with custom_call_api_version=4; got "
            f"{legacy_backend_config!r}. Hint: attributes, as in ffi_call(...)(x, eps=1e-6)."
        )
    avals, out_tree = result_types("ffi_call", result_shape_dtypes)
    if output_layouts is not None and len(avals) == 1 and not is_many(output_layouts):
        output_layouts = [output_layouts]
    params = {
        "target_name": target_name,
        "result_avals": avals,
        "vmap_method": vmap_method,
        "output_layouts": read_layouts("output_layouts", output_layouts, avals),
        "custom_call_api_version": version,
        "legacy_backend_config": legacy_backend_config,
    }
    return ForeignFunction(has_side_effect, params, out_tree, input_layouts, input_output_aliases)


class ForeignFunction:
    """The result of `ffi_call`: a function of arrays, by position, and attributes, by keyword."""

    def __init__(
        self,
        has_side_effect: bool,
        params: dict[str, Any],
        out_tree: PyTreeDef,
        layouts: Sequence[Any] | None,
        aliases: Mapping[int, int] | None,
    ):
        self.prim = effectful_ffi_call_p if has_side_effect else ffi_call_p
        self.params = params
        self.out_tree = out_tree
        self.layouts = layouts
        self.aliases = tuple((aliases or {}).items())
        self.__name__ = params["target_name"]

    def __call__(self, *args: Any, **attributes: Any) -> Any:
        params = self.params
        leaves, tree = flatten((args, {}))
        if len(leaves) != len(args):
            raise TypeError(
                f"ffi_call: arguments of {self.__name__!r} must be arrays; got a pytree."
            )
        avals = avals_of("ffi_call", leaves, tree, self.__call__)
        if attributes and params["custom_call_api_version"] < 4:
            raise ValueError(
                "ffi_call: attributes must be left out with custom_call_api_version below 4; got "
                f"{', '.join(attributes)}. Hint: legacy_backend_config='...'."
            )
        check_aliases(self.aliases, avals, params["result_avals"])
        outs = self.prim.apply(
            *leaves,
            **params,
            attributes=tuple([(k, Attribute(k, v)) for k, v in sorted(attributes.items())]),
            input_layouts=read_layouts("input_layouts", self.layouts, avals),
            input_output_aliases=self.aliases,
        )
        return unflatten(self.out_tree, outs)

    def __repr__(self) -> str:
        return f"<function that calls {self.__name__!r}>"


def is_many(layouts: Any) -> bool:
    """Return True if there is a layout for each value, and not only one as a Layout or as ints."""
    return isinstance(layouts, list | tuple) and not all(isinstance(i, int) for i in layouts)


def read_layouts(
    name: str, layouts: Sequence[Any] | None, avals: Sequence[ShapedArray]
) -> tuple[tuple[int, ...], ...]:
    """The order of the axes of each value, the slowest first, as users give them."""
    if layouts is None:
        return tuple([tuple(range(a.ndim)) for a in avals])
    if len(layouts) != len(avals):
        raise ValueError(
            f"ffi_call: {name} must have one for each value; got {len(layouts)} for {len(avals)}."
        )
    found = []
    for layout, aval in zip(layouts, avals, strict=True):
        every = range(aval.ndim)
        order = every if layout is None else getattr(layout, "major_to_minor", layout)
        if sorted(order) != [*every]:
            raise ShapeError(
                f"ffi_call: {name} must name each axis of a value once; got {layout} for {aval}."
            )
        found.append(tuple(order))
    return tuple(found)
