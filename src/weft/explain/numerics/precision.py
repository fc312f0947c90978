"""Find the lines that could run in 16 bits.

Each line is tried with its operands and results rounded to a 16-bit dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes, lax
from weft.api.jit import jit
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, bodies_of
from weft.core.trace import typed_values
from weft.explain.numerics.recording import COPIES, Recorder, Tape
from weft.explain.numerics.values import Value, is_followed
from weft.explain.origins import NOWHERE, Place, find_place

FORMATS = {"bfloat16": (8, 7), "float16": (5, 10)}  # bits of exponent and significand


class Advice(NamedTuple):
    """Advice on running a line in 16 bits.

    Attributes:
      place: the user's line.
      errors: for each 16-bit dtype, the relative change of the results if only this line runs in
        that dtype.
      dtype: the advised dtype; "" for none. The tolerance holds if all lines follow the advice.
    """

    place: Place
    errors: dict[str, float]
    dtype: str


class Rounder(Recorder):
    """Stages a program that rounds some lines to 16 bits.

    `modes` is an input of the program. It holds the mode of each line in `places`: the number of
    a dtype in FORMATS, counted from 1, or 0 for no rounding.
    """

    def __init__(self, modes: Any, places: list[Place]):
        super().__init__()
        self.modes, self.places = modes, places

    def run_operation(
        self, eqn: Eqn, ins: Sequence[Value], tape: Tape, remedies: Sequence, read: Callable
    ) -> list[Value]:
        narrow = [v.narrow for v in ins]
        place = find_place([eqn, *self.outer])
        outs = [v.aval for v in eqn.outvars]
        rounds = any(map(is_rounded, outs)) and not bodies_of(eqn) and place is not NOWHERE
        if not rounds or eqn.primitive.elements in COPIES:
            return list(map(Value, eqn.primitive.apply(*narrow, **eqn.params)))
        if place not in self.places:
            self.places.append(place)
        mode = self.modes[self.places.index(place)]
        narrow = [round_by_mode(x, mode) for x in narrow]
        found = eqn.primitive.apply(*narrow, **eqn.params)
        return [Value(round_by_mode(y, mode)) for y in found]


def is_rounded(aval: Any) -> bool:
    """Return True if values of a type are floats of more than 16 bits."""
    return type(aval) is ShapedArray and dtypes.is_float(aval.dtype) and aval.dtype.itemsize > 2


def round_by_mode(x: Any, mode: Any) -> Any:
    """Return an array rounded to the dtype of a mode.

    The mode is the number of the dtype in FORMATS, counted from 1, or 0 for no rounding.
    """
    if not is_rounded(typeof(x)):
        return x
    rounded = x
    for number, bits in enumerate(FORMATS.values(), 1):
        rounded = jnp.where(mode == number, lax.reduce_precision(x, *bits), rounded)
    return rounded


def advise(program: Any, values: Sequence[Any], tolerance: float) -> list[Advice]:
    """Return the advice for each line, for a tolerance on the change of results."""
    jaxpr = program.jaxpr
    places: list[Place] = []
    size = count_equations(jaxpr) + 1

    def fun(modes: Any, *xs: Any) -> list:
        places.clear()
        outs = Rounder(modes, places).run_program(jaxpr, list(map(Value, xs)), Tape())
        return [v.narrow for v in outs if is_followed(typeof(v.narrow))]

    jitted, values = jit(fun), typed_values(values, jaxpr.invars)

    def run(modes: dict[Place, int]) -> list[np.ndarray]:
        vector = np.zeros(size, np.int32)
        for place, mode in modes.items():
            vector[places.index(place)] = mode
        return [np.asarray(y) for y in jitted(jnp.asarray(vector), *values)]

    base = run({})
    change = lambda modes: measure_change(run(modes), base)
    errors = {p: {name: change({p: n}) for n, name in enumerate(FORMATS, 1)} for p in places}
    tried = [
        (e, p, n) for p in places for n, e in enumerate(errors[p].values(), 1) if e <= tolerance
    ]
    best: dict[Place, tuple[float, int]] = {}
    for e, p, n in tried:
        if p not in best or e < best[p][0]:
            best[p] = e, n
    ranked = sorted(best, key=lambda p: best[p][0])
    low, most = 0, len(ranked)
    while low < most:  # bisect: the most lines, smallest errors first, within the tolerance
        middle = (low + most + 1) // 2
        if change({p: best[p][1] for p in ranked[:middle]}) <= tolerance:
            low = middle
        else:
            most = middle - 1
    names = ["", *FORMATS]
    chosen = {p: names[best[p][1]] for p in ranked[:low]}
    return [Advice(p, errors[p], chosen.get(p, "")) for p in places]


def count_equations(jaxpr: Any) -> int:
    """Return the number of equations of a program, including nested programs."""
    inner = [b.jaxpr for eqn in jaxpr.eqns for b in bodies_of(eqn) if b.jaxpr is not None]
    return len(jaxpr.eqns) + sum(map(count_equations, inner))


def measure_change(outs: Sequence[np.ndarray], base: Sequence[np.ndarray]) -> float:
    """Return the largest change of a result relative to its largest element."""
    worst = 0.0
    for y, x in zip(outs, base, strict=True):
        y, x = (np.asarray(v, np.complex128) for v in (y, x))
        same = (y == x) | (np.isnan(y) & np.isnan(x))
        if same.all():
            continue
        with np.errstate(all="ignore"):
            scale = np.abs(x[np.isfinite(x)]).max(initial=0.0)
            off = np.abs(np.where(same, 0, y - x)).max() / scale if scale else np.inf
        worst = max(worst, float(np.nan_to_num(off, nan=np.inf, posinf=np.inf)))
    return worst
