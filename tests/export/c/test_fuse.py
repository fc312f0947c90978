"""Loop nests that are one nest: what may be merged, what must not be, and what it saves."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.sanitized import run_sanitized
from weft import export, lax
from weft.export.c.fuse import Fuser, add_up, evaluate
from weft.export.c.index import index_term
from weft.export.c.kinds import KINDS
from weft.export.c.nodes import Assign, Buffer, Let, Load, Role, Store
from weft.export.c.rewrite import KnownElements, Renaming

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def turn(cameras, points):
    """The residuals of points that cameras see: small axes, sums, values that are read twice."""

    def project(camera, point):
        unit = camera[:3] / jnp.sqrt(jnp.sum(camera[:3] ** 2))
        x, y, z = jnp.cross(unit, point) + unit * jnp.dot(unit, point) + camera[3:6]
        return camera[6] * jnp.stack([x / z, y / z])

    places = weft.vmap(lambda c: weft.vmap(lambda p: project(c, p))(points))(cameras)
    return jnp.sum((places - 0.5) ** 2)


def forces(places):
    """The energy of particles: each acts on each other one."""
    gaps = places[:, None] - places[None]
    return jnp.sum(1 / jnp.sqrt(jnp.sum(gaps**2, -1) + 0.1))


def lengths(a, b):
    """Values that another iteration of the outer loop needs, so that its nests stay apart."""
    rows = jnp.sqrt(jnp.sum(a * a, 1))
    table = a / rows[:, None] + rows[::-1, None] * b
    return jnp.sum(table * table[::-1]) + jnp.sum(table[:, ::-1] ** 2 * table)


def normalize(x, w):
    """Normal rows, and a layer of a network on each: sums that a row needs in full."""
    y = (x - jnp.mean(x, -1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-3)
    return jnp.sum(jnp.maximum(y @ w, 0) ** 2)


def recur(x, y):
    """A loop whose steps have nests, which read the carry at other places."""

    def step(carry, row):
        a, b = carry
        a = jnp.roll(a, 1) * row + b
        b = b[::-1] * a - row
        return (a, b), jnp.sum(a * b) + jnp.max(a)

    (a, b), sums = lax.scan(step, (x, y), jnp.stack([x, y, x * y]))
    return jnp.sum(a * b) + jnp.sum(sums)


def walk(x, y):
    """A loop that writes and reads at a place which changes in between, beside nests."""

    def step(state):
        k, x, y = state
        x = x.at[k].set(jnp.sum(x * y))
        z = jnp.tanh(x) * y
        return k + 1, x + z * z[k], jnp.sum(z) * y[::-1] + x[k + 1]

    _, x, y = lax.fori_loop(0, 6, lambda _, s: step(s), (jnp.int32(1), x / 9, y / 9))
    return jnp.sum(x * y)


CASES = {
    "turn": (turn, draw(6, 7) + np.float32([0, 0, 0, 0, 0, 5, 1]), draw(10, 3)),
    "turn_many": (turn, draw(9, 7) + np.float32([0, 0, 0, 0, 0, 5, 1]), draw(19, 3)),
    "forces": (forces, draw(12, 3)),
    "forces_plane": (forces, draw(8, 2)),
    "lengths": (lengths, draw(11, 9), draw(11, 9)),
    "lengths_few": (lengths, draw(4, 16), draw(4, 16)),
    "normalize": (normalize, draw(8, 12), draw(12, 9)),
    "recur": (recur, draw(16), draw(16)),
    "walk": (walk, draw(16), draw(16)),
    "recur_few": (recur, draw(3), draw(3)),
}


def test_values_and_gradients_under_the_sanitizers():
    calls, wants = [], []
    for name, (fun, *args) in CASES.items():
        graded = weft.value_and_grad(lambda *xs, f=fun: f(*xs), argnums=tuple(range(len(args))))
        calls.append((export.to_c(graded, name=name)(*args), tuple(args)))
        wants.append(weft.tree.leaves(weft.jit(graded)(*args)))
    for (program, _), outs, want in zip(calls, run_sanitized(calls), wants, strict=True):
        for got, expected in zip(outs, want, strict=True):
            size = np.abs(np.asarray(expected)).max()
            np.testing.assert_allclose(got, expected, 1e-4, 1e-4 * size, err_msg=program.name)


def test_arrays_between_nests_are_variables():
    fun, *args = CASES["turn"]
    program = export.to_c(weft.value_and_grad(fun))(*args)  # its only calls are in the outer loop
    assert program.report().workspace_bytes < 400  # 4,400 with an array for each value
    assert program.source.count("for (ptrdiff_t") < 20


def test_a_long_loop_with_calls_stays_apart():
    """A compiler vectorizes the loops without calls of libm, which it could not if all were one."""

    def fun(x, y):
        angle = jnp.arctan(x)
        return jnp.sum(angle * y / (1 + angle * angle))

    source = export.to_c(fun)(draw(40), draw(40)).source
    body = source[source.index("atanf(") :]
    assert body.index("}") < body.index(" / ")


def test_a_place_that_changed_is_read_again():
    kind = next(k for k in KINDS.values() if k.name == "f32")
    memory, place = Buffer("b", kind, 9, Role.WORK), index_term("(ptrdiff_t)t5", 0, 8)
    read = lambda name: Let(name, "float", "{0}", [Load(memory, place)])
    block = [Store(memory, place, "t1"), Assign("t5", "t6"), read("t7"),
             Store(memory, place, "t8"), read("t9"),
             Let("t10", "float", "{0} + {1}", ["t9", "t7"])]  # fmt: skip
    fuser = Fuser(str)
    fuser.forward(block, KnownElements(), Renaming({}))
    assert [s.name for s in block if isinstance(s, Let)] == ["t7", "t10"]
    assert block[-1].args == ["t8", "t7"]
    fuser.assigned = {"t1", "t8"}  # a variable that changes does not name an element
    again = [Store(memory, place, "t8"), Assign("t8", "t6"), read("t9")]
    fuser.forward(again, KnownElements(), Renaming({}))
    assert len(again) == 3


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("0 <= 2 - 2", True), ("0 <= 1 - 2", False), ("0 <= 1 - 1 && 1 - 1 < 1", True),
        ("3 * 1 + 2 - 6 == 0", False), ("3 * 2 + 0 - 6 == 0", True), ("i5 < 2", None),
        ("t5", None), ("0 <= (1) / 2", None), ("-1 < 0", True),
    ],
)  # fmt: skip
def test_conditions_of_numbers(condition, value):
    assert evaluate(condition) is value


def test_sums_of_products():
    assert [add_up(t) for t in ("3", "-2 + 5", "2 * 3 - 4 * 2 * 1", " 7 - 7 ")] == [3, 3, -2, 0]
