"""A plugin of pytest: each program that a test stages is read back from its text, in both forms.

`pytest -p tests.jaxpr.every_program tests/control`; the run fails at its end where one was not.
"""

import enum
from typing import Any

import pytest

from weft.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from weft.core.primitive import Primitive, Program
from weft.core.stage import StageTrace
from weft.jaxpr import parse, structurally_equal, unparse
from weft.primitives.checks import check_p

FAULTS: dict[str, str] = {}
SEEN: set[str] = set()


def collect_names(x: Any, names: dict[str, Any], done: set[int]) -> dict[str, Any]:
    """Return the primitives, enumerations and tuples of tests that a text names."""
    if isinstance(x, Program):
        if id(x.jaxpr) not in done:
            done.add(id(x.jaxpr))
            for eqn in x.jaxpr.eqns:
                prim = eqn.primitive
                own = type(prim).__module__.startswith("weft.primitives")
                if not own and names.setdefault(prim.name, prim) is not prim:
                    names["two of one name"] = True
                collect_names(tuple(eqn.params.values()), names, done)
    elif isinstance(x, enum.Enum):
        names[f"{type(x).__name__}.{x.name}"] = x
    elif isinstance(x, tuple | list):
        names[type(x).__name__] = type(x)
        for i in x:
            collect_names(i, names, done)
    return names


def find_operations(jaxpr: Jaxpr) -> set[Primitive]:
    """Return the operations of a program, and of those in it."""
    found, programs, seen = set[Primitive](), [jaxpr], {id(jaxpr)}
    while programs:
        program = programs.pop()
        found |= {eqn.primitive for eqn in program.eqns}
        new = [held for held in subjaxprs(program) if id(held) not in seen]
        programs += new
        seen |= set(map(id, new))
    return found


def check_program(jaxpr: Jaxpr) -> str:
    """Return the fault of a program after reading its text; empty if there is none."""
    operations = find_operations(jaxpr)
    if any(type(each).__module__.startswith("weft.cpu.") for each in operations):
        return ""  # about to be lowered, by operations without a text that can be read
    text, exact = str(jaxpr), unparse(jaxpr)
    names = collect_names(jaxpr, {}, set())
    again, same = parse(text, names=names), parse(exact, names=names)
    types = lambda p: [a.strong() for a in (*p.in_avals, *p.out_avals)]
    if str(again) != text or types(again) != types(jaxpr):
        return "str reads back to another text or other types"
    if unparse(same) != exact:
        return "unparse reads back to another text"
    if (
        "<" not in exact
        and "two of one name" not in names
        and check_p not in operations  # its messages hold the lines of the source
        and not structurally_equal(same.jaxpr, jaxpr)
    ):
        return "unparse reads back to another program"
    return ""


def pytest_configure() -> None:
    finish = StageTrace.finish

    def checking(self: StageTrace, *args: Any, **kwargs: Any) -> Any:
        jaxpr, consts = finish(self, *args, **kwargs)
        text = str(ClosedJaxpr(jaxpr, consts))
        if text not in SEEN:
            SEEN.add(text)
            try:
                fault = check_program(jaxpr)
            except Exception as error:
                fault = repr(error)
            if fault:
                FAULTS[text] = fault
        return jaxpr, consts

    StageTrace.finish = checking  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    print(f"\n{len(SEEN)} programs, {len(FAULTS)} not read back")
    for text, fault in [*FAULTS.items()][:5]:
        print(f"{fault}\n{text[:2000]}")
    if FAULTS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
