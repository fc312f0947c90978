"""Random programs that write references, and the same programs on values.

A program is a list of statements on two arrays, "a" of shape (3,) and "m" of shape (2, 3): writes,
additions, loops, branches, and calls of functions that take the references or close over them.
`run_program` runs it with references, and `run_on_values` without any.
"""

import random
from typing import Any

import weft
import weft.numpy as jnp
from weft import lax

Statement = tuple
SHAPES = {"a": (3,), "m": (2, 3)}
CALLS = {"jit": weft.jit, "checkpoint": weft.checkpoint, "plain": lambda f: f}


def draw_program(seed: int) -> list[Statement]:
    """Return the statements of a program."""
    return draw_statements(random.Random(seed), 2, False)


def draw_statements(rng: random.Random, depth: int, looped: bool) -> list[Statement]:
    """Return one to three statements, which hold others up to a depth; `looped` within a loop."""
    out: list[Statement] = []
    for _ in range(rng.randint(1, 3)):
        inner = lambda within=looped: draw_statements(rng, depth - 1, within)
        kind = "write" if depth == 0 else rng.choice(("write", "write", "loop", "branch", "call"))
        if kind == "write":
            name = rng.choice(list(SHAPES))
            index = draw_index(rng, name, looped)
            shape = () if len(index) == len(SHAPES[name]) else (3,)
            how = rng.choice(("set", "add", "swap"))
            out.append((how, name, index, draw_expression(rng, 2, shape, looped)))
        elif kind == "loop":
            loop = rng.choice(("fori", "scan", "while"))
            out.append(("loop", loop, rng.randint(0, 3), inner(True)))
        elif kind == "branch":
            out.append(("branch", draw_expression(rng, 1, (), looped), inner(), inner()))
        else:
            out.append(("call", rng.choice(list(CALLS)), rng.random() < 0.5, inner()))
    return out


def draw_index(rng: random.Random, name: str, looped: bool) -> tuple:
    """Return the index of a number or of a row; "i" stands for the turn of the loop."""
    last = rng.choice((0, 1, -1, "i") if looped else (0, 1, -1))
    if name == "a":
        return (last,)
    row = rng.choice((0, 1))
    return (row, last) if rng.random() < 0.5 else (row,)


def draw_expression(rng: random.Random, depth: int, shape: tuple, looped: bool) -> tuple:
    """Return an expression of a shape, or of a number."""
    if depth and rng.random() < 0.7:
        op = rng.choice(("add", "multiply", "sin"))
        count = 1 if op == "sin" else 2
        return (op, *[draw_expression(rng, depth - 1, shape, looped) for _ in range(count)])
    kind = rng.choice(("x", "number", "read", "turn" if looped else "x"))
    if kind == "read":
        name = "m" if shape else rng.choice(list(SHAPES))
        index = (rng.choice((0, 1)),) if shape else draw_index(rng, name, looped)
        return ("read", name, index) if len(index) == len(SHAPES[name]) or shape else ("x", 0)
    return (kind, rng.randrange(3) if kind == "x" else round(rng.uniform(-1, 1), 2))


class Values:
    """Arrays by their names, in place of references."""

    def __init__(self, arrays: dict[str, Any]):
        self.arrays = dict(arrays)

    def read(self, name: str, index: tuple) -> Any:
        return self.arrays[name][index]

    def write(self, how: str, name: str, index: tuple, value: Any) -> None:
        old, at = self.arrays[name], self.arrays[name].at[index]
        self.arrays[name] = at.add(value) if how == "add" else at.set(value)
        if how == "swap":
            self.arrays["a"] = self.arrays["a"].at[0].add(jnp.sum(old[index]))


class References(Values):
    """References by their names."""

    def write(self, how: str, name: str, index: tuple, value: Any) -> None:
        ref = self.arrays[name]
        if how == "add":
            ref[index] += value
        elif how == "set":
            ref[index] = value
        else:
            old = weft.ref.swap(ref, index, jnp.broadcast_to(value, ref[index].shape))
            self.arrays["a"][0] += jnp.sum(old)


def compute(state: Values, expression: tuple, x: Any, turn: Any) -> Any:
    """Return the value of an expression."""
    kind, *rest = expression
    if kind == "x":
        return x[rest[0]]
    if kind == "number":
        return rest[0]
    if kind == "turn":
        return jnp.asarray(turn, jnp.float32)
    if kind == "read":
        return state.read(rest[0], place(rest[1], turn))
    return getattr(jnp, kind)(*[compute(state, e, x, turn) for e in rest])


def place(index: tuple, turn: Any) -> tuple:
    """Return an index with the turn of the loop in place of "i"."""
    return tuple(turn % 3 if n == "i" else n for n in index)


def run_statements(state: Values, statements: list[Statement], x: Any, turn: Any = 0) -> None:
    """Run statements; on values loops are Python's, and both branches are taken."""
    by_value = type(state) is Values
    for kind, *rest in statements:
        if kind == "loop":
            loop, count, body = rest
            run_loop("python" if by_value else loop, count, state, body, x)
        elif kind == "branch":
            chosen = compute(state, rest[0], x, turn) > 0.1
            if by_value:
                both = [Values(state.arrays) for _ in range(2)]
                for one, body in zip(both, rest[1:], strict=True):
                    run_statements(one, body, x, turn)
                yes, no = both[0].arrays, both[1].arrays
                state.arrays = {k: jnp.where(chosen, yes[k], no[k]) for k in yes}
            else:
                first, second = (lambda b=b: run_statements(state, b, x, turn) for b in rest[1:])
                lax.cond(chosen, first, second)
        elif kind == "call":
            name, as_arguments, body = rest
            if by_value:
                run_statements(state, body, x, turn)
            elif as_arguments:
                inner = lambda a, m, b=body: run_statements(
                    References({"a": a, "m": m}), b, x, turn
                )
                CALLS[name](inner)(*state.arrays.values())
            else:
                CALLS[name](lambda b=body: run_statements(state, b, x, turn))()
        else:
            target, index, value = rest
            state.write(kind, target, place(index, turn), compute(state, value, x, turn))


def run_loop(loop: str, count: int, state: Values, body: list[Statement], x: Any) -> None:
    """Run statements `count` times."""
    turn = lambda i: run_statements(state, body, x, i)
    if loop == "python":
        for i in range(count):
            turn(i)
    elif loop == "fori":
        lax.fori_loop(0, count, lambda i, c: (turn(i), c)[1], 0)
    elif loop == "while":
        lax.while_loop(lambda c: c < count, lambda c: (turn(c), c + 1)[1], 0)
    else:
        lax.scan(lambda c, i: (turn(i), (c, None))[1], 0, jnp.arange(count))


def make_function(statements: list[Statement], kind: type[Values]) -> Any:
    """Return a function of x, of shape (3,), that runs a program and sums what it wrote."""

    def function(x: Any) -> Any:
        x = jnp.asarray(x)
        arrays = {"a": x * 2, "m": jnp.outer(x[:2], jnp.array([1.0, 0.5, -1.0]))}
        if kind is References:
            arrays = {k: weft.new_ref(v) for k, v in arrays.items()}
        state = kind(arrays)
        run_statements(state, statements, x)
        a, m = (state.read(name, (...,)) for name in SHAPES)
        return jnp.sum(a * jnp.array([1.0, -2.0, 0.5])) + jnp.sum(m * jnp.arange(1.0, 4.0))

    return function
