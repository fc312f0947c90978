"""What stax says of layers that cannot be: rates, filters and inputs that do not fit."""

import pytest

from weft import random
from weft.errors import ShapeError
from weft.example_libraries import stax

KEY = random.PRNGKey(0)
WRONG = [
    (lambda: stax.Dropout(1.5), ValueError, r"Dropout: rate must be in \(0, 1\].*; got 1.5"),
    (lambda: stax.Dropout(0.0), ValueError, "the probability to keep an element; got 0.0"),
    (lambda: stax.Dense(3)[0](KEY, ()), ShapeError, "Dense: inputs must have an axis"),
    (
        lambda: stax.Conv(3, (3,)),
        ShapeError,
        r"Conv: filter_shape must have a size for each spatial axis of 'HWIO'; got \(3,\)",
    ),
    (
        lambda: stax.parallel(stax.Dense(3))[0](KEY, [(1, 2), (2, 3)]),
        ShapeError,
        r"one input for each of 1 layers; got shapes \(\(1, 2\), \(2, 3\)\). Hint: serial\(FanOut",
    ),
    (
        lambda: stax.FanInConcat()[0](KEY, [(1, 2), (2,)]),
        ShapeError,
        "FanInConcat: inputs must have as many axes each",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=range(len(WRONG)))
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()
