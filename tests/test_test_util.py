"""check_grads and related functions accept right derivatives, and describe wrong ones."""

from functools import partial

import numpy as np
import pytest

import weft.numpy as jnp
from weft import custom_jvp, custom_vjp, enable_x64, jvp, lax, typing, vjp
from weft.test_util import check_grads, check_jvp, check_vjp


@custom_vjp
def wrong_back(x):
    return jnp.sin(x)


wrong_back.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (1.5 * ct * jnp.cos(x),))


@custom_jvp
def wrong_later(x):
    return x**3


@wrong_later.defjvp
def wrong_later_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return wrong_later(x), 3 * lax.stop_gradient(x) ** 2 * t


@pytest.mark.parametrize("x64", [False, True])
def test_what_is_right_passes(x64):
    with enable_x64(x64):
        f = lambda x, z, n: {"a": jnp.sin(x["x"]) * n, "b": (z * z, n)}
        args = ({"x": jnp.arange(3.0)}, jnp.array(1 + 2j), jnp.array(2))
        check_grads(f, args, order=2)
        check_jvp(f, partial(jvp, f), args, eps=None)
        check_vjp(f, partial(vjp, f), args, eps=None)
    check_grads(lambda x: x**2, (jnp.ones(2, jnp.bfloat16),), order=1)


def test_what_is_wrong_is_said():
    with pytest.raises(AssertionError, match="vjp: f_vjp and the difference of f differ"):
        check_grads(wrong_back, (0.5,), order=1, modes=["rev"])
    check_grads(wrong_later, (0.5,), order=1)
    with pytest.raises(AssertionError, match="jvp: jvp: f_jvp and the difference of f differ"):
        check_grads(wrong_later, (0.5,), order=2)
    with pytest.raises(AssertionError, match="here: values of f_jvp and f differ"):
        check_jvp(jnp.sin, lambda xs, ts: (jnp.cos(*xs), *ts), (0.5,), err_msg="here: ")
    with pytest.raises(AssertionError, match="structures differ"):
        check_jvp(jnp.sin, lambda xs, ts: (xs, ts[0]), (0.5,))
    with pytest.raises(ValueError, match=r"modes must be of 'fwd' and 'rev'; got \['back'\]"):
        check_grads(jnp.sin, (0.5,), order=1, modes=["back"])


def test_types_for_annotations():
    assert isinstance(jnp.ones(2), typing.ArrayLike) and isinstance(1.0, typing.ArrayLike)
    assert isinstance(np.float32(1), typing.ArrayLike) and not isinstance([1.0], typing.ArrayLike)
    assert set(typing.__all__) == {"ArrayLike", "DTypeLike"}


def test_tolerances_may_be_given_by_dtype():
    near = custom_jvp(lambda x: x * x)
    near.defjvp(lambda primals, tangents: (near(*primals), 2.1 * primals[0] * tangents[0]))
    with pytest.raises(AssertionError):
        check_grads(near, (1.0,), 1, ("fwd",), rtol={jnp.float32: 1e-3, np.dtype("float16"): 1})
    check_grads(near, (1.0,), 1, ("fwd",), rtol={jnp.float32: 1, jnp.float64: 1e-9})
