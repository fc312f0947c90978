"""Programs closed under {jvp, vjp, vmap, jit}, to depth 3, against loops and finite differences.

A word such as "JVC" is read from the right: jit, then vmap, then jvp of what that gives. Each
letter takes a function of one array to another that gives an array of the same shape, so every word
makes sense. The oracle reads the same word on a NumPy function: differences, stacks, nothing.
"""

import itertools

import numpy as np
import pytest

import weft
from weft import lax
from weft.experimental.jet import jet

N = 3
M = np.array([[0.5, -1.0, 0.25], [0.75, 0.5, -0.5], [-0.25, 1.0, 0.5]])


def direction(shape):
    return np.cos(1.0 + np.arange(np.prod(shape))).reshape(shape)


def covector(shape):
    return np.sin(2.0 + np.arange(np.prod(shape))).reshape(shape)


TRANSFORMS = {
    "J": lambda f: lambda x: weft.jvp(f, (x,), (direction(x.shape),))[1],
    "G": lambda f: lambda x: weft.vjp(f, x)[1](covector(x.shape))[0],
    "V": weft.vmap,
    "C": weft.jit,
    "L": lambda f: lambda x: weft.linearize(f, x)[1](direction(x.shape)),
    "T": lambda f: lambda x: jet(f, (x,), ([direction(x.shape), 0.0],))[1][1],
}


def difference(f, x, v, h=1e-3):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


def numpy_vjp(f):
    def pulled(x):
        ct = covector(x.shape)
        basis = np.eye(x.size).reshape(x.size, *x.shape)
        return np.array([np.sum(ct * difference(f, x, e)) for e in basis]).reshape(x.shape)

    return pulled


def second_difference(f, x, v, h=1e-2):
    at = lambda k: f(x + k * h * v)
    return (16 * (at(1) + at(-1)) - at(2) - at(-2) - 30 * at(0)) / (12 * h * h)


ORACLES = {
    "J": lambda f: lambda x: difference(f, x, direction(x.shape)),
    "G": numpy_vjp,
    "V": lambda f: lambda x: np.stack([f(row) for row in x]),
    "C": lambda f: f,
    "L": lambda f: lambda x: difference(f, x, direction(x.shape)),
    "T": lambda f: lambda x: second_difference(f, x, direction(x.shape)),
}


@weft.custom_jvp
def with_jvp(x):
    return lax.sin(x) * x


@with_jvp.defjvp
def with_jvp_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    return with_jvp(x), t * (lax.cos(x) * x + lax.sin(x))


@weft.custom_vjp
def with_vjp(x):
    return lax.exp(x * 0.5) * x


with_vjp.defvjp(
    lambda x: (with_vjp(x), (x, lax.exp(x * 0.5))),
    lambda saved, ct: (ct * saved[1] * (1.0 + 0.5 * saved[0]),),
)


@weft.jit
def helper(x, scale):
    return {"y": lax.tanh(x) * scale, "n": 3}


def nested(x):
    both = helper(x, 2.0)
    return helper(both["y"], x[0])["y"] * both["n"]


# name: (program, its NumPy twin)
PROGRAMS = {
    "elementwise": (lambda x: lax.sin(x) * x + 2.0 / (x * x + 1.0),
                    lambda x: np.sin(x) * x + 2.0 / (x * x + 1.0)),
    "nested_jit": (nested, lambda x: np.tanh(np.tanh(x) * 2.0) * x[0] * 3),
    "product": (lambda x: lax.dot(M, lax.tanh(x)) * x, lambda x: (M @ np.tanh(x)) * x),
    "reduction": (lambda x: x * lax.reduce_sum(x * x * x, (0,)), lambda x: x * np.sum(x**3)),
    "constant": (lambda x: x * 0.0 + 1.0, lambda x: x * 0.0 + 1.0),
    "identity": (lambda x: x, lambda x: x),
    "outer": (lambda x: lax.reduce_sum(lax.reshape(x, (N, 1)) * lax.sin(x)[None, :], (1,)),
              lambda x: np.sum(x[:, None] * np.sin(x)[None, :], axis=1)),
    "stopped": (lambda x: x * x + lax.stop_gradient(x) * 0.0, lambda x: x * x),
    "custom_jvp": (with_jvp, lambda x: np.sin(x) * x),
}  # fmt: skip


def read(word, letters, f):
    for letter in reversed(word):
        f = letters[letter](f)
    return f


def words(letters, depths):
    return ["".join(w) for n in depths for w in itertools.product(letters, repeat=n)]


def check(program, twin, word):
    shape = (2,) * word.count("V") + (N,)
    x = 0.3 + 0.7 * np.cos(np.arange(np.prod(shape))).reshape(shape)
    with weft.enable_x64():
        got = np.asarray(read(word, TRANSFORMS, program)(x))
    want = read(word, ORACLES, twin)(x)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


DEEP = itertools.product(["elementwise", "nested_jit"], words("JGVC", (1, 2, 3)))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("case", [*DEEP], ids="-".join)  # as one parameter: a sample skips words
def test_words_to_depth_three(case):
    name, word = case
    check(*PROGRAMS[name], word)


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("elementwise", "nested_jit")])
@pytest.mark.parametrize("word", words("JGVC", (1, 2)))
def test_every_word_to_depth_two(name, word):
    check(*PROGRAMS[name], word)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("word", words("GVC", (1, 2, 3)))
def test_custom_vjp_under_every_word_of_reverse_mode(word):
    check(with_vjp, lambda x: np.exp(x * 0.5) * x, word)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("word", [w for w in words("LGVC", (2,)) if "L" in w] + ["LLL", "VLG"])
def test_linearize_agrees_with_jvp(word):
    check(*PROGRAMS["nested_jit"], word)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ["nested_jit", "product", "custom_jvp"])
@pytest.mark.parametrize("word", [w for w in words("TJGVC", (1, 2)) if "T" in w] + ["GTV", "CTG"])
def test_power_series_within_and_around_the_others(name, word):
    check(*PROGRAMS[name], word)


def first(x):
    """The first element of an array or a tracer."""
    return x if x.ndim == 0 else first(x[0])


def closing(letters):
    """Each level closes over the argument of the level outside it."""

    def level(transform):
        return lambda f: lambda x: transform(lambda y: f(y) * first(x))(x)

    return {letter: level(transform) for letter, transform in letters.items()}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("word", words("JGVC", (2,)) + ["JVC", "CGV", "VGC", "GVJ", "GCV", "VCG"])
def test_closures_over_tracers_at_every_level(word):
    shape = (2,) * word.count("V") + (N,)
    x = 0.3 + 0.7 * np.cos(np.arange(np.prod(shape))).reshape(shape)
    program, twin = PROGRAMS["elementwise"]
    with weft.enable_x64():
        got = np.asarray(read(word, closing(TRANSFORMS), program)(x))
    want = read(word, closing(ORACLES), twin)(x)
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def branching(x):
    return x * x if x > 0.5 else x * 3.0


@pytest.mark.parametrize("word", ["J", "G", "JJ", "JG", "GJ", "GGG", "L", "LG"])
@pytest.mark.parametrize("at", [0.25, 0.75])
def test_python_control_flow_on_values(word, at):
    x = np.array(at)
    with weft.enable_x64():
        got = np.asarray(read(word, TRANSFORMS, branching)(x))
    np.testing.assert_allclose(got, read(word, ORACLES, branching)(x), rtol=1e-4, atol=1e-4)


def test_control_flow_on_values_that_vmap_does_not_map():
    f = weft.vmap(lambda x, k: x * 2 if k > 0 else x, in_axes=(0, None))
    np.testing.assert_array_equal(f(np.arange(3.0), 1.0), [0, 2, 4])
    np.testing.assert_array_equal(f(np.arange(3.0), -1.0), [0, 1, 2])


def test_perturbations_are_not_confused():
    # d/dx [x * d/dy (x + y)] is 1; a system that mixes the two derivatives up gives 2
    f = lambda x: x * weft.grad(lambda y: x + y)(1.0)
    assert float(weft.grad(f)(3.0)) == 1.0
    g = lambda x: x * weft.jvp(lambda y: x + y, (1.0,), (1.0,))[1]
    assert float(weft.jvp(g, (2.0,), (1.0,))[1]) == 1.0
    assert float(weft.grad(g)(2.0)) == 1.0
    assert float(weft.jvp(f, (2.0,), (1.0,))[1]) == 1.0


def test_jit_inside_grad_inside_vmap_inside_jit():
    inner = weft.jit(lambda x: lax.reduce_sum(lax.sin(x) * x, (0,)))
    f = weft.jit(weft.vmap(weft.grad(inner)))
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(f(x), np.cos(x) * x + np.sin(x), rtol=1e-5)
