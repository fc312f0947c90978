"""The calls of test_calls.py under settings that check for mistakes: weft must have none.

Each public function, operator and expression is called on suitable operands, first without a
setting. Calls that succeed must succeed under every setting. Some settings are about programs,
which are staged and not run; others are about results and transfers, for which the calls run. Known
failures are listed.
"""

import contextlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from tests import test_calls
from weft import config

PROGRAMS = {
    "check_tracer_leaks": lambda: config.scope(check_tracer_leaks=True),
    "enable_checks": lambda: config.scope(enable_checks=True),
    "enable_x64": lambda: config.scope(enable_x64=True),
}
RUNS = {
    "debug_nans": lambda: config.scope(debug_nans=True),
    "transfer_guard": lambda: weft.transfer_guard("disallow"),
}
HOST = (np.ndarray, np.generic, int, float, complex)
# The condition number of a singular matrix is infinite, and its derivative is made of NaN.
NANS = {"numpy.linalg.cond"}


def call(fun: Callable, args: tuple, options: dict) -> Any:
    out = fun(*args, **options)
    made = callable(out) and not isinstance(out, test_calls.TREES)
    return out(test_calls.KEY, (2, 3, 4)) if made else out  # an initializer


def has_nans(x: Any) -> bool:
    numbers = isinstance(x, weft.Array) and getattr(x.dtype, "kind", "") in ("f", "c", "V")
    return numbers and bool(np.isnan(np.asarray(x, np.complex64)).any())


def may_fail(name: str, setting: str, args: tuple, options: dict, out: Any) -> bool:
    """Return True if a call gives NaN as it should, or moves numbers of the caller's."""
    if setting == "debug_nans":
        return name in NANS or any(map(has_nans, weft.tree.leaves((args, out))))
    numbers = any(isinstance(x, HOST) for x in weft.tree.leaves((args, [*options.values()])))
    return numbers or bool(re.search(r"\d", name))  # of an expression


def find_failures(name: str, fun: Callable, args: tuple, options: dict) -> list[str]:
    """Run a call under each setting, and return what went wrong."""
    wrong, out = [], call(fun, args, options)
    for setting, scope in RUNS.items():
        try:
            with scope():
                call(fun, args, options)
        except (FloatingPointError, weft.errors.JaxRuntimeError) as error:
            if not may_fail(name, setting, args, options, out):
                wrong.append(f"{name} {test_calls.show(args)} {options} {setting}: {error}")
    return wrong


@pytest.mark.sample(one_in=80)
@pytest.mark.parametrize("group", test_calls.GROUPS)
def test_whatever_runs_by_default_runs_under_settings(group, monkeypatch, tmp_path):
    wrong, stage = [], test_calls.stage

    def stage_each(fun: Callable, args: tuple, options: dict, lowered: bool = False) -> Any:
        made = stage(fun, args, options, lowered)
        if made.failed or lowered:
            return made
        for setting, scope in PROGRAMS.items():
            with scope():
                found = stage(fun, args, options)
            if found.failed:
                shown = f"{name} {test_calls.show(args)} {options} {setting}"
                wrong.append(f"{shown}: {found.text}")
        with contextlib.suppress(TypeError, ValueError, NotImplementedError):  # may only be staged
            wrong.extend(find_failures(name, fun, args, options))
        return made

    monkeypatch.chdir(tmp_path)  # some of the functions write files
    monkeypatch.setattr(test_calls, "stage", stage_each)
    monkeypatch.setattr("weft.errors.find_expression", lambda: None)
    with warnings.catch_warnings(), config.scope(hints=False):
        warnings.simplefilter("ignore")
        for name, texts in test_calls.GROUPS[group]:  # noqa: B007
            list(texts())
    assert not wrong, "\n".join(wrong)
