"""Modules lowered from jaxprs: the contents of the text, and their number."""

import contextlib
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.stage import close_jaxpr
from weft.xla.hlo import Builder
from weft.xla.lower import alias_attributes, has_scopes, lower_module

X = np.ones(3, np.float32)


def text_of(fun, *args, **options):
    return weft.jit(fun, **options).lower(*args).as_text()


def test_a_module_is_named_after_its_function():
    def loss(x):
        return x * 2.0

    text = text_of(loss, X)
    assert text.startswith("module @jit_loss ")
    assert "func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>)" in text


@pytest.mark.parametrize("name", ["<lambda>", "a b", "naïve", "f.g", ""])
def test_any_name_makes_a_module(name):
    def fun(x):
        return x + 1

    fun.__name__ = name
    assert weft.jit(fun)(X).tolist() == [2, 2, 2]


def test_each_operation_stands_once():
    text = text_of(lambda x: lax.sin(lax.cos(x)), X)
    assert text.count("stablehlo.sine") == text.count("stablehlo.cosine") == 1


def test_an_operation_on_one_value_is_no_model_for_those_on_several():
    def f(p, x, y):
        return lax.select(p, x, x), lax.select(p, x, y)

    same, chosen = weft.jit(f)(True, X, 2 * X)
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(chosen, X)


def repeating(x, n=3):
    """Equations that come again: with literals, of several lines, in regions, with effects."""
    for i in range(n):
        x = x * 2.5 + x**3 - 2.5 * x + jnp.sum(x) + jnp.where(x > 0, x, 0.0) + lax.sort(x)
        x = lax.cond(x[0] > 0, lambda y: y * 2.5 + jnp.sum(y), lambda y: y * 2.5 + y, x)
        x = lax.fori_loop(0, 3, lambda i, y: (y * 2.5 + y) * jnp.max(y), x)
        x = jnp.logaddexp(x, x + jnp.argmax(x)) + weft.random.normal(weft.random.key(i), (3,))
        weft.debug.callback(lambda y: None, x)
        x = (
            x
            + weft.pure_callback(lambda y: y, x, lax.stop_gradient(x))
            + jnp.tan(x) * jnp.stack([x, x])[1]
        )
    return x


@pytest.mark.parametrize("scope", [False, True])
def test_equations_written_like_earlier_ones_are_as_their_rules_write_them(scope, monkeypatch):
    def fun(x):
        with weft.named_scope("part") if scope else contextlib.nullcontext():
            return weft.grad(lambda y: jnp.sum(repeating(y)))(x), repeating(x)

    monkeypatch.setattr("weft.xla.hlo.PATTERNS", {})
    patterns = []
    read = Builder.read_pattern
    note = lambda *args: patterns.append(read(*args)) or patterns[-1]
    monkeypatch.setattr(Builder, "read_pattern", note)
    quick = text_of(fun, X)
    alone = [local for pattern, local in patterns if pattern]
    assert sum(alone) > 10 and len(alone) - sum(alone) > 10
    monkeypatch.setattr("weft.xla.hlo.PATTERNS", {})
    monkeypatch.setattr(Builder, "read_pattern", lambda *_: (None, False))
    assert quick == text_of(fun, X)


def test_equal_constants_stand_once():
    with weft.config.scope(native=False):
        text = text_of(lambda x: (x * 2.5 + 2.5) * 2.5, X)
    assert text.count("tensor<3xf32>}> : () ->") == 1


def test_zero_and_minus_zero_are_two_constants():
    out = weft.jit(lambda x: (lax.full((2,), 0.0), lax.full((2,), -0.0), lax.full((2,), 0.0)))(X)
    assert [bool(np.signbit(v[0])) for v in out] == [False, True, False]


def test_a_called_function_is_written_once():
    @weft.jit
    def inner(x):
        return lax.sin(x)

    text = text_of(lambda x: inner(inner(inner(x))), X)
    assert text.count("func.func private @inner") == 1 and text.count("func.call") == 3
    assert text.count("stablehlo.sine") == 1


SHARED = {
    "elements": lambda x: jnp.sin(x) + 1,
    "product": lambda x: x @ x,
    "sort": jnp.sort,
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, y: y.at[0].add(x[i]), x),
}


@pytest.mark.parametrize("name", SHARED)
def test_programs_held_in_many_places_are_lowered_once(name):
    """Each of 60 functions calls the one before twice: 2**60 calls, if one looked at each."""
    f = weft.jit(SHARED[name])
    for _ in range(60):
        f = weft.jit(lambda x, f=f: f(f(x)))
    text = f.lower(jnp.ones((3, 3))).as_text()
    assert 60 <= text.count("func.func private") <= 65


def test_functions_of_one_name_stay_apart():
    def made(c):
        @weft.jit
        def inner(x):
            return x * c

        return inner

    f, g = made(2.0), made(3.0)
    text = text_of(lambda x: f(x) + g(x), X)
    assert len(set(re.findall(r"func.func private @(\w+)", text))) == 2
    assert weft.jit(lambda x: f(x) + g(x))(X).tolist() == [5, 5, 5]


def test_donation_is_an_attribute_of_the_parameter():
    fun, y = lambda x, y: (x + 1, y.sum()), np.ones((2, 2), np.float32)
    unused = r"Some donated buffers were not usable: f32\[2,2\], .* drop them from donate_argnums"
    with pytest.warns(UserWarning, match=unused) as told:
        text = text_of(fun, X, y, donate_argnums=(0, 1))
    assert told[0].filename == __file__
    with weft.config.scope(hints=False):
        text_of(fun, X, y, donate_argnums=(0, 1))
    assert "%arg0: tensor<3xf32> {tf.aliasing_output = 0 : i32}" in text
    assert "%arg1: tensor<2x2xf32> {jax.buffer_donor = true}" in text
    assert "{" not in re.search(r"@main\((.*?)\)", text_of(lambda x: x + 1, X)).group(1)


def test_unused_arguments_are_not_passed():
    assert "%arg1" not in text_of(lambda x, y: x + 1, X, X)
    assert "%arg1" in text_of(lambda x, y: x + 1, X, X, keep_unused=True)


def test_results_that_are_arguments_constants_or_repeated():
    jaxpr = close_jaxpr(weft.make_jaxpr(lambda x: (x, 2.0, x, x))(X).jaxpr)
    text = lower_module(jaxpr, "f").text
    assert "(tensor<3xf32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>)" in text
    out = weft.jit(lambda x: (x, 2.0, x, jnp.zeros((0, 2))))(X)
    assert [np.shape(v) for v in out] == [(3,), (), (3,), (0, 2)]


@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint8", "bfloat16", "float8_e4m3fn", "complex64"]
)
def test_constants_of_every_kind(dtype):
    value = np.array([[0, 1], [1, 1]]).astype(jnp.dtype(dtype))
    out = weft.jit(lambda: jnp.asarray(value))()
    assert out.dtype == value.dtype and np.asarray(out).tobytes() == value.tobytes()


def test_a_scope_is_found_however_deep():
    def scoped(x):
        with weft.named_scope("a"):
            return x + 1

    plain, outer = (lambda x: x + 1), (lambda x: weft.jit(scoped)(x) * 2)
    for fun, found in ((scoped, True), (plain, False), (outer, True), (weft.jit(plain), False)):
        assert has_scopes(weft.make_jaxpr(fun)(1.0).jaxpr) == found
    assert has_scopes(weft.make_jaxpr(lambda x: scoped(weft.jit(plain)(x)))(1.0).jaxpr)


def test_which_results_take_the_memory_of_donated_parameters():
    """The first of the type that is free; over a mesh, of the same sharding."""
    program = weft.make_jaxpr(lambda x, n, y: (x + 1, n, y * 2, y))(X, np.ones(3, np.int32), X)
    holds = lambda i: f"tf.aliasing_output = {i} : i32"
    donor = "jax.buffer_donor = true"
    alias = lambda donated, *shardings: alias_attributes(program.jaxpr, donated, *shardings)
    assert alias((0, 2), (), ()) == [holds(0), "", holds(2)]
    assert alias((2, 0, 1), (), ()) == [holds(2), holds(1), holds(0)]
    a, b = "first", "second"
    assert alias((0, 2), [a, a, b], [b, a, a, None]) == [holds(2), "", holds(0)]
    assert alias((0, 2), [a, a, b], []) == [donor, "", donor]
    assert alias((0, 2), [a, a, b], [None] * 4) == [donor, "", donor]
    with weft.config.scope(hints=False):
        assert alias((0, 2), [], [a, None, b, None]) == [donor, "", donor]


def test_the_same_text_is_written_from_memory(monkeypatch):
    """Operations of one line, of several, with constants, and with calls of functions."""

    def fun(x, key):
        for _ in range(3):
            x = jnp.tanh(x) * x + weft.random.uniform(key, x.shape) + jnp.max(x) + x * x
        return jnp.sort(x)[::-1]

    weft.clear_caches()
    args = X, weft.random.key(0)
    first, *others = [text_of(lambda *xs: fun(*xs), *args) for _ in range(3)]
    assert others == [first, first]
    wide = text_of(lambda *xs: fun(*xs), X[:2], args[1])
    monkeypatch.setattr("weft.xla.hlo.PATTERNS", {})
    assert text_of(lambda *xs: fun(*xs), X[:2], args[1]) == wide != first
