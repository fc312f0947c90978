"""Every primitive against oracles that are not its rules: the rows are in cases_*.py.

Values: NumPy. jvp and second derivatives: central differences in float64. Transpose: inner
products, <ct, J t> = <J' ct, t>. Batching: loop and stack. Staged: eager.

A row's values at all dtypes and shapes are one compiled program, and so are all its choices of
mapped operands: compiling is what the suite spends its time on. `pytest --all` runs them one by
one, and every shape at every dtype.
"""

from __future__ import annotations

import collections
import functools
import importlib
import itertools
import pkgutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from tests.conftest import ALL
from tests.core.evaluation import evaluate
from tests.primitives.cases import CHECKS, SHAPE, SHORT, Case, all_cases, random_array, widened
from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Operand, describe_elements
from weft.core.primitive import Axis, Linear, Primitive, Zero
from weft.core.stage import stage
from weft.options import config
from weft.primitives.elementwise import Elementwise
from weft.primitives.layout import convert_element_type_p, instantiate
from weft.transforms.batch import batch_to_front
from weft.transforms.jvp import jvp
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward
from weft.tree_util import tree_flatten, tree_unflatten

CASES = all_cases()
FIRST = {c.prim.name: c for c in reversed(CASES)}  # row of each primitive
EPS = 1e-6  # of central differences in float64
NOISE = 1e-9  # what rounding makes of them where values are about 1


def rows(*checks: str, inexact: bool = False, only: Callable = lambda case: True) -> Any:
    """The rows that one of the checks applies to: where it differentiates or maps, every third one.

    Of each primitive, beginning with its first; test_rules.py has the texts of all, and `--all`
    runs all.
    """
    assert set(checks) <= set(CHECKS)
    found = [
        c
        for c in CASES
        if set(checks) - set(c.skip.split()) and (derivative_dtypes(c) or not inexact) and only(c)
    ]
    if (inexact or "batch" in checks) and not ALL:
        counts = collections.defaultdict(itertools.count)
        found = [c for c in found if next(counts[c.prim.name]) % 3 == 0]
    return pytest.mark.parametrize("case", found, ids=lambda c: c.id)


def derivative_dtypes(case: Case) -> list[Any]:
    """The double-precision dtypes that the row's derivatives are tested at."""
    names = case.dtypes.split()
    found = [np.float64] if {"f32", "f64"} & set(names) else []
    return found + ([np.complex128] if {"c64", "c128"} & set(names) else [])


def as_one_program(case: Case, fun: Callable, alone: bool = False) -> Callable:
    """Compile `fun` as one program, except where `alone`, or for rows that cannot be staged.

    Arguments and results are nested lists of arrays, and of Zero, which programs do not pass.
    """
    if ALL or alone or "jit" in case.skip.split():
        return fun
    result: list = []  # its structure, known when `fun` is traced

    def program(arrays: list, structure: tuple) -> list:
        outs, result[:] = without_zeros(fun(*with_zeros(arrays, structure)))
        return outs

    compiled = weft.jit(program, static_argnums=1)
    return lambda *args: with_zeros(compiled(*without_zeros(args)), result)


def without_zeros(values: Any) -> tuple[list, tuple]:
    """The arrays in nested lists, and what `with_zeros` makes the lists of."""
    leaves, tree = tree_flatten(values)
    zeros = tuple(x if isinstance(x, Zero) else None for x in leaves)
    return [x for x in leaves if not isinstance(x, Zero)], (tree, zeros)


def with_zeros(arrays: list, structure: Sequence) -> Any:
    tree, zeros = structure
    each = iter(arrays)
    return tree_unflatten(tree, [next(each) if zero is None else zero for zero in zeros])


def unit(dtype: Any) -> float:
    """One unit in the last place of 1, in a dtype; 0 for those that are exact."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iub":
        return 0.0
    return float(ml_dtypes.finfo(dtype).eps)


def assert_close(got: Any, want: Any, tol: float, where: str = "", floor: float = 0.0) -> None:
    """Equal to `tol`, relative to each value and to the largest, or to `floor`.

    NaN and inf are in the same places.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{where}: shape {got.shape}, expected {want.shape}"
    if got.dtype.kind in "iub" and want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, err_msg=where)
        return
    wide = np.complex128 if "c" in got.dtype.kind + want.dtype.kind else np.float64
    finite = want[np.isfinite(want)] if want.dtype.kind in "fc" else want
    scale = float(np.abs(finite).max()) if finite.size else 0.0
    np.testing.assert_allclose(
        got.astype(wide), want.astype(wide), rtol=tol, atol=tol * scale + floor, err_msg=where
    )


def tangents_for(case: Case, xs: Any) -> list:
    """Random tangents; Zero where there can be none."""
    rng = case.rng("tangents")
    return [
        random_array(rng, x.shape, x.dtype, -1, 1) if m else Zero(typeof(x).to_tangent())
        for x, m in zip(xs, case.moved(xs), strict=True)
    ]


def moved_by(xs: Any, ts: Any, eps: float) -> list:
    """The point a little further along the tangents."""
    return [
        x if isinstance(t, Zero) else (x + eps * t).astype(x.dtype)
        for x, t in zip(xs, ts, strict=True)
    ]


def central_difference(fun: Any, xs: Any, ts: Any) -> list:
    """(f(x + eps t) - f(x - eps t)) / 2 eps, for each inexact result; None for others."""
    after, before = fun(*moved_by(xs, ts, EPS)), fun(*moved_by(xs, ts, -EPS))
    return [
        [
            (np.asarray(a) - np.asarray(b)) / (2 * EPS) if dtypes.is_inexact(a.dtype) else None
            for a, b in zip(*pair, strict=True)
        ]
        for pair in zip(after, before, strict=True)
    ]


def inner(xs: Any, ys: Any) -> tuple[float, float]:
    """The pairing of cotangents and tangents, and the size of its terms.

    It has no conjugate, and its real part is what counts.
    """
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if not isinstance(x, Zero | None)]
    pairs = [(x, y) for x, y in pairs if not isinstance(y, Zero | None)]
    terms = [np.real(np.asarray(x) * np.asarray(y)).ravel() for x, y in pairs]
    return float(sum(map(np.sum, terms))), float(sum(np.abs(t).sum() for t in terms))


# Primitives without a row, by the file of their class or by their name, and why.
HOLD_PROGRAMS = "of the programs they hold: tests/control, tests/transforms/test_compose.py"
DEVICES = "what they do shows over several devices: tests/parallel/on8"
NO_ROW = {
    "control.*": HOLD_PROGRAMS,
    "parallel.*": DEVICES,
    "export.*": "on programs of sizes that are not known: tests/export",
    "extend.core.primitives": HOLD_PROGRAMS,
    "experimental.sparse.*": "on the parts of sparse arrays: tests/experimental/sparse",
    "primitives.random": "numbers that NumPy cannot foretell: tests/random",
    "primitives.effects": "call the host: tests/primitives/test_effects.py",
    "primitives.refs": "on references, which are no arrays: tests/numpy/test_refs.py",
    "cpu.*": "ways to compute what other rows ask for: tests/cpu",
    "passes.physical": "on the words of keys only: tests/passes/test_physical.py",
    "nn.attention_parts": "a softmax over keys: tests/cpu/test_attention.py",
    "numpy.ranks": "elements in order: tests/numpy/test_statistics.py",
    "image": "an image at another size: tests/test_image.py",
    "Member of scipy/special": "tests/scipy/test_special.py, against SciPy and mpmath",
    "all_gather_invariant pvary psum_invariant reshard": DEVICES,
    "all_gather_reduced preduced reduced_vary_cast_p unreduced_psum": DEVICES,
    "unreduced_reduce_scatter vary_unreduced_cast_p": DEVICES,
    "check": "raises, and has no result: tests/primitives/test_checks.py",
    "constant": "has no operand; small arrays that programs close over: tests/api/test_jit.py",
    "layout_constraint xla_metadata_value": "tests/experimental/test_annotations.py",
    "custom_partitioning": DEVICES,
    "call closed_call padded_call": HOLD_PROGRAMS,
    "create_token after_all": "tokens have no values: tests/primitives/test_tokens.py",
    "dce_sink": "has no result: tests/primitives/test_sink.py",
    "ffi_call": "calls code of its user: tests/test_ffi.py",
    "random_wrap random_unwrap": "to and from keys: tests/random/test_keys.py",
    "select_and_scatter": "takes two functions: tests/primitives/test_window.py",
    "stop_gradient": "its derivative is not the limit of differences",
}


def all_primitives() -> dict[str, Any]:
    """Every primitive that a module of the package defines, by name."""
    for module in pkgutil.walk_packages(weft.__path__, "weft."):
        if "__main__" not in module.name and "compat" not in module.name:
            importlib.import_module(module.name)
    modules = [m for name, m in sys.modules.items() if name.startswith("weft.")]
    values = [x for m in modules for x in vars(m).values()]
    return {x.name: x for x in values if isinstance(x, Primitive)}


def reason_for_no_row(prim: Primitive, special: set[str]) -> str | None:
    file = type(prim).__module__.removeprefix("weft.")
    for key, reason in NO_ROW.items():
        if prim.name in key.split() or file == key or file.startswith(key.replace("*", "")):
            return reason
    return NO_ROW["Member of scipy/special"] if prim.name in special else None


def test_every_primitive_has_a_row_or_a_reason():
    covered = {c.prim.name for c in CASES}
    primitives = all_primitives()
    special = {
        x.name
        for name, m in sys.modules.items()
        if name.startswith("weft.scipy.special")
        for x in vars(m).values()
        if isinstance(x, Primitive)
    }
    missing = [
        n for n, p in primitives.items() if n not in covered and not reason_for_no_row(p, special)
    ]
    assert not missing, f"no row in cases_*.py: {', '.join(sorted(missing))}"


@rows("value")
def test_value(case):
    """Every dtype at the row's shapes and every other shape at the first dtype.

    The first row of each primitive runs by itself too, and with --all the others as well.
    """
    names = case.dtypes.split()
    points = [
        (np.dtype(SHORT[name]), name, shapes)
        for name in names
        for shapes in (None, *case.also)
        if ALL or name == names[0] or shapes is None
    ]
    for wide in (False, True):
        some = [(d, s) for d, n, s in points if wide == (d.itemsize >= 8 and n != "c64")]
        with config.scope(enable_x64=wide):
            every = [case.arrays(*point) for point in some]
            found = as_one_program(case, lambda every: [case.apply(*xs) for xs in every])(every)
            for (dtype, _), xs, outs in zip(some, every, found, strict=True):
                check_value(case, dtype, xs, outs)
            if some[:1] == [(points[0][0], None)] and (ALL or case is FIRST[case.prim.name]):
                outs = case.apply(*every[0])
                check_value(case, some[0][0], every[0], outs)
                assert list(map(typeof, outs)) == list(map(typeof, found[0]))


def check_value(case: Case, dtype: np.dtype, xs: list, outs: list) -> None:
    where = f"{case.id} at {[str(typeof(x)) for x in xs]}"
    wants = case.expected(*xs)
    assert len(outs) == len(wants), where
    jaxpr, _ = stage(case.apply, [typeof(x) for x in xs])
    assert [a.strong() for a in jaxpr.out_avals] == [typeof(y).strong() for y in outs], where
    for y, want in zip(outs, wants, strict=True):
        assert y.shape == want.shape, f"{where}: {y.shape}, expected {want.shape}"
        assert y.dtype == expected_dtype(case, dtype, want), where
        want = want if want.dtype.kind in "iub" else rounded(want, y.dtype)
        assert_close(y, want, case.tol * unit(y.dtype), where)
    if case.prim.element is not None and len(jaxpr.eqns) == 1:
        (eqn,) = jaxpr.eqns
        if eqn.primitive is case.prim and list(eqn.invars) == list(jaxpr.invars):
            check_elements(case, eqn.params, xs, outs, where)


# Primitives without an `element` rule, by the file of their class or by their name, and why.
NO_ELEMENT = {
    "control. parallel. export. extend. api. experimental. nn. padding.": (
        "hold programs, or are a user's"
    ),
    "primitives.collective primitives.reshard primitives.refs": "read other devices, or references",
    "psum_invariant preduced unreduced_psum vary_unreduced_cast_p reduced_vary_cast_p": "devices",
    "cpu.": "written by passes for a platform, and hold programs or call kernels",
    "primitives.random": "numbers that nothing foretells",
    "primitives.sort argmax argmin select_ranks": "depend on the order of elements",
    "find_members": "compares each element with all members",
    "resize_axis": "sums with weights that its parameters describe",
    "select_and_gather_add": "depends on the order of elements",
    "primitives.fft primitives.eigen primitives.factorizations primitives.small": "of whole arrays",
    "cholesky cholesky_update triangular_solve tridiagonal_solve": "of whole arrays",
    "primitives.sparse scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max": (
        "operands say which elements of the result they go to"
    ),
    "select_and_scatter_add": "operands say which elements of the result they go to",
    "reduce reduce_window select_and_scatter": "hold programs",
    "bitcast_convert_type": "elements are parts of others where widths differ",
    "random_wrap random_unwrap combine_words": "the words of keys are no operands of theirs",
    "create_token after_all dce_sink check": "have no values",
    "primitives.effects": "call the host",
    "constant": "its elements are in a parameter",
}


def test_every_primitive_has_an_element_rule_or_a_reason():
    listed = [k for keys in NO_ELEMENT for k in keys.split()]
    wrong = []
    for prim in all_primitives().values():
        home = type(prim).__module__.removeprefix("weft.")
        excused = any(home.startswith(k) if "." in k else prim.name == k for k in listed)
        if excused == (prim.element is not None) and prim.name not in ALSO_HAVE_ELEMENTS:
            wrong.append(prim.name)
    assert not wrong, f"an `element` rule or a reason, and not both: {', '.join(sorted(wrong))}"


# Members of families with the rule, in files whose primitives have none.
ALSO_HAVE_ELEMENTS = "name dim_as_value written todense random_clone erf_inv log1p tan".split()  # noqa: SIM905


def check_elements(case: Case, params: dict, xs: list, outs: list, where: str) -> None:
    """The `element` rule, computed in plain Python, at some elements of each result."""
    avals, arrays = [typeof(x) for x in xs], [widened(np.asarray(x)) for x in xs]
    rules = describe_elements(case.prim, avals, params)
    operands = [Operand(k, a) for k, a in enumerate(avals)]
    for k, (y, (places, expression)) in enumerate(zip(map(np.asarray, outs), rules, strict=True)):
        every = [*np.ndindex(y.shape)]
        if len(every) > 8:
            rows = case.rng("elements").choice(len(every), 6, replace=False)
            every = [every[i] for i in (0, *rows, -1)]
        apply = lambda prim, params, args: apply_reference(case, prim, params, args)
        with np.errstate(all="ignore"):
            found = [
                evaluate(expression, arrays, apply, dict(zip(places, at, strict=True)))
                for at in every
            ]
            for at, value in zip(every[-1:], found[-1:], strict=True):  # at numbers, not at places
                rule = case.prim.element(at, *operands, **params)[k]
                np.testing.assert_array_equal(evaluate(rule, arrays, apply), value, where)
            want = np.asarray(found).astype(y.dtype) if not found else np.asarray(found)
            want = want if want.dtype.kind in "iub" else rounded(want, y.dtype)
            got, tol = np.array([y[at] for at in every], y.dtype), case.tol * unit(y.dtype)
            largest = np.abs(y[np.isfinite(y)], dtype=None).max(initial=0) if tol and y.size else 0
            assert_close(got, want, tol, f"{where}: element of {expression}", tol * float(largest))


@functools.cache
def references() -> dict:
    """Return NumPy's functions for primitives of scalars, by the primitive and its parameters."""
    return {
        (c.prim, *sorted(c.params.items(), key=str)): c.reference for c in CASES if c.fun is None
    }


def apply_reference(case: Case, prim: Any, params: Any, args: Any) -> Any:
    """A primitive applied to numbers, by the reference of a row."""
    args = [np.asarray(x) for x in args]
    if prim is convert_element_type_p and prim is not case.prim:
        dtype = params["new_dtype"]
        return widened(args[0].astype(dtype) if dtype.kind in "iub" else args[0])[()]
    own = prim is case.prim
    fun = case.reference if own else references()[prim, *sorted(params.items(), key=str)]
    return np.asarray(fun(*map(widened, args)))[()]


def rounded(want: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the expected result, with overflow to inf where the dtype overflows."""
    with np.errstate(all="ignore"):
        big = want.astype(dtype).astype(want.dtype)
    return np.where(np.isfinite(big), want, big)


def expected_dtype(case: Case, dtype: np.dtype, want: np.ndarray) -> np.dtype:
    if case.out_dtype is not None:
        return np.dtype(case.out_dtype)
    if want.dtype.kind in "iub" or not dtypes.is_inexact(dtype):
        return dtypes.canonicalize(want.dtype)
    real = dtypes.real_dtype(dtype)
    return dtypes.complex_dtype(real) if want.dtype.kind == "c" else real


EACH_WEAK = ("sort", "optimization_barrier")  # results have the types of their operands


@rows("weak")
def test_weak_type(case):
    xs = [typeof(x) for x in case.arrays(SHORT[case.dtypes.split()[0]])]
    if any(a.dtype is not None for a in case.operands()):
        pytest.skip("an operand's dtype is fixed")
    weak = [ShapedArray(a.shape, a.dtype, True) for a in xs]
    jaxpr, _ = stage(case.apply, weak)
    if case.weak is not None:
        assert [a.weak_type for a in jaxpr.out_avals] == [case.weak] * len(jaxpr.out_avals)
    for i, x in enumerate(xs if len(xs) > 1 and case.prim.name not in EACH_WEAK else ()):
        jaxpr, _ = stage(case.apply, [*weak[:i], x, *weak[i + 1 :]])
        assert not any(a.weak_type for a in jaxpr.out_avals), f"operand {i} is not weak"
    jaxpr, _ = stage(case.apply, xs)
    assert not any(a.weak_type for a in jaxpr.out_avals)


@rows("jvp", "transpose", "second", inexact=True)
def test_derivatives(case):
    """Test jvp against differences, and transpose against jvp, along each tangent.

    The jvp of the gradient of <ct, f>, too, is tested against differences of that gradient. The
    derivatives are one program, and the differences another one, except for elementwise operations,
    whose derivatives are operations that other rows compile too.
    """
    for dtype in derivative_dtypes(case):
        with config.scope(enable_x64=True):
            checks = set(CHECKS) - set(case.skip.split())
            if dtype != derivative_dtypes(case)[0]:
                checks.discard("second")
            check_derivatives(case, case.arrays(dtype), checks)


def check_derivatives(case: Case, xs: list, checks: set[str]) -> None:
    ts, *single = directions = one_by_one(tangents_for(case, xs), xs)
    moved = case.moved(xs)

    def gradient(*xs: Any) -> list:
        rng = case.rng("cotangents")
        outs, jaxpr, residuals, out_moved = linearize(case.apply, xs, moved)
        cts = [random_array(rng, y.shape, y.dtype, -1, 1) for y in outs]
        given = [c for c, m in zip(cts, out_moved, strict=True) if m]
        grads = backward(jaxpr, residuals, [Linear(v.aval) for v in jaxpr.invars], given)
        return [instantiate(g) for g in grads]

    def derivatives(xs: list, directions: list) -> tuple:
        pushed = [jvp(case.apply, xs, ts) for ts in directions if "jvp" in checks]
        paired = [both_ways(case, xs, ts) for ts in directions if "transpose" in checks]
        twice = jvp(gradient, xs, directions[0])[1] if "second" in checks else []
        return pushed, paired, [instantiate(t) for t in twice]

    def differentiated(*xs: Any) -> tuple:
        return case.apply(*xs), gradient(*xs) if "second" in checks else []

    alone = all(a.shape == SHAPE for a in case.operands())
    pushed, paired, second = as_one_program(case, derivatives, alone)(xs, directions)
    at = as_one_program(case, differentiated, alone)
    moving = [ts] * bool({"jvp", "second"} & checks) + single * ("jvp" in checks)
    wants = [central_difference(at, xs, ts) for ts in moving]
    for k, (outs, dots) in enumerate(pushed):
        check_dots(case, outs, dots, wants[k][0])
        for y, want in zip(outs, at(*xs)[0] if k == 0 else outs, strict=True):
            assert_close(y, want, 1e-12, "the primal result")
    for cts, dots, grads, given in paired:
        (forward, size), (back, _) = inner(cts, dots), inner(grads, given)
        where = f"{case.id}: <ct, Jt> {forward}, <J'ct, t> {back}"
        assert abs(forward - back) <= 1e-12 * size, where
    for dot, want in zip(second, wants[0][1] if second else [], strict=True):
        where = f"{case.id}: second order"
        assert_close(dot, want, 10 * case.grad_tol, where, NOISE)


def one_by_one(ts: list, xs: list) -> list[list]:
    """The tangents together, and where several operands move, each while the others stand still."""
    single = [
        [t if i == k else Zero(typeof(x)) for i, x in enumerate(xs)]
        for k, t in enumerate(ts)
        if len(ts) > 1 and not isinstance(t, Zero)
    ]
    return [ts, *single]


def check_dots(case: Case, outs: list, dots: list, wants: list) -> None:
    for y, dot, want in zip(outs, dots, wants, strict=True):
        tangent = typeof(y).to_tangent()
        if want is None:
            assert isinstance(dot, Zero), "a tangent of a result that has none"
            continue
        assert (dot.aval if isinstance(dot, Zero) else typeof(dot)).strong() == tangent.strong()
        assert_close(instantiate(dot), want, case.grad_tol, f"{case.id}: jvp", NOISE)


def both_ways(case: Case, xs: list, ts: list) -> tuple:
    """Random cotangents ct and J t, which are like the results; J'ct and t, like the operands."""
    rng = case.rng("cotangents")
    moved = [not isinstance(t, Zero) for t in ts]
    outs, jaxpr, residuals, out_moved = linearize(case.apply, xs, moved)
    given = [t for t, m in zip(ts, moved, strict=True) if m]
    ys = [y for y, m in zip(outs, out_moved, strict=True) if m]
    cts = [random_array(rng, y.shape, y.dtype, -1, 1) for y in ys]
    dots = weft_eval(jaxpr, residuals, given)
    grads = backward(jaxpr, residuals, [Linear(v.aval) for v in jaxpr.invars], cts)
    for v, g in zip(jaxpr.invars, grads, strict=True):
        aval = g.aval if isinstance(g, Zero) else typeof(g)
        assert aval.strong() == v.aval.strong(), f"{case.id}: cotangent {aval} of {v.aval}"
    return cts, dots, grads, given


def weft_eval(jaxpr: Any, residuals: list, args: list) -> list:
    from_consts = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    return from_consts(*residuals, *args)


def is_mapped_as_others(case: Case) -> bool:
    """Return True if a family's rule maps the row: a few rows are enough to test it.

    test_rules.py compares what the rule writes for each row.
    """
    enough = "neg integer_pow-3 add atan2 mul-scalar sub-scalar clamp-scalars"
    return type(case.prim).batch is Elementwise.batch and case.id not in enough.split()


@rows("batch", only=lambda case: ALL or not is_mapped_as_others(case))
def test_batch(case):
    """For all mapped operands and axes, the result equals a loop's.

    An axis of size 0 works too, and has the right types.
    """
    dtype = SHORT[case.dtypes.split()[0]]
    size = 4
    with config.scope(enable_x64=np.dtype(dtype).itemsize == 8 and np.dtype(dtype).kind != "c"):
        rng = case.rng()
        operands = case.operands()
        stacks = [[a.array(rng, dtype) for _ in range(size)] for a in operands]
        shared = [s[0] for s in stacks]
        choices = batch_dims(operands)
        arguments = [
            [shared[i] if d is None else np.stack(stacks[i], d) for i, d in enumerate(dims)]
            for dims in choices
        ]
        sizes = [size] * len(choices)
        if operands:
            arguments.append([np.zeros((0, *x.shape), x.dtype) for x in shared])
            choices.append((0,) * len(operands))
            sizes.append(0)

        def batched(arguments: list) -> list:
            each = zip(arguments, choices, sizes, strict=True)
            return [batch_to_front(case.apply, xs, dims, Axis(n)) for xs, dims, n in each]

        found = as_one_program(case, batched)(arguments)
        for outs, dims, n in zip(found, choices, sizes, strict=True):
            each = [
                case.apply(*[shared[i] if d is None else stacks[i][k] for i, d in enumerate(dims)])
                for k in range(max(n, 1))
            ]
            for j, y in enumerate(outs):
                want = np.stack([np.asarray(outs[j]) for outs in each])[:n]
                assert y.dtype == want.dtype
                tol = case.tol * unit(want.dtype)
                assert_close(y, want, tol, f"{case.id}: batch {dims} of {n}, result {j}")


def batch_dims(operands: list, every: bool = ALL) -> list[tuple]:
    """Return mapped axes of each operand; some of many choices that cover all single choices.

    They cover each axis of each operand, and each set of mapped operands.
    """
    axes = [(None, *range(len(a.shape) + 1)) for a in operands]
    left = [d for d in itertools.product(*axes) if any(x is not None for x in d)]
    if every or len(left) <= 4:
        return left

    def has(dims: tuple) -> set:
        return {*enumerate(dims), frozenset(i for i, d in enumerate(dims) if d is not None)}

    seen: set = set()
    chosen = []
    while more := max(left, key=lambda dims: len(has(dims) - seen), default=None):
        if has(more) <= seen:
            break
        left.remove(more)
        chosen.append(more)
        seen |= has(more)
    return chosen


@rows("jit", only=lambda case: ALL or "value" in case.skip.split())  # test_value jits the others
def test_jit_is_eager(case):
    dtype = SHORT[case.dtypes.split()[0]]
    xs = case.arrays(dtype)
    staged = weft.jit(lambda *args: case.apply(*args))(*xs)
    for y, want in zip(staged, case.apply(*xs), strict=True):
        assert typeof(y) == typeof(want)
        assert_close(y, np.asarray(want), case.tol * unit(want.dtype), f"{case.id}: jit")
