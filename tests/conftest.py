"""Settings every test runs under; they are made before the first `import weft`.

What pytest itself is told (warnings are errors, import mode) stands in pyproject.toml.
"""

import os
from pathlib import Path

import numpy as np
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent

# The environment must not decide what is tested: weft's defaults do, float32 among them.
KEPT = {"WEFT_CACHE_DIR", "WEFT_TEST_DEVICES"}
for name in [name for name in os.environ if name.startswith("WEFT_") and name not in KEPT]:
    del os.environ[name]

# Tests of many devices are run with that many; see tests/parallel/devices.py.
if "WEFT_TEST_DEVICES" in os.environ:
    count = os.environ["WEFT_TEST_DEVICES"]
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"

# Compiled programs are shared by all tests and workers, and kept from run to run.
os.environ.setdefault("WEFT_CACHE_DIR", str(CHECKOUT / ".cache" / "weft"))


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that gives every test the same numbers in every run."""
    return np.random.default_rng(0)
