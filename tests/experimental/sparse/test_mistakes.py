"""What is refused, and what users are told, each in full: mistakes.txt."""

from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.experimental import sparse
from weft.experimental.sparse import BCOO, BCSR, COO, CSR

LINES = Path(__file__).with_name("mistakes.txt").read_text().splitlines()[2:]
M = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
C = np.ones((2, 3, 4), np.float32)
NAMES = {"np": np, "jnp": jnp, "weft": weft, "sparse": sparse, "M": M, "C": C,
         "BCOO": BCOO, "BCSR": BCSR, "COO": COO, "CSR": CSR}  # fmt: skip


@pytest.fixture(scope="module")
def names():
    return {**NAMES, "X": BCOO.fromdense(M), "S": BCSR.fromdense(M)}


@pytest.mark.parametrize(("call", "told"), [*zip(LINES[::2], LINES[1::2], strict=True)])
def test_mistakes_are_told_in_full(call, told, names):
    with pytest.raises(Exception) as info:
        eval(call, names)
    assert f"    {info.type.__name__}: {info.value}".replace("\n", "\\n") == told
