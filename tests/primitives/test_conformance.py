"""Every primitive against oracles that are not its rules: the rows are in cases_*.py.

Values: NumPy. jvp and second derivatives: central differences in float64. Transpose: inner
products, <ct, J t> = <J' ct, t>. Batching: loop and stack. Staged: eager.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from tests.primitives.cases import CHECKS, SHORT, Case, all_cases, random_array
from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Linear, Zero
from weft.core.stage import stage
from weft.options import config
from weft.primitives.layout import instantiate
from weft.transforms.batch import Axis, batch_to_front
from weft.transforms.jvp import jvp
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward

CASES = all_cases()
EPS = 1e-6  # of central differences in float64
NOISE = 1e-9  # what rounding makes of them where values are about 1


def rows(check: str, inexact: bool = False) -> Any:
    """The rows that a check applies to."""
    assert check in CHECKS
    return pytest.mark.parametrize(
        "case",
        [
            c
            for c in CASES
            if check not in c.skip.split() and not (inexact and not derivative_dtypes(c))
        ],
        ids=lambda c: c.id,
    )


def derivative_dtypes(case: Case) -> list[Any]:
    """The double-precision dtypes that the row's derivatives are tested at."""
    names = case.dtypes.split()
    found = [np.float64] if {"f32", "f64"} & set(names) else []
    return found + ([np.complex128] if {"c64", "c128"} & set(names) else [])


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
        (np.asarray(a) - np.asarray(b)) / (2 * EPS) if dtypes.is_inexact(a.dtype) else None
        for a, b in zip(after, before, strict=True)
    ]


def inner(xs: Any, ys: Any) -> tuple[float, float]:
    """The pairing of cotangents and tangents, and the size of its terms.

    It has no conjugate, and its real part is what counts.
    """
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if not isinstance(x, Zero | None)]
    pairs = [(x, y) for x, y in pairs if not isinstance(y, Zero | None)]
    terms = [np.real(np.asarray(x) * np.asarray(y)).ravel() for x, y in pairs]
    return float(sum(map(np.sum, terms))), float(sum(np.abs(t).sum() for t in terms))


@rows("value")
def test_value(case):
    for name in case.dtypes.split():
        dtype = np.dtype(SHORT[name])
        with config.scope(enable_x64=dtype.itemsize >= 8 and name != "c64"):
            for shapes in (None, *case.also):
                check_value(case, dtype, shapes)


def check_value(case: Case, dtype: np.dtype, shapes: Any) -> None:
    xs = case.arrays(dtype, shapes)
    where = f"{case.id} at {[str(typeof(x)) for x in xs]}"
    outs = case.apply(*xs)
    wants = case.expected(*xs)
    assert len(outs) == len(wants), where
    jaxpr, _ = stage(case.apply, [typeof(x) for x in xs])
    assert [a.strong() for a in jaxpr.out_avals] == [typeof(y).strong() for y in outs], where
    for y, want in zip(outs, wants, strict=True):
        assert y.shape == want.shape, f"{where}: {y.shape}, expected {want.shape}"
        assert y.dtype == expected_dtype(case, dtype, want), where
        want = want if want.dtype.kind in "iub" else rounded(want, y.dtype)
        assert_close(y, want, case.tol * unit(y.dtype), where)


def rounded(want: np.ndarray, dtype: Any) -> np.ndarray:
    """What is expected, with overflow to inf where the dtype overflows."""
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


@rows("weak")
def test_weak_type(case):
    if case.weak is None:
        pytest.skip("the row does not say")
    xs = [typeof(x) for x in case.arrays(SHORT[case.dtypes.split()[0]])]
    if any(a.dtype is not None for a in case.operands()):
        pytest.skip("an operand's dtype is fixed")
    weak = [ShapedArray(a.shape, a.dtype, True) for a in xs]
    jaxpr, _ = stage(case.apply, weak)
    assert [a.weak_type for a in jaxpr.out_avals] == [case.weak] * len(jaxpr.out_avals)
    jaxpr, _ = stage(case.apply, xs)
    assert not any(a.weak_type for a in jaxpr.out_avals)


@rows("jvp", inexact=True)
def test_jvp(case):
    for dtype in derivative_dtypes(case):
        with config.scope(enable_x64=True):
            xs = case.arrays(dtype)
            ts = tangents_for(case, xs)
            outs, dots = jvp(case.apply, xs, ts)
            for y, want in zip(outs, case.apply(*xs), strict=True):
                assert_close(y, want, 1e-12, "the primal result")
            check_dots(case, outs, dots, central_difference(case.apply, xs, ts))
            for k, t in enumerate(ts):  # one operand at a time: others stand still
                if len(ts) > 1 and not isinstance(t, Zero):
                    alone = [t if i == k else Zero(typeof(x)) for i, x in enumerate(xs)]
                    outs, dots = jvp(case.apply, xs, alone)
                    check_dots(case, outs, dots, central_difference(case.apply, xs, alone))


def check_dots(case: Case, outs: list, dots: list, wants: list) -> None:
    for y, dot, want in zip(outs, dots, wants, strict=True):
        tangent = typeof(y).to_tangent()
        if want is None:
            assert isinstance(dot, Zero), "a tangent of a result that has none"
            continue
        assert (dot.aval if isinstance(dot, Zero) else typeof(dot)).strong() == tangent.strong()
        assert_close(instantiate(dot), want, case.grad_tol, f"{case.id}: jvp", NOISE)


@rows("transpose", inexact=True)
def test_transpose(case):
    for dtype in derivative_dtypes(case):
        with config.scope(enable_x64=True):
            xs = case.arrays(dtype)
            rng = case.rng("cotangents")
            ts = tangents_for(case, xs)
            check_transpose(case, xs, ts, [True] * len(xs), rng)
            for k in range(len(xs)):
                if len(xs) > 1 and not isinstance(ts[k], Zero):
                    check_transpose(case, xs, ts, [i == k for i in range(len(xs))], rng)


def check_transpose(case: Case, xs: list, ts: list, wanted: list, rng: Any) -> None:
    moved = [m and w for m, w in zip(case.moved(xs), wanted, strict=True)]
    outs, jaxpr, residuals, out_moved = linearize(case.apply, xs, moved)
    given = [t for t, m in zip(ts, moved, strict=True) if m]
    ys = [y for y, m in zip(outs, out_moved, strict=True) if m]
    cts = [random_array(rng, y.shape, y.dtype, -1, 1) for y in ys]
    dots = weft_eval(jaxpr, residuals, given)
    grads = backward(jaxpr, residuals, [Linear(v.aval) for v in jaxpr.invars], cts)
    for v, g in zip(jaxpr.invars, grads, strict=True):
        aval = g.aval if isinstance(g, Zero) else typeof(g)
        assert aval.strong() == v.aval.strong(), f"{case.id}: cotangent {aval} of {v.aval}"
    (forward, size), (back, _) = inner(cts, dots), inner(grads, given)
    assert abs(forward - back) <= 1e-12 * size, f"{case.id}: <ct, Jt> {forward}, <J'ct, t> {back}"


def weft_eval(jaxpr: Any, residuals: list, args: list) -> list:
    from_consts = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    return from_consts(*residuals, *args)


@rows("second", inexact=True)
def test_second_order(case):
    """The jvp of the gradient of <ct, f>, against differences of that gradient."""
    with config.scope(enable_x64=True):
        dtype = derivative_dtypes(case)[0]
        xs = case.arrays(dtype)
        rng = case.rng("cotangents")
        ts = tangents_for(case, xs)
        moved = case.moved(xs)
        cts = [random_array(rng, y.shape, y.dtype, -1, 1) for y in case.apply(*xs)]

        def gradient(*args: Any) -> list:
            _, jaxpr, residuals, out_moved = linearize(case.apply, args, moved)
            given = [c for c, m in zip(cts, out_moved, strict=True) if m]
            grads = backward(jaxpr, residuals, [Linear(v.aval) for v in jaxpr.invars], given)
            return [instantiate(g) for g in grads]

        _, dots = jvp(gradient, xs, ts)
        for dot, want in zip(dots, central_difference(gradient, xs, ts), strict=True):
            where = f"{case.id}: second order"
            assert_close(instantiate(dot), want, 10 * case.grad_tol, where, NOISE)


@rows("batch")
def test_batch(case):
    """Every choice of mapped operands and axes gives what a loop over the axis gives."""
    dtype = SHORT[case.dtypes.split()[0]]
    size = 4
    with config.scope(enable_x64=np.dtype(dtype).itemsize == 8 and np.dtype(dtype).kind != "c"):
        rng = case.rng()
        operands = case.operands()
        stacks = [[a.array(rng, dtype) for _ in range(size)] for a in operands]
        shared = [s[0] for s in stacks]
        for dims in batch_dims(operands):
            args = [shared[i] if d is None else np.stack(stacks[i], d) for i, d in enumerate(dims)]
            outs = batch_to_front(case.apply, args, dims, Axis(size))
            each = [
                case.apply(*[shared[i] if d is None else stacks[i][k] for i, d in enumerate(dims)])
                for k in range(size)
            ]
            for n, y in enumerate(outs):
                want = np.stack([np.asarray(outs[n]) for outs in each])
                assert y.dtype == want.dtype
                tol = case.tol * unit(want.dtype)
                assert_close(y, want, tol, f"{case.id}: batch {dims}, result {n}")


def batch_dims(operands: list) -> list[tuple]:
    """Which axis of each operand is mapped: every choice, or where they are many the outer ones."""
    choices = [(None, *range(len(a.shape) + 1)) for a in operands]
    every = [d for d in itertools.product(*choices) if any(x is not None for x in d)]
    if len(every) <= 20:
        return every
    return [d for d in every if sum(x is not None for x in d) in (1, len(d))][:40]


@rows("batch")
def test_batch_of_none(case):
    """A mapped axis of size 0 works, and gives the right types."""
    dtype = SHORT[case.dtypes.split()[0]]
    xs = case.arrays(dtype)
    if not xs:
        pytest.skip("nothing to map")
    empty = [np.zeros((0, *x.shape), x.dtype) for x in xs]
    outs = batch_to_front(case.apply, empty, [0] * len(xs), Axis(0))
    for y, one in zip(outs, case.apply(*xs), strict=True):
        assert y.shape == (0, *one.shape)
        assert y.dtype == one.dtype


@rows("jit")
def test_jit_is_eager(case):
    dtype = SHORT[case.dtypes.split()[0]]
    xs = case.arrays(dtype)
    staged = weft.jit(lambda *args: case.apply(*args))(*xs)
    for y, want in zip(staged, case.apply(*xs), strict=True):
        assert typeof(y) == typeof(want)
        assert_close(y, np.asarray(want), case.tol * unit(want.dtype), f"{case.id}: jit")
