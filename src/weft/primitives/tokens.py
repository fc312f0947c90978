"""Tokens: values that order operations, as data that one operation passes to another.

`optimization_barrier((x, token))` orders a value after the operation that made the token. Effects
of a program happen in program order without tokens.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.facts import Elements
from weft.core.form import Form
from weft.core.primitive import Axes, Primitive, Zero
from weft.errors import DtypeError
from weft.primitives.families import Discrete, zero_tangents
from weft.pytrees import flatten, unflatten

TOKEN = ShapedArray((), np.dtype(np.int32))  # nothing is in its value


class CreateToken(Primitive):
    """A token that nothing comes before. Shapes: `i32[]`, without operands."""

    name = "create_token"

    def abstract_eval(self):
        return [TOKEN]

    def lower(self, hlo):
        return [hlo.constant(0, TOKEN)]

    def jvp(self, primals, tangents):
        outs = self.apply()
        return outs, zero_tangents(outs)


class AfterAll(Discrete):
    """A token that comes after those that it is given. Shapes: `i32[] ... -> i32[]`.

    Source: StableHLO, after_all; written as an optimization_barrier, for tokens are values here.
    """

    name = "after_all"

    def abstract_eval(self, *tokens):
        for t in tokens:
            if t.shape or t.dtype != TOKEN.dtype:
                raise DtypeError(
                    f"after_all: operands must be tokens; got {t}. Hint: lax.create_token()."
                )
        return [TOKEN]

    def lower(self, hlo, *tokens):
        if not tokens:
            return [hlo.constant(0, TOKEN)]
        return hlo.op("stablehlo.optimization_barrier", tokens, [TOKEN] * len(tokens))[:1]

    def batch(self, axis, args, dims):
        # the tokens of a mapped axis all come from one place
        pairs = zip(args, dims, strict=True)
        firsts = [x if d is None else x[(slice(None),) * d + (0,)] for x, d in pairs]
        return self.apply(*firsts), [None]


create_token_p, after_all_p = CreateToken(), AfterAll()


def create_token(_: Any = None) -> Any:
    """Return a token: a value that says that something comes after something else.

    Args:
      _: is ignored.

    Returns:
      A token, for `after_all` and `optimization_barrier`.

    >>> x, token = lax.optimization_barrier((jnp.ones(2), lax.create_token()))
    >>> print(x, weft.typeof(lax.after_all(token, lax.create_token())))
    [1. 1.] i32[]
    """
    return create_token_p.apply()[0]


def after_all(*operands: Any) -> Any:
    """Return a token that comes after given tokens; see `create_token`.

    Args:
      *operands: tokens.

    Returns:
      A token.

    >>> token = lax.after_all(lax.create_token(), lax.create_token())
    >>> print(weft.typeof(token))
    i32[]
    """
    return after_all_p.apply(*operands)[0]


# --- the barrier ----------------------------------------------------------------------------

Value = TypeVar("Value")


class OptimizationBarrier(Primitive):
    """Its operands unchanged; the compiler moves nothing across, and keeps them together.

    Source: StableHLO, optimization_barrier.
    """

    name = "optimization_barrier"
    elements = Elements.MOVED
    multiple_results = True

    def abstract_eval(self, *xs):
        return list(xs)

    def label_axes(self, avals, outs, **params):
        rows = [[(k, i) for i in range(a.ndim)] for k, a in enumerate(avals)]
        return Axes(rows, rows)

    def lower(self, hlo, *xs):
        return hlo.op("stablehlo.optimization_barrier", xs, [x.aval for x in xs])

    def element(self, i, *xs):
        return [x[i] for x in xs]

    def jvp(self, primals, tangents):
        outs, moved = self.apply(*primals), [t for t in tangents if not isinstance(t, Zero)]
        dots = iter(self.apply(*moved) if moved else [])
        return outs, [t if isinstance(t, Zero) else next(dots) for t in tangents]

    def transpose(self, cts, *xs):
        kept = iter(self.apply(*[ct for ct in cts if not isinstance(ct, Zero)]))
        return [ct if isinstance(ct, Zero) else next(kept) for ct in cts]

    def batch(self, axis, args, dims):
        return self.apply(*args), list(dims)


class Keep(OptimizationBarrier):
    """Its operands unchanged. A CPU writes them to memory, and computes them nowhere else.

    Operations that come after it read the operands themselves from memory, too.
    """

    name = "keep"
    form = Form.KEEP

    def lower(self, hlo, *xs):
        return list(xs)


optimization_barrier_p, keep_p = OptimizationBarrier(), Keep()


def optimization_barrier(operand: Value, /) -> Value:
    """Return values that the compiler must not move operations across.

    The operations before the barrier are done before those that use its results. Use it to fix an
    order, or to keep the compiler from sharing a value.

    Args:
      operand: an array or a pytree of arrays.

    Returns:
      The same values.

    >>> x, y = lax.optimization_barrier((jnp.ones(2), jnp.zeros(2)))
    >>> print(x)
    [1. 1.]
    """
    leaves, tree = flatten(operand)
    return unflatten(tree, optimization_barrier_p.apply(*leaves)) if leaves else operand
