import textwrap

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, hessian, jit, jvp, lax, linearize, make_jaxpr, value_and_grad, vmap

X = np.array([0.3, -0.7, 1.1], np.float32)
XS = np.array([[0.3, -0.7, 1.1], [-0.9, 0.2, 0.4]], np.float32)


def close(a, b, tol=1e-5):
    weft.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=tol, atol=tol), a, b)


plus, times = (lambda x: x + 1.0), (lambda x: x * 2.0)


@pytest.mark.parametrize(
    "pred", [True, 1, 2, -1, 2.5, np.bool_(True), np.int32(3), np.float32(0.5), np.array(True)]
)
def test_what_counts_as_true(pred):
    assert lax.cond(pred, plus, times, 3.0) == 4.0
    assert jit(lambda p: lax.cond(p, plus, times, 3.0))(pred) == 4.0
    assert lax.cond(pred == 77, plus, times, 3.0) == 6.0


@pytest.mark.parametrize("pred", [False, 0, 0.0, np.float32(0), np.array(0)])
def test_what_counts_as_false(pred):
    assert lax.cond(pred, plus, times, 3.0) == jit(lax.cond, static_argnums=(1, 2))(
        pred, plus, times, 3.0
    )
    assert lax.cond(pred, plus, times, 3.0) == 6.0


def test_call_forms():
    assert lax.cond(True, lambda: 1.0, lambda: 2.0) == 1.0
    assert lax.cond(False, plus, times, operand=3.0) == 6.0
    assert lax.cond(pred=True, true_fun=plus, false_fun=times, operand=3.0) == 4.0
    assert lax.cond(True, lambda x: 1.0, lambda x: 2.0, None) == 1.0
    assert lax.cond(True, lambda x: 1.0, lambda x: 2.0, operand=None) == 1.0
    assert (
        lax.cond(True, lambda x, y: x - y, lambda x, y: x, 3.0, 1.0, linear=(False, False)) == 2.0
    )
    assert lax.cond(True, 3.0, plus, 5.0, times) == 4.0
    assert lax.cond(False, 3.0, plus, 5.0, times) == 10.0
    assert lax.cond(False, None, lambda x: 1.0, {"a": 2.0}, lambda x: x["a"]) == 2.0
    with pytest.raises(TypeError, match="operands must be given by position or as `operand`"):
        lax.cond(True, plus, times, 3.0, operand=3.0)


@pytest.mark.parametrize(
    "index, want", [(0, 4.0), (1, 6.0), (5, 2.0), (-3, 4.0), (np.uint8(2), 2.0)]
)
def test_a_switch_holds_its_index_to_the_range(index, want):
    branches = [plus, times, lambda x: x - 1.0]
    assert lax.switch(index, branches, 3.0) == want
    assert jit(lambda i: lax.switch(i, branches, 3.0))(index) == want
    assert lax.switch(jnp.asarray(index), branches, operand=3.0) == want


def test_a_switch_of_one_branch_calls_it():
    assert str(make_jaxpr(lambda i: lax.switch(i, [plus], 3.0))(2)) == str(
        make_jaxpr(lambda i: plus(3.0))(2)
    )


def test_pytrees_and_closures():
    def f(p, x, y):
        true = lambda t: {"a": t[0] + y, "b": (t[1]["k"], None)}
        false = lambda t: {"a": t[1]["k"] * y, "b": (t[0] * x, None)}
        return lax.cond(p, true, false, (x, {"k": x * 2.0}))

    want = {True: {"a": 5.0, "b": (4.0, None)}, False: {"a": 12.0, "b": (4.0, None)}}
    for p in (True, False):
        assert f(p, 2.0, 3.0) == jit(f)(p, 2.0, 3.0) == want[p]
    (eqn,) = [e for e in make_jaxpr(f)(True, 2.0, 3.0).jaxpr.eqns if e.primitive.name == "cond"]
    assert len(eqn.invars) == 1 + 2 + 2  # the index, y and x, the operands


def test_equal_closed_over_values_are_passed_once():
    table = jnp.arange(3.0)
    f = lambda p: lax.cond(p, lambda: table + 1, lambda: table * 2)
    jaxpr = make_jaxpr(f)(True)
    assert len(jaxpr.consts) == 1 and len(jaxpr.jaxpr.eqns[-1].invars) == 2


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, jnp.bfloat16, np.complex64, np.uint8])
def test_dtypes_and_empty_arrays(dtype):
    x = jnp.asarray([[1, 0]]).astype(dtype)
    f = lambda p, x: lax.cond(p, lambda x: (x, x[:0]), lambda x: (x[:, ::-1], x[:0]), x)
    for p in (True, False):
        close([np.asarray(y, np.complex64) for y in f(p, x)], [x if p else x[:, ::-1], x[:0]])
    rows = vmap(f, (0, None))(np.array([True, False]), x)
    close(np.asarray(rows[0], np.complex64), np.stack([x, x[:, ::-1]]))


def test_integers_have_no_derivative_but_pass_through():
    f = lambda x, n: lax.cond(x > 0, lambda x, n: (x * n, n), lambda x, n: (x, n + 1), x, n)
    (y, n), (t, _) = jvp(f, (2.0, 3), (1.0, np.zeros((), weft.dtypes.float0)))
    assert (y, n, t) == (6.0, 3, 3.0)
    assert grad(lambda x: f(x, 3)[0])(-1.0) == 1.0


def test_results_are_as_weak_as_those_of_the_first_branch():
    """JAX does the same; the first branch is the one for False."""
    given, number = (lambda x: x), (lambda x: 1.0)
    for p in (True, False):
        assert lax.cond(p, given, number, jnp.float32(3.0)).weak_type
        assert not lax.cond(p, number, given, jnp.float32(3.0)).weak_type
        assert weft.grad(lambda x: lax.cond(p, given, number, x))(3.0).weak_type  # noqa: B023
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type


@pytest.mark.parametrize("wrap", [lambda f: f, jit, weft.checkpoint])
def test_slopes_of_what_is_not_chosen_are_not_multiplied_by_zero(wrap):
    f = wrap(lambda w, x: lax.cond(x > 0, lambda: w * jnp.sqrt(x), lambda: x))
    g = wrap(lambda w, x: lax.switch(jnp.sign(x).astype(int), [jnp.copy, lambda x: w / x], x))
    x, w = jnp.array([0.0, 4.0]), jnp.ones(2)
    total = lambda f: lambda w, x: vmap(f, (None, 0))(w, x).sum()
    of_w, of_x = grad(total(f), (0, 1))(2.0, x)
    np.testing.assert_allclose([of_w, *of_x], [2.0, 1.0, 0.5], rtol=1e-6)
    np.testing.assert_allclose(grad(total(g), 1)(2.0, x), [1.0, -0.125], rtol=1e-6)
    h = wrap(lambda w, x: lax.cond(x > 0, lambda: (w * jnp.log(x)).sum(), lambda: x))
    np.testing.assert_allclose(grad(total(h))(w, x), [np.log(4.0)] * 2, rtol=1e-6)


def test_what_branches_share_is_not_repeated_for_each_row():
    f = lambda x, m: lax.cond(x > 0, lambda: (m @ m, x), lambda: (m, x))
    jaxpr = make_jaxpr(vmap(f, (0, None)))(jnp.ones(3), jnp.ones((2, 2)))
    (dot,) = [e for e in jaxpr.eqns if e.primitive.name == "dot_general"]
    assert dot.outvars[0].aval.shape == (2, 2)
    assert jaxpr.jaxpr.outvars[1] is jaxpr.jaxpr.invars[0]


def test_disable_jit_runs_one_branch_in_python():
    ran = []
    with weft.disable_jit():
        out = lax.cond(
            X[0] > 0, lambda x: (ran.append("true"), x)[1], lambda x: ran.append("no"), 3.0
        )
        assert out == 3.0 and ran == ["true"]
        assert lax.cond(True, lambda x: x.astype(int), lambda x: 0, 3.0) == 3
        assert lax.switch(9, [lambda: ran.append(0), lambda: ran.append(1)]) is None
        assert grad(lambda x: lax.cond(x > 0, lambda x: x * x, lambda x: x, x))(3.0) == 6.0
    assert ran == ["true", 1]


def test_platform_dependent():
    f = lambda x: lax.platform_dependent(x, cpu=plus, tpu=times)
    assert f(1.0) == jit(f)(1.0) == 2.0
    assert lax.platform_dependent(3.0, tpu=plus, default=times) == 6.0
    with pytest.raises(NotImplementedError, match="for the platform in use, cpu; got tpu. Hint"):
        lax.platform_dependent(3.0, tpu=plus)


ERRORS = [
    (lambda: lax.cond(np.array([True]), plus, times, 1.0),
     r"cond: the predicate must be a scalar; got bool\[1\]. Hint: pred.all\(\)"),
    (lambda: jit(lambda p: lax.cond(p, plus, times, 1.0))(X > 0),
     r"cond: the predicate must be a scalar; got bool\[3\]"),
    (lambda: lax.cond(1j, plus, times, 1.0),
     r"cond: the predicate must be a bool or a real number; got c64\[\]. Hint: pred != 0."),
    (lambda: lax.cond("a", plus, times, 1.0),
     "cond: the predicate must be a bool or a number; got 'a' of type str."),
    (lambda: lax.cond(None, plus, times, 1.0), "got None of type NoneType."),
    (lambda: lax.cond(True, 1.0, times, 1.0), "cond: needs a function; got 1.0 of type float"),
    (lambda: lax.cond(True, plus, 1.0, 1.0), "cond: needs a function; got 1.0 of type float"),
    (lambda: lax.cond(True, plus, times, "a"), "cond: arguments must be arrays or numbers"),
    (lambda: lax.cond(True, lambda: "a", lambda: "b"), "cond: results must be arrays or numbers"),
    (lambda: lax.cond(True, lambda x: x, lambda x: x.astype(int), X),
     r"cond: branches must return arrays of equal dtypes; got i32\[3\] from false_fun \(<lambda>\) "
     r"and f32\[3\] from true_fun \(<lambda>\) at result. Hint: result.astype\(jnp.float32\) in "
     "false_fun"),
    (lambda: lax.cond(True, lambda x: {"a": [x]}, lambda x: {"a": [jnp.ones(2)]}, X),
     r"cond: branches must return arrays of equal shapes; got f32\[2\] from false_fun \(<lambda>\) "
     r"and f32\[3\] from true_fun \(<lambda>\) at result\['a'\]\[0\]."),
    (lambda: lax.cond(True, lambda x: {"a": x}, lambda x: [x], X),
     r"cond: branches must return the same structure; got .* of false_fun .* that of true_fun"),
    (lambda: lax.switch(0, [], 1.0), "switch: there must be at least one branch; got none."),
    (lambda: lax.switch(0, [plus, 1.0], 1.0), "^switch: needs a function; got 1.0 of type float.$"),
    (lambda: lax.switch(0, plus, 1.0), "switch: branches must be a sequence of functions; got <fu"),
    (lambda: lax.switch(1.5, [plus, times], 1.0),
     r"switch: the index must be an integer; got f32\[\]. Hint: index.astype\(jnp.int32\)."),
    (lambda: lax.switch(True, [plus, times], 1.0), r"got bool\[\]. Hint: lax.cond."),
    (lambda: lax.switch("a", [plus, times], 1.0), "must be an integer; got 'a' of type str."),
    (lambda: lax.switch(np.array([1]), [plus, times], 1.0), r"must be a scalar; got i32\[1\]."),
    (lambda: lax.switch(0, [plus, lambda x: 1], 1.0),
     r"got f32\[\] from branch 0 \(<lambda>\) and i32\[\] from branch 1 \(<lambda>\) at result."),
    (lambda: lax.switch(0, [plus, times], 1.0, operand=1.0), "position or as `operand`; got both"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", ERRORS, ids=range(len(ERRORS)))
def test_errors(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
    assert lax.cond(True, plus, times, 3.0) == 4.0  # nothing is left behind


# --- under transformations ------------------------------------------------------------------


@weft.custom_jvp
def square(x):
    return x * x


square.defjvps(lambda t, y, x: 2.0 * x * t)


def smooth(x):
    return lax.cond(x[0] > 0, lambda x: jnp.sin(x) * x[1], lambda x: jnp.exp(x) * 0.5, x)


# The same in Python, where the branch is that of a known point `at`.


def smooth_in_python(x, at):
    return jnp.sin(x) * x[1] if at[0] > 0 else jnp.exp(x) * 0.5


def nested(x):
    inner = lambda y: lax.switch(
        (x[2] > 0) + (x[1] > 0).astype(int), [square, jnp.tanh, jit(jnp.sin)], y
    )
    return lax.cond(x[0] > 0, lambda y: inner(y) * x, lambda y: inner(y + x) + 1.0, x * 2.0)


def nested_in_python(x, at):
    y = x * 2.0
    inner = [lambda y: y * y, jnp.tanh, jnp.sin][int(at[2] > 0) + int(at[1] > 0)]
    return inner(y) * x if at[0] > 0 else inner(y + x) + 1.0


def apart(x):  # a branch that does not depend on the operand, one that passes it on
    return lax.switch((x[0] > 0).astype(int), [lambda x: jnp.ones(3), lambda x: x], x) * x


def apart_in_python(x, at):
    return (x if at[0] > 0 else jnp.ones(3)) * x


total = lambda f: lambda x: jnp.sum(jnp.sin(f(x)))
TRANSFORMS = {
    "value": lambda f: f,
    "jit": jit,
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * x,)),
    "grad": lambda f: grad(total(f)),
    "jit grad": lambda f: jit(grad(total(f))),
    "grad jit": lambda f: grad(jit(total(f))),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x * x),
    "hessian": lambda f: hessian(total(f)),
    "reverse twice": lambda f: grad(lambda x: jnp.sum(grad(total(f))(x) ** 2)),
    "checkpoint": lambda f: grad(total(weft.checkpoint(f))),
    "third": lambda f: lambda x: jvp(lambda x: jvp(grad(total(f)), (x,), (x,))[1], (x,), (x,))[1],
}
PLAIN = {"jit": "value", "jit grad": "grad", "grad jit": "grad", "checkpoint": "grad"}


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(
    "fun, python",
    [(smooth, smooth_in_python), (nested, nested_in_python), (apart, apart_in_python)],
    ids=["smooth", "nested", "apart"],
)
def test_transformations_are_those_of_the_branch_taken(name, fun, python):
    transform = TRANSFORMS[name]
    with weft.enable_checks():
        for x in XS:
            plain = TRANSFORMS[PLAIN.get(name, name)](lambda y, x=x: python(y, x))
            close(transform(fun)(x), jit(plain)(x), 1e-4)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("fun", [smooth, nested, apart])
@pytest.mark.parametrize("name", ["value", "jvp", "grad", "hessian", "jit grad"])
def test_mapped_predicates_agree_with_a_loop(name, fun):
    f = TRANSFORMS[name](fun)
    want = weft.tree.map(lambda *rows: np.stack(rows), *[f(x) for x in XS])
    close(vmap(f)(XS), want, 1e-4)
    close(jit(vmap(f))(XS), want, 1e-4)


def test_an_unmapped_predicate_runs_one_branch_for_all_rows():
    f = lambda p, x: lax.cond(p, jnp.sin, lambda x: x * x, x)
    for p, python in ((True, np.sin), (False, np.square)):
        close(vmap(f, (None, 0))(p, XS), python(XS))
        g = grad(lambda x, p=p: jnp.sum(vmap(f, (None, 0))(p, x)))
        close(g(XS), np.cos(XS) if p else 2 * XS)


def products(A, x):  # a matrix that the rows share, and a value that is infinite at x = 0
    return jnp.sum(A @ (jnp.ones(3) / x))


def products_of_rows(A, x):  # and a matrix for each row, made of that
    return jnp.sum(jnp.sin(A * x) @ (jnp.ones(3) / x) + jnp.asarray(A)[jnp.int32(x > 1), 0] / x)


def quotients(A, x):
    return jnp.sum(jnp.log(x) / (A @ A.T))


def solutions(A, x):
    return jnp.sum(jnp.linalg.solve(jnp.eye(2) + A @ A.T, jnp.ones(2) / x))


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("call", [lambda f: f, jit], ids=["plain", "jit"])
@pytest.mark.parametrize("branch", [products, products_of_rows, quotients, solutions])
def test_rows_that_do_not_choose_a_branch_add_nothing_to_what_rows_share(branch, call):
    A = np.array([[1, 2, 3], [3, 1, 2]], np.float32)
    x, chosen = np.array([0.5, 0.0, 2.0], np.float32), np.array([True, False, True])

    def rows(A, x):
        one = lambda x, p: lax.cond(p, call(branch), lambda A, x: jnp.sum(A) * x, A, x)
        return jnp.sum(vmap(one)(x, chosen))

    def in_python(A, x):
        return branch(A, x[0]) + jnp.sum(A) * x[1] + branch(A, x[2])

    value, slopes = jit(value_and_grad(in_python, (0, 1)))(A, x)
    close(rows(A, x), value)
    for got, want in zip(grad(rows, (0, 1))(A, x), slopes, strict=True):
        close(got, want, 1e-4)
    both = jit(lambda f: jvp(lambda A: grad(f)(A, x), (A,), (A * A,)), static_argnums=0)
    with weft.enable_checks():
        for got, want in zip(both(rows), both(in_python), strict=True):
            close(got, want, 1e-4)


def test_golden():
    jaxpr = make_jaxpr(lambda x: lax.switch(4, [plus, times], x))(1.0)
    assert str(jaxpr) == textwrap.dedent("""\
        { lambda ; a:f32[]. let
            b:f32[] = cond[
              branches=(
                { lambda ; c:f32[]. let d:f32[] = add c 1.0 in (d,) }
                { lambda ; e:f32[]. let f:f32[] = mul e 2.0 in (f,) }
              )
            ] 1 a
          in (b,) }""")


def test_functions_run_in_the_order_of_their_branches():
    """The branch for True of a cond runs first; libraries that count random keys rely on this."""
    seen = []
    branch = lambda name: lambda x: (seen.append(name), x)[1]
    weft.make_jaxpr(lambda x: lax.cond(x > 0, branch(True), branch(False), x))(1.0)
    weft.make_jaxpr(lambda i: lax.switch(i, [branch(0), branch(1)], 1.0))(1)
    assert seen == [True, False, 0, 1]
