"""Optimizers: against JAX's numbers and papers' formulas, on pytrees, under jit and scan."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import lax, tree_util
from weft.errors import PytreeError
from weft.example_libraries import optimizers

MAKERS = {
    "sgd": (),
    "momentum": (0.9,),
    "nesterov": (0.9,),
    "adagrad": (),
    "rmsprop": (),
    "rmsprop_momentum": (),
    "adam": (),
    "adamax": (),
    "sm3": (),
}
RNG = np.random.default_rng(0)


def rounded(*shape):
    return np.round(RNG.normal(size=shape), 2).astype(np.float32)


GRADS = [{"w": rounded(2, 3), "b": (rounded(2),)} for _ in range(6)]
PARAMS = {"w": rounded(2, 3), "b": (np.array([0.5, -0.25], np.float32),)}

# The parameters after six steps of JAX 0.10.2, b before w: steps of 0.1,
JAX_CONSTANT = {
    "sgd": [0.439, -0.631, 1.963, 1.278, 0.235, -1.35, 0.385, 0.531],
    "momentum": [0.612684, -0.938744, 2.12395, 1.733048, 0.198659, -1.527972, 1.474047, 0.106348],
    "nesterov": [0.540415, -1.250869, 2.254555, 1.649744, 0.089794, -1.636175, 1.711642, 0.032713],
    "adagrad": [0.494336, -0.298612, 1.804356, 1.399637, 0.333036, -1.297892, 0.097595, 0.601299],
    "rmsprop": [0.376109, -0.898201, 2.040122, 1.62305, 0.023476, -2.000285, 0.764063, 0.268125],
    "rmsprop_momentum": [
        0.361807,
        -1.811673,
        1.959908,
        3.796267,
        -0.490851,
        -4.022911,
        3.127458,
        -1.168386,
    ],
    "adam": [0.474771, -0.50317, 1.891057, 1.636858, 0.23122, -1.531811, 0.451019, 0.339046],
    "adamax": [0.464017, -0.446489, 1.832247, 1.552851, 0.244232, -1.45872, 0.299736, 0.437527],
    "sm3": [0.494336, -0.298612, 1.806561, 1.397841, 0.331012, -1.289949, 0.097595, 0.599486],
}
# and exponential_decay(0.1, 3, 0.5).
JAX_DECAY = {
    "sgd": [0.484978, -0.419475, 1.877614, 1.380467, 0.305525, -1.281546, 0.287727, 0.55908],
    "momentum": [0.510661, -0.570104, 1.957394, 1.60457, 0.26458, -1.365757, 0.799275, 0.371166],
    "nesterov": [0.494574, -0.707569, 2.019269, 1.63658, 0.219647, -1.421727, 1.007075, 0.29913],
    "adagrad": [0.492189, -0.276718, 1.796907, 1.371192, 0.341803, -1.260834, 0.056799, 0.625427],
    "rmsprop": [0.409198, -0.615795, 1.830656, 1.792627, 0.134061, -1.800717, 0.63079, 0.299213],
    "rmsprop_momentum": [
        0.072592,
        -1.48079,
        1.549535,
        3.786366,
        -0.539572,
        -3.598317,
        2.673002,
        -0.945531,
    ],
    "adam": [0.442622, -0.415009, 1.814569, 1.563814, 0.249212, -1.447542, 0.29322, 0.445823],
    "adamax": [0.436455, -0.3928, 1.781156, 1.510364, 0.253405, -1.404094, 0.216054, 0.493845],
    "sm3": [0.492189, -0.276718, 1.797916, 1.369868, 0.340836, -1.256815, 0.056799, 0.624137],
}


def flat(tree):
    return np.concatenate([np.ravel(x) for x in tree_util.tree_leaves(tree)])


def make(name, step_size=0.1):
    return getattr(optimizers, name)(step_size, *MAKERS[name])


def run(opt, update):
    state = opt.init_fn(PARAMS)
    for i, g in enumerate(GRADS):
        state = update(i, g, state)
    return state


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", MAKERS)
def test_the_same_parameters_as_jax(name):
    opt = make(name)
    np.testing.assert_allclose(
        flat(opt.params_fn(run(opt, weft.jit(opt.update_fn)))), JAX_CONSTANT[name], 1e-5, 2e-6
    )
    opt = make(name, optimizers.exponential_decay(0.1, 3, 0.5))
    np.testing.assert_allclose(
        flat(opt.params_fn(run(opt, opt.update_fn))), JAX_DECAY[name], 1e-5, 2e-6
    )


@pytest.mark.parametrize("name", MAKERS)
def test_a_scan_of_steps_is_a_loop_of_steps(name):
    opt = make(name)
    stacked = weft.tree.map(lambda *xs: np.stack(xs), *GRADS)
    init = opt.init_fn(PARAMS)
    state, _ = lax.scan(lambda s, x: (opt.update_fn(*x, s), None), init, (jnp.arange(6), stacked))
    assert tree_util.tree_structure(state) == tree_util.tree_structure(init)
    np.testing.assert_allclose(flat(opt.params_fn(state)), JAX_CONSTANT[name], 1e-5, 2e-6)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("step_size", [0.1, optimizers.exponential_decay(0.1, 10, 0.5)])
def test_shapes_and_dtypes_stay(name, step_size):
    opt = make(name, step_size)
    params = [jnp.ones((), jnp.bfloat16), jnp.ones((0, 3)), jnp.ones((2, 1, 2), jnp.float16)]
    state = opt.init_fn(params)
    for i in range(2):
        state = opt.update_fn(jnp.int32(i), params, state)
    for x, y in zip(params, opt.params_fn(state), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert np.all(np.isfinite(np.asarray(y, np.float32))) and np.all(np.asarray(y) < 1)


@pytest.mark.parametrize("name", MAKERS)
def test_no_gradient_no_step(name):
    opt = make(name)
    zeros = weft.tree.map(np.zeros_like, PARAMS)
    with weft.debug_nans(True):
        state = opt.update_fn(0, zeros, opt.init_fn(PARAMS))
    np.testing.assert_array_equal(flat(opt.params_fn(state)), flat(PARAMS))


def test_adam_as_its_paper_says():
    b1, b2, eps, step = 0.8, 0.95, 1e-3, 0.01
    opt = optimizers.adam(step, b1, b2, eps)
    x, m, v = flat(PARAMS).astype(float), 0, 0
    for t, g in enumerate(map(flat, GRADS), 1):
        g = g.astype(float)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        x = x - step * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    np.testing.assert_allclose(flat(opt.params_fn(run(opt, opt.update_fn))), x, 1e-5, 1e-6)


def test_sm3_bounds_the_sums_of_squares():
    init, update, _ = optimizers.sm3(0.1)
    state = init(jnp.zeros((3, 4)))
    total = 0
    for i in range(4):
        g = rounded(3, 4)
        total = total + g**2
        state = update(i, g, state)
        _, _, (rows, columns) = optimizers.unpack_optimizer_state(state).subtree
        assert rows.shape == (3,) and columns.shape == (4,)
        assert np.all(np.minimum(rows[:, None], columns[None, :]) >= total - 1e-5)


def test_updates_have_derivatives():
    def after(step_size):
        opt = optimizers.momentum(step_size, 0.5)
        state = opt.init_fn(1.0)
        for i in range(3):
            state = opt.update_fn(i, opt.params_fn(state), state)
        return opt.params_fn(state)

    h = 1e-2
    expected = (after(0.1 + h) - after(0.1 - h)) / (2 * h)
    np.testing.assert_allclose(weft.grad(after)(0.1), expected, 1e-2)


@pytest.mark.parametrize("name", MAKERS)
def test_learning(name):
    target = jnp.array([1.0, -2.0, 3.0])
    loss = lambda x: jnp.sum((x - target) ** 2)
    init, update, get_params = make(name, optimizers.inverse_time_decay(0.4, 100, 1))
    step = lambda i, s: update(i, weft.grad(loss)(get_params(s)), s)
    state = lax.fori_loop(0, 400, step, init(jnp.zeros(3)))
    assert loss(get_params(state)) < 0.05


# --- state --------------------------------------------------------------------------------------


def test_a_state_is_a_pytree_and_unpacks():
    opt = optimizers.adam(0.1)
    state = opt.update_fn(0, GRADS[0], opt.init_fn(PARAMS))
    assert len(tree_util.tree_leaves(state)) == 6
    marked = optimizers.unpack_optimizer_state(state)
    assert set(marked) == {"w", "b"} and len(marked["w"].subtree) == 3
    assert repr(optimizers.JoinPoint((1, 2))) == "JoinPoint((1, 2))"
    again = optimizers.pack_optimizer_state(marked)
    assert tree_util.tree_structure(again) == tree_util.tree_structure(state)
    np.testing.assert_array_equal(flat(again), flat(state))
    (path, _), *_ = tree_util.tree_flatten_with_path(state)[0]
    assert tree_util.keystr(path) == ".packed_state[0][0]"
    with pytest.raises(
        PytreeError, match="leaves must be JoinPoints; got a leaf of type int. Hint"
    ):
        optimizers.pack_optimizer_state([3])


def test_no_parameters():
    init, update, get_params = optimizers.adam(0.1)
    assert get_params(update(0, {}, init({}))) == {}


def test_wrong_structures():
    opt = optimizers.sgd(0.1)
    state = opt.init_fn(PARAMS)
    text = (
        "optimizer update: the gradients must have the structure of the parameters; got a dict "
        "with keys 'b', 'w' at params where grads has a list of length 1."
    )
    with pytest.raises(PytreeError, match=re.escape(text)):
        opt.update_fn(0, [1.0], state)
    with pytest.raises(TypeError):  # as JAX
        opt.update_fn(0, {"w": 1.0}, state)

    @optimizers.optimizer
    def grows():
        return lambda x: (x,), lambda i, g, s: (*s, g), lambda s: s[0]

    assert grows.__name__ == "grows"
    opt = grows()
    with pytest.raises(
        PytreeError, match="update must keep the structure of the state of an array"
    ):
        opt.update_fn(0, 1.0, opt.init_fn(1.0))


# --- step sizes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "expected"),  # at steps 0, 3, 5, 25, by JAX 0.10.2
    [
        (optimizers.constant(0.1), [0.1, 0.1, 0.1, 0.1]),
        (optimizers.exponential_decay(0.1, 10, 0.5), [0.1, 0.08122524, 0.07071068, 0.01767767]),
        (optimizers.inverse_time_decay(0.1, 10, 0.5), [0.1, 0.08695652, 0.08, 0.04444444]),
        (optimizers.inverse_time_decay(0.1, 10, 0.5, staircase=True), [0.1, 0.1, 0.1, 0.05]),
        (optimizers.polynomial_decay(0.1, 10, 0.01), [0.1, 0.073, 0.055, 0.01]),
        (optimizers.polynomial_decay(0.1, 10, 0.01, 2.0), [0.1, 0.0541, 0.0325, 0.01]),
        (optimizers.piecewise_constant([2, 5], [0.1, 0.2, 0.3]), [0.1, 0.2, 0.2, 0.3]),
    ],
)
def test_schedules(schedule, expected):
    steps = [0, 3, 5, 25]
    np.testing.assert_allclose([schedule(i) for i in steps], expected, 1e-5)
    np.testing.assert_allclose([weft.jit(schedule)(i) for i in steps], expected, 1e-5)


def test_make_schedule():
    assert optimizers.make_schedule(0.5)(7) == 0.5
    assert optimizers.make_schedule(jnp.float32(0.5))(7) == 0.5
    assert optimizers.make_schedule(lambda i: 2 * i)(7) == 14
    for bad in (None, jnp.ones(2)):
        with pytest.raises(
            TypeError, match="a step size must be a scalar or a function of the step"
        ):
            optimizers.adam(bad)


@pytest.mark.parametrize(
    ("boundaries", "values"), [([2, 5], [1, 2]), (2, [1, 2]), ([[2]], [1, 2]), ([2], 1)]
)
def test_piecewise_constant_needs_sequences_that_fit(boundaries, values):
    with pytest.raises(
        ValueError, match="values must be a sequence of one more than the boundaries"
    ):
        optimizers.piecewise_constant(boundaries, values)


# --- gradients ----------------------------------------------------------------------------------


def test_norms():
    tree = {"w": jnp.arange(6.0).reshape(2, 3), "b": (jnp.float32(0.5),), "n": None}
    np.testing.assert_allclose(optimizers.l2_norm(tree), 7.4330344, 1e-6)
    assert optimizers.l2_norm({}) == 0
    np.testing.assert_allclose(optimizers.l2_norm([jnp.array([3j, 4.0])]), 5.0)
    clipped = optimizers.clip_grads(tree, 1.0)
    np.testing.assert_allclose(optimizers.l2_norm(clipped), 1.0, 1e-6)
    np.testing.assert_allclose(flat(clipped)[0], 0.06726728, 1e-6)
    np.testing.assert_array_equal(flat(optimizers.clip_grads(tree, 7.5)), flat(tree))
    zeros = {"h": jnp.zeros(2, jnp.bfloat16), "f": jnp.zeros(2)}
    out = optimizers.clip_grads(zeros, 1.0)
    assert out["h"].dtype == jnp.bfloat16 and not np.any(flat(out))


def test_the_older_module():
    from weft.experimental import optimizers as older

    assert older.adam is optimizers.adam and older.__all__ == optimizers.__all__
    assert weft.example_libraries.optimizers is optimizers


def test_doctests():
    check_examples(optimizers)
