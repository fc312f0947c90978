"""Computing at once while a function is traced: `ensure_compile_time_eval` under everything."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import ensure_compile_time_eval, grad, jit, lax, vmap
from weft.core import Tracer


def body(c, _):
    with ensure_compile_time_eval():
        n = int(jnp.sum(jnp.array([1, 2])))
    return c * n, None


def branch(x):
    with ensure_compile_time_eval():
        n = int(jnp.add(1, 2))
    return x * n


def program(x):
    x = lax.scan(body, x, None, length=2)[0]
    return lax.cond(x > 0, branch, lambda x: x, x)


@pytest.mark.parametrize(
    "fun",
    [program, jit(program), grad(program), jit(grad(program)), grad(jit(program))],
    ids=["eager", "jit", "grad", "jit_grad", "grad_jit"],
)
def test_in_bodies_and_branches(fun):
    assert float(fun(1.0)) == 27.0
    np.testing.assert_array_equal(vmap(fun)(np.ones(2, np.float32)), [27, 27])
    np.testing.assert_array_equal(jit(vmap(fun))(np.ones(2, np.float32)), [27, 27])


@pytest.mark.parametrize("wrap", [jit, grad, lambda f: vmap(f)], ids=["jit", "grad", "vmap"])
def test_transformations_inside_compute_at_once(wrap):
    def fun(x):
        with ensure_compile_time_eval():
            values = [
                grad(lambda z: z**2)(3.0),
                jit(lambda z: z * 2)(3.0),
                lax.scan(lambda c, _: (c + 1, None), 0.0, None, length=3)[0],
                vmap(lambda z: z + 1)(jnp.ones(3)),
                lax.cond(True, lambda: 1.0, lambda: 2.0),
            ]
            y = x * 2.0  # what is not known goes on being traced
        assert not any(isinstance(v, Tracer) for v in values)
        return y * float(values[0])

    x = np.ones(2, np.float32) if wrap not in (jit, grad) else 1.0
    np.testing.assert_array_equal(wrap(fun)(x), np.full(np.shape(x), 12.0))


def test_it_ends_with_an_error():
    def fun(x):
        with pytest.raises(ZeroDivisionError), ensure_compile_time_eval():
            assert 1 / 0
        return jnp.sin(1.0) * x

    assert [e.primitive.name for e in weft.make_jaxpr(fun)(1.0).eqns][0] == "sin"
