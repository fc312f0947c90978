"""Facts of primitives decide what a CPU is given, and their names do not."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.instructions import NAMED
from tests.cpu.prepared import show_prepared
from weft import lax
from weft.core.facts import Elements
from weft.core.primitive import Primitive
from weft.cpu.elements import fills_with_number, find_direction, only_moves
from weft.cpu.opcodes import cheap_instruction, find_instruction
from weft.primitives.tokens import keep_p

X = jnp.ones(1 << 13, jnp.bfloat16)


class Renamed(Primitive):
    """Three times x, under the name of another primitive, which a user may give it."""

    def __init__(self, name):
        self.name = name

    def abstract_eval(self, *xs):
        return [xs[0]]

    def lower(self, hlo, x, *others):
        return hlo.like("multiply", x, hlo.constant(3, x.aval))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_primitive_is_not_taken_for_another_of_its_name(dtype):
    """The kernel of programs has an instruction by each of these names."""
    x = X.astype(dtype)
    for name in NAMED:
        prim = Renamed(name)
        assert find_instruction(prim) is None and cheap_instruction(prim) is None
        for fun in (lambda x: prim.apply(x)[0], lambda x: jnp.abs(prim.apply(x, x)[0])):  # noqa: B023
            assert "weft_program" not in show_prepared(fun, x), name
    both = weft.jit(lambda x: [Renamed(name).apply(x + 1)[0] for name in ("exp", "keep")])(x)
    assert all((np.float32(y) == 6).all() for y in both)


def test_kept_values_are_no_masks():
    y = weft.jit(lambda x: keep_p.apply(x * 2)[0] + x)(X)
    assert (np.float32(y) == 3).all()


def find_equation(fun, *args):
    return weft.make_jaxpr(fun)(*args).jaxpr.eqns[-1]


def test_what_facts_say_of_equations():
    x, n = np.ones((2, 3), np.float32), np.float32(2)
    for fun in (lambda n: jnp.broadcast_to(n, (3,)), lambda n: jnp.reshape(n, (1, 1))):
        assert fills_with_number(find_equation(fun, n))
    for fun in (jnp.square, lax.stop_gradient, lambda n: lax.convert_element_type(n, int)):
        assert not fills_with_number(find_equation(fun, n))
    assert not fills_with_number(find_equation(lambda x: jnp.broadcast_to(x, (4, 2, 3)), x))
    for fun in (
        lambda x: lax.pad(x, 0.0, [(1, 0, 0)] * 2),
        lambda x: x.T,
        lambda x: x.astype(int),
        lambda x: lax.dynamic_update_slice(x, x[:1], (0, 0)),
        lambda x: lax.dynamic_slice(x, (0, 1), (1, 1)),
        lambda x: jnp.concatenate([x, x]),
    ):
        assert only_moves(find_equation(fun, x))
    for fun in (lambda x: x.at[np.array([0, 1])].set(1.0), lambda x: x[np.array([1, 0])], jnp.sin):
        assert not only_moves(find_equation(fun, x))
    assert find_equation(lambda x: x.astype(int), x).primitive.elements is Elements.CONVERTED


def test_directions_are_those_of_numbers():
    x = np.ones(3, np.float32)
    tests = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}
    assert {k: find_direction(find_equation(f, x, x)) for k, f in tests.items()} == {
        k: k for k in tests
    }
    for other in (lax.lt_to_p, lax.add_p):  # the order of sorts is another one
        assert find_direction(find_equation(other.bind, x, x)) == ""
    assert find_direction(None) == ""
