"""Shardings of values as text and pictures; the pictures are JAX 0.10.2's."""

import textwrap

import numpy as np
import pytest

import weft
import weft.debug.layout
from weft import debug
from weft.errors import JaxRuntimeError
from weft.sharding import Mesh, NamedSharding, SingleDeviceSharding
from weft.sharding import PartitionSpec as P

D = weft.devices()
MESH = Mesh(np.array(D).reshape(4, 2), ("x", "y"))
A = np.arange(32, dtype=np.float32).reshape(8, 4)
BLOCKS = weft.device_put(A, NamedSharding(MESH, P("x", "y")))
TURNED = NamedSharding(MESH, P("y", "x"))


def told(fun, *args):
    """Return the shardings that a function, called twice, passes to its second argument."""
    found = []
    fun = fun(found.append)
    fun(*args)
    fun(*args)
    return found


def test_what_the_compiler_chose_is_told_once():
    def turn(tell):
        def f(x):
            y = x.T * 2
            debug.inspect_array_sharding({"y": y}, callback=tell)
            return y.sum()

        return f

    assert told(lambda tell: weft.jit(turn(tell)), BLOCKS) == [TURNED]
    assert told(lambda tell: weft.jit(weft.grad(turn(tell))), BLOCKS) == [TURNED]
    assert told(lambda tell: weft.jit(turn(tell)), A) == [SingleDeviceSharding(D[0])]
    assert told(turn, BLOCKS) == [TURNED] * 2
    scanned = weft.device_put(np.stack([A, A]), NamedSharding(MESH, P(None, "x", "y")))

    def scan(tell):
        return weft.jit(lambda x: weft.lax.map(turn(tell), x))

    assert told(scan, scanned) == [TURNED]


def test_a_program_that_tells_is_compiled_anew():
    inner = lambda x, tell: debug.inspect_array_sharding(x, callback=tell)
    for _ in range(2):  # the second one would be on disk, where nothing is told
        found = []
        weft.jit(lambda x, f=found: inner(x + 1, f.append))(BLOCKS)
        assert found == [BLOCKS.sharding]


def test_an_error_in_the_callback():
    def fail(sharding):
        raise KeyError("no")

    with pytest.raises(JaxRuntimeError, match="Error calling inspect_sharding"):
        weft.jit(lambda x: debug.inspect_array_sharding(x, callback=fail))(BLOCKS)


DRAWINGS = {
    "blocks": (
        (8, 4),
        P("x", "y"),
        {},
        """
        ┌───────┬───────┐
        │ CPU 0 │ CPU 1 │
        ├───────┼───────┤
        │ CPU 2 │ CPU 3 │
        ├───────┼───────┤
        │ CPU 4 │ CPU 5 │
        ├───────┼───────┤
        │ CPU 6 │ CPU 7 │
        └───────┴───────┘
        """,
    ),
    "rows": (
        (8, 4),
        P("x"),
        {},
        """
        ┌──────────┐
        │ CPU 0,1  │
        ├──────────┤
        │ CPU 2,3  │
        ├──────────┤
        │ CPU 4,5  │
        ├──────────┤
        │ CPU 6,7  │
        └──────────┘
        """,
    ),
    "whole": (
        (8, 4),
        P(),
        {},
        """
        ┌───────────────────┐
        │                   │
        │                   │
        │                   │
        │                   │
        │CPU 0,1,2,3,4,5,6,7│
        │                   │
        │                   │
        │                   │
        │                   │
        └───────────────────┘
        """,
    ),
    "square": (
        (8, 8),
        P("y", "x"),
        {},
        """
        ┌───────┬───────┬───────┬───────┐
        │       │       │       │       │
        │ CPU 0 │ CPU 2 │ CPU 4 │ CPU 6 │
        │       │       │       │       │
        │       │       │       │       │
        ├───────┼───────┼───────┼───────┤
        │       │       │       │       │
        │ CPU 1 │ CPU 3 │ CPU 5 │ CPU 7 │
        │       │       │       │       │
        │       │       │       │       │
        └───────┴───────┴───────┴───────┘
        """,
    ),
    "line": (
        (4,),
        P("y"),
        {},
        """
        ┌───────────┬───────────┐
        │CPU 0,2,4,6│CPU 1,3,5,7│
        └───────────┴───────────┘
        """,
    ),
    "double": (
        (8, 4),
        P(None, "y"),
        {"scale": 0.5},
        """
        ┌───────────┬───────────┐
        │           │           │
        │CPU 0,2,4,6│CPU 1,3,5,7│
        │           │           │
        │           │           │
        └───────────┴───────────┘
        """,
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings(name, capsys):
    shape, spec, settings, text = DRAWINGS[name]
    want = textwrap.dedent(text).strip() + "\n"
    debug.visualize_sharding(shape, NamedSharding(MESH, spec), **settings)
    assert capsys.readouterr().out == want
    x = weft.device_put(np.zeros(shape), NamedSharding(MESH, spec))
    debug.visualize_array_sharding(x, **settings)
    assert capsys.readouterr().out == want


def test_drawn_while_compiling(capsys):
    weft.jit(lambda x: (debug.visualize_array_sharding(x), x)[1])(BLOCKS)
    assert capsys.readouterr().out == textwrap.dedent(DRAWINGS["blocks"][3]).lstrip()


def test_colors_are_for_terminals(capsys, monkeypatch):
    monkeypatch.setattr(weft.debug.layout, "on_terminal", lambda: True)
    s = NamedSharding(Mesh(D[:2], "x"), P("x"))
    debug.visualize_sharding((8,), s, color_map=lambda x: (x, 0.0, 1.0, 1.0))
    out = capsys.readouterr().out
    assert "\x1b[30;48;2;0;0;255m CPU 0 \x1b[0m" in out
    assert "\x1b[30;48;2;128;0;255m CPU 1 \x1b[0m" in out
    debug.visualize_sharding((8,), s)
    assert "\x1b[30;48;2;141;211;199m CPU 0 " in capsys.readouterr().out
    debug.visualize_sharding((8,), s, use_color=False)
    assert "\x1b" not in capsys.readouterr().out


def test_what_cannot_be_drawn():
    for shape in ((), (2, 2, 2)):
        with pytest.raises(ValueError, match="an array of one or two axes"):
            debug.visualize_sharding(shape, NamedSharding(MESH, P()))


def test_terms_of_a_sum_are_drawn(capsys):
    mesh = weft.make_mesh((4, 2), ("X", "Y"))
    x = weft.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("X", "Y")))
    terms = weft.lax.dot(x, x.T, out_sharding=P("X", None, unreduced={"Y"}))
    weft.debug.visualize_array_sharding(terms)
    assert [line.strip("│ ") for line in capsys.readouterr().out.split("\n")[1::2]] == [
        "CPU 0+1", "CPU 2+3", "CPU 4+5", "CPU 6+7", "",
    ]  # fmt: skip
    told = []
    weft.jit(lambda x: weft.debug.inspect_array_sharding(x * 2, callback=told.append))(x)
    assert told == [NamedSharding(mesh, P("X", "Y"))]
    assert "<td>unreduced</td><td>Y</td>" in terms.sharding._repr_html_()
    assert "f32[8@X,8]{U:Y}" in terms._repr_html_()
    assert "8 devices, P(" in NamedSharding(mesh.abstract_mesh, P("X"))._repr_html_()
