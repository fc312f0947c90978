"""Errors of scipy's functions, with complete messages: mistakes.txt."""

import pytest

import weft
import weft.numpy as jnp
import weft.scipy.cluster.vq as vq
import weft.scipy.sparse.linalg as sl
import weft.scipy.spatial.transform as tr
from tests.told import check_told, read_calls
from weft.scipy import fft, interpolate, linalg, ndimage, optimize, signal, special, stats

NAMES = dict(
    weft=weft, jnp=jnp, fft=fft, interpolate=interpolate, linalg=linalg, ndimage=ndimage,
    optimize=optimize, signal=signal, special=special, stats=stats, vq=vq, sl=sl, tr=tr,
)  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(("call", "told"), read_calls(__file__))
def test_mistakes_are_told_in_full(call, told):
    check_told(call, told, {**NAMES, "X": jnp.ones(3), "M": jnp.ones((2, 3)), "E": jnp.eye(3)})
