"""What keys give is JAX's bit for bit, in both layouts; tools/make_random.py wrote its values.

XLA rounds some functions of floats in another way where it does not optimize, as in all tests but
those of `pytest --all`: there the first numbers are near, and bits and integers the same.
"""

import hashlib
import json
import os
import pathlib

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from weft import random

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "random.json").read_text())
NAMES = {**vars(random), "jnp": jnp}


def settings(name: str) -> dict:
    return {
        "threefry_partitionable": name.startswith("partitionable"),
        "enable_x64": name.endswith("x64"),
    }


def is_near(found, first: list[str]) -> bool:
    """Whether numbers are those of JAX but for the rounding of programs that are not optimized."""
    if "WEFT_TEST_ALL" in os.environ or not jnp.issubdtype(found.dtype, np.inexact):
        return False
    wanted = np.array([complex(x) for x in first])
    eps = float(jnp.finfo(found.dtype).eps)
    return np.allclose(found.astype(np.complex128), wanted, rtol=100 * eps)


@pytest.mark.parametrize("name", GOLDEN)
def test_bits_are_those_of_jax(name, kernels_as_for_users):
    """Every fourth call for each setting, in turns; all of them with --all."""
    wrong = []
    with weft.config.scope(**settings(name)):
        impl = name.partition("_")[2]
        key = random.key(17, impl=impl) if impl.endswith("rbg") else random.PRNGKey(17)
        rows = GOLDEN[name] if ALL else GOLDEN[name][list(GOLDEN).index(name) % 4 :: 4]
        for call, dtype, shape, digest, first in rows:
            found = np.asarray(eval(call, NAMES, {"key": key}))
            assert str(found.dtype) == dtype and list(found.shape) == shape, call
            same = hashlib.sha256(found.tobytes()).hexdigest()[:16] == digest
            if not same and not is_near(found.ravel()[:3], first):
                wrong.append((call, first, found.ravel()[:3]))
    assert not wrong, "\n".join(map(str, wrong))
