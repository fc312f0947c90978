"""shard_map: values and derivatives against the same program on one device, and errors.

Each program of the table is a function of values that all devices share (`w`) and of split values
(`x`); beside it is the computation, written for whole arrays.
"""

import contextlib
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from weft import P, grad, hessian, jit, jvp, lax, make_jaxpr, shard_map, value_and_grad, vjp, vmap
from weft.ad_checkpoint import checkpoint_name
from weft.errors import PytreeError, ShapeError, UnboundAxisError
from weft.sharding import AxisType, Mesh, NamedSharding

DEVICES = np.array(weft.devices())
LINE = Mesh(DEVICES.reshape(8), ("x",))
GRID = Mesh(DEVICES.reshape(2, 4), ("a", "b"))
X = (np.arange(16, dtype=np.float32).reshape(8, 2) - 5) / 7
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
WHERE = X.sum(1) > 0.5


def on_line(f, in_specs=P("x"), out_specs=P("x"), **kwargs):
    return shard_map(f, mesh=LINE, in_specs=in_specs, out_specs=out_specs, **kwargs)


def close(a, b, rtol=2e-4):
    weft.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-4), a, b)


def total(x):
    return lax.psum(jnp.sum(x), "x")


@weft.custom_vjp
def doubled_in_reverse(w, x):
    return jnp.tanh(x @ w)


def _fwd(w, x):
    y = jnp.tanh(x @ w)
    return y, (w, x, y)


def _bwd(residuals, ct):
    w, x, y = residuals
    ct = ct * (1 - y * y)
    return 2 * x.T @ ct, 2 * ct @ w.T


doubled_in_reverse.defvjp(_fwd, _bwd)


@weft.custom_jvp
def tripled(x):
    return jnp.sin(x)


tripled.defjvp(lambda p, t: (tripled(*p), 3 * jnp.cos(p[0]) * t[0]))


def ring(w, x):
    y = lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)])
    return total(jnp.sin(y @ w) * (x @ w))


def averages(w, x, mean):
    def step(c, t):
        c = mean(jnp.tanh(x @ w * c[0, 0] + t)) @ jnp.ones((3, 2))
        return c, jnp.sum(c)

    c, ys = lax.scan(step, jnp.ones((1, 2)), jnp.arange(3.0))
    return jnp.sum(c) + jnp.sum(ys)


def layers(w, x, wrap=lambda f: f):
    step = wrap(lambda c, t: (jnp.tanh(c @ w) @ jnp.ones((3, 2)) * t, None))
    return jnp.sum(lax.scan(step, x, jnp.arange(1.0, 3.0))[0] ** 2)


def becoming(w, x):
    c = jnp.zeros((x.shape[0], 3))
    return jnp.sum(lax.scan(lambda c, t: (jnp.cos(c) + x @ w * t, None), c, jnp.arange(3.0))[0])


saving = weft.checkpoint_policies
SAVED = weft.checkpoint(
    lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "y")), policy=saving.save_only_these_names("y")
)
DOTS = weft.checkpoint(lambda w, x: jnp.sin(jnp.tanh(x @ w)), policy=saving.dots_saveable)

# name: (for one device, for whole arrays)
PROGRAMS = {
    "sum": (lambda w, x: total(jnp.tanh(x @ w) ** 2), lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)),
    "mean": (
        lambda w, x: lax.pmean(jnp.sum(jnp.tanh(x @ w)), "x"),
        lambda w, x: jnp.sum(jnp.tanh(x @ w)) / 8,
    ),
    "ring": (ring, lambda w, x: jnp.sum(jnp.sin(jnp.roll(x, 1, 0) @ w) * (x @ w))),
    "gather": (
        lambda w, x: total(jnp.sum(lax.all_gather(x, "x", tiled=True) ** 2) * jnp.sin(x @ w)),
        lambda w, x: jnp.sum(x**2) * jnp.sum(jnp.sin(x @ w)),
    ),
    "scatter": (
        lambda w, x: total(jnp.sin(lax.psum_scatter(jnp.ones((8, 1)) * (x @ w), "x", tiled=True))),
        lambda w, x: 8 * jnp.sum(jnp.sin(jnp.sum(x @ w, 0))),
    ),
    "exchange": (
        lambda w, x: total(
            jnp.sin(lax.all_to_all(jnp.arange(8.0) * (x @ w)[:, :1], "x", 1, 0, tiled=True))
        ),
        lambda w, x: jnp.sum(jnp.sin(jnp.arange(8.0) * (x @ w)[:, :1])),
    ),
    "index": (
        lambda w, x: total(jnp.sin(x @ w * lax.axis_index("x"))),
        lambda w, x: jnp.sum(jnp.sin(x @ w * jnp.arange(8.0)[:, None])),
    ),
    "layers": (lambda w, x: lax.psum(layers(w, x), "x"), layers),
    "becoming": (lambda w, x: lax.psum(becoming(w, x), "x"), becoming),
    "averages": (
        lambda w, x: averages(w, x, lambda y: lax.pmean(y, "x")),
        lambda w, x: averages(w, x, lambda y: jnp.mean(y, 0, keepdims=True)),
    ),
    "fori": (
        lambda w, x: total(lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + (x @ w) * i, x @ w)),
        lambda w, x: jnp.sum(lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + (x @ w) * i, x @ w)),
    ),
    "powers": (  # devices leave the loop at different steps
        lambda w, x: total(
            lax.fori_loop(0, lax.axis_index("x") % 3, lambda i, c: jnp.sin(c * w[0, 1]), x)
        ),
        lambda w, x: sum(
            jnp.sum(
                [x[i], jnp.sin(x[i] * w[0, 1]), jnp.sin(jnp.sin(x[i] * w[0, 1]) * w[0, 1])][i % 3]
            )
            for i in range(8)
        ),
    ),
    "until": (
        lambda w, x: total(
            lax.while_loop(lambda c: jnp.sum(c) < 3, lambda c: c * 1.5 + jnp.cos(w[:1, :2]), x)
        ),
        lambda w, x: jnp.sum(
            vmap(
                lambda r: lax.while_loop(
                    lambda c: jnp.sum(c) < 3, lambda c: c * 1.5 + jnp.cos(w[0, :2]), r
                )
            )(x)
        ),
    ),
    "cond": (
        lambda w, x: total(
            lax.cond(jnp.sum(x) > 0.5, lambda x: jnp.sin(x @ w), lambda x: (x @ w) ** 2, x)
        ),
        lambda w, x: jnp.sum(jnp.where(WHERE[:, None], jnp.sin(x @ w), (x @ w) ** 2)),
    ),
    "cond-shared": (  # neither branch has what differs
        lambda w, x: total(lax.cond(jnp.sum(x) > 0.5, lambda: jnp.sin(w), lambda: w * 2)),
        lambda w, x: WHERE.sum() * jnp.sum(jnp.sin(w)) + (~WHERE).sum() * jnp.sum(w * 2),
    ),
    "cond-one": (  # one of the branches gives what all have
        lambda w, x: total(
            lax.cond(lax.psum(jnp.sum(x), "x") > 0, lambda: x @ w, lambda: jnp.zeros((1, 3)))
        ),
        lambda w, x: jnp.sum(x @ w),
    ),
    "switch": (
        lambda w, x: total(
            lax.switch(
                lax.axis_index("x") % 2, [lambda: jit(jnp.sin)(x @ w), lambda: x @ jnp.cos(w)]
            )
        ),
        lambda w, x: jnp.sum(jnp.sin(x[::2] @ w)) + jnp.sum(x[1::2] @ jnp.cos(w)),
    ),
    "custom_vjp": (
        lambda w, x: total(doubled_in_reverse(w, x)),
        lambda w, x: jnp.sum(doubled_in_reverse(w, x)),
    ),
    "custom_jvp": (lambda w, x: total(tripled(x @ w)), lambda w, x: jnp.sum(tripled(x @ w))),
    "checkpoint": (
        lambda w, x: lax.psum(layers(w, x, weft.checkpoint), "x"),
        lambda w, x: layers(w, x),
    ),
    "checkpoint-dots": (
        lambda w, x: total(DOTS(w, x)),
        lambda w, x: jnp.sum(jnp.sin(jnp.tanh(x @ w))),
    ),
    "checkpoint-names": (
        lambda w, x: total(SAVED(x @ w)),
        lambda w, x: jnp.sum(jnp.sin(jnp.sin(x @ w))),
    ),
    "jit": (
        lambda w, x: jit(lambda w, x: total(jnp.sin(x @ w)))(w, x),
        lambda w, x: jnp.sum(jnp.sin(x @ w)),
    ),
    "vmap": (
        lambda w, x: total(vmap(lambda c: jnp.sin(x @ c) * x[:, 0], 1)(w)),
        lambda w, x: jnp.sum(jnp.sin(x @ w) * x[:, :1]),
    ),
}
REVERSE_ONLY = {"custom_vjp"}
ONCE = {"until"}  # reverse mode over reverse mode of unbounded loops is control/loop.py's matter
programs = pytest.mark.parametrize("name", PROGRAMS)
checks = pytest.mark.parametrize("check_vma", [True, False])


def both(names):
    """Each program with and without checks, as one parameter, so that a sample may skip some."""
    cases = [(name, check_vma) for name in names for check_vma in (True, False)]
    return pytest.mark.parametrize("case", cases, ids=lambda case: f"{case[0]}-{case[1]}")


def pair(name, check_vma):
    """A program over the devices, and on one."""
    own, whole = PROGRAMS[name]
    return on_line(own, (P(), P("x")), P(), check_vma=check_vma), whole


@pytest.mark.sample(one_in=8)
@programs
@checks
def test_values_and_gradients(name, check_vma):
    """Every program compiled as a whole, and one of three by itself too."""
    f, whole = pair(name, check_vma)
    want = jit(value_and_grad(whole, (0, 1)))(W, X)
    close(jit(value_and_grad(f, (0, 1)))(W, X), want)
    if ALL or list(PROGRAMS).index(name) % 3 == 0:
        close(f(W, X), want[0])
        close(value_and_grad(f, (0, 1))(W, X), want)


@pytest.mark.sample(one_in=12)
@both(PROGRAMS)
def test_forward_mode_and_maps(case):
    name, _ = case
    f, whole = pair(*case)
    ws, xs = jnp.stack([W, W + 0.1]), jnp.stack([X, X * 0.9], 1)
    if name not in REVERSE_ONLY:
        forward = lambda f: jit(lambda *t: jvp(f, (W, X), t))(W + 1, X)
        close(forward(f), forward(whole))
    if "cond" in name or name in REVERSE_ONLY:  # the reference knows the places of rows only for X
        xs = jnp.stack([X, X], 1)
    close(vmap(f, (None, 1))(W, xs), jit(vmap(whole, (None, 1)))(W, xs))
    each = lambda g: jit(vmap(grad(g), (0, None)))(ws, X)
    close(each(f), each(whole))
    summed = lambda g: jit(grad(lambda ws: jnp.sum(vmap(g, (0, None))(ws, X))))(ws)
    close(summed(f), summed(whole))


@pytest.mark.sample(one_in=12)
@both(n for n in PROGRAMS if n not in REVERSE_ONLY | ONCE)
def test_second_derivatives(case):
    f, whole = pair(*case)
    length = lambda g: lambda w: jnp.sum(grad(g)(w, X) ** 2)
    second = lambda g: jit(grad(length(g)))(W)
    close(second(f), second(whole), 1e-3)
    mixed = lambda g: jit(lambda w, x: jvp(grad(g), (w, x), (w, x))[1])(W, X)
    close(mixed(f), mixed(whole), 1e-3)


@checks
def test_hessians(check_vma):
    f, whole = pair("sum", check_vma)
    close(jit(hessian(f, (0, 1)))(W, X), jit(hessian(whole, (0, 1)))(W, X), 1e-3)
    wide = on_line(
        lambda w, x: lax.psum(jnp.sin(x @ w), "x"), (P(), P("x")), P(), check_vma=check_vma
    )
    plain = lambda w, x: jnp.sum(jnp.sin(x @ w), 0, keepdims=True)
    for argnum in (0, 1):
        want = weft.jacfwd(plain, argnum)(W, X)
        close(weft.jacrev(wide, argnum)(W, X), want)
        close(weft.jacfwd(wide, argnum)(W, X), want)


# --- derivatives taken within the program ---------------------------------------------------------


def test_a_derivative_within_is_that_of_all_devices():
    """JAX 0.10.2 agrees: shared values get the sum of the devices' derivatives."""
    f = on_line(lambda w, x: grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w), (P(), P("x")), P())
    close(f(W, X), grad(lambda w: jnp.sum(jnp.tanh(X @ w)))(W))
    custom = on_line(
        lambda w, x: grad(lambda w: jnp.sum(doubled_in_reverse(w, x)))(w), (P(), P("x")), P()
    )
    close(custom(W, X), 2 * grad(lambda w: jnp.sum(jnp.tanh(X @ w)))(W))


def test_a_derivative_within_is_ones_own_where_asked():
    def own(w, x):
        w = lax.pcast(w, "x", to="varying")
        return grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)[None]

    want = vmap(lambda r: grad(lambda w: jnp.sum(jnp.tanh(r @ w)))(W))(X)
    close(on_line(own, (P(), P("x")))(W, X), want)
    plain = lambda w, x: grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)[None]
    close(on_line(plain, (P(), P("x")), check_vma=False)(W, X), want)


@checks
def test_a_derivative_within_through_psum(check_vma):
    """JAX 0.10.2: the sum is differentiated once; unchecked, each device adds its own."""
    f = on_line(
        lambda w, x: grad(lambda x: total(jnp.tanh(x @ w)))(x), (P(), P("x")), check_vma=check_vma
    )
    times = 1 if check_vma else 8
    close(f(W, X), times * grad(lambda x: jnp.sum(jnp.tanh(x @ W)))(X))


def test_custom_tangents_must_not_differ_where_outputs_do_not():
    @weft.custom_jvp
    def f(x):
        return lax.psum(x, "x")

    f.defjvp(lambda p, t: (f(*p), t[0]))
    text = (
        "custom_jvp: a tangent from the rule of f must not differ between devices where its output "
        "does not; got f32[1,2]{V:x} for an output f32[1,2]. Hint: lax.psum(t, 'x'), if the "
        "output is a psum."
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        jvp(on_line(f, P("x"), P()), (X,), (X,))


def test_a_cotangent_that_all_devices_share_may_be_that_of_each():
    @weft.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (jnp.full((1, 2), 7.0),))
    close(grad(lambda x: jnp.sum(on_line(f)(x)))(X), np.full_like(X, 7))


# --- over several axes ----------------------------------------------------------------------------


def test_two_axes_and_their_orders():
    f = lambda x: (
        lax.psum(x, "a"),
        lax.psum(x, ("a", "b")),
        lax.axis_index("a")[None] + 10 * lax.axis_index("b")[None],
    )
    specs = (P("b"), P(), P(("b", "a")))
    one, both, places = shard_map(f, mesh=GRID, in_specs=P(("a", "b")), out_specs=specs)(X)
    close(one, X[:4] + X[4:])
    close(both, X.sum(0, keepdims=True))
    assert places.tolist() == [i + 10 * j for j in range(4) for i in range(2)]
    turned = shard_map(
        lambda x: x * lax.axis_index(("b", "a")), mesh=GRID, in_specs=P(("b", "a")),
        out_specs=P(("b", "a")),
    )  # fmt: skip
    close(turned(X), X * np.arange(8)[:, None])


def test_a_product_in_blocks():
    a = np.arange(32, dtype=np.float32).reshape(4, 8) / 8
    b = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
    f = shard_map(
        lambda a, b: lax.psum(a @ b, "b"),
        mesh=GRID,
        in_specs=(P("a", "b"), P("b")),
        out_specs=P("a"),
    )
    close(f(a, b), a @ b)
    assert f(a, b).sharding.spec == P("a")
    want = grad(lambda a, b: jnp.sum(jnp.tanh(a @ b)), (0, 1))(a, b)
    close(jit(grad(lambda a, b: jnp.sum(jnp.tanh(f(a, b))), (0, 1)))(a, b), want)


def test_weights_that_are_gathered_for_use():
    ws = np.stack([np.eye(8, dtype=np.float32) * 0.3 + 0.1 * i for i in range(2)])
    xs = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)

    def loss(ws, x):
        body = lambda c, w: (jnp.tanh(c @ lax.all_gather(w, "x", tiled=True)), None)
        return total(lax.scan(body, x, ws)[0] ** 2)

    f = on_line(loss, (P(None, "x"), P("x")), P())
    whole = lambda ws, x: jnp.sum(jnp.tanh(jnp.tanh(x @ ws[0]) @ ws[1]) ** 2)
    close(jit(value_and_grad(f, (0, 1)))(ws, xs), value_and_grad(whole, (0, 1))(ws, xs))


# --- some axes by hand, others by the compiler ----------------------------------------------------


def test_partial_axes_leave_the_rest_to_the_compiler():
    f = shard_map(
        lambda x: lax.psum(x, "a"), mesh=GRID, in_specs=P("a"), out_specs=P(), axis_names={"a"}
    )
    close(f(X), X[:4] + X[4:])
    placed = weft.device_put(X, NamedSharding(GRID, P(("a", "b"))))
    out = jit(f)(placed)
    close(out, X[:4] + X[4:])
    assert out.sharding.spec == P("b")  # not gathered
    text = jit(f).lower(placed).as_text()
    assert 'in_shardings = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>' in text
    assert 'manual_axes = #sdy<manual_axes{"a"}>' in text


@pytest.mark.parametrize("named", [True, False])
def test_one_within_another(named):
    rest = {"axis_names": {"b"}} if named else {}

    def outer(x):
        inner = lambda y: lax.psum(jnp.sin(y), "b") * (1 + lax.axis_index("a"))
        return lax.psum(shard_map(inner, in_specs=P("b"), out_specs=P(), **rest)(x), "a")

    with weft.set_mesh(GRID):
        f = shard_map(outer, in_specs=P("a"), out_specs=P(), axis_names={"a"})
        whole = lambda x: (jnp.sin(x[:4]).sum(0) + 2 * jnp.sin(x[4:]).sum(0))[None]
        close(f(X), whole(X))
        loss = lambda g: lambda x: jnp.sum(g(x) ** 2)
        close(jit(grad(loss(f)))(X), grad(loss(whole))(X))  # JAX 0.10.2 does not lower it
        close(vmap(f)(jnp.stack([X, X * 2])), np.stack([whole(X), whole(X * 2)]))


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("outer", [{"a"}, {"b"}, {"a", "b"}])
@pytest.mark.parametrize("inner", [{}, {"a"}, {"b"}, {"a", "b"}])
def test_axes_of_one_around_are_left_out(outer, inner, check):
    """JAX 0.10.2 does so too, except eagerly; and it does not lower the gradients."""
    named = {"axis_names": inner} if inner else {}
    x, split = np.arange(8, dtype=np.float32), sorted(outer)[0]

    def within(x):
        return shard_map(jnp.sin, in_specs=P(), out_specs=P(), check_vma=check, **named)(x)

    specs = dict(in_specs=P(split), out_specs=P(split), axis_names=outer, check_vma=check)
    f = shard_map(within, mesh=GRID, **specs)
    close(jit(f)(x), np.sin(x))
    if check:
        close(f(x), np.sin(x))
        close(jit(grad(lambda x: jnp.sum(f(x))))(x), np.cos(x))


def test_one_within_another_must_be_over_other_axes():
    x = np.zeros((64, 2), np.float32)
    text = (
        "shard_map: in_specs must name axes of the mesh that the function is for; got 'x' in "
        "P('x',) where those are none, since a shard_map around is for them."
    )
    for check in (True, False):
        one = on_line(lambda x: x, check_vma=check)
        with pytest.raises(ValueError, match=re.escape(text)):
            on_line(lambda x, f=one: f(x), check_vma=check)(x)
    grid = shard_map(lambda x: x, mesh=GRID, in_specs=P("a"), out_specs=P("a"))
    mapped = weft.pmap(on_line(lambda x: x), axis_name="p")
    text = "within a shard_map or a pmap one must be over other axes of the same mesh; got '[abx]'"
    for f, arg in ((on_line(grid), x), (mapped, x.reshape(8, 8, 2))):
        with pytest.raises(ValueError, match=text):
            f(arg)
    turned = weft.sharding.Mesh(GRID.devices[::-1], GRID.axis_names)  # as large, of others
    for mesh in (GRID, GRID.abstract_mesh, turned):
        over_b = dict(mesh=mesh, in_specs=P("b"), out_specs=P(), axis_names={"b"})
        inner = shard_map(lambda x: lax.psum(x, "b"), **over_b)
        outer = shard_map(inner, mesh=GRID, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
        with pytest.raises(ValueError, match=text) if mesh is turned else contextlib.nullcontext():
            assert jit(outer).lower(x).out_info.shape == (16, 2)
    with pytest.raises(NotImplementedError, match="pmap: must not be within a shard_map"):
        on_line(weft.pmap(lambda x: x, axis_name="p"))(x)


# --- inputs and outputs
# ----------------------------------------------------------------------------


def test_pytrees_prefixes_and_nothing():
    f = lambda d, y, none: {"s": lax.psum(d["a"], "x"), "t": (d["b"] * y, [d["a"], None])}
    specs = ({"a": P("x"), "b": P()}, P(), P())
    out = on_line(f, specs, {"s": P(), "t": (P(), P("x"))})({"a": X, "b": W}, 2.0, None)
    close(out, {"s": X.sum(0)[None], "t": (W * 2, [X, None])})
    close(on_line(lambda d, y: (d, y))({"a": X}, X + 1), ({"a": X}, X + 1))
    assert on_line(lambda x: ())(X) == ()
    close(on_line(lambda x: (x, 3, np.ones(2)), P("x"), (P("x"), P(), P()))(X), (X, 3, np.ones(2)))


def test_what_it_closes_over():
    c = jnp.arange(2.0)
    spread = weft.device_put(np.arange(8.0), NamedSharding(LINE, P("x")))
    close(on_line(lambda x: x + c)(X), X + np.arange(2))
    close(on_line(lambda x: x + spread.sum())(X), X + 28)
    close(on_line(lambda x: x * np.arange(2, dtype=np.float32))(X), X * np.arange(2))
    f = lambda c: jnp.sum(on_line(lambda x: jnp.sin(x * c))(X) ** 2)
    whole = lambda c: jnp.sum(jnp.sin(X * c) ** 2)
    close(jit(hessian(f))(c), hessian(whole)(c), 1e-3)
    close(vmap(f)(jnp.arange(6.0).reshape(3, 2)), vmap(whole)(jnp.arange(6.0).reshape(3, 2)))


def test_where_results_lie():
    out = on_line(lambda x: (x, lax.psum(x, "x")), P("x"), (P("x"), P()))(X)
    assert [y.sharding for y in out] == [NamedSharding(LINE, P("x")), NamedSharding(LINE, P())]
    back = grad(lambda w, x: pair("checkpoint", True)[0](w, x), (0, 1))(W, X)
    assert [g.sharding.spec for g in back] == [P(), P("x")]
    for spec in (P(None, None), P("x", None), P()):  # as given, for eager results
        out = shard_map(same, mesh=LINE, in_specs=spec, out_specs=spec)(X)
        assert out.sharding == NamedSharding(LINE, spec) and out.sharding.spec == spec


def test_within_loops_and_branches():
    f = on_line(lambda c, x: jnp.tanh(c + lax.psum(x, "x")), (P(), P("x")), P())
    plain = lambda c, x: jnp.tanh(c + jnp.sum(x, 0))
    xs, c = jnp.stack([X, X * 2]), jnp.zeros((1, 2))
    scan = lambda g: lambda c, xs: jnp.sum(lax.scan(lambda c, x: (g(c, x), c), c, xs)[0])
    close(jit(value_and_grad(scan(f), (0, 1)))(c, xs), value_and_grad(scan(plain), (0, 1))(c, xs))
    until = lambda g: lax.while_loop(lambda c: jnp.sum(c) > -1, lambda c: c + g(c, X) - 2, c)
    close(until(f), until(plain))
    close(jit(lambda p: lax.cond(p, lambda: f(c, X), lambda: c))(True), plain(c, X))


def test_a_bounded_loop_that_devices_leave_at_different_steps():
    def own(w, x):
        more = lambda c: c * 1.5 + jnp.cos(w[:1, :2])
        return total(lax.while_loop(lambda c: jnp.sum(c) < 3, more, x, max_steps=3))

    def whole(w, x):
        for _ in range(3):
            x = jnp.where(x.sum(1, keepdims=True) < 3, x * 1.5 + jnp.cos(w[:1, :2]), x)
        return jnp.sum(x)

    f = on_line(own, (P(), P("x")), P())
    close(value_and_grad(f, (0, 1))(W, X), value_and_grad(whole, (0, 1))(W, X))


def test_keys():
    def normals(key, x):
        return x + weft.random.normal(weft.random.fold_in(key, lax.axis_index("x")), x.shape)

    key = weft.random.key(0)
    want = [X[i] + weft.random.normal(weft.random.fold_in(key, i), (1, 2))[0] for i in range(8)]
    close(on_line(normals, (P(), P("x")))(key, X), np.stack(want))
    keys = weft.random.split(key, 8)
    out = on_line(lambda k: weft.random.split(k[0], 2))(keys)
    want = jnp.stack([weft.random.key_data(weft.random.split(keys[i], 2)) for i in range(8)])
    close(weft.random.key_data(out), want.reshape(16, -1))


def test_callbacks_and_prints(capfd):
    double = lambda x: weft.pure_callback(
        lambda x: np.asarray(x) * 2, weft.ShapeDtypeStruct(x.shape, x.dtype), x
    )
    close(on_line(double)(X), X * 2)
    noted = []
    f = on_line(
        lambda x: (weft.debug.callback(lambda i: noted.append(int(i)), lax.axis_index("x")), x)[1]
    )
    close(grad(lambda x: jnp.sum(f(x)))(X), np.ones_like(X))
    weft.effects_barrier()
    assert sorted(noted) == list(range(8))
    weft.effects_barrier()
    on_line(lambda x: (weft.debug.print("part {}", x.shape[1]), x)[1])(X)
    weft.effects_barrier()
    assert capfd.readouterr().out.count("part 2") == 8


def test_without_jit_and_with_checks():
    f, whole = pair("layers", True)
    with weft.disable_jit():
        close(f(W, X), whole(W, X))
    with weft.debug_nans(True):
        close(f(W, X), whole(W, X))
        with pytest.raises(FloatingPointError):
            on_line(jnp.log)(X - 10)
    with weft.enable_checks(True):
        close(value_and_grad(f)(W, X), value_and_grad(whole)(W, X))


def test_a_second_call_traces_nothing(monkeypatch):
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return lax.psum(x, "x")

    mapped = jit(on_line(f, P("x"), P()))
    for _ in range(3):
        mapped(X)
    jit(on_line(f, P("x"), P()))(X)  # made anew, of the same function
    assert count == 1
    mapped(X[:, :1])
    assert count == 2
    mapped(weft.device_put(X[:, :1], NamedSharding(LINE, P("x"))))
    assert count == 2
    outside = on_line(lambda x: f(x), P("x"), P())
    first = outside(X)
    with monkeypatch.context() as patch:  # runs the function again, and compiles nothing
        patch.setattr("weft.run.programs.lower_program", None)
        close(outside(X), first)
    assert count == 4


def test_what_python_sees_of_values_at_once(capsys):
    seen = []

    def f(x, w):
        print(x)
        total = lax.psum(x.sum(), ("a", "b"))
        seen.append((float(total), bool(total > 3), np.asarray(total) + 1, f"{total:.1f}"))
        doubled = 0
        while lax.pmax(jnp.abs(x).max(), ("a", "b")) < 9:  # the same number of times on all devices
            x, doubled = x * 2, doubled + 1
        seen.append(doubled)
        for ask in (bool, float, np.asarray, "{:.1f}".format):
            with pytest.raises(
                TypeError, match="needs a value that is the same on all devices; go"
            ):
                ask(x.sum())
        seen.append(repr(lax.pcast(w.sum(), "a", to="varying")).count("0.0"))
        return x

    typed = Mesh(GRID.devices, GRID.axis_names, AxisType.Explicit)
    x = weft.device_put(X, NamedSharding(typed, P(("b", "a"))))
    f = shard_map(f, out_specs=P(("b", "a")))
    close(f(x, W), X * 8)
    shown = capsys.readouterr().out
    assert shown.startswith("On cpu:0 at mesh coordinates (a, b,) = (0, 0):\n[[-0.71428573 -0.5714")
    assert shown.count("On cpu:") == 8
    at = shown.index("On cpu:4 at mesh coordinates (a, b,) = (1, 0):")
    assert shown[at:].split("\n")[1] == str(X[1:2])
    total = X.sum(dtype=np.float32)
    assert seen[0] == (float(total), True, total + 1, f"{total:.1f}")
    assert seen[1:] == [3, 8]
    f(x, W)
    assert capsys.readouterr().out == shown and len(seen) == 6  # at each call
    unchecked = on_line(lambda x: x * (1 if lax.psum(x.sum(), "x") > 3 else 0), check_vma=False)
    close(unchecked(X), X)
    part = shard_map(lambda x: print(x) or x, mesh=GRID, in_specs=P("a"), out_specs=P("a"),
                     axis_names={"a"})  # fmt: skip
    part(X)
    assert (
        "On cpu:4, cpu:5, cpu:6, cpu:7 at mesh coordinates (a,) = (1,):" in capsys.readouterr().out
    )
    with pytest.raises(TypeError, match="a traced bool"):
        jit(on_line(lambda x: x if lax.psum(x.sum(), "x") > 3 else -x))(X)


def test_how_it_prints():
    """It equals JAX 0.10.2's, except for `manual_axes` (`newly_manual_axes=frozenset(...)`)."""
    f = shard_map(
        lambda x: lax.psum(jnp.sin(x), ("a", "b")), mesh=GRID, in_specs=P(("a", "b")), out_specs=P()
    )
    assert (
        str(make_jaxpr(f)(X))
        == """\
{ lambda ; a:f32[8,2]. let
    b:f32[1,2] = shard_map[
      check_vma=True
      in_specs=(P(('a', 'b'),),)
      jaxpr={ lambda ; c:f32[1,2]{V:(a,b)}. let
          d:f32[1,2]{V:(a,b)} = sin c
          e:f32[1,2] = psum_invariant[axes=('a', 'b')] d
        in (e,) }
      manual_axes=('a', 'b')
      mesh=Mesh('a': 2, 'b': 4, axis_types=(Auto, Auto))
      out_specs=(P(),)
    ] a
  in (b,) }"""
    )


def test_linear_maps():
    f = on_line(lambda x: lax.psum(x * 2, "x"), P("x"), P())
    (back,) = weft.linear_transpose(f, X)(jnp.ones((1, 2)))
    close(back, np.full_like(X, 2))
    y, push = weft.linearize(on_line(lambda x: lax.psum(jnp.sin(x), "x"), P("x"), P()), X)
    close(push(X), np.sum(np.cos(X) * X, 0)[None])
    _, pull = vjp(
        on_line(lambda w, x: (x @ w, lax.psum(x, "x")), (P(), P("x")), (P("x"), P())), W, X
    )
    close(
        pull((jnp.ones((8, 3)), jnp.ones((1, 2)))),
        (X.sum(0)[:, None] * np.ones(3), W.sum(1) + np.ones_like(X)),
    )


# --- bad input ------------------------------------------------------------------------------------


def same(x):
    return x


BAD = {
    "sizes": (lambda: on_line(same)(X[:6]), ShapeError,
        "shard_map: sizes must be multiples of the mesh axes that split them; got 6 in axis 0 of "
        "f32[6,2], split over 'x' (8) by P('x',), argument `x` of same at test_shard_map.py:LINE. "
        "Hint: pad it to 8."),
    "in axis": (lambda: on_line(same, P("q"))(X), ValueError,
        "shard_map: in_specs must name axes of the mesh that the function is for; got 'q' in "
        "P('q',) where those are 'x'."),
    "out axis": (lambda: on_line(same, P("x"), P("q"))(X), ValueError,
        "shard_map: out_specs must name axes of the mesh that the function is for; got 'q' in "
        "P('q',) where those are 'x'."),
    "automatic axis": (
        lambda: shard_map(same, mesh=GRID, in_specs=P("b"), out_specs=P(), axis_names={"a"})(X),
        ValueError,
        "shard_map: in_specs must name axes of the mesh that the function is for; got 'b' in "
        "P('b',) where those are 'a'."),
    "axis_names": (
        lambda: shard_map(same, mesh=GRID, in_specs=P(), out_specs=P(), axis_names={"q"})(X),
        ValueError,
        "shard_map: axis_names must be axes of the mesh; got 'q', and ('a', 'b') are in it."),
    "in structure": (lambda: on_line(same, (P("x"), P("x")))(X), PytreeError,
        "shard_map: in_specs must be a tree prefix of the arguments; got a tuple of length 2 at "
        "in_specs where the arguments has a tuple of length 1."),
    "out structure": (lambda: on_line(same, P("x"), (P(), P()))(X), PytreeError,
        "shard_map: out_specs must be a tree prefix of the result; got a tuple of length 2"),
    "spec too long": (lambda: on_line(same, P(None, None, "x"))(X), ShapeError,
        "shard_map: a spec must not have more entries than the array has axes; got "
        "P(None, None, 'x') for f32[8,2] argument `x` of same at test_shard_map.py:LINE."),
    "out spec too long": (lambda: on_line(lambda x: jnp.sum(x))(X), ShapeError,
        "shard_map: a spec must not have more entries than the array has axes; got P('x',) for "
        "f32[]{V:x}, result of <lambda>. Hint: return x[None] to give it an axis, or P() where all "
        "devices have the same."),
    "no spec": (lambda: on_line(same, "x")(X), TypeError,
        "shard_map: in_specs must hold a PartitionSpec for each array; got 'x' of type str. Hint: "
        "P() where all devices have all of it."),
    "not replicated": (lambda: on_line(same, P("x"), P())(X), ValueError,
        "shard_map: out_specs must name the axes along which a result differs between devices; got "
        "P() for f32[1,2]{V:x}, result of same, which differs along 'x': argument `x` of same at "
        "test_shard_map.py:LINE, which in_specs split over 'x'. Hint: P('x') to have all of them, "
        "lax.psum(x, 'x') to add them up, or check_vma=False if they are the same."),
    "not replicated, made": (
        lambda: on_line(lambda x: {"a": jnp.sin(x)}, P("x"), P())(X), ValueError,
        "for f32[1,2]{V:x}, result['a'] of <lambda>, which differs along 'x': made by `jnp.sin(x)` "
        "at test_shard_map.py:LINE of argument `x` of <lambda>"),
    "not replicated, index": (
        lambda: on_line(lambda x: lax.axis_index("x"), P("x"), P())(X), ValueError,
        "made by `lax.axis_index(\"x\")` at test_shard_map.py:LINE of what `axis_index` gave."),
    "not replicated, branch": (
        lambda: on_line(lambda x: lax.cond(x[0, 0] > 0, lambda: 1.0, lambda: 0.0), P("x"), P())(X),
        ValueError, "for f32[]{V:x}, result of <lambda>, which differs along 'x'"),
    "not replicated, loop": (
        lambda: on_line(
            lambda x: lax.while_loop(lambda c: c < x[0, 0], lambda c: c + 1, 0.0), P("x"), P())(X),
        ValueError, "for f32[]{V:x}, result of <lambda>, which differs along 'x'"),
    "not replicated, steps": (
        lambda: on_line(
            lambda x: lax.fori_loop(0, lax.axis_index("x"), lambda i, c: c + 1, 0), P("x"), P())(X),
        ValueError, "for i32[]{V:x}, result of <lambda>, which differs along 'x'"),
    "unbound": (lambda: on_line(lambda x: lax.psum(x, "k"))(X), UnboundAxisError,
        "psum: axis_name must be an axis in scope; got 'k', in scope 'x' (size 8). Hint: vmap(f, "
        "axis_name='k'), or shard_map over a mesh with this axis."),
    "outside": (lambda: lax.psum(X, "x"), UnboundAxisError,
        "psum: axis_name must be an axis in scope; got 'x', in scope none."),
    "no mesh": (lambda: shard_map(same, in_specs=P("x"), out_specs=P("x"))(X), ValueError,
        "shard_map: needs a mesh of devices; got None, and none in scope. Hint: shard_map(f, "
        "mesh=weft.make_mesh((4,), ('x',)), ...), or weft.set_mesh(mesh)."),
    "two meshes": (
        lambda: jit(lambda x: on_line(same)(x) + shard_map(
            same, mesh=Mesh(DEVICES[:4], ("x",)), in_specs=P("x"), out_specs=P("x"))(x))(X),
        ValueError, "jit: operands must be on one device, or over one mesh; got "),
    "elsewhere": (lambda: on_line(same)(weft.device_put(X, weft.devices()[3])), ValueError,
        "got f32[8,2] on CpuDevice(id=3) where another is on 8 devices"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    call, error, text = BAD[name]
    pattern = re.escape(text).replace("LINE", r"\d+")
    with pytest.raises(error, match=pattern):
        call()


# --- programs within a branch that only some devices take ---------------------------------------


def held_in_a_branch(kind):
    """A function of (w, x) whose branch holds a program that closes over w, which devices share."""
    ones = np.ones((2, 3), np.float32)
    step = lambda c, t, w: jnp.sin(c @ w) @ ones * t
    held = {
        "scan": lambda w, x: lax.scan(lambda c, t: (step(c, t, w), None), x, jnp.arange(1, 3.0))[0],
        "fori": lambda w, x: lax.fori_loop(0, 2, lambda i, c: step(c, i + 1.0, w), x),
        "checkpoint": lambda w, x: weft.checkpoint(step)(x, 2.0, w),
        "cond": lambda w, x: lax.cond(x[0, 0] > 0, lambda: step(x, 1.0, w), lambda: x),
        "scan of checkpoint": lambda w, x: lax.scan(
            weft.checkpoint(lambda c, t: (step(c, t, w), None)), x, jnp.arange(1, 3.0)
        )[0],
    }[kind]
    return lambda w, x: jnp.sum(lax.cond(jnp.sum(x) > 1, lambda: held(w, x), lambda: x))


@pytest.mark.parametrize("kind", ["scan", "fori", "checkpoint", "cond", "scan of checkpoint"])
def test_what_a_branch_of_some_devices_holds_sums_its_cotangents_outside(kind):
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 2)).astype(np.float32)
    x = (rng.normal(size=(4, 3)) + np.array([[2], [2], [-2], [-2]])).astype(np.float32)
    one = held_in_a_branch(kind)
    mesh = Mesh(np.array(weft.devices()[:2]), ("x",))
    f = weft.shard_map(
        lambda w, x: lax.psum(one(w, x), "x"), mesh=mesh, in_specs=(P(), P("x")), out_specs=P()
    )
    want = grad(lambda w: one(w, x[:2]) + one(w, x[2:]))(w)
    np.testing.assert_allclose(jit(grad(f))(w, x), want, rtol=1e-5, atol=1e-6)


def test_one_axis_at_a_time():
    with weft.set_mesh(GRID):
        rows = weft.smap(lambda x: lax.psum(x, "a"), in_axes=0, out_axes=None, axis_name="a")
        close(rows(X), X[:4] + X[4:])
        both = weft.smap(
            lambda x: weft.smap(lambda y: y + lax.axis_index("b"), in_axes=0, out_axes=0,
                                axis_name="b")(x), in_axes=-1, out_axes=-1, axis_name="a"
        )  # fmt: skip
        close(both(X), X + np.repeat(np.arange(4), 2)[:, None])
        tree = weft.smap(in_axes=({"u": 0, "v": None},), out_axes={"w": 1, "z": 0}, axis_name="b")(
            lambda t: {"w": t["u"].T, "z": t["v"].sum(keepdims=True) * t["u"]}
        )
        close(tree({"u": X, "v": W}), {"w": X.T, "z": W.sum() * X})
        for settings, text in [
            ({}, "shard_map: in_specs must be given where types do not say how arguments lie"),
            ({"in_axes": [0]}, r"smap: in_axes must be an integer, .*; got \[0\]"),
            (
                {"in_axes": 0, "axis_name": ("a", "b")},
                "smap: axis_name must be the name of one axis",
            ),
            ({"in_axes": 2}, r"smap: an axis of an array of rank 2 must be in \[-2, 2\); got 2"),
            ({"in_axes": 0, "axis_name": "q"}, "axis_names must be axes of the mesh; got 'q'"),
        ]:
            with pytest.raises((TypeError, ValueError), match=text):
                weft.smap(lambda x: x, **{"axis_name": "a", "out_axes": 0, **settings})(X)
