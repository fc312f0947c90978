"""`jvp` and `vmap` where operations are applied one by one: rules become programs by use."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import jit, jvp, lax, random, vmap
from weft.core.primitive import Primitive
from weft.options import config
from weft.primitives.elementwise import mul
from weft.run import hot, rules, tape

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
X = np.float32([[0.5, -1.0, 2.0]])


@pytest.fixture
def at_once(monkeypatch):
    """Compile rules at their first use."""
    monkeypatch.setattr(hot, "HOT", 1)
    weft.clear_caches()


def rules_of(kind):
    """The rules there are, by the name of the operation."""
    return {r.made_of[0].name: r for r in rules.RULES.values() if type(r) is kind}


def test_rules_become_programs_after_some_uses_and_give_the_same():
    weft.clear_caches()
    fun = lambda x: (jnp.sinh(x) * 1.5).sum()
    for use in range(1, hot.HOT + 2):
        out, dot = jvp(fun, (X,), (X,))
        np.testing.assert_allclose(out, (np.sinh(X) * 1.5).sum(), rtol=1e-6)
        np.testing.assert_allclose(dot, (np.cosh(X) * X * 1.5).sum(), rtol=1e-6)
        found = rules_of(rules.JVPRule)
        assert [*found] == ["sinh", "mul", "reduce_sum"]
        compiled = [r.program is not None for r in found.values()]
        assert compiled == [use >= hot.HOT] * 3


def test_a_zero_tangent_stays_a_zero(at_once):
    def fun(x, n):
        place = jnp.argmax(x)  # has none
        return jnp.where(x > 0, 1.0, 2.0) * n, x[0, place] * n

    for _ in range(2):
        _, (a, b) = jvp(fun, (X, 3), (X, np.zeros((), weft.float0)))
        assert not np.any(a) and float(b) == 6.0


def of_several_results(w):
    largest, place = lax.top_k(w, 2)
    q, r = jnp.linalg.qr(w)
    return largest * place, (q @ r).T, jnp.sort(w, 0)[::-1], w.shape[0] * jnp.ones(2)


KEYS = random.split(random.key(0), 3)
PROGRAMS = {
    "several results": (of_several_results, W.reshape(2, 3, 2), 0),
    "results mapped elsewhere": (lambda w: jnp.dot(W[:, :2], w), W.reshape(2, 3, 2), 1),
    "numbers and weak types": (lambda x: (x * 2 + 1.5) ** 2 / 3, jnp.asarray([1, 2, 3]), 0),
    "indices": (lambda i: jnp.asarray(W)[i, 1:3], np.array([2, 0]), 0),
    "random keys": (lambda k: 2 * random.normal(k, (2,)), KEYS, 0),
    "names": (lambda x: x / lax.psum(x, "i") + lax.axis_index("i"), np.float32([1, 2, 3]), 0),
    "maps within maps": (vmap(lambda x: jnp.tanh(x) @ jnp.ones((4, 2))), W[:, None], 0),
    "derivatives": (weft.jacfwd(lambda x: jnp.sin(x) * x[0]), W, 0),
    "gradients": (weft.grad(lambda x: jnp.prod(jnp.cos(x))), W, 1),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_mapped_programs_give_what_they_give_compiled_whole(name, at_once):
    fun, x, dim = PROGRAMS[name]
    mapped = vmap(fun, dim, axis_name="i" if name == "names" else None)
    expected = jit(mapped)(x)
    for _ in range(2):  # with compiled rules, and without
        for a, b in zip(weft.tree.leaves(mapped(x)), weft.tree.leaves(expected), strict=True):
            assert a.aval is b.aval
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert rules_of(rules.BatchRule) or name == "gradients"  # whose programs hold theirs


def test_a_rule_of_one_operation_is_no_program_of_its_own(at_once):
    compiled = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "compile_program", lambda *given: compiled.append(given[1]))
        vmap(lambda x, y: lax.mul(x, y))(W, W)
    assert not compiled and rules_of(rules.BatchRule)["mul"].program


class Scale(Primitive):
    """x times 2, or what `default_matmul_precision` says; `asks` is for the value of x."""

    name = "scale"
    asks = False

    def abstract_eval(self, x):
        return [x]

    def lower(self, hlo, x):
        return [hlo.op("stablehlo.add", [x, x], [x.aval])[0]]

    def batch(self, axis, args, dims):
        (x,) = args
        if self.asks and not bool(x[0] > 0):
            raise ValueError("scale: x must be positive.")
        return [mul(x, 2.0 if config.default_matmul_precision is None else 3.0)], dims

    def jvp(self, primals, tangents):
        if self.asks and not bool(primals[0] > 0):
            raise ValueError("scale: x must be positive.")
        factor = 2.0 if config.default_matmul_precision is None else 3.0
        return [self.apply(*primals)[0]], [mul(tangents[0], factor)]


def test_rules_are_made_anew_where_options_that_programs_depend_on_differ(at_once):
    scale = lambda x: Scale.apply(scale_p, x)[0]
    scale_p, x = Scale(), jnp.ones(3)
    for precision, factor in ((None, 2), ("highest", 3), (None, 2)):
        with config.scope(default_matmul_precision=precision):
            assert float(vmap(scale)(x)[0]) == factor
            assert float(jvp(scale, (x,), (x,))[1][0]) == factor
            assert float(weft.vjp(scale, x)[1](x)[0][0]) == factor


def test_a_rule_that_asks_for_values_stays_as_it_is(at_once):
    scale_p = Scale()
    scale_p.asks = True
    call = vmap(lambda x: scale_p.apply(x)[0])
    for _ in range(3):
        np.testing.assert_array_equal(call(jnp.ones(2)), [2, 2])
        with pytest.raises(ValueError, match=r"^scale: x must be positive\.$"):
            call(-jnp.ones(2))
    assert rules_of(rules.BatchRule)["scale"].program is None
    for derive in (weft.grad, lambda f: lambda x: jvp(f, (x,), (1.0,))[1]):
        slope = derive(lambda x: scale_p.apply(x)[0])
        for _ in range(3):
            assert float(slope(jnp.float32(3))) == 2
            with pytest.raises(ValueError, match=r"^scale: x must be positive\.$"):
                slope(jnp.float32(-3))


def test_of_many_rules_the_newest_are_kept(monkeypatch):
    weft.clear_caches()
    monkeypatch.setattr(rules, "MAX_RULES", 3)
    jvp(lambda x: lax.sin(lax.cos(lax.exp(lax.neg(lax.tanh(x))))), (W,), (W,))
    assert [*rules_of(rules.JVPRule)] == ["exp", "cos", "sin"]
    weft.clear_caches()
    assert not rules.RULES and not rules.WALKS


def test_a_trace_uses_rules_in_one_place():
    """The traces that compile rules do not repeat how a trace treats operands and results."""
    for kind in (rules.CompiledJVP, rules.CompiledBatch, tape.TapeTrace):
        assert "apply_rule" in vars(kind) and "process" not in vars(kind)


def test_other_types_in_the_mapped_function_are_those_of_the_option(at_once):
    def fun(x):
        with config.scope(enable_x64=True):
            return jnp.asarray(x, jnp.float64) * 1e-20 + 1.0

    assert vmap(fun)(W[0]).dtype == np.float64
    np.testing.assert_array_equal(vmap(fun)(W[0]), W[0].astype(np.float64) * 1e-20 + 1)

    def product(x):  # of a number, which was one of 32 bits
        with config.scope(enable_x64=True):
            return lax.mul(x, jnp.float32(2))

    assert float(jvp(product, (1.5,), (1.0,))[1]) == 2


def test_what_is_watched_has_the_lines_of_this_use(at_once):
    first = lambda x: jnp.log(x)
    second = lambda x: jnp.log(x)  # the line to be named

    def watched(fun):
        def call(x):
            with config.scope(debug_nans=True):
                return fun(x)

        return call

    for transform in (vmap, lambda f: lambda x: jvp(f, (x,), (x,))):
        transform(watched(first))(W[:1] + 2)
        line = second.__code__.co_firstlineno
        with pytest.raises(FloatingPointError, match=rf"test_rules\.py:{line}\b"):
            transform(watched(second))(W[:1] - 2)


def test_a_deleted_array_is_named(at_once):
    x = jnp.asarray(W)
    call = vmap(lambda v: v * x)
    call(W[:, :3].T[:, :, None] @ np.ones((1, 4), np.float32))
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        call(W[:, :3].T[:, :, None] @ np.ones((1, 4), np.float32))
