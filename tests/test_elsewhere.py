"""The table of names of PyTorch: the code that it gives exists, and the hints of keywords."""

import re

import pytest

import weft
import weft.numpy as jnp
from weft import example_libraries, lax, nn, random
from weft.util.elsewhere import ROWS

SPACES = {
    "jnp": jnp, "lax": lax, "nn": nn, "random": random, "weft": weft, "x": jnp.ones(2),
    "example_libraries": example_libraries,
}  # fmt: skip


def test_names_in_the_table_exist():
    for name, code in ROWS.items():
        for space, member in re.findall(r"\b([a-z_]+)\.([A-Za-z_]\w*)", code):
            if space in SPACES:
                assert hasattr(SPACES[space], member), (name, code)


def test_names_of_the_table_are_not_ours():
    every = [n for n in ROWS if hasattr(SPACES["x"], n) or hasattr(nn, n)]
    assert not every


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda x: jnp.mean(x, dim=0), "axis"),
        (lambda x: x.max(axis=0, keepdim=True), "keepdims"),
        (lambda x: weft.jit(lambda x: nn.softmax(x, dim=0))(x), "axis"),
        (lambda x: jnp.var(x, axes=0), "axis"),
    ],
)
def test_a_keyword_of_pytorch(call, meant):
    with pytest.raises(
        TypeError, match=rf"unexpected keyword argument '\w+'\. Hint: {meant}=\.\.\.$"
    ):
        call(jnp.ones((2, 3)))


def test_a_keyword_of_a_users_function_is_left_alone():
    def model(x):
        return x

    with pytest.raises(TypeError, match="'dim'$"):
        weft.jit(lambda x: model(x, dim=0))(1.0)
