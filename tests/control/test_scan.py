"""`scan` as a primitive: each rule against the same loop in Python, and what the programs hold."""

import functools

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, jvp, lax, linearize, make_jaxpr, tree, vjp, vmap
from weft.api.closures import find_closed_over
from weft.control.scan import scan_p
from weft.extend.core import subjaxprs
from weft.passes.dce import dce_jaxpr
from weft.passes.dependence import find_dependences
from weft.transforms.linearize import linearize as linearize_flat

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)).astype(np.float32) * 0.4
H = np.ones(3, np.float32)
XS = RNG.normal(size=(4, 3)).astype(np.float32)
ROWS = RNG.normal(size=(4, 2, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def checked():
    """Every program is checked after every pass."""
    with weft.enable_checks():
        yield


def loop(f, carry, xs=None, length=None, reverse=False):
    """The oracle: `lax.scan` as a loop in Python."""
    leaves = tree.leaves(xs)
    n = length if not leaves else len(leaves[0])
    ys = []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, tree.map(lambda x, i=i: x[i], xs))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree.map(lambda *parts: jnp.stack([jnp.asarray(p) for p in parts]), *ys)


def close(x, y, tol=2e-4):
    assert tree.structure(x) == tree.structure(y)
    for a, b in zip(tree.leaves(x), tree.leaves(y), strict=True):
        np.testing.assert_allclose(
            np.asarray(a, np.complex128), np.asarray(b, np.complex128), rtol=tol, atol=tol / 10
        )


def equations(jaxpr, name="scan"):
    """The equations of a program and of those it holds that apply the named primitive."""
    found = [e for e in jaxpr.eqns if e.primitive.name == name]
    for sub in subjaxprs(jaxpr):
        found += equations(sub, name)
    return found


# --------------------------------------------------------------------------------------------
# Programs, as functions of (scan, w, h, xs); each returns a scalar.


def rnn(scan, w, h, xs):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h * 2.0

    h, ys = scan(step, h, xs)
    return (ys**2).sum() + jnp.sin(h).sum()


def backwards(scan, w, h, xs):
    def step(c, x):
        c = {"h": jnp.sin(c["h"] @ w) * x, "n": c["n"] + 1}
        return c, (c["h"] * c["n"], None, x)

    c, (ys, _, same) = scan(step, {"h": h, "n": 0}, xs, reverse=True)
    return (ys * same).sum() + (c["h"] * c["n"]).sum()


def without_carry(scan, w, h, xs):
    return (scan(lambda c, x: (c, jnp.exp(x @ w) * h), None, xs)[1] ** 2).sum()


def without_xs(scan, w, h, xs):
    def step(c, _):
        return (c[1], jnp.cos(c[0] @ w) + xs[0]), c[0].sum()

    c, ys = scan(step, (h, 2 * h), None, length=3)
    return c[0].sum() * ys.sum()


def reset(scan, w, h, xs):
    """A carry that each step replaces, and one that no step changes."""

    def step(c, x):
        old, fixed = c
        return (jnp.sin(x) * fixed, fixed), old @ w

    (last, fixed), ys = scan(step, (h, w[0]), xs)
    return (ys * last).sum() + (fixed * h).sum()


def averaged(scan, w, h, xs):
    """A carry that follows another without a derivative."""

    def step(c, x):
        h, mean = c
        h = jnp.tanh(h @ w + x)
        return (h, 0.9 * mean + 0.1 * lax.stop_gradient(h)), mean * h

    (h, mean), ys = scan(step, (h, jnp.zeros(3)), xs)
    return ys.sum() + (h * mean).sum()


def nested(scan, w, h, xs):
    def outer(c, x):
        h, n = c

        @jit
        def inner(h, z):
            h = jnp.tanh(h * z + x @ w)
            return h, h.sum() * n

        h, ys = scan(inner, h, xs[:2, 0])
        return (h, n + 1), ys.sum()

    (h, n), ys = scan(outer, (h, 1), xs)
    return (ys**2).sum() + h.sum() * n


def with_rules(scan, w, h, xs):
    """Functions with derivatives of their own, and a scan of one step."""

    @weft.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda p, t: (cube(*p), 3.0 * p[0] ** 2 * t[0]))

    @weft.custom_vjp
    def twice(x):
        return 2.0 * x

    twice.defvjp(lambda x: (twice(x), x), lambda x, ct: (2.0 * ct,))

    def step(h, x):
        h = cube(jnp.sin(h)) + twice(x) * h
        return h, scan(lambda c, y: (c * y, c), h, w[:1])[0]

    h, ys = scan(step, h, xs)
    return (h * ys).sum()


PROGRAMS = [rnn, backwards, without_carry, without_xs, reset, averaged, nested]
TRANSFORMS = {
    "value": lambda f: f,
    "jit": jit,
    "grad": lambda f: grad(f, (0, 1, 2)),
    "jit grad": lambda f: jit(grad(f, (0, 1, 2))),
    "grad jit": lambda f: grad(jit(f), (0, 1, 2)),
    "jvp": lambda f: lambda *args: jvp(f, args, args),
    "linearize": lambda f: lambda *args: linearize(f, *args)[1](*args),
    "hessian": lambda f: jit(weft.hessian(f, (0, 1))),
    "jacrev jacrev": lambda f: jit(weft.jacrev(weft.jacrev(f, 1), 1)),
    "jacfwd jacfwd": lambda f: jit(weft.jacfwd(weft.jacfwd(f, 1), 1)),
    "jacrev jacfwd": lambda f: jit(weft.jacrev(weft.jacfwd(f, 1), 1)),
    "grad checkpoint": lambda f: jit(grad(weft.checkpoint(f), (0, 1, 2))),
}


@pytest.mark.sample(one_in=24)
@pytest.mark.parametrize("program", [*PROGRAMS, with_rules], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformed_like_a_loop_in_python(program, name):
    forward = ("jacfwd", "jvp", "linearize", "hessian")
    if program is with_rules and any(word in name for word in forward):
        pytest.skip("a custom_vjp function has no forward mode")
    transform = TRANSFORMS[name]
    ours, theirs = (
        transform(functools.partial(program, scan))(W, H, XS) for scan in (lax.scan, loop)
    )
    close(ours, theirs)


AXES = [(0, None, None), (None, 1, None), (None, None, 0), (None, None, 1), (1, 0, 2), (2, None, 1)]


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("program", [*PROGRAMS, with_rules], ids=lambda f: f.__name__)
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_mapped_like_a_loop_in_python(program, axes):
    args = [
        x if d is None else np.stack([x, x * 0.5], d) for x, d in zip((W, H, XS), axes, strict=True)
    ]
    results = []
    for scan in (lax.scan, loop):
        value_and_grad = weft.value_and_grad(functools.partial(program, scan), (0, 1))
        results.append(jit(vmap(value_and_grad, axes))(*args))
    close(*results)


@pytest.mark.parametrize("axes", AXES[:4], ids=str)
def test_gradients_of_mapped_scans(axes):
    args = [
        x if d is None else np.stack([x, x * 0.5], d) for x, d in zip((W, H, XS), axes, strict=True)
    ]
    results = []
    for scan in (lax.scan, loop):
        mapped = vmap(functools.partial(backwards, scan), axes)
        results.append(jit(grad(lambda *a, f=mapped: f(*a).sum(), (0, 1, 2)))(*args))
    close(*results)


def test_inner_products():
    """<ct, J t> = <J'ct, t>, where scan returns both of its kinds of results."""

    def f(w, h, xs):
        return lax.scan(lambda h, x: (jnp.sin(h @ w) * x, (h * x).sum()), h, xs)

    primals, tangents = (W, H, XS), (W + 1, H - 0.5, XS[::-1].copy())
    outs, dots = jvp(f, primals, tangents)
    cts = tree.map(jnp.cos, outs)
    inner = lambda xs, ys: sum(
        float(jnp.vdot(x, y)) for x, y in zip(tree.leaves(xs), tree.leaves(ys), strict=True)
    )
    np.testing.assert_allclose(inner(cts, dots), inner(vjp(f, *primals)[1](cts), tangents), 1e-4)


# --------------------------------------------------------------------------------------------
# What the programs hold.


def scans_of(fun, *args):
    """Return the scans of a program without dead code."""
    return equations(dce_jaxpr(make_jaxpr(fun)(*args).jaxpr)[0])


def test_residuals_that_no_step_changes_are_computed_once():
    def f(w, xs):
        def step(c, x):
            return c * jnp.sin(w) + x, None

        return lax.scan(step, jnp.zeros(3), xs)[0].sum()

    early, late = scans_of(grad(f), H, XS)
    # for c: sin(w); for w: cos(w); and the carry, which is stacked
    assert [str(v.aval) for v in early.outvars] == ["f32[3]", "f32[4,3]"]
    assert late.params["num_consts"] == 2
    assert all(v.aval.shape == (3,) for v in late.invars[:2])


def test_residuals_that_are_xs_are_passed_as_they_are():
    def f(w, xs):
        return lax.scan(lambda c, x: (c + w * x, None), jnp.zeros(3), xs)[0].sum()

    jaxpr = make_jaxpr(grad(f))(H, XS).jaxpr
    (late,) = equations(dce_jaxpr(jaxpr)[0])
    assert late.invars[-1] is jaxpr.invars[1]
    assert not any(e.outvars[0].aval.shape == XS.shape for e in dce_jaxpr(jaxpr)[0].eqns)


def test_results_that_are_residuals_are_stacked_once():
    def f(h, xs):
        def step(c, x):
            c = jnp.exp(c * x)
            return c, c

        return lax.scan(step, h, xs)[1].sum()

    early, _ = scans_of(weft.value_and_grad(f), H, XS)
    stacks = early.params["jaxpr"].outvars[early.params["num_carry"] :]
    assert len(stacks) == len(set(stacks))


def test_what_does_not_move_has_no_tangent():
    moving = lambda f, *args: scans_of(lambda *z: jvp(lambda h: f(lax.scan, W, h, XS), z, z), *args)
    (scan,) = moving(averaged, H)
    # the carry h moves; the mean follows without a derivative
    assert scan.params["num_carry"] == 3
    (scan,) = moving(backwards, H)
    assert scan.params["num_carry"] == 3  # the counter has no tangent


def test_residuals_that_are_cheap_are_computed_again():
    def f(h, xs):
        def step(c, x):
            c = jnp.tanh(c) * jnp.where(x > 0, 2.0, x[0])
            return c, None

        return lax.scan(step, h, xs)[0].sum()

    early, late = scans_of(grad(f), H, XS)
    # The slope of tanh is stacked. The mask and the factor are not: they are made of xs.
    assert [str(v.aval) for v in early.outvars] == ["f32[3]", "f32[4,3]"]
    assert [e.primitive.name for e in late.params["jaxpr"].eqns].count("gt") == 1
    close(
        grad(f)(H, XS),
        grad(
            lambda h: loop(lambda c, x: (jnp.tanh(c) * jnp.where(x > 0, 2.0, x[0]), 0.0), h, XS)[
                0
            ].sum()
        )(H),
    )


def test_broadcasts_are_not_stacked():
    def f(w, xs):
        def step(c, x):
            h = jnp.tanh(x @ w)
            h = (h - h.mean(-1, keepdims=True)) * jnp.exp(c)
            return 0.5 * c + h.sum(0), (h * c).sum()

        return lax.scan(step, jnp.zeros(3), xs)[1].sum()

    early, _ = scans_of(grad(f), W, ROWS)
    stacked = sum(v.aval.size for v in early.outvars[1:]) // len(ROWS)
    # tanh(x @ w) and its slope of 6 numbers, its mean of 2, and c and exp(c) of 3
    assert stacked <= 6 + 6 + 2 + 3 + 3
    program = lambda w: f(w, ROWS)
    eps = 1e-2 * np.ones_like(W)
    slope = (program(W + eps) - program(W - eps)) / 2e-2
    np.testing.assert_allclose(jnp.vdot(grad(program)(W), np.ones_like(W)), slope, rtol=1e-2)


@pytest.mark.parametrize("split, size", [(False, 3), (True, 3), (False, 8)])
def test_products_after_the_loop(split, size):
    """Sums of outer products are one product of stacks, where those are small or asked for."""
    r = np.random.default_rng(0)
    w, u, h, xs = (
        r.normal(size=s).astype(np.float32) for s in [(size, size), (2, size), (1, size), (4, 1, 2)]
    )

    def f(scan, w, u):
        def step(h, x):
            return jnp.tanh(h @ w + x @ u), None

        return (scan(step, h, xs)[0] ** 2).sum()

    ours = functools.partial(lax.scan, _split_transpose=split)
    pairs = np.stack([w, -w]), np.stack([u, u])
    for transform, args in (
        (lambda f: grad(f, (0, 1)), (w, u)),
        (lambda f: jit(weft.hessian(f)), (w, u)),
        (lambda f: jit(vmap(grad(f, (0, 1)))), pairs),
    ):
        want = jit(transform(functools.partial(f, loop)))(*args)
        close(transform(functools.partial(f, ours))(*args), want, tol=1e-3)
    _, late = scans_of(grad(functools.partial(f, ours), (0, 1)), w, u)
    inside = [e.primitive.name for e in late.params["jaxpr"].eqns].count("dot_general")
    assert inside == (1 if split or size == 8 else 3)


def test_zeros_of_cotangents_stay_symbolic():
    def f(h, xs):
        c, (ys, zs) = lax.scan(lambda c, x: (c * x, (jnp.sin(x), c)), h, xs)
        return ys.sum()  # of xs only

    scans = scans_of(grad(f, 1), H, XS)
    assert scans[-1].params["num_carry"] == 0


def test_what_is_not_mapped_stays_so():
    def f(h, n):
        return lax.scan(lambda c, _: ((c[0] * 2.0, c[1] + 1), c[1]), (h, n), None, length=3)

    (_, n), ns = vmap(f, (0, None), ((0, None), None))(XS, 0)
    assert n == 3 and ns.tolist() == [0, 1, 2]
    (scan,) = equations(make_jaxpr(vmap(f, (0, None), ((0, None), None)))(XS, 0).jaxpr)
    assert [str(v.aval) for v in scan.outvars] == ["f32[4,3]", "i32[]", "i32[3]"]


@pytest.mark.parametrize("call", [jit, weft.checkpoint])
def test_a_call_in_the_body_hides_no_independence(call):
    """Unmapped, constant and unused values are recognized through programs too."""

    def step(carry, x):
        t, buffer, after, v = carry
        weft.debug.print("", ordered=True)
        out = jnp.sin(v) * x + t + buffer.sum()
        return (t + 0.5, jnp.roll(buffer, 1) * t, after + out, out), t

    def avals(fun):
        return [[v.aval.shape for v in e.invars] for e in equations(make_jaxpr(fun)(1.0))]

    def last(f):
        return lambda v: lax.scan(f, (0.0, jnp.ones(5), jnp.ones(3), v), H)[0][3]

    assert avals(grad(last(call(step)))) == avals(grad(last(step)))
    mapped = lambda f: lambda v: vmap(last(f))(v * H)
    assert avals(mapped(call(step))) == avals(mapped(step))
    close(grad(last(call(step)))(1.0), grad(last(step))(1.0))


def test_the_mapped_axis_of_xs_is_second():
    f = vmap(lambda xs: lax.scan(lambda c, x: (c + x, x * 2.0), jnp.zeros(3), xs)[1])
    (scan,) = equations(make_jaxpr(f)(ROWS).jaxpr)
    assert str(scan.invars[-1].aval) == "f32[2,4,3]"


def test_collectives_in_a_body_that_nothing_maps():
    f = lambda x: lax.scan(lambda c, _: (c + 1.0, None), 0.0, None, length=2)[0] + x
    assert vmap(f, axis_name="i")(XS[0]).shape == (3,)


def test_dead_results_and_carries_are_removed():
    def f(h, xs):
        def step(c, x):
            a, b, dead = c
            return (jnp.sin(a) + x, b + a, jnp.cos(dead) * a), (a, jnp.exp(a * x), dead)

        (a, b, dead), (ys, unused, _) = lax.scan(step, (h, h, h), xs)
        return a, ys

    (scan,) = equations(make_jaxpr(f)(H, XS).jaxpr)
    assert scan.params["num_carry"] == 3 and len(scan.outvars) == 6
    (scan,) = scans_of(f, H, XS)
    assert scan.params["num_carry"] == 1 and len(scan.outvars) == 2
    assert [e.primitive.name for e in scan.params["jaxpr"].eqns] == ["sin", "add"]
    assert len(scan.params["linear"]) == len(scan.invars)
    close(jit(f)(H, XS), f(H, XS))


def test_a_scan_that_nothing_needs_is_removed():
    f = lambda h, xs: (lax.scan(lambda c, x: (c * x, c), h, xs), h)[1]
    assert scans_of(f, H, XS) == []


def test_a_carry_that_is_handed_on_is_a_const():
    def f(w, h, xs):
        return lax.scan(lambda c, x: ((c[0], jnp.tanh(c[1] @ c[0] + x)), None), (w, h), xs)

    jaxpr = make_jaxpr(f)(W, H, XS).jaxpr
    (scan,) = equations(jaxpr)
    assert scan.params["num_consts"] == 1 and scan.params["num_carry"] == 1
    assert jaxpr.outvars[0] is jaxpr.invars[0]
    # so that its gradient does not keep a copy of it for each step
    early, _ = scans_of(grad(lambda w: f(w, H, XS)[0][1].sum()), W)
    assert not any(v.aval.shape == (4, 3, 3) for v in early.outvars)


def test_linear_operands_are_marked():
    _, jaxpr, _, _ = linearize_flat(lambda h: [rnn(lax.scan, W, h, XS)], [H])
    (scan,) = equations(jaxpr)
    assert True in scan.params["linear"]


def test_bodies_are_transformed_once():
    traced = []

    def step(c, x):
        traced.append(1)
        return jnp.sin(c) * x, c

    f = lambda h, xs: lax.scan(step, h, xs)[1].sum()
    for _ in range(3):
        grad(f)(H, XS)
    assert len(traced) == 1


def test_what_depends_on_what():
    jaxpr = make_jaxpr(lambda x, y, z: (x + y, lax.cos(z), 1.0, y))(1.0, 2.0, 3.0).jaxpr
    assert find_dependences(jaxpr) == [0b011, 0b100, 0, 0b010]
    called = make_jaxpr(lambda x, y: jit(lambda a, b: (a, b))(x, y))(1.0, 2.0).jaxpr
    assert find_dependences(called) == [0b11, 0b11]
    assert find_dependences(called, False) == [0, 0]


# --------------------------------------------------------------------------------------------
# Lowering.


def text_of(fun, *args):
    return jit(fun).lower(*args).as_text()


def counting(c, x):
    return c + x, c * 2.0


def test_consts_and_xs_are_not_carried():
    f = lambda w, h, xs: lax.scan(lambda h, x: (h @ w + x, h), h, xs)
    (line,) = [s for s in text_of(f, W, H, XS).split("\n") if '"stablehlo.while"' in s]
    assert line.split("=")[0].count("%") == 3  # the counter, the carry, the ys


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 7, True, False])
def test_unrolled(unroll, reverse):
    xs = XS[:, 0]
    f = lambda c, xs: lax.scan(counting, c, xs, unroll=unroll, reverse=reverse)
    close(f(0.5, xs), loop(counting, 0.5, xs, reverse=reverse))
    lines = text_of(f, 0.5, xs).split("\n")
    steps = 4 if unroll is True else max(1, min(int(unroll), 4))
    assert sum('"stablehlo.while"' in s for s in lines) == (steps < 4)
    adds = [s for s in lines if '"stablehlo.multiply"' in s]
    assert len(adds) == steps + (4 % steps if steps < 4 else 0)


@pytest.mark.parametrize("length", [0, 1])
def test_short_scans_are_no_loops(length):
    f = lambda c, xs: lax.scan(counting, c, xs)
    assert "while" not in text_of(f, 0.5, XS[:length, 0])
    c, ys = f(0.5, XS[:length, 0])
    assert ys.shape == (length,) and ys.dtype == np.float32
    close(grad(lambda c: f(c, XS[:length, 0])[0])(0.5), jnp.float32(1.0))


def test_the_engine_compiles_small_loops_as_one_function():
    """Sixty scalars: the gradient must not cost a kernel for each of them in each step."""

    def f(start, xs):
        def step(carry, x):
            return [jnp.sin(a) * x for a in carry], None

        return sum(lax.scan(step, start, xs)[0])

    compiled = jit(f).lower([1.0] * 20, XS[:, 0]).compile()
    assert 'xla_cpu_small_call="true"' in compiled.as_text()


# --------------------------------------------------------------------------------------------
# Dtypes.


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, ml_dtypes.bfloat16, np.complex64])
def test_dtypes(dtype):
    xs = np.arange(4).astype(dtype)

    def step(c, x):
        return (c ^ x, c & x) if dtype == np.bool_ else (c * x + x, c)

    c, ys = lax.scan(step, jnp.asarray(xs[1]), xs)
    assert c.dtype == ys.dtype == dtype
    close((c, ys), loop(step, jnp.asarray(xs[1]), jnp.asarray(xs)))


def test_complex_and_bfloat16_gradients():
    z = jnp.array([1 + 2j, 0.5 - 1j], np.complex64)

    def f(scan, z):
        return jnp.abs(scan(lambda c, x: (c * x + z[1], c), z[0], jnp.stack([z[0], z[1]]))[0])

    ours, theirs = (grad(functools.partial(f, s), holomorphic=False)(z) for s in (lax.scan, loop))
    close(ours, theirs)
    x = jnp.asarray(0.5, ml_dtypes.bfloat16)
    g = grad(lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=3)[0])(x)
    assert g.dtype == ml_dtypes.bfloat16


def test_integer_and_boolean_operands_have_float0_tangents():
    def f(h, n, flags):
        def step(c, flag):
            h, n = c
            return (jnp.where(flag, h * n, h), n + 1), None

        return lax.scan(step, (h, n), flags)[0][0].sum()

    flags = np.array([True, False, True])
    g = grad(f, (0, 1, 2), allow_int=True)(H, 2, flags)
    close(g[0], 8.0 * H)
    assert g[1].dtype == g[2].dtype == weft.float0


def test_weak_types():
    c, ys = lax.scan(lambda c, x: (c + 1, x), 0, jnp.ones(2))
    assert c.weak_type and c.dtype == np.int32
    c, _ = lax.scan(lambda c, x: (c + x, None), 0, jnp.ones(2))
    assert c.dtype == np.float32 and not c.weak_type


def test_empty_arrays():
    def step(c, x):
        return c + x, x * 2

    c, ys = jit(lambda c, xs: lax.scan(step, c, xs))(jnp.zeros((0, 2)), jnp.zeros((3, 0, 2)))
    assert c.shape == (0, 2) and ys.shape == (3, 0, 2)
    g = grad(lambda c: lax.scan(step, c, jnp.zeros((3, 0, 2)))[1].sum())(jnp.zeros((0, 2)))
    assert g.shape == (0, 2)


def test_donated_carries():
    f = jit(lambda c, xs: lax.scan(lambda c, x: (c + x, None), c, xs)[0], donate_argnums=0)
    c = jnp.zeros(3)
    close(f(c, XS), XS.sum(0))
    assert c.is_deleted()


def test_transposes_where_part_of_the_carry_is_known():
    def f(x):
        def step(c, _):
            return (c[0] * c[1], c[1] + 1.0), c[0]

        return lax.scan(step, (x, 1.0), None, length=3)[1]

    (ct,) = weft.linear_transpose(f, 1.0)(jnp.ones(3))
    assert ct == 1.0 + 1.0 + 2.0


def test_scan_p_takes_operands_in_groups():
    (eqn,) = make_jaxpr(lambda h, xs: lax.scan(lambda c, x: (c * x, c), h, xs))(H, XS).jaxpr.eqns
    assert eqn.primitive is scan_p is lax.scan_p
    c, ys = scan_p.apply(H, XS, **eqn.params)
    close((c, ys), loop(lambda c, x: (c * x, c), H, XS))


def test_where_values_of_traces_are_looked_for():
    """They are searched in all attributes of a function, except for traces that have ended."""

    class Slots:
        __slots__ = ("a", "b")

    class Plain:
        def method(self):
            return self

    found = []

    def program(x):
        names = "cell default kwdefault bound partial keyword item field slot entry part"
        values = {n: x + i for i, n in enumerate(names.split())}
        slots, plain = Slots(), Plain()
        slots.a, plain.field = values["slot"], values["field"]
        cell = values["cell"]

        def fun(y, z=values["default"], *, k=values["kwdefault"]):
            return cell, unset

        bound = Plain()
        bound.here = values["bound"]
        partial = functools.partial(max, values["partial"], key=values["keyword"])
        rest = [({"a": values["item"]}, {"b"}), (1, values["entry"]), frozenset([5]), None, 1.5]
        roots = [fun, bound.method, partial, rest, slots, plain, [[values["part"]]], dead[0], fun]
        found.append({id(v) for v in values.values()} ^ set(map(id, find_closed_over(*roots))))
        if found[-1]:
            unset = 1
        return x

    dead = []
    jit(lambda x: dead.append(x) or x)(1.0)
    assert find_closed_over(dead) == []
    jit(program)(1.0)
    assert found == [set()]
