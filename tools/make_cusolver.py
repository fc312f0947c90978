"""Write tests/primitives/golden/cusolver.json: the calls of a GPU's kernels in JAX's text.

Run it where JAX is installed: `python tools/make_cusolver.py`. It lowers for CUDA without such a
device; test_cusolver.py compares.
"""

import json
import pathlib
import re

import jax
import jax.numpy as jnp
from jax import lax

QR = lax.linalg.SvdAlgorithm.QR
la = lax.linalg


def tall(a):
    return la.svd(a, full_matrices=False, algorithm=QR)


CASES = {
    "lu": (la.lu, (2, 20, 33)),
    "qr": (lambda a: la.qr(a, full_matrices=False), (40, 33)),
    "pivoted": (lambda a: la.qr(a, full_matrices=False, pivoting=True), (40, 33)),
    "eigh": (la.eigh, (2, 33, 33)),
    "tridiagonal": (la.tridiagonal, (2, 33, 33)),
    "eig": (la.eig, (2, 33, 33)),
    "svd": (tall, (2, 40, 33)),
    "svd_wide": (tall, (33, 40)),
    "svd_full": (lambda a: la.svd(a, algorithm=QR), (40, 33)),
    "svd_values": (lambda a: la.svd(a, compute_uv=False, algorithm=QR), (2, 40, 33)),
    "cholesky": (la.cholesky, (2, 33, 33)),
    "jacobi": (lambda a: la.svd(a, full_matrices=False), (2, 40, 33)),
    "jacobi_short": (lambda a: la.svd(a, full_matrices=False), (3, 8, 40)),
    "jacobi_full": (la.svd, (33, 40)),
    "jacobi_values": (lambda a: la.svd(a, compute_uv=False), (2, 40, 33)),
}

found = {}
for name, (f, shape) in CASES.items():
    for dtype in ("float32", "complex64"):
        text = (
            jax.jit(f).trace(jnp.ones(shape, dtype)).lower(lowering_platforms=("cuda",)).as_text()
        )
        calls = []
        for line in text.splitlines():
            target = re.search(r"custom_call @(cu(?:solver|hybrid|_)\w+)\(", line)
            if target:
                calls.append(
                    {
                        "target": target[1],
                        "options": re.search(r"mhlo\.backend_config = {(.*?)}", line)[1],
                        "operand_layouts": re.search(r"operand_layouts = \[(.*?>)\]", line)[1],
                        "result_layouts": re.search(r"result_layouts = \[(.*?>)\]", line)[1],
                        "types": re.sub(r"[()]", "", line.rpartition("} : ")[2]),
                    }
                )
        found[f"{name} {dtype}"] = calls

path = pathlib.Path(__file__).parents[1] / "tests/primitives/golden/cusolver.json"
path.write_text(json.dumps(found, indent=1) + "\n")
