"""What computes an equation is chosen once for programs that are alike."""

import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import show_prepared
from weft import nn
from weft.cpu import rewriting
from weft.cpu.forms import STAGED

X = jnp.ones((8, 8))


def loss(x, w):
    for _ in range(2):
        x = jnp.tanh(x @ w + 1)
    return (x**2).sum()


PROGRAMS = {
    "products": lambda x: x @ x + jnp.sin(x),
    "gradient": lambda x: weft.grad(loss, (0, 1))(x[:4], x),
    "softmax": lambda x: nn.softmax(x[:4] @ x) @ x,
    "sorted": lambda x: jnp.sort(x, axis=0).sum(0) + jnp.cumsum(x, axis=1)[0],
}


@pytest.fixture
def staged(monkeypatch):
    """The names of the operations whose replacement is staged."""
    names, stage = [], rewriting.stage_replacement

    def note(fun, atoms, name):
        names.append(name)
        return stage(fun, atoms, name)

    monkeypatch.setattr("weft.cpu.forms.stage_replacement", note)
    monkeypatch.setattr("weft.cpu.rewriting.stage_replacement", note)
    return names


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_second_program_of_a_kind_stages_nothing(name, staged):
    prepare = lambda: show_prepared(lambda x: PROGRAMS[name](x), X)
    STAGED.clear()
    first = prepare()
    assert staged
    staged.clear()
    assert prepare() == first
    assert not staged


def test_equal_operations_on_what_is_computed_otherwise_are_told_apart():
    plain = lambda x, y: (x + 1) @ (y + 1)
    turned = lambda x, y: (x + 1).T @ (y + 1)
    for _ in range(3):  # in any order, and from the memo
        for fun in (plain, turned):
            new = weft.jit(lambda x, y, fun=fun: fun(x, y))
            x, y = jnp.arange(64.0).reshape(8, 8), X
            assert (new(x, y) == fun(x, y)).all()
