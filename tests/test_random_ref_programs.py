"""Random programs that write references give what the same programs give on values."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.random_ref_programs import References, Values, draw_program, make_function
from tests.settings import ALL

X = np.array([0.3, -0.7, 1.1], np.float32)
T = np.array([1.0, 0.5, -2.0], np.float32)
MODES = {
    "eager": lambda f: f(X),
    "jit": lambda f: weft.jit(f)(X),
    "grad": lambda f: weft.grad(f)(X),
    "grad of jit": lambda f: weft.grad(weft.jit(f))(X),
    "vmap of grad": lambda f: weft.vmap(weft.grad(f))(np.stack([X, -0.5 * X])),
    "jvp": lambda f: weft.jvp(f, (X,), (T,)),
    "grad of checkpoint": lambda f: weft.grad(weft.checkpoint(f))(X),
    "second derivative": lambda f: weft.jvp(weft.grad(f), (X,), (T,))[1],
    "in a scan": lambda f: weft.grad(
        lambda x: weft.lax.scan(lambda c, s: (c + f(x * s), None), 0.0, jnp.array([1.0, 0.5]))[0]
    )(X),
}


@pytest.mark.parametrize("seed", range(300) if ALL else (1, 2))
def test_a_program_with_references_is_the_program_on_values(seed):
    statements = draw_program(seed)
    others = sorted(set(MODES) - {"jit", "grad"})
    for mode in ("jit", "grad", others[seed % len(others)]):
        got, want = [MODES[mode](make_function(statements, k)) for k in (References, Values)]
        for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=3e-4, atol=2e-5, err_msg=f"{mode} {statements}")
