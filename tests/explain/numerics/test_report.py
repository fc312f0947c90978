"""Figures of the report whose truth is known, the page, and two reports compared."""

import pickle
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import ShapeError

F32 = np.float32
numerics = weft.explain.numerics


def cancels(x):
    y = x + 1000.0
    return y - 1000.0


def test_figures_of_a_cancellation():
    x = np.array([0.1234567, 0.5], F32)
    found = numerics(cancels)(x)
    one, two = found.lines
    assert one.place.text == "y = x + 1000.0"
    y = x + F32(1000)
    added = np.abs(y.astype(float) - (x.astype(float) + 1000)) / np.spacing(F32(1000))
    assert one.added[1] == pytest.approx(added.max())
    assert two.added == (0, 0)
    errors = np.abs((y - F32(1000)).astype(float) - x) / np.spacing(x)
    assert two.passed[1] == pytest.approx(errors.max())
    assert two.worst[0] == (int(errors.argmax()),)
    assert two.digits == pytest.approx(np.log10(2000 / 0.1234567), abs=0.1)
    assert one.overflow == pytest.approx(np.log10(np.finfo(F32).max / 1000.5), abs=0.01)
    assert one.largest == 1000.5
    assert found.results[0].digits == pytest.approx(-np.log10(errors.max() * 2**-23), abs=0.1)


def test_sums_whose_order_matters():
    x = np.array([1e6, 1.5, -1e6, 0.25], F32)
    ((place, digits),) = numerics(lambda x: jnp.sum(x))(x).sums
    assert place.text.startswith("((place, digits),)")
    assert digits == pytest.approx(np.log10(2e6 / 1.75), abs=0.1)


def test_a_gradient_has_lines_of_the_reverse_pass():
    found = numerics(weft.grad(lambda x: jnp.sin(x) * x))(F32(0.5))
    assert {line.backward for line in found.lines} == {False, True}
    assert "(backward)" in str(found)


def test_hidden_nan_is_said():
    def fun(x):
        root = jnp.sqrt(x)
        return jnp.where(x > 0, root, 0.0)

    (finding,) = numerics(fun)(np.array([-1.0, 4.0], F32)).findings
    assert finding.kind == "hidden"
    assert finding.place.text == "root = jnp.sqrt(x)"
    assert "jnp.where(ok" in finding.remedy


KNOWN = np.array([1, np.nan, 2], F32)

# A function of x and y, an element of x, and how the finding begins; "" if there is none.
GIVEN = {
    "sum": (lambda x, y: jnp.sum(x["a"] * 2) + y, np.nan, "argument `x['a']`"),
    "identity": (lambda x, y: x["a"], np.nan, "argument `x['a']`"),
    "infinity": (lambda x, y: x["a"] + y, np.inf, "argument `x['a']`"),
    "NaN of an infinity": (lambda x, y: x["a"] - x["a"], np.inf, "argument `x['a']`"),
    "closed over": (lambda x, y: jnp.asarray(KNOWN) * y, 0.0, "a value that the function closes"),
    "hidden": (lambda x, y: jnp.nansum(x["a"]) + y, np.nan, ""),
    "not read": (lambda x, y: y * 2, np.nan, ""),
    "without": (lambda x, y: x["a"] * y, 0.0, ""),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, "float32") for name in GIVEN] + [("sum", "bfloat16"), ("sum", "complex64")],
)
def test_operands_that_have_nan_already_are_named(name, dtype):
    fun, value, said = GIVEN[name]
    x = jnp.asarray(np.array([1, 2, value, 3])).astype(dtype)
    texts = [f.text for f in numerics(fun)({"a": x}, F32(1)).findings]
    already = [t for t in texts if "already" in t]
    assert len(already) == bool(said)
    if said:
        assert already[0].startswith(said)
        where = (
            ": 1 of 3 elements, the first at [1]"
            if "closes" in said
            else "4 elements, the first at [2]"
        )
        assert already[0].endswith(where)


def test_the_page_has_the_source_and_the_findings(tmp_path):
    found = numerics(cancels)(np.array([0.1234567], F32))
    found.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "return y - 1000.0" in page
    assert re.search(r"color-mix.*title=.*cancels", page)
    assert page.startswith("<!doctype html>")
    assert "<iframe" in found._repr_html_()
    assert repr(found) == str(found)


def test_diff_says_where_two_runs_part():
    def fun(x, scale):
        a = x * 2
        b = a * scale
        return b + 1

    follow = numerics(fun)
    before, after = follow(F32(3), F32(1.1)), follow(F32(3), F32(1.2))
    change = numerics.diff(before, pickle.loads(pickle.dumps(after)))
    assert change.first.text == "b = a * scale"
    assert len(change.lines) == 2
    assert change.results[0][1] > 1e5
    assert "first line that differs" in str(change)
    assert not numerics.diff(before, before).lines
    assert "No line differs" in str(numerics.diff(before, before))


def test_diff_of_two_versions_says_which_findings_are_gone():
    x = np.arange(9, dtype=F32) * F32(1.1) + F32(3000)
    before = numerics(lambda x: jnp.mean(x * x) - jnp.mean(x) ** 2)(x)
    after = numerics(lambda x: jnp.mean((x - jnp.mean(x)) ** 2))(x)
    assert "gone" in str(numerics.diff(before, after))


def test_diff_refuses_results_of_other_shapes():
    one, two = numerics(jnp.sin)(jnp.ones(3)), numerics(jnp.sin)(jnp.ones(2))
    with pytest.raises(ShapeError, match=r"numerics.diff: both reports .*; got \(3,\) and \(2,\)"):
        numerics.diff(one, two)
    with pytest.raises(TypeError, match=r"numerics.diff: must compare two reports .*; got a int"):
        numerics.diff(one, 3)


def test_a_line_of_one_report_differs_by_nothing():
    one = numerics(lambda x: jnp.sin(x))(jnp.ones(3))
    two = numerics(lambda x: jnp.cos(x))(jnp.ones(3))
    (table,) = [t for t in numerics.diff(one, two).tables if t.title == "Lines"]
    assert [row[0] for row in table.rows] == [""] * len(table.rows)


def test_places_in_a_notebook(monkeypatch):
    """A cell is named as IPython names it."""
    compiler = SimpleNamespace(
        format_code_name=lambda name: ("Cell", "In[6]") if name == "/tmp/cell.py" else None
    )
    shell = SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    names: dict = {}
    exec(compile("def fun(x):\n    return x - 1.0", "/tmp/cell.py", "exec"), names)
    (line,) = numerics(names["fun"])(F32(0.5)).lines
    assert str(line.place) == "Cell In[6], line 2"


def test_advice_on_16_bits():
    def fun(x):
        small = x * 1e-6
        large = small * 1e12
        return jnp.sum(large) + jnp.sum(x)

    found = numerics(fun, tolerance=1e-2)(np.linspace(1, 2, 8, dtype=F32))
    by_line = {a.place.text: a for a in found.advice}
    assert by_line["small = x * 1e-6"].errors["float16"] > 0.01
    assert by_line["large = small * 1e12"].errors["float16"] == np.inf
    assert by_line["large = small * 1e12"].dtype == "bfloat16"
    assert "may run in" in str(found)
    strict = numerics(fun, tolerance=1e-9)(np.linspace(1, 2, 8, dtype=F32))
    assert not any(a.dtype for a in strict.advice if a.errors["bfloat16"] > 1e-9)


def test_advice_goes_into_loops():
    def fun(x):
        return lax.fori_loop(0, 50, lambda i, v: v + 1e-3, x)

    (advice,) = numerics(fun, tolerance=1e-3)(F32(1)).advice
    assert advice.dtype == ""
    assert advice.errors["bfloat16"] == pytest.approx(0.05 / 1.05, rel=0.05)


@weft.custom_jvp
def wrong_forward(x):
    return jnp.sin(x)


wrong_forward.defjvp(lambda xs, ts: (jnp.sin(xs[0]), 0.9 * jnp.cos(xs[0]) * ts[0]))


@weft.custom_vjp
def wrong_reverse(x):
    return x * x


wrong_reverse.defvjp(lambda x: (x * x, x), lambda x, g: (x * g,))


@weft.custom_vjp
def right(x):
    return jnp.exp(x)


right.defvjp(lambda x: (jnp.exp(x), jnp.exp(x)), lambda y, g: (y * g,))


def test_rules_that_disagree_with_differences_are_named():
    def fun(x):
        a = wrong_forward(x)
        b = jnp.maximum(a, 0) + right(x)
        step = lambda c, v: (c + wrong_reverse(v), None)
        return jnp.linalg.norm(b) + lax.scan(step, 0.0, x)[0]

    found = numerics(fun, gradients=True)(np.linspace(-1, 1, 6, dtype=F32)).gradients
    said = {(d.place.text, d.operation, d.rule) for d in found}
    assert said == {
        ("a = wrong_forward(x)", "wrong_forward", "forward"),
        ("a = wrong_forward(x)", "wrong_forward", "reverse"),
        ("step = lambda c, v: (c + wrong_reverse(v), None)", "wrong_reverse", "reverse"),
    }
    assert found[0].error > 0.05


def test_right_rules_agree():
    def fun(x):
        y = jnp.where(x > 0, jnp.log1p(jnp.abs(x)), x**3)
        return jnp.sum(jnp.cumsum(y) @ jnp.ones((6, 2))) + jnp.max(jnp.sort(y))

    found = numerics(fun, gradients=True)(np.array([0, -1, 2, 0.5, 3, 1], F32))
    assert not found.gradients
    assert "agree in each operation" in str(found)
