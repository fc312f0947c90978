"""`custom_linear_solve` as a primitive: a linear system, with functions that solve it.

The derivative of the solution follows from the system, not from how it was solved. Pytrees and
checks are in api/custom_root.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.control.call import Holder
from weft.control.custom import look_into
from weft.core.aval import typeof
from weft.core.facts import Cost, Runs
from weft.core.primitive import Body, Linear, Zero, mark_moving
from weft.options import config
from weft.passes.dce import dce_jaxpr
from weft.primitives.layout import batched_at_front, instantiate
from weft.primitives.matrices import subtract_tangents
from weft.transforms.batch import batch_jaxpr
from weft.transforms.check import skip_checks
from weft.transforms.jvp import jvp_jaxpr
from weft.xla.lower import lower_jaxpr

PROGRAMS = ("matvec", "vecmat", "solve", "transpose_solve")


class LinearSolve(Holder):
    """The solution x of matvec(x) = b that `solve` finds, then further results of `solve`.

    `vecmat` is the transpose of `matvec`, and `transpose_solve` solves for it; both are None if the
    solution cannot be transposed. The operands are the values that each of the four programs takes
    first, `counts` of them, and then b. With A x = b, A dx = db - dA x. The further results have no
    derivative.
    """

    name = "custom_linear_solve"
    cost = Cost.LIBRARY
    program = "solve"

    def bodies(self, params):
        n, given = 0, {}
        for key, count in zip(PROGRAMS, params["counts"], strict=True):
            given[key], n = range(n, n + count), n + count
        b = range(n, n + len(params["solve"].invars) - len(given["solve"]))
        return [
            Body(params[key], key, Runs.ONCE if key == "solve" else Runs.UNKNOWN, (*given[key], *b))
            for key in ("solve", "matvec", "vecmat", "transpose_solve")
            if params[key] is not None
        ]

    def abstract_eval(self, *avals, solve, **params):
        return solve.out_avals

    def impl(self, *args, **params):
        if config.disable_jit:
            consts, b = split_operands(args, params["counts"])
            return params["solve"](*consts[2], *b)
        return super().impl(*args, **params)

    def lower(self, hlo, *args, solve, counts, **params):
        consts, b = split_operands(args, counts)
        return lower_jaxpr(hlo, solve, [*consts[2], *b])

    def jvp(self, primals, tangents, **params):
        outs = self.apply(*primals, **params)
        consts, b = split_operands(primals, params["counts"])
        const_dots, dots = split_operands(tangents, params["counts"])
        x = outs[: len(b)]
        moved = mark_moving(const_dots[0])
        if True in moved:
            both, out_moved = jvp_jaxpr(params["matvec"], (*moved, *[False] * len(x)))
            wanted = [False] * len(x) + [True] * sum(out_moved)
            derivative, _ = dce_jaxpr(both, wanted, True)
            given = [t for t in const_dots[0] if type(t) is not Zero]
            changes = iter(derivative(*consts[0], *x, *given))
            dots = [
                subtract_tangents(t, next(changes)) if m else t
                for t, m in zip(dots, out_moved, strict=True)
            ]
        if all(type(t) is Zero for t in dots):
            return outs, [Zero(typeof(y).to_tangent()) for y in outs]
        held = [c for each in consts for c in each]
        solved = self.apply(*held, *map(instantiate, dots), **params)[: len(b)]
        return outs, [*solved, *[Zero(typeof(y).to_tangent()) for y in outs[len(b) :]]]

    def transpose(self, cts, *args, **params):
        matvec, vecmat, solve, transpose_solve = (params[name] for name in PROGRAMS)
        if transpose_solve is None:
            raise TypeError(
                "custom_linear_solve: reverse mode needs a solver for the transposed system; got "
                "none. Hint: transpose_solve=..., or symmetric=True."
            )
        counts = params["counts"]
        consts, b = split_operands(args, counts)
        cts = cts[: len(b)]
        held = [None] * sum(counts)
        if all(type(ct) is Zero for ct in cts):
            return [*held, *[Zero(x.aval) if type(x) is Linear else None for x in b]]
        grads = self.apply(
            *[c for i in (1, 0, 3, 2) for c in consts[i]],
            *map(instantiate, cts),
            matvec=vecmat,
            vecmat=matvec,
            solve=transpose_solve,
            transpose_solve=solve,
            counts=tuple(counts[i] for i in (1, 0, 3, 2)),
        )
        return [
            *held,
            *[g if type(x) is Linear else None for g, x in zip(grads[: len(b)], b, strict=True)],
        ]

    def batch(self, axis, args, dims, **params):
        const_dims, b_dims = split_operands(dims, params["counts"])
        n = len(args) - len(b_dims)
        b = [batched_at_front(x, d, axis.size) for x, d in zip(args[n:], b_dims, strict=True)]
        for name, held in zip(PROGRAMS, const_dims, strict=True):
            if params[name] is not None:
                in_dims = (*held, *[0] * len(b))
                params[name] = batch_jaxpr(params[name], axis, in_dims, True)[0]
        outs = self.apply(*args[:n], *b, **params)
        return outs, [0] * len(outs)

    def checked(self, trace, args, params):
        consts, b = split_operands(args, params["counts"])
        look_into(trace, params["solve"], [*consts[2], *b])
        programs = {
            name: skip_checks(params[name]) for name in PROGRAMS if params[name] is not None
        }
        return self.apply(*args, **{**params, **programs})


def split_operands(xs: Sequence[Any], counts: Sequence[int]) -> tuple[list[list], list]:
    """Return the first operands of each program, and the rest."""
    parts, at = [], 0
    for n in counts:
        parts.append(list(xs[at : at + n]))
        at += n
    return parts, list(xs[at:])


linear_solve_p = LinearSolve()
