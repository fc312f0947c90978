"""Errors of sparse functions, with complete messages: mistakes.txt."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.told import check_told, read_calls
from weft.experimental import sparse
from weft.experimental.sparse import BCOO, BCSR, COO, CSR

M = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
C = np.ones((2, 3, 4), np.float32)
NAMES = {"np": np, "jnp": jnp, "weft": weft, "sparse": sparse, "M": M, "C": C,
         "BCOO": BCOO, "BCSR": BCSR, "COO": COO, "CSR": CSR}  # fmt: skip


@pytest.fixture(scope="module")
def names():
    return {**NAMES, "X": BCOO.fromdense(M), "S": BCSR.fromdense(M)}


@pytest.mark.parametrize(("call", "told"), read_calls(__file__))
def test_mistakes_are_told_in_full(call, told, names):
    check_told(call, told, names)
