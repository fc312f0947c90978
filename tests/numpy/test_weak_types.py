"""The dtypes of results of mixed operands, and whether they are weak, are those of JAX.

tests/golden/weak_types.json has JAX's (tools/make_weak_types.py). DIFFERENT has the functions with
other results here, and the reason; what JAX refuses is not in the file.
"""

import json
from pathlib import Path

import numpy as np

import weft
import weft.numpy as jnp

FILE = Path(__file__).parents[1] / "golden" / "weak_types.json"
NUMBERS = {"pb": True, "pi": 2, "pf": 0.5}
SIZE = "a size is an integer"
STRONG = "strong here: what it computes with is no number of the user"
KNOWN = "needs values that are known, as the number of the results depends on them"
DIFFERENT = {
    "angle": (1, STRONG),
    "bartlett": (1, SIZE),
    "blackman": (1, SIZE),
    "broadcast_shapes": (1, SIZE),
    "cumulative_prod": (1, "small integers are multiplied in the default dtype"),
    "gradient": (7, STRONG),
    "hamming": (1, SIZE),
    "hanning": (1, SIZE),
    "heaviside": (2, "an array among the operands makes it strong"),
    "iscomplex": (2, "truth values of constants are not weak"),
    "isreal": (2, "truth values of constants are not weak"),
    "kaiser": (2, SIZE),
    "logaddexp2": (1, STRONG),
    "polydiv": (4, "the quotient is weak where the operands are, the remainder is not"),
    "roll": (4, "a shift is an integer"),
    "roots": (3, KNOWN),
    "select": (3, "conditions are truth values"),
    "take": (1, "an index out of bounds of a single element is an error"),
    "unravel_index": (12, "a shape is of integers that are known"),
}


def describe(function, kinds):
    """The types of a call's results, as the file has them."""
    operands = [
        NUMBERS[k]
        if k in NUMBERS
        else weft.ShapeDtypeStruct((3,), np.dtype(k[1:].replace("b", "?")), weak_type=k[0] == "W")
        for k in kinds
    ]
    arrays = [i for i, x in enumerate(operands) if isinstance(x, weft.ShapeDtypeStruct)]

    def call(*given):
        every = list(operands)
        for i, x in zip(arrays, given, strict=True):
            every[i] = x
        return function(*every)

    try:
        leaves = weft.tree.leaves(weft.eval_shape(call, *[operands[i] for i in arrays]))
    except Exception as error:
        return type(error).__name__
    return " ".join(f"{x.dtype.name}{'~' * x.weak_type}" for x in leaves if hasattr(x, "dtype"))


def test_types_of_results_of_mixed_operands():
    wrong = {}
    for row, want in json.loads(FILE.read_text()).items():
        name, *kinds = row.split()
        function = getattr(jnp, name, None)
        if function is not None and describe(function, kinds) != want:
            wrong.setdefault(name, []).append(" ".join(kinds))
    assert {name: len(kinds) for name, kinds in wrong.items()} == {
        name: count for name, (count, _) in DIFFERENT.items()
    }


def test_weak_arrays_of_32_bits_keep_their_dtype_with_enable_x64():
    """Alone or together; an operand of another type decides, as it does without."""
    with weft.config.scope(enable_x64=True):
        f, i = (weft.ShapeDtypeStruct((3,), d, weak_type=True) for d in (np.float32, np.int32))
        for fun in (jnp.sin, jnp.sqrt, jnp.reciprocal, jnp.fabs, lambda x: jnp.add(x, x)):
            assert weft.eval_shape(fun, f).dtype == np.float32
        assert weft.eval_shape(jnp.sin, i).dtype == np.float32
        assert jnp.sin(2).dtype == jnp.rint(np.int8(1)).dtype == np.float64
        assert jnp.floor_divide(True, True).dtype == jnp.power(True, True).dtype == np.int32
