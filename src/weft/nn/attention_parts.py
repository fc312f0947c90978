"""Attention as primitives that have a kernel on CPUs: the means, their tangents and cotangents.

cpu/attention.py has the calls of the kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from weft.api.grad import vjp
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.primitive import Primitive, cotangents_of, mark_moving, tangents_of
from weft.primitives.constant import stage_whole
from weft.primitives.layout import batched_at_front, instantiate, reshape
from weft.transforms.jvp import jvp
from weft.util import select_masked
from weft.xla.lower import lower_jaxpr

FAR = 1 << 24  # more positions than any array has


def find_span(causal: bool, window: tuple[int, int] | None) -> tuple[int, int]:
    """Return the number of keys that count before a query's position, and after it."""
    left, right = (FAR, FAR) if window is None else window
    return min(left, FAR), min(right, 0 if causal else FAR)


class AttentionPart(Primitive):
    """A family: axis 0 of all operands and results is a batch; `plain` computes it by operations.

    Shapes: q [b, t, n, h], k and v [b, s, n / groups, h]; logs of sums of weights [b, t, n].
    Dtypes: float32. Derivatives are those of `plain`. `has_kernel` is True if there is a kernel.
    """

    cost = Cost.CONTRACTION
    form = Form.ATTENTION
    multiple_results = True
    has_kernel = False
    find_span = staticmethod(find_span)

    def __init__(self, plain: Callable):
        self.plain = plain

    def lower(self, hlo, *xs, **params):
        avals = [x.aval for x in xs]
        return lower_jaxpr(hlo, stage_whole(functools.partial(self.plain, **params), avals), xs)

    def jvp(self, primals, tangents, **params):
        return jvp(functools.partial(self.plain, **params), primals, tangents)

    def batch(self, axis, args, dims, **params):
        xs = [batched_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        size = typeof(xs[0]).shape[1]
        merge = lambda x: reshape(x, (axis.size * size, *typeof(x).shape[2:]))
        outs = self.apply(*map(merge, xs), **params)
        split = [reshape(y, (axis.size, size, *typeof(y).shape[1:])) for y in outs]
        return split, [0] * len(outs)


class Attention(AttentionPart):
    """out[b, t, n] = the mean of v[b, :, n], weights exp(q k scale); and the logs of their sums.

    Source: Dao and others, "FlashAttention" (2022).
    """

    name = "attention"
    has_kernel = True

    def __init__(self, plain):
        super().__init__(plain)
        self.tangent = AttentionTangent(self.move)
        self.tangent.grad = AttentionGrad(self.pull)

    def abstract_eval(self, q, k, v, **params):
        return [ShapedArray(shape, q.dtype) for shape in (q.shape, q.shape[:3])]

    def jvp(self, primals, tangents, **params):
        outs, moved = self.apply(*primals, **params), mark_moving(tangents)
        given = *primals, *outs, *select_masked(tangents, moved)
        return outs, self.tangent.apply(*given, moved=moved, **params)

    def move(self, q, k, v, out, logs, *dots, moved, **params):
        tangents = tangents_of((q, k, v), dots, moved)
        moves = super().jvp((q, k, v), tangents, **params, logs=logs)[1]
        mean = instantiate(moves[1])
        return [instantiate(moves[0]) - mean[..., None] * out, mean]

    def pull(self, q, k, v, out, logs, ct, ct_logs, *, moved, **params):
        _, pullback = vjp(lambda *xs: self.plain(*xs, **params), q, k, v)
        return select_masked(pullback([ct, ct_logs]), moved)


class AttentionTangent(AttentionPart):
    """Tangents of attention's results, given tangents of the `moved` operands among q, k and v."""

    name = "attention_tangent"

    def abstract_eval(self, q, k, v, out, logs, *dots, **params):
        return [out, logs]

    def transpose(self, cts, *args, moved, **params):
        grads = self.grad.apply(*args[:5], *map(instantiate, cts), moved=moved, **params)
        return cotangents_of(args, grads, [True] * len(grads))


class AttentionGrad(AttentionPart):
    """Cotangents of the `moved` operands among q, k and v, given the results' cotangents."""

    name = "attention_grad"
    has_kernel = True

    def abstract_eval(self, q, k, v, *rest, moved, **params):
        return [ShapedArray(x.shape, x.dtype) for x in select_masked((q, k, v), moved)]
