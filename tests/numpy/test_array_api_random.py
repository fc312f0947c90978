"""Random calls of the array API standard against NumPy: dtypes, shapes and values.

A case is one program of some dozens of calls; `--all` runs thousands of calls.
"""

import pytest

import weft
from tests.numpy.array_api_calls import Draw
from tests.numpy.evaluation import differ, evaluate_numpy, evaluate_weft
from tests.settings import ALL

NEAR = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-10, "complex128": 1e-10}
COUNT = 50


def compare_random_calls(seed):
    """Return the failures of a seed's calls."""
    draw = Draw(seed)
    texts = [draw.call() for _ in range(COUNT)]
    wanted = evaluate_numpy(texts, draw.arrays)
    with weft.config.scope(enable_x64=True):
        found = evaluate_weft(wanted, draw.arrays)
    wrong = {text: differ(found[text], want, NEAR) for text, want in wanted.items()}
    names = lambda text: {n: x for n, x in draw.arrays.items() if n in text}
    return {text: (why, names(text)) for text, why in wrong.items() if why}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100 if ALL else 2))
def test_random_calls(seed):
    wrong = compare_random_calls(seed)
    assert not wrong, "\n".join(map(str, wrong.items()))
