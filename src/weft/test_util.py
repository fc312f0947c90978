"""Checks of derivatives against differences: `check_grads(f, args, order=2)` in a test.

They are for functions of pytrees of real or complex arrays; values that are not floats are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.grad import jvp, vjp
from weft.core.aval import typeof
from weft.pytrees import flatten, tree_map
from weft.util import list_public

__all__ = ["check_grads", "check_jvp", "check_vjp"]
__dir__ = list_public(__name__)

# The error that derivatives of a dtype may have, absolute and relative.
TOLERANCE = {2: 1e-1, 4: 2e-3, 8: 1e-5}


def has_derivative(x: Any) -> bool:
    """Return True if a leaf has a derivative."""
    return dtypes.is_inexact(typeof(x).dtype)


def draw_tangent(rng: np.random.Generator, x: Any) -> Any:
    """A random tangent of a leaf."""
    aval = typeof(x)
    if not has_derivative(x):
        return np.zeros(aval.shape, dtypes.float0)
    out = rng.standard_normal(aval.shape)
    if dtypes.is_complex(aval.dtype):
        out = out + 1j * rng.standard_normal(aval.shape)
    return np.asarray(out).astype(aval.dtype)


def move_leaf(x: Any, t: Any, by: float) -> Any:
    """x + by * t, of a leaf, in float64 until it is rounded once."""
    if not has_derivative(x):
        return x
    wide = np.complex128 if dtypes.is_complex(typeof(x).dtype) else np.float64
    return (np.asarray(x).astype(wide) + by * np.asarray(t).astype(wide)).astype(
        np.asarray(x).dtype
    )


def estimate_derivative(f: Callable, args: tuple, tangents: tuple, eps: float) -> Any:
    """(f(args + eps/2 tangents) - f(args - eps/2 tangents)) / eps, leaf by leaf."""
    high, low = (f(*tree_map(partial(move_leaf, by=s * eps / 2), args, tangents)) for s in (1, -1))
    return tree_map(
        lambda a, b: (np.asarray(a) - np.asarray(b)) / eps if has_derivative(a) else a, high, low
    )


def check_close(got: Any, want: Any, atol: float, rtol: float, message: str) -> None:
    """Raise AssertionError unless two pytrees of arrays are near each other."""
    got_leaves, got_tree = flatten(got)
    want_leaves, want_tree = flatten(want)
    assert got_tree == want_tree, f"{message}: structures differ: {got_tree}, {want_tree}"
    for a, b in zip(got_leaves, want_leaves, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != dtypes.float0:
            wide = np.complex128 if np.iscomplexobj(a) else np.float64
            np.testing.assert_allclose(
                a.astype(wide), b.astype(wide), atol=atol, rtol=rtol, err_msg=message
            )


def inner_product(xs: Any, ys: Any) -> Any:
    """The sum of products of the leaves of two pytrees."""
    pairs = zip(flatten(xs)[0], flatten(ys)[0], strict=True)
    return sum(
        np.sum(np.asarray(x).astype(np.complex128) * np.asarray(y).astype(np.complex128)).real
        for x, y in pairs
        if np.asarray(y).dtype != dtypes.float0
    )


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Raise AssertionError unless a forward derivative agrees with finite differences.

    Args:
      f: the function.
      f_jvp: a function `f_jvp(args, tangents)` that returns (f(*args), its derivative along
        tangents).
      args: the arguments at which to check.
      atol: the absolute tolerance. None chooses it by the dtype.
      rtol: the relative tolerance. None chooses it by the dtype.
      eps: the step of the difference. None chooses it by the dtype.
      err_msg: a text that starts the error message.

    >>> from functools import partial
    >>> from weft import jvp, test_util
    >>> test_util.check_jvp(jnp.sin, partial(jvp, jnp.sin), (1.0,), eps=None)
    """
    tangents = draw_tangents(args := tuple(args), 0)
    out, dot = f_jvp(args, tangents)
    atol, rtol, eps = choose_tolerances(atol, rtol, eps, (args, out))
    check_close(out, f(*args), atol, rtol, f"{err_msg}values of f_jvp and f differ")
    want = estimate_derivative(f, args, tangents, eps)
    check_close(dot, want, atol, rtol, f"{err_msg}f_jvp and the difference of f differ")


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Raise AssertionError unless a reverse derivative agrees with finite differences.

    Args:
      f: a function of pytrees of arrays.
      f_vjp: a function of the arguments of `f`. It returns `f(*args)` and the pullback: the
        function from cotangents of the result to cotangents of the arguments.
      args: the arguments, a sequence.
      atol: the absolute error that is allowed. None chooses it by the dtypes.
      rtol: the relative error that is allowed. None chooses it by the dtypes.
      eps: the step of the differences. None chooses it by the dtypes. The default is 1e-4.
      err_msg: a text in front of the error's message.

    Returns:
      None.

    Raises:
      AssertionError: the values or the derivatives differ.

    >>> from functools import partial
    >>> from weft import test_util, vjp
    >>> test_util.check_vjp(jnp.sin, partial(vjp, jnp.sin), (1.0,), eps=None)
    """
    out, pull = f_vjp(*(args := tuple(args)))
    atol, rtol, eps = choose_tolerances(atol, rtol, eps, (args, out))
    check_close(out, f(*args), atol, rtol, f"{err_msg}values of f_vjp and f differ")
    tangents, ct = draw_tangents((args, out), 0)
    dot = estimate_derivative(f, args, tangents, eps)
    cts = pull(ct)
    message = f"{err_msg}f_vjp and the difference of f differ"
    check_close(inner_product(tangents, cts), inner_product(dot, ct), atol, rtol, message)


def draw_tangents(tree: Any, seed: int = 1) -> Any:
    """Random tangents of the leaves: the same for every value of these types."""
    return tree_map(partial(draw_tangent, np.random.default_rng(seed)), tree)


def find_tolerance(given: Any, tree: Any) -> float | None:
    """Return a tolerance; from a dict by dtype, the largest for the leaves, or None."""
    if not isinstance(given, dict):
        return given
    by_dtype = {np.dtype(d): t for d, t in given.items()}
    found = {typeof(x).dtype: by_dtype.get(typeof(x).dtype) for x in flatten(tree)[0]}
    return max((t for t in found.values() if t is not None), default=None)


def choose_tolerances(
    atol: float | None, rtol: float | None, eps: float | None, tree: Any
) -> tuple[float, float, float]:
    """Tolerances and step, where None is what fits the dtype of the leaves."""
    leaves = [typeof(x).dtype for x in flatten(tree)[0] if has_derivative(x)]
    size = min([dtypes.real_dtype(d).itemsize for d in leaves], default=8)  # of the narrowest
    fitting = TOLERANCE[size]
    atol, rtol = (find_tolerance(t, tree) for t in (atol, rtol))
    step = {2: 1e-1, 4: 3e-3, 8: 1e-4}[size]
    return (
        fitting if atol is None else atol,
        fitting if rtol is None else rtol,
        step if eps is None else eps,
    )


def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Raise AssertionError unless derivatives of f up to `order` agree with differences.

    Args:
      f: a function of arrays or pytrees of them.
      args: where to check.
      order: 1 for first derivatives, 2 for second derivatives too, and so on.
      modes: of "fwd" and "rev", those to check, mixed with each other in higher orders.
      atol, rtol: tolerances, or dicts of them by dtype; None for what fits the dtype.
      eps: the step of the differences; None for what fits the dtype.

    >>> from weft import test_util
    >>> test_util.check_grads(jnp.sin, (1.0,), order=2)
    """
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"check_grads: modes must be of 'fwd' and 'rev'; got {sorted(unknown)}.")

    def check(f: Callable, args: tuple, order: int, path: str) -> None:
        if "fwd" in modes:
            name = f"{path}jvp: "
            check_jvp(f, partial(jvp, f), args, atol, rtol, eps, name)
            if order > 1:
                tangents = draw_tangents(args)
                check(lambda *args: jvp(f, args, tangents)[1], args, order - 1, name)
        if "rev" in modes:
            name = f"{path}vjp: "
            check_vjp(f, partial(vjp, f), args, atol, rtol, eps, name)
            if order > 1:

                def pulled(*args: Any) -> Any:
                    out, pull = vjp(f, *args)
                    return pull(draw_tangents(out))

                check(pulled, args, order - 1, name)

    check(f, tuple(args), order, "")
