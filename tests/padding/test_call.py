"""`jit(sizes=...)`: the number of traces and compilations, and errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.padding.compiles import count_compiles
from weft import lax, nn
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.padding.call import round_up, split_shapes


def test_one_trace_and_one_program_for_each_bucket():
    traced = []

    def f(x, y):
        traced.append(x.shape)
        return (x * y[:, None]).mean(0), x - x.max()

    jitted = weft.jit(f, sizes="(n, _), (n,)")
    rng = np.random.default_rng(0)
    for n in (3, 8, 1, 11, 5, 12):
        x, y = rng.normal(size=(n, 2)).astype("f"), rng.normal(size=n).astype("f")
        for got, want in zip(jitted(x, y), f(x, y), strict=True):
            assert isinstance(got, weft.Array)
            np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    assert len([s for s in traced if not isinstance(s[0], int)]) == 1
    jaxprs = {id(jitted.padded_jaxpr(jnp.ones((n, 2)), jnp.ones(n))) for n in (3, 8, 11, 5, 12)}
    assert len(jaxprs) == 2


def test_a_bucket_compiles_one_program():
    """Broadcasting, which asks if sizes are 1, needs no program for 1; nor does padding itself."""

    def f(x):
        mask = jnp.arange(x.shape[0])[:, None] >= jnp.arange(x.shape[0])
        y = x[:-1].sum(0) + nn.softmax(jnp.where(mask, x @ x.T, -1e9)) @ x
        return (y / x.max(0) - x.prod(0)).mean(), y.reshape(-1), jnp.asarray(x).at[0].add(1.0)

    jitted, rng = weft.jit(f, sizes="n, _"), np.random.default_rng(0)
    with count_compiles() as count:
        for n in (5, 1, 2, 8, 7):
            x = rng.normal(size=(n, 3)).astype(np.float32)
            got = jitted(x)
            assert count == [1]
            if n < 3:
                count_before = count[0]
                for g, w in zip(got, f(x), strict=True):
                    np.testing.assert_allclose(g, w, 1e-4, 1e-5)
                count[0] = count_before


def test_empty_arrays_are_not_padded():
    jitted = weft.jit(lambda x: (x.sum(), x * 2), sizes="n")
    total, twice = jitted(np.zeros(0, np.float32))
    assert total == 0 and twice.shape == (0,)
    with pytest.raises(ShapeError, match="padded_jaxpr: sizes must be at least 1"):
        jitted.padded_jaxpr(np.zeros(0, np.float32))


def test_a_function_that_asks_if_a_size_is_small():
    jitted = weft.jit(lambda x: jnp.roll(x, 2), sizes="n")
    for n in (1, 9, 12):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(jitted(x), np.roll(x, 2))
    assert jitted.padded_jaxpr(jnp.ones(9)) is jitted.padded_jaxpr(jnp.ones(12))


def test_a_size_that_decides_a_branch(caplog):
    """Sizes with the same answers share programs of their bucket; a hint says so once."""

    def f(x):
        return x * 2 if x.shape[0] > 100 else jnp.concatenate([x, jnp.zeros(100 - x.shape[0])])

    jitted = weft.jit(f, sizes="n")
    with count_compiles() as count:
        for n in (99, 101, 100, 128, 60, 3, 64, 97, 110, 0):
            x = np.arange(n, dtype=np.float32)
            np.testing.assert_array_equal(jitted(x), f(x))
            assert n or count.pop() and not count.append(4)
    assert count == [4] and len(*jitted._programs.values()) == 2
    (record,) = caplog.records
    assert "jit: f asks if `n > 100` at test_call.py:" in record.getMessage()


DERIVATIVES = {
    "prod": lambda x: x.prod(),
    "cumprod": lambda x: (jnp.cumprod(x) * jnp.arange(x.size)).sum(),
    "cummax": lambda x: (lax.cummax(x, reverse=True) * jnp.arange(x.size)).sum(),
    "cumlogsumexp": lambda x: (lax.cumlogsumexp(x) * jnp.arange(x.size)).sum(),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_that_halve_a_size(name):
    """A function is traced once for each number of times that its size can be halved."""
    f = weft.grad(DERIVATIVES[name])
    jitted, rng = weft.jit(f, sizes="n"), np.random.default_rng(0)
    for n in (9, 12, 10, 8, 1, 5):
        x = rng.uniform(0.5, 1.5, n).astype(np.float32)
        x[:2] = 0  # the derivative by one of two zeros
        np.testing.assert_allclose(jitted(x), f(jnp.asarray(x)), 1e-4, 1e-4)
    assert len(*jitted._programs.values()) == 3


def test_a_number_that_needs_a_size_is_refused():
    loop = weft.jit(lambda x: sum(x[i] for i in range(x.shape[0])), sizes="n")
    with pytest.raises(InconclusiveDimensionOperation, match="n"):
        loop(jnp.ones(9))


def test_a_function_that_asks_if_sizes_are_equal():
    one = weft.jit(lambda x: x * 2 if x.shape[0] == 4 else x + 1, sizes="n")
    assert one(jnp.ones(4))[0] == 2 == one(jnp.ones(5))[0] and one(jnp.zeros(4))[0] == 0
    f = lambda x, y: x.sum() - y.sum() if x.shape == y.shape else x.sum() + y.sum()
    two = weft.jit(f, sizes="(n,), (m,)")
    for n, m in ((3, 5), (5, 5), (9, 9), (6, 5)):
        assert two(jnp.ones(n), jnp.ones(m)) == f(jnp.ones(n), jnp.ones(m))
    pair = lambda n: two.padded_jaxpr(jnp.ones(n), jnp.ones(n))
    assert pair(5) is pair(6) and len(pair(5).invars) == 3


def test_programs_ahead_of_time():
    jitted, x = weft.jit(lambda x: x.mean(), sizes="n"), jnp.arange(5.0)
    compiled = jitted.lower(x).compile()
    (mean,) = compiled(jnp.int32(5), jnp.pad(x, (0, 3), constant_values=np.nan))
    assert mean == 2 and jitted.eval_shape(x).shape == ()
    jitted(x)
    jitted.clear_cache()
    assert not jitted._programs and jitted(x) == 2


def test_results_are_checked_without_padding():
    jitted = weft.jit(lambda x: (1 / x).sum(), sizes="n")
    assert jitted(jnp.ones(3)) == 3
    with weft.debug_nans(True):
        assert jitted(jnp.ones(3)) == 3
        with pytest.raises(FloatingPointError):
            jitted(jnp.array([jnp.inf, -jnp.inf]) * 0)
    with weft.disable_jit():
        assert jitted(jnp.ones(3)) == 3


def test_round_up():
    buckets = [8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024]
    assert list(dict.fromkeys(map(round_up, range(1, 1025)))) == buckets  # at most 12 programs
    assert [round_up(n) for n in (64, 65, 96, 97, 128, 129, 1025)] == [
        64, 96, 96, 128, 128, 192, 1536,
    ]  # fmt: skip
    for n in range(1, 3000):
        assert n <= round_up(n) < max(9, n * (2 if n < 64 else 1.5))


def test_buckets():
    x = jnp.ones(5)
    types = lambda buckets: [
        a.shape for a in weft.jit(jnp.sin, sizes="n", buckets=buckets).padded_jaxpr(x).in_avals
    ]
    assert types([4, 30, 10]) == [(), (10,)]
    assert types(lambda n: 2 * n) == [(), (10,)]
    assert types({"n": [7]}) == [(), (7,)] and types({}) == [(), (8,)]
    with pytest.raises(ShapeError, match=r"jit: a bucket must be .* n = 5; got buckets of at most"):
        types([3, 4])
    with pytest.raises(ShapeError, match="jit: a bucket must be .* got 4"):
        types(lambda n: n - 1)
    with pytest.raises(ValueError, match="jit: sizes must be given with buckets"):
        weft.jit(jnp.sin, buckets=[8])
    with pytest.raises(ValueError, match="without in_shardings"):
        weft.jit(jnp.sin, sizes="n", in_shardings=weft.P())


def test_texts_of_sizes():
    assert split_shapes("(n, d), (n,)") == ["n, d", "n"]
    assert split_shapes("(n + 1)*2, m") == ["(n + 1)*2, m"]
    assert split_shapes("(...), (n)") == ["...", "n"]
    f = weft.jit(lambda x, y: x.sum() + y.sum(), sizes="(n,), (2*n,)")
    assert f(jnp.ones(3), jnp.ones(6)) == 9
    with pytest.raises(ShapeError, match=r"jit: arguments must have sizes that fit .* is not 7"):
        f(jnp.ones(3), jnp.ones(7))
    for text in ("n", "n, m, k", "n -"):
        with pytest.raises(ShapeError, match=r"jit: sizes must be a shape that fits .* f32\[2,2\]"):
            weft.jit(lambda x: x, sizes=text)(jnp.ones((2, 2)))
    with pytest.raises(ShapeError, match="a shape for each positional argument"):
        f(jnp.ones(3))
    nested = weft.jit(lambda d, k: d["a"] * k, sizes=({"a": "n"}, None))
    np.testing.assert_array_equal(nested({"a": jnp.ones(3)}, 2.0), [2, 2, 2])


def test_static_keyword_and_donated_arguments():
    f = weft.jit(lambda x, axis, *, scale: x.sum(axis) * scale, sizes="n, _", static_argnums=1)
    np.testing.assert_array_equal(f(jnp.ones((3, 2)), 0, scale=2.0), [6, 6])
    np.testing.assert_array_equal(f(jnp.ones((3, 2)), 1, scale=2.0), [4, 4, 4])
    g = weft.jit(lambda x: x + 1, sizes="n", donate_argnums=0)
    x = jnp.ones(3)
    g(x)
    assert x.is_deleted()


def test_calls_in_other_programs_are_plain():
    f = lambda x: jnp.log(x).mean()
    jitted, x = weft.jit(f, sizes="n"), jnp.arange(1.0, 6.0)
    inner = weft.jit(weft.grad(jitted), sizes="n")
    np.testing.assert_allclose(inner(x), weft.grad(f)(x), 1e-6)
    np.testing.assert_allclose(weft.jit(jitted)(x), f(x), 1e-6)


def test_calls_with_other_arguments_after_calls_with_arrays():
    jitted = weft.jit(lambda x, k=1.0: {"y": x * k}, sizes="n")
    x = jnp.arange(5.0)
    for k in (1.0, jnp.float32(2)):
        for _ in range(2):
            np.testing.assert_array_equal(jitted(x, k=k)["y"], np.arange(5) * k)
            np.testing.assert_array_equal(jitted(x)["y"], np.arange(5))
    assert jitted(np.arange(5.0, dtype=np.float32))["y"].shape == (5,)
    assert jitted(2 * jnp.ones(3)).keys() == {"y"} and jitted(jnp.ones(8))["y"].shape == (8,)


class Model:
    """A class with padded methods."""

    weights = jnp.arange(3.0)

    @weft.jit(sizes="(n, _), ()", static_argnums=0)
    def predict(self, x, scale=1.0):
        return scale * (x @ self.weights)


def test_methods():
    model, x = Model(), np.ones((5, 3), np.float32)
    for scale in (1.0, 2.0):
        np.testing.assert_array_equal(model.predict(x, scale), np.full(5, 3 * scale))
    assert (8, 3) in [a.shape for a in Model.predict.padded_jaxpr(model, x, 1.0).in_avals]


def test_arguments_by_keyword_have_the_shapes_of_their_positions():
    f = weft.jit(lambda x, y: (x * y).sum(), sizes="(n,), (n,)")
    x = jnp.ones(5)
    want = f.padded_jaxpr(x, x)
    types = lambda *args, **kwargs: f.padded_jaxpr(*args, **kwargs).in_avals
    assert types(x, y=x) == types(y=x, x=x) == want.in_avals
    assert f(x, y=x) == f(y=x, x=x) == 5
    with pytest.raises(ShapeError, match="a shape for each positional argument; .* 1 arguments"):
        f(y=x)
    g = weft.jit(lambda x, k=1.0: k * x, sizes="n")
    assert g.padded_jaxpr(x=x).in_avals == g.padded_jaxpr(x).in_avals
    np.testing.assert_array_equal(g(x=x, k=2.0), [2] * 5)
    h = weft.jit(lambda x, y: x.sum() + y.sum(), sizes=("n", {"a": "n"}))
    with pytest.raises(Exception, match="sizes"):
        h(x, y=[x])


KINDS = {
    "arrays": lambda n: (jnp.arange(float(n)), jnp.float32(2)),
    "NumPy": lambda n: (np.arange(n, dtype=np.float32), np.float32(2)),
    "large": lambda n: (np.ones((n, 4000), np.float32), jnp.float32(2)),
    "64 bits": lambda n: (np.arange(n) / 2, np.float64(2)),
    "integers": lambda n: (np.arange(n), 2),
    "short": lambda n: (jnp.arange(n, dtype=jnp.bfloat16), np.int8(2)),
    "bool": lambda n: (np.arange(n) % 2 == 0, True),
    "complex": lambda n: (np.arange(n) * 1j, 2.0),
    "columns": lambda n: (np.asfortranarray(np.ones((n, 3), np.float32)), 2.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_every_kind_of_argument(kind):
    """The first call of a type, the cached ones, and those at the size of a bucket in C++."""
    f = lambda x, k: (x * k, x.sum())
    jitted, plain = weft.jit(f, sizes="(n, ...), ()"), weft.jit(f)
    for n in (8, 8, 8, 5, 5, 8, 8, 5):
        args = KINDS[kind](n)
        for got, want in zip(jitted(*args), plain(*args), strict=True):
            assert got.aval is want.aval
            np.testing.assert_array_equal(got, want)


def test_a_call_at_the_size_of_a_bucket_runs_in_cpp():
    """The third call and later ones run in C++ only, without a plan or padding in Python."""
    entered = []

    def f(x, w):
        return {"y": x * w, "n": x.shape[0] + held}

    held = jnp.float32(1)
    jitted = weft.jit(f, sizes="(n,), ()")
    find = jitted.find_plan
    jitted.find_plan = lambda *args, **kwargs: entered.append(1) or find(*args, **kwargs)
    for n, w, count in ((8, 2, 1), (8, 3, 2), (8, 4, 2), (16, 5, 3), (16, 6, 3), (8, 7, 3)):
        got = jitted(jnp.ones(n), jnp.float32(w))
        assert len(entered) == count and got["n"] == n + 1 and (got["y"] == w).all()
    jitted.clear_cache()
    assert jitted(jnp.ones(8), jnp.float32(2))["n"] == 9 and len(entered) == 4


def test_donated_arrays_in_cached_calls():
    f = weft.jit(lambda s, x: s + x.sum(), sizes="(...), (n,)", donate_argnums=0)
    for n in (5, 5, 8, 8):
        state, x = jnp.ones(3), jnp.ones(n)
        np.testing.assert_array_equal(f(state, x), [1 + n] * 3)
        assert state.is_deleted() and not x.is_deleted()


def test_types_in_place_of_arrays_and_copies_of_functions():
    struct = weft.ShapeDtypeStruct((5,), np.float32)
    assert "tensor<8xf32>" in weft.jit(jnp.sin, sizes="n").lower(struct).as_text()
    f = pickle.loads(pickle.dumps(weft.jit(jnp.sin, sizes="n")))
    assert f(jnp.zeros(3)).shape == (3,) and copy.deepcopy(f)(jnp.zeros(5)).shape == (5,)
    static = weft.jit(lambda x, k: x * k[0], sizes="n", static_argnums=1)
    with pytest.raises(ValueError, match="jit: static arguments must be hashable"):
        static(jnp.ones(5), [2])


@weft.jit
def double(x):
    return 2 * x


REFUSED = {
    "svd: singular vectors must be": lambda x: jnp.linalg.svd(jnp.outer(jnp.append(x, x), x)),
    "eig: must have matrices of known sizes": lambda x: jnp.linalg.eig(jnp.outer(x, x)),
    "random_bits: each random number": lambda x: weft.random.normal(weft.random.key(0), x.shape),
    "debug_print|debug_callback|callback": lambda x: weft.debug.print("{}", x) or x,
    "pure_callback: has no rule": lambda x: weft.pure_callback(
        np.sum, weft.ShapeDtypeStruct((), np.float32), x
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    with pytest.raises(ShapeError, match=text) as found:
        weft.jit(REFUSED[text], sizes="n")(jnp.ones(5))
    assert "test_call.py" in str(found.value) and "Hint: " in str(found.value)


def test_random_numbers_of_their_place():
    with weft.threefry_partitionable(True):
        f = lambda x: x + weft.random.normal(weft.random.key(0), x.shape)
        x = jnp.zeros((5, 3))
        for sizes in ("n, _", "_, n"):
            np.testing.assert_allclose(weft.jit(f, sizes=sizes)(x), f(x), 1e-6)
