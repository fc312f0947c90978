"""A helper of tests of the passes for CPUs: the text of a program after the passes."""

import contextlib
import textwrap
from collections.abc import Iterator

import pytest

import weft
from weft.core.jaxpr import Jaxpr
from weft.cpu import passes
from weft.cpu.groups import group_operations
from weft.cpu.scope import Target
from weft.passes.check import check_jaxpr

KERNELS = Target(native=True)
NO_KERNELS = Target(native=False)
OVER_MESH = Target(native=True, devices=True)


@contextlib.contextmanager
def leave_out_groups() -> Iterator[None]:
    """Leave out this pass, so that programs and texts are the same with each jaxlib."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "PASSES", [p for p in passes.PASSES if p is not group_operations])
        yield


def prepare_ungrouped(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program after all passes but `group_operations`."""
    with leave_out_groups():
        return passes.prepare_jaxpr(jaxpr, target)


def show_prepared(fun, *args, target=KERNELS) -> str:
    """The text of the program that a CPU is given for `fun(*args)`; the program is checked."""
    jaxpr = weft.make_jaxpr(fun)(*args).jaxpr
    before = str(jaxpr)
    prepared = prepare_ungrouped(jaxpr, target)
    assert str(jaxpr) == before, "the program before a pass must stay as it is"
    check_jaxpr(prepared)
    assert [a.strong() for a in prepared.out_avals] == [a.strong() for a in jaxpr.out_avals]
    return str(prepared)


def expect(found: str, wanted: str) -> None:
    """Compare a program with its text, which may be indented."""
    assert found == textwrap.dedent(wanted).strip()
