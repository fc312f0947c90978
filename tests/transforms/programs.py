"""Programs of three numbers with many uses of primitives that hold programs."""

import inspect

import numpy as np

import weft
import weft.numpy as jnp
from weft import P, lax, shard_map
from weft import checkpoint_policies as policies
from weft.ad_checkpoint import checkpoint_name
from weft.custom_batching import custom_vmap, sequential_vmap
from weft.custom_derivatives import closure_convert, custom_gradient, linear_call
from weft.experimental import checkify, io_callback
from weft.sharding import AbstractMesh, AxisType, NamedSharding, reshard

W = np.float32([[0.2, -0.4, 0.1], [0.3, 0.1, -0.2], [-0.1, 0.5, 0.2]])
ROWS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
# Under jaxlib 0.12 axes are explicit unless they are said to be Auto.
AUTO = AbstractMesh((2, 3), ("a", "b"), AxisType.Auto)
EXPLICIT = AbstractMesh((2, 3), ("a", "b"), AxisType.Explicit)
sin, cos, tanh = jnp.sin, jnp.cos, jnp.tanh


# --- calls ----------------------------------------------------------------------------------------

helper = weft.jit(lambda x, n: {"y": tanh(x) * n, "n": n, "i": jnp.arange(3)})
inlined = weft.jit(lambda x: sin(x) * 2, inline=True)
static = weft.jit(lambda x, n, *, up: x**n if up else x / n, static_argnums=1, static_argnames="up")


def calls(x):
    out = helper(helper(x, 2.0)["y"], x[0])
    return out["y"] * out["n"] + inlined(x), out["i"]


def calls_of_constants(x):
    return helper(W, 3)["y"] @ x + weft.jit(lambda: jnp.ones(3))()


def unused_results(x):
    a, _, c = weft.jit(lambda a, b: (sin(a), cos(b), a))(x, x * 2)
    return a, c


def options(x):
    f = weft.jit(lambda x: x * 2, compiler_options={"xla_cpu_enable_fast_math": True})
    return static(f(x), 3, up=True) + static(x, 2, up=False)


def composites(x):
    f = lax.composite(lambda x, *, scale: sin(x) * scale, "mine.scaled", version=2)
    return f(x, scale=np.float32(2.0)) + f(cos(x), scale=3)


@weft.named_scope("outer")
def scopes(x):
    with weft.named_scope("inner"):
        return sin(x) * weft.named_call(cos, name="called")(x)


def barriers(x):
    return lax.optimization_barrier((x, sin(x)))[1], lax.stop_gradient(x) * x


# --- branches -------------------------------------------------------------------------------------


def chosen(x):
    return lax.cond(x[0] > 0, lambda y, n: (sin(y), n), lambda y, n: (y, n + 1), x * 2, 3)


def chosen_among_constants(x):
    return lax.switch(1, [lambda y: y, sin, cos], x), lax.cond(True, lambda: x, lambda: x + 1)


def one_branch_moves(x):
    return lax.cond(x.sum() > 0, lambda: (x * 2, W), lambda: (jnp.ones(3), W + 1))


def clamped_switch(x):
    return lax.switch(jnp.int32(x[0]), [lambda y: y * W[0], lambda y: y, lambda y: 3 * y], x)


def branch_shares(x):
    y = sin(x)
    return lax.cond(y[1] > 0, lambda z: z * y + x, lambda z: z * x + y, cos(y))


def platforms(x):
    return lax.platform_dependent(x, cpu=sin, cuda=cos, default=tanh)


def selected(x):
    return lax.select_n(jnp.int32(x > 0), x, sin(x)), jnp.where(x > 0, x, 0)


# --- loops ----------------------------------------------------------------------------------------


def scanned(x):
    def step(carry, row):
        h, n = carry
        return (tanh(W @ h + row), n + 1), {"h": h * x[0], "n": n, "w": W[0]}

    return lax.scan(step, (x, 0), ROWS)


def scanned_back(x):
    return lax.scan(lambda c, y: (c * y, c + y), x[0], x, reverse=True, unroll=2)


def scanned_whole(x):
    return lax.scan(lambda c, y: (c * y, c), x, ROWS, unroll=True)[1]


def scan_without_xs(x):
    return lax.scan(lambda c, _: (sin(c), None), x, length=5)[0]


def scan_of_constants(x):
    """The carry does not depend on x: the known part can be computed before."""
    c, ys = lax.scan(lambda c, y: (c + y, c * y), np.float32(1.0), W[0])
    return c * x, ys


def scan_keeps(x):
    def step(c, row):
        a, b = c
        return (b, a), (a * row).sum()

    return lax.scan(step, (x, W[0]), ROWS)


def scan_hoists(x):
    return lax.scan(lambda c, row: (c * sin(x) + jnp.exp(W).sum() * row, None), x, ROWS)[0]


def scan_split(x):
    return lax.scan(lambda c, row: (sin(c) * row, c), x, ROWS, _split_transpose=True)


def empty_scan(x):
    return lax.scan(lambda c, y: (c * 2, y + c), x, ROWS[:0])


def loops(x):
    going = lambda s: (s[0] < 5) & (s[1].sum() < x[0])
    return lax.while_loop(going, lambda s: (s[0] + 1, s[1] * x + W[0], s[2]), (0, x, x[1]))


def loop_of_constants(x):
    return lax.while_loop(lambda i: i < 3, lambda i: i + 1, 0) * x


def bounded_loop(x):
    return lax.while_loop(lambda s: s.sum() < 9, lambda s: s * x, x, max_steps=6, checkpoints=2)


def counted(x):
    n = jnp.int32(x[0])
    up = lax.fori_loop(n, n + 3, lambda i, c: c * 0.5 + i, 1.0)
    return lax.fori_loop(2, 6, lambda i, c: sin(c) * i, x, unroll=2) * up


def counted_rows(x):
    return lax.fori_loop(0, 3, lambda i, c: c.at[i].set(sin(c[i]) * x[i]), x)


def mapped_rows(x):
    return lax.map(lambda r: r * x, ROWS), lax.map(sin, ROWS, batch_size=3)


def associative(x):
    both = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])
    return lax.associative_scan(both, (x, x * 2), reverse=True)


def reduced(x):
    y = jnp.stack([x, sin(x)])
    return lax.reduce(y, np.float32(0), lambda a, b: a + b + a * b, (0,)), lax.cumlogsumexp(x)


# --- custom rules ---------------------------------------------------------------------------------


@weft.custom_jvp
def by_jvp(x, n):
    return x * n, n


by_jvp.defjvp(lambda p, t: (by_jvp(*p), (t[0] * 3 * p[1], t[1])))


@weft.custom_jvp
def by_jvps(x, y):
    return sin(x) * y


by_jvps.defjvps(lambda t, out, x, y: t * out, None)


@weft.custom_vjp
def by_vjp(tree, n):
    return tree["a"] * n, tree["b"]


by_vjp.defvjp(
    lambda tree, n: (by_vjp(tree, n), (tree, n)),
    lambda kept, cts: ({"a": cts[0] * kept[1], "b": None}, (cts[0] * kept[0]["a"]).sum()),
)


@weft.custom_vjp
def by_symbols(x, y):
    return x * y, x


by_symbols.defvjp(
    lambda x, y: ((x.value * y.value, x.value), (x.perturbed, y.perturbed, x.value)),
    lambda kept, cts: (cts[0] * 2, cts[0] * kept[2] if kept[1] is True else None),
    symbolic_zeros=True,
)


def with_nondiff(x):
    @weft.custom_vjp
    def f(scale, x):
        return x * scale[0]

    g = weft.custom_vjp(lambda k, x: k(x), nondiff_argnums=0)
    g.defvjp(lambda k, x: (k(x), x), lambda k, kept, ct: (ct * k(kept),))
    f.defvjp(lambda s, x: (x * s[0], s), lambda s, ct: ((ct.sum(), None), ct * s[0]))
    return g(sin, x) + f((x[0], 2), x)


def rules_in_loops(x):
    step = lambda c, y: (by_jvp(c, y)[0], by_vjp({"a": c, "b": c}, x[0])[0])
    return lax.scan(step, x, x), lax.cond(x[0] > 0, lambda y: by_jvps(y, y), tanh, x)


def rules_of_zero(x):
    return (
        by_jvp(W[0], x[1]),
        by_jvps(x, W[1]),
        by_vjp({"a": W[2], "b": x}, 2.0),
        by_symbols(x, W[0]),
    )


def gradients(x):
    f = custom_gradient(lambda x: (x**2, lambda ct: (ct * 3 * sin(x),)))
    return f(x) * 2


def linear(x):
    """Calls that are linear in one of their operands."""
    f = lambda kept, y: {"y": y * kept, "z": y.sum()}
    back = lambda kept, cts: cts["y"] * kept + cts["z"]
    converted, consts = closure_convert(lambda y: y * x, x)
    return linear_call(f, back, sin(x), x), converted(x, *consts)


def solved(x):
    a = W + 3 * jnp.eye(3) * x[0]
    solve = lambda matvec, b: (jnp.linalg.inv(W) @ b, {"steps": 3})
    return lax.custom_linear_solve(lambda v: a @ v, x, solve, solve, has_aux=True)


def rooted(x):
    solve = lambda f, guess: (guess - f(guess), 7)
    tangent = lambda g, y: y / g(jnp.ones_like(y))
    return lax.custom_root(lambda y: y**3 - x, x * 2, solve, tangent, has_aux=True)


@custom_vmap
def by_vmap(x, y):
    return sin(x) * y, x


@by_vmap.def_vmap
def by_vmap_rule(size, batched, x, y):
    return (cos(x) * (y * size), x), (batched[0], batched[0])


def vmapped(x):
    return by_vmap(x, 2.0), by_vmap(W[0], 3.0), sequential_vmap(lambda a: a * 3)(x)


def named(x):
    inner = lambda r: lax.psum(r, "i") * lax.axis_index("i") + lax.pmax(x, "i")
    both = lambda a: weft.vmap(lambda b: lax.psum(a * b, ("i", "j")), axis_name="j")(x)
    gathered = weft.vmap(lambda r: lax.all_gather(r, "i", axis=1), axis_name="i")(ROWS)
    return weft.vmap(inner, axis_name="i")(ROWS), weft.vmap(both, axis_name="i")(x), gathered


def exchanged(x):
    shift = lambda r: lax.ppermute(r, "i", [(0, 1), (1, 2), (2, 0)])
    turn = lambda r: lax.all_to_all(r, "i", 0, 0), lambda r: lax.psum_scatter(r, "i")
    each = (shift, *turn, lambda r: lax.pbroadcast(r, "i", 1))
    return [weft.vmap(f, axis_name="i", in_axes=1)(W * x) for f in each]


# --- kept values ----------------------------------------------------------------------------------


def layers(x):
    h = checkpoint_name(sin(W @ x), "h")
    return checkpoint_name(cos(W @ h) * x, "g").sum()


SAVED = {
    "all": policies.everything_saveable,
    "dots": policies.dots_saveable,
    "no batch": policies.dots_with_no_batch_dims_saveable,
    "names": policies.save_only_these_names("h"),
    "not": policies.save_anything_except_these_names("g"),
    "offload": policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["h"],
        names_which_can_be_offloaded=["g"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "both": policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("g")
    ),
}
KEPT = {
    f"saved {name}": (lambda x, p=policy: weft.checkpoint(layers, policy=p)(x))
    for name, policy in SAVED.items()
}


def recomputed(x):
    inner = weft.checkpoint(lambda y: lax.scan(lambda c, r: (sin(c) * r, c), y, ROWS)[0])
    return weft.checkpoint(lambda y: inner(y) * cos(y), prevent_cse=False)(x)


def budgeted(x):
    return weft.checkpoint(layers, budget=16)(x)


def recomputed_steps(x):
    step = weft.checkpoint(lambda c, r: (tanh(W @ c + r), sin(c).sum()), policy=SAVED["names"])
    return lax.scan(step, x, ROWS)


# --- effects and state ----------------------------------------------------------------------------


def host_double(x):
    return np.asarray(x) * 2


def calls_host(x):
    same = weft.ShapeDtypeStruct((3,), np.float32)
    each = {
        m: weft.pure_callback(host_double, same, x, vmap_method=m)
        for m in ("sequential", "expand_dims", "broadcast_all")
    }
    return each, io_callback(host_double, same, x, ordered=True)


def branch_calls_host(x):
    say = lambda y: (weft.debug.print("{}", y, ordered=True), y)[1]
    return lax.cond(x[0] > 0, say, lambda y: y * 2, x)


def loop_calls_host(x):
    say = lambda y: (weft.debug.print("{}", y, ordered=True), y * 2)[1]
    return lax.while_loop(lambda y: y.sum() < 3, say, x), lax.map(say, x)


def of_integers(x):
    """Tangents of integers have a type of their own, and are mapped and carried too."""
    none = np.zeros(3, weft.dtypes.float0)
    of = weft.jvp(lambda i, x: (i * 2, x * i), (jnp.arange(3), x), (none, x))[1]
    return (
        weft.vmap(lambda i, t: weft.jvp(lambda i: i + 1, (i,), (t,))[1], (0, None))(
            jnp.ones((3, 3), int), none
        ),
        of,
        lax.scan(lambda c, i: (c + i, c * x), 0, jnp.arange(3)),
    )


def prints(x):
    weft.debug.print("x {} {y}", x[0], y=sin(x), ordered=True)
    weft.debug.callback(host_double, x)
    return lax.fori_loop(0, 2, lambda i, c: (weft.debug.print("{}", c), c * 2)[1], x)


def asserts(x):
    checkify.check(x[0] > 0, "first {}", x[0])
    return lax.scan(lambda c, r: (checkify.check(c.sum() > 0, "c"), (c / r, c[0]))[1], x, ROWS)


def indexed(x):
    i = jnp.int32(x)
    return (
        jnp.asarray(W)[i],
        x[i[0]],
        lax.dynamic_slice(x, (i[0],), (2,)),
        x.at[i].add(1.0, mode="drop"),
        1 / x,
    )


def refs(x):
    ref = weft.new_ref(x)
    ref[0] = x[1] * 2
    ref[1:] += sin(ref[:2])

    def turn(i, _):
        ref[i] = ref[i] * x[0]

    lax.fori_loop(0, 3, turn, None)
    lax.cond(x[0] > 0, lambda: ref.__setitem__(..., x), lambda: None)
    return ref[...], weft.jit(lambda r: r[0] * 2)(ref)


def ref_in_scan(x):
    ref = weft.new_ref(jnp.zeros(3))

    def step(c, i):
        ref[i] = c[0]
        return c * 2 + ref[...], None

    return lax.scan(step, x, jnp.arange(3))[0], weft.freeze(ref)


def keys(x):
    key = weft.random.key(jnp.uint32(x[0]))
    a, b = weft.random.split(key)
    draw = lambda c, k: (c + weft.random.normal(k, (3,)), weft.random.fold_in(k, 3))
    return lax.scan(draw, x, weft.random.split(a, 2)), weft.random.bits(b, (2,))


# --- over a mesh ----------------------------------------------------------------------------------


def over(mesh, spec, x):
    return weft.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))


def constrained(x):
    y = over(AUTO, P("a", "b"), jnp.outer(jnp.ones(4), x))
    return weft.vmap(lambda r: over(AUTO, P("b"), r), spmd_axis_name="a")(y)


def parts(x):
    body = lambda r, y: (lax.psum(r * y, "a"), r + lax.axis_index("b"), lax.pmax(y, "b"))
    specs = (P("a", "b"), P("b"))
    f = shard_map(body, mesh=AUTO, in_specs=specs, out_specs=(P(None, "b"), P("a", "b"), P()))
    return f(jnp.outer(jnp.ones(4), x), x)


def parts_unchecked(x):
    body = lambda r: lax.all_gather(r, "b", tiled=True)
    return shard_map(body, mesh=AUTO, in_specs=P("b"), out_specs=P(), check_vma=False)(x)


def some_parts(x):
    body = lambda r: lax.psum_scatter(lax.pcast(r, "b", to="varying"), "b", tiled=True)
    return shard_map(body, mesh=AUTO, in_specs=P(), out_specs=P("b"), axis_names={"b"})(x)


def parts_loop(x):
    def body(r):
        c, ys = lax.scan(
            lambda c, y: (c * y + r, lax.ppermute(c, "b", [(0, 1), (1, 0)])), r, ROWS[:, :1]
        )
        return lax.cond(lax.axis_index("b") > 0, lambda: c, lambda: r), lax.psum(ys, "b")

    return shard_map(body, mesh=AUTO, in_specs=P("b"), out_specs=(P("b"), P()))(x)


def explicit(x):
    y = reshard(jnp.outer(jnp.ones(4), x), NamedSharding(EXPLICIT, P("a", "b")))
    h = lax.dot(y, W, out_sharding=NamedSharding(EXPLICIT, P("a")))
    down = weft.vmap(lambda r: sin(r) * r.sum(), 1, 1)(y)
    return h, down, lax.scan(lambda c, r: (c + r, c), jnp.ones(3), W)[0], y.reshape(2, 2, 3)


PARTS = ["static", "host_double", "by_vmap_rule", "layers", "over"]  # of programs
PROGRAMS = {
    **KEPT,
    **{
        name: f
        for name, f in list(globals().items())
        if inspect.isfunction(f) and f.__module__ == __name__ and name not in PARTS
    },
}
