"""Calls of foreign functions: what a program writes for one, and whose an error of XLA is.

Their primitive is api/ffi_call.py's, registering them is ffi.py's; lapack.py's kernels are called
in the same way.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from weft import dtypes
from weft.core.aval import ShapedArray, words_of
from weft.errors import JaxRuntimeError
from weft.xla.compile import Executable
from weft.xla.hlo import Builder, Value, array_text, quote_text, scalar_text

# What handlers can read: arrays of these dtypes, numbers of these and of bool.
ATTRIBUTE_DTYPES = frozenset(
    [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    + [np.dtype(np.float32), np.dtype(np.float64)]
)

# The targets that only a process itself may write into its programs: the kernels of native/, and
# functions of this process, which XLA finds by a number, an address or a key.
_PRIVATE_TARGET = (  # compiled at its first use, not by `import weft`
    r"weft_|xla_\w*python|InspectSharding|CustomSPMDPartitioning|WeftCustomPartitioning|dce_sink"
)

_make_capsule = ctypes.pythonapi.PyCapsule_New
_make_capsule.restype = ctypes.py_object
_make_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def new_capsule(pointer: Any) -> Any:
    """A pointer to a handler, as XLA takes it."""
    return _make_capsule(pointer, b"xla._CUSTOM_CALL_TARGET", None)


def refuse_private_target(op: str, target: str) -> None:
    """Raise if a name from a file or a text is a target that belongs to this process."""
    if re.match(_PRIVATE_TARGET, target):
        raise ValueError(
            f"{op} must not call kernels of weft nor Python functions, which only programs of this "
            f"process may; got a call of {target!r}."
        )


class ForeignCall(NamedTuple):
    """A call as a program makes it; it prints as errors name it."""

    target: str
    in_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]
    attributes: Sequence[tuple[str, Any]]

    def __str__(self) -> str:
        listed = lambda avals: "(" + ", ".join(map(str, avals)) + ")"
        given = f"{self.target!r}{listed(self.in_avals)} -> {listed(self.out_avals)}"
        options = ", ".join(f"{k}={v!r}" for k, v in self.attributes)
        return f"{given} with {options}" if options else given


class ForeignExecutable(Executable):
    """A program that makes `calls`. Its first run blocks, so that errors name their call.

    A wrong signature raises in every run. So later runs are plain calls.
    """

    __slots__ = ("calls", "has_run")

    def __init__(self, calls: Sequence[ForeignCall], *args: Any):
        super().__init__(*args)
        self.calls = calls
        self.has_run = False

    def __call__(self, *args: Any) -> list:
        if self.has_run:
            return super().__call__(*args)
        try:
            outs = super().__call__(*args)
            _jax.batched_block_until_ready([*map(words_of, outs)])
        except JaxRuntimeError as error:
            said = str(error).partition(": ")[2].strip() or str(error)
            listed = ", or ".join(map(str, self.calls))
            said = " ".join(said.removeprefix("[execute] ").split())
            raise JaxRuntimeError(
                f"ffi_call: the handler must accept the call; got {listed}: {said}"
            ) from error
        self.has_run = True
        return outs


def write_kernel_call(
    hlo: Builder,
    target: str,
    operands: Sequence[Value],
    out_avals: Sequence[ShapedArray],
    layouts: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]],
    aliases: Mapping[int, int],
    config: str = "{}",
    **attrs: Any,
) -> list[Value]:
    """Call a kernel. `layouts` has the operands' and the results' layouts, the fastest axes first.

    `aliases` maps a result to the operand with its buffer; `config` are the attributes.
    """

    def layouts_text(orders: Sequence[Sequence[int]]) -> str:
        texts = [f"dense<{[*o] if o else ''}> : tensor<{len(o)}xindex>" for o in orders]
        return f"[{', '.join(texts)}]"

    alone = len(out_avals) == 1
    shared = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{'' if alone else out}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for out, operand in aliases.items()
    )
    return hlo.custom_call(
        target,
        operands,
        out_avals,
        config,
        operand_layouts=layouts_text(layouts[0]),
        result_layouts=layouts_text(layouts[1]),
        output_operand_aliases=f"[{shared}]",
        **attrs,
    )


class Attribute:
    """A constant that a handler is given, as Python has it and as programs are written."""

    __slots__ = ("text", "value")

    def __init__(self, name: str, value: Any):
        self.value = value
        self.text = write_attribute(name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Attribute and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return repr(self.value)


def write_attribute(name: str, value: Any) -> str:
    """The text of an attribute whose handler reads it with `.Attr<T>(name)`.

    A bool, an int of 64 bits, a float of 64, a NumPy number of its own dtype, a string; arrays and
    sequences of numbers; dicts of all these.
    """
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        items = {k: write_attribute(f"{name}[{k!r}]", v) for k, v in value.items()}
        return write_dictionary(items)
    if isinstance(value, str | bytes):
        return quote_text(value if isinstance(value, str) else value.decode("latin-1"))
    single = isinstance(value, bool | int | float | np.generic)
    if single or isinstance(value, list | tuple | np.ndarray):
        found = np.asarray(value)
        if single and found.dtype == np.bool_:
            return scalar_text(found[()], found.dtype)
        if found.dtype in ATTRIBUTE_DTYPES:
            if single:
                return f"{scalar_text(found[()], found.dtype)} : {dtypes.hlo_name(found.dtype)}"
            aval = ShapedArray(found.shape, found.dtype)
            return f"dense<{array_text(found, found.dtype)}> : {aval.hlo}"
    raise TypeError(
        f"ffi_call: attribute {name} must be a bool, a number of a dtype that handlers read "
        "(integers, float32, float64), a string, an array of such numbers, or a dict of these, "
        f"known now; got {value!r}. Hint: what a program computes is passed as an operand."
    )


def write_dictionary(texts: Mapping[str, str]) -> str:
    """A dictionary of attributes, by the texts of its values."""
    return "{" + ", ".join(f"{quote_text(k)} = {text}" for k, text in sorted(texts.items())) + "}"
