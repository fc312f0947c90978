"""`jit(f, sizes=...)`: a function that pads its arguments, runs one program, and cuts results.

Arrays are padded and cut in the memory of the host, by NumPy, so that no size is compiled for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.api.arguments import Marked, find_donated, fix_static
from weft.api.functions import avals_of
from weft.api.jit import JitFunction
from weft.api.programs import StagedProgram, stage_program
from weft.api.shape_struct import ShapeDtypeStruct
from weft.api.stages import Lowered, Traced
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr, eval_jaxpr
from weft.core.ref import is_ref
from weft.core.source import boundary
from weft.core.trace import current
from weft.dtypes import is_extended
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.export.dims import Dim, evaluate_size
from weft.export.solving import Step, plan_sizes
from weft.export.specs import SymbolicScope, symbolic_shape
from weft.mesh.client import default_device
from weft.mesh.sharding import sharding_on
from weft.options import config, trace_context
from weft.padding.interpret import pad_jaxpr
from weft.padding.sizes import FAR, Sizes, is_symbolic
from weft.pytrees import broadcast_prefix, flatten, is_none
from weft.util import copy_names, fun_name
from weft.xla.array import ArrayImpl, array_from_host, host_view, put

MIN_BUCKET = 8
# If the program of a function depends on how small a size is, smaller sizes have their own.
SMALL = MIN_BUCKET
_ARRAY = frozenset((ArrayImpl,))
MAX_PLANS = 4096  # kinds of calls that are remembered, about 2 KB each


def round_up(n: int) -> int:
    """Return the default bucket of a size: the next of 8, 12, 16, 24, 32, 48, 64, ..."""
    power = max(MIN_BUCKET, 1 << (n - 1).bit_length())
    lower = power // 4 * 3
    return lower if lower >= max(n, MIN_BUCKET) else power


def choose_bucket(buckets: Any, name: str, n: int) -> int:
    """Return the size in memory for a variable of value n, by what `jit` was passed."""
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
            "8, 12, 16, 24, 32, 48, and so on."
        )
    return found


class SymbolicProgram(NamedTuple):
    """A function staged with symbolic sizes, and how they follow from the sizes of arguments."""

    staged: StagedProgram
    steps: Sequence[Step]
    smallest: int  # sizes below have programs of their own
    # Pairs of sizes that differ in this program, as Python asked. If they are equal in a call, the
    # function may have taken another way.
    differ: Sequence[tuple[Any, Any]]


class Plan(NamedTuple):
    """How a call with arguments of some types runs."""

    program: StagedProgram
    jaxpr: Jaxpr  # the padded program: it takes the sizes, then what the program takes
    run: Any  # that program, jitted
    sizes: tuple[Any, ...]
    pads: Sequence[tuple[int, ...] | None]  # the padded shape of each argument that is padded
    cuts: Sequence[tuple[slice, ...] | None]  # what is a result, of each that is cut
    pads_any: bool
    cuts_any: bool
    buckets: tuple[tuple[str, int], ...]


class PaddedFunction:
    """A jitted function whose sizes vary: see `jit`.

    Under another transformation it is a plain jitted function, which compiles for each size. To
    differentiate or map with sizes that vary, jit outermost: `jit(grad(f), sizes=...)`.
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
        self._programs: dict[Any, SymbolicProgram] = {}
        self._plans: dict[Any, Plan | None] = {}
        self._compiled: dict[Jaxpr, Callable] = {}
        # Plans of calls with positional arrays only, by types and settings: the fast path.
        self._arrays: dict[tuple, Plan] = {}

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if config.disable_jit:
            return self._plain.fun(*args, **kwargs)
        return current.trace.call_jitted(self, args, kwargs)[0]

    def bind_call(self, args: tuple, kwargs: dict) -> Any:
        """The result under a transformation: that of the plain jitted function."""
        return self._plain.bind_call(args, kwargs)

    def run_call(self, args: tuple, kwargs: dict) -> tuple:
        """The result of a call where operations compute, and nothing for C++ to run."""
        if config.debug != "off":  # NaN in the padding is no error
            return self._plain.run_call(args, kwargs)[0], None
        only_arrays = not kwargs and _ARRAY.issuperset(map(type, args))
        if only_arrays:
            plan = self._arrays.get((trace_context(), *[x.aval for x in args]))
            if plan is not None:
                return run_plan(plan, args), None
        plan, leaves = self._find_plan(args, kwargs)
        if plan is None:
            return self._plain.run_call(args, kwargs)[0], None
        found = run_plan(plan, leaves)
        if any(self._donate):
            self._delete_donated(args, kwargs)
        elif only_arrays:
            self._arrays[trace_context(), *[x.aval for x in args]] = plan
        return found, None

    def padded_jaxpr(self, *args: Any, **kwargs: Any) -> Jaxpr:
        """Return the padded program for arguments of these types.

        It takes the true sizes, one for each name in the order in which the names first occur, the
        values that the function closes over, and the padded arguments, flat.

        Args:
          args: the arguments of the function, arrays.
          kwargs: the keyword arguments of the function.

        Raises:
          ShapeError: a size is smaller than those that share programs.
        """
        plan, _ = self._find_plan(args, kwargs)
        if plan is None:
            raise ShapeError(
                f"padded_jaxpr: sizes must be at least 1, and those that share programs; got "
                f"{', '.join(str(a) for a in self._types(args, kwargs))}."
            )
        return plan.jaxpr

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the padded program for arguments of these types: see `padded_jaxpr`."""
        jaxpr = self.padded_jaxpr(*args, **kwargs)
        return self._compile(jaxpr).trace(*[ShapeDtypeStruct.of(a) for a in jaxpr.in_avals])

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the padded program for arguments of these types to StableHLO."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of the results, computing nothing."""
        return self._plain.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forget all programs of the function."""
        self._programs.clear()
        self._plans.clear()
        self._compiled.clear()
        self._arrays.clear()
        self._plain.clear_cache()

    def __repr__(self) -> str:
        return f"<jit of {fun_name(self._plain.fun)} for sizes {self._sizes!r}>"

    # -- plans ---------------------------------------------------------------------------------

    def _types(self, args: tuple, kwargs: dict) -> list[ShapedArray]:
        leaves, tree = flatten((args, kwargs))
        return avals_of("jit", leaves, tree, self._plain.fun)

    def _find_plan(self, args: tuple, kwargs: dict) -> tuple[Plan | None, list]:
        """Return how a call runs, None if as one of the plain function, and its leaves."""
        static, dynamic, fun, named = (), args, self._plain.fun, kwargs
        if any(self._static):
            static, dynamic, fun, named = fix_static(fun, self._static, args, kwargs)
        leaves, tree = flatten((dynamic, named))
        avals = avals_of("jit", leaves, tree, fun)
        key = tree, tuple(avals), static, trace_context()
        if key in self._plans:
            return self._plans[key], leaves
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
            self._arrays.clear()
        for x in leaves:
            if is_ref(x):
                raise ShapeError(f"jit: with sizes, arguments must be no references; got {x}.")
        specs = spread_sizes(self._sizes, dynamic, named)
        plan = self._make_plan(fun, tree, avals, specs, static)
        self._plans[key] = plan
        return plan, leaves

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
        equal: tuple[str, ...] = ()  # pairs of variables that are equal in this call, if it matters
        while True:
            symbolic = self._programs.get((key, equal))
            if symbolic is None:
                wanted = type_symbols(specs, avals, SymbolicScope(equal))
                values = solve(wanted, avals, plan_sizes("jit", wanted), self._sizes)
                if 0 in values.values():
                    return None  # programs hold for sizes of at least 1
                symbolic = self._stage(fun, tree, avals, specs, equal)
                self._programs[key, equal] = symbolic
            wanted = symbolic.staged.in_avals
            values = solve(wanted, avals, symbolic.steps, self._sizes)
            if min(values.values(), default=1) < symbolic.smallest:
                return None
            same = [p for p in symbolic.differ if len({evaluate_size(x, values) for x in p}) == 1]
            if not same:
                break
            if any(str(x) not in values for x in same[0]):
                return None
            equal = (*equal, f"{same[0][0]} == {same[0][1]}")
        buckets = tuple([(k, choose_bucket(self._buckets, k, n)) for k, n in values.items()])
        program, shapes = symbolic.staged, Sizes(dict(buckets), {})
        jaxpr = pad_jaxpr(program.jaxpr, buckets)
        pads = [find_pad(a, b, shapes) for a, b in zip(wanted, avals, strict=True)]
        cuts = [find_cut(a, values, shapes) for a in program.jaxpr.out_avals]
        sizes = tuple([put(np.int32(n)) for n in values.values()])
        some = [any(x is not None for x in xs) for xs in (pads, cuts)]
        return Plan(program, jaxpr, self._compile(jaxpr), sizes, pads, cuts, *some, buckets)

    def _compile(self, jaxpr: Jaxpr) -> Any:
        """Return the jitted function of a padded program; sizes of a bucket share it."""
        found = self._compiled.get(jaxpr)
        if found is None:
            run = functools.partial(eval_jaxpr, jaxpr, ())
            found = self._compiled[jaxpr] = JitFunction(run, self._plain.spec).make_callable()
        return found

    def _stage(
        self, fun: Callable, tree: Any, avals: list, specs: Sequence[Any], equal: Sequence[str]
    ) -> SymbolicProgram:
        """Trace the function with symbols: for all sizes, else for those that are not small."""
        names = [
            step.name for step in plan_sizes("jit", type_symbols(specs, avals, SymbolicScope()))
        ]
        for smallest in (1, SMALL):
            large = [f"{name} >= {smallest}" for name in names if smallest > 1]
            scope = SymbolicScope([*equal, *large])
            wanted = type_symbols(specs, avals, scope)
            scope.compared = []
            try:
                staged = stage_program(fun, tree, wanted, (), self._plain.spec)
            except InconclusiveDimensionOperation:
                if smallest == SMALL:
                    raise
                continue
            differ, scope.compared = list(dict.fromkeys(scope.compared)), None
            return SymbolicProgram(staged, plan_sizes("jit", wanted), smallest, differ)
        raise AssertionError

    def _delete_donated(self, args: tuple, kwargs: dict) -> None:
        static, dynamic, _, named = fix_static(self._plain.fun, self._static, args, kwargs)
        leaves, tree = flatten((dynamic, named))
        for i in find_donated(self._donate, self._static, len(args), tree):
            if hasattr(leaves[i], "delete"):
                leaves[i].delete()


# --- sizes as users write them ----------------------------------------------------------------


def spread_sizes(sizes: Any, args: tuple, kwargs: dict) -> list:
    """Return the text of the shape of each leaf of the arguments, None if its sizes are fixed."""
    if isinstance(sizes, str):
        parts = split_shapes(sizes)
        if len(parts) > 1 or sizes.strip().startswith("("):
            if len(parts) != len(args):
                raise ShapeError(
                    f"jit: sizes must have a shape for each positional argument; got {sizes!r} for "
                    f"{len(args)} arguments. Hint: '...' is a shape that stays as it is."
                )
            sizes = tuple(parts)
        else:
            sizes = (sizes,) * len(args)
    specs = broadcast_prefix(
        sizes, args, is_leaf=is_none, op="jit", names=("sizes", "the arguments")
    )
    return [*specs, *[None] * len(flatten(kwargs)[0])]


def split_shapes(text: str) -> list[str]:
    """Return the shapes in a text such as "(n, d), (n,)": the texts in brackets, or all of it."""
    depth, start, parts = 0, 0, []
    for i, c in enumerate(f"{text},"):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts = [x for x in parts if x]
    if not all(x.startswith("(") and x.endswith(")") for x in parts):
        return [text]  # symbolic_shape says what is wrong
    return [x[1:-1].strip().rstrip(",") for x in parts]


def read_symbols(text: str, aval: ShapedArray, scope: SymbolicScope) -> tuple:
    """Return the symbolic shape that a text stands for, for an argument of a type."""
    try:
        return symbolic_shape(text, scope=scope, like=aval.shape)
    except ValueError as error:
        _, _, got = str(error).partition("; got ")
        raise ShapeError(
            f"jit: sizes must be a shape that fits the argument, {aval}; got {got or repr(text)} "
            "Hint: sizes='n, _' for an argument whose first size varies."
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
    """Return the value of each variable, for arguments of the types `given`."""
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


# --- padding and cutting ----------------------------------------------------------------------


def find_pad(wanted: ShapedArray, given: ShapedArray, sizes: Sizes) -> tuple[int, ...] | None:
    """Return the padded shape of an argument, None if it is passed as it is."""
    shape = sizes.pad_type(wanted).shape
    return None if shape == given.shape else shape


def find_cut(
    aval: ShapedArray, values: Mapping[str, int], sizes: Sizes
) -> tuple[slice, ...] | None:
    """Return the part of a padded result that is the result, None if it is all of it."""
    if not is_symbolic(aval):
        return None
    shape = tuple(
        [max(0, evaluate_size(n, values)) if isinstance(n, Dim) else n for n in aval.shape]
    )
    if is_extended(aval.dtype):
        raise ShapeError(f"jit: random keys among results must have known sizes; got {aval}.")
    return None if shape == sizes.pad_type(aval).shape else tuple(map(slice, shape))


def run_plan(plan: Plan, leaves: Sequence[Any]) -> Any:
    """Return the result of a call: pad the arguments, run the program, cut the results."""
    program = plan.program
    if plan.pads_any:
        leaves = [pad_array(x, n) for x, n in zip(leaves, plan.pads, strict=True)]
    if program.hidden:
        leaves = program.select_visible(list(leaves))
    outs = plan.run(*plan.sizes, *program.consts, *leaves)
    if plan.cuts_any:
        outs = [cut_array(y, part) for y, part in zip(outs, plan.cuts, strict=True)]
    return program.result(outs)


def pad_array(x: Any, shape: tuple[int, ...] | None) -> Any:
    """Return an array with zeros up to a shape."""
    if shape is None:
        return x
    held = type(x) is ArrayImpl
    if held and x._sharding.num_devices > 1:
        raise ShapeError(
            f"jit: an array whose sizes vary must be on one device; got {x.aval} on "
            f"{x._sharding.num_devices}. Hint: jit without sizes, or weft.device_put(x, device)."
        )
    found = np.zeros(shape, x.dtype)
    found[tuple(map(slice, x.shape))] = host_view(x) if held else x
    return take_over(found, x if held else None)


def cut_array(y: Any, part: tuple[slice, ...] | None) -> Any:
    """Return a part of an array."""
    if part is None:
        return y
    return take_over(np.ascontiguousarray(host_view(y)[part]), y)


def take_over(host: np.ndarray, like: Any) -> Any:
    """Return new memory of the host as an array, where `like` is."""
    if like is None:
        return put(host)
    if like._committed or like._sharding != sharding_on(default_device()):
        return put(host, like._sharding, like._committed)
    return array_from_host(host, False)
