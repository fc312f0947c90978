"""Check derivative rules: compare forward and reverse mode with finite differences.

Each operation of a program is checked at the values that the program applies it to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.api.grad import jvp, vjp
from weft.api.jit import jit
from weft.control.custom import CustomCall
from weft.core.aval import typeof
from weft.core.jaxpr import Eqn, bodies_of
from weft.core.trace import typed_values
from weft.explain.numerics.recording import COPIES, Recorder, Site, Tape
from weft.explain.numerics.samples import read_tape
from weft.explain.numerics.values import F64, Value, is_followed, plan_operation, widen_value
from weft.explain.origins import NOWHERE, Place

# A rule with a larger relative error counts as wrong. Finite differences in float32 are more
# accurate than this, and the errors of wrong rules are larger.
TOLERANCE = 0.02


class Disagreement(NamedTuple):
    """A derivative rule that disagrees with finite differences of its operation.

    Attributes:
      place: the user's line that applies the operation.
      operation: the primitive, or the name of the function with a custom rule.
      rule: "forward" or "reverse".
      error: the distance between rule and finite differences, relative to the derivative.
    """

    place: Place
    operation: str
    rule: str
    error: float

    def __str__(self) -> str:
        return f"{self.place}: the {self.rule} rule of {self.operation} is off by {self.error:.2g}"


class Checked(NamedTuple):
    """A part of a tape for a checked operation: the errors of its forward and reverse rules."""

    site: Site
    operation: str
    size: int = 2


class Checker(Recorder):
    """A recorder that checks the derivative rules of each operation, at the program's values."""

    def run_equation(
        self, eqn: Eqn, ins: Sequence[Value], tape: Tape, remedies: Sequence, read: Callable
    ) -> list[Value]:
        if isinstance(eqn.primitive, CustomCall):
            call = lambda *xs: eqn.primitive.apply(*xs, **eqn.params)
            self.check(eqn, call, [v.narrow for v in ins], tape, eqn.params["jvp"] is not None)
        return super().run_equation(eqn, ins, tape, remedies, read)

    def run_operation(
        self, eqn: Eqn, ins: Sequence[Value], tape: Tape, remedies: Sequence, read: Callable
    ) -> list[Value]:
        narrow = [v.narrow for v in ins]
        outs = eqn.primitive.apply(*narrow, **eqn.params)
        operation = None if bodies_of(eqn) else plan_operation(eqn)
        if operation is not None and eqn.primitive.elements not in COPIES:
            wide = narrow if operation.paired else [widen_value(Value(x)) for x in narrow]
            self.check(eqn, lambda *xs: operation.run_wide(xs), wide, tape)
        return list(map(Value, outs))

    def check(
        self, eqn: Eqn, call: Callable, xs: Sequence, tape: Tape, has_forward: bool = True
    ) -> None:
        """Add the check of an operation to the tape."""
        moving = [i for i, x in enumerate(xs) if is_followed(typeof(x)) and typeof(x).size]
        if not moving or any(dtypes.is_complex(typeof(x).dtype) for x in xs):
            return

        def fun(*moved: Any) -> list:
            every = list(xs)
            for i, x in zip(moving, moved, strict=True):
                every[i] = x
            return [y for y in call(*every) if is_followed(typeof(y))]

        given = [xs[i] for i in moving]
        name = eqn.params["name"] if isinstance(eqn.primitive, CustomCall) else eqn.primitive.name
        item = Checked(Site(eqn, self.outer, self.depth), name)
        tape.add(item, lambda: measure_rules(fun, given, has_forward))


def measure_rules(fun: Callable, xs: Sequence[Any], has_forward: bool) -> Any:
    """Return the errors of the forward and the reverse rule against finite differences.

    Elements whose forward and backward differences disagree are skipped. This happens at a kink, as
    of a maximum.
    """
    eps = max(float(dtypes.finfo(typeof(x).dtype).eps) for x in xs)
    step = eps ** (1 / 3)
    wave = lambda x, k: jnp.cos(jnp.arange(typeof(x).size) * (k + 0.7) + k).reshape(typeof(x).shape)
    dots = []
    for k, x in enumerate(xs):
        scale = jnp.where(x == 0, 1, jnp.abs(x))
        dots.append((wave(x, k + 1) * scale).astype(x.dtype))
    moved = lambda h: fun(*[x + (h * t).astype(x.dtype) for x, t in zip(xs, dots, strict=True)])
    middle, above, below = fun(*xs), moved(step), moved(-step)
    forward, reverse = jnp.zeros((), F64), jnp.zeros((), F64)
    slopes, weights = [], []
    for y, a, b in zip(middle, above, below, strict=True):
        up, down = (a - y).astype(F64) / step, (y - b).astype(F64) / step
        size = jnp.abs(up) + jnp.abs(down)
        noise = 8 * eps / step * jnp.abs(y).astype(F64)
        fair = (jnp.abs(up - down) <= 0.1 * size + noise) & jnp.isfinite(size)
        slope = jnp.where(fair, (up + down) / 2, 0)
        slopes.append(slope)
        weights.append(jnp.where(fair, jnp.abs(wave(y, 3.3)) * jnp.sign(slope), 0))
    noise = sum(jnp.max(jnp.abs(y).astype(F64), initial=0.0) for y in middle) * eps / step
    top = lambda v: jnp.max(jnp.abs(v), initial=0.0)
    largest = sum(map(top, slopes)) + 4 * noise + jnp.finfo(F64).tiny
    if has_forward:
        pushed = jvp(fun, tuple(xs), tuple(dots))[1]
        parts = zip(pushed, slopes, weights, strict=True)
        off = [jnp.where(w == 0, 0, t.astype(F64) - s) for t, s, w in parts]
        forward = sum(map(top, off)) / largest
    pull = vjp(fun, *xs)[1]
    cts = [w.astype(y.dtype) for w, y in zip(weights, middle, strict=True)]
    grads = pull(cts)
    found = sum(jnp.sum((g * t).astype(F64)) for g, t in zip(grads, dots, strict=True))
    wanted = sum(jnp.sum(w * s) for w, s in zip(weights, slopes, strict=True))
    scale = sum(
        jnp.sum(jnp.abs(w) * (jnp.abs(s) + 4 * noise)) for w, s in zip(weights, slopes, strict=True)
    )
    reverse = jnp.abs(found - wanted) / (scale + jnp.finfo(F64).tiny)
    return jnp.stack([forward, reverse])


def check_gradients(program: Any, values: Sequence[Any]) -> list[Disagreement]:
    """Run a program, and return the rules that disagree with differences, worst first."""
    jaxpr = program.jaxpr
    tape = Tape()

    def fun(*xs: Any) -> Any:
        tape.clear()
        outs = Checker().run_program(jaxpr, list(map(Value, xs)), tape)
        return tape.write(), [v.narrow for v in outs]

    vector = np.asarray(jit(fun)(*typed_values(values, jaxpr.invars))[0])
    worst: dict[tuple[Place, str, str], float] = {}
    for item, rows in read_tape(tape.layout, vector):
        # of all iterations, the largest; NaN if one is NaN
        for rule, error in zip(("forward", "reverse"), rows.max(0), strict=True):
            key = item.site.place, item.operation, rule
            off = np.inf if np.isnan(error) else float(error)
            if off > TOLERANCE and item.site.place is not NOWHERE:
                worst[key] = max(off, worst.get(key, 0.0))
    return sorted((Disagreement(*k, e) for k, e in worst.items()), key=lambda d: -d.error)
