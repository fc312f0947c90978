"""Values that are reduced over a mesh, and cotangents that are terms of a sum, by numbers.

All programs of a mesh are one, compiled once.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, grad, jit, lax, nn, reshard
from weft.errors import ShardingTypeError
from weft.sharding import AxisType

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 4)).astype(np.float32)
W = rng.normal(size=(3, 4, 4)).astype(np.float32)


def through_layers(w, x):
    return lax.scan(lambda c, row: (jnp.tanh(c @ row) @ w[0], c.sum()), x, w)


def step_twice(w):
    return lambda c: (jnp.tanh(c[0] @ w[0]), c[1] + 1)


PROGRAMS = {
    "data": lambda w, x: jnp.sin(x @ w[0]).mean(),
    "decay": lambda w, x: jnp.sin(x @ w[0]).mean() + 0.1 * (w**2).sum() + (w * 2).mean(),
    "of reduced ones": lambda w, x: (w[0] @ w[1] @ w[2].T).sum() + jnp.linalg.norm(w[0]),
    "chosen": lambda w, x: (x @ nn.relu(w[0])).sum() + jnp.where(w > 0, w, 1.0).sum(),
    "cut and put together": lambda w, x: (
        (x @ jnp.stack([w[0], w[1]]).sum(0)).sum() + jnp.pad(w[2], 1)[1:].sum() ** 2
    ),
    "cumulative": lambda w, x: (x @ jnp.cumsum(w[0], 0)).sum() ** 2,
    "scan": lambda w, x: through_layers(w, x)[0].sum(),
    "loop": lambda w, x: lax.fori_loop(0, 2, lambda i, c: jnp.tanh(c @ w[i]), x).sum(),
    "started by a number": lambda w, x: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, w)[0],
    "carried": lambda w, x: lax.scan(lambda c, r: (c + r, r * 2), w[0], w)[1].sum(),
    "while": lambda w, x: lax.while_loop(lambda c: c[1] < 2, step_twice(w), (x, 0))[0].sum(),
    "branch": lambda w, x: lax.cond(x.sum() > 0, lambda: jnp.sin(x @ w[0]), lambda: x).sum(),
    "checkpoint": lambda w, x: weft.checkpoint(lambda w: jnp.sin(w).sum() * 2)(w),
}


def gradients(w, x):
    return {name: grad(f)(w, x) for name, f in PROGRAMS.items()}


@pytest.fixture(scope="module")
def wanted():
    return jit(gradients)(W, X)


@pytest.mark.parametrize("second", [AxisType.Explicit, AxisType.Auto], ids=["all", "mixed"])
def test_cotangents_of_reduced_values(wanted, second):
    mesh = weft.make_mesh((4, 2), ("X", "Y"), (AxisType.Explicit, second))
    with weft.sharding.use_mesh(mesh):
        w = reshard(W, P(reduced={"X"}))
        assert str(weft.typeof(w)) == "f32[3,4,4]{R:X}"
        got = jit(gradients)(w, reshard(X, P("X")))
        for name, ct in got.items():
            assert str(weft.typeof(ct)) == "f32[3,4,4]{U:X}", name
            summed = reshard(ct, P())
            np.testing.assert_allclose(summed, wanted[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_without_jit(wanted):
    with weft.sharding.use_mesh(weft.make_mesh((8,), ("X",))):
        w = reshard(W, P(reduced={"X"}))
        ct = grad(PROGRAMS["decay"])(w, reshard(X, P("X")))
        np.testing.assert_allclose(reshard(ct, P()), wanted["decay"], rtol=1e-4)
        y, pull = weft.vjp(lambda w: w.sum(), w)  # a number that is each device's is one term
        np.testing.assert_array_equal(reshard(pull(2.0)[0], P()), np.full_like(W, 2))


@pytest.mark.parametrize("split", [P(), P("X", "Y"), P(None, ("Y", "X"))])
@pytest.mark.parametrize("names", [{"X"}, {"Y", "X"}])
def test_a_value_as_terms_is_the_same_value(split, names):
    """The first device along an axis has it, and others zeros; also of a constant."""
    with weft.sharding.use_mesh(weft.make_mesh((4, 2), ("X", "Y"))):
        a = np.arange(64, dtype=np.float32).reshape(8, 8)
        terms = P(unreduced=names)
        f = jit(lambda x: [reshard(y, terms) for y in (x, jnp.arange(64.0).reshape(8, 8))])
        for y in f(weft.device_put(a, split)):
            parts = [np.asarray(s.data) for s in y.addressable_shards]
            assert sum(p.any() for p in parts) == (2 if names == {"X"} else 1)
            np.testing.assert_array_equal(sum(parts), a * (2 if names == {"X"} else 1))
            np.testing.assert_array_equal(reshard(y, P("X")), a)
        np.testing.assert_array_equal(reshard(weft.device_put(a, terms), P()), a)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("mul: terms of a sum", lambda u: u * u),
        ("div: terms of a sum", lambda u: 1 / u),
        ("stack: terms of a sum", lambda u: jnp.stack([u, u])),
        ("convert_element_type: terms of a sum", lambda u: u.astype(np.int32)),
        ("reshard: must be unreduced along", lambda u: reshard(np.ones(8, bool), u.sharding)),
        ("add: terms of a sum", lambda u: lax.scan(lambda c, _: (c + u, None), X[:, 0], length=2)),
    ],
)
def test_what_terms_are_refused_in(text, call):
    with weft.sharding.use_mesh(weft.make_mesh((8,), ("X",))):
        with pytest.raises(ShardingTypeError) as error:
            call(jnp.zeros(8, out_sharding=P(unreduced={"X"})))
        assert text in str(error.value)


def test_batches_summed_in_a_loop_are_added_up_once():
    """Gradients are carried as terms of a sum, or the loop itself is differentiated."""

    def loss(w, x):
        return jnp.tanh(x @ w).sum()

    def step(w, xs):
        first = jnp.zeros(w.shape, out_sharding=P(unreduced={"X"}))
        ct, each = lax.scan(lambda c, x: (c + (g := grad(loss)(w, x)), g * 2), first, xs)
        turned = lax.fori_loop(0, 2, lambda i, c: -c, ct)
        pulled = grad(lambda w: lax.scan(lambda c, x: (c + loss(w, x), None), 0.0, xs)[0])(w)
        return reshard(ct + each.sum(0) - turned + pulled, P())

    xs = np.stack([X, -2 * X, 3 * X])
    with weft.sharding.use_mesh(weft.make_mesh((8,), ("X",))):
        w = reshard(W[0], P(reduced={"X"}))
        made = jit(step).lower(w, reshard(xs, P(None, "X"))).compile()
        assert made.as_text().count(" all-reduce(") == 1
        parts = np.einsum("tbi,tbo->io", xs, 1 - np.tanh(xs @ W[0]) ** 2)
        np.testing.assert_allclose(made(w, reshard(xs, P(None, "X"))), 3 * parts, rtol=1e-4)
