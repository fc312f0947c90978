"""Staged programs of users' functions: staging, and the cache on the function."""

from __future__ import annotations

import contextlib
import time
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from weft import dtypes
from weft.api.functions import FlatFun, argument_origins
from weft.control.jit import jit_p
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import ClosedJaxpr, Jaxpr
from weft.core.ref import AbstractRef, Ref, is_ref
from weft.core.stage import close_jaxpr
from weft.core.trace import Tracer
from weft.options import config
from weft.parallel.constraint import constrain_values
from weft.passes.discharge import discharge_state
from weft.passes.merge import find_staged
from weft.primitives.layout import copy_p, zeros
from weft.primitives.refs import load_ref
from weft.pytrees import PyTreeDef, call_registry, is_tree_node, unflatten
from weft.run.eager import kernel_of
from weft.run.pipeline import JitSpec
from weft.run.programs import place_program, run_program
from weft.util import LiveObjects, Logger, insert_at, keep_newest
from weft.watch import events
from weft.watch.leaks import stage_function
from weft.xla.array import put
from weft.xla.passed_refs import Written, forget_passed
from weft.xla.placement import Placement

logger = Logger("weft.trace")

MAX_PROGRAMS = 4096  # kept for one function; then the oldest goes


class Programs(dict):
    """The programs of one function, by how it is called. A copy of it is a plain empty dict."""

    __slots__ = ("__weakref__", "owner", "running")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__
    every: ClassVar[LiveObjects] = LiveObjects()

    def __init__(self, owner: Callable | None = None):
        self.owner = None if owner is None else weakref.ref(owner)
        self.running: set[tuple] = set()  # the calls whose programs are being staged, by thread
        Programs.every.add(self)

    def __reduce__(self) -> tuple:
        return dict, ()

    def add(self, key: Any, program: Any) -> Any:
        """Keep a program."""
        keep_newest(self, key, program, MAX_PROGRAMS)
        return program


def programs_of(fun: Callable) -> Programs:
    """Return the programs of a function, which all jits of it share.

    They are stored on the function: a dict with weak keys would never free a function that one of
    its own programs refers to. A callable object has them too if it is equal only to itself and its
    attributes are not the leaves of a pytree.
    """
    kind: Any = type(fun)
    if kind is not types.FunctionType and not (
        kind.__hash__ is object.__hash__
        and type(getattr(fun, "__dict__", None)) is dict
        and not is_tree_node(kind)
    ):
        return Programs()
    found = fun.__dict__.get("__weft_programs__")
    if type(found) is Programs and found.owner is not None and found.owner() is fun:
        return found
    # none yet, or another function's: functools.wraps copies attributes
    found = fun.__dict__["__weft_programs__"] = Programs(fun)
    return found


def forget_programs() -> None:
    """Empty the programs of every function."""
    for programs in Programs.every.list_all():
        programs.clear()


def is_live(x: Any) -> bool:
    """Return True if a value that a program closed over can still be passed to it."""
    if type(x) is Ref:
        return not x.is_deleted()
    return not isinstance(x, Tracer) or x.owner.live


class Giving:
    """A callable that gives a value, which it keeps alive; it can be pickled."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __call__(self) -> Any:
        return self.value


class StagedProgram(NamedTuple):
    """A function staged at given types.

    float0 values hold no data, so the jaxpr has no such operands or results. `hidden` has
    such arguments by flat position, and `hidden_results` such results.
    """

    fun: Callable[[], Any]  # returns the function; refers to it weakly if it owns its programs
    in_tree: PyTreeDef
    in_avals: Sequence[ShapedArray]  # of all arguments
    donated: tuple[int, ...]  # of all arguments, the donated ones
    hidden: dict[int, Any]
    open_jaxpr: Jaxpr  # with constvars
    jaxpr: Jaxpr  # closed, taking `consts` first
    consts: Sequence[Any]
    out_tree: PyTreeDef
    hidden_results: dict[int, Any]
    spec: JitSpec  # in terms of what the jaxpr takes and gives
    stateful: bool = False  # whether it takes or closes over references

    @property
    def closed(self) -> ClosedJaxpr:
        """The program as users see it."""
        return ClosedJaxpr(self.open_jaxpr, self.consts)

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of all results, flat."""
        hidden = {i: typeof(x) for i, x in self.hidden_results.items()}
        return insert_at(self.jaxpr.out_avals, hidden)

    def select_visible(self, leaves: list) -> list:
        """The arguments that the jaxpr takes."""
        return drop_positions(leaves, self.hidden)

    def argument_names(self) -> list[str]:
        """Name the origin of each argument of the jaxpr, for errors."""
        return self.select_visible(argument_origins(self.fun(), self.in_tree))

    def keep_names(self) -> None:
        """Keep the names of the arguments for the error of a program that exceeds its memory."""
        if self.spec.memory is not None:
            self.spec.memory.keep_names(self.jaxpr, self.argument_names)

    def place(self, leaves: Sequence[Any]) -> Placement:
        """Return the placement for the arguments of the jaxpr."""
        self.keep_names()
        return place_program(self.jaxpr, self.consts, leaves, self.spec, self.argument_names)

    def run(self, leaves: Sequence[Any], placement: Placement | None = None) -> tuple:
        """The results of the jaxpr, and how C++ may run it: see `run_program`."""
        if self.stateful and not any(map(is_ref, self.consts)):
            return self.run_on_refs(leaves)
        if self.stateful:
            options = self.spec.compiler_options
            how = {"compiler_options": options} if options else {}
            given = (*self.consts, *constrain_values(list(leaves), self.spec.in_shardings))
            return jit_p.apply(*given, name=self.spec.name, jaxpr=self.jaxpr, **how), None
        self.keep_names()
        hides = self.hidden or self.hidden_results
        tree = None if hides else self.out_tree
        where: Any = {"placement": placement, "names": self.argument_names}
        return run_program(self.jaxpr, self.consts, leaves, self.spec, tree, **where)

    def run_on_refs(self, leaves: Sequence[Any]) -> tuple:
        """Run on arguments that are references: on their arrays, which it may reuse."""
        forget_passed()
        written = [i - len(self.consts) for i in discharge_state(self.jaxpr)[1]]
        found = self.jaxpr.memo.get(("on refs", self.spec))
        if found is None:
            plain, consts = self.discharged()
            refs = [i for i, x in enumerate(leaves) if is_ref(x)]
            places = tuple([refs.index(i) for i in written])
            tree = None
            with contextlib.suppress(Exception):  # of a user's class that asks what its leaves are
                result = unflatten(self.out_tree, range(self.out_tree.num_leaves))
                tree = call_registry.flatten(Written(result, places, len(refs), places))[1]
            if any(a.physical is not a for a in plain.jaxpr.out_avals):
                tree = None  # C++ cannot make keys of words in it
            found = self.jaxpr.memo["on refs", self.spec] = plain, consts, tree
        plain, consts, tree = found
        shared = [i for i in written if not leaves[i].owned]
        for i in shared:
            leaves[i].hold(kernel_of(copy_p, {})(leaves[i].value), True)
        fast_tree = None if shared or self.hidden or self.hidden_results else tree
        values = [x.value if type(x) is Ref else x for x in leaves]
        how: Any = {"names": self.argument_names}
        outs, fast = run_program(plain.jaxpr, consts, values, plain.spec, fast_tree, **how)
        n = len(outs) - len(written)
        for i, y in zip(written, outs[n:], strict=True):
            leaves[i].hold(y, True)
        return outs[:n], fast

    def discharged(self) -> tuple[StagedProgram, list]:
        """The program on the arrays that references hold, and those that it closes over."""
        jaxpr, written = discharge_state(self.jaxpr)
        consts = [load_ref(c) if is_ref(c) else c for c in self.consts]
        donated = [i - len(consts) for i in written if i >= len(consts)]
        spec = self.spec._replace(donated=(*self.spec.donated, *donated))
        if spec.out_shardings:
            spec = spec._replace(out_shardings=(*spec.out_shardings, *[None] * len(written)))
        return self._replace(jaxpr=jaxpr, spec=spec), consts

    def result(self, outs: Sequence[Any]) -> Any:
        """Return the pytree of results, given the results of the jaxpr."""
        if self.hidden_results:
            outs = insert_at(outs, self.hidden_results)
        return unflatten(self.out_tree, outs)


def drop_positions(xs: Sequence[Any], positions: dict[int, Any]) -> list:
    """A list without the entries at some positions."""
    return [x for i, x in enumerate(xs) if i not in positions]


def stage_program(
    fun: Callable,
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    donated: tuple[int, ...],
    spec: JitSpec,
    op: str = "jit",
    shardings: Any = None,
) -> StagedProgram:
    """Run a function on tracers. `shardings` are those requested, if any."""
    start = time.perf_counter()
    if shardings is not None:
        avals = shardings.type_arguments(fun, in_tree, avals)
    hidden = {i: zeros(a) for i, a in enumerate(avals) if a.dtype == dtypes.float0}
    flat = FlatFun(fun, in_tree, op, float0=hidden)
    names = lambda: drop_positions(argument_origins(fun, in_tree, op), hidden)
    given = drop_positions(avals, hidden) if hidden else avals
    jaxpr, consts = stage_function(flat, given, spec.name, names)
    # Copy NumPy arrays: they may change later.
    consts = [put(c) if isinstance(c, np.ndarray) else c for c in consts]
    seconds = time.perf_counter() - start
    events.record_work(events.TRACE, seconds, fun_name=spec.name)
    if config.log_compiles:
        types = ", ".join(map(str, avals))
        logger.warning("traced %s for (%s) in %.1f ms", spec.name, types, seconds * 1e3)
    closed = find_staged(close_jaxpr(jaxpr) if consts else jaxpr)
    if donated:
        gone = [i - sum(h < i for h in hidden) for i in donated if i not in hidden]
        spec = spec._replace(donated=tuple(gone))
    kept: Any = getattr(fun, "__dict__", {}).get("__weft_programs__")
    own = type(kept) is Programs and kept.owner is not None and kept.owner() is fun
    program = StagedProgram(
        kept.owner if own else Giving(fun), in_tree, avals, donated, hidden, jaxpr, closed, consts,
        flat.out_tree, flat.hidden, spec, AbstractRef in map(type, closed.in_avals),
    )  # fmt: skip
    if shardings is None:
        return program
    ins, outs = shardings.find_shardings(program)
    spec = spec._replace(
        in_shardings=tuple(drop_positions(ins, hidden)),
        out_shardings=tuple(drop_positions(outs, flat.hidden)),
    )
    return program._replace(spec=spec)
