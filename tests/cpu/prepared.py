"""A helper of tests of the passes for CPUs: the text of a program after the passes."""

import textwrap

import weft
from weft.cpu.passes import prepare_jaxpr
from weft.cpu.scope import Target
from weft.passes.check import check_jaxpr

KERNELS = Target(native=True)
NO_KERNELS = Target(native=False)
OVER_MESH = Target(native=True, devices=True)


def show_prepared(fun, *args, target=KERNELS) -> str:
    """The text of the program that a CPU is given for `fun(*args)`; the program is checked."""
    jaxpr = weft.make_jaxpr(fun)(*args).jaxpr
    before = str(jaxpr)
    prepared = prepare_jaxpr(jaxpr, target)
    assert str(jaxpr) == before, "the program before a pass must stay as it is"
    check_jaxpr(prepared)
    assert [a.strong() for a in prepared.out_avals] == [a.strong() for a in jaxpr.out_avals]
    return str(prepared)


def expect(found: str, wanted: str) -> None:
    """Compare a program with its text, which may be indented."""
    assert found == textwrap.dedent(wanted).strip()
