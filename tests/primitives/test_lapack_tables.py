"""SciPy's tables of LAPACK's functions, which are imported without their package."""

import subprocess
import sys

import pytest

# In what order a process uses LAPACK and imports SciPy's package.
ORDERS = {
    "LAPACK before": "eigenvalues(); assert not loaded(); import scipy.linalg; eigenvalues()",
    "LAPACK after": "import scipy.linalg; eigenvalues()",
    "at the same time": (
        "from weft.primitives.lapack import import_tables\n"
        "with import_tables(): import scipy.linalg\n"
        "eigenvalues()"
    ),
    "no table is found": (
        "from weft.primitives import lapack\n"
        "lapack.TABLES = ('not_here',); eigenvalues(); assert loaded()"
    ),
}
PROCESS = """
import sys
import numpy as np
import weft.numpy as jnp

def eigenvalues():
    return np.testing.assert_allclose(jnp.linalg.eigvalsh(jnp.eye(2)), [1, 1])

def loaded():
    return [name for name in sys.modules if name.startswith("scipy.linalg")]

{order}
import scipy.linalg
from scipy.linalg import cython_lapack
assert scipy.linalg.cython_lapack is cython_lapack is sys.modules["scipy.linalg.cython_lapack"]
assert scipy.linalg.cython_blas.__pyx_capi__
np.testing.assert_allclose(scipy.linalg.svdvals(np.diag([3.0, 4.0])), [4, 3])
"""


@pytest.mark.parametrize("order", ORDERS)
def test_tables_and_their_package(order):
    program = PROCESS.format(order=ORDERS[order])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
