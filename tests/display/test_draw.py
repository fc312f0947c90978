"""`draw`: well-formed SVG, boxes that do not overlap, edges downward; and the layout by itself."""

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.core.toys import make, sin
from weft import lax
from weft.display.layers import GAP_X, Node, arrange_nodes, spread_row
from weft.jaxpr import draw

SVG = "{http://www.w3.org/2000/svg}"


def nested(x, y):
    x = weft.jit(lambda a: jnp.sin(a) + y)(x)
    x = lax.cond(x.sum() < 3.0, lambda a: a * 2, lambda a: jnp.sin(a) - 1, x)
    return lax.scan(lambda c, t: (c * t, c.sum()), x, jnp.arange(3.0))


def test_a_drawing(tmp_path):
    closed = weft.make_jaxpr(nested)(jnp.ones(3), 2.0)
    text = draw(closed, tmp_path / "a.svg")
    assert text._repr_svg_() == str(text)  # for notebooks
    assert (tmp_path / "a.svg").read_text() == text
    root = ET.fromstring(text)
    kinds = [r.get("class") for r in root.iter(f"{SVG}rect")]
    assert kinds.count("program") == 5  # of jit, two branches, scan, and all
    assert kinds.count("equation") == 15
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert " ".join(texts) == (
        "a f32[3] b f32[] jit name=<lambda> c: f32[3] jaxpr d f32[] e f32[3] sin f: f32[3] "
        "convert_element_type g: f32[] add h: f32[3] h reduce_sum axes=(0,) i: f32[] lt 3.0 "
        "j: bool[] convert_element_type k: i32[] cond l: f32[3] branches[0] m f32[3] sin n: f32[3] "
        "sub 1.0 o: f32[3] o branches[1] p f32[3] mul 2.0 q: f32[3] q iota dimension=0 r: f32[3] "
        "scan length=3 num_carry=1 s: f32[3], t: f32[3] jaxpr u f32[3] v f32[] mul w: f32[3] "
        "reduce_sum axes=(0,) x: f32[] w x s t"
    )
    titles = [t.text for t in root.iter(f"{SVG}title")]
    assert any("sin" in t and "test_draw.py:" in t for t in titles)
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("width")) <= width + 1
        assert float(rect.get("height")) <= height + 1
    assert all(re.fullmatch(r"M[\d.,-]+(C[\d., -]+)+", p.get("d")) for p in root.iter(f"{SVG}path"))


def test_small_programs_and_odd_names():
    for closed in (weft.make_jaxpr(lambda: ())(), make(lambda: 1.0), make(lambda: (1.0, 2))):
        ET.fromstring(draw(closed))
    program = weft.make_jaxpr(lambda x: weft.debug.print("<&> {}", x))(1.0)
    assert "&lt;&amp;&gt;" in draw(program)
    assert "..." in draw(program, max_chars=8)
    assert sin


@pytest.mark.parametrize("count", [1, 7, 60])
def test_boxes_do_not_overlap_and_edges_go_down(count, rng):
    nodes = [Node(*rng.uniform(10, 90, 2)) for _ in range(count)]
    pairs = {(i, j) for j in range(1, count) for i in rng.integers(0, j, 2)}
    edges = [(nodes[i], nodes[j]) for i, j in sorted(pairs)]
    paths, width, height = arrange_nodes(nodes, edges)
    for a, b in itertools.combinations(nodes, 2):
        apart_x = abs(a.x - b.x) >= (a.width + b.width) / 2 + GAP_X - 1e-6
        apart_y = a.y + a.height <= b.y or b.y + b.height <= a.y
        assert apart_x or apart_y
    for n in nodes:
        assert n.x - n.width / 2 >= -1e-6
        assert n.x + n.width / 2 <= width + 1e-6
        assert n.y + n.height <= height + 1e-6
    for (a, b), path in zip(edges, paths, strict=True):
        assert path[0] == (a.x, a.y + a.height)
        assert path[-1] == (b.x, b.y)
        assert all(p[1] <= q[1] for p, q in itertools.pairwise(path))
        for x, y in path[1:-1]:  # no point of it is in a box
            inside = [n for n in nodes if abs(x - n.x) < n.width / 2 and n.y < y < n.y + n.height]
            assert not inside


def test_nodes_stand_by_their_neighbours(rng):
    """Sweeps go down and up in turn; the sum of lengths across is more where one goes wrong."""
    nodes = [Node(20, 10) for _ in range(40)]
    pairs = {(i, j) for j in range(1, 40) for i in rng.integers(max(0, j - 9), j, 2)}
    edges = [(nodes[i], nodes[j]) for i, j in sorted(pairs)]
    _, width, _ = arrange_nodes(nodes, edges)
    assert [round(width), round(sum(abs(a.x - b.x) for a, b in edges))] == [246, 2993]


def test_places_are_the_nearest_in_mean(rng):
    for _ in range(4):
        row = [Node(float(w), 1.0) for w in rng.uniform(1, 9, 5)]
        wish = list(rng.uniform(-30, 30, 5))
        spread_row(row, wish)
        cost = sum((n.x - w) ** 2 for n, w in zip(row, wish, strict=True))
        least = [(a.width + b.width) / 2 + GAP_X for a, b in itertools.pairwise(row)]
        best = sorted_least_squares(wish, least)
        np.testing.assert_allclose(cost, best, rtol=1e-5)


def sorted_least_squares(wish, least):
    """Return the least sum of squares with at least those distances, by quadratic programming."""
    from scipy.optimize import minimize

    limits = [
        {"type": "ineq", "fun": lambda x, i=i, d=d: x[i + 1] - x[i] - d}
        for i, d in enumerate(least)
    ]
    start = np.cumsum([0, *least]) + wish[0]
    return minimize(lambda x: ((x - wish) ** 2).sum(), start, constraints=limits, tol=1e-12).fun
