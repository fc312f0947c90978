"""Calls as texts, evaluated for NumPy and SciPy and for weft, and compared.

In a text `np` is NumPy or weft.numpy, `sp` SciPy or weft.scipy; other names are operands.
`write(f, x, ...)` is the array that a function of NumPy changes, or that weft's gives with
`inplace=False`.
"""

import importlib
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy

import weft
import weft.numpy as jnp
import weft.scipy

PARTS = "cluster.vq fft integrate interpolate linalg ndimage signal special stats"
for _part in PARTS.split():  # SciPy's are imported one by one
    importlib.import_module(f"scipy.{_part}")


def write(fun: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a copy of x that a function of NumPy changed, or the result of weft's function."""
    if isinstance(x, np.ndarray):
        fun(x := x.copy(), *args, **kwargs)
        return x
    return fun(x, *args, inplace=False, **kwargs)


def change(name: str, x: Any, y: Any) -> Any:
    """Return x after an in-place operator, such as `iadd`; NumPy's x is a copy."""
    return getattr(operator, name)(x.copy(), y)


def evaluate(text: str, home: Any, tools: Any, arrays: dict) -> list:
    """Return the leaves of what a call gives."""
    names = {"np": home, "sp": tools, "write": write, "change": change, **arrays}
    with np.errstate(all="ignore"):
        found = eval(text, names)
    return [x for x in weft.tree.leaves(found) if not isinstance(x, str)]


def evaluate_numpy(texts: Iterable[str], arrays: dict) -> dict[str, list]:
    """Return what NumPy and SciPy give for the calls that they take."""
    found = {}
    for text in texts:
        try:
            found[text] = evaluate(text, np, scipy, arrays)
        except Exception:
            continue
    return found


def evaluate_weft(texts: Iterable[str], arrays: dict) -> dict[str, Any]:
    """Return what weft gives for each call, as one program where that can be; or the error."""
    errors: dict[str, Any] = {}
    arrays = {name: jnp.array(x) for name, x in arrays.items()}

    def program(arrays: dict) -> dict:
        outs = {}
        for text in texts:
            try:
                outs[text] = evaluate(text, jnp, weft.scipy, arrays)
            except Exception as error:
                errors[text] = error
        return outs

    found = weft.jit(program)(arrays)
    for text in [*errors]:  # some need values that are known
        try:
            found[text] = evaluate(text, jnp, weft.scipy, arrays)
        except Exception as error:
            found[text] = error
    return found


def differ(found: Any, wanted: list, near: dict, dtypes: bool = True) -> str | None:
    """Return the difference of a call's result, or None.

    `near` has the tolerance of each dtype with inexact values.
    """
    if isinstance(found, Exception):
        return f"{type(found).__name__}: {' '.join(str(found).split())[:200]}"
    if len(found) != len(wanted):
        return f"{len(found)} results for {len(wanted)}"
    for got, want in zip(map(np.asarray, found), map(np.asarray, wanted), strict=True):
        if got.shape != want.shape:
            return f"shape {got.shape} for {want.shape}"
        if dtypes and got.dtype != want.dtype:
            return f"dtype {got.dtype} for {want.dtype}"
        tolerance = max(near.get(got.dtype.name, 0), near.get(want.dtype.name, 0))
        try:
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            return " ".join(str(error).split())[:300]
    return None
