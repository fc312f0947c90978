"""Windows written into arrays: the form that a CPU is given, and results as NumPy's in place."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, show_prepared
from weft import lax

RNG = np.random.RandomState(0)
LARGE = RNG.randn(96, 96).astype("f")
SMALL = LARGE[:8, :9]
INNER = np.s_[1:-1, 1:-1]
DTYPES = "? i1 i2 i4 u1 u4 f2 f4 c8"


class InPlace:
    """Windows written by NumPy, and loops written out."""

    numpy = np

    @staticmethod
    def put(how, u, index, value):
        u = u.copy()
        if how == "set":
            u[index] = value
        else:
            u[index] = getattr(np, how)(u[index], value)
        return u

    @staticmethod
    def repeat(step, *u):
        for _ in range(3):
            u = step(*u)
        return u


class Functional:
    """The same by weft."""

    numpy = jnp

    @staticmethod
    def put(how, u, index, value):
        return getattr(u.at[index], how)(value)

    @staticmethod
    def repeat(step, *u):
        return lax.fori_loop(0, 3, lambda i, u: step(*u), u)


def spread(u):
    return (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) * 0.25


def heat(to, u):
    return to.put("set", u, INNER, spread(u))


def reflect(to, u):
    u = heat(to, u)
    u = to.put("set", u, 0, u[1] * 1)
    u = to.put("set", u, -1, u[-2] * 1)
    u = to.put("set", u, np.s_[:, 0], u[:, 1] * 1)
    return to.put("set", u, np.s_[:, -1], u[:, -2] * 2)


def frame(to, u):
    old, u = u, heat(to, u)
    for index, value in ((0, 0), (-1, 1), (np.s_[:, 0], 0.5), (np.s_[:, -1], old[:, -1])):
        u = to.put("set", u, index, value)
    return u


def fields(to, u, v):
    w = to.put("add", u, INNER, spread(u) * v[INNER])
    return w, to.put("multiply", v, INNER, spread(v) + u[INNER])


def follow(to, u, v):
    u = to.put("add", u, np.s_[1:], 0.5 * (v[:-1] - v[1:]))
    return u, to.put("add", v, np.s_[:-1], 0.5 * (u[:-1] - u[1:]))


def cells(to, u):
    flat = u.reshape(-1)
    return to.put("add", flat, np.s_[1:-1], 0.5 * flat[2:] - flat[:-2]).reshape(u.shape)


PROGRAMS = {
    "set": heat,
    "add": lambda to, u: to.put("add", u, np.s_[1:, :-1], u[:-1, :-1]),
    "fill": lambda to, u: to.put("set", u, np.s_[:-1], u[0, 0]),
    "one axis": lambda to, u: to.put("set", u, np.s_[:, 1:-1], u[:, 2:] - u[:, :-2]),
    "a step of 2": lambda to, u: to.put("set", u, np.s_[1:-1:2], u[2::2] - u[:-2:2]),
    "backwards": lambda to, u: to.put("set", u, np.s_[::-1], u * 2),
    "all": lambda to, u: to.put("add", u, np.s_[:], u[::-1]),
    "none": lambda to, u: to.put("add", to.put("set", u, np.s_[3:3], 1), np.s_[:0, 1:], u[:0, 1:]),
    "edges": frame,
    "edges of the window": reflect,
    "steps one by one": lambda to, u: heat(to, heat(to, heat(to, u))),
    "a computed array": lambda to, u: heat(to, u * 2) + heat(to, u[::-1]),
    "a loop": lambda to, u: to.repeat(lambda u: (reflect(to, u),), u)[0],
    "a loop of cells": lambda to, u: to.repeat(lambda u: (cells(to, u),), u)[0],
    "a loop on two arrays": lambda to, u: sum(to.repeat(lambda u, v: fields(to, u, v), u, u + 1)),
    "a loop of two that follow": lambda to, u: sum(
        to.repeat(lambda u, v: follow(to, u, v), u, 1 - u)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_are_as_in_place(name):
    fun = weft.jit(lambda u: PROGRAMS[name](Functional, u))
    for u in (LARGE, SMALL) if "loop" in name else (LARGE,):
        found, expected = fun(u), PROGRAMS[name](InPlace, u)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_places_beyond_the_array_are_moved_inside():
    write = lambda u: lax.dynamic_update_slice(u, u[:-1, :-1] * 2, (5000, -5000))
    expected = LARGE.copy()
    expected[1:, :-1] = LARGE[:-1, :-1] * 2
    np.testing.assert_array_equal(weft.jit(write)(LARGE), expected)


@pytest.mark.parametrize("name", ["edges of the window", "a loop"])
def test_derivatives_and_batches_of_linear_programs(name):
    fun = lambda u: PROGRAMS[name](Functional, u)
    w, t = LARGE[::-1], LARGE[:, ::-1]
    both = weft.jit(weft.vmap(fun))(np.stack([t, 2 * t]))
    np.testing.assert_allclose(both[1], 2 * PROGRAMS[name](InPlace, t), rtol=1e-4, atol=1e-5)
    gradient = weft.jit(weft.grad(lambda u: jnp.sum(w * fun(u))))(LARGE)
    np.testing.assert_allclose(np.sum(gradient * t), np.sum(w * both[0]), rtol=1e-3)


def test_any_dtype():
    """The elements are copied bit by bit, NaN and zeros of either sign among them."""
    bits = RNG.randint(0, 256, (160, 160 * 8)).astype(np.uint8)
    arrays = [bits.view(d)[:, :160] if d != "?" else bits[:, :160] > 99 for d in DTYPES.split()]
    with np.errstate(all="ignore"):
        found = weft.jit(lambda xs: [x.at[1:, :-1].set(x[:-1, 1:]) for x in xs])(arrays)
        for x, y in zip(arrays, found, strict=True):
            x, old = x.copy(), x
            x[1:, :-1] = old[:-1, 1:]
            np.testing.assert_array_equal(y, x)


def test_64_bits():
    u = LARGE.astype(np.float64)
    with weft.enable_x64(True):
        found = weft.jit(lambda u: reflect(Functional, u))(u)
    np.testing.assert_allclose(found, reflect(InPlace, u), rtol=1e-14)


def carried_both(step):
    return lambda u: lax.fori_loop(0, 9, lambda i, uv: step(*uv), (u, u + 1))


def move(u, v):
    v = v.at[INNER].add(-0.5 * u[INNER])
    return u.at[INNER].add(0.5 * v[INNER]), v


def carried(step, count=9):
    return lambda u: lax.fori_loop(0, count, lambda i, u: step(u), u)


NUMBER = lambda u: u.at[INNER].set(0.5)
SCALE = lambda u: u.at[INNER].multiply(0.5)
HEAT = lambda u: heat(Functional, u)
WRITE, CALL, CHOOSE = "dynamic_update_slice", "cpu_call", "select_n"
BARRIER = "optimization_barrier"
# The operations by which programs write a window.
FORMS = {
    "an argument": (HEAT, LARGE, {CHOOSE, CALL}),
    "a small argument": (HEAT, SMALL, {CHOOSE}),
    "the window of an argument": (SCALE, LARGE, {WRITE}),
    "a number in an argument": (NUMBER, LARGE, {WRITE}),
    "a number in a computed array": (lambda u: NUMBER(u * 2), LARGE, {WRITE}),
    "a carry": (carried(HEAT), LARGE, {BARRIER, WRITE}),
    "a carry of few steps": (carried(HEAT, 7), LARGE, {CALL, WRITE}),
    "a small carry": (carried(HEAT), SMALL, {CHOOSE}),
    "the window of a carry": (carried(SCALE), LARGE, {WRITE}),
    "a number in a carry": (carried(NUMBER), LARGE, {WRITE}),
    "a carry that others follow": (
        carried_both(lambda u, v: follow(Functional, u, v)),
        LARGE,
        {BARRIER, WRITE},
    ),
    "carries that move in step": (carried_both(move), LARGE, {WRITE}),
    "a short row of a carry": (carried(lambda u: u.at[1].set(u[0])), LARGE, {WRITE}),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    fun, u, expected = FORMS[name]
    text = show_prepared(fun, u)
    assert {word for word in (WRITE, CALL, CHOOSE, BARRIER) if f" {word}" in text} == expected, text


def test_programs_for_several_devices_and_without_kernels_keep_their_windows():
    for target in (NO_KERNELS, OVER_MESH):
        text = show_prepared(HEAT, LARGE, target=target)
        assert "dynamic_update_slice" in text
        assert "select" not in text
