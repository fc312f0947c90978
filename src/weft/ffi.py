"""Foreign functions: compiled code of others, called from programs by XLA's FFI.

    library = ctypes.CDLL("./librms.so")
    ffi.register_ffi_target("rms", ffi.pycapsule(library.Rms))
    y = ffi.ffi_call("rms", weft.ShapeDtypeStruct(x.shape, x.dtype))(x, eps=np.float32(1e-6))

docs/ffi.md has the C++ side, and the list of checks.
"""

from __future__ import annotations

import ctypes
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jaxlib
from jaxlib import _jax

from weft.api.ffi_call import ffi_call
from weft.core.aval import ShapedArray
from weft.errors import JaxRuntimeError
from weft.mesh.plugins import GPUS, register_on_gpu
from weft.util import check_option, list_public
from weft.xla.foreign import new_capsule, write_attribute, write_dictionary, write_kernel_call
from weft.xla.hlo import Value, quote_text

__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip
__dir__ = list_public(__name__)


def include_dir() -> str:
    """Return the folder of the headers that handlers are compiled with.

    Returns:
      A path. `xla/ffi/api/ffi.h` and other headers are below it.

    >>> os.path.exists(os.path.join(weft.ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return os.path.join(os.path.dirname(jaxlib.__file__), "include")


def pycapsule(funcptr: Any) -> Any:
    """Return the pointer of a function that `ctypes` loaded, for `register_ffi_target`.

    Args:
      funcptr: a function of a `ctypes` library.

    Returns:
      A PyCapsule.

    >>> import ctypes
    >>> library = ctypes.CDLL("./libmine.so")  # doctest: +SKIP
    >>> weft.ffi.register_ffi_target("mine", weft.ffi.pycapsule(library.Mine))  # doctest: +SKIP
    """
    try:
        address = ctypes.cast(funcptr, ctypes.c_void_p).value
    except ctypes.ArgumentError:
        address = None
    if not address:
        raise TypeError(
            f"pycapsule: funcptr must be a function of a library that ctypes has loaded; got "
            f"{funcptr!r}. Hint: ctypes.CDLL(path).name_of_the_handler."
        )
    return new_capsule(address)


# The names of platforms here, by those that users give; JAX's programs say CUDA for a GPU.
PLATFORMS = {"host": "cpu", "gpu": "cuda"}


def name_platform(op: str, platform: Any) -> str:
    """The platform by the name that it has here."""
    if not isinstance(platform, str):
        raise TypeError(f"{op}: platform must be a string; got {platform!r}. Hint: 'cpu'.")
    return PLATFORMS.get(platform.lower(), platform.lower())


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Register a compiled function, so that programs can call it by name.

    Args:
      name: the name, which belongs to one function for the life of the process.
      fn: a handler as a PyCapsule (`pycapsule`), or a dict of the handlers of its stages:
        "execute", and "instantiate", "prepare" and "initialize" if it has them.
      platform: "cpu", the default, "CUDA" or "ROCM".
      api_version: 1, the default, for a handler of the typed FFI; 0 for a function of XLA's older
        custom calls.
      **kwargs: `traits`, for XLA.

    Returns:
      None.

    Raises:
      ValueError: the name has another function already.

    >>> import ctypes
    >>> library = ctypes.CDLL("./libmine.so")  # doctest: +SKIP
    >>> weft.ffi.register_ffi_target("mine", weft.ffi.pycapsule(library.Mine))  # doctest: +SKIP
    """
    op = "register_ffi_target"
    stages = fn.values() if isinstance(fn, dict) else [fn]
    are_capsules = all(type(x).__name__ == "PyCapsule" for x in stages)  # no public type has it
    if not are_capsules or isinstance(fn, dict) and "execute" not in fn:
        raise TypeError(
            f"{op}: fn must be a PyCapsule, or a dict of them with 'execute'; got {fn!r}. "
            "Hint: ffi.pycapsule(ctypes.CDLL(path).name_of_the_handler)."
        )
    check_option(op, "api_version", api_version, 0, 1)
    place = name_platform(op, platform)
    if place in GPUS:
        register_on_gpu(
            place,
            lambda extension, c_api: extension.register_custom_call_target(
                c_api, name, fn, place.upper(), api_version, **kwargs
            ),
        )
        return
    place = "Host" if place == "cpu" else place  # XLA's name, under which older calls look
    try:
        _jax.register_custom_call_target(name, fn, place, api_version, **kwargs)
    except JaxRuntimeError as error:
        raise ValueError(
            f"{op}: a name must be given to one function of a platform; got {name!r} on {place}: "
            f"{error}"
        ) from None


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare that calls of a target may be split over devices along leading axes.

    Each device then calls it with its own rows. Other targets are given whole arrays.

    Args:
      name: the name of the target.

    Returns:
      None.

    >>> weft.ffi.register_ffi_target_as_batch_partitionable("my_target")
    """
    _jax.register_custom_call_as_batch_partitionable(name)
    for platform in GPUS:
        register_on_gpu(
            platform, lambda _, c_api: _jax.register_custom_call_as_batch_partitionable(name, c_api)
        )


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register a type of state that a handler keeps between its stages.

    Args:
      name: the name of the type, unique in the process.
      type_registration: a dict of PyCapsules: "type_id" holds a pointer to the `XLA_FFI_TypeId`,
        and "type_info" a pointer to the `XLA_FFI_TypeInfo`.
      platform: "cpu", the default, "CUDA" or "ROCM".

    Raises:
      TypeError: `platform` is not a string.
      JaxRuntimeError: the dict does not hold the capsules.

    >>> import ctypes
    >>> library = ctypes.CDLL("./libmine.so")  # doctest: +SKIP
    >>> capsules = {
    ...     "type_id": weft.ffi.pycapsule(library.StateTypeId),
    ...     "type_info": weft.ffi.pycapsule(library.StateTypeInfo),
    ... }  # doctest: +SKIP
    >>> weft.ffi.register_ffi_type("my_state", capsules)  # doctest: +SKIP
    """
    place = name_platform("register_ffi_type", platform)
    if place in GPUS:
        register_on_gpu(
            place,
            lambda extension, c_api: extension.register_custom_type(c_api, name, type_registration),
        )
    else:
        _jax.register_custom_type(name, type_registration)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Raise an error: this release of XLA has no types without a destructor for their values.

    The function exists for programs that are written for JAX. Use `register_ffi_type` instead.

    Args:
      name: the name of the type.
      obj: the id of the type.
      platform: the platform of the type.

    Raises:
      NotImplementedError: always.

    >>> try:
    ...     weft.ffi.register_ffi_type_id("my_state", None)
    ... except NotImplementedError:
    ...     print("use register_ffi_type")
    use register_ffi_type
    """
    raise NotImplementedError(
        f"register_ffi_type_id: the engine must be given the type whole; got the id of {name!r}. "
        "Hint: ffi.register_ffi_type(name, {'type_id': id, 'type_info': info})."
    )


# --- lowering rules of primitives that are foreign functions ----------------------------------


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    has_side_effect: bool = False,
    operand_output_aliases: Mapping[int, int] | None = None,
    api_version: int = 4,
) -> Callable[..., Any]:
    """Return a function that writes a call of a foreign function, for use in a lowering rule.

    It is for rules that do more than call the function. `ffi_lowering` returns a whole rule.

    Args:
      call_target_name: the name under which `register_ffi_target` registered the function.
      operand_layouts: for each operand the order of its axes in memory: a sequence of ints, the
        axis that varies fastest first, or a `Layout`. None is row-major order for all operands.
      result_layouts: for each result the order of its axes in memory, as for the operands.
      backend_config: more attributes of the call by name. A string is written into the program
        unchanged, and must be the text of an MLIR attribute: `'"fast"'` for a string.
      skip_ffi_layout_processing: ignored. The parameter exists for calls that are written for JAX.
      has_side_effect: True keeps a call whose results nobody uses. The default is False.
      operand_output_aliases: the numbers of the operands whose memory the results use, each with
        the number of its result. By default no result uses an operand's memory.
      api_version: the version of XLA's custom calls. The default is 4, the typed FFI.

    Returns:
      A function `write(ctx, *values, **params)` of the context of the rule, the operands and the
      attributes of the call. Its result has the values of the results as `.results`.

    Raises:
      ValueError: the number of layouts is not the number of operands or results. The function that
        is returned raises it.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> write = weft.ffi.build_ffi_lowering_function("my_target")
    >>> my_p = Primitive("my_op")
    >>> _ = my_p.def_abstract_eval(lambda x: x)
    >>> def lower_mine(ctx, x):
    ...     return write(ctx, x, scale=2.0).results
    >>> _ = mlir.register_lowering(my_p, lower_mine)
    >>> "my_target" in weft.jit(my_p.bind).lower(jnp.zeros(3)).as_text()
    True
    """

    def write(ctx: Any, *values: Value, **params: Any) -> types.SimpleNamespace:
        def orders(layouts: Sequence[Any] | None, avals: Sequence[ShapedArray]) -> list:
            given = layouts or [None] * len(avals)
            return [
                [*reversed(range(a.ndim))] if o is None
                else [*reversed(o.major_to_minor)] if hasattr(o, "major_to_minor") else [*o]
                for o, a in zip(given, avals, strict=True)
            ]  # fmt: skip

        if isinstance(backend_config, str):
            config = quote_text(backend_config)
        else:
            given = {**(backend_config or {}), **params}
            config = write_dictionary({k: write_attribute(k, v) for k, v in given.items()})
        results = write_kernel_call(
            ctx.hlo,
            call_target_name,
            values,
            ctx.avals_out,
            (orders(operand_layouts, ctx.avals_in), orders(result_layouts, ctx.avals_out)),
            {out: operand for operand, out in (operand_output_aliases or {}).items()},
            config,
            api_version=f"{api_version} : i32",
            has_side_effect="true" if has_side_effect else "false",
        )
        return types.SimpleNamespace(results=results)

    return write


def ffi_lowering(call_target_name: str, **options: Any) -> Callable[..., Sequence[Value]]:
    """Return the lowering rule of a primitive that calls a foreign function.

    The parameters of the primitive are the attributes of the call. Pass the rule to
    `weft.interpreters.mlir.register_lowering`.

    Args:
      call_target_name: the name under which `register_ffi_target` registered the function.
      **options: the keyword arguments of `build_ffi_lowering_function`, such as `operand_layouts`,
        `backend_config` and `has_side_effect`.

    Returns:
      A lowering rule.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> my_p = Primitive("my_op")
    >>> _ = my_p.def_abstract_eval(lambda x, scale: x)
    >>> _ = mlir.register_lowering(my_p, weft.ffi.ffi_lowering("my_target"))
    >>> program = weft.jit(lambda x: my_p.bind(x, scale=2)).lower(jnp.zeros(3))
    >>> "my_target" in program.as_text()
    True
    """
    write = build_ffi_lowering_function(call_target_name, **options)
    return lambda ctx, *values, **params: write(ctx, *values, **params).results
