"""References: eagerly; in every transformation, against carried values; errors."""

import copy
import functools
import itertools
import pickle
import random as pyrandom

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, ref
from weft.core.ref import AbstractRef
from weft.errors import DeletedError, DtypeError, IndexingError, RefError, ShapeError
from weft.jaxpr import parse
from weft.primitives import refs

# --- as values --------------------------------------------------------------------------------


def test_reads_and_writes_are_those_of_numpy():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    r, want = weft.new_ref(x), x.copy()
    for index, value in [
        (0, 5.0),
        (np.s_[:, 1], np.arange(3, dtype=np.float32)),
        (np.s_[..., ::2], 7.0),
        (np.s_[-1, 1:3], np.float32([8, 9])),
        (np.s_[::-1], x + 1),
        (np.array([0, 2]), -x[:2]),
        ((np.array([0, 1]), 3), 2.0),
        (x > 5, 1.5),
        (np.s_[...], x),
    ]:
        np.testing.assert_array_equal(r[index], want[index])
        r[index] = value
        want[index] = value
        np.testing.assert_array_equal(r[...], want)
    np.testing.assert_array_equal(list(r)[1], want[1])
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((3, 4), np.float32, 2, 12, 3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "complex64"])
def test_dtypes(dtype):
    r = weft.new_ref(jnp.zeros((2, 0, 3), dtype))
    r[0] = r[1]
    s = weft.new_ref(jnp.zeros((), dtype))
    s[...] = jnp.ones((), dtype)
    assert s.dtype == r.dtype == jnp.dtype(dtype) and s[...] == 1


def test_functions():
    r = weft.new_ref(jnp.arange(4))
    assert int(ref.swap(r, 1, 9)) == 1
    r.addupdate(1, jnp.array([0, 0]))
    ref.set(r, -1, np.int64(7))
    np.testing.assert_array_equal(ref.get(r), [2, 9, 2, 7])
    np.testing.assert_array_equal(ref.get(r, slice(1, 3)), [9, 2])
    assert repr(r) == "Ref([2, 9, 2, 7], dtype=int32)"
    assert str(weft.typeof(r)) == "Ref{i32[4]}" and isinstance(r, weft.Ref)
    np.testing.assert_array_equal(weft.freeze(r), [2, 9, 2, 7])
    with pytest.raises(DeletedError, match="after it was freed; got a Ref{i32\\[4\\]}"):
        r[0]
    assert repr(r) == "Ref(freed, i32[4])"


def test_making():
    @weft.jit
    def f():
        r = weft.empty_ref(weft.ShapeDtypeStruct((2,), np.float32))
        r[...] = [1.0, 2.0]
        out = r[...] * 2
        weft.free_ref(r)
        return out

    np.testing.assert_array_equal(f(), [2, 4])
    r = weft.empty_ref(weft.ShapeDtypeStruct((2,), np.float32))
    r[:] = np.ones(2)
    assert r.dtype == np.float32 and weft.freeze(r).sum() == 2
    weak = weft.new_ref(3)
    weak[...] += 1
    assert repr(weak) == "Ref(4, dtype=int32, weak_type=True)"


def test_no_array_of_the_user_changes():
    x = jnp.arange(3.0)
    a, b = weft.new_ref(x), weft.new_ref(x)
    increment = weft.jit(lambda r: ref.addupdate(r, 0, 1.0))
    seen = []
    for step in (
        lambda: a.__setitem__(0, 5.0),
        lambda: increment(a),
        lambda: b.__setitem__(1, 2.0),
    ):
        step()
        before = [float(v) for v in a]  # a view would keep the memory
        seen.append((a[...], before))
        step()
        a[...] = seen[0][0]
        step()
    for array, before in seen:
        np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(x, [0, 1, 2])
    for k, make in enumerate((copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r)))):
        a[1] = 9.0
        before, clone = [float(v) for v in a], make(a)
        a[2] = k
        np.testing.assert_array_equal(clone[...], before)
        clone[0] = -1.0
        np.testing.assert_array_equal(a[...], [before[0], 9.0, k])


def test_writes_in_place():
    r = weft.new_ref(jnp.zeros(1000))
    r[0] = 1.0
    place = r.value.unsafe_buffer_pointer()
    write = weft.jit(lambda r: ref.addupdate(r, 0, 1.0))
    for _ in range(2):
        r[3] = 2.0
        write(r)
        lax.fori_loop(0, 3, lambda i, _: r.__setitem__(i, 1.0), None)
    assert r.value.unsafe_buffer_pointer() == place


def test_calls_in_cpp_write_and_check():
    """The third call of each kind is C++'s: see api/programs.py, `run_on_refs`."""
    f = weft.jit(lambda p, x: (ref.addupdate(p["a"], 0, x), p["b"][0])[1])
    a, b = weft.new_ref(jnp.zeros(2)), weft.new_ref(jnp.ones(2))
    for _ in range(4):
        y = f({"b": b, "a": a}, 2.0)
    assert a[0] == 8.0 and y == 1.0
    kept = a[...]
    assert f({"a": a, "b": b}, 2.0) == 1.0 and a[0] == 10.0 and kept[0] == 8.0
    for _ in range(2):
        with pytest.raises(RefError, match=r"as p\['a'\] and as p\['b'\]"):
            f({"a": a, "b": a}, 2.0)
        f({"a": b, "b": a}, 2.0)
    assert a[0] == 10.0 and b[0] == 5.0
    weft.free_ref(b)
    with pytest.raises(DeletedError):
        f({"a": a, "b": b}, 2.0)
    assert a[0] == 10.0
    read = weft.jit(lambda r: r[...] * 2)
    for _ in range(3):
        np.testing.assert_array_equal(read(a), [20, 0])
        np.testing.assert_array_equal(a[...] * 2, [20, 0])


# --- programs ---------------------------------------------------------------------------------


def test_text_of_a_program():
    def f(x, r, i):
        old = ref.swap(r, 0, x)
        r[i] = r[1, :2].sum() * old.sum()
        r[:, 1] += 1.0
        ref.addupdate(r, ..., 1.0)
        return r[2:, None]

    lines = str(weft.make_jaxpr(f)(jnp.ones(3), weft.new_ref(jnp.ones((4, 3))), 2)).split("\n")
    body = [line.strip() for line in lines if "[" in line]
    assert body[0].startswith("{ lambda ; a:f32[3] b:Ref{f32[4,3]} c:i32[]. let")
    text = "\n".join(body)
    for part in (
        "d:f32[3], b[0,:] <- b[0,:], a",
        "<- b[1,:2]",
        "b[c,:] <- ",
        "<- b[:,1]",
        "b[...] += ",
        "<- b[2:,None,:]",
    ):
        assert part in text, (part, text)


def test_types_and_effects():
    def f(a, b, c):
        ref.addupdate(a, 0, b[0])
        weft.jit(lambda: c.__setitem__(0, 1.0))()

    refs = [weft.new_ref(jnp.ones(2)) for _ in range(3)]
    jaxpr = weft.make_jaxpr(f)(*refs)
    assert type(jaxpr.in_avals[0]) is AbstractRef and AbstractRef(refs[0][...].aval) is refs[1].aval
    kinds = ref.state_effects(jaxpr.jaxpr)
    assert {i: {e.name for e in es} for i, es in kinds.items()} == {
        0: {"Accum"},
        1: {"Read"},
        2: {"Write"},
    }


def test_jit():
    closed = weft.new_ref(jnp.zeros(3))
    count = 0

    @weft.jit
    def f(r, x):
        nonlocal count
        count += 1
        inner = weft.new_ref(x)
        inner[0] += closed[1]
        r[0] += inner[0]
        closed[2] = r[0]
        return weft.freeze(inner), {"seen": r[...]}

    r = weft.new_ref(jnp.zeros(2))
    for _ in range(3):
        out, more = f(r, jnp.array([1.0, 0.0]))
        closed[1] = 1.0
    np.testing.assert_array_equal(r[...], [5, 0])
    np.testing.assert_array_equal(closed[...], [0, 1, 5])
    np.testing.assert_array_equal(more["seen"], [5, 0])
    assert count == 1 and out[0] == 2.0
    lowered = f.lower(r, jnp.zeros(2))
    assert "tf.aliasing_output" in lowered.as_text()
    lowered.compile()(r, jnp.zeros(2))
    assert r[0] == 6.0


def test_loops_and_branches():
    r, rows = weft.new_ref(jnp.zeros(4)), weft.new_ref(jnp.arange(8.0).reshape(4, 2))

    def walk(c, row):
        r[0] += row[1]
        row[0] = c
        return c + 1, r[0]

    for run in (lax.scan, weft.jit(lax.scan, static_argnums=0)):
        c, ys = run(walk, 10.0, rows)
    np.testing.assert_array_equal(ys, np.cumsum([1, 3, 5, 7]) + 16)
    np.testing.assert_array_equal(rows[...], [[10, 1], [11, 3], [12, 5], [13, 7]])
    # the predicate reads what the body writes
    lax.while_loop(lambda i: r[0] > 20, lambda i: (ref.addupdate(r, 0, -5.0), i + 1)[1], 0)
    assert r[0] == 17.0
    for i in range(3):
        lax.switch(i, [lambda: r.__setitem__(1, r[0]), lambda: None, lambda: r.__setitem__(2, 4.0)])
    np.testing.assert_array_equal(r[...], [17, 17, 4, 0])
    lax.map(lambda row: row.__setitem__(1, 0.0), rows)
    assert not rows[:, 1].any()


def test_vmap():
    r = weft.new_ref(jnp.zeros((3, 2)))
    f = lambda r, i, x: (r.__setitem__(i, r[i] + x), r[0])[1]
    for axes in ((1, 0, 0), (-1, 0, None)):
        weft.vmap(f, axes)(r, jnp.array([0, 2]), 5.0 if axes[2] is None else jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(r[...], [[6, 0], [0, 0], [0, 7]])
    ref.addupdate(r, 0, 1.0)
    out = weft.jit(weft.vmap(lambda r: ref.swap(r, ..., r[...] * 2), 1))(r)
    np.testing.assert_array_equal(out, [[7, 0, 0], [1, 0, 7]])
    np.testing.assert_array_equal(r[...], [[14, 2], [0, 0], [0, 14]])
    cube = weft.new_ref(jnp.arange(24).reshape(2, 3, 4))
    weft.vmap(lambda r, x: ref.set(r, ..., x), (1, 2))(cube, jnp.zeros((2, 4, 3), int) + 7)
    assert (cube[...] == 7).all()
    weft.vmap(lambda r: ref.set(r, ..., r[...] + 1), 1)(cube)
    weft.vmap(lambda r, i: ref.set(r, (1, i), 0), (1, 0))(cube, jnp.array([3, 0, 1]))
    np.testing.assert_array_equal(cube[1], [[8, 8, 8, 0], [0, 8, 8, 8], [8, 0, 8, 8]])
    # read from outside, made within, and a loop that writes to a mapped one
    closed = weft.new_ref(jnp.arange(3.0))

    def g(i):
        own = weft.new_ref(jnp.zeros(3))
        lax.fori_loop(0, 3, lambda k, _: own.__setitem__(k, closed[i] + k), None)
        return own[...]

    np.testing.assert_array_equal(weft.vmap(g)(jnp.arange(2)), [[0, 1, 2], [1, 2, 3]])


def test_jvp_of_references():
    r, t = weft.new_ref(jnp.arange(1.0, 4.0)), weft.new_ref(jnp.ones(3))

    def f(r, x):
        r[0] = jnp.sin(r[1]) * x
        ref.addupdate(r, 2, r[0])
        return r[2] * x

    y, dot = weft.jvp(f, (r, 2.0), (t, 1.0))
    s, c = np.sin(2.0), np.cos(2.0)
    np.testing.assert_allclose([y, dot], [(3 + 2 * s) * 2, 3 + 2 * s + 2 * (1 + 2 * c + s)], 1e-6)
    np.testing.assert_allclose(r[...], [2 * s, 2, 3 + 2 * s], 1e-6)
    np.testing.assert_allclose(t[...], [2 * c + s, 1, 1 + 2 * c + s], 1e-6)


def test_gradients_into_references():
    y, f_vjp = weft.vjp(lambda p, x: p["w"] @ x + p["b"], {"w": jnp.ones(3), "b": 1.0}, jnp.ones(3))
    total = {"w": weft.new_ref(jnp.ones(3)), "b": None}
    grads = weft.jit(lambda ct: f_vjp.with_refs(total, None)(ct))(2.0)
    assert grads[0] == {"w": None, "b": 2.0}
    np.testing.assert_array_equal(grads[1], [2, 2, 2])
    f_vjp.with_refs(total, total["w"])(1.0)
    np.testing.assert_array_equal(total["w"][...], [5, 5, 5])
    with pytest.raises(
        ShapeError, match="must have the type of the cotangent; got Ref{f32\\[2\\]}"
    ):
        f_vjp.with_refs(None, weft.new_ref(jnp.zeros(2)))(1.0)


@weft.custom_vjp
def log_cotangent(x, r):
    return x


log_cotangent.defvjp(lambda x, r: (x, r), lambda r, ct: (ref.addupdate(r, ..., ct), (ct, None))[1])


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit], ids=["eager", "jit"])
def test_cotangents_are_written_by_custom_rules(wrap):
    def f(x, r):
        x, _ = lax.scan(lambda c, _: (jnp.sin(log_cotangent(c, r)), None), x, None, length=3)
        return log_cotangent(x**2, r)

    r = weft.new_ref(jnp.float32(0))
    assert wrap(lambda r: log_cotangent(r[...] + 2, r))(r) == 2  # nothing else is known of bwd
    gradient = wrap(weft.grad(f))(0.5, r)
    xs = [0.5]
    for _ in range(3):
        xs.append(np.sin(xs[-1]))
    cts = [1.0, 2 * xs[3] * np.cos(xs[2])]
    cts += [cts[-1] * np.cos(xs[1])]
    cts += [cts[-1] * np.cos(xs[0])]
    np.testing.assert_allclose([gradient, r[...]], [cts[-1], sum(cts)], 1e-5)


TOLD = weft.new_ref(0.0)  # a global, as in a script


def telling(told, primal=False, forward=False):
    """A function whose bwd writes to a reference from outside, and so may the rest of it."""

    def note(x, here):
        if here:
            told[...] += x

    @weft.custom_vjp
    def f(x):
        note(x, primal)
        return x * 2

    f.defvjp(
        lambda x: (note(x, forward), (x * 2, None))[1], lambda _, ct: (note(ct, True), (ct * 7,))[1]
    )
    return f


def test_rules_that_write_to_a_reference_from_outside():
    wraps = [
        lambda f: weft.grad(f), lambda f: weft.grad(weft.jit(f)), lambda f: weft.jit(weft.grad(f)),
        lambda f: weft.jit(weft.grad(weft.jit(f))), lambda f: weft.grad(weft.jit(weft.jit(f))),
    ]  # fmt: skip
    for primal, forward, wrap in itertools.product([False, True], [False, True], wraps):
        told = weft.new_ref(0.0)
        f = telling(told, primal, forward)
        assert wrap(lambda x, f=f: f(x) * 3.0)(2.0) == 21
        assert told[...] == 3 + 2 * forward
        assert weft.jit(f)(2.0) == 4 and told[...] == 3 + 2 * forward + 2 * primal


@weft.custom_vjp
def to_global(x):
    return x


to_global.defvjp(lambda x: (x, None), lambda _, ct: (ref.addupdate(TOLD, ..., ct), (ct,))[1])


def test_rules_that_write_to_a_global():
    loop = lambda x: lax.scan(lambda c, _: (to_global(c) * 2, None), x, None, length=3)[0]
    for f, total in ((to_global, 1), (weft.jit(to_global), 2), (loop, 16), (weft.jit(loop), 30)):
        weft.grad(f)(1.0)
        assert TOLD[...] == total


def test_a_reference_keeps_its_type():
    r = weft.new_ref(jnp.float32(0))
    weft.jit(lambda r, x: ref.set(r, ..., x))(r, 2.0)
    assert not r[...].weak_type and r[...] == 2
    assert weft.jit(lambda r: r[...] + 1)(r) == 3
    weak = weft.new_ref(0.0)
    weft.jit(lambda r: ref.set(r, ..., jnp.float32(2)))(weak)
    assert weak[...].weak_type


# --- parts of references ----------------------------------------------------------------------


def random_index(rng, shape):
    """Return an index of NumPy's that selects a nonempty view."""
    entries = []
    for n in shape[: rng.randint(1, len(shape))]:
        i = rng.randrange(n)
        choices = [i, i - n, slice(i, None), slice(None, i + 1), slice(None, None, 2)]
        entries.append(rng.choice([*choices, slice(None, None, -1), slice(i, None, -1)]))
    more = rng.random()
    if more < 0.2:
        return (Ellipsis, entries[0]) if entries[0] in (0, -1) or shape[-1] == shape[0] else ...
    return (*entries, None) if more < 0.4 else entries[0] if len(entries) == 1 else tuple(entries)


def take_view(part, index):
    """An element of an array of NumPy's is a view too, with an Ellipsis."""
    entries = index if type(index) is tuple else (index,)
    return part[entries if Ellipsis in entries else (*entries, Ellipsis)]


def random_parts(seed):
    """Return operations on parts: the operation, the part, the factor, and the place."""
    rng = pyrandom.Random(seed)
    ops = []
    for _ in range(3):
        part, chain = np.zeros((3, 4, 2)), []
        while part.ndim and len(chain) < 2:
            chain.append(random_index(rng, part.shape))
            part = take_view(part, chain[-1])
        last = Ellipsis
        if part.ndim:
            rows = np.array([rng.randrange(len(part)) for _ in range(2)])
            last = rng.choice([..., random_index(rng, part.shape), rows])
        ops.append((rng.choice("sam"), chain, last, rng.randint(1, 4) / 2, rng.choice([*WAYS])))
    return ops


def use_part(part, v, kind, last, factor):
    """Write to part of an array of NumPy's, or of a reference: linear in both."""
    if kind == "s":
        part[last] = v * factor
    elif kind == "a":
        part[last] = part[last] + v * factor
    else:
        part[last] *= factor


def run_once(loop):
    return lambda r, v, take, use: loop(lambda: use(take(r), v))


WAYS = {
    "here": lambda r, v, take, use: use(take(r), v),
    "jit of the reference": lambda r, v, take, use: weft.jit(lambda r, v: use(take(r), v))(r, v),
    "jit of the part": lambda r, v, take, use: weft.jit(use)(take(r), v),
    "jit that closes over it": lambda r, v, take, use: weft.jit(lambda: use(take(r), v))(),
    "checkpoint": lambda r, v, take, use: weft.checkpoint(use)(take(r), v),
    "cond": lambda r, v, take, use: lax.cond(v == v, use, lambda p, v: None, take(r), v),
    "switch": run_once(lambda run: lax.switch(1, [lambda: None, run])),
    "scan": run_once(lambda run: lax.scan(lambda c, _: (c, run()), 0, None, length=1)),
    "fori": run_once(lambda run: lax.fori_loop(0, 1, lambda i, c: run(), None)),
    "while": run_once(lambda run: lax.while_loop(lambda i: i < 1, lambda i: (run(), i + 1)[1], 0)),
}


def run_parts(ops, x, v):
    """Return the array after operations on its parts, through a reference."""
    r = weft.new_ref(x)
    for kind, chain, last, factor, way in ops:
        take = lambda r, chain=chain: functools.reduce(lambda part, i: part.at[i], chain, r)
        use = lambda p, v, how=(kind, last, factor): use_part(p, v, *how)
        WAYS[way](r, v, take, use)
    return r[...]


def run_parts_in_numpy(ops, x, v):
    """The same through views of NumPy's."""
    x = x.copy()
    for kind, chain, last, factor, _ in ops:
        use_part(functools.reduce(take_view, chain, x), v, kind, last, factor)
    return x


def compare_parts(seed):
    ops, rng = random_parts(seed), np.random.default_rng(seed)
    x, dx, ct = rng.normal(size=(3, 3, 4, 2)).astype(np.float32)
    v, dv = np.float32(1.5), np.float32(-0.5)
    want, moved = run_parts_in_numpy(ops, x, v), run_parts_in_numpy(ops, dx, dv)
    f = functools.partial(run_parts, ops)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5, err_msg=f"{ops}")
    close(f(jnp.asarray(x), v), want)
    close(weft.jit(f)(x, v), want)
    pushed = weft.jit(lambda *xs: weft.jvp(f, xs[:2], xs[2:]))(x, v, dx, dv)
    close(pushed[0], want)
    close(pushed[1], moved)
    for pull in (
        lambda x, v: weft.vjp(f, x, v)[1](ct),
        lambda x, v: weft.vjp(weft.jit(f), x, v)[1](ct),
    ):
        gx, gv = pull(x, v) if seed % 2 else weft.jit(pull)(x, v)
        close(np.vdot(gx, dx) + gv * dv, np.vdot(ct, moved), rtol=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_random_parts(seed):
    compare_parts(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_random_parts_of_many(seed):
    compare_parts(seed)


DTYPES = [
    "bool", "int4", "uint2", "int8", "uint32", "bfloat16", "float16", "float8_e4m3fn", "complex64",
    "key",
]  # fmt: skip


def exchange(part, v):
    """Swap the first element of a part, and write its old value to the last."""
    part[-1] = ref.swap(part, 0, v)


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_every_dtype(dtype):
    """Passed in every way, and mapped, against views of NumPy's."""
    words = np.arange(24, dtype=np.uint32).reshape(2, 6, 2)
    make, read = weft.random.wrap_key_data, weft.random.key_data
    if dtype != "key":
        words = (words[..., 0] % 7 / 2).astype(jnp.dtype(dtype))
        make = read = jnp.asarray
    take = lambda part: part.at[1:].at[:4].at[::-3]
    want, v = words.copy(), words[:, 5].copy()
    for x, new in zip(want, v, strict=True):
        part = x[1:][:4][::-3]
        part[-1], part[0] = part[0].copy(), new
    for way in WAYS.values():
        r = weft.new_ref(make(words[0]))
        way(r, make(v[0]), take, exchange)
        np.testing.assert_array_equal(read(weft.freeze(r)), want[0])
    rows = {"rows": weft.new_ref(make(words))}
    weft.jit(weft.vmap(lambda d, v: exchange(take(d["rows"]), v)))(rows, make(v))
    np.testing.assert_array_equal(read(rows["rows"][...]), want)


def test_parts():
    r = weft.new_ref(jnp.arange(12.0).reshape(3, 4))
    part = r.at[1:].at[0]
    assert (part.shape, part.dtype, part.ndim, part.size, len(part)) == ((4,), np.float32, 1, 4, 4)
    assert str(weft.typeof(part)) == "Ref{f32[4]}" and isinstance(part, weft.Ref)
    assert repr(part).endswith(".at[1:,:][0,:]")
    assert ref.swap(part, 0, 9.0) == 4.0
    ref.addupdate(part, jnp.array([1, 1]), 1.0)  # an element that is named twice
    ref.addupdate(r.at[jnp.array([2, 2])], ..., 1.0)
    ref.set(part.at[2:], ..., jnp.zeros(2))
    want = [[0, 1, 2, 3], [9, 7, 0, 0], [10, 11, 12, 13]]
    np.testing.assert_array_equal(r[...], want)
    np.testing.assert_array_equal(ref.get(part), want[1])
    np.testing.assert_array_equal(weft.jit(lambda i: r.at[i][1:])(2), want[2][1:])


def test_parts_as_they_are_printed_and_read():
    def f(r, i, x):
        r.at[1].at[1:3][i] += x
        ref.addupdate(r.at[0:2], i, 1.0)
        return ref.swap(r.at[i].at[None], 0, 1.0)

    r = weft.new_ref(jnp.zeros((3, 4)))
    program = weft.make_jaxpr(f)(r, 1, jnp.float32(2.0))
    assert "a[1,:][1:3][b]" in str(program) and "a[0:2,:][b,:] +=" in str(program)
    read = parse(str(program))
    assert str(read) == str(program)
    np.testing.assert_array_equal(read(r, 1, jnp.float32(2.0))[0], [1, 1, 3, 1])


PARTS_MISUSED = {
    "vmap": lambda r: weft.vmap(lambda v: v[...])(r.at[0]),
    "scan": lambda r: lax.scan(lambda c, v: (c, v[...]), 0, r.at[0]),
    "freeze": lambda r: weft.freeze(r.at[0]),
    "free_ref": lambda r: weft.free_ref(r.at[0]),
    "jit": lambda r: weft.jit(lambda a, b: None)(r.at[0], r.at[1]),
    "jit beside it": lambda r: weft.jit(lambda a, b: None)(r, r.at[1]),
    "result": lambda r: weft.jit(lambda r: r.at[0])(r),
}


@pytest.mark.parametrize("name", PARTS_MISUSED)
def test_parts_misused(name):
    with pytest.raises(RefError):
        PARTS_MISUSED[name](weft.new_ref(jnp.zeros((3, 3))))


# --- kinds and types --------------------------------------------------------------------------


NO_GRAD = {
    "as it is": lambda f: f,
    "jit": weft.jit,
    "checkpoint": weft.checkpoint,
    "scan": lambda f: lambda x, r: lax.scan(lambda c, _: (f(c, r), None), x, None, length=1)[0],
    "cond": lambda f: lambda x, r: lax.cond(True, lambda: f(x, r), lambda: x),
    "custom_jvp": lambda f: lambda x, r: f(weft.nn.relu(x), r),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", NO_GRAD)
@pytest.mark.parametrize("outer", [lambda f: f, weft.jit], ids=["eager", "jit"])
def test_what_is_written_to_a_reference_without_derivatives(name, outer):
    """Differentiated functions write values to it, and go on as if they had not."""

    def f(x, r):
        r[...] += x * 2
        r.at[0][...] = r[0] * 1.0
        return x**2 + 0 * r[...]

    r = weft.new_ref(jnp.zeros(2), kind="no_grad_no_remat")
    x = jnp.array([1.0, 3.0])
    total = lambda x, r: NO_GRAD[name](f)(x, r).sum()
    np.testing.assert_array_equal(outer(weft.grad(total))(x, r), 2 * x)
    np.testing.assert_array_equal(r[...], 2 * x)  # written once, where remat runs twice, too
    closed = outer(weft.grad(lambda x: total(x, r)))
    np.testing.assert_array_equal(closed(x), 2 * x)
    tangent = outer(lambda x: weft.jvp(lambda x: total(x, r), (x,), (x,))[1])(x)
    assert tangent == 20.0
    np.testing.assert_array_equal(r[...], 6 * x)

    def within(x):
        own = weft.new_ref(x, kind="no_grad_no_remat")
        own[...] = own[...] * x
        return (own[...] + x).sum()

    np.testing.assert_array_equal(outer(weft.grad(within))(x), 1.0)


def test_types_of_references():
    struct = weft.ShapeDtypeStruct((3,), np.float32, is_ref=True)
    plain = struct.update(is_ref=False)
    assert struct.is_ref and struct != plain and not plain.is_ref
    assert repr(struct) == "ShapeDtypeStruct(shape=(3,), dtype=float32, is_ref=True)"

    def f(r):
        r[0] = 1.0
        return r[...] * 2

    assert str(weft.make_jaxpr(f)(struct).in_avals[0]) == "Ref{f32[3]}"
    assert weft.eval_shape(f, struct) == plain
    r = weft.new_ref(jnp.zeros(3))
    compiled = weft.jit(f).lower(struct).compile()
    np.testing.assert_array_equal(compiled(r), [2, 0, 0])
    np.testing.assert_array_equal(r[...], [1, 0, 0])
    assert weft.typeof(r).sharding == weft.typeof(r[...]).sharding
    assert r.unsafe_buffer_pointer() == r[...].unsafe_buffer_pointer()
    assert not r.committed and r.format == r[...].format and r.sharding == r[...].sharding


# --- against carried values -------------------------------------------------------------------


class Reference:
    """State by a reference, which loops and branches close over."""

    def __init__(self, x):
        self.ref = weft.new_ref(x)

    def get(self, i):
        return self.ref[i]

    def set(self, i, v):
        self.ref[i] = v

    def add(self, i, v):
        ref.addupdate(self.ref, i, v)

    def loop(self, step):
        lax.fori_loop(0, 3, lambda i, _: step(self, i), None)

    def walk(self, xs, step):
        return lax.scan(lambda _, x: (None, step(self, x)), None, xs)[1]

    def repeat(self, step):
        lax.while_loop(lambda i: i < 2, lambda i: (step(self, i), i + 1)[1], 0)

    def choose(self, p, step):
        lax.cond(p, lambda: step(self, 0), lambda: None)

    def call(self, step):
        weft.jit(lambda: step(self, 1))()

    def last(self):
        return weft.freeze(self.ref)


class Carried(Reference):
    """The same by values that are carried."""

    def __init__(self, x):
        self.x = x

    def run(self, step, x, *args):
        inner = Carried(x)
        y = step(inner, *args)
        return inner.x, y

    def get(self, i):
        return self.x[i]

    def set(self, i, v):
        self.x = self.x.at[i].set(v)

    def add(self, i, v):
        self.x = self.x.at[i].add(v)

    def loop(self, step):
        self.x = lax.fori_loop(0, 3, lambda i, x: self.run(step, x, i)[0], self.x)

    def walk(self, xs, step):
        self.x, ys = lax.scan(lambda x, y: self.run(step, x, y), self.x, xs)
        return ys

    def repeat(self, step):
        self.x = lax.while_loop(
            lambda s: s[1] < 2, lambda s: (self.run(step, s[0], s[1])[0], s[1] + 1), (self.x, 0)
        )[0]

    def choose(self, p, step):
        self.x = lax.cond(p, lambda x: self.run(step, x, 0)[0], lambda x: x, self.x)

    def call(self, step):
        self.x = weft.jit(lambda x: self.run(step, x, 1)[0])(self.x)

    def last(self):
        return self.x


def random_program(seed):
    """A function of a vector of three that reads and writes two states, of the class given."""
    rng = pyrandom.Random(seed)
    plan = [(rng.choice("gsawlrcjw"), rng.random(), rng.randrange(3)) for _ in range(4)]

    def step(state, i, kind, u, k):
        if kind in "gs":
            state.set(i, jnp.sin(state.get(k)) + u)
        elif kind == "a":
            state.add(jnp.array([0, k]), state.get(i) * u)
        else:
            state.set(slice(0, 2), state.get(slice(1, 3)) * u)

    def run(a, b, kind, u, k, within):
        inner = lambda state, i: step(state, i, within, u, k)
        if kind == "l":
            a.loop(inner)
        elif kind == "r":
            a.repeat(inner)
        elif kind == "c":
            b.choose(b.get(0) > u - 0.5, inner)
        elif kind == "j":
            b.call(inner)
        elif kind == "w":
            b.set(..., a.walk(jnp.arange(3), lambda s, i: (inner(s, i), s.get(i))[1]))
        else:
            step(b, k, kind, u, k)

    def program(make):
        def f(x):
            a, b = make(x), make(jnp.cos(x))
            for n, (kind, u, k) in enumerate(plan):
                run(a, b, kind, u, k, plan[n - 1][0])
                a.add(k, b.get(0))
            return a.last() * plan[0][1] + b.last()

        return f

    return program


TRANSFORMATIONS = {
    "jit": weft.jit,
    "vmap": lambda f: lambda x: weft.vmap(f)(jnp.stack([x, x * 0.5])).sum(0),
    "jvp": lambda f: lambda x: weft.jvp(f, (x,), (jnp.cos(x),))[1],
    "vjp": lambda f: lambda x: weft.vjp(f, x)[1](x + 0.5)[0],
    "remat": lambda f: lambda x: weft.checkpoint(f)(x),
}
TRIPLES = list(itertools.product(TRANSFORMATIONS, repeat=3))


def compare_state(seed, names):
    program, x = random_program(seed), jnp.array([0.3, -0.4, 0.9])
    found = []
    for make in (Reference, Carried):
        f = program(make)
        for name in names:
            f = TRANSFORMATIONS[name](f)
        found.append(weft.jit(f)(x))
    np.testing.assert_allclose(*found, rtol=2e-5, atol=1e-5, err_msg=f"{seed} {names}")


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed):
    compare_state(seed, pyrandom.Random(seed).choice(TRIPLES))


@pytest.mark.slow
@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
def test_random_programs_in_three_transformations(names):
    compare_state(TRIPLES.index(names), names)


# --- errors -----------------------------------------------------------------------------------

RAISES = {
    "twice": (lambda r: weft.jit(lambda a, b: a[0])(r, r), "jit: .* passed once.* as a and as b"),
    "closed over": (
        lambda r: weft.jit(lambda a: a[0] + r[0])(r),
        "as a value that <lambda> closes over and as argument `a`",
    ),
    "in a branch": (
        lambda r: lax.cond(True, lambda a, b: a[0], lambda a, b: b[0], r, r),
        "cond: .* passed once",
    ),
    "returned": (weft.jit(lambda r: {"r": r}), "must not be returned .* argument `r`"),
    "made and returned": (lambda r: weft.jit(lambda: weft.new_ref(1.0))(), "made by .*new_ref"),
    "carried": (lambda r: lax.scan(lambda c, x: (c, x), r, jnp.ones(2)), "must not be returned"),
    "of vmap": (
        lambda r: weft.vmap(lambda x: weft.new_ref(x))(jnp.ones(2)),
        "vmap: .*not be returned",
    ),
    "not mapped": (
        lambda r: weft.vmap(lambda x: r.__setitem__(0, x))(jnp.ones(2)),
        "vmap: a reference that is not mapped must not be written",
    ),
    "not mapped, one value": (
        lambda r: weft.vmap(lambda x: (r.__setitem__(0, 1.0), x)[1])(jnp.ones(2)),
        "vmap: a reference that is not mapped must not be written",
    ),
    "freed by another": (
        lambda r: weft.vmap(lambda x: x + weft.freeze(r))(jnp.ones((2, 3))),
        "freeze: .* freed where it was made",
    ),
    "not mapped, in jit": (
        lambda r: weft.jit(weft.vmap(lambda r, x: r.__setitem__(0, x), (None, 0)))(r, jnp.ones(2)),
        "vmap: a reference that is not mapped must not be written",
    ),
    "differentiated": (
        lambda r: weft.grad(lambda x: (r.__setitem__(0, x), x)[1])(1.0),
        "grad: a differentiated value must not be written",
    ),
    "differentiated, in jit": (
        weft.jit(lambda r: weft.jvp(lambda x: r.__setitem__(0, x), (1.0,), (1.0,))),
        "grad: a differentiated value must not be written",
    ),
    "gradient": (weft.grad(lambda r: r[0]), "grad: reverse mode has no derivative .* reference"),
    "tangent": (lambda r: weft.jvp(lambda r: r[0], (r,), (jnp.ones(3),)), "must be references"),
    "freed inside": (weft.jit(lambda r: weft.freeze(r)), "freeze: .* freed where it was made"),
    "predicate": (
        lambda r: lax.while_loop(lambda i: (r.__setitem__(0, 1.0), i < 3)[1], lambda i: i + 1, 0),
        "while_loop: the predicate must not write",
    ),
}


@pytest.mark.parametrize("case", RAISES)
def test_misuse(case):
    call, text = RAISES[case]
    with pytest.raises(RefError, match=text):
        call(weft.new_ref(jnp.ones(3)))


def test_errors_of_values():
    r = weft.new_ref(jnp.ones(3))
    with pytest.raises(DtypeError, match="sin: operands must be numbers, not references; got Ref"):
        jnp.sin(r)
    with pytest.raises(DtypeError, match="dtype of the reference; got i32\\[\\] for a Ref{f32"):
        r[0] = jnp.int32(1)
    with pytest.raises(DtypeError, match="needs an array; got Ref{f32\\[3\\]}. Hint: new_ref"):
        weft.new_ref(r)
    with pytest.raises(ShapeError, match="values must broadcast"):
        weft.jit(lambda: r.__setitem__(0, jnp.ones(2)))()
    with pytest.raises(IndexingError, match="got 5"):
        r[5] = 1.0
    with pytest.raises(DtypeError, match="get: needs a reference; got f32\\[3\\]"):
        ref.get(jnp.ones(3), 0)
    with pytest.raises(TypeError, match="np.asarray\\(r"):
        np.asarray(r)
    with pytest.raises(TypeError, match="bool\\(\\): needs a value; got a Ref"):
        bool(r)
    with pytest.raises(
        DeletedError, match="after it was freed; got a Ref{f32\\[2\\]} at test_refs.py"
    ):
        weft.jit(lambda x: (lambda q: (weft.free_ref(q), q[0]))(weft.new_ref(x)))(jnp.ones(2))


def test_leaks():
    kept = []
    keep = lambda x: (kept.append(weft.new_ref(x)), x)[1]
    weft.grad(keep)(1.0)
    weft.vmap(keep)(jnp.ones(2))
    weft.jit(keep)(1.0)
    for r in kept:
        for use in (lambda r=r: r[...], lambda r=r: r.__setitem__(..., 2.0)):
            with pytest.raises(RefError, match="after the function that made it has returned"):
                use()
    with pytest.raises(RefError, match="after the function that made it has returned"):
        weft.jit(lambda: kept[0][...])()


def test_forward_rules_are_pure():
    r = weft.new_ref(jnp.ones(3))

    @weft.custom_jvp
    def f(x):
        r[0] = 1.0
        own = weft.new_ref(x)
        return own[...] * r[0]

    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(RefError, match="custom_jvp: a function with a forward rule must be pure"):
        weft.jit(f)(1.0)


def test_keys_as_results_beside_references():
    count, key = weft.new_ref(0), weft.random.key(0)

    @weft.jit
    def draw(key, count):
        count[...] += 1
        return weft.random.fold_in(key, count[...])

    for n in range(1, 4):
        assert draw(key, count) == weft.random.fold_in(key, n)


def test_a_forward_rule_with_a_reference_from_outside():
    count = weft.new_ref(0.0)
    f = weft.custom_vjp(lambda x: x * 2)

    def fwd(x):
        count[...] += 1.0
        return x * 2, None

    f.defvjp(fwd, lambda _, ct: (ct * 2,))
    assert (weft.grad(f)(1.0), weft.jit(weft.grad(f))(1.0), count[...]) == (2, 2, 2)
    assert (weft.grad(weft.jit(f))(1.0), weft.jit(weft.grad(weft.jit(f)))(1.0)) == (2, 2)
    assert count[...] == 4


def in_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


WRAPS = {  # a program around a function, and how often it calls it
    "scan": (in_scan, 3),
    "while": (lambda f: lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x)
    )[1], 3),
    "cond": (lambda f: lambda x: lax.cond(x > 0, f, jnp.cos, x), 1),
    "jit": (lambda f: weft.jit(in_scan(weft.jit(f))), 3),
    "checkpoint": (lambda f: in_scan(weft.checkpoint(f)), 3),
    "branch": (lambda f: in_scan(lambda x: lax.cond(x > 0, f, jnp.cos, x)), 3),
}  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPS)
def test_each_function_of_a_custom_vjp_writes_a_reference_in_a_loop_that_is_differentiated(wrap):
    calls, forwards, backwards = (weft.new_ref(0.0) for _ in range(3))

    def count(r, y):
        r[...] += 1.0
        return y

    f = weft.custom_vjp(lambda x: count(calls, jnp.sin(x)))
    f.defvjp(
        lambda x: count(forwards, (jnp.sin(x), x)),
        lambda x, ct: count(backwards, (ct * jnp.cos(x),)),
    )
    around, times = WRAPS[wrap]
    want, x = 1.0, 1.0
    for _ in range(times):
        want, x = want * np.cos(x), np.sin(x)
    assert around(f)(1.0) == pytest.approx(x)
    assert (calls[...], forwards[...], backwards[...]) == (times, 0, 0)
    for grad in (weft.grad(around(f)), weft.jit(weft.grad(around(f)))):
        assert grad(1.0) == pytest.approx(want)
    assert (calls[...], forwards[...], backwards[...]) == (times, 2 * times, 2 * times)


def step(r, by):
    """The value of a reference depends on the order of such steps."""
    r[0] = r[0] * 1.5 + by


def share(form, r, optimize_remat):
    """A function and its fwd, which both write to `r`; and by how much fwd steps."""

    def sine(x, r):
        step(r, 1.0)
        return jnp.sin(x)

    def fwd(x, r):
        step(r, 2.0)
        return jnp.sin(x), x

    if form == "closed over":
        f = weft.custom_vjp(lambda x: sine(x, r))
        f.defvjp(
            lambda x: fwd(x, r), lambda x, ct: (ct * jnp.cos(x),), optimize_remat=optimize_remat
        )
        return f, 2.0
    f = weft.custom_vjp(sine)
    again = form == "called again"
    rule = (lambda x, r: (f(x, r), x)) if again else fwd
    f.defvjp(rule, lambda x, ct: (ct * jnp.cos(x), None), optimize_remat=optimize_remat)
    return lambda x: f(x, r), 1.0 if again else 2.0


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("form", ["closed over", "passed", "called again"])
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_function_and_its_forward_rule_share_a_reference(wrap, form):
    r, (around, times) = weft.new_ref(jnp.ones(2)), WRAPS[wrap]
    f, by = share(form, r, False)
    held, want, x = 1.0, 1.0, 1.0
    assert around(f)(1.0) != 1.0
    for _ in range(times):
        held, want, x = held * 1.5 + 1.0, want * np.cos(x), np.sin(x)
    assert r[...].tolist() == [held, 1.0]
    for grad in (weft.grad(around(f)), weft.jit(weft.grad(around(f)))):
        assert grad(1.0) == pytest.approx(want)
        for _ in range(times):
            held = held * 1.5 + by
    assert r[...].tolist() == pytest.approx([held, 1.0])


def test_a_shared_reference_where_the_forward_rule_is_left_out():
    r = weft.new_ref(jnp.ones(2))
    f, _ = share("called again", r, True)
    weft.grad(in_scan(weft.checkpoint(f)))(1.0)
    assert r[...].tolist() == [8.125, 1.0]
    f = weft.custom_vjp(jnp.sin)  # bwd has a reference, and fwd's program does not return it
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (step(r, 1.0), (ct,))[1], optimize_remat=True)
    assert weft.grad(f)(1.0) == 1.0 and r[0] == 13.1875


def touch(how, r, by, default):
    """Read an element of `r` if `how` has an r, and then write it if `how` has a w."""
    y = r[0] if "r" in how else default
    if "w" in how:
        r[0] = r[0] * 0.5 + 0.1 * by
    return y


SHARING = [  # how a function, its fwd and its bwd use one reference
    ("r", "r", "r"), ("r", "rw", ""), ("", "w", ""), ("", "", "w"), ("r", "r", "rw"),
    ("rw", "rw", "rw"), ("w", "", "r"), ("", "w", "w"), ("", "r", "w"), ("w", "rw", "r"),
]  # fmt: skip


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("form", ["closed over", "passed"])
@pytest.mark.parametrize("how", SHARING, ids=lambda how: "-".join(k or "none" for k in how))
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_function_and_its_rules_share_a_reference(wrap, how, form):
    r, (around, times) = weft.new_ref(jnp.ones(2)), WRAPS[wrap]
    primal, forward, backward = how

    def sine(x, r):
        return jnp.sin(x) * touch(primal, r, 1.0, 1.0)

    def fwd(x, r, sin=jnp.sin):
        factor = touch(forward, r, 2.0, 1.0)
        return sin(x) * factor, (x, factor)

    def bwd(r, residuals, ct, cos=jnp.cos):
        x, factor = residuals
        return ct * cos(x) * touch(backward, r, ct, factor)

    if form == "passed":
        g = weft.custom_vjp(sine)
        g.defvjp(
            lambda x, r: (lambda y, xs: (y, (xs, r)))(*fwd(x, r)),
            lambda residuals, ct: (bwd(residuals[1], residuals[0], ct), None),
        )
        f = lambda x: g(x, r)
    else:
        f = weft.custom_vjp(lambda x: sine(x, r))
        f.defvjp(lambda x: fwd(x, r), lambda residuals, ct: (bwd(r, residuals, ct),))
    held = np.ones(2)  # in the order of time
    for grad in (weft.grad(around(f)), weft.jit(weft.grad(around(f)))):
        x, want, kept = 0.7, 1.0, []
        for _ in range(times):
            x, residuals = fwd(x, held, np.sin)
            kept.append(residuals)
        for residuals in reversed(kept):
            want = bwd(held, residuals, want, np.cos)
        assert grad(0.7) == pytest.approx(want, 1e-4)
        assert r[...].tolist() == pytest.approx(held.tolist(), 1e-4)


GLOBAL = weft.new_ref(0.0)


def count_globally(y, by):
    GLOBAL[...] += by
    return y


def test_rules_share_a_global_reference_through_functions_of_the_file():
    f = weft.custom_vjp(lambda x: x * 2)
    f.defvjp(
        lambda x: (count_globally(x * 2, 1.0), None),
        lambda _, ct: (lambda: (count_globally(ct * 2, 100.0),))(),
    )
    assert weft.grad(in_scan(f))(1.0) == 8 and GLOBAL[...] == 303


def reading_bwd(r, writes=""):
    f = weft.custom_vjp(lambda x: jnp.sin(x) * r[0])
    rule = lambda x, ct: (ct * jnp.cos(x) * touch("r" + writes, r, ct, 0.0),)
    f.defvjp(lambda x: (jnp.sin(x) * r[0], x), rule)
    return f


@pytest.mark.parametrize("wrap", [weft.jit, in_scan], ids=["jit", "scan"])
def test_bwd_reads_a_reference_that_is_not_mapped(wrap):
    xs, r = jnp.array([0.5, 1.5]), weft.new_ref(jnp.full(2, 0.9))
    f = wrap(reading_bwd(r))
    want = [weft.grad(f)(x) for x in xs]
    mapped = weft.grad(lambda xs: weft.vmap(f)(xs).sum())(xs)
    np.testing.assert_allclose([mapped, weft.vmap(weft.grad(f))(xs)], [want, want], 1e-6)
    f = wrap(reading_bwd(r, "w"))
    for g in (weft.grad(lambda xs: weft.vmap(f)(xs).sum()), weft.vmap(weft.grad(f))):
        with pytest.raises(RefError, match="vmap: a reference that is not mapped must not"):
            g(xs)
    f = weft.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (touch("w", r, 1.0, 0.0), (jnp.sin(x), x))[1], lambda x, ct: (ct,))
    for g in (weft.grad(lambda xs: weft.vmap(wrap(f))(xs).sum()), weft.vmap(weft.grad(wrap(f)))):
        with pytest.raises(RefError, match="vmap: a reference that is not mapped must not"):
            g(xs)


def test_references_that_a_function_must_not_share_with_its_rules_in_a_loop():
    say = "a reference that a function and its rules share must not "
    r = weft.new_ref(jnp.ones(2))
    f = weft.custom_vjp(lambda x: x * r[0])
    f.defvjp(lambda x: (x * touch("rw", r, 1.0, 0.0), None), lambda _, ct: (ct * 2,))
    with pytest.raises(RefError, match=say + "be written by fwd where vmap does not map it"):
        weft.vmap(weft.grad(in_scan(f)))(jnp.ones(2))
    assert weft.vmap(in_scan(f))(jnp.ones(2)).tolist() == [1, 1]
    f = weft.custom_vjp(lambda x, r: x * r[...])
    f.defvjp(lambda x, r: (x * r[...], None), lambda _, ct: (ct * 2, None))

    def inside(x):
        own = weft.new_ref(x)
        return in_scan(lambda x: f(x, own))(x)

    with pytest.raises(RefError, match=say + "hold differentiated values; got one of <lambda>"):
        weft.grad(inside)(1.0)

    def use(x):
        own = weft.new_ref(jnp.ones(2))
        f = weft.custom_vjp(lambda x: x * 2)
        f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * touch("w", own, 1.0, 0.0),))
        return f(x) + own[0]

    with pytest.raises(RefError, match=say + "be made within if bwd uses it"):
        weft.grad(in_scan(use))(1.0)
    r = weft.new_ref(1.0)
    f.defvjp(lambda x, r: (x * r[...], r), lambda r, ct: (ct * r[...], None))
    for wrap in (weft.jit, lambda g: g):
        with pytest.raises(TypeError, match="has no forward-mode derivative"):
            wrap(lambda t: weft.jvp(in_scan(lambda x: f(x, r)), (1.0,), (t,))[1])(1.0)


AROUND = {
    "grad": lambda f, x: weft.grad(f)(x),
    "jit grad": lambda f, x: weft.jit(weft.grad(f))(x),
    "grad jit": lambda f, x: weft.grad(weft.jit(f))(x),
    "checkpoint": lambda f, x: weft.grad(weft.checkpoint(f))(x),
    "vmap grad": lambda f, x: weft.vmap(weft.grad(f))(jnp.stack([x, x]))[1],
    "vjp": lambda f, x: weft.vjp(f, x)[1](1.0)[0],
    "linearize": lambda f, x: weft.linear_transpose(weft.linearize(f, x)[1], x)(1.0)[0],
    "jvp grad": lambda f, x: weft.jvp(weft.grad(f), (x,), (x,))[0],
}


@pytest.mark.parametrize("way", AROUND)
@pytest.mark.parametrize("form", ["closed over", "passed", "differentiated"])
def test_bwd_uses_a_reference_that_the_differentiated_function_made(way, form):
    """`bwd` runs when that function has returned, and finds what the reference held then."""

    def fun(x):
        own = weft.new_ref(x * 2 if form == "differentiated" else jnp.array([2.0, 4.0]))

        def bwd(r, ct):
            r = own if r is None else r
            r[...] += ct
            return ct * r[...]

        f = weft.custom_vjp(lambda r, x: x * 5)
        f.defvjp(lambda r, x: (x * 5, r), lambda r, ct: (None, bwd(r, ct)))
        y = f(own if form == "passed" else None, f(own if form == "passed" else None, x))
        own[0] = own[0] * 3
        return y.sum()

    held, ct = np.array([6.0, 4.0]), np.ones(2)
    for _ in range(2):
        held = held + ct
        ct = ct * held
    np.testing.assert_allclose(AROUND[way](fun, jnp.array([1.0, 2.0])), ct)


def test_a_result_beside_a_reference_that_a_function_writes_may_be_unused():
    r = weft.new_ref(0.0)
    count = lambda y: (weft.ref.addupdate(r, ..., 1.0), y)[1]
    f = weft.custom_vjp(lambda x: count((x * 2, x * 3)))
    f.defvjp(lambda x: ((x * 2, x * 3), None), lambda _, cts: (cts[0] * 2 + cts[1] * 3,))
    assert weft.grad(in_scan(lambda x: f(x)[1]))(1.0) == 27 and r[...] == 0
    assert in_scan(lambda x: f(x)[1])(1.0) == 27 and r[...] == 3
    f.defvjp(f.fwd, f.bwd, optimize_remat=True)
    assert weft.grad(in_scan(weft.checkpoint(lambda x: f(x)[1])))(1.0) == 27 and r[...] == 3


def test_operations_on_what_is_no_reference_or_does_not_fit():
    r, x = AbstractRef(weft.typeof(jnp.zeros((2, 3)))), weft.typeof(jnp.zeros((2, 3)))
    y, n = weft.typeof(jnp.zeros(3)), weft.typeof(jnp.zeros((2, 3), int))
    wrong = [
        (refs.get_p, (x,), "needs a reference; got f32[2,3]. Hint: r = weft.new_ref(x)."),
        (refs.swap_p, (r, y), "got f32[3] for f32[2,3] of a Ref{f32[2,3]}."),
        (refs.addupdate_p, (r, n), "got i32[2,3] for f32[2,3] of a Ref{f32[2,3]}."),
    ]
    for prim, avals, said in wrong:
        with pytest.raises((DtypeError, ShapeError)) as info:
            prim.abstract_eval(*avals, index=refs.WHOLE)
        must = "what is written must have the type of what it replaces; "
        assert str(info.value) == f"{prim.name}: {'' if prim is refs.get_p else must}{said}"
    assert refs.get_p.abstract_eval(r, index=refs.WHOLE) == [x]
    assert refs.swap_p.abstract_eval(r, x, index=refs.WHOLE) == [x]
    assert refs.addupdate_p.abstract_eval(r, x, index=refs.WHOLE) == []
    assert repr(r) == "Ref{float32[2,3]}"


def test_the_end_of_a_reference():
    r = weft.new_ref(jnp.zeros(3))
    assert not r.is_deleted() and refs.free_ref_p.apply(r) == [] and r.is_deleted()
    with pytest.raises(DeletedError) as info:
        r[...]
    assert str(info.value) == (
        "Ref: must not be used after it was freed; got a Ref{f32[3]}. Hint: read it before freeze, "
        "which gives its last value."
    )


# --- writes to a reference from outside of a mapped function -----------------------------------

LOOPS = {
    "plain": lambda f: f,
    "jit": lambda f: weft.jit(f),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "cond": lambda f: lambda x: lax.cond(x < 5, f, lambda x: x, x),
    "checkpoint": lambda f: weft.checkpoint(f),
}
MAPS = {
    "vmap": lambda f, x: weft.vmap(f)(x),
    "vmap of grad": lambda f, x: weft.vmap(weft.grad(f))(x),
    "grad of vmap": lambda f, x: weft.grad(lambda x: weft.vmap(f)(x).sum())(x),
    "of cotangents": lambda f, x: weft.vmap(weft.vjp(f, x[0])[1])(x),
    "beside": lambda f, x: weft.vmap(lambda y: weft.grad(f)(1.0) * y)(x),
}


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(
    "outside, where", [("vmap", "function"), *((m, w) for m in MAPS for w in ("fwd", "bwd"))]
)
@pytest.mark.parametrize("inside", LOOPS)
def test_a_mapped_function_must_not_write_outside(inside, outside, where, staged):
    """Neither in a rule, nor a value that is not mapped, nor in a program that is not run yet."""
    r = weft.new_ref(jnp.zeros(()))

    def write(place):
        if place == where:
            r[...] = 1.0

    def f(x):
        write("function")
        return x * 2

    if where != "function":
        f = weft.custom_vjp(f)
        f.defvjp(
            lambda x: (write("fwd"), (x * 2, x))[1], lambda x, ct: (write("bwd"), (ct * 2,))[1]
        )
    run = lambda x: MAPS[outside](LOOPS[inside](f), x)
    run = weft.jit(run) if staged else run
    if (where, outside) == ("fwd", "of cotangents") or (where != "function" and outside == "vmap"):
        run(jnp.arange(3.0) + 1)  # nothing that writes is mapped
    else:
        with pytest.raises(RefError, match="a reference that is not mapped must not be written"):
            run(jnp.arange(3.0) + 1)
        assert r[...] == 0


@pytest.mark.parametrize("mode", [lambda g: g, weft.jit, weft.vmap], ids=["eager", "jit", "vmap"])
def test_residuals_hold_no_reference_that_fwd_made(mode):
    """Its forward rule ends it, as in JAX. A residual may be a reference that fwd was given."""

    @weft.custom_vjp
    def twice(x):
        return x * 2

    def fwd(x):
        r = weft.new_ref(x)
        return x * 2, (r, x)

    twice.defvjp(fwd, lambda res, ct: (ct * res[0][...],))
    for made in (
        weft.grad(twice),
        weft.grad(weft.jit(twice)),
        weft.grad(lambda x: lax.cond(x > 0, twice, jnp.sin, x)),
    ):
        with pytest.raises(RefError, match=r"no reference that fwd made; got a Ref\{f32\[\]\}"):
            mode(made)(jnp.ones(2) if mode is weft.vmap else 3.0)
