"""Calls of LAPACK in modules: those that weft writes fit, and no others."""

import dataclasses
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax, scipy
from weft.export import lapack_calls
from weft.export.modules import read_artefact, write_artefact
from weft.primitives import lapack_shapes

LAPACK = {
    "potrf": jnp.linalg.cholesky, "getrf": lax.linalg.lu, "geqrf": jnp.linalg.qr,
    "gesdd": jnp.linalg.svd, "gesdd reduced": lambda x: jnp.linalg.svd(x, full_matrices=False),
    "gesdd values": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "gesvd": lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm.QR),
    "syevd": jnp.linalg.eigh, "geev": jnp.linalg.eig, "gees": scipy.linalg.schur,
    "gehrd": lambda x: scipy.linalg.hessenberg(x, calc_q=True), "sytrd": lax.linalg.tridiagonal,
    "trsm": lambda x: scipy.linalg.solve_triangular(x, x[:, :2]),
    "trsm from the right": lambda x: lax.linalg.triangular_solve(x, x[:2]),
    "gtsv": lambda x: lax.linalg.tridiagonal_solve(x[..., 0], x[..., 1], x[..., 2], x),
    "geqp3": lambda x: scipy.linalg.qr(x, pivoting=True),
    "ormqr": lambda x: lax.linalg.ormqr(x[:, :3], x[0, :3], x[:, :5]),
    "ormqr from the right": lambda x: lax.linalg.ormqr(x[:5, :3], x[0, :3], x[:, :5], left=False),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("routine", LAPACK)
def test_calls_of_lapack_must_fit(routine, dtype):
    """weft's own calls fit; a call with a shorter or longer axis does not."""
    if (routine, dtype) in (("gtsv", np.complex64), ("sytrd", np.complex64)):
        return  # calls of those are the same
    f = weft.jit(lambda x: weft.tree.leaves(LAPACK[routine](x)))
    square = routine[:4] not in ("getr", "geqr", "gesd", "gesv")
    shape = (6, 6) if square else (2, 5, 3)  # smaller ones are written out
    x = (np.arange(np.prod(shape)).reshape(shape) % 7 + 9 * np.eye(*shape[-2:])).astype(dtype)
    found = export.export(f)(x)
    again = export.deserialize(found.serialize())
    if dtype == np.complex64 and routine != "geev":
        return  # of the compilations, one with complex constants is enough
    for got, want in zip(again.call(x), f(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    module = read_artefact(found.mlir_module_serialized)
    calls = [op for op in lapack_calls.find_calls(module) if "lapack" in op[0]]
    assert calls
    for target, op in calls:
        shapes = [tuple(t.shape) for t in lapack_calls.types_of(op)]
        count, options = len(op.operands), lapack_calls.read_options(op)
        pattern = lapack_shapes.find_pattern(target, options)
        assert lapack_shapes.fit_shapes(pattern, count, shapes, options)
        for i, shape in enumerate(shapes):
            for axis, n in enumerate(shape):
                for size in (n - 1, n + 1):
                    if i == 1 and pattern.startswith("mn t") and size < n:
                        continue  # fewer reflections are as good
                    bad = [*shapes]
                    bad[i] = (*shape[:axis], size, *shape[axis + 1 :])
                    assert not lapack_shapes.fit_shapes(pattern, count, bad, options)


def test_a_file_with_a_call_that_does_not_fit():
    """Such a call would write behind the buffer of its result."""
    x = np.eye(6, dtype=np.float32)
    found = export.export(weft.jit(jnp.linalg.cholesky))(x)
    text = found.mlir_module()
    (call,) = [line for line in text.splitlines() if "lapack_spotrf" in line]
    more = call.replace(call.split(":")[0], "    %bad")
    more = more.replace("-> (tensor<6x6xf32>", "-> (tensor<1x1xf32>")
    more = re.sub(r"output_operand_aliases = \[.*?>\], ", "", more)
    text = text.replace(call, f"{call}\n{more}")
    bad = dataclasses.replace(found, mlir_module_serialized=write_artefact(text))
    message = "must call LAPACK with shapes that fit; got 'lapack_spotrf_ffi' of "
    with pytest.raises(ValueError, match=f"^deserialize: a program {message}"):
        export.deserialize(bad.serialize())
    with pytest.raises(ValueError, match=f"^cholesky {message}"):
        bad.call(x)
