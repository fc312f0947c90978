"""Whose a refused transfer is: the user's values stay refused, weft's own are moved after all."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import JaxRuntimeError
from weft.scipy import signal
from weft.scipy.stats import gaussian_kde

HOST = np.arange(4, dtype=np.float32)

REFUSED = {
    "an operator": lambda x: x + HOST,
    "a number": lambda x: x + 1.0,
    "a primitive": lambda x: lax.add(x, 2.0),
    "a part of an array": lambda x: jnp.add(x[:2], HOST[1:3]),
    "a copy": lambda x: jnp.asarray(HOST),
    "another dtype": lambda x: jnp.asarray(HOST, jnp.bfloat16),
    "a list": lambda x: jnp.array([1.0, 2.0]),
    "an operand of a function in Python": lambda x: jnp.polyval(HOST, x),
    "an argument of a jitted function": lambda x: weft.jit(lambda y: y * 2)(HOST),
    "within a loop of weft's": lambda x: weft.disable_jit()(
        lambda: lax.map(lambda y: y + HOST, x)
    )(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_of_the_user_are_refused(name):
    x = jnp.arange(4.0)
    REFUSED[name](x)
    refused = pytest.raises(JaxRuntimeError, match="Disallowed host-to-device")
    with weft.transfer_guard("disallow"), refused:
        REFUSED[name](x)


OWN = {
    "defaults": lambda x: jnp.linalg.trace(jnp.diag(x)),
    "settings that equal constants": lambda x: jnp.roots(x, strip_zeros=False),
    "constants in rules": lambda x: weft.grad(lambda x: (jnp.sinc(x) ** 3).sum())(x),
    "loops": lambda x: lax.linalg.qdwh(jnp.diag(x + x)),
    "results from the host": lambda x: jnp.unique(x[x > x]),
    "a number that equals a length": lambda x: signal.stft(x, nperseg=4, axis=-1),
}


@pytest.mark.parametrize("name", OWN)
def test_values_of_weft_are_moved(name):
    x = jnp.arange(4.0)
    with weft.transfer_guard("disallow"):
        OWN[name](x)
    with weft.transfer_guard("disallow_explicit"), pytest.raises(JaxRuntimeError, match="Disallow"):
        jnp.arange(1234)  # a size of no other test: a hot call copies its result on the device


def test_an_object_that_is_being_built_is_no_argument():
    """A pytree whose constructor computes has no leaves yet, and cannot be looked through."""
    samples = jnp.arange(4.0)
    with weft.transfer_guard("disallow"):
        made = gaussian_kde(samples)
    assert made.neff == 4
