"""Captured values of a traced function that change afterwards, under debug_globals."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config
from weft.watch import captures

SCALE = 2.0
TABLE = np.arange(3.0)
UNKNOWN = float("nan")
OPTIONS = {"power": 2}


def helper(x):
    return x * TABLE


def model(x):
    return helper(x) * SCALE ** OPTIONS["power"] + jnp.where(x > 0, 0, UNKNOWN)


class Module:
    def __init__(self):
        self.k = 1.0

    def step(self, x):
        return x * self.k


@pytest.fixture(autouse=True)
def checked():
    with config.scope(debug_globals=True):
        yield


def test_a_global_that_changes_is_an_error_until_it_is_back(monkeypatch):
    f = weft.jit(model)
    before = f(1.0)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with pytest.raises(RuntimeError, match=r"jit: model must find .* SCALE = 3.0 where it was 2.0"):
        f(1.0)
    f(jnp.ones(3))  # traced now
    monkeypatch.undo()
    np.testing.assert_array_equal(f(1.0), before)
    with pytest.raises(RuntimeError, match="SCALE = 2.0 where it was 3.0"):
        f(jnp.ones(3))


@pytest.mark.parametrize(
    "change", [lambda: TABLE.__setitem__(0, 9), lambda: OPTIONS.update(power=3)]
)
def test_what_is_changed_in_place(change):
    f = weft.jit(model)
    f(1.0)
    change()
    try:
        with pytest.raises(RuntimeError, match="where it was"):
            f(1.0)
    finally:
        TABLE[0], OPTIONS["power"] = 0, 2
    f(1.0)


def test_closures_and_methods():
    rate = 0.1
    f, module = weft.jit(lambda x: x * rate), Module()
    g = weft.jit(module.step)
    f(1.0), g(1.0)
    rate, module.k = 0.2, 5.0
    with pytest.raises(RuntimeError, match="rate = 0.2 where it was 0.1"):
        f(1.0)
    with pytest.raises(RuntimeError, match="self.k = 5.0 where it was 1.0"):
        g(1.0)


def test_attributes_of_static_arguments():
    module = Module()
    by_place = weft.jit(Module.step, static_argnums=0)
    by_name = weft.jit(lambda x, cfg: x * cfg.k, static_argnames="cfg")
    by_place(module, 1.0), by_name(1.0, cfg=module)
    module.k = 5.0
    with pytest.raises(RuntimeError, match="self.k = 5.0 where it was 1.0"):
        by_place(module, 1.0)
    with pytest.raises(RuntimeError, match="cfg.k = 5.0 where it was 1.0"):
        by_name(1.0, cfg=module)


def test_is_not_looked_at_otherwise(monkeypatch):
    f = weft.jit(model)
    f(1.0)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with config.scope(debug_globals=False):
        f(1.0)


NAN, ROWS = float("nan"), np.array([1.0, np.nan])


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, 1.0, False),
        (1, True, False),
        (NAN, -NAN, True),
        (NAN, 1.0, False),
        (ROWS, ROWS.copy(), True),
        (ROWS, ROWS + 1, False),
        (ROWS, ROWS[:1], False),
        (np.array(["a"]), np.array(["a"]), True),
        (np.float32(NAN), np.float32(NAN), True),
        ([ROWS, 2], [ROWS.copy(), 3], True),  # arrays inside: not looked into
    ],
)
def test_values_that_are_the_same(old, new, same):
    assert captures.is_same(old, new) is same


def test_the_message_and_a_variable_without_a_value():
    def f(x):
        return x * rate if x.ndim == 0 else later

    g = weft.jit(f)
    rate = 0.5
    g(1.0)
    rate = 0.25
    with pytest.raises(RuntimeError) as info:
        g(1.0)
    assert str(info.value) == (
        "jit: f must find what it was traced with; got rate = 0.25 where it was 0.5, which is in "
        "the program. Hint: pass rate as an argument."
    )
    if rate:
        return
    later = 1
