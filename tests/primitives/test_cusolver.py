"""Linear algebra in the form for a GPU: the calls of kernels are JAX's.

They cannot run here; tools/make_cusolver.py explains how cusolver.json was made.
"""

import functools
import json
import pathlib
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, random
from weft.xla.hlo import Builder
from weft.xla.lower import lower_jaxpr

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "cusolver.json").read_text())
la = lax.linalg
tall = functools.partial(la.svd, full_matrices=False, algorithm=la.SvdAlgorithm.QR)

CASES = {
    "lu": (la.lu, (2, 20, 33)),
    "qr": (lambda a: la.qr(a, full_matrices=False), (40, 33)),
    "pivoted": (lambda a: la.qr(a, full_matrices=False, pivoting=True), (40, 33)),
    "eigh": (la.eigh, (2, 33, 33)),
    "tridiagonal": (la.tridiagonal, (2, 33, 33)),
    "eig": (la.eig, (2, 33, 33)),
    "svd": (tall, (2, 40, 33)),
    "svd_wide": (tall, (33, 40)),
    "svd_full": (lambda a: la.svd(a, algorithm=la.SvdAlgorithm.QR), (40, 33)),
    "svd_values": (
        lambda a: la.svd(a, compute_uv=False, algorithm=la.SvdAlgorithm.QR),
        (2, 40, 33),
    ),
    "cholesky": (la.cholesky, (2, 33, 33)),
    "jacobi": (lambda a: la.svd(a, full_matrices=False), (2, 40, 33)),
    "jacobi_short": (lambda a: la.svd(a, full_matrices=False), (3, 8, 40)),
    "jacobi_full": (la.svd, (33, 40)),
    "jacobi_values": (lambda a: la.svd(a, compute_uv=False), (2, 40, 33)),
}


def written(f, *args, platform="cuda"):
    """The text of a program for a platform that need not be here."""
    jaxpr = weft.make_jaxpr(f)(*args).jaxpr
    hlo = Builder((), platform)
    hlo.function("main", jaxpr.in_avals, lambda *xs: lower_jaxpr(hlo, jaxpr, xs), "public")
    return hlo.module("m")


def calls(text):
    """The calls of kernels in a text, as cusolver.json has them."""
    found = []
    for line in text.splitlines():
        target = re.search(r'call_target_name = "(cu(?:solver|hybrid|_)\w+)"', line)
        if target:
            part = lambda pattern, line=line: re.search(pattern, line)[1]
            types = re.sub(r' loc\(".*"\)$', "", line.rpartition("}> : ")[2])
            found.append(
                {
                    "target": target[1],
                    "options": part(r"backend_config = {(.*?)}"),
                    "operand_layouts": part(r"operand_layouts = \[(.*?>)\]"),
                    "result_layouts": part(r"result_layouts = \[(.*?>)\]"),
                    "types": re.sub(r"[()]", "", types),
                }
            )
    return found


def plain(call):
    """The same with one spelling: dense<0> is dense<[0]>."""
    return {
        k: re.sub(r"dense<\[(\d)\]>", r"dense<\1>", x.replace(" ", "")) for k, x in call.items()
    }


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("case", CASES)
def test_calls_of_kernels_are_those_of_jax(case, dtype):
    f, shape = CASES[case]
    got = calls(written(f, jnp.zeros(shape, dtype)))
    want = GOLDEN[f"{case} {dtype}"]
    assert want and [*map(plain, got)] == [*map(plain, want)]


def test_singular_values_of_what_is_long_are_not_found_by_rotations():
    (call,) = calls(written(lambda a: la.svd(a, full_matrices=False), jnp.zeros((1025, 40))))
    assert call["target"] == "cusolver_gesvd_ffi"


def test_random_bits_are_fused_with_what_takes_them():
    assert "func.call" not in written(lambda k: random.bits(k, (1000,)), random.PRNGKey(0))


def test_other_names_of_kernels():
    text = written(jnp.linalg.eigvalsh, jnp.zeros((33, 33)), platform="rocm")
    assert 'call_target_name = "hipsolver_syevd_ffi"' in text
    diagonals = [jnp.zeros(40)] * 3
    text = written(lambda *d: la.tridiagonal_solve(*d, jnp.zeros((40, 2))), *diagonals)
    assert 'call_target_name = "cusparse_gtsv2_ffi"' in text


def test_what_has_no_kernel_on_a_gpu():
    with pytest.raises(NotImplementedError, match=r"^gees: has no kernel on a GPU; .* Hint: with"):
        written(la.schur, jnp.zeros((33, 33)))
    with pytest.raises(NotImplementedError, match=r"computed on CPU and GPUs alone; .* tpu"):
        written(la.eigh, jnp.zeros((33, 33)), platform="tpu")


def test_no_call_of_a_cpu_kernel_is_left():
    def f(a, b):
        q, r = jnp.linalg.qr(a)
        u, s, v = jnp.linalg.svd(a)
        return jnp.linalg.solve(a, b), q, r, u, s, v, jnp.linalg.inv(a), jnp.linalg.det(a)

    text = written(f, jnp.eye(33), jnp.ones(33, np.float32))
    assert "lapack_" not in text and "cusolver_getrf_ffi" in text
