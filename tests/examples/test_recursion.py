"""Recursion: formulas as trees, gradients through calls, a run that reaches the bar."""

import numpy as np
import pytest

from tests.examples.running import check_run, load_example
from weft import grad, tree


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    check_run("recursion", tmp_path, 99)


def test_formulas_are_evaluated_and_have_gradients():
    example, rng = load_example("recursion"), np.random.default_rng(0)
    formula = ("xor", ("not", False), ("and", True, ("or", False, True)))
    assert example.evaluate(formula) is False and example.evaluate(formula[1]) is True
    params = example.start(rng)
    assert example.check_gradient(params, formula) < 0.01
    slope = grad(example.loss)(params, formula, False)
    assert all(bool((g != 0).any()) for g in tree.leaves(slope["xor"]))
    slope = grad(example.loss)(params, ("not", True), False)  # the other operators take no part
    assert not any(bool((g != 0).any()) for g in tree.leaves(slope["xor"]))

    def levels(formula):
        return 0 if isinstance(formula, bool) else 1 + max(map(levels, formula[1:]))

    assert [levels(example.make_formula(rng, depth)) for depth in range(5)] == [0, 1, 2, 3, 4]
