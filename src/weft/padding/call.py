"""`jit(f, sizes=...)`: stage a function with symbolic sizes, and run it at true sizes.

This module stages functions and plans calls. Running a program with symbolic sizes, and its
derivatives, are in run.py.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, MethodType
from typing import Any, NamedTuple

import numpy as np

from weft.api.arguments import Marked, find_donated, fix_static, unhashable_error
from weft.api.functions import avals_of
from weft.api.jit import JitFunction, name_unhashable
from weft.api.programs import StagedProgram, is_live, stage_program
from weft.api.shape_struct import ShapeDtypeStruct
from weft.api.stages import Lowered, Traced
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.ref import is_ref
from weft.core.source import boundary, trim_traceback
from weft.core.trace import Trace, current
from weft.dtypes import is_extended
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.export.dims import evaluate_size
from weft.export.solving import Step, plan_sizes
from weft.export.specs import SymbolicScope, compare_sizes, symbolic_shape
from weft.numpy import index_plans, promotion, updates
from weft.options import config, named_axes, trace_context
from weft.padding.interpret import pad_jaxpr
from weft.padding.run import PaddedRun, Variable, find_run, jit_padded, padded_call_p
from weft.padding.sizes import FAR
from weft.primitives import families, layout
from weft.pytrees import broadcast_prefix, default_registry, flatten, is_none
from weft.transforms.batch import BatchTrace
from weft.transforms.jvp import JVPTrace
from weft.transforms.linearize import PartialTrace
from weft.util import Logger, copy_names, find_global_name, fun_name
from weft.xla.array import ArrayImpl, KeyArray

logger = Logger("weft.trace")
MIN_BUCKET = 8
MIN_HALVED = 64  # from this bucket on, there is a bucket halfway to the next power of two
# If staging cannot decide a comparison for all sizes, the program holds for sizes from here on.
# Calls with a smaller size run the plain jitted function.
SMALL = MIN_BUCKET
_ARRAY = frozenset((ArrayImpl,))
# Types of arguments whose calls are cached by the types of arguments. A value of another class may
# have a type that its class, shape and dtype do not determine.
_ENGINE: tuple = (None, None)  # in place of a plan: the C++ call path runs these calls
_KINDS = frozenset((ArrayImpl, KeyArray, np.ndarray, float, int, *np.sctypeDict.values()))
_LEAF = flatten(0)[1]
_flatten = default_registry.flatten  # without the errors of `flatten`
MAX_PLANS = 4096  # cached plans of a function, about 2 KB each


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and the code objects nested in it, such as of generators."""
    yield code
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield from codes_in(x)


# Functions that compare sizes only to check them, or to choose between computations that agree if
# the sizes are equal. For example, broadcasting an axis of size 1 to size n is right for n = 1 too.
# A program stays valid if sizes that these functions found different are equal in a call.
_AGREEING = (
    families.broadcast_shapes, layout.BroadcastInDim.abstract_eval, layout.broadcast_in_dim,
    layout.reshape, promotion.choose_array_action, promotion.broadcast_avals,
    updates.broadcast_values, index_plans.make_slices, index_plans.find_limit,
)  # fmt: skip
AGREEING = frozenset(code for f in _AGREEING for code in codes_in(f.__code__))
# Transformations that apply to a program with symbolic sizes, without true sizes.
_TRANSFORMS = (JVPTrace, BatchTrace, PartialTrace)


def hint_branches(fun: Callable, branches: Sequence[str]) -> None:
    """Log that sizes decide which operations a function has."""
    logger.warning(
        "jit: %s asks if %s, so each answer has programs of its own. Hint: jnp.where or lax.cond "
        "in place of a Python if; config.update('hints', False) silences this.",
        *(fun_name(fun), " and ".join(branches)),
    )


def round_up(n: int) -> int:
    """Return the default bucket of a size: the next of 8, 16, 32, 64, 96, 128, 192, 256, ...

    These are powers of two, and from 64 on also 3/2 of them. Up to 1,024 there are twelve, so sizes
    up to 1,000 compile at most twelve programs. Below 64, padding costs little beside the call.
    """
    power = max(MIN_BUCKET, 1 << (n - 1).bit_length())
    lower = power // 4 * 3
    return lower if n <= lower and lower > MIN_HALVED else power


def choose_bucket(buckets: Any, name: str, n: int) -> int:
    """Return the size in memory for a variable of value n, by the option `buckets` of `jit`."""
    if isinstance(buckets, Mapping):
        buckets = buckets.get(name)
    if buckets is None:
        found = round_up(n)
    elif callable(buckets):
        found = buckets(n)
    else:
        found = min([b for b in buckets if b >= n], default=0)
    if type(found) is not int or not n <= found < FAR:
        raise ShapeError(
            f"jit: a bucket must be an int that is at least the size, {name} = {n}; got "
            f"{found or f'buckets of at most {max(buckets)}'}. Hint: buckets=None rounds to "
            "8, 16, 32, 64, 96, 128, 192, and so on."
        )
    return found


class SymbolicProgram(NamedTuple):
    """A function staged with symbolic sizes, and the steps that compute the sizes of a call."""

    staged: StagedProgram
    steps: Sequence[Step]
    smallest: int  # the program is not valid for smaller sizes
    # Pairs of sizes that the function compared and that differ in this program. If they are equal
    # in a call, the function might take another path, so the call needs another program.
    differ: Sequence[tuple[Any, Any]]
    # Answers to comparisons that depend on the sizes. The program is valid for calls with these
    # answers.
    decided: Mapping[tuple, bool]
    branches: Sequence[str]  # those comparisons that are the user's, and their lines

    def holds(self, values: Mapping[str, int]) -> bool:
        """Return True if the program is alive, and its comparisons have these answers in a call."""
        return all(map(is_live, self.staged.consts)) and all(
            compare_sizes(c, values) is answer for c, answer in self.decided.items()
        )


class Plan(NamedTuple):
    """The plan of calls with arguments of the same types: a program, its sizes and its runner."""

    program: StagedProgram
    variables: tuple[Variable, ...]
    run: PaddedRun
    call: Callable[..., list]  # maps argument leaves to result leaves
    result: Callable[[list], Any] | None  # makes the result from its leaves; None for one array


class PaddedFunction:
    """A jitted function with sizes that vary: see `jit`.

    Its derivatives and its `vmap` are padded as well. While another program is staged, and under
    other transformations, it is a plain jitted function, which is compiled for each size.
    """

    def __init__(
        self, plain: JitFunction, sizes: Any, buckets: Any, static: Marked, donate: Marked
    ):
        copy_names(self, plain.fun)  # first: attributes of a function of this class are copied too
        self._plain = plain
        self._sizes = sizes
        self._buckets = buckets
        self._static = static
        self._donate = donate
        self._programs: dict[Any, list[SymbolicProgram]] = {}
        self._plans: dict[Any, Any] = {}
        # The fast path: plans of calls with arrays and numbers, by types and settings. The key has
        # the current trace. Only eager calls are cached, so that calls under other traces miss.
        # While all arguments have been positional leaves, keys have no pytree.
        self._fast: dict[tuple, tuple] = {}
        self._flat = True
        # The C++ call path runs calls with arrays of the sizes of their buckets.
        self._exact = False  # True after the first such call
        weak = weakref.ref(self)  # no cycle; a call holds the function
        miss = lambda *args, **kwargs: weak()._miss(args, kwargs)  # type: ignore[union-attr]
        engine = plain.make_engine(miss, (object(), plain.spec))
        self._forget = engine._clear_cache
        self._engine = name_unhashable(engine, plain) if any(static) else engine

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._fast:
            # Values without a dtype take the slow path. So do pytrees that cannot be flattened: the
            # slow path explains their errors.
            try:
                key, leaves = self._make_key(args, kwargs)
                found = self._fast.get(key)
            except (AttributeError, ValueError, SystemError, TypeError):
                return self._call(args, kwargs)
            if found is not None and found is not _ENGINE:
                call, result = found
                try:
                    outs = call(*leaves)
                    return outs[0] if result is None else result(outs)
                except Exception as error:
                    trim_traceback(error)
                    raise
            # C++ passes copies of NumPy's arrays to `_miss`, whose types are not cached then.
            if found is None and not _ARRAY.issuperset(map(type, leaves)):
                return self._call(args, kwargs)
        if self._exact:
            return self._engine(*args, **kwargs)
        return self._call(args, kwargs)

    def _make_key(self, args: tuple, kwargs: dict) -> tuple[tuple, Any]:
        """Return the key of a call in the fast path, and the leaves of its arguments."""
        leaves: Any = args
        key: tuple = (current.trace, trace_context())
        if kwargs or not self._flat:
            leaves, tree = _flatten((args, kwargs), None)
            key = (*key, tree)
        kinds = [x.aval if type(x) is ArrayImpl else kind_of(x) for x in leaves]
        return (*key, *kinds), leaves

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        given = self._plain, self._sizes, self._buckets, self._static, self._donate
        return find_global_name(self) or (type(self), given)

    @boundary
    def _call(self, args: tuple, kwargs: dict) -> Any:
        return self._miss(args, kwargs)[0]

    def _miss(self, args: tuple, kwargs: dict) -> tuple:
        """Return the result of a call that C++ has no executable for, and how C++ may run it."""
        if config.disable_jit:
            return self._plain.fun(*args, **kwargs), None, False
        return *current.trace.call_jitted(self, args, kwargs), False

    def bind_call(self, args: tuple, kwargs: dict) -> Any:
        """Return the result of a call under a transformation."""
        eager: Trace = current.trace
        while isinstance(eager, _TRANSFORMS):
            eager = eager.parent  # type: ignore[assignment]
        if eager.parent is None and not named_axes.value and config.debug == "off":
            plan, leaves = self.find_plan(args, kwargs)
            if plan is not None and not plan.program.stateful:
                program = plan.program
                given = (*program.consts, *program.select_visible(leaves))
                how = {"variables": plan.variables, "spec": program.spec}
                return program.result(padded_call_p.apply(*given, jaxpr=program.jaxpr, **how))
        return self._plain.bind_call(args, kwargs)

    def run_call(self, args: tuple, kwargs: dict) -> tuple:
        """Return the result of an eager call, and how C++ may run the next one."""
        if config.debug != "off":  # debugging would report NaN in the padding
            return self._plain.run_call(args, kwargs)[0], None
        plan, leaves = self.find_plan(args, kwargs)
        if plan is None:
            return self._plain.run_call(args, kwargs)[0], None
        program = plan.program
        donated = self._find_donated(args, kwargs, program.hidden) if any(self._donate) else ()
        call = functools.partial(run_donating, plan.call, donated) if donated else plan.call
        if program.hidden or program.hidden_results or program.stateful:
            return program.result(call(*program.select_visible(leaves))), None
        fast = None
        if plan.run.is_exact and not donated and _KINDS.issuperset(map(type, leaves)):
            outs, fast = plan.run.run_exact(program.consts, leaves, program.out_tree)
            self._exact = self._exact or fast is not None
        else:
            outs = call(*leaves)
        known = fast is not None and (not self._fast or _ARRAY.issuperset(map(type, leaves)))
        if not (known or any(self._static)):
            entry = _ENGINE if fast is not None else (call, plan.result)
            self._remember(entry, args, kwargs, leaves)
        return program.result(outs), fast

    def _remember(self, entry: tuple, args: tuple, kwargs: dict, leaves: Sequence[Any]) -> None:
        """Cache how calls with arrays and numbers of these types run."""
        if not _KINDS.issuperset(map(type, leaves)):
            return
        if kwargs or not _KINDS.issuperset(map(type, args)):
            self._flat = False
        self._fast[self._make_key(args, kwargs)[0]] = entry

    def padded_jaxpr(self, *args: Any, **kwargs: Any) -> Jaxpr:
        """Return the padded program for arguments of these types.

        The inputs of the program are the true sizes, the values that the function closes over, and
        the flat padded arguments. There is a size for each name, in order of first occurrence. The
        padding of arguments may contain anything. A call pads with zeros, so that the program that
        it runs may fill less.

        Args:
          args: the arguments of the function, arrays.
          kwargs: the keyword arguments of the function.

        Raises:
          ShapeError: a size is too small for a padded program, so that the call is not padded.
        """
        plan, leaves = self.find_plan(args, kwargs, structs=True)
        if plan is None:
            raise ShapeError(
                f"padded_jaxpr: sizes must be at least 1, and those that share programs; got "
                f"{', '.join(str(typeof(x)) for x in leaves)}."
            )
        return pad_jaxpr(plan.program.jaxpr, plan.run.buckets)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the padded program for arguments of these types: see `padded_jaxpr`."""
        jaxpr = self.padded_jaxpr(*args, **kwargs)
        return jit_padded(jaxpr, self._plain.spec).trace(
            *[ShapeDtypeStruct.of(a) for a in jaxpr.in_avals]
        )

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the padded program for arguments of these types to StableHLO."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of the results, computing nothing."""
        return self._plain.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Drop all cached programs of the function."""
        self._programs.clear()
        self._plans.clear()
        self._fast.clear()
        self._exact = False
        self._forget()
        self._plain.clear_cache()

    def __repr__(self) -> str:
        return f"<jit of {fun_name(self._plain.fun)} for sizes {self._sizes!r}>"

    @property
    def plain(self) -> Any:
        """Return the plain jitted function, for calls that are not padded."""
        return self._plain.make_callable()

    # -- plans ---------------------------------------------------------------------------------

    def find_plan(
        self, args: tuple, kwargs: dict, structs: bool = False
    ) -> tuple[Plan | None, list]:
        """Return the plan of a call and its leaves.

        The plan is None if the call runs the plain jitted function. With `structs`, values with a
        shape and a dtype count as arrays.
        """
        static, dynamic, fun, named = (), args, self._plain.fun, kwargs
        if any(self._static):
            static, dynamic, fun, named = fix_static(fun, self._static, args, kwargs)
        leaves, tree = flatten((dynamic, named))
        avals = avals_of("jit", leaves, tree, fun, structs)
        key = tree, tuple(avals), static, trace_context()
        try:
            plan = self._plans.get(key, self)
        except TypeError:
            raise unhashable_error("jit", self._plain.spec.name, static) from None
        if plan is not self and (plan is None or all(map(is_live, plan.program.consts))):
            return plan, leaves
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
            self._fast.clear()
        for x in leaves:
            if is_ref(x):
                raise ShapeError(f"jit: with sizes, arguments must be no references; got {x}.")
        specs = spread_sizes(self._sizes, self._list_names(args), dynamic, named)
        plan = self._make_plan(fun, tree, avals, specs, static)
        self._plans[key] = plan
        return plan, leaves

    def _list_names(self, args: tuple) -> list[str]:
        """Return the names of the parameters that may be positional and are not static."""
        try:
            every = inspect.signature(self._plain.fun).parameters.values()
        except (TypeError, ValueError):  # a function in C
            return []
        names = [p.name for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        static = self._static.positions(len(args))
        return [x for i, x in enumerate(names) if i not in static and x not in self._static.names]

    def _make_plan(
        self, fun: Callable, tree: Any, avals: list, specs: Sequence[Any], static: tuple
    ) -> Plan | None:
        kinds = tuple(
            [
                (
                    a.shape if s is None else read_symbols(s, a, SymbolicScope()),
                    a.dtype,
                    a.weak_type,
                )
                for a, s in zip(avals, specs, strict=True)
            ]
        )
        key = tree, str(kinds), static, trace_context()
        equal: tuple[str, ...] = ()  # constraints: pairs of variables that are equal in this call
        while True:
            programs = self._programs.setdefault((key, equal), [])
            if programs:
                wanted, steps = programs[0].staged.in_avals, programs[0].steps
            else:
                wanted = type_symbols(specs, avals, SymbolicScope(equal))
                steps = plan_sizes("jit", wanted)
            values = solve(wanted, avals, steps, self._sizes)
            symbolic = next((p for p in programs if p.holds(values)), None)
            if symbolic is None:
                if 0 in values.values():
                    return None  # programs are valid for sizes of at least 1
                symbolic = self._stage(fun, tree, avals, specs, equal, values)
                if len(programs) == 1 and symbolic.branches and config.hints:
                    hint_branches(fun, symbolic.branches)
                programs[:] = [
                    *(p for p in programs if all(map(is_live, p.staged.consts))),
                    symbolic,
                ]
            if min(values.values(), default=1) < symbolic.smallest:
                return None
            same = [p for p in symbolic.differ if len({evaluate_size(x, values) for x in p}) == 1]
            if not same:
                break
            if any(str(x) not in values for x in same[0]):
                return None
            equal = (*equal, f"{same[0][0]} == {same[0][1]}")
        variables = tuple(
            [Variable(k, n, choose_bucket(self._buckets, k, n)) for k, n in values.items()]
        )
        program = symbolic.staged
        run = find_run(program.jaxpr, variables, self._plain.spec)
        call = functools.partial(run.call, *program.consts) if program.consts else run.call
        is_leaf = program.out_tree == _LEAF and not program.hidden_results
        result = program.result if program.hidden_results else program.out_tree.unflatten
        return Plan(program, variables, run, call, None if is_leaf else result)

    def _stage(
        self,
        fun: Callable,
        tree: Any,
        avals: list,
        specs: Sequence[Any],
        equal: Sequence[str],
        values: Mapping[str, int],
    ) -> SymbolicProgram:
        """Trace the function with symbolic sizes.

        The program is valid for all sizes if possible, or else for sizes of at least `SMALL`, or
        else for sizes that give the same answers to comparisons as `values`.
        """
        names = [
            step.name for step in plan_sizes("jit", type_symbols(specs, avals, SymbolicScope()))
        ]
        for smallest, deciding in ((1, None), (SMALL, None), (1, values)):
            large = [f"{name} >= {smallest}" for name in names if smallest > 1]
            scope = SymbolicScope([*equal, *large])
            wanted = type_symbols(specs, avals, scope)
            scope.compared, scope.values = [], deciding
            try:
                staged = stage_program(fun, tree, wanted, (), self._plain.spec)
            except InconclusiveDimensionOperation:
                if deciding is not None:
                    raise
                continue
            asked = [(a, b) for a, b, code in scope.compared if code not in AGREEING]
            differ, scope.compared, scope.values = list(dict.fromkeys(asked)), None, None
            steps = plan_sizes("jit", wanted)
            return SymbolicProgram(staged, steps, smallest, differ, scope.decided, scope.branches)
        raise AssertionError

    def _find_donated(self, args: tuple, kwargs: dict, hidden: Any) -> tuple[int, ...]:
        """Return the positions of donated leaves among those that are not hidden."""
        static, dynamic, _, named = fix_static(self._plain.fun, self._static, args, kwargs)
        tree = flatten((dynamic, named))[1]
        donated = find_donated(self._donate, self._static, len(args), tree)
        places = [i for i in range(tree.num_leaves) if i not in hidden]
        return tuple([k for k, i in enumerate(places) if i in donated])


def run_donating(call: Callable, donated: Sequence[int], *leaves: Any) -> list:
    """Return the results of a call, and delete donated arrays."""
    outs = call(*leaves)
    for i in donated:
        if hasattr(leaves[i], "delete"):
            leaves[i].delete()
    return outs


def kind_of(x: Any) -> Any:
    """Return a key for the type of an argument. An AttributeError says that it has no dtype."""
    kind = type(x)
    return kind if kind is float or kind is int else (kind, x.shape, x.dtype)


# --- sizes as users write them ----------------------------------------------------------------


def spread_sizes(sizes: Any, names: Sequence[str], args: tuple, kwargs: dict) -> list:
    """Return the shape text of each leaf of the arguments; None for a leaf of fixed sizes.

    `names` are the parameters. If `sizes` has a shape for each argument, an argument that is passed
    by keyword has the shape of its position.
    """
    by_name = [x for x in names[len(args) :] if x in kwargs]
    every = len(args) + len(by_name)
    if isinstance(sizes, str):
        parts = split_shapes(sizes)
        if len(parts) > 1 or sizes.strip().startswith("("):
            if len(parts) != every:
                raise ShapeError(
                    f"jit: sizes must have a shape for each positional argument; got {sizes!r} for "
                    f"{every} arguments. Hint: '...' is a shape that stays as it is."
                )
            sizes = tuple(parts)
        else:
            sizes = (sizes,) * max(len(args), min(every, 1))
    named: dict[str, Any] = dict.fromkeys(kwargs)
    if by_name and isinstance(sizes, tuple | list) and len(args) < len(sizes) <= every:
        named.update(zip(by_name, sizes[len(args) :]))
        sizes = tuple(sizes[: len(args)])
    spread = functools.partial(
        broadcast_prefix, is_leaf=is_none, op="jit", names=("sizes", "the arguments")
    )
    return [*spread(sizes, args), *spread(named, kwargs)]


def split_shapes(text: str) -> list[str]:
    """Return the shapes in a text such as "(n, d), (n,)", without parentheses.

    A text without parentheses is one shape.
    """
    depth, start, parts = 0, 0, []
    for i, c in enumerate(f"{text},"):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts = [x for x in parts if x]
    if not all(x.startswith("(") and x.endswith(")") for x in parts):
        return [text]  # symbolic_shape will report the error
    return [x[1:-1].strip().rstrip(",") for x in parts]


def read_symbols(text: str, aval: ShapedArray, scope: SymbolicScope) -> tuple:
    """Parse the text of a symbolic shape, for an argument of the type `aval`."""
    try:
        return symbolic_shape(text, scope=scope, like=aval.shape)
    except ValueError as error:
        _, _, got = str(error).partition("; got ")
        raise ShapeError(
            f"jit: sizes must be a shape that fits the argument, {aval}; got {got or repr(text)} "
            "Hint: sizes='n, _' for an argument whose first size varies, and sizes='(n, _), ()' "
            "for two arguments, the second one a number."
        ) from error


def type_symbols(
    specs: Sequence[Any], avals: Sequence[ShapedArray], scope: SymbolicScope
) -> list[ShapedArray]:
    """Return the symbolic types of arguments."""
    found = []
    for text, aval in zip(specs, avals, strict=True):
        shape = aval.shape if text is None else read_symbols(text, aval, scope)
        if shape != aval.shape and is_extended(aval.dtype):
            raise ShapeError(f"jit: random keys must have known sizes; got {text!r} for {aval}.")
        found.append(aval.update(shape=shape) if shape != aval.shape else aval)
    return found


def solve(
    wanted: Sequence[ShapedArray], given: Sequence[ShapedArray], steps: Sequence[Step], sizes: Any
) -> dict[str, int]:
    """Return the value of each variable for arguments of the types `given`.

    `wanted` are the symbolic types, and each step computes one variable.
    """
    values: dict[str, int] = {}
    for step in steps:
        left = given[step.argument].shape[step.axis] - evaluate_size(step.rest, values)
        values[step.name] = left // step.count
    for want, got in zip(wanted, given, strict=True):
        for n, size in zip(want.shape, got.shape, strict=True):
            if evaluate_size(n, values) != size or min(values.values(), default=0) < 0:
                known = ", ".join(f"{k} = {v}" for k, v in values.items())
                raise ShapeError(
                    f"jit: arguments must have sizes that fit {sizes!r}; got "
                    f"{', '.join(map(str, given))}, where {known}, and {n} is not {size}."
                )
    return values
