"""Helpers of tests of random numbers: SciPy's laws, and JAX's bits.

Results of keys are JAX's bit for bit, in both layouts; tools/make_random.py wrote its values. XLA
rounds some functions of floats differently without optimization, as in all tests except for `pytest
--all`: then the first numbers are near, and bits and integers are equal.
"""

import hashlib
import json
import os
import pathlib

import numpy as np
import scipy.stats as stats

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from weft import random

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "random.json").read_text())
NAMES = {**vars(random), "jnp": jnp}


N = 20000


def check_law(name: str, args: tuple, more: dict, law: object) -> None:
    """N samples are of a law of SciPy, in float32."""
    x = getattr(random, name)(random.PRNGKey(7), *args, shape=(N,), **more)
    assert x.shape == (N,) and x.dtype == np.float32
    assert stats.kstest(np.asarray(x), law.cdf).pvalue > 1e-3


def settings(name: str) -> dict:
    return {
        "threefry_partitionable": name.startswith("partitionable"),
        "enable_x64": name.endswith("x64"),
    }


def is_near(found, first: list[str]) -> bool:
    """Return True if numbers are JAX's up to the rounding of programs without optimization."""
    if "WEFT_TEST_ALL" in os.environ or not jnp.issubdtype(found.dtype, np.inexact):
        return False
    wanted = np.array([complex(x) for x in first])
    eps = float(jnp.finfo(found.dtype).eps)
    return np.allclose(found.astype(np.complex128), wanted, rtol=100 * eps)


def check_bits(name: str, functions: str, one_in: int = 4) -> None:
    """Calls of some functions under a setting: one of several, others for each; all with --all.

    Floats of 16 bits are drawn in float32, so most of them differ from JAX's.
    """
    wrong, turn = [], list(GOLDEN).index(name)
    rows = [row for row in GOLDEN[name] if row[0].partition("(")[0] in functions.split()]
    alike = ("uniform", "normal", "bits", "rademacher")
    rows = [r for r in rows if not r[1].endswith("float16") or r[0].partition("(")[0] in alike]
    with weft.config.scope(**settings(name)):
        impl = name.partition("_")[2]
        key = random.key(17, impl=impl) if impl.endswith("rbg") else random.PRNGKey(17)
        for call, dtype, shape, digest, first in (
            rows if ALL else rows[(turn + turn // 4 * 2) % one_in :: one_in]
        ):
            found = np.asarray(eval(call, NAMES, {"key": key}))
            assert str(found.dtype) == dtype and list(found.shape) == shape, call
            same = hashlib.sha256(found.tobytes()).hexdigest()[:16] == digest
            if not same and not is_near(found.ravel()[:3], first):
                wrong.append((call, first, found.ravel()[:3]))
    assert not wrong, "\n".join(map(str, wrong))
