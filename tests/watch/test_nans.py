"""debug_nans and debug_infs: what made the first bad value, where, under which transformations."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import debug_infs, debug_nans, grad, jit, lax, vmap


def raises(match):
    return pytest.raises(FloatingPointError, match=match)


def line_of(fun, offset=1):
    """The place of a line of a function, as errors give it."""
    return f"test_nans.py:{fun.__code__.co_firstlineno + offset}"


def model(x):
    a = jnp.sin(x)
    b = jnp.log(a)
    return jnp.sum(b * 2)


def root(x):
    return jnp.sum(jnp.sqrt(x) * 0)


BAD = np.array([1.0, 4.0], np.float32)


def test_eager_operation():
    with debug_nans(), raises(r"^log: results must hold no NaN under debug_nans; got nan at \[1\]"):
        jnp.log(jnp.array([1.0, -1.0]))


def test_the_line_is_the_users():
    with debug_nans(), raises(rf"made by `jnp.log\(a\)` at {line_of(model, 2)}\. Hint:"):
        model(BAD)


@pytest.mark.parametrize("scalar", [-1.0, np.float32(-1), np.array(-1.0, np.float32)])
def test_host_values(scalar):
    with debug_nans(), raises(r"got nan of type f32\[\]"):
        jnp.log(scalar)


def test_jitted_function():
    fun = jit(model)
    with debug_nans():
        said = rf"^log: .*made by `jnp.log\(a\)` at {line_of(model, 2)}, in model\."
        with raises(said):
            fun(BAD)
        with raises(said):  # and again
            fun(BAD)
        assert np.isfinite(fun(np.ones(2, np.float32)))
    assert np.isnan(fun(BAD))


@pytest.mark.parametrize("donated", [(), 0])
def test_compiled_program(donated):
    compiled = jit(lambda x: model(x) + x, donate_argnums=donated).lower(BAD).compile()
    with debug_nans(), raises(rf"^log: .*`jnp.log\(a\)` at {line_of(model, 2)}, in <lambda>\."):
        compiled(jnp.array(BAD))
    assert np.isnan(compiled(jnp.array(BAD))).all()


def test_nested_jit():
    with debug_nans(), raises(r"`jnp.log\(a\)` at .*, in jit\(model\) in <lambda>\."):
        jit(lambda x: jit(model)(x) + 1)(BAD)


@pytest.mark.parametrize(
    "fun",
    [grad(root), jit(grad(root)), grad(jit(root)), jit(grad(jit(root))), jit(vmap(grad(root)))],
    ids=["grad", "jit_grad", "grad_jit", "jit_grad_jit", "jit_vmap_grad"],
)
def test_gradients_name_the_forward_line(fun):
    said = rf"^mul: .*made by `jnp.sqrt\(x\)` at {line_of(root)} of operand 1, which has inf"
    with debug_nans(), raises(said):
        fun(np.zeros(2, np.float32))


def test_an_argument_that_has_nan_already():
    with debug_nans():
        with raises("got nan of type f32.*, made by .* of operand 0, which has nan"):
            jnp.array(np.nan) + 1
        with raises(r"as result 0 of <lambda>, from argument `x` of <lambda> at .*, which has nan"):
            jit(lambda x: x + 1)(jnp.array(np.nan))
        with raises(r"result 0 of <lambda>, from argument `y` of <lambda>"):
            jit(lambda n, y: y * n, static_argnums=0)(2, jnp.array(np.nan))


def test_a_constant():
    with debug_nans(), raises("result 0 of <lambda>, where it is written as a constant"):
        jit(lambda: jnp.nan)()


def test_what_is_closed_over():
    held = jnp.array([1.0, np.nan])
    with debug_nans(), raises("of <lambda>, from a value that it closes over, which has nan at"):
        jit(lambda x: x + jnp.tile(held, 1000))(1.0)


def test_complex():
    with debug_nans(), raises(r"^mul: .*got \(nan\+nanj\) of type c64\[\]"):
        jnp.array(1j) * complex("nan")


def test_bfloat16():
    with debug_nans(), raises(r"^log: .*got nan of type bf16\[\]"):
        jnp.log(jnp.array(-1.0, jnp.bfloat16))


def test_nan_that_does_not_come_out_is_no_error():
    def safe(x):
        return jnp.where(x > 0, jnp.log(x), 0.0)

    with debug_nans():
        assert float(jit(safe)(-1.0)) == 0.0
        assert float(jnp.nan_to_num(jnp.array(np.nan))) == 0.0
        assert bool(jnp.isnan(jnp.array(np.nan)))
        assert jnp.arange(3).sum() == 3


def test_donated_arguments_are_kept_for_the_search():
    fun = jit(jnp.log, donate_argnums=0)
    with debug_nans():
        bad = jnp.array([-1.0, 2.0])
        with raises("^log"):
            fun(bad)
        assert not bad.is_deleted()
        good = jnp.ones(2)
        fun(good)
        assert good.is_deleted()


def logs(c, x):
    d = c - 1.0
    return jnp.log(d), x


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_inside_loops_and_branches(wrap):
    name = "" if wrap is not jit else r" in <lambda>"
    xs = np.arange(6, dtype=np.float32)
    place = line_of(logs, 2)
    with debug_nans():
        with raises(rf"`jnp.log\(d\)` at {place}, in step 2 of scan{name}\."):
            wrap(lambda c: lax.scan(logs, c, xs))(10.0)
        with raises(rf"`jnp.log\(d\)` at {place}, in step 2 of scan{name}\."):
            wrap(lambda c: lax.scan(logs, c, xs, reverse=True))(10.0)
        with raises(rf"`jnp.log\(x\)` at .*, in step 3 of while{name}\."):
            wrap(lambda x: lax.while_loop(lambda x: x > -5.0, lambda x: jnp.log(x), x))(10.0)
        with raises(rf"`jnp.log\(x\)` at .*, in cond{name}\."):
            wrap(lambda x: lax.cond(x < 0, lambda x: jnp.log(x), lambda x: x, x))(-1.0)


def test_inside_nested_programs():
    def step(c, x):
        return lax.cond(x > 2, lambda c: jnp.log(c), lambda c: c - 1.0, c), None

    with debug_nans(), raises(r"`jnp.log\(c\)` at .*, in cond in step 3 of scan in <lambda>"):
        jit(lambda c: lax.scan(step, c, np.arange(6, dtype=np.float32))[0])(1.0)


def test_gradient_of_a_scan():
    def loss(c):
        return lax.scan(lambda c, _: (jnp.sqrt(c) * 0 + c - 1, None), c, None, length=3)[0]

    with debug_nans(), raises(r"^mul: .*`jnp.sqrt\(c\)` at .*, in step 0 of scan in loss"):
        jit(grad(loss))(2.0)


def test_inside_custom_rules_and_checkpoint():
    @weft.custom_jvp
    def f(x):
        return jnp.log(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    place = rf"`jnp.log\(x\)` at {line_of(test_inside_custom_rules_and_checkpoint, 3)}"
    with debug_nans():
        with raises(rf"{place}, in custom_jvp_call in <lambda>"):
            jit(lambda x: f(x) * 2)(-1.0)
        with raises(r"in checkpoint in <lambda>"):
            jit(lambda x: weft.checkpoint(lambda y: jnp.log(y) + 1)(x))(-1.0)


def test_infinities():
    with debug_infs():
        with raises(r"^div: results must hold no infinity under debug_infs; got inf of type f32"):
            1 / jnp.array(0.0)
        with raises(r"^exp: .*`jnp.exp\(x\)` at .*, in <lambda>"):
            jit(lambda x: jnp.exp(x) - 5)(1000.0)
        assert np.isnan(jnp.array(np.nan) + 1)


def test_both():
    with debug_infs(), debug_nans():
        with raises("no NaN or infinity under debug_nans and debug_infs; got nan"):
            jnp.log(-1.0)
        with raises(
            r"got -inf .* Hint: .*weft.debug_nans\(False\), weft.debug_infs\(False\): allows"
        ):
            jnp.log(0.0)


def test_options_and_blocks():
    assert not weft.config.debug_nans
    weft.config.update("debug_nans", True)
    try:
        with raises("^log"):
            jnp.log(-1.0)
        with debug_nans(False):
            assert np.isnan(jnp.log(-1.0))
    finally:
        weft.config.update("debug_nans", False)
    assert np.isnan(jnp.log(-1.0))


def test_functions_of_many_operations_run_as_one_are_searched_too():
    with debug_nans(), raises("got nan"):
        jnp.linspace(0.0, np.nan, 3)


def test_nothing_is_lost():
    traced = []
    fun = jit(lambda x: (traced.append(x), jnp.log(x) * 2)[1])
    before = float(fun(2.0))
    with debug_nans(), raises("^log"):
        fun(-1.0)
    count = len(traced)
    assert float(fun(2.0)) == before
    assert len(traced) == count
