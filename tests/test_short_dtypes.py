"""Public functions of operands of 4 and 8 bits, against the same functions of wide operands.

Each function of GROUPS is staged on operands of a few kinds until a call works for a short dtype
and for int32 or float32. The calls of a group then are one program, which is compiled for both
dtypes and under vmap. XLA packs dtypes of 4 bits, so that a wrong width shows as wrong neighbours,
or ends the process. `pytest --all` runs all groups; a sample is part of the suite.
"""

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import dtypes, lax
from weft.options import config

DTYPES = "int4 uint4 float4_e2m1fn float8_e4m3fn float8_e5m2".split()  # noqa: SIM905
MODULES = {"numpy": jnp, "lax": lax}
# Files, texts, uninitialized arrays, and functions that take functions only.
LEFT_OUT = """
save savez savez_compressed load frombuffer fromfile fromstring array_repr array_str array2string
empty empty_like from_dlpack block_until_ready infeed outfeed
""".split()  # noqa: SIM905
# Results that depend on the width of the dtype: bits, values for places out of bounds, edges of
# bins and steps that are rounded to it.
OF_A_WIDTH = """
clz population_count bitwise_count shift_right_logical bitcast_convert_type invert bitwise_not not_
bitwise_invert nextafter spacing frexp finfo iinfo take_along_axis unpackbits geomspace logspace
histogram2d histogramdd histogram_bin_edges histogram view
""".split()  # noqa: SIM905
REFUSALS = TypeError, ValueError, IndexError, AttributeError, NameError, NotImplementedError
SIZE = 12  # functions in a group
NAMES = [
    (m, n)
    for m, module in MODULES.items()
    for n in sorted(module.__all__)
    if n not in (*LEFT_OUT, *OF_A_WIDTH)
    if callable(getattr(module, n)) and not inspect.isclass(getattr(module, n))
]
GROUPS = {f"{NAMES[i][1]}-{i}": NAMES[i : i + SIZE] for i in range(0, len(NAMES), SIZE)}


def choose_kinds(draw: Callable) -> list[tuple]:
    """Return operands of some kinds: arrays of `draw(*shape)`, and numbers."""
    v, m, s, c = draw(7), draw(3, 5), draw(3, 3), draw(2, 3, 4)
    flags, places = np.arange(7) % 2 > 0, np.array([2, 0, 1])
    return [
        (v,), (m,), (c,), (s,), (v, draw(7)), (s, draw(3, 3)), (v, v, draw(7)), (v, 2),
        (m, (0, 1)), (m, (5, 3)), (m, 1, 0), (m, (1, 2)), ([v, draw(7)],), (v, places),
        (m, places, 1), (flags, v, draw(7)), ("ij,jk", s, s), (v, 1, 1), (v, (0,)), (c, (2, 0, 1)),
        ((v, v), 0), (s, places[:, None], 1), (v, 0, 2), (m, (1, 1), (2, 4)),
        (m, draw(2, 2), (1, 2)), (draw(1, 2, 8), draw(3, 2, 3), (1,), "VALID"), (v, (7, 1)),
        (v, draw(), ((1, 2, 1),)),
    ]  # fmt: skip


class Call(NamedTuple):
    """A call as a function of its arrays, which are there in the short and in the wide dtype."""

    name: str
    fun: Callable
    short: list
    wide: list


def make_call(name: str, fun: Callable, short: tuple, wide: tuple) -> Call:
    leaves, tree = weft.tree.flatten(short)
    places = [i for i, x in enumerate(leaves) if isinstance(x, weft.Array)]

    def call(arrays: list) -> list:
        given = dict(zip(places, arrays, strict=True))
        args = weft.tree.unflatten(tree, [given.get(i, x) for i, x in enumerate(leaves)])
        return [y for y in weft.tree.leaves(fun(*args)) if isinstance(y, weft.Array)]

    others = weft.tree.leaves(wide)
    return Call(name, call, [leaves[i] for i in places], [others[i] for i in places])


def find_call(name: str, fun: Callable, short: list, wide: list) -> Call | None:
    """Return the first call that is staged for both dtypes."""
    for few, many in zip(short, wide, strict=True):
        call = make_call(name, fun, few, many)
        try:
            if all(weft.eval_shape(call.fun, xs) for xs in (call.short, call.wide)):
                return call
        except REFUSALS:
            continue
    return None


def widen(x: Any, dtype: np.dtype) -> np.ndarray:
    """Return a result as NumPy's wide numbers, after rounding to `dtype` if that is short."""
    x = np.asarray(x)
    if dtypes.is_complex(x.dtype) or x.dtype == bool or dtypes.is_bool(dtype):
        return x
    with np.errstate(all="ignore"):
        return x.astype(dtype).astype(np.float64)


def stack_copies(x: weft.Array) -> weft.Array:
    """Return an array, its reversal, and the array again, made by NumPy: nothing is compiled."""
    there = np.asarray(x)
    return jnp.asarray(np.stack([there, np.flip(there), there]), x.dtype)


@pytest.mark.sample(one_in=40)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", GROUPS)
def test_functions_of_short_dtypes(group, dtype):
    short, rng = jnp.dtype(dtype), np.random.default_rng(0)
    inexact = dtypes.is_inexact(short)
    whole = [0, 1, 2, 3, 4] if dtype[0] == "u" else [-2, -1, 0, 1, 2, 3, 4]
    numbers = [-2, -1, 0, 0.5, 1, 1.5, 3] if inexact else whole
    wide = choose_kinds(lambda *s: jnp.asarray(rng.choice(numbers, s), "f4" if inexact else "i4"))
    lower = lambda x: jnp.asarray(np.asarray(x).astype(short)) if isinstance(x, weft.Array) else x
    with warnings.catch_warnings(), config.scope(hints=False):
        warnings.simplefilter("ignore")
        both = weft.tree.map(lower, wide), wide
        found = [find_call(n, getattr(MODULES[m], n), *both) for m, n in GROUPS[group]]
        calls = [c for c in found if c is not None]
        program = lambda arrays: [c.fun(xs) for c, xs in zip(calls, arrays, strict=True)]
        given = [c.short for c in calls]
        outs = weft.jit(program)(given)
        wants = weft.jit(program)([c.wide for c in calls])
        copies = weft.tree.map(stack_copies, given)
        mapped = weft.jit(weft.vmap(program))(copies)
    tolerance = 2 * float(jnp.finfo(short).eps) if inexact else 1e-5
    for call, *results in zip(calls, outs, wants, mapped, strict=True):
        for y, want, each in zip(*results, strict=True):
            options = {"err_msg": call.name, "rtol": tolerance, "atol": tolerance}
            np.testing.assert_allclose(widen(y, y.dtype), widen(want, y.dtype), **options)
            for k in (0, 2):
                np.testing.assert_allclose(widen(each[k], y.dtype), widen(y, y.dtype), **options)
