"""checkify: what goes wrong first, as a value, in every construct, under every transformation."""

import pathlib

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, jvp, lax, make_jaxpr, vmap
from weft.experimental import checkify
from weft.experimental.checkify import check

A = np.array([1.0, 2.0, 3.0], np.float32)
NEGATIVE = np.float32(-1.0)
HERE = pathlib.Path(__file__).name


@pytest.fixture(autouse=True)
def checked():
    """Every program is checked after every pass."""
    with weft.enable_checks():
        yield


def error_of(f, *args, errors=checkify.user_checks):
    """The message of f's error, which must be the same compiled and not."""
    run = checkify.checkify(f, errors=errors)
    compiled = jit(run)(*args)[0].get()
    assert run(*args)[0].get() == compiled
    return compiled


def says(message, text):
    """Return True if a message is `text` with a line of this file."""
    return message is not None and message.startswith(text) and HERE + ":" in message


def positive(x):
    check(x > 0, "x must be positive, got {}", x)
    return jnp.log(x)


def two(x):
    check(x > 0, "first {}", x)
    check(x > 1, "second {}", x)
    return x


# --- a check ------------------------------------------------------------------------------------


def test_a_check_that_holds_is_no_error():
    err, y = checkify.checkify(positive)(np.float32(1.0))
    assert err.get() is None and err.throw() is None and repr(err) == "Error(None)"
    assert float(y) == 0.0


def test_a_check_that_fails_is_an_error_and_the_program_runs_on():
    err, y = checkify.checkify(positive)(NEGATIVE)
    assert says(err.get(), "x must be positive, got -1.0 (`check` failed at ")
    assert np.isnan(float(y))
    assert repr(err) == f"Error({err.get()})"
    with pytest.raises(checkify.JaxRuntimeError, match="must be positive, got -1.0"):
        err.throw()
    assert issubclass(checkify.JaxRuntimeError, ValueError)


def test_the_first_of_several_failures_is_told():
    assert says(error_of(two, NEGATIVE), "first -1.0")
    assert says(error_of(two, np.float32(0.5)), "second 0.5")
    assert error_of(two, np.float32(2.0)) is None


def test_messages_are_formatted_with_pytrees_by_position_and_by_name():
    def f(x, n):
        check(x[0] > 0, "{:.2f} {} {d[a]} {n} {}", x[0], (x,), 3, d={"a": n}, n=True)

    message = error_of(f, -A[:1], np.int32(7))
    assert says(message, "-1.00 (Array([-1.], dtype=float32),) 7 True 3 (`check`")


def test_values_of_several_types_share_places():
    def f(x, n):
        check(n > 0, "n {}", n)
        check(x > 0, "x {} {}", x, n)
        check(x > n, "both {} {} {}", n, x, x + n)
        return x

    assert len(weft.tree_util.tree_leaves(checkify.checkify(f)(A[0], np.int32(1))[0])) == 4
    assert says(error_of(f, A[0], np.int32(0)), "n 0 ")
    assert says(error_of(f, NEGATIVE, np.int32(2)), "x -1.0 2 ")
    assert says(error_of(f, A[0], np.int32(2)), "both 2 1.0 3.0 ")


def test_python_values_inside_checkify_stay_python_values():
    def f(x, n):
        if x > 0:
            check(n < 3, "n is {}", n)
        return [x] * n

    err, out = checkify.checkify(f)(1.0, 4)
    assert says(err.get(), "n is 4") and len(out) == 4
    assert checkify.checkify(f)(-1.0, 4)[0].get() is None


def test_keywords_and_pytrees_pass_through():
    run = checkify.checkify(lambda x, *, scale: {"y": x * scale, "none": None})
    err, out = run(A, scale=2.0)
    np.testing.assert_allclose(out["y"], 2 * A)
    assert err.get() is None and out["none"] is None


def test_x64():
    with weft.enable_x64():
        x = np.float64(-1.0)
        assert says(error_of(two, x), "first -1.0")
        assert says(error_of(lambda x: jnp.log(x), x, errors=checkify.nan_checks), "nan generated")


# --- without checkify ---------------------------------------------------------------------------


def test_a_check_on_known_values_raises_at_once():
    with pytest.raises(checkify.JaxRuntimeError, match=r"x must be positive, got -1.0 \(`check`"):
        positive(NEGATIVE)
    with pytest.raises(checkify.JaxRuntimeError, match="got -1.0"):
        grad(positive)(NEGATIVE)
    with pytest.raises(checkify.JaxRuntimeError, match="got -2.0"):
        vmap(positive)(np.array([1, -2, -3], np.float32))


def test_a_check_in_a_compiled_function_must_be_made_a_value():
    with pytest.raises(ValueError, match="checkify.check: a check in a compiled function") as info:
        jit(positive)(A[0])
    assert "'x must be positive, got {}'" in str(info.value) and HERE in str(info.value)
    assert "Hint: err, out = checkify.checkify(f)(x); err.throw()" in str(info.value)
    assert "check[debug=False] " in str(make_jaxpr(positive)(A[0]))
    assert jit(lambda x: x + 1)(1.0) == 2.0


def test_debug_check_is_passed_over_where_it_is_not_a_value():
    def f(x):
        checkify.debug_check(x > 0, "d {}", x)
        return x

    assert float(f(NEGATIVE)) == float(jit(f)(NEGATIVE)) == -1.0
    assert says(error_of(f, NEGATIVE), "d -1.0")


def test_mistakes():
    with pytest.raises(
        TypeError, match=r"check: pred must be a scalar bool; got f32\[\]. Hint: jn"
    ):
        check(1.0, "m")
    with pytest.raises(TypeError, match=r"pred must be a scalar bool; got bool\[1\]"):
        check(np.array([True]), "m")
    with pytest.raises(TypeError, match="pred must be a scalar bool; got 'yes'"):
        check("yes", "m")
    with pytest.raises(TypeError, match="msg must be a string; got 3 of type int"):
        check(True, 3)
    with pytest.raises(TypeError, match="must be pytrees of arrays or numbers; got 'b' of type st"):
        check(True, "a{}", "b")
    with pytest.raises(
        IndexError, match="msg must be a format for its arguments; got 'a{}' with 0"
    ):
        check(True, "a{}")
    with pytest.raises(KeyError, match="by name"):
        check(True, "a{y}", x=1)
    with pytest.raises(
        TypeError, match="check_error: needs an Error, as checkify returns; got int"
    ):
        checkify.check_error(3)
    with pytest.raises(TypeError, match="checkify: needs a function"):
        checkify.checkify(3)
    with pytest.raises(ValueError, match="checkify: errors must be a union of the sets of checks"):
        checkify.checkify(positive, errors={"speling"})


def test_what_raises_inside_leaves_everything_as_it_was():
    def f(x):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        checkify.checkify(f, errors=checkify.all_checks)(A)
    assert weft.config.check_bounds
    np.testing.assert_allclose(jit(lambda x: x + 1)(A), A + 1)
    with pytest.raises(checkify.JaxRuntimeError):
        positive(NEGATIVE)


# --- the error ----------------------------------------------------------------------------------


def test_the_error_of_a_mapped_function_tells_of_each_element():
    run = vmap(checkify.checkify(two))
    err, _ = run(np.array([5.0, 0.5, -2.0], np.float32))
    first, second = err.get().split("\n")
    assert says(first, "at mapped index 1: second 0.5 ")
    assert says(second, "at mapped index 2: first -2.0 ")
    err, _ = jit(vmap(run))(np.array([[5.0, 0.5], [-2.0, 3.0]], np.float32))
    first, second = err.get().split("\n")
    assert says(first, "at mapped index 0, 1: second 0.5 ")
    assert says(second, "at mapped index 1, 0: first -2.0 ")
    with pytest.raises(checkify.JaxRuntimeError, match="(?s)0, 1: second.*1, 0: first"):
        err.throw()
    assert run(A + 1)[0].get() is None


def test_errors_go_in_and_out_of_jit_and_are_thrown_again():
    err, _ = jit(checkify.checkify(positive))(NEGATIVE)
    again = jit(lambda e: e)(err)
    assert again.get() == err.get()
    with pytest.raises(checkify.JaxRuntimeError, match="got -1.0"):
        checkify.check_error(again)
    with pytest.raises(weft.errors.ConcretizationTypeError, match=r"Error.get\(\): needs a conc"):
        jit(lambda e: e.get())(err)


def test_check_error_makes_an_error_that_of_the_function_around():
    def outer(x, throw):
        err, y = checkify.checkify(lambda x: jnp.log(x), errors=checkify.nan_checks)(x)
        check(x > -5, "before")
        (err.throw if throw else lambda: checkify.check_error(err))()
        check(x > 0, "after")
        return y

    assert says(error_of(lambda x: outer(x, False), NEGATIVE), "nan generated by primitive: log.")
    assert says(error_of(lambda x: outer(x, False), np.float32(-6)), "before")
    run = jit(checkify.checkify(lambda x: outer(x, True)))
    assert says(run(NEGATIVE)[0].get(), "nan generated by primitive: log.")
    mapped = vmap(checkify.checkify(positive))

    def all_of(x):
        err, y = mapped(x)
        checkify.check_error(err)
        return y

    assert says(error_of(all_of, np.array([1, -2, -3], np.float32)), "x must be positive, got -2.0")
    assert error_of(all_of, A) is None


def test_checkify_inside_checkify_keeps_its_errors_to_itself():
    def outer(x):
        inner, y = checkify.checkify(positive)(x)
        check(x < 0, "outer {}", x)
        return inner, y

    run = checkify.checkify(outer)
    for run_it in (run, jit(run)):
        err, (inner, _) = run_it(NEGATIVE)
        assert err.get() is None and says(inner.get(), "x must be positive, got -1.0")
        err, (inner, _) = run_it(A[0])
        assert inner.get() is None and says(err.get(), "outer 1.0")


# --- sets of checks -----------------------------------------------------------------------------


def test_sets_are_unions():
    sets = (checkify.user_checks, checkify.nan_checks, checkify.div_checks, checkify.index_checks)
    assert len(frozenset().union(*sets)) == sum(map(len, sets))
    assert checkify.float_checks == checkify.nan_checks | checkify.div_checks
    assert checkify.automatic_checks == checkify.float_checks | checkify.index_checks
    assert checkify.all_checks == checkify.automatic_checks | checkify.user_checks


def test_what_is_not_asked_for_is_passed_over():
    assert says(error_of(positive, NEGATIVE, errors=checkify.nan_checks), "nan generated by primit")
    assert error_of(positive, NEGATIVE, errors=checkify.index_checks) is None
    assert says(error_of(positive, NEGATIVE, errors=checkify.all_checks), "x must be positive")


@pytest.mark.parametrize(
    "name, f, x",
    [
        ("log", jnp.log, NEGATIVE),
        ("sin", jnp.sin, np.float32(np.inf)),
        ("sub", lambda x: x - x, np.float32(np.inf)),
        ("reduce_sum", jnp.sum, np.array([np.inf, -np.inf], np.float32)),
        ("dot_general", lambda x: x @ x[::-1], np.array([np.inf, 0], np.float32)),
        ("log", jnp.log, np.complex64(complex(np.nan, 0))),
        ("sqrt", lambda x: jnp.sqrt(x), np.float16(-1)),
    ],
)
def test_nan(name, f, x):
    message = error_of(lambda x: f(x), x, errors=checkify.nan_checks)
    assert says(message, f"nan generated by primitive: {name}.")
    assert error_of(f, x, errors=checkify.div_checks | checkify.user_checks) is None


def test_nan_names_the_expression():
    def f(x):
        y = x + 1
        return jnp.log(y - 3) * 2

    message = error_of(f, np.float32(1.0), errors=checkify.nan_checks)
    assert "(`jnp.log(y - 3)` at test_checkify.py:" in message


def test_moving_a_nan_is_not_making_one():
    x = np.array([1.0, np.nan, 2.0], np.float32)

    def moved(x):
        y = jnp.where(x > 0, x.reshape(3, 1).T[0], -x)
        y = jnp.concatenate([y, abs(x)])[jnp.array([1, 2])].at[0].set(jnp.max(x))
        return jnp.sort(y), lax.stop_gradient(jnp.maximum(y, 1.0)), y.astype(jnp.bfloat16)

    assert error_of(moved, x, errors=checkify.nan_checks) is None


def test_division():
    for f in (lambda x: 1 / x, lambda x: x**-1, lambda x: jnp.floor_divide(1, x)):
        assert says(error_of(f, A - 2, errors=checkify.div_checks), "division by zero (`")
        assert error_of(f, A, errors=checkify.div_checks) is None
    assert says(error_of(lambda n: 3 // n, np.int32(0), errors=checkify.div_checks), "division")
    assert says(error_of(lambda x: x / 0.0, A, errors=checkify.div_checks), "division by zero")
    assert error_of(lambda x: x / 2.0, A, errors=checkify.div_checks) is None


OUT = (
    "out-of-bounds indexing for array of shape (3,): "
    "index {} is out of bounds for axis 0 with size 3."
)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: x[i],
        lambda x, i: x[jnp.stack([i, i])],
        lambda x, i: x.at[i].set(1.0),
        lambda x, i: x.at[jnp.stack([i, i])].add(1.0),
        lambda x, i: x.at[i].max(1.0),
        lambda x, i: jnp.take(x, i),
        lambda x, i: jnp.take_along_axis(x, i[None], 0),
        lambda x, i: x.at[i].get(mode="clip"),
        lambda x, i: x.at[i].get(mode="fill"),
        lambda x, i: lax.dynamic_slice(x, (i,), (1,)),
        lambda x, i: lax.dynamic_update_slice(x, x[:1], (i,)),
        lambda x, i: lax.dynamic_index_in_dim(x, i),
    ],
)
def test_index(f):
    for bad, shown in ((5, 5), (-5, -2)):
        message = error_of(f, A, np.int32(bad), errors=checkify.index_checks)
        assert says(message, OUT.format(shown) + " (`")
    for good in (0, 2, -1):
        assert error_of(f, A, np.int32(good), errors=checkify.index_checks) is None


def test_indices_known_when_written():
    for f, shown in ((lambda x: x[5], 5), (lambda x: x[-7], -4), (lambda x: x.at[3].set(1.0), 3)):
        assert says(error_of(f, A, errors=checkify.index_checks), OUT.format(shown))
        with pytest.raises(weft.errors.IndexingError):
            checkify.checkify(f)(A)


def test_index_names_the_axis_and_the_first_that_is_out():
    x = np.ones((3, 4), np.float32)

    def f(x, i, j):
        return x[i, j]

    i, j = np.array([0, 1, 9], np.int8), np.array([7, 2, 8], np.int8)
    message = error_of(f, x, i, j, errors=checkify.index_checks)
    assert says(
        message, "out-of-bounds indexing for array of shape (3, 4): index 7 is out of bound"
    )
    assert "for axis 1 with size 4." in message
    message = error_of(f, x, i[::-1].copy(), j * 0, errors=checkify.index_checks)
    assert "index 9 is out of bounds for axis 0 with size 3." in message
    assert error_of(lambda x, i: x[i], x, np.zeros(0, int), errors=checkify.index_checks) is None
    assert error_of(lambda x, i: x[i], A, np.uint8(200), errors=checkify.index_checks) is not None


def test_drops_that_are_meant_are_no_errors():
    f = lambda x: jnp.nonzero(x, size=7, fill_value=0)[0]
    assert error_of(f, A, errors=checkify.index_checks) is None


# --- programs that hold programs ----------------------------------------------------------------


def test_jit():
    assert says(error_of(jit(two), NEGATIVE), "first -1.0")
    assert says(error_of(lambda x: jit(two)(jit(jit(two))(x) - 3.5), A[2]), "first -0.5")
    assert error_of(jit(two), A[2]) is None
    assert says(error_of(jit(jnp.log), NEGATIVE, errors=checkify.nan_checks), "nan generated by")
    hits = []

    @jit
    def inner(x):
        hits.append(1)
        check(x > 0, "inner")
        return x

    for x in A:
        checkify.checkify(inner)(x)
    assert len(hits) == 1


def test_cond():
    def f(x):
        def big(x):
            check(x > 5, "big {}", x)
            return x

        def small(x):
            check(x < -5, "small {} {}", 2, x)
            return jnp.log(x)

        return lax.cond(x > 0, big, small, x)

    for x, text in ((1.0, "big 1.0"), (-1.0, "small 2 -1.0"), (6.0, None), (-6.0, None)):
        message = error_of(f, np.float32(x))
        assert message is None if text is None else says(message, text)
    message = error_of(f, np.float32(-6.0), errors=checkify.all_checks)
    assert says(message, "nan generated by primitive: log.")
    xs = np.array([1.0, -6.0, -1.0], np.float32)
    assert says(error_of(vmap(f), xs), "big 1.0")
    assert vmap(checkify.checkify(f))(xs)[0].get().count("\n") == 1
    for good in (np.array([6.0, -6.0], np.float32), np.array([-7.0, 7.0], np.float32)):
        assert error_of(vmap(f), good) is None  # a branch that is not taken has no say
        assert vmap(checkify.checkify(f))(good)[0].get() is None
        np.testing.assert_array_equal(vmap(f)(good)[good > 0], good[good > 0])
    with pytest.raises(checkify.JaxRuntimeError, match="big 1.0"):
        vmap(f)(xs)


def test_switch():
    def f(i, x):
        branches = [jnp.log, lambda x: (check(x > 0, "one"), x)[1], lambda x: x]
        return lax.switch(i, branches, x)

    texts = ("nan generated by primitive: log.", "one", None)
    for i, text in enumerate(texts):
        message = error_of(f, np.int32(i), NEGATIVE, errors=checkify.all_checks)
        assert message is None if text is None else says(message, text)


def scanned(xs):
    def body(c, x):
        check(x > 0, "x is {} at {}", x, c)
        return c + 1, jnp.log(x)

    return lax.scan(body, 0, xs)


def test_scan():
    xs = np.array([1.0, -2.0, -3.0], np.float32)
    assert says(error_of(scanned, xs), "x is -2.0 at 1 ")
    assert says(error_of(scanned, xs, errors=checkify.nan_checks), "nan generated by primitive: lo")
    assert error_of(scanned, A) is None
    assert error_of(scanned, xs[:0]) is None
    err, (count, ys) = checkify.checkify(scanned)(xs)
    assert int(count) == 3
    np.testing.assert_array_equal(np.isnan(ys), [False, True, True])
    reverse = lambda xs: lax.scan(lambda c, x: (c, two(x)), 0.0, xs, reverse=True)
    assert says(error_of(reverse, xs), "first -3.0")


def test_while():
    def f(x, body_stop, cond_stop):
        def cond(c):
            check(c < cond_stop, "cond {}", c)
            return c < 10

        def body(c):
            check(c < body_stop, "body {}", c)
            return c + 1

        return lax.while_loop(cond, body, x)

    def expected(x, body_stop, cond_stop):
        while True:
            if x >= cond_stop:
                return f"cond {x} "
            if x >= 10:
                return None
            if x >= body_stop:
                return f"body {x} "
            x += 1

    for args in (
        (1, 4, 99),
        (1, 99, 4),
        (5, 99, 4),
        (11, 99, 4),
        (1, 99, 99),
        (1, 3, 3),
        (11, 1, 99),
    ):
        args = tuple(map(np.int32, args))
        message, text = error_of(f, *args), expected(*args)
        assert message is None if text is None else says(message, text)
        assert int(checkify.checkify(f)(*args)[1]) == max(10, args[0])


def test_fori_loop():
    def f(n):
        return lax.fori_loop(0, n, lambda i, x: (check(i < 3, "i {}", i), x + i)[1], 0)

    assert says(error_of(f, np.int32(5)), "i 3 ")
    assert error_of(f, np.int32(3)) is None
    assert says(error_of(lambda x: (f(6), x)[1], NEGATIVE), "i 3 ")


def test_nested_loops_against_python():
    def f(x):
        def outer(c, row):
            def inner(i, acc):
                check(row[i] + acc < 20, "outer {} inner {} acc {}", c, i, acc)
                return lax.cond(row[i] > 2, lambda: acc + two(row[i]), lambda: acc + 1)

            return c + 1, lax.fori_loop(0, 3, inner, 0.0)

        return lax.scan(outer, 0, x)[1]

    def expected(x):
        for c, row in enumerate(x):
            acc = 0.0
            for i in range(3):
                if row[i] + acc >= 20:
                    return f"outer {c} inner {i} acc {acc}"
                acc += row[i] if row[i] > 2 else 1
        return None

    rng = np.random.default_rng(0)
    for scale in (1, 5, 8, 12):
        x = (rng.random((4, 3)) * scale).astype(np.float32)
        x = np.round(x)
        message, text = error_of(f, x), expected(x)
        assert message is None if text is None else says(message, text)


def test_checkpoint():
    f = weft.checkpoint(positive)
    assert says(error_of(f, NEGATIVE), "x must be positive, got -1.0")
    assert says(error_of(grad(f), NEGATIVE), "x must be positive, got -1.0")
    assert float(jit(checkify.checkify(grad(f)))(A[1])[1]) == 0.5


# --- derivatives --------------------------------------------------------------------------------


def test_checkify_of_grad():
    assert says(error_of(grad(two), NEGATIVE), "first -1.0")
    root = lambda x: jnp.sqrt(x) * 0
    message = error_of(grad(lambda x: jnp.sqrt(x) * x), np.float32(0), errors=checkify.div_checks)
    assert says(message, "division by zero")
    assert error_of(root, np.float32(0), errors=checkify.float_checks) is None
    run = checkify.checkify(grad(lambda x: scanned(x)[1].sum()))
    for run_it in (run, jit(run)):
        err, g = run_it(A)
        assert err.get() is None
        np.testing.assert_allclose(g, 1 / A, rtol=1e-6)
        assert says(run_it(-A)[0].get(), "x is -1.0 at 0")


def test_grad_of_checkify():
    def loss(x):
        err, y = checkify.checkify(lambda x: scanned(x)[1].sum(), errors=checkify.all_checks)(x)
        return y, err

    for wrap in (lambda f: f, jit):
        g, err = wrap(grad(loss, has_aux=True))(A)
        np.testing.assert_allclose(g, 1 / A, rtol=1e-6)
        assert err.get() is None
        assert says(wrap(grad(loss, has_aux=True))(-A)[1].get(), "x is -1.0 at 0")
    np.testing.assert_allclose(weft.hessian(lambda x: loss(x)[0])(A), np.diag(-1 / A**2), rtol=1e-6)


def test_jvp_and_linearize_of_checkify():
    run = checkify.checkify(positive, errors=checkify.all_checks)
    (err, y), (_, t) = jvp(run, (A[1],), (A[0],))
    assert err.get() is None and float(t) == 0.5
    (err, y), push = weft.linearize(run, NEGATIVE)
    assert says(err.get(), "x must be positive, got -1.0")
    assert float(push(A[0])[1]) == -1.0


@weft.custom_jvp
def own_jvp(x):
    check(x > 0, "value {}", x)
    return jnp.log(x)


@own_jvp.defjvp
def own_jvp_rule(primals, tangents):
    check(primals[0] < 5, "rule {}", primals[0])
    return own_jvp(*primals), 10 * tangents[0]


@weft.custom_vjp
def own_vjp(x):
    check(x > 0, "value {}", x)
    return jnp.log(x)


def own_vjp_fwd(x):
    return own_vjp(x), x


def own_vjp_bwd(x, ct):
    check(x < 5, "rule {}", x)
    return (10 * ct,)


own_vjp.defvjp(own_vjp_fwd, own_vjp_bwd)


@pytest.mark.parametrize("f", [own_jvp, own_vjp])
def test_custom_rules(f):
    assert says(error_of(f, NEGATIVE), "value -1.0")
    assert says(
        error_of(f, NEGATIVE, errors=checkify.nan_checks), "nan generated by primitive: log"
    )
    assert says(error_of(jit(vmap(f)), -A), "value -1.0")
    assert says(error_of(grad(f), NEGATIVE), "value -1.0")
    assert says(error_of(grad(f), np.float32(7)), "rule 7.0")
    for wrap in (lambda g: g, jit):  # rules stay in force, and are not looked into
        g, err = wrap(grad(lambda x: checkify.checkify(f)(x)[::-1], has_aux=True))(A[2])
        assert float(g) == 10.0 and err.get() is None
        g, err = wrap(grad(lambda x: checkify.checkify(f)(x)[::-1], has_aux=True))(NEGATIVE)
        assert float(g) == 10.0 and says(err.get(), "value -1.0")


def test_linear_solve():
    def f(a, b):
        solve = lambda mv, b: (check(a > 0, "a {}", a), b / a)[1]
        return lax.custom_linear_solve(lambda x: a * x, b, solve, symmetric=True)

    assert says(error_of(f, NEGATIVE, A[0]), "a -1.0")
    assert error_of(f, A[1], A[0]) is None
    g, err = grad(lambda b: checkify.checkify(f)(A[1], b)[::-1], has_aux=True)(A[0])
    assert float(g) == 0.5 and err.get() is None


def test_custom_vmap():
    f = weft.custom_batching.custom_vmap(positive)
    f.def_vmap(lambda size, batched, x: (10 * x, True))
    assert says(error_of(f, NEGATIVE), "x must be positive, got -1.0")
    assert says(error_of(jit(f), NEGATIVE), "x must be positive, got -1.0")
    err, out = vmap(checkify.checkify(f))(-A)
    assert err.get().count("\n") == 2
    np.testing.assert_array_equal(out, -10 * A)


def test_reverse_mode_of_a_loop_whose_length_is_not_known():
    def f(x, limit):
        def body(y):
            check(y < limit, "y {}", y)
            return y * x

        return lax.while_loop(lambda y: y < 10, body, x)

    x, limits = np.float32(2.0), np.array([99, 5], np.float32)
    assert error_of(grad(f), x, limits[0]) is None
    assert says(error_of(grad(f), x, limits[1]), "y 8.0 ")
    for limit in limits:
        run = jit(grad(lambda x, limit: checkify.checkify(f)(x, limit)[::-1], has_aux=True))
        g, err = run(x, limit)
        assert float(g) == 32.0 and (err.get() is None) == (limit == 99)  # x**4
        assert float(checkify.checkify(grad(f))(x, limit)[1]) == 32.0


# --- batching -----------------------------------------------------------------------------------


def test_checkify_of_vmap_and_vmap_of_checkify():
    xs = np.array([2.0, 0.5, -1.0], np.float32)
    assert says(error_of(vmap(two), xs), "first -1.0")  # in program order, not by element
    assert says(error_of(vmap(vmap(two)), xs[:, None]), "first -1.0")
    assert says(error_of(vmap(lambda x, y: two(y) + x, (0, None)), xs, A[0]), "second 1.0")
    at = lambda i: jnp.array(A)[i]
    message = error_of(vmap(at), np.array([1, 7, 9]), errors=checkify.index_checks)
    assert message.startswith(OUT.format(7))
    both = vmap(lambda x: checkify.checkify(vmap(two))(x))
    err, _ = both(np.stack([A + 1, xs]))
    assert says(err.get(), "at mapped index 1: first -1.0")


def test_loops_mapped():
    def f(n, limit):
        def body(i, x):
            check(x < limit, "i {} x {}", i, x)
            return x + i

        return lax.fori_loop(0, n, body, 0)

    ns, limits = np.array([3, 5, 6], np.int32), np.array([99, 3, 7], np.int32)
    err, out = jit(vmap(checkify.checkify(f)))(ns, limits)
    first, second = err.get().split("\n")
    assert says(first, "at mapped index 1: i 3 x 3")
    assert says(second, "at mapped index 2: i 5 x 10")
    np.testing.assert_array_equal(out, [3, 10, 15])
    assert says(error_of(vmap(f), ns, limits), "i 3 x 3")
    assert error_of(vmap(f), ns, np.array([4, 7, 11], np.int32)) is None


def test_loops_that_stopped_have_no_say():
    def f(n):
        def body(i):
            check(i < n, "i {} n {}", i, n)
            return i + 1

        return lax.while_loop(lambda i: i < n, body, 0)

    ns = np.array([3, 5, 1], np.int32)
    assert error_of(vmap(f), ns) is None
    np.testing.assert_array_equal(jit(checkify.checkify(vmap(f)))(ns)[1], ns)
    double = lambda c: (c[0] + 1, c[1] * 2)
    loop = lambda n: lax.while_loop(lambda c: c[0] < n, double, (0, 1.0))
    assert error_of(vmap(loop), ns, errors=checkify.all_checks) is None


def test_a_program_with_checks_prints_and_is_pruned():
    text = str(make_jaxpr(checkify.checkify(two))(A[0]))
    assert "check" not in text and text.count("select_n") == 3
    unused = jit(lambda x: checkify.checkify(two, errors=checkify.all_checks)(x)[1])
    assert "select" not in unused.lower(A[0]).as_text()


def test_messages_show_arrays_and_keys():
    key = weft.random.key(0)
    f = weft.jit(checkify.checkify(lambda x: check(x > 0, "{} of {}", {"x": x}, key)))
    assert f(-1.0)[0].get().startswith("{'x': Array(-1., dtype=float32")
    assert "key<fry>" in f(-1.0)[0].get()


def test_derivatives_of_checked_functions_are_those_of_their_rules():
    """Ten times the slope, as the rule says; and none is asked for outside of derivatives."""

    @weft.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 10.0 * tangents[0]))

    @weft.custom_vjp
    def g(x):
        return jnp.sin(x)

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (10.0 * ct,))
    for fun in (f, g):
        checked = lambda x, fun=fun: checkify.checkify(fun)(x)[1]
        assert weft.grad(checked)(1.0) == 10.0
        np.testing.assert_allclose(checked(1.0), np.sin(1.0), rtol=1e-6)
