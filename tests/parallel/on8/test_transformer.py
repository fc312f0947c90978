"""Communication between devices in a step of a transformer with explicit axes.

It is read from the compiled program, for the layouts of bench/explicit.py: operations and bytes are
equal to those of the version that is written by hand with shard_map.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import P, lax, reshard

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))

import explicit
from cases_devices import step_of, transformer
from cases_jax import Package

# collectives, and the bytes of their results: `python bench/explicit.py jax 2` with JAX 0.10.2
IN_JAX = {"data": (1, 98308), "tensor": (7, 57344), "both": (8, 63492), "sequence": (16, 86024)}
PACKAGE = Package("weft")


@pytest.fixture(scope="module")
def alone():
    """The step of one device."""
    args = explicit.Layout(PACKAGE, "data").arguments(2)
    step = weft.jit(step_of(PACKAGE, transformer(PACKAGE, weft.numpy.einsum)))
    return step(*weft.device_put(args, weft.devices()[0]))


@pytest.mark.parametrize("name", explicit.LAYOUTS)
def test_collectives_are_those_of_the_version_by_hand(name, alone):
    layout = explicit.Layout(PACKAGE, name)
    with weft.set_mesh(layout.mesh):
        args = layout.arguments(2)
        step, by_hand = (
            f.lower(*args).compile() for f in (layout.by_types(), layout.by_shard_map(2))
        )
        updated, loss = step(*args)
    kinds, size = explicit.count_collectives(step.as_text())
    kinds_by_hand, size_by_hand = explicit.count_collectives(by_hand.as_text())
    assert kinds == kinds_by_hand and size <= IN_JAX[name][1]
    # over two axes, the mean is summed along one and then, among gradients, along the other
    assert size == size_by_hand + 4 * (name == "sequence")
    assert name == "sequence" or sum(kinds.values()) == IN_JAX[name][0]
    np.testing.assert_allclose(loss, alone[1], rtol=1e-5)
    for old, new, expected in zip(
        *map(weft.tree.leaves, (args[0], updated, alone[0])), strict=True
    ):
        assert weft.typeof(new) is weft.typeof(old)
        np.testing.assert_allclose(new, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("split", "terms", "to"),
    [
        (P("x", "y"), P("x", None, unreduced={"y"}), P("x", "y")),
        (P("x", "y"), P("x", None, unreduced={"y"}), P(("x", "y"), None)),
        (P(None, ("y", "x")), P(unreduced={"x", "y"}), P(None, ("y", "x"))),
    ],
)
def test_a_sum_that_is_split_is_scattered(split, terms, to):
    mesh = weft.make_mesh((2, 4), ("x", "y"))
    a = np.arange(64, dtype=np.float32).reshape(8, 8) / 8
    with weft.set_mesh(mesh):
        b = weft.device_put(a, split)
        c = weft.device_put(a, P(split[1]))
        f = weft.jit(lambda b, c: reshard(lax.dot(b, c, out_sharding=terms), to))
        text = f.lower(b, c).compile().as_text()
        assert len(re.findall(r"reduce-scatter\(", text)) == 1 and "all-reduce(" not in text
        for out in (f(b, c), reshard(lax.dot(b, c, out_sharding=terms), to)):
            assert out.sharding.spec == to
            np.testing.assert_allclose(out, a @ a, rtol=1e-6)
