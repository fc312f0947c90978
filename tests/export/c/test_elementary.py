"""Elementary functions of float32 in C against NumPy's of float64, and that compilers vectorize."""

import shutil
import subprocess

import numpy as np
import pytest

import weft.numpy as jnp
from tests.export.c.sanitized import WARNINGS
from weft import export

# ulps that each function may be off; docs/programs-in-c.md lists them.
BOUNDS = {"exp": 1.1, "expm1": 1.8, "log": 0.9, "log1p": 1.5, "tanh": 2.5}
SPECIAL = [0.0, 1.0, np.inf, np.nan, 1e-45, 1e-40, 1.1754944e-38, 3.4028235e38, 88.722839]
SPECIAL += [87.336545, 103.97208, 104.1, 0.5, 0.70710677, 0.70710683, 9.0, 17.4, 1e-20]


@pytest.fixture(scope="module")
def program():
    """All functions, each on every element of a vector."""
    return export.to_c(lambda x: [getattr(jnp, name)(x) for name in BOUNDS], name="functions")(
        np.empty(1 << 17, np.float32)
    )


def make_numbers():
    """Special numbers of both signs, and samples of all floats and of common sizes."""
    rng = np.random.default_rng(0)
    special = np.array(SPECIAL, np.float32)
    bits = rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint64).astype(np.uint32)
    sizes = np.float32([1e-3, 0.3, 1, 10, 100])[:, None]
    common = (sizes * rng.normal(size=(5, 10_000)).astype(np.float32)).ravel()
    x = np.concatenate([special, -special, bits.view(np.float32), common])
    return np.resize(x, 1 << 17)


def check_errors(found, x):
    for (name, bound), y in zip(BOUNDS.items(), found, strict=True):
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(x.astype(np.float64))
            want = exact.astype(np.float32)
            ulp = np.spacing(np.maximum(np.abs(want), np.float32(1.1754944e-38)))
            error = np.abs(y - exact) / ulp.astype(np.float64)
        finite = np.isfinite(want) & np.isfinite(y)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(want), name)
        edge = np.isinf(want) != np.isinf(y)  # within the rounding of the largest float
        assert np.all(np.abs(exact[edge]) > 3.4028e38), name
        np.testing.assert_array_equal(np.signbit(y[want == 0]), np.signbit(want[want == 0]))
        worst = np.argmax(np.where(finite, error, 0))
        assert error[worst] <= bound, f"{name}({x[worst]!r}) is {error[worst]} ulp off"


@pytest.mark.parametrize("flags", [("-O1",), ("-O3", "-ffp-contract=fast", "-march=native")])
def test_errors(program, flags):
    x = make_numbers()
    check_errors(program.build(flags=[*flags, *WARNINGS])(x), x)


def test_16_bit_floats_and_fast_math():
    fun = lambda x: [getattr(jnp, name)(x) for name in BOUNDS]
    x = np.linspace(0.1, 3, 64, dtype=np.float32)
    fast = export.to_c(fun)(x).build(flags=["-ffast-math"])(x)
    rounded = jnp.asarray(x, jnp.bfloat16)
    halves = export.to_c(fun)(rounded).build()(rounded)
    for name, y, half in zip(BOUNDS, fast, halves, strict=True):
        want = getattr(np, name)
        np.testing.assert_allclose(y, want(x), 1e-5)
        np.testing.assert_allclose(half.astype(np.float32), want(np.float32(rounded)), 2**-8)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="asks gcc what it vectorizes")
def test_loops_are_vectorized_without_flags(program, tmp_path):
    (tmp_path / "functions.c").write_text(program.source)
    (tmp_path / "functions.h").write_text(program.header)
    command = ["gcc", "-std=c99", "-O3", "-fopt-info-vec", "-c", "functions.c", "-o", "out.o"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    lines = {line.split(":")[1] for line in told.splitlines() if "loop vectorized" in line}
    assert len(lines) == len(BOUNDS), told
