"""Rows for small.py."""

from __future__ import annotations

import numpy as np

from tests.primitives.cases import Case
from tests.primitives.matrix_helpers import DTYPES
from weft.primitives import small

CASES = [
    *(
        Case(
            small.small_solve_p,
            [(2, n, n), (2, n, 2)],
            np.linalg.solve,
            dtypes=DTYPES,
            tol=500,
            label=str(n),
        )
        for n in (2, 4, 3, 1)  # derivatives are tested of the first and the last
    ),
    *(
        Case(small.small_det_p, [(2, n, n)], np.linalg.det, dtypes=DTYPES, tol=50, label=str(n))
        for n in (1, 2, 3, 4)
    ),
]
