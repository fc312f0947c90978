"""Operations of LAPACK's routines, read off the text of a module."""

import numpy as np

import weft
from weft import numpy as jnp
from weft.primitives.lapack_work import count_library_flops

N = 80
SQUARE = np.eye(N, dtype=np.float32) + 0.01


def test_counts_of_lapack_in_a_text():
    """Complex operations are four real ones, and a batch counts each call."""
    x = np.stack([SQUARE] * 3)
    flops = {}
    for dtype in (np.float32, np.complex64):
        with weft.config.scope(native=False):  # else weft's kernel factors real matrices
            lowered = weft.jit(jnp.linalg.cholesky).lower(x.astype(dtype))
        flops[dtype] = count_library_flops(lowered.compiler_ir("hlo").as_hlo_text())
    assert flops == {np.float32: N**3, np.complex64: 4 * N**3}
    assert count_library_flops('x = f32[3,3] custom-call(), custom_call_target="other"') == 0
