"""jet: against closed forms, nested derivatives and JAX; through programs and transformations.

Every primitive's terms are checked in test_jet_primitives.py. JAX's terms were printed by 0.10.2.
"""

import math

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, jvp, lax, vmap
from weft.errors import PytreeError, ShapeError
from weft.experimental import jet as jet_module
from weft.experimental.jet import jet
from weft.extend.core import Primitive
from weft.interpreters.mlir import lower_fun, register_lowering

X = np.array([0.3, 0.7, 0.45])
PATH = [
    np.array([0.2, -0.4, 0.5]),
    np.array([0.1, 0.3, -0.2]),
    np.array([0.5, 0.1, 0.1]),
    np.array([-0.3, 0.2, 0.6]),
]
M = np.arange(9.0).reshape(3, 3) / 9


@pytest.fixture(autouse=True)
def doubles():
    """Doubles, so that an error is a mistake and not rounding."""
    with weft.enable_x64():
        yield


def along(f, order):
    """The derivatives of f along PATH, by nested forward mode."""
    powers = [1.0 / math.factorial(k + 1) for k in range(len(PATH))]
    path = lambda s: X + sum(v * s ** (k + 1) * p for k, (v, p) in enumerate(zip(PATH, powers)))
    slope = lambda g: lambda s: jvp(g, (s,), (1.0,))[1]
    out = [lambda s: f(path(s))]
    for _ in range(order):
        out.append(slope(out[-1]))
    return jit(lambda s: [g(s) for g in out])(0.0)


def terms(f, order=4):
    """Value and terms along PATH, the leaves of each in a list."""
    y, found = jit(lambda x, vs: jet(f, (x,), (vs,)))(X, PATH[:order])
    flat = weft.tree.leaves(found)
    return [
        [leaf, *flat[i * order : (i + 1) * order]] for i, leaf in enumerate(weft.tree.leaves(y))
    ]


# --- values ---------------------------------------------------------------------------------------

JAX = {
    "exp(sin)": [
        [1.343825244, 1.904496534, 1.544909811],
        [0.256761058, -0.582655718, 0.695554782],
        [0.16155407, 0.418942002, -0.133062399],
        [0.681660647, 0.405137238, -0.294886102],
        [-0.066872113, -0.821487382, 1.286810848],
    ],
    "log1p": [
        [0.262364264, 0.530628251, 0.371563556],
        [0.153846154, -0.235294118, 0.344827586],
        [0.053254438, 0.121107266, -0.256837099],
        [0.356395084, 0.157337676, 0.293656977],
        [-0.466720353, 0.178434166, -0.020048609],
    ],
    "tanh": [
        [0.291312612, 0.604367777, 0.421899005],
        [0.183027392, -0.253895836, 0.411000615],
        [0.070186421, 0.067664707, -0.337800996],
        [0.414663119, 0.331895685, 0.194517122],
        [-0.530596665, 0.148610515, 0.755287279],
    ],
    "logistic": [
        [0.574442517, 0.668187772, 0.610639234],
        [0.048891662, -0.088685149, 0.11887948],
        [0.022989984, 0.054581256, -0.060704527],
        [0.119132578, 0.053706161, 0.026882055],
        [-0.091613679, 0.018219973, 0.162338327],
    ],
    "quotient": [
        [0.271119456, 0.432360864, 0.3617177],
        [0.145443085, -0.042828719, 0.239044147],
        [0.009953923, -0.162105623, -0.515359834],
        [0.251151065, 0.289170535, 0.630942124],
        [-0.911696605, 0.62434216, 0.509785445],
    ],
    "sqrt": [
        [0.547722558, 0.836660027, 0.670820393],
        [0.182574186, -0.239045722, 0.372677996],
        [0.030429031, 0.110985514, -0.35611453],
        [0.426006434, 0.154891871, 0.668059815],
        [-0.846941362, 0.252374437, -1.604509134],
    ],
    "erf": [
        [0.328626759, 0.677801194, 0.47548172],
        [0.206252182, -0.276509944, 0.460766007],
        [0.078375829, 0.052536889, -0.391651106],
        [0.464974919, 0.419299679, 0.203888958],
        [-0.610450358, 0.123927333, 0.885534669],
    ],
    "matmul": [[1.811035723], [0.571008315], [-0.423220553], [0.329733226], [0.918156499]],
    "max": [[0.49], [-0.56], [0.74], [-0.58], [0.5]],
    "cumsum": [
        [0.027, 0.37, 0.461125],
        [0.054, -0.534, -0.23025],
        [0.099, 1.212, 1.7655],
        [0.291, -1.458, -1.45725],
        [0.837, 3.321, 2.7495],
    ],
    "where": [
        [0.09, 0.758583702, 0.465342017],
        [0.12, -0.502067602, 0.551485084],
        [0.14, 0.497924094, -0.104258529],
        [0.42, -0.227904048, 0.108565683],
        [0.68, 0.715386425, 0.508884372],
    ],
    "norm": [[0.884590301], [0.005652334], [0.678243986], [-0.391707873], [-0.21613221]],
    "softmax": [
        [0.273698234, 0.408309785, 0.317991981],
        [0.040942047, -0.183907514, 0.142965467],
        [-0.032056046, 0.10753745, -0.075481404],
        [0.130766213, -0.014738843, -0.11602737],
        [-0.077862851, -0.109045955, 0.186908806],
    ],
    "power": [
        [0.164316767, 0.585662019, 0.301869177],
        [0.164316767, -0.501996016, 0.503115295],
        [0.136930639, 0.519924445, 0.078262379],
        [0.474692883, -0.156233454, -0.390069636],
        [0.305811761, 0.200322754, 1.592991391],
    ],
}
FUNCTIONS = {
    "exp(sin)": lambda x: jnp.exp(jnp.sin(x)),
    "log1p": jnp.log1p,
    "tanh": jnp.tanh,
    "logistic": weft.nn.sigmoid,
    "quotient": lambda x: jnp.sin(x) / (1 + x**2),
    "sqrt": jnp.sqrt,
    "erf": lax.erf,
    "matmul": lambda x: M @ jnp.cos(x) @ x,
    "max": lambda x: jnp.max(x * x),
    "cumsum": lambda x: jnp.cumsum(x**3),
    "where": lambda x: jnp.where(x > 0.4, jnp.sinh(x), x * x),
    "norm": lambda x: jnp.sqrt(jnp.sum(x * x)),
    "softmax": lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x)),
    "power": lambda x: x**1.5,
}


@pytest.mark.parametrize("name", JAX)
def test_terms_are_jaxs(name):
    (found,) = terms(FUNCTIONS[name])
    for got, want in zip(found, JAX[name], strict=True):
        np.testing.assert_allclose(np.ravel(got), want, atol=2e-9)


def test_coefficients_instead_of_derivatives():
    _, derivatives = jet(jnp.tanh, (X,), (PATH,))
    scaled = [v / math.factorial(k + 1) for k, v in enumerate(PATH)]
    y, found = jet(jnp.tanh, (X,), (scaled,), factorial_scaled=False)
    np.testing.assert_allclose(y, np.tanh(X))
    for k, (got, want) in enumerate(zip(found, derivatives, strict=True)):
        np.testing.assert_allclose(got, want / math.factorial(k + 1), rtol=1e-12)


@pytest.mark.parametrize(
    ("f", "x", "coefficient"),
    [
        (jnp.exp, 0.0, lambda k: 1 / math.factorial(k)),
        (lambda x: 1 / (1 - x), 0.0, lambda k: 1.0),
        (jnp.log1p, 0.0, lambda k: (-1) ** (k + 1) / k),
        (jnp.arctan, 0.0, lambda k: (0, 1 / k, 0, -1 / k)[k % 4]),
        (jnp.sin, 0.0, lambda k: (0, 1, 0, -1)[k % 4] / math.factorial(k)),
    ],
)
def test_known_series_to_order_12(f, x, coefficient):
    _, found = jet(f, (x,), ([1.0] + [0.0] * 11,), factorial_scaled=False)
    np.testing.assert_allclose(found, [coefficient(k) for k in range(1, 13)], atol=1e-12)


def test_a_power_at_zero():  # where the recurrence that divides by x is NaN
    _, found = jet(lambda x: x**3.0, (0.0,), ((1.0, 0.0, 0.0),))
    np.testing.assert_allclose(found, [0.0, 0.0, 6.0])


# --- programs -------------------------------------------------------------------------------------


@weft.custom_jvp
def steep(x):
    return jnp.sin(x)


@steep.defjvp
def steep_jvp(primals, tangents):
    return steep(primals[0]), 10.0 * jnp.cos(primals[0]) * tangents[0]


@weft.custom_vjp
def pulled(x):
    return jnp.sin(x) * x


pulled.defvjp(lambda x: (pulled(x), x), lambda x, ct: (ct,))

PROGRAMS = {
    "jit": lambda x: jit(lambda y: jnp.sin(y) * y)(x),
    "scan": lambda x: lax.scan(lambda c, y: (jnp.sin(c) * y, c * y), x[0], x),
    "scan whose carry comes to move": lambda x: lax.scan(lambda c, y: (c + y, c * y), 1.0, x)[1],
    "scan with consts, reversed": lambda x: lax.scan(
        lambda c, _: (c * x, jnp.sum(c)), x, None, 3, reverse=True
    ),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, x),
    "while_loop": lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.cos(c[1]) * x), (0, x)
    )[1],
    "while_loop of vmap": lambda x: vmap(
        lambda y: lax.while_loop(lambda c: c < 2.0, lambda c: c * (1 + y), 1.0)
    )(x),
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, lambda y: y**3, x),
    "switch": lambda x: lax.switch(1, [jnp.sin, lambda x: jnp.ones(3), jnp.cos], x),
    "a constant branch": lambda x: x * lax.cond(x[0] > 0, lambda y: 2.0, lambda y: y[0], x),
    "custom_jvp": lambda x: steep(x) * x,
    "checkpoint": weft.checkpoint(lambda x: jnp.sin(jnp.exp(x))),
    "grad": grad(lambda y: jnp.sum(jnp.sin(y) * y)),
    "grad of scan": grad(lambda x: lax.scan(lambda c, y: (jnp.sin(c) * y, c), x[0], x)[0]),
    "vmap": vmap(lambda y: jnp.sin(y) * y),
    "updates": lambda x: jnp.asarray(x).at[jnp.array([0, 0])].add(jnp.sin(x[:2])),
    "solve": lambda x: jnp.linalg.solve(3 * np.eye(3) + jnp.outer(x, x), x),
    "complex": lambda x: (jnp.exp(1j * x) * x).real,
}


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_through_programs(name):
    found = terms(PROGRAMS[name], 3)
    wanted = [weft.tree.leaves(y) for y in along(PROGRAMS[name], 3)]
    for i, series in enumerate(found):
        for k, got in enumerate(series):
            np.testing.assert_allclose(got, wanted[k][i], rtol=1e-9, atol=1e-9, err_msg=f"{k}")


def test_a_custom_vjp_function_is_looked_into():
    for got, want in zip(terms(pulled, 3)[0], along(lambda x: jnp.sin(x) * x, 3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_loops_stay_loops():
    text = str(weft.make_jaxpr(lambda x: jet(PROGRAMS["scan"], (x,), (PATH[:3],)))(X))
    assert text.count("scan[") == 1
    text = str(weft.make_jaxpr(lambda x: jet(PROGRAMS["while_loop"], (x,), (PATH[:3],)))(X))
    assert text.count("while[") == 1


def test_the_program_grows_with_the_square_of_the_order():
    def size(order):
        f = lambda x: jnp.tanh(jnp.sin(x) * jnp.exp(x))
        jaxpr = weft.make_jaxpr(lambda x: jet(f, (x,), ([1.0] * order,)))(1.0)
        return len(jaxpr.jaxpr.eqns)

    assert size(12) < 4.5 * size(6)


# --- under transformations ------------------------------------------------------------------------


def test_under_jit_vmap_and_derivatives():
    third = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]
    np.testing.assert_allclose(jit(third)(0.4), -np.cos(0.4))
    np.testing.assert_allclose(vmap(third)(X), -np.cos(X))
    np.testing.assert_allclose(grad(third)(0.4), np.sin(0.4))
    np.testing.assert_allclose(jvp(third, (0.4,), (1.0,))[1], np.sin(0.4))
    np.testing.assert_allclose(jit(vmap(grad(third)))(X), np.sin(X))


def test_of_a_jet():
    second = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0),))[1][1]
    _, found = jet(second, (0.4,), ((1.0, 0.0),))
    np.testing.assert_allclose(found, [-np.cos(0.4), np.sin(0.4)])


def test_values_are_known_to_python():
    f = lambda x: jnp.sin(x) if x > 0 else jnp.cos(x)
    np.testing.assert_allclose(jet(f, (0.4,), ((1.0,),))[1], [np.cos(0.4)])
    with pytest.raises(weft.errors.TracerBoolConversionError, match="bool"):
        jit(lambda x: jet(f, (x,), ((1.0,),)))(0.4)


# --- structures -----------------------------------------------------------------------------------


def test_structures():
    f = lambda d, z: {"product": d["a"] * d["b"], "rest": (z, 3.0)}
    for series in (
        [{"a": 1.0, "b": 1.0}, {"a": 0.0, "b": 0.0}],
        {"a": [1.0, 0.0], "b": [1.0, 0.0]},
    ):
        y, found = jet(f, ({"a": 1.0, "b": 2.0}, 1.0), (series, (0.0, 1.0)))
        assert weft.tree.map(float, y) == {"product": 2.0, "rest": (1.0, 3.0)}
        assert weft.tree.map(float, found) == {
            "product": [3.0, 2.0],
            "rest": ([0.0, 1.0], [0.0, 0.0]),
        }


def test_order_zero_integers_and_numbers_for_arrays():
    y, found = jet(jnp.sin, (0.5,), ((),))
    assert found == [] and abs(y - np.sin(0.5)) < 1e-12
    np.testing.assert_allclose(jet(jnp.sin, (1,), ((1, 0),))[1], [np.cos(1), -np.sin(1)])
    _, found = jet(jnp.sin, (X,), ((1.0, 0),))
    np.testing.assert_allclose(found, [np.cos(X), -np.sin(X)])
    y, found = jet(lambda x: jnp.round(x), (1.2,), ((1.0, 0.0),))
    assert [float(t) for t in found] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((3, (1.0,), ((1.0,),)), TypeError, "jet: needs a function"),
        ((jnp.sin, 1.0, ((1.0,),)), TypeError, "jet: primals must be a tuple or a list"),
        ((jnp.sin, (1.0,), 1.0), TypeError, "jet: series must be a tuple or a list"),
        ((jnp.sin, (1.0,), ((1.0,), (1.0,))), PytreeError, "an entry for each of 1 primals; got 2"),
        (
            (jnp.add, (1.0, 2.0), ((1.0, 0.0), (1.0,))),
            ShapeError,
            r"equally many terms; got \[1, 2",
        ),
        ((jnp.sin, (1.0,), (1.0,)), PytreeError, "jet: a series must be a list of terms"),
        ((jnp.sin, ("a",), ((1.0,),)), TypeError, "primals must be pytrees .* got 'a'"),
        ((jnp.sin, (1.0,), (("a",),)), TypeError, "jet: terms must be .* got 'a'"),
        ((jnp.sin, (X,), ((np.ones(2),),)), ShapeError, r"the type of its primal; got f64\[2\]"),
        ((jnp.sin, (1.0,), ((1j,),)), ShapeError, "the type of its primal; got c128"),
    ],
)
def test_mistakes(args, error, text):
    with pytest.raises(error, match=text):
        jet(*args)


def test_rules_of_primitives_of_ones_own():
    def made(name, fun):
        prim = Primitive(name)
        prim.def_impl(fun)
        prim.def_abstract_eval(lambda *avals: avals[0])
        register_lowering(prim, lower_fun(fun, multiple_results=False))
        return prim

    wave, floor = made("wave", jnp.sin), made("ground", jnp.floor)
    twice, cube = made("twice", lambda x: x * 2), made("cube", lambda x: x**3)
    jet_module.def_deriv(wave, jnp.cos)
    jet_module.defzero(floor)
    jet_module.deflinear(twice)
    jet_module.def_comp(cube, lambda x: x * x * x)
    for prim, fun in [
        (wave, jnp.sin),
        (floor, jnp.floor),
        (twice, lambda x: 2 * x),
        (cube, lambda x: x**3),
    ]:
        want = jet(fun, (1.5,), ([1.0, 0.5, 0.25],))
        np.testing.assert_allclose(
            np.ravel(jet(prim.bind, (1.5,), ([1.0, 0.5, 0.25],))[1]), np.ravel(want[1]), rtol=1e-5
        )
    value, terms = jet_module.linear_prop(twice, (1.0,), [[2.0, 3.0]])
    assert (value, *terms) == (2, 4, 6)
    assert jet_module.zero_prop(floor, (1.5,), [[2.0]])[1] == [0]
    assert jet_module.deriv_prop(wave, jnp.cos, (0.0,), [[2.0]])[1] == [2]
    zero_term, zero_series = jet_module.zero_term, jet_module.zero_series
    assert jet(lambda x, y: x * y, (1.0, 2.0), ([2.0, zero_term], zero_series))[1] == [4, 0]


def test_a_rule_for_series():
    """Its terms are coefficients, as in JAX's rules."""
    prim = Primitive("circle")  # sin(x + y), cos(x + y)
    prim.multiple_results = True
    pair = lambda x, y: [jnp.sin(x + y), jnp.cos(x + y)]
    prim.def_impl(pair)
    prim.def_abstract_eval(lambda x, y: [x, x])
    register_lowering(prim, lower_fun(pair, multiple_results=True))
    seen = []

    def rule(primals, series):
        seen.append((primals, series))
        return jet(pair, primals, series, factorial_scaled=False)

    rules = jet_module.jet_rules
    assert prim not in rules and lax.sin_p in rules
    rules[prim] = rule
    assert rules[prim] is rule and prim in rules
    fun = lambda f: lambda x: 2 * f(x, 1.0)[0] * x
    terms_of = lambda f: jit(lambda x: jet(fun(f), (x,), ([1.0, 0.5],)))(0.5)
    got, want = terms_of(prim.bind), terms_of(pair)
    np.testing.assert_allclose(np.ravel(got[1]), np.ravel(want[1]), rtol=1e-6)
    ((primals, series),) = seen
    assert len(primals) == 2 and series[1] == [0, 0] and len(series[0]) == 2
    _, terms = rules[lax.exp_p]((0.0,), ([1.0, 0.0],))
    assert terms == [1, 0.5]
    jet_module.def_comp(prim, lambda x, y: pair(x, y))
    assert rules[prim] is not rule


def test_terms_are_arrays_where_a_result_does_not_move():
    step = Primitive("step")
    step.def_abstract_eval(lambda x: x)
    step.def_impl(jnp.floor)
    jet_module.defzero(step)
    for fun in (step.bind, jnp.floor, lambda x: 3.0, lambda x: x > 0):
        for x in (3.5, jnp.float32(3.5), jnp.ones(2)):
            y, terms = jet(fun, (x,), ([x, x],))
            kind = np.ndarray if weft.typeof(y).dtype == bool else weft.Array  # of float0
            assert all(isinstance(t, kind) for t in terms)
            assert not any(np.any(t) for t in terms if t.dtype == np.float32)
