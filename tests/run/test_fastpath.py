"""NumPy's values on the call path of C++."""

import os
import subprocess
import sys

from weft.run import fastpath

# Each entry runs three times: once by Python, which makes the executable, then by C++.
OVERFLOWS = """
import sys
import numpy as np
import weft
import weft.numpy as jnp
from weft import lax
from weft.sharding import SingleDeviceSharding

x, big, bigs = jnp.ones(3), np.array(1e300), np.full(3, 1e300)
one = SingleDeviceSharding(weft.devices()[0])
double, static = weft.jit(lambda a: a * 2), weft.jit(lambda a, b: a + b, static_argnums=1)
aot = double.lower(big).compile()
CASES = {
    "operand": lambda: x + big,
    "scalar": lambda: x * np.float64(1e300),
    "left operand": lambda: big + x,
    "number": lambda: x + 1e300,
    "complex": lambda: jnp.real(x * np.complex128(1e300)),
    "array": lambda: x + bigs,
    "large array": lambda: jnp.sum(np.full(10_000, 1e300)),
    "jit": lambda: double(big),
    "jit of a number": lambda: double(1e300),
    "jit of a tree": lambda: weft.jit(lambda t: t["a"])({"a": bigs}),
    "static": lambda: static(big, 2),
    "compiled": lambda: aot(big),
    "constant": lambda: weft.jit(lambda a: a + big)(x),
    "vmap": lambda: weft.vmap(lambda a: a + 1)(bigs),
    "grad": lambda: weft.grad(lambda a: a * big)(np.float64(1.0)),
    "scan": lambda: lax.scan(lambda c, a: (c + a, c), big, bigs)[0],
    "cond": lambda: lax.cond(True, lambda a: a, lambda a: -a, big),
    "device_put": lambda: weft.device_put(big),
    "device_put there": lambda: weft.device_put(bigs, one),
    "asarray": lambda: jnp.asarray(big),
    "list": lambda: jnp.array([1e300, 1.0]),
    "float16": lambda: jnp.asarray(1e10, jnp.float16),
    "set": lambda: x.at[0].set(big),
    "get": lambda: x.at[jnp.array([5])].get(mode="fill", fill_value=np.float64(1e300)),
    "take": lambda: jnp.take(x, jnp.array([5]), mode="fill", fill_value=1e300),
    "full": lambda: jnp.full(3, big),
    "pad": lambda: jnp.pad(x, 1, constant_values=big),
    "lax.pad": lambda: lax.pad(x, np.float64(1e300), [(1, 1, 0)]),
    "where": lambda: jnp.where(x > 0, big, x),
    "initial": lambda: jnp.max(x, initial=big),
    "reduce": lambda: lax.reduce(x, np.float64(1e300), lax.max, (0,)),
    "callback": lambda: weft.pure_callback(
        lambda a: np.array(1e300), weft.ShapeDtypeStruct((), np.float32), x[0]
    ),
    "parts": lambda: weft.make_array_from_callback((3,), one, lambda i: bigs[i], np.float32),
}
for name, call in CASES.items():
    for _ in range(3):
        print(name, file=sys.stderr)  # the last one is told where the process ends
        assert jnp.isinf(jnp.max(call())), name
"""


def test_floats_that_overflow_float32_warn_nobody():
    env = {**os.environ, "JAX_ENABLE_X64": "0"}
    run = [sys.executable, "-W", "error", "-c", OVERFLOWS]
    done = subprocess.run(run, capture_output=True, text=True, env=env, timeout=120)
    assert not done.returncode, (done.returncode, done.stderr[-500:])


def test_executables_of_calls_are_bounded():
    # Those of eager operations are kept only here; the bound is in the note 003.
    assert fastpath._CACHE.capacity() == 4096 >= fastpath._CACHE.size()
