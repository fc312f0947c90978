"""pmap: against vmap, which has tests of its own, and features that only pmap has."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, grad, hessian, jit, jvp, lax, make_jaxpr, pmap, value_and_grad, vmap
from weft.errors import PytreeError, ShapeError, UnboundAxisError
from weft.experimental import checkify

X = (np.arange(16, dtype=np.float32).reshape(8, 2) - 5) / 7
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
ROW_OF_DEVICES = weft.devices()


def close(a, b):
    weft.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-4), a, b)


@weft.custom_vjp
def total(x):
    return lax.psum(x, "i")


total.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (5 * ct,))


def scanned(w, x):
    step = lambda c, t: (c + lax.pmean(jnp.sin(c * t), "i"), c)
    return lax.scan(step, x @ w, jnp.arange(1.0, 4.0))


def step(w, x):
    loss, g = value_and_grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * lax.pmean(g, "i"), lax.pmean(loss, "i")


PROGRAMS = {
    "plain": lambda w, x: jnp.sin(x @ w),
    "psum": lambda w, x: jnp.sin(lax.psum(x @ w, "i")) * jnp.sum(x),
    "index": lambda w, x: x @ w * lax.axis_index("i"),
    "gather": lambda w, x: jnp.sum(jnp.sin(lax.all_gather(x, "i")), 0) * (x @ w)[:2],
    "ring": lambda w, x: lax.ppermute(jnp.sin(x @ w), "i", [(i, (i + 1) % 8) for i in range(8)]),
    "scan": scanned,
    "cond": lambda w, x: lax.cond(lax.axis_index("i") > 2, lambda: x @ w, lambda: jnp.sin(x @ w)),
    "custom_vjp": lambda w, x: total(jnp.sin(x @ w)),
    "checkpoint": lambda w, x: weft.checkpoint(lambda y: jnp.sin(lax.pmean(y, "i")))(x @ w),
    "jit": jit(lambda w, x: lax.psum(jnp.tanh(x @ w), "i")),
    "train": step,
}
NO_FORWARD = {"custom_vjp"}
programs = pytest.mark.parametrize("name", PROGRAMS)


def pair(name):
    f = PROGRAMS[name]
    return pmap(f, "i", in_axes=(None, 0)), vmap(f, (None, 0), axis_name="i")


def summed(f):
    return lambda *args: sum(jnp.sum(y**2) for y in weft.tree.leaves(f(*args)))


@pytest.mark.sample(one_in=4)
@programs
def test_as_vmap(name):
    f, whole = pair(name)
    plain, whole = whole, jit(whole)  # one program, where nothing of pmap is under test
    close(f(W, X), whole(W, X))
    close(jit(f)(W, X), whole(W, X))
    want = jit(grad(summed(plain), (0, 1)))(W, X)
    close(grad(summed(f), (0, 1))(W, X), want)
    close(jit(grad(summed(f), (0, 1)))(W, X), want)
    ws = jnp.stack([W, W + 0.1], 2)
    close(vmap(f, (2, None))(ws, X), jit(vmap(plain, (2, None)))(ws, X))
    xs = jnp.stack([X, X - 1], 1)
    close(vmap(f, (None, 1), 1)(W, xs), jit(vmap(plain, (None, 1), 1))(W, xs))
    if name not in NO_FORWARD:
        close(jvp(f, (W, X), (W, X)), jvp(whole, (W, X), (W, X)))
    if name in ("psum", "scan", "checkpoint"):
        close(jit(hessian(summed(f)))(W, X), jit(hessian(summed(plain)))(W, X))


@programs
def test_of_transformed(name):
    f = PROGRAMS[name]
    one = lambda w, x: summed(f)(w, x)
    want = jit(vmap(grad(one), (None, 0), axis_name="i"))(W, X)
    close(pmap(grad(one), "i", in_axes=(None, 0))(W, X), want)
    two = vmap(f, (0, None))
    ws = jnp.stack([W, W + 0.1])
    mapped = jit(vmap(two, (None, 0), axis_name="i"))
    close(pmap(two, "i", in_axes=(None, 0))(ws, X), mapped(ws, X))


def test_axes_of_arguments_and_results():
    f = lambda d, y: {"r": d["a"] * d["b"] + y, "s": lax.psum(y, "i")}
    axes = {"in_axes": ({"a": 0, "b": None}, 1), "out_axes": {"r": 1, "s": None}}
    args = {"a": X, "b": 3.0}, X.T
    got, want = pmap(f, "i", **axes)(*args), vmap(f, axis_name="i", **axes)(*args)
    close(got, want)
    assert got["r"].sharding.spec == P(None, "i")
    assert got["s"].sharding.spec == P()
    close(pmap(lambda x: x * 2, in_axes=-1, out_axes=-1)(X.T), X.T * 2)
    close(pmap(lambda x, *, k: x + k)(X, k=X), X * 2)
    assert pmap(lambda: lax.axis_index("i"), "i", axis_size=4)().tolist() == [0, 1, 2, 3]


def test_devices():
    some = ROW_OF_DEVICES[2:6][::-1]
    out = pmap(lambda x: x + lax.axis_index("i"), "i", devices=some)(X[:4])
    close(out, X[:4] + np.arange(4)[:, None])
    assert [s.device for s in out.addressable_shards] == some
    close(pmap(lambda x: x + 1, backend="cpu")(X), X + 1)


def test_a_static_argument_that_a_call_leaves_out():
    f = pmap(lambda x, n=2: x * n, static_broadcasted_argnums=1)
    assert f(X).tolist() == (X * 2).tolist() and f(X, 3).tolist() == (X * 3).tolist()
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'n'"):
        pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(X)


def test_static_and_donated_arguments():
    traced = []

    def f(n, x, m):
        traced.append((n, m))
        return x * n + m

    g = pmap(f, static_broadcasted_argnums=(0, 2), in_axes=(None, 0, None))
    close(g(3, X, 4), X * 3 + 4)
    close(g(3, X, 4), X * 3 + 4)
    close(g(2, X, 4), X * 2 + 4)
    assert traced == [(3, 4), (2, 4)]
    x = pmap(lambda x: x)(X)
    y = pmap(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    close(y, X + 1)


def test_within_itself():
    x = X.reshape(2, 4, 2)
    f = lambda x: x * lax.psum(jnp.sin(x), ("i", "j")) + lax.axis_index("j")
    got = pmap(pmap(f, "j"), "i")
    want = vmap(vmap(f, axis_name="j"), axis_name="i")
    close(got(x), want(x))
    close(grad(summed(got))(x), grad(summed(want))(x))
    assert len(got(x).sharding.device_set) == 8


def test_results_are_fed_back_where_they_are():
    moves = pmap(step, "i")
    ws = jnp.stack([W] * 8)
    ws, _ = moves(ws, X)
    devices = [s.device for s in ws.addressable_shards]
    again, _ = moves(ws, X)
    assert [s.device for s in again.addressable_shards] == devices == ROW_OF_DEVICES
    whole = vmap(step, axis_name="i")
    w1, _ = whole(jnp.stack([W] * 8), X)
    close(again, whole(w1, X)[0])
    places = lambda y: [s.data.unsafe_buffer_pointer() for s in y.addressable_shards]
    before = places(again)
    assert places(pmap(lambda w: w + 1, donate_argnums=0)(again)) == before  # nothing was copied


def test_a_second_call_traces_nothing():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return lax.psum(x, "i")

    g = pmap(f, "i")
    out = g(X)
    g(out)
    g(X)
    assert count == 1
    jitted = jit(lambda x: g(x) + 1)
    jitted(X)
    before = count
    jitted(out)
    assert count == before


def test_stages_and_text():
    f = pmap(lambda x: x + lax.psum(x, "i"), "i")
    compiled = f.lower(X).compile()
    close(compiled(X), X + X.sum(0))
    assert compiled.output_shardings.spec == P("i")
    assert "all_reduce" in f.lower(X).as_text()
    assert (
        str(make_jaxpr(f)(X))
        == """\
{ lambda ; a:f32[8,2]. let
    b:f32[8,2] = xla_pmap[
      name=<lambda>
      axis_name=i
      axis_size=8
      backend=None
      call_jaxpr={ lambda ; c:f32[2]. let
          d:f32[2] = psum[axes=('i',) axis_index_groups=None] c
          e:f32[2] = add c d
        in (e,) }
      devices=None
      global_axis_size=None
      mapped_invars=(True,)
    ] a
  in (b,) }"""
    )


def test_keys_prints_and_no_jit(capfd):
    keys = weft.random.split(weft.random.key(0), 8)
    f = lambda k: weft.random.normal(k, (2,))
    close(pmap(f)(keys), vmap(f)(keys))
    pmap(lambda x: (weft.debug.print("own {}", x.ndim), x)[1])(X)
    weft.effects_barrier()
    assert capfd.readouterr().out.count("own 1") == 8
    with weft.disable_jit():
        close(pmap(lambda x: x - lax.pmean(x, "i"), "i")(X), X - X.mean(0))
    with weft.debug_nans(True), pytest.raises(FloatingPointError):
        pmap(jnp.log)(X - 10)


BAD = {
    "too long": (lambda: pmap(lambda x: x)(np.zeros(9)), ValueError,
        "pmap: the mapped axis must not be longer than there are devices; got size 9, which takes "
        "9, and 8 exist. Hint: vmap maps without devices; on CPU, ask for more before the first "
        "use of weft: WEFT_NUM_CPU_DEVICES=9 or XLA_FLAGS="),
    "too long within": (
        lambda: pmap(pmap(lambda x: x))(np.zeros((4, 4))), ValueError,
        "got size 4 with pmaps of 4 within, which takes 16, and 8 exist."),
    "too few given": (lambda: pmap(lambda x: x, devices=ROW_OF_DEVICES[:2])(X), ValueError,
        "got size 8, which takes 8, and 2 exist."),
    "sizes": (lambda: pmap(lambda x, y: x + y)(X, X[:4]), ShapeError,
        "pmap: mapped axes must have one size; got 8 (axis 0 of x, f32[8,2]), 4 (axis 0 of y, "
        "f32[4,2]) in <lambda>."),
    "axis_size": (lambda: pmap(lambda x: x, axis_size=4)(X), ShapeError,
        "pmap: mapped axes must have one size; got 8 (axis 0 of x, f32[8,2]), 4 (axis_size)"),
    "scalar": (lambda: pmap(lambda x: x)(3.0), ValueError,
        "pmap: in_axes must name an axis of each mapped argument; got axis 0 for f32[] as x of "
        "<lambda>. Hint: in_axes=None leaves an argument unmapped."),
    "nothing mapped": (lambda: pmap(lambda: 1)(), ValueError,
        "pmap: at least one argument must be mapped; got in_axes of None for all of <lambda>'s. "
        "Hint: give axis_size."),
    "in_axes": (lambda: pmap(lambda x, y: x, in_axes=(0,))(X, X), ValueError,
        "pmap: in_axes must have one entry for each positional argument; got 1 for the 2 of"),
    "out_axes": (lambda: pmap(lambda x: (x, x), out_axes=(0, 0, 0))(X), PytreeError,
        "pmap: out_axes must be a tree prefix of result; got a tuple of length 3 at out_axes where "
        "result has a tuple of length 2."),
    "static": (lambda: pmap(lambda x, n: x, static_broadcasted_argnums=1)(X, [1]), ValueError,
        "pmap: static arguments must be hashable; got list as argument 1 of <lambda>."),
    "unbound": (lambda: pmap(lambda x: lax.psum(x, "k"), "i")(X), UnboundAxisError,
        "psum: axis_name must be an axis in scope; got 'k', in scope 'i' (size 8)."),
    "no function": (lambda: pmap(3), TypeError, "pmap: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_checks_are_those_of_the_first_device_that_fails():
    def f(x):
        checkify.check(x[0] < 1, "must be small: {}", x[0])
        return x * 2

    for mapped in (pmap(f), jit(lambda x: pmap(f)(x))):
        error, out = checkify.checkify(mapped)(X - 1)
        assert error.get() is None and np.array_equal(out, (X - 1) * 2)
        error, _ = checkify.checkify(mapped)(X)  # the last two devices
        assert error.get().startswith("must be small: 1.0 (")
