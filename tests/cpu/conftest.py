"""Tests of this folder change thresholds: no choice outlives the test that it was made in."""

import pytest

from weft.cpu.forms import STAGED


@pytest.fixture(autouse=True)
def forget_choices():
    STAGED.clear()
    yield
    STAGED.clear()
