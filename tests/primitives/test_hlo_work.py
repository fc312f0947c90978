"""Operations by books less those by XLA: the figures of XLA are asked for."""

import numpy as np
import pytest

import weft
from weft import lax
from weft.primitives.hlo_work import correct_flops


def transform(kind, *lengths):
    return lambda x: lax.fft(x, kind, lengths)


COMPLEX = np.ones((2, 9, 33), np.complex64)
# A function, its operand, and its operations by books.
PROGRAMS = {
    "fft": (transform("FFT", 33), COMPLEX, 18 * 5 * 33 * np.log2(33)),
    "fft of two axes": (transform("IFFT", 9, 33), COMPLEX, 2 * 5 * 297 * np.log2(297)),
    "real": (transform("RFFT", 33), COMPLEX.real, 18 * 2.5 * 33 * np.log2(33)),
    "inverse real": (transform("IRFFT", 9, 64), COMPLEX, 2 * 2.5 * 576 * np.log2(576)),
    "of one number": (transform("FFT", 1), COMPLEX[..., :1], 0),
    "product": (lambda x: lax.batch_matmul(x, np.ones((2, 33, 4), x.dtype)), COMPLEX,
                8 * 2 * 9 * 33 * 4),
    "real product": (lambda x: x[0] @ x[0].T, COMPLEX.real, 2 * 9 * 33 * 9),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts(name):
    f, x, want = PROGRAMS[name]
    lowered = weft.jit(f).lower(x)
    module = lowered.compiler_ir("hlo").as_hlo_module()
    found = lowered.cost_analysis().get("flops", 0)
    by_xla = found - correct_flops(module.to_string())
    assert by_xla >= 0
    assert found == pytest.approx(want, abs=0.5)
