"""Settings every test runs under; they are made before the first `import weft`.

What pytest itself is told (warnings are errors, import mode) stands in pyproject.toml.
"""

import os
from pathlib import Path

import numpy as np
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent

# The environment must not decide what is tested: weft's defaults do, float32 among them.
for name in [name for name in os.environ if name.startswith("WEFT_") and name != "WEFT_CACHE_DIR"]:
    del os.environ[name]

# Compiled programs are shared by all tests and workers, and kept from run to run.
os.environ.setdefault("WEFT_CACHE_DIR", str(CHECKOUT / ".cache" / "weft"))


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that gives every test the same numbers in every run."""
    return np.random.default_rng(0)
