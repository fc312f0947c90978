"""Operations: the calls that are programs, those that run as written, errors and caches."""

import functools
import math
import operator
import sys
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, jvp, lax, vmap
from weft.errors import ConcretizationTypeError, DtypeError, JaxRuntimeError, ShapeError
from weft.options import HELD
from weft.run.hot import HOT
from weft.run.operation import OPERATIONS, NotForKernel, compile_function, operation
from weft.run.scalars import NUMBERS
from weft.run.tape import TapeTrace

X = np.arange(3, dtype=np.float32)


def counted(body, **options):
    """An operation of `body`, and the list that grows with each call of it as Python."""
    calls = []

    def function(*args, **kwargs):
        calls.append(args)
        return body(*args, **kwargs)

    function.__name__ = body.__name__
    return operation(function, **options), calls


def test_a_call_runs_as_one_program_and_again_without_python():
    def scale(x, y):
        return lax.sin(x) * y

    calls = []

    @operation
    def run(x, y):
        calls.append(type(x).__name__)
        return scale(x, y)

    for _ in range(3):
        np.testing.assert_allclose(run(X, X), np.sin(X) * X, rtol=1e-6)
    assert calls == ["StagedTracer"]


class Wrapped:
    """An object that only its method `__jax_array__` makes an array."""

    def __jax_array__(self):
        return jnp.asarray(X)


def test_what_a_kernel_does_not_take_runs_as_written():
    seen = []

    @operation(static=("shape",))
    def spread(x, shape=None):
        seen.append((type(x).__name__, shape))
        return lax.broadcast(jnp.asarray(x), tuple(shape or ()))

    assert spread(1.0, shape=(2, 3)).shape == (2, 3)
    assert spread(1.0, shape=[2, 3]).shape == (2, 3)  # is read as a tuple
    assert spread(Wrapped(), shape=(2,)).shape == (2, 3)
    staged = ("StagedTracer", (2, 3))
    assert seen == [staged, staged, ("Wrapped", (2,))]


def test_a_value_that_must_be_known_runs_as_written():
    seen = []

    @operation
    def halve_until_small(x):
        seen.append(type(x).__name__)
        while x > 1:
            x = x / 2
        return x

    assert halve_until_small(jnp.float32(8)) == 1.0
    assert seen == ["StagedTracer", "ArrayImpl"]


def test_a_kernel_says_that_a_call_is_not_for_it():
    kernel = compile_function(lambda x: x * 2, "double")
    with pytest.raises(NotForKernel, match="'text'") as caught:
        kernel("text")
    assert type(caught.value.__cause__) is DtypeError
    kernel = compile_function(lambda x: x if x > 0 else -x, "magnitude")
    with pytest.raises(NotForKernel, match="needs a concrete value") as caught:
        kernel(1.0)
    assert isinstance(caught.value.__cause__, ConcretizationTypeError)


class Broken(Exception):
    pass


@pytest.mark.parametrize("error", [Broken, ValueError, TypeError, KeyboardInterrupt])
def test_an_error_of_the_function_is_seen_and_the_function_called_once(error):
    calls = []

    @operation
    def fails(x):
        calls.append(x)
        raise error("inside")

    with pytest.raises(error, match="inside"):
        fails(X)
    assert len(calls) == 1


def test_a_static_argument_with_a_broken_hash_is_not_hidden():
    class NoHash:
        def __hash__(self):
            raise Broken("hash")

    run, calls = counted(lambda x, how=None: x, static=("how",))
    with pytest.raises(Broken, match="hash"):
        run(X, how=NoHash())
    assert not calls


def test_what_users_methods_do_is_done_once():
    calls = []

    class Counted:
        def __array__(self, dtype=None, copy=None):
            calls.append("array")
            return X

        def __jax_array__(self):
            calls.append("jax_array")
            return jnp.asarray(X)

    class Size(int):
        def __hash__(self):
            calls.append("hash")
            raise Broken("hash")

    x = jnp.asarray(X)
    for call in (
        lambda: jnp.where(x > 1, x, Counted()),
        lambda: jnp.clip(Counted(), 0, 1),
        lambda: jnp.add(x, Counted()),
        lambda: x.at[0].set(jnp.asarray(Counted())[1]),
    ):
        calls.clear()
        call()
        assert len(calls) == 1, calls
    calls.clear()
    with pytest.raises(Broken, match="hash"):
        lax.reshape(x, (Size(3),))
    assert calls.count("hash") == 1


def test_an_error_of_a_function_of_lax_is_seen_after_one_staging(monkeypatch):
    x, calls = jnp.asarray(X), []

    def fails(x, sizes):
        calls.append(sizes)
        raise Broken(f"got {sizes}")

    for arrays in (1, 2):
        calls.clear()
        with pytest.raises(Broken, match=r"got \[1, 2\]" if arrays == 1 else "got"):
            operation(fails, arrays=arrays)(x, [1, 2])
        assert len(calls) == 1


def test_operands_by_keyword_and_keywords_of_one_function():
    x = jnp.asarray(X)
    assert lax.add(x=x, y=1.0).tolist() == lax.add(y=x, x=1.0).tolist() == [1, 2, 3]
    assert lax.mul(x, x, out_dtype=np.int32).dtype == np.int32 and lax.mul(x=2, y=x)[1] == 2
    assert jnp.clip(x, max=1.0).tolist() == jnp.clip(x, None, 1).tolist() == [0, 1, 1]
    for call in (lambda: jnp.add(x=x, y=x), lambda: jnp.add(x), lambda: lax.add(x)):
        with pytest.raises(TypeError):
            call()


def test_an_integer_that_does_not_fit_is_named_also_after_a_hit():
    x = jnp.arange(3)
    assert (x + 1).tolist() == [1, 2, 3]
    for call in (lambda: x + 2**40, lambda: jnp.add(x, 2**40), lambda: jnp.clip(x, 0, 2**40)):
        with pytest.raises(OverflowError, match="must fit int32; got 1099511627776"):
            call()
    assert (x + -(2**31)).tolist() == [-(2**31), 1 - 2**31, 2 - 2**31]


def test_large_arrays_given_back_are_not_copied():
    x = jnp.ones((200, 100))
    for same in (jnp.squeeze(x), x.reshape(200, 100), *jnp.broadcast_arrays(x, x)):
        assert same is x
    assert jnp.squeeze(x[:2]) is not x


def test_constants_made_often_are_new_each_time():
    made = [jnp.zeros((5,)) for _ in range(20)]
    assert len({x.unsafe_buffer_pointer() for x in made}) == 20 and not np.concatenate(made).any()
    made[-1].delete()
    assert not jnp.zeros((5,)).is_deleted() and jnp.zeros((5,), int).dtype == np.int32


MANY = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    "derive",
    [
        lambda f: grad(lambda x: f(x, 2.0).sum()),
        lambda f: vmap(lambda x: f(x, 2.0), 1),
        lambda f: lambda x: jvp(lambda x: f(x, 2.0), (x,), (x,)),
    ],
)
def test_under_a_transformation_a_function_of_many_operations_is_one_program(derive):
    def scale(x, y, axis=-1):
        return lax.sin(x) * y / jnp.sum(lax.exp(x), axis, keepdims=True)

    run, calls = counted(scale, static=("axis",))
    mapped, expected = derive(run), jit(derive(scale))(MANY)
    for _ in range(3):
        found = np.concatenate([np.ravel(x) for x in mapped(MANY)])
        given = np.concatenate([np.ravel(x) for x in expected])
        np.testing.assert_allclose(found, given, rtol=1e-5, atol=1e-6)
    assert len(calls) == 1


def test_under_a_transformation_what_asks_for_values_runs_as_written():
    def branch(x, n):
        return lax.sin(x) * 2.0 + 1.0 if n > 1 else lax.cos(x) / 2.0 - 1.0

    run, calls = counted(branch)
    for n, slope in ((2, np.cos(1.0) * 2), (1, -np.sin(1.0) / 2)) * 2:
        np.testing.assert_allclose(grad(lambda x, n=n: run(x, n))(1.0), slope, rtol=1e-6)
    assert [type(args[1]) for args in calls].count(int) == 4


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.gt]
OFTEN = range(HOT + 2)


@pytest.fixture
def one_device():
    """No numbers kept from before; skipped where there are several devices."""
    weft.clear_caches()
    assert not any(HELD)
    if len(weft.devices()) > 1:
        pytest.skip("numbers are kept for one device")


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, jnp.bfloat16, np.bool_, np.complex64])
@pytest.mark.parametrize("number", [3, 3.0, -2, 0, 0.0, -0.0, math.inf, math.nan, 1e30])
def test_numbers_that_are_met_often_give_what_they_gave(one_device, dtype, number):
    x = jnp.arange(1, 4).astype(dtype)
    for f in OPERATORS if dtype != np.complex64 else OPERATORS[:4]:
        for args in ((x, number), (number, x)):
            found = [f(*args) for _ in OFTEN]
            for y in found[1:]:
                assert y.aval == found[0].aval
                assert np.asarray(y).tobytes() == np.asarray(found[0]).tobytes()
    kept = NUMBERS[type(number)][False]
    assert ((number or str(number)) in kept) == (abs(number) < 1 << 31)
    assert all(v.aval.weak_type and not v.committed for v in kept.values())


def test_kept_numbers_are_of_their_type_and_of_its_width(one_device):
    x = jnp.arange(3)
    for number in (1, 1.0, True):
        for _ in OFTEN:
            assert (x + number).dtype == (np.float32 if type(number) is float else np.int32)
        assert jnp.maximum(number, x).tolist() == jnp.maximum(x, number).tolist() == [1, 1, 2]
    narrow = [jnp.ones(1) * 0.1 for _ in OFTEN][-1]
    with weft.enable_x64(True):
        wide = [jnp.ones(1) * 0.1 for _ in OFTEN]
        assert {y.tolist()[0] for y in wide} == {0.1} and narrow.tolist()[0] == np.float32(0.1)
        assert [(jnp.ones(1, int) << 40).tolist() for _ in OFTEN] == [[1 << 40]] * len(OFTEN)
    for _ in OFTEN:
        with pytest.raises(OverflowError):
            x + (1 << 31)
        with pytest.raises(DtypeError, match="negative powers"):
            x**-1
    assert "integer_pow" in str(weft.make_jaxpr(lambda x: x**2 * 1.0)(x))
    assert "1.0" in str(weft.make_jaxpr(lambda x: x * 1.0)(x))
    assert grad(lambda x: x * 0.1 + 1.0)(2.0) == np.float32(0.1)


def test_kept_numbers_are_no_arrays_of_users(one_device, monkeypatch):
    x = jnp.arange(3.0)
    before = len(weft.live_arrays())
    for i in range(100):
        for _ in OFTEN:
            x * (i + 0.5)
    assert len(NUMBERS[float][False]) == 100 and len(weft.live_arrays()) <= before
    monkeypatch.setattr("weft.run.scalars.KEPT_NUMBERS", 3)
    for i in range(5):
        for _ in OFTEN:
            x * (i + 0.25)
    assert len(NUMBERS[float][False]) <= 3


def test_a_guard_of_transfers_sees_numbers_that_are_met_often(one_device):
    x, places = jnp.arange(3.0), jnp.arange(2)
    calls = [lambda: x + 1.5, lambda: 2.5 - x, lambda: jnp.where(x > x, x, 0.0)]
    calls += [lambda: x.at[places].set(-0.0), lambda: jnp.clip(x, 0, 1.25)]
    for _ in OFTEN:
        expected = [f().tolist() for f in calls]
    for guard in (weft.transfer_guard, weft.transfer_guard_host_to_device):
        with guard("disallow"):
            for f in calls * 2:
                with pytest.raises(JaxRuntimeError, match="Disallowed"):
                    f()
        assert [f().tolist() for f in calls] == expected and NUMBERS[float][False]
    try:
        weft.config.update("jax_transfer_guard", "disallow")
        with pytest.raises(JaxRuntimeError, match="Disallowed"):
            x + 1.5
    finally:
        weft.config.update("jax_transfer_guard", None)
    assert (x + 1.5).tolist() == expected[0]


def test_under_a_transformation_calls_of_other_kinds_are_other_programs():
    def mixed(x, more=(), scale=1, *, axis=None, keep=False):
        y = lax.exp(x) * scale + sum(more)
        return jnp.sum(y, axis, keepdims=keep) * (2 if keep is True else 3)

    run, calls = counted(mixed, static=("axis", "keep"))
    given = [
        {},
        {"axis": 0},
        {"axis": 0, "keep": True},
        {"keep": 1, "axis": 0},
        {"scale": 2},
        {"scale": 3},  # the same program: a value that is passed
        {"scale": 2.5},
        {"scale": True},
        {"more": [MANY, 1.5]},
        {"more": (MANY, 1)},
        {"scale": 2**20, "more": [np.float16(2)]},
    ]
    for _ in range(2):
        for kwargs in given:
            out, dot = jvp(lambda x, k=kwargs: run(x, **k), (MANY,), (MANY,))
            expected, slope = jvp(lambda x, k=kwargs: mixed(x, **k), (MANY,), (MANY,))
            assert out.aval is expected.aval and dot.aval is slope.aval
            np.testing.assert_allclose(out, expected, rtol=1e-6)
            np.testing.assert_allclose(dot, slope, rtol=1e-6)
    assert len(calls) == len(given) - 1
    with pytest.raises(OverflowError, match="must fit int32; got 1099511627776"):
        jvp(lambda x: jnp.clip(x, 0, 2**40), (jnp.arange(3),), (np.zeros(3, weft.float0),))


def test_under_a_transformation_few_programs_are_kept(monkeypatch):
    monkeypatch.setattr("weft.run.operation.KEPT_CALLS", 1)
    run, calls = counted(lambda x, axis: lax.sin(jnp.sum(x, axis)), static=("axis",))
    for axis, count in ((0, 1), (0, 1), (1, 2), (0, 3)):
        _, dot = jvp(lambda x, a=axis: run(x, axis=a), (MANY,), (MANY,))
        np.testing.assert_allclose(dot, np.cos(MANY.sum(axis)) * MANY.sum(axis), rtol=1e-5)
        assert len(calls) == count


def test_under_a_transformation_a_function_of_one_operation_is_that_operation():
    applied = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TapeTrace, "process", noted(TapeTrace.process, applied))
        grad(lambda x: jnp.sum(jnp.matmul(x, MANY.T)))(X)
    assert applied == ["dot_general", "reduce_sum"]


def noted(process, applied):
    """`process` of a trace, which appends the names of the operations to a list."""

    def call(self, prim, args, params):
        applied.append(prim.name)
        return process(self, prim, args, params)

    return call


def test_a_call_of_arrays_is_one_program_and_others_run_as_written():
    calls = []

    def total(x, y, axis=None, *, keep=False):
        calls.append(x)
        return jnp.sum(x + y, axis)

    whole, x = operation(total, known=2, static=("axis",)), jnp.ones((2, 3))
    for call, made in (
        (lambda: whole(x, x, 0), 1),
        (lambda: whole(x, x, axis=0), 1),
        (lambda: whole(x, 1, 0), 2),
        (lambda: whole(np.asarray(x), x, 0), 2),
        (lambda: whole(x, x, 0, keep=True), 2),
        (lambda: whole(x, y=x, axis=0), 2),
        (lambda: grad(lambda x: whole(x, x, 0).sum())(x)[0], 2),
    ):
        calls.clear()
        assert call().shape == call().shape == (3,) and len(calls) == made
    with weft.config.scope(check_bounds="all"):
        assert whole(x, x, 0).shape == (3,) and calls[-1] is x
    for _ in range(2):
        calls.clear()
        with pytest.raises(weft.errors.ShapeError, match="axis"):
            whole(x, x, 2)
        assert len(calls) == 1 and calls[0] is not x  # the error of the program is the call's


def test_functions_of_arrays_give_what_they_give_of_numpys():
    x, q, i = jnp.array([3.0, 1.0, 2.0]), jnp.array([0.25, 0.5]), jnp.array([2, -1, 0])
    calls = [
        (jnp.isin, (x, q + 0.5)), (jnp.isin, (x, q, False, True)), (jnp.interp, (q, x, x)),
        (jnp.quantile, (x, q)), (jnp.percentile, (x, q)), (jnp.nanquantile, (x, q, 0)),
        (jnp.take_along_axis, (x, i)), (jnp.take_along_axis, (x, i, 0, "clip")),
        (jnp.array_equiv, (x, x)), (jnp.array_equiv, (x, q)), (jnp.take, (x, i)),
        (jnp.take, (x, i, 0)), (jnp.repeat, (x, 2)), (jnp.repeat, (x[None], 2, 0)),
        (jnp.clip, (x, 0, 2.5)), (jnp.clip, (x, None, q[1])), (jnp.power, (x, 0.5)),
        (jnp.power, (2.0, x)), (jnp.take, (x, -1)), (jnp.take, (x[None], 2, 1)),
    ]  # fmt: skip
    for fun, args in calls:
        given = [np.asarray(a) if isinstance(a, weft.Array) else a for a in args]
        found = [fun(*args) for _ in OFTEN]
        for out in (fun(*given), found[0]):
            assert out.aval == found[-1].aval
            np.testing.assert_array_equal(out, found[-1])
    for bad in (3, -4):
        for _ in OFTEN:
            with pytest.raises(IndexError, match="index must be in"):
                jnp.take(x, bad)


def returns_its_operand(fun):
    """Return True if the program of a function of one array has results and no equation."""
    try:
        jaxpr = weft.make_jaxpr(fun)(jnp.ones((2, 2))).jaxpr
    except Exception:
        return False
    outs = jaxpr.outvars
    return bool(outs) and not jaxpr.eqns and all(v in jaxpr.invars for v in outs)


def test_a_result_may_be_a_number_that_no_operand_decides():
    both = operation(lambda x: (2.0, x), name="both")
    for x in (X, jnp.asarray(X), 3.0):
        for _ in range(2):
            two, same = both(x)
            assert two == 2.0 and isinstance(two, weft.Array) and isinstance(same, weft.Array)
            np.testing.assert_array_equal(same, x)


SETTINGS = {
    "astype": lambda x: jnp.astype(x, np.float32),
    "astype by name": lambda x: jnp.astype(x, "float32"),
    "reshape": lambda x: jnp.reshape(x, (2, 2)),
    "transpose": lambda x: jnp.transpose(x, (0, 1)),
    "swapaxes": lambda x: jnp.swapaxes(x, 1, 1),
    "moveaxis": lambda x: jnp.moveaxis(x, 0, 0),
    "broadcast_to": lambda x: jnp.broadcast_to(x, (2, 2)),
    "flip": lambda x: jnp.flip(x, ()),
    "sum": lambda x: jnp.sum(x, axis=()),
}


def test_an_operand_that_is_the_result_is_an_array_of_ours():
    """A program that does nothing converts a NumPy array or a number to an array."""
    functions = {name: getattr(jnp, name) for name in jnp.__all__}
    functions = {n: f for n, f in functions.items() if callable(f) and returns_its_operand(f)}
    assert {"squeeze", "atleast_1d", "broadcast_arrays"} <= {*functions}
    for name, fun in (functions | SETTINGS).items():
        for x in (np.ones((2, 2), np.float32), np.ones((2, 2))):
            for _ in range(3):
                for out in weft.tree.leaves(fun(x)):
                    assert isinstance(out, weft.Array), name
                    np.testing.assert_array_equal(out, x)


# --- constants ------------------------------------------------------------------------------

ONE = jnp.asarray(1.0)  # weakly typed
CONSTANTS = {
    "linspace": lambda: jnp.linspace(0, 1, 5),
    "full": lambda: jnp.full((3,), 2.5),
    "arange": lambda: jnp.arange(1, 6, 2, dtype="int8"),
    "tril_indices": lambda: jnp.tril_indices(3)[1],
    "PRNGKey": lambda: weft.random.PRNGKey(3),
    "key": lambda: weft.random.key(3),
    "ones_like": lambda: jnp.ones_like(ONE),
    "full_like": lambda: jnp.full_like(ONE, 2.5),
    "hanning": lambda: jnp.hanning(4),
}


def call_often(fun):
    return [fun() for _ in range(HOT + 2)]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_met_often_are_copies(name):
    made, seen = CONSTANTS[name], []
    first, *_, last = call_often(made)
    sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code.co_name))
    out = made()
    sys.setprofile(None)
    assert len(seen) <= 5 and "call" in seen, seen
    for x in (last, out):
        assert (x.aval, x.sharding, x.committed) == (first.aval, first.sharding, first.committed)
        assert (x == first).all() and x is not first
    out.delete()
    assert (made() == first).all()


def test_constants_differ_by_the_types_and_signs_of_numbers():
    for one in (1, 1.0, True, np.int8(1), -0.0, 0.0, np.float64(-0.0), 0):
        for x in call_often(lambda one=one: jnp.full((2,), one)):
            assert x.dtype == jnp.full((2,), jnp.asarray(one)).dtype
            assert x.tolist() == [one, one] and (np.signbit(x) == np.signbit(one)).all()


def test_constants_of_shapes_differ_by_the_types_of_sizes():
    for make in (lambda shape: jnp.zeros(shape), lambda shape: jnp.full(shape, 2)):
        assert {x.shape for x in call_often(lambda make=make: make((2, 3)))} == {(2, 3)}
        assert {x.shape for x in call_often(lambda make=make: make((1, 0)))} == {(1, 0)}
        with pytest.raises(TypeError, match=r"integers; got \(2.0, 3.0\)"):
            make((2.0, 3.0))
        with pytest.raises(TypeError, match="integers"):
            make((2, 3.0))
        assert make((np.int64(2), 3)).shape == (2, 3)


def test_constants_like_an_array_lie_as_it_does():
    x = weft.device_put(jnp.arange(3), weft.devices()[0])
    for like in (jnp.zeros_like(x), jnp.full_like(x, 7.5)):
        assert like.committed and like.dtype == np.int32
    for y in call_often(lambda: jnp.full_like(jnp.arange(3), -1)):
        assert not y.committed and y.tolist() == [-1, -1, -1]
    assert jnp.zeros_like(x, shape=np.array([2, 3])).shape == (2, 3)
    for _ in range(HOT + 2):
        with pytest.raises(OverflowError, match="full: the fill value must fit int32; got 1"):
            jnp.full_like(jnp.arange(3), 2**40)


def test_constants_follow_options():
    assert {x.dtype.name for x in call_often(lambda: jnp.arange(3))} == {"int32"}
    with weft.enable_x64(True):
        assert {x.dtype.name for x in call_often(lambda: jnp.arange(3))} == {"int64"}
    with weft.config.scope(default_prng_impl="rbg"):
        assert {x.shape for x in call_often(lambda: weft.random.PRNGKey(3))} == {(4,)}
    with weft.config.scope(random_seed_offset=1):
        moved = call_often(lambda: weft.random.PRNGKey(3))
    assert all((x == weft.random.PRNGKey(4)).all() for x in moved)
    assert jnp.arange(3).dtype == np.int32
    assert (weft.random.PRNGKey(3) == jnp.array([0, 3], "uint32")).all()


def test_constants_of_arguments_without_a_hash_or_of_arrays():
    for x in call_often(lambda: jnp.full([2], jnp.float32(3))):
        assert x.tolist() == [3, 3]
    for x in call_often(lambda: jnp.linspace(jnp.arange(2.0), 2, 3)):
        assert x.tolist() == [[0, 1], [1, 1.5], [2, 2]]
    for _ in range(HOT + 2):
        with pytest.raises(ShapeError, match="zeros"):
            jnp.zeros((-1,))


def test_constants_are_staged_and_mapped_as_before():
    call_often(lambda: jnp.linspace(0, 1, 3))
    assert len(weft.make_jaxpr(lambda: jnp.linspace(0, 1, 3))().eqns) >= 1
    out = weft.vmap(lambda x: x * jnp.linspace(0, 1, 3))(jnp.arange(2.0))
    assert out.tolist() == [[0, 0, 0], [0, 0.5, 1]]
    assert weft.grad(lambda x: (x * jnp.linspace(0, 1, 3)).sum())(1.0) == 1.5


# Calls with a static argument as a number or a tuple, and the same as an array.
WITH_ARRAYS = {
    "roll": lambda n: jnp.roll(jnp.arange(6.0), n(2)),
    "roll along axes": lambda n: jnp.roll(jnp.ones((3, 4)), n(2, 1), (0, 1)),
    "roll along an array": lambda n: jnp.roll(jnp.ones((3, 4)), 2, n(1)),
    "tile": lambda n: jnp.tile(jnp.ones((3, 4)), n(2, 1)),
    "resize": lambda n: jnp.resize(jnp.arange(6.0), n(2, 2)),
    "reshape": lambda n: jnp.reshape(jnp.ones((3, 4)), n(4, 3)),
    "broadcast_to": lambda n: jnp.broadcast_to(jnp.arange(3.0), n(2, 3)),
    "transpose": lambda n: jnp.transpose(jnp.ones((3, 4)), n(1, 0)),
    "pad": lambda n: jnp.pad(jnp.arange(3.0), n(1, 2)),
    "sum": lambda n: jnp.sum(jnp.ones((3, 4)), n(1)),
    "expand_dims": lambda n: jnp.expand_dims(jnp.arange(3.0), n(1)),
    "split": lambda n: jnp.split(jnp.arange(6.0), n(2, 4)),
    "diff": lambda n: jnp.diff(jnp.arange(6.0) ** 2, n(2)),
    "moveaxis": lambda n: jnp.moveaxis(jnp.ones((3, 4)), n(0), n(1)),
    "sort by name": lambda n: jnp.sort(jnp.ones((3, 4)), axis=n(0)),
}


@pytest.mark.parametrize("call", WITH_ARRAYS)
def test_an_array_as_a_static_argument_is_read_once(call):
    """The call is the one with numbers then: it computes the same, and by a program."""
    fun = WITH_ARRAYS[call]
    plain = lambda *xs: xs if len(xs) > 1 else xs[0]
    want = fun(plain)
    for make in (jnp.array, np.array, lambda x: [*x] if type(x) is tuple else np.int64(x)):
        read = functools.cache(lambda *xs, make=make: make(plain(*xs)))
        for _ in range(3):
            found = fun(read)
        for x, y in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(x, y)
        count = count_calls(functools.partial(fun, read))
        assert count < 100, count  # up to 130 where the function as written reads each element


def count_calls(fun):
    count = 0

    def note(frame, event, _):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        fun()
    finally:
        sys.setprofile(None)
    return count


def test_other_arrays_as_static_arguments_run_as_written():
    x = jnp.arange(6.0)
    with pytest.raises(TypeError, match="roll"):
        jnp.roll(x, jnp.array(1.5))
    with pytest.raises(ValueError, match="reshape"):
        jnp.reshape(x, jnp.array([5, 5]))


# Calls of public functions whose operations are applied again from memory while they are traced.
TRACED = {
    "mean": lambda x: x.mean(-1, keepdims=True),
    "sum": lambda x: jnp.sum(x, axis=(0, 1), dtype=jnp.int32),
    "matmul": lambda x: x @ x,
    "where": lambda x: jnp.sum(x, where=x > 0, initial=-0.0),
    "clip": lambda x: jnp.clip(x, -0.0, 1.0) + jnp.clip(x, 0.0, 1.0),
    "power": lambda x: x**2 + x**2.0 + x**3,
    "median": lambda x: jnp.median(x, axis=0),
    "softmax": lambda x: weft.nn.softmax(x, axis=0),
    "same": lambda x: x.astype(x.dtype).reshape(2, 2),
    "tree": lambda x: sum(y.sum() for y in jnp.linalg.eigh(x)),
    "solve": lambda x: jnp.linalg.solve(x, x[0]),
    "closure": lambda x: jnp.vectorize(lambda y: y * x[0, 0])(x),
}


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize("how", [lambda f: f, grad, lambda f: vmap(f, in_axes=None, axis_size=2)])
def test_a_call_that_is_traced_again_writes_the_same(name, how):
    call = TRACED[name]
    x = jnp.linspace(0.5, 2.0, 4).reshape(2, 2)
    text = lambda: str(weft.make_jaxpr(how(lambda x: call(x).sum() * 1.0))(x))
    OPERATIONS.clear()
    texts = [text() for _ in range(4)]
    assert len({*texts}) == 1


def test_a_call_that_is_traced_again_runs_no_python():
    double, calls = counted(lambda x, how=None: x * 2 if how else x + x, arrays=1)
    f = lambda x: double(double(x), how=True) + double(x)
    for most in (3, 5, 5):  # met once, then read, then applied
        x = weft.make_jaxpr(f)(X)
        assert len(calls) <= most
    assert str(x).count("add") == 3 and str(x).count("mul") == 1


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x + np.arange(3),  # an array that is no operand
        lambda x: jit(lambda y: y * 2)(x),
        lambda x: weft.named_scope("scope")(lax.sin)(x),
        lambda x: weft.debug.print("{}", x) or x,
    ],
    ids=["const", "program", "scope", "effect"],
)
def test_a_call_of_more_than_operations_runs_as_written(body):
    function, calls = counted(body, arrays=1)
    for _ in range(4):
        weft.make_jaxpr(lambda x: function(x))(X)
    assert len(calls) == 5  # one of them to find out


def test_a_call_that_warns_does_so_each_time_that_it_is_traced():
    def f(x):
        for _ in range(4):
            x = x + jnp.sum(x, dtype=jnp.float64)
        return x

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        weft.make_jaxpr(f)(X)
    assert len(given) == 4 and {w.filename for w in given} == {__file__}
