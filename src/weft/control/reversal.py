"""Running a loop backwards in little memory: which of its states are kept, and when.

The state before a step that is reversed is computed again from one of a few that are stored, placed
by the binomial rule. That the loops here are weft's own, and so can be differentiated again, is
loop.py's doing; docs/design/005-while-reverse.md has the reasons and the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import typeof
from weft.primitives.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from weft.primitives.elementwise import add, clamp, div, eq, gt, lt, min, mul, sub
from weft.primitives.layout import convert, fill

SLOTS = 64  # default number of stored states: up to 2,145 steps are repeated twice
INT = np.dtype(np.int32)
FLOAT = np.dtype(np.float32)
ZERO, ONE = INT.type(0), INT.type(1)


class Sweep(NamedTuple):
    """ys after `ys = pull(*x_i, *ys)` for i = count - 1 ... 0, where x_i+1 = advance(*x_i).

    States are in a stack of slots + 1 arrays; `steps[j]` says before which step the jth is, and a
    state on the stack is one that the states after it are computed from. `loop(cond, body, init)`
    runs a loop on flat lists.

    With s slots, at most C(s + t, t) steps are reversed by walking along each at most t times;
    where count <= slots + 1, that is once. Source: Griewank and Walther, Algorithm 799: Revolve
    (ACM TOMS 26, 2000), section 2.
    """

    loop: Callable
    advance: Callable
    pull: Callable
    slots: int

    def __call__(self, count: Any, xs: Sequence[Any], ys: Sequence[Any]) -> list:
        """Walk from the end to the start, beginning with the first state, xs."""
        if not xs:
            undo = lambda i, *ys: [sub(i, ONE), *self.pull(*ys)]
            return self.loop(lambda i, *_: gt(i, ZERO), undo, [count, *ys])[1:]
        n = len(xs)
        steps = fill((self.slots + 1,), 0, INT)
        stack = [
            store(fill((self.slots + 1, *x.shape), 0, x.dtype), x, 0) for x in map(give_shape, xs)
        ]

        def down_and_up(end: Any, top: Any, steps: Any, *rest: Any) -> list:
            top, steps, *stack = self.descend(end, top, steps, rest[:n])
            end, top, *ys = self.ascend(end, top, steps, stack, rest[n:])
            return [end, top, steps, *stack, *ys]

        init = [count, ZERO, steps, *stack, *ys]
        return self.loop(lambda end, *_: gt(end, ZERO), down_and_up, init)[3 + n :]

    def descend(self, end: Any, top: Any, steps: Any, stack: Sequence[Any]) -> list:
        """Store states until the one before step `end` is on top."""
        n = len(stack)
        free = lambda top: sub(INT.type(self.slots), top)

        def further(top: Any, steps: Any, *stack: Any) -> list:
            here = load(steps, top)
            ahead = find_stride(self.loop, sub(end, here), free(top))
            walk = lambda i, *xs: [add(i, ONE), *self.advance(*xs)]
            xs = self.loop(lambda i, *_: lt(i, ahead), walk, [ZERO, *[load(s, top) for s in stack]])
            top = add(top, ONE)
            return [top, store(steps, add(here, ahead), top), *map(store, stack, xs[1:], [top] * n)]

        def record(here: Any, top: Any, steps: Any, *rest: Any) -> list:
            here, top, xs = add(here, ONE), add(top, ONE), self.advance(*rest[:n])
            return [here, top, store(steps, here, top), *xs, *map(store, rest[n:], xs, [top] * n)]

        far = lambda top, steps, *_: gt(sub(end, load(steps, top)), add(free(top), ONE))
        top, steps, *stack = self.loop(far, further, [top, steps, *stack])
        near = [load(steps, top), top, steps, *[load(s, top) for s in stack], *stack]
        _, top, steps, *rest = self.loop(lambda here, *_: lt(add(here, ONE), end), record, near)
        return [top, steps, *rest[n:]]

    def ascend(
        self, end: Any, top: Any, steps: Any, stack: Sequence[Any], ys: Sequence[Any]
    ) -> list:
        """Reverse the steps whose states are on top, one after the other."""

        def undo(end: Any, top: Any, *ys: Any) -> list:
            xs = [load(s, top) for s in stack]
            return [sub(end, ONE), sub(top, ONE), *self.pull(*xs, *ys)]

        reached = lambda end, top, *_: eq(add(load(steps, top), ONE), end)
        return self.loop(reached, undo, [end, top, *ys])


def find_stride(loop: Callable, length: Any, slots: Any) -> Any:
    """Return the distance between stored states, in order to reverse `length` > 1 steps.

    Let t be the smallest sufficient number of walks: reach = C(slots + t, t) >= length. The part to
    the left of the new state has the same slots and may be walked along t - 1 times; the part to
    its right has one slot less and t walks. Floats do not overflow. Any stride in 1 ... length - 1
    is correct, so rounding costs a little work at most.
    """
    slots, length = convert(slots, FLOAT), convert(length, FLOAT)

    def grow(t: Any, reach: Any) -> list:
        t = add(t, FLOAT.type(1))
        return [t, div(mul(reach, add(slots, t)), t)]

    t, reach = loop(
        lambda t, reach: lt(reach, length), grow, [FLOAT.type(1), add(slots, FLOAT.type(1))]
    )
    left = div(mul(reach, t), add(slots, t))
    right = div(mul(left, slots), sub(add(slots, t), FLOAT.type(1)))
    best = clamp(FLOAT.type(1), min(left, sub(length, right)), sub(length, FLOAT.type(1)))
    return convert(add(best, FLOAT.type(0.5)), INT)


def give_shape(x: Any) -> Any:
    """A value that has a shape: a number as a NumPy scalar."""
    return x if hasattr(x, "shape") else typeof(x).dtype.type(x)


def load(stack: Any, i: Any) -> Any:
    """The ith element; the first where i is negative."""
    return dynamic_index_in_dim(stack, i, keepdims=False, allow_negative_indices=False)


def store(stack: Any, x: Any, i: Any) -> Any:
    """The stack with `x` as its ith element."""
    return dynamic_update_index_in_dim(stack, x, i, 0, allow_negative_indices=False)
