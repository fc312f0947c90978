"""Calls of kernels of our own, as equations: `cpu_call`, which is lowered to one custom call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from weft.core.aval import ShapedArray
from weft.core.facts import Cost
from weft.core.jaxpr import Atom, Eqn, Var
from weft.core.primitive import Primitive
from weft.cpu.kernels import call_native
from weft.xla.foreign import Attribute


class CpuCall(Primitive):
    """Call a kernel of native/ by its name; arrays are passed row by row.

    Parameters:
      kernel: the name of the handler.
      outs: the types of the results.
      attributes: pairs of a name and an `Attribute`, which the handler reads.
      aliases: pairs of a result and the operand whose buffer it takes.

    It stands only in programs that are about to be lowered for a CPU, so it has no derivative and
    no batching.
    """

    name = "cpu_call"
    cost = Cost.LIBRARY
    multiple_results = True

    def abstract_eval(self, *avals, kernel, outs, attributes, aliases):
        return list(outs)

    def pretty_params(self, params):
        shown = {"kernel": params["kernel"], **dict(params["attributes"])}
        return {**shown, "aliases": dict(params["aliases"])} if params["aliases"] else shown

    def read_params(self, params, avals, out_avals):
        raise ValueError(
            "cpu_call: must stand in programs of this process only, which are about to be lowered; "
            f"got a text with a call of {params.get('kernel')!r}."
        )

    def lower(self, hlo, *values, kernel, outs, attributes, aliases):
        given = {name: attribute.value for name, attribute in attributes}
        return call_native(hlo, kernel, values, outs, given, dict(aliases))


cpu_call_p = CpuCall()


def call_kernel(
    kernel: str,
    operands: Sequence[Any],
    outs: Sequence[ShapedArray],
    attributes: Mapping[str, Any] = MappingProxyType({}),
    aliases: Mapping[int, int] = MappingProxyType({}),
) -> list:
    """Apply a kernel, such as "weft_sort", to traced operands.

    Args:
      kernel: the name of the handler.
      operands: arrays.
      outs: the types of the results.
      attributes: what the handler reads besides: numbers, texts, sequences of numbers.
      aliases: for results that take over the buffer of an operand, the index of the operand.

    Returns:
      A list of the results.
    """
    return cpu_call_p.apply(*operands, **call_params(kernel, outs, attributes, aliases))


def kernel_equation(
    kernel: str, invars: Sequence[Atom], outvars: Sequence[Var], attributes: Mapping[str, Any]
) -> Eqn:
    """Return the equation that applies a kernel to atoms."""
    outs = [ShapedArray(v.aval.shape, v.aval.dtype) for v in outvars]
    return Eqn(cpu_call_p, invars, call_params(kernel, outs, attributes, {}), outvars)


def read_attributes(eqn: Eqn) -> dict[str, Any]:
    """Return the attributes of a call by their names."""
    return {name: attribute.value for name, attribute in eqn.params["attributes"]}


def call_params(
    kernel: str,
    outs: Sequence[ShapedArray],
    attributes: Mapping[str, Any],
    aliases: Mapping[int, int],
) -> dict[str, Any]:
    """Return the parameters of `cpu_call`."""
    given = tuple([(name, Attribute(name, x)) for name, x in attributes.items()])
    shared = tuple(sorted(aliases.items()))
    return dict(kernel=kernel, outs=tuple(outs), attributes=given, aliases=shared)
