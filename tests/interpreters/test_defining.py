"""Libraries written against JAX's names: primitives of their own, under every transformation."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, hessian, jit, jvp, lax, linear_transpose, make_jaxpr, vjp, vmap
from weft.core import ShapedArray
from weft.errors import MissingRule
from weft.extend import core
from weft.interpreters import ad, batching, defining, mlir, partial_eval, xla

X = np.linspace(-1, 1, 3).astype(np.float32)
Y, Z = X + 2, X * X


def test_examples():
    check_examples(defining)


# --- JAX's tutorial "How JAX primitives work" ---------------------------------------------------

multiply_add_p = core.Primitive("multiply_add")


def multiply_add(x, y, z):
    return multiply_add_p.bind(x, y, z)


@multiply_add_p.def_impl
def multiply_add_impl(x, y, z):
    return np.add(np.multiply(x, y), z)


@multiply_add_p.def_abstract_eval
def multiply_add_abstract_eval(xs, ys, zs):
    assert xs.shape == ys.shape == zs.shape
    return ShapedArray(xs.shape, xs.dtype)


def multiply_add_jvp(arg_values, arg_tangents):
    x, y, z = arg_values
    xt, yt, zt = arg_tangents

    def make_zero(tan):
        return lax.full_like(x, 0) if type(tan) is ad.Zero else tan

    out = multiply_add(x, y, z)
    return out, multiply_add(make_zero(xt), y, multiply_add(x, make_zero(yt), make_zero(zt)))


def multiply_add_transpose(ct, x, y, z):
    if not ad.is_undefined_primal(x):
        assert ad.is_undefined_primal(y)
        ct_y = ad.Zero(y.aval) if type(ct) is ad.Zero else multiply_add(x, ct, lax.full_like(x, 0))
        return None, ct_y, ct if ad.is_undefined_primal(z) else None
    assert ad.is_undefined_primal(x)
    ct_x = ad.Zero(x.aval) if type(ct) is ad.Zero else multiply_add(ct, y, lax.full_like(y, 0))
    return ct_x, None, ct if ad.is_undefined_primal(z) else None


def multiply_add_batch(vector_arg_values, batch_axes):
    if len(set(batch_axes)) == 1:
        return multiply_add(*vector_arg_values), batch_axes[0]
    mapped = zip(vector_arg_values, batch_axes, strict=True)
    size = next(x.shape[d] for x, d in mapped if d is not batching.not_mapped)
    args = map(batching.bdim_at_front, vector_arg_values, batch_axes, [size] * 3)
    return multiply_add(*args), 0


mlir.register_lowering(
    multiply_add_p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False)
)
ad.primitive_jvps[multiply_add_p] = multiply_add_jvp
ad.primitive_transposes[multiply_add_p] = multiply_add_transpose
batching.primitive_batchers[multiply_add_p] = multiply_add_batch


def square_add(a, b):
    return multiply_add(a, a, b)


def plain(a, b):
    return a * a + b


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f(2.0, 10.0),
        lambda f: jit(f)(2.0, 10.0),
        lambda f: jit(f)(X, Y),
        lambda f: jit(lambda x, y: f(x, y), static_argnums=1)(2.0, 10.0),
        lambda f: jvp(f, (2.0, 10.0), (1.0, 1.0)),
        lambda f: jit(lambda x, t: jvp(f, x, t))((2.0, 10.0), (1.0, 1.0)),
        lambda f: grad(f)(2.0, 10.0),
        lambda f: jit(grad(f))(2.0, 10.0),
        lambda f: vmap(f, in_axes=0)(X, Y),
        lambda f: jit(vmap(f))(X, Y),
        lambda f: vmap(grad(f))(X, Y),
        lambda f: jit(grad(lambda x: jnp.sum(vmap(f)(x, Y))))(X),
        lambda f: hessian(lambda x: jnp.sum(f(x, Y)))(X),
        lambda f: grad(weft.checkpoint(f))(2.0, 10.0),
        lambda f: jit(grad(lambda c: lax.scan(lambda c, x: (f(c, x), c), c, X)[0]))(2.0),
    ],
)
def test_multiply_add(transform):
    weft.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
        transform(square_add),
        transform(plain),
    )


def test_the_primitive_stands_in_programs_as_itself():
    (eqn,) = make_jaxpr(square_add)(X, Y).eqns
    assert eqn.primitive is multiply_add_p
    assert str(make_jaxpr(square_add)(X, Y)) == (
        "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = multiply_add a a b in (c,) }"
    )
    assert isinstance(multiply_add_p, weft.core.primitive.Primitive)
    assert repr(multiply_add_p) == "multiply_add"


# --- several results, parameters, text ----------------------------------------------------------

sincos_p = core.Primitive("sincos")
sincos_p.multiple_results = True
sincos_p.def_impl(functools.partial(xla.apply_primitive, sincos_p))
sincos_p.def_abstract_eval(lambda x, *, scale: [x, x])


def sincos_lowering(ctx, x, *, scale):
    """sin and cos of scale * x, written as operations."""
    (aval,) = ctx.avals_in
    assert ctx.avals_out == [aval, aval] and ctx.platforms == ("cpu",)
    factor = ctx.hlo.spread(mlir.ir_constant(np.float32(scale)), aval)
    (y,) = ctx.hlo.op("stablehlo.multiply", [x, factor], [aval])
    return [ctx.hlo.op(f"stablehlo.{f}", [y], [aval])[0] for f in ("sine", "cosine")]


def sincos_jvp(primals, tangents, *, scale):
    (x,), (t,) = primals, tangents
    s, c = sincos_p.bind(x, scale=scale)
    return [s, c], [scale * c * t, -scale * s * t]


mlir.register_lowering(sincos_p, sincos_lowering, platform="cpu")
ad.primitive_jvps[sincos_p] = sincos_jvp
batching.defvectorized(sincos_p)


@pytest.mark.parametrize("wrap", [lambda f: f, jit, vmap, lambda f: jit(vmap(f))])
def test_two_results(wrap):
    f = wrap(lambda x: sincos_p.bind(x, scale=2.0))
    g = wrap(lambda x: [jnp.sin(2 * x), jnp.cos(2 * x)])
    for run in (lambda f: f(X), lambda f: jvp(f, (X,), (X,)), lambda f: vjp(f, X)[1]([X, Y])):
        weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), run(f), run(g))


def test_a_rule_for_one_platform_does_not_serve_another():
    prim = core.Primitive("elsewhere")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, lambda ctx, x: [x], platform="tpu")
    with pytest.raises(MissingRule, match="elsewhere: has no `lower` rule; define mlir.register_"):
        jit(prim.bind)(1.0)
    assert mlir.register_lowering(prim, lambda ctx, x: x)(None, 3) == 3
    assert jit(prim.bind)(1.0) == 1.0


# --- a library of linear maps: deflinear, defbilinear, defjvp, defreducer -----------------------


def defined(name, abstract_eval, fun):
    prim = core.Primitive(name)
    prim.def_impl(functools.partial(xla.apply_primitive, prim))
    prim.def_abstract_eval(abstract_eval)
    mlir.register_lowering(prim, mlir.lower_fun(fun, multiple_results=False))
    return prim


double_p = defined("double", lambda x, *, by: x, lambda x, *, by: by * x)
ad.deflinear(double_p, lambda ct, *, by: [double_p.bind(ct, by=by)])
batching.defvectorized(double_p)

outer_p = defined("times", lambda x, y: x, lambda x, y: x * y)
ad.defbilinear(outer_p, lambda ct, x, y: outer_p.bind(ct, y), lambda ct, x, y: outer_p.bind(ct, x))
batching.defbroadcasting(outer_p)

sigmoid_p = defined("sigmoid", lambda x: x, lambda x: 1 / (1 + jnp.exp(-x)))
ad.defjvp2(sigmoid_p, lambda t, y, x: t * y * (1 - y))
batching.defbroadcasting(sigmoid_p)

power_p = defined("power", lambda x, n: x, lambda x, n: x**n)
ad.defjvp(power_p, lambda t, x, n: t * n * x ** (n - 1), None)

total_p = defined(
    "total",
    lambda x, *, axes: ShapedArray([d for i, d in enumerate(x.shape) if i not in axes], x.dtype),
    lambda x, *, axes: jnp.sum(x, axes),
)
ad.deflinear2(
    total_p, lambda ct, x, *, axes: [jnp.broadcast_to(jnp.expand_dims(ct, axes), x.aval.shape)]
)
batching.defreducer(total_p)


@pytest.mark.parametrize(
    "f, g",
    [
        (lambda x: double_p.bind(x, by=3.0), lambda x: 3.0 * x),
        (lambda x: outer_p.bind(x, jnp.sin(x)), lambda x: x * jnp.sin(x)),
        (lambda x: outer_p.bind(x, Y), lambda x: x * Y),
        (sigmoid_p.bind, lambda x: 1 / (1 + jnp.exp(-x))),
        (lambda x: power_p.bind(x, 3.0), lambda x: x**3.0),
    ],
)
def test_families(f, g):
    runs = [
        lambda f: f(X),
        lambda f: jvp(f, (X,), (Y,)),
        lambda f: vjp(f, X)[1](Y),
        lambda f: jit(lambda x: vjp(f, x)[1](Y))(X),
    ]
    if "power" not in str(make_jaxpr(f)(X)):
        runs += [lambda f: vmap(f, 1, 1)(np.stack([X, Y], 1)), lambda f: weft.jacrev(f)(X)]
    for run in runs:
        weft.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), run(f), run(g)
        )


def test_a_reduction():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    f = lambda x: total_p.bind(x, axes=(1,))
    for d in range(3):
        moved = np.moveaxis(np.stack([x, 2 * x]), 0, d)
        np.testing.assert_allclose(vmap(f, d)(moved), [x.sum(1), 2 * x.sum(1)])
    np.testing.assert_allclose(grad(lambda x: jnp.sum(f(x) ** 2))(x)[0, 0], 2 * x.sum(1)[0])
    np.testing.assert_allclose(linear_transpose(f, x)(x.sum(1))[0][:, 0], x.sum(1))


def test_a_batcher_that_is_told_the_axis():
    seen = []
    prim = defined("ranked", lambda x: x, lambda x: x)

    def batcher(axis, args, dims):
        seen.append((axis.size, axis.name, dims))
        return args[0], dims[0]

    batching.fancy_primitive_batchers[prim] = batcher
    np.testing.assert_allclose(vmap(prim.bind, axis_name="i")(X), X)
    assert seen == [(3, "i", (0,))]
    assert batching.axis_primitive_batchers[prim] is batcher


def test_an_effect():
    class Loud(core.Effect):
        name = "Loud"

    loud = Loud()
    prim = core.Primitive("loud")
    prim.def_effectful_abstract_eval(lambda x: (x, {loud}))
    jaxpr = make_jaxpr(lambda x: [prim.bind(x), x][1])(X)
    assert jaxpr.effects == {loud}
    assert [e.primitive for e in partial_eval.dce_jaxpr(jaxpr.jaxpr, [True])[0].eqns] == [prim]


# --- JAX's tutorial "Writing custom interpreters" ------------------------------------------------


def eval_jaxpr(jaxpr, consts, *args):
    env = {}

    def read(var):
        return var.val if type(var) is core.Literal else env[var]

    def write(var, val):
        env[var] = val

    list(map(write, jaxpr.invars, args))
    list(map(write, jaxpr.constvars, consts))
    for eqn in jaxpr.eqns:
        invals = list(map(read, eqn.invars))
        bind_params = eqn.primitive.get_bind_params(eqn.params)
        outvals = eqn.primitive.bind(*invals, **bind_params)
        if not eqn.primitive.multiple_results:
            outvals = [outvals]
        list(map(write, eqn.outvars, outvals))
    return list(map(read, jaxpr.outvars))


def inverse_jaxpr(registry, jaxpr, consts, *args):
    env = {}

    def read(var):
        return var.val if type(var) is core.Literal else env[var]

    def write(var, val):
        env[var] = val

    list(map(write, jaxpr.outvars, args))
    list(map(write, jaxpr.constvars, consts))
    for eqn in jaxpr.eqns[::-1]:
        invals = list(map(read, eqn.outvars))
        if eqn.primitive not in registry:
            raise NotImplementedError(f"{eqn.primitive} does not have registered inverse.")
        outval = registry[eqn.primitive](*invals)
        list(map(write, eqn.invars, [outval]))
    return list(map(read, jaxpr.invars))


def inverse(fun, registry):
    @functools.wraps(fun)
    def wrapped(*args):
        closed_jaxpr = make_jaxpr(fun)(*args)
        out = inverse_jaxpr(registry, closed_jaxpr.jaxpr, closed_jaxpr.literals, *args)
        return out[0]

    return wrapped


def test_an_interpreter_evaluates_programs():
    def f(x, y):
        s, c = sincos_p.bind(jnp.exp(jnp.tanh(x)), scale=1.0)
        a, _ = lax.top_k(multiply_add(s, c, y), 2)
        return jit(lambda a: lax.cond(a[0] > 0, jnp.sin, jnp.cos, a))(a)

    closed = make_jaxpr(f)(X, Y)
    (got,) = eval_jaxpr(closed.jaxpr, closed.literals, X, Y)
    np.testing.assert_allclose(got, f(X, Y), rtol=1e-6)
    (traced,) = jit(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs))(X, Y)
    np.testing.assert_allclose(traced, got, rtol=1e-6)


def test_an_interpreter_inverts_programs():
    f = lambda x: jnp.exp(jnp.tanh(x))
    f_inv = inverse(f, {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh})
    np.testing.assert_allclose(f_inv(f(1.0)), 1.0, rtol=1e-5)
    y = np.float32([0.6, 0.8, 1.0])
    slopes = jit(vmap(grad(f_inv)))(y)
    np.testing.assert_allclose(slopes, 1 / (y * (1 - np.log(y) ** 2)), rtol=1e-4)
    with pytest.raises(NotImplementedError, match="sin does not have registered inverse"):
        inverse(jnp.sin, {})(1.0)


# --- the registries, and missing rules ----------------------------------------------------------


def test_rules_can_be_read_of_weft_too():
    assert ad.primitive_jvps[multiply_add_p] is multiply_add_jvp
    assert batching.primitive_batchers[multiply_add_p] is multiply_add_batch
    assert ad.get_primitive_transpose(multiply_add_p) is multiply_add_transpose
    out, dot = ad.primitive_jvps[lax.sin_p]((X,), (Y,), accuracy=None)
    np.testing.assert_allclose(dot, np.cos(X) * Y, rtol=1e-6)
    out, dim = batching.primitive_batchers[lax.sin_p]((X,), (0,), accuracy=None)
    assert dim == 0 and out.shape == (3,)
    ct, _ = ad.primitive_transposes[lax.mul_p](X, ad.UndefinedPrimal(weft.typeof(X)), Y)
    np.testing.assert_allclose(ct, X * Y, rtol=1e-6)
    assert batching.primitive_batchers.get(core.Primitive("bare")) is None
    assert core.Primitive("bare") not in ad.primitive_jvps and lax.sin_p in ad.primitive_jvps
    for registry in (ad.primitive_jvps, ad.primitive_transposes, partial_eval.dce_rules):
        with pytest.raises(KeyError):
            registry[core.Primitive("bare")]
    assert core.primitives.jit_p in partial_eval.dce_rules


def test_a_rule_of_weft_can_be_replaced_and_comes_back():
    own = ad.primitive_jvps[lax.cos_p]

    def rule(primals, tangents, **params):
        out, _ = own(primals, tangents, **params)
        return out, 100 * tangents[0]

    ad.primitive_jvps[lax.cos_p] = rule
    try:
        assert ad.primitive_jvps[lax.cos_p] is rule
        assert grad(jnp.cos)(1.0) == 100.0
    finally:
        del ad.primitive_jvps[lax.cos_p]
    np.testing.assert_allclose(grad(jnp.cos)(1.0), -np.sin(1.0), rtol=1e-6)
    with pytest.raises(KeyError):
        del ad.primitive_jvps[lax.cos_p]


def test_a_rule_for_what_is_not_needed():
    prim = core.Primitive("both")
    prim.multiple_results = True
    prim.def_abstract_eval(lambda x, y: [x, y])

    def rule(used, eqn):
        ((x, _), (y, _)) = eqn.invars, eqn.outvars
        params = {"accuracy": None}
        return used, eqn.replace(primitive=lax.sin_p, invars=[x], outvars=[y], params=params)

    partial_eval.dce_rules[prim] = rule
    jaxpr = make_jaxpr(lambda x, y: prim.bind(x, y)[0])(X, Y).jaxpr
    out, used = partial_eval.dce_jaxpr(jaxpr, [True])
    assert used == [True, False] and [e.primitive for e in out.eqns] == [lax.sin_p]
    assert len(partial_eval.dce_jaxpr(jaxpr, [True], True)[0].invars) == 2
    assert partial_eval.dce_jaxpr(jaxpr, [True], [False, True])[1] == [True, True]
    used, new = partial_eval.dce_rules[core.primitives.jit_p](
        [False, True], make_jaxpr(jit(lambda x, y: (x * x, y * y)))(X, Y).eqns[0]
    )
    assert used == [False, True] and len(new.outvars) == 1


@pytest.mark.parametrize(
    "run, rule",
    [
        (lambda p: jit(p.bind)(1.0), "bare_p.def_abstract_eval(rule)"),
        (lambda p: p.bind(1.0), "bare_p.def_abstract_eval(rule)"),
        (lambda p: grad(p.bind)(1.0), "ad.primitive_jvps[bare_p] = rule"),
        (lambda p: vmap(p.bind)(X), "batching.primitive_batchers[bare_p] = rule"),
        (
            lambda p: (p.def_abstract_eval(lambda x: x), jit(p.bind)(1.0)),
            "mlir.register_lowering(bare_p, rule)",
        ),
        (
            lambda p: (p.def_abstract_eval(lambda x: x), linear_transpose(p.bind, 1.0)(1.0)),
            "ad.primitive_transposes[bare_p] = rule",
        ),
    ],
)
def test_a_missing_rule_says_how_to_give_it(run, rule):
    with pytest.raises(MissingRule) as caught:
        run(core.Primitive("bare"))
    assert str(caught.value).endswith(f"rule; define {rule}.")


# --- the smaller names --------------------------------------------------------------------------


def test_rules_of_libraries_by_size_and_name_of_the_axis():
    """equinox defines such rules, and calls them itself."""
    named_p = core.Primitive("named")
    named_p.def_impl(lambda x: x)
    named_p.def_abstract_eval(lambda x: x)
    seen = []

    def rule(size, name, kind, args, dims):
        seen.append((size, name, dims))
        return args[0], dims[0]

    batching.axis_primitive_batchers[named_p] = rule
    assert vmap(named_p.bind, axis_name="i")(X).tolist() == X.tolist()
    assert seen == [(3, "i", (0,))] and batching.axis_primitive_batchers[named_p] is rule
    out, dim = batching.axis_primitive_batchers[lax.neg_p](3, "i", None, [X], [0])
    assert np.array_equal(out, -X) and dim == 0


def test_programs_of_libraries_call_python():
    """A rule calls Python itself or by a function; `impl` stays as defined."""
    called_p, written_p = core.Primitive("called"), core.Primitive("written")
    function = lambda x: weft.pure_callback(np.sin, weft.typeof(x), x)
    for prim in (called_p, written_p):
        prim.def_impl(function)
        prim.def_abstract_eval(lambda x: x)
        assert prim.impl is function
    mlir.register_lowering(called_p, mlir.lower_fun(function, multiple_results=False))

    def write(ctx, x):
        outs, _, alive = mlir.emit_python_callback(
            ctx, sine, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False, sharding=None
        )
        ctx.module_context.add_keepalive(alive)
        return outs

    seen = []
    sine = lambda x: seen.append(type(x)) or [np.sin(x)]

    mlir.register_lowering(written_p, write)
    for prim in (called_p, written_p):
        assert np.array_equal(jit(lambda x, p=prim: p.bind(x) + 1)(X), np.sin(X) + 1)
        assert np.array_equal(prim.bind(X), np.sin(X))
    assert seen == [np.ndarray]
    sine = lambda x: [np.sin(x[0])]
    with pytest.raises(TypeError, match=r"must have the shape declared; got \(\) for \(3,\)"):
        jit(lambda x: written_p.bind(x) - 1)(X)


def test_a_class_with_the_type_rule_as_a_method():
    class Twice(core.Primitive):
        def __init__(self):
            super().__init__("twice")
            mlir.register_lowering(self, mlir.lower_fun(lambda x: x * 2, multiple_results=False))

        def abstract_eval(self, x):
            return x, frozenset()

    x = np.arange(3.0, dtype=np.float32)
    assert jit(Twice().bind)(x).tolist() == [0, 2, 4]


def test_bind_gives_the_one_result_as_in_jax():
    x = jnp.asarray(X)
    np.testing.assert_array_equal(lax.add_p.bind(x, x), 2 * X)
    assert not lax.add_p.multiple_results and lax.sort_p.multiple_results
    (found,) = lax.sort_p.bind(x, dimension=0, is_stable=True, num_keys=1)
    np.testing.assert_array_equal(found, np.sort(X))
    assert jit(lambda x: lax.neg_p.bind(x) + 1)(x).tolist() == (1 - X).tolist()


@pytest.mark.parametrize(
    ("out", "multiple", "message"),
    [
        (3, False, "must return the type of the result; got 3"),
        ([ShapedArray((), np.float32)], False, "must return the type of the result; got "),
        (ShapedArray((), np.float32), True, "must return a sequence of types; got "),
    ],
)
def test_a_type_rule_that_gives_something_else(out, multiple, message):
    prim = core.Primitive("wrong")
    prim.multiple_results = multiple
    prim.def_abstract_eval(lambda x: out)
    with pytest.raises(TypeError, match=f"^wrong: its abstract_eval rule {message}"):
        weft.make_jaxpr(prim.bind)(1.0)
