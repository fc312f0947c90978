"""Calls of LAPACK's routines: jaxlib's kernels on CPU, and cuSOLVER's on a GPU.

The kernels for CPU are registered here, on first use; those for a GPU come with its plugin
(plugins.py). The primitives choose the routines and handle failures.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from types import ModuleType
from typing import NamedTuple

import numpy as np
from jaxlib import _jax

from weft.core.aval import ShapedArray
from weft.mesh.client import clients
from weft.mesh.plugins import GPUS
from weft.primitives.expr import Expr
from weft.primitives.lapack_shapes import COMPLEX_NAMES
from weft.xla.foreign import write_kernel_call
from weft.xla.hlo import Builder, Value

# The letter in the names of LAPACK's routines for a dtype.
LETTERS = dict(zip(("float32", "float64", "complex64", "complex128"), "sdcz", strict=True))

# SciPy's modules that hold the addresses of the functions of BLAS and LAPACK.
PACKAGE, TABLES = "scipy.linalg", ("cython_blas", "cython_lapack")

_registering = threading.Lock()


def register_kernels() -> None:
    """Make the kernels known to XLA; needed before a program that calls one is loaded."""
    with _registering:
        register_once()


@functools.cache
def register_once() -> None:
    """Register the kernels, which take LAPACK's functions from SciPy."""
    from jaxlib.cpu import _lapack  # type: ignore[attr-defined]

    with import_tables():
        _lapack.initialize()
    for name, kernel in _lapack.registrations().items():
        _jax.register_custom_call_target(name, kernel, platform="cpu", api_version=1)
    atexit.register(wait_for_arrays)


@contextlib.contextmanager
def import_tables() -> Iterator[None]:
    """Have SciPy's tables of functions imported without their package.

    jaxlib imports the two modules by name, and with them scipy.linalg, which takes 0.3 seconds as
    it imports 230 modules. Without it they take 0.03. They are taken out of `sys.modules` again
    afterwards, so that an import of scipy.linalg finds the state that it expects.
    """
    found = {} if PACKAGE in sys.modules else find_tables()
    sys.modules.update(found)
    try:
        yield
    finally:
        package = sys.modules.get(PACKAGE)
        for name, module in found.items():
            if package is None:
                del sys.modules[name]
            else:  # another thread has imported it meanwhile
                setattr(package, name.rpartition(".")[2], module)


def find_tables() -> dict[str, ModuleType]:
    """Return those of SciPy's tables that are files in its folder, by their full names."""
    from importlib.util import module_from_spec

    import scipy

    found = {}
    folders = [os.path.join(path, "linalg") for path in scipy.__path__]
    for name in TABLES:
        spec = PathFinder.find_spec(f"{PACKAGE}.{name}", folders)
        if spec is not None and spec.loader is not None:  # else jaxlib imports the package
            found[spec.name] = module_from_spec(spec)
            spec.loader.exec_module(found[spec.name])
    return found


def wait_for_arrays() -> None:
    """At exit, wait for arrays: BLAS ends its threads, and never comes to an end if it has work."""
    for client in clients():
        for x in client.live_arrays() if client.platform == "cpu" else ():
            with contextlib.suppress(RuntimeError):  # of a failed program, and deleted ones
                x.block_until_ready()


def kernel_name(routine: str, dtype: np.dtype) -> str:
    """Return the name of a routine's kernel for a dtype. Names of other kernels stay unchanged."""
    if routine.endswith("_ffi"):
        return routine
    if dtype.kind == "c":
        routine = COMPLEX_NAMES.get(routine, routine)
    return f"lapack_{LETTERS[dtype.name]}{routine}_ffi"


def char_option(letter: str) -> str:
    """A letter, as LAPACK's options are given."""
    return f"{ord(letter)} : ui8"


class KernelCall(NamedTuple):
    """A call of a kernel, which loops over the first `batch` axes of each value.

    `aliases` maps a result to an operand if the result may reuse the operand's buffer.
    """

    hlo: Builder
    operands: Sequence[Value]
    out_avals: Sequence[ShapedArray]
    batch: int
    aliases: dict[int, int]


def call_lapack(
    hlo: Builder,
    routine: str,
    operands: Sequence[Value],
    out_avals: Sequence[ShapedArray],
    batch: int,
    aliases: dict[int, int] | None = None,
    **options: str,
) -> list[Value]:
    """Call a routine. `options` are LAPACK's; the other arguments are KernelCall's.

    Matrices are passed by columns. Arrays are stored by rows, so passing the transpose of a matrix
    is free.
    """
    call = KernelCall(hlo, operands, out_avals, batch, aliases or {})
    if hlo.platform in GPUS:
        return call_solver(call, routine, options)
    name = kernel_name(routine, operands[0].aval.dtype)
    if hlo.platform != "cpu":
        raise NotImplementedError(
            f"{name}: is computed on CPU and GPUs alone; got platform {hlo.platform}."
        )
    register_kernels()
    return call_named(call, name, options)


def call_named(
    call: KernelCall, name: str, options: dict[str, str], by_rows: bool = False
) -> list[Value]:
    """Write the call of a kernel that takes matrices column by column, or row by row."""

    def order(a: ShapedArray) -> list[int]:
        """The axes in memory, the fastest first."""
        axes = [*reversed(range(a.ndim))]
        if a.ndim == call.batch + 2 and not by_rows:
            axes[:2] = axes[1::-1]
        return axes

    return write_kernel_call(
        call.hlo,
        name,
        call.operands,
        call.out_avals,
        ([order(v.aval) for v in call.operands], [*map(order, call.out_avals)]),
        call.aliases,
        "{" + ", ".join(f"{k} = {v}" for k, v in options.items()) + "}",
    )


# --- on a GPU -------------------------------------------------------------------------------

# What the kernel of a routine is called; the routines that are not here have none.
_SOLVERS = {
    "getrf": "cusolver_getrf_ffi", "geqrf": "cusolver_geqrf_ffi", "orgqr": "cusolver_orgqr_ffi",
    "ormqr": "cusolver_ormqr_ffi", "potrf": "cusolver_potrf_ffi", "syevd": "cusolver_syevd_ffi",
    "sytrd": "cusolver_sytrd_ffi", "gesvd": "cusolver_gesvd_ffi", "gesdd": "cusolver_gesvdj_ffi",
    "geqp3": "cuhybrid_geqp3", "geev": "cuhybrid_eig_", "gtsv": "cusparse_gtsv2_ffi",
    "tridiagonal_solve_perturbed_ffi": "cu_tridiagonal_solve_perturbed",
    "lu_pivots_to_permutation": "cu_lu_pivots_to_permutation",
}  # fmt: skip


def call_solver(call: KernelCall, routine: str, options: dict[str, str]) -> list[Value]:
    """Call a routine on a GPU, whose kernels differ in their names and options."""
    hlo, operands, out_avals, *_ = call
    if routine == "gesdd" and max(operands[0].aval.shape[-2:]) > JACOBI_SIZE:
        routine = "gesvd"
    if routine not in _SOLVERS:
        raise NotImplementedError(
            f"{routine}: has no kernel on a GPU; got platform {hlo.platform}. Hint: "
            'with weft.default_device("cpu").'
        )
    solver = _SOLVERS[routine]
    if hlo.platform == "rocm":
        solver = "hip" + solver.removeprefix("cu")
    flag = lambda key, letter: str(options[key] == char_option(letter)).lower()
    if routine in ("potrf", "sytrd", "syevd"):
        method = {"algorithm": "0 : ui8"} if routine == "syevd" else {}
        options = {**method, "lower": flag("uplo", "L")}
    elif routine == "geqp3":
        options = {"magma": '"auto"'}
    elif routine == "geev":
        solver += "comp" if operands[0].aval.dtype.kind == "c" else "real"
        left, right = flag("compute_left", "V"), flag("compute_right", "V")
        options = {"left": left, "magma": '"auto"', "right": right}
    elif routine in ("gesvd", "gesdd"):
        write = call_gesvd if routine == "gesvd" else call_gesvdj
        return write(call, solver, options["mode"])
    elif routine == "gtsv":
        x = call_named(call._replace(out_avals=[out_avals[3]], aliases={0: 3}), solver, {})
        return [*operands[:3], *x, hlo.constant(0, out_avals[4])]
    return call_named(call, solver, options)


# The longest side of matrices whose singular values are found by Jacobi's rotations, which take
# half the time there (512 x 512 on an H200: 19 ms, not 40); JAX's limit.
JACOBI_SIZE = 1024


def call_gesvdj(call: KernelCall, solver: str, mode: str) -> list[Value]:
    """Call Jacobi's kernel, which returns V; for sizes up to 32, all vectors or none."""
    x, s, u, vh, info = call.out_avals
    full = mode != char_option("S") or min(x.shape[-2:]) <= 32
    options = {
        "compute_uv": str(mode != char_option("N")).lower(),
        "full_matrices": str(full).lower(),
    }
    (*batch, m, n), k = x.shape, s.shape[-1]
    left, right = (m, n) if full else (k, k)
    vectors = [ShapedArray((*batch, *shape), x.dtype) for shape in ((m, left), (n, right))]
    call = call._replace(out_avals=[x, s, *vectors, info], aliases={0: 0})
    x, s, *found, info = call_named(call, solver, options)
    lefts, rights = (Expr(call.hlo, y) for y in found)
    lefts = lefts.slice_axis(0, u.shape[-1])
    rights = rights.slice_axis(0, vh.shape[-2]).transpose(
        (*range(len(batch)), len(batch) + 1, len(batch))
    )
    return [x, s, lefts.value, rights.conjugate().value, info]


def call_gesvd(call: KernelCall, solver: str, mode: str) -> list[Value]:
    """The kernel is for matrices no wider than high; of others it takes the transpose."""
    x, s, u, vh, info = call.out_avals
    wide = x.shape[-2] < x.shape[-1]
    vectors = mode != char_option("N")
    options = {
        "compute_uv": str(vectors).lower(),
        "full_matrices": str(mode != char_option("S")).lower(),
        "transposed": str(wide).lower(),
    }
    if not vectors:
        u = vh = ShapedArray((), x.dtype)
    first, second = (vh, u) if wide else (u, vh)
    call = call._replace(out_avals=[x, s, first, second, info], aliases={0: 0})
    outs = call_named(call, solver, options, by_rows=wide)
    return [outs[0], outs[1], outs[3], outs[2], outs[4]] if wide else outs
