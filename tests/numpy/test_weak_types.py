"""The dtypes of results of mixed operands, and their weak types, are equal to JAX's.

tests/golden/weak_types.json has JAX's (tools/make_weak_types.py), with 32-bit and 64-bit types. The
tables here have the calls with other results, by difference and reason.
"""

import collections
import json
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as jnp

FILE = Path(__file__).parents[1] / "golden" / "weak_types.json"
JAX = json.loads(FILE.read_text())
NUMBERS = {"pb": True, "pi": 2, "pf": 0.5}
HOMES = {"numpy": jnp, "lax": weft.lax, "nn": weft.nn, "scipy.special": weft.scipy.special}
# ruff: noqa: SIM905
# fmt: off
# Rows with other results than JAX's, with 32-bit and with 64-bit types, and the reason.
KEEPS = "a lone weak array keeps its dtype"
FLOATS = "integers and truth values become the default float, or int, which is not weak"
BESIDE_WEAK = "a weak array of 32 bits beside a number has the default dtype"
WEAK = "weak operands alone have a weak result"
TRUTH = "truth values beside a number have the default dtype"
DIFFERENT = {
    "numpy.broadcast_shapes": (1, 1, "a size is an integer"),
    "lax.dot": (2, 2, "a weak operand yields to the other one"),
    "numpy.angle": (1, 1, "a Python float alone is weak, as in other functions"),
    "numpy.cumulative_prod": (1, 2, "small integers are multiplied in the default dtype"),
    "numpy.digitize": (0, 11, "indices have the default dtype"),
    "numpy.iscomplex": (2, 2, "truth values of constants are not weak"),
    "numpy.isreal": (2, 2, "truth values of constants are not weak"),
    "numpy.median": (0, 2, KEEPS),
    "numpy.nanmedian": (0, 2, KEEPS),
    "numpy.polyint": (0, 3, "a constant that is not given decides nothing"),
    "numpy.pow": (0, 1, "a number beside truth values is of the default dtype"),
    "numpy.power": (0, 1, "a number beside truth values is of the default dtype"),
    "numpy.searchsorted": (0, 6, "indices have the default dtype"),
    "nn.celu": (7, 7, f"{FLOATS}; {KEEPS}"),
    "nn.elu": (7, 7, f"{FLOATS}; {KEEPS}"),
    "nn.gelu": (5, 7, "a Python number is weak, as in other activations"),
    "nn.hard_sigmoid": (3, 3, FLOATS),
    "nn.hard_silu": (3, 3, FLOATS),
    "nn.hard_swish": (3, 3, FLOATS),
    "nn.hard_tanh": (2, 3, FLOATS),
    "nn.leaky_relu": (12, 10, "integers become the default float, whatever the slope is"),
    "nn.log1mexp": (0, 2, BESIDE_WEAK),
    "nn.log_sigmoid": (0, 1, BESIDE_WEAK),
    "nn.mish": (2, 3, FLOATS),
    "nn.relu": (2, 3, FLOATS),
    "nn.relu6": (3, 3, FLOATS),
    "nn.selu": (3, 5, f"{FLOATS}; {KEEPS}"),
    "nn.soft_sign": (2, 3, FLOATS),
    "nn.softplus": (2, 3, FLOATS),
    "nn.sparse_plus": (3, 5, f"{FLOATS}; {KEEPS}"),
    "nn.sparse_sigmoid": (3, 3, FLOATS),
    "nn.squareplus": (4, 5, FLOATS),
    "scipy.special.entr": (0, 2, BESIDE_WEAK),
    "scipy.special.kl_div": (5, 4, WEAK),
    "scipy.special.loggamma": (0, 2, KEEPS),
    "scipy.special.logit": (2, 4, WEAK),
    "scipy.special.multigammaln": (0, 1, TRUTH),
    "scipy.special.owens_t": (2, 5, "a Python number or truth value yields to the other operand"),
    "scipy.special.rel_entr": (5, 4, WEAK),
}
# What JAX takes and weft refuses.
AXIS = "an axis, a size or a dtype is no share of one"
REFUSED = {
    **dict.fromkeys(
        [f"numpy.{name}" for name in "bartlett blackman hamming hanning".split()],
        (1, 1, "the length of a window is an integer"),
    ),
    "numpy.kaiser": (2, 2, "the length of a window is an integer"),
    "numpy.float6_e2m3fn": (3, 3, "XLA has no arrays of six bits on CPUs"),
    "numpy.float6_e3m2fn": (3, 3, "XLA has no arrays of six bits on CPUs"),
    "nn.dot_product_attention": (1, 1, "weights of integers are no integers"),
    "numpy.insert": (1, 1, "a place must be within the array, as in NumPy"),
    "numpy.roots": (3, 3, "coefficients 0 in front have to be known"),
    "lax.broadcast_shapes": (2, 2, "a shape is a sequence"),
    "lax.dynamic_index_in_dim": (1, 1, AXIS),
    "lax.full_like": (4, 4, "an array is no dtype, and a share no shape"),
    "lax.index_in_dim": (1, 1, AXIS),
    "lax.reshape": (2, 2, "a shape has as many elements as the array"),
    "lax.cumlogsumexp": (2, 3, "exponentials of integers are no integers"),
    "numpy.roll": (4, 5, "a shift is an integer"),
    "numpy.select": (5, 6, "conditions are truth values"),
    "numpy.take": (1, 1, "truth values are no indices"),
    "numpy.unravel_index": (12, 12, "a shape is of integers that are known"),
}
# What weft takes and JAX refuses.
BESIDE = "a Python number takes the dtype of the other operand"
NUMBER = "a number is a polynomial"
TAKEN = {
    **dict.fromkeys(
        [f"lax.{name}" for name in "add div eq ge gt le lt max min mul ne rem sub".split()],
        (3, 3, BESIDE),
    ),
    **dict.fromkeys(
        [
            f"lax.{name}"
            for name in "bitwise_and bitwise_or bitwise_xor mulhi shift_left "
            "shift_right_arithmetic shift_right_logical select_n clamp".split()
        ],
        (1, 1, BESIDE),
    ),
    "lax.pow": (2, 2, BESIDE),
    "lax.select": (3, 3, BESIDE),
    **dict.fromkeys(
        [f"numpy.{name}" for name in "polyadd polydiv polymul polysub".split()], (8, 8, NUMBER)
    ),
    "numpy.polyder": (4, 4, NUMBER),
    "numpy.polyint": (4, 4, NUMBER),
    "numpy.dot": (1, 1, BESIDE),
    "numpy.quantile": (7, 6, "shares of integers are floats"),
    "numpy.nanquantile": (7, 6, "shares of integers are floats"),
    "lax.collapse": (1, 1, "a range of no axes makes one, and may start behind all"),
    "numpy.isin": (7, 7, "whether elements are unique only saves work"),
    **dict.fromkeys(
        [f"scipy.special.{name}" for name in "log_ndtr ndtr ndtri spence".split()],
        (6, 6, "integers become floats, and float16 is computed in float32"),
    ),
    **dict.fromkeys(["nn.sigmoid", "nn.silu", "nn.swish"], (5, 6, "integers become floats")),
    **dict.fromkeys(["nn.log_softmax", "nn.softmax"], (1, 1, "truth values become floats")),
    **dict.fromkeys(
        "nn.log1mexp nn.log_sigmoid scipy.special.log_softmax scipy.special.softmax".split(),
        (2, 2, "truth values become floats"),
    ),
    "nn.one_hot": (1, 1, "truth values are 0 and 1"),
    "numpy.vander": (1, 1, "truth values are multiplied as integers, as in NumPy"),
}
# fmt: on


def describe(function, kinds):
    """The types of a call's results, as the file has them; "-" where it is refused."""
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
    except Exception:
        return "-"
    return " ".join(f"{x.dtype.name}{'~' * x.weak_type}" for x in leaves if hasattr(x, "dtype"))


def compare(entry):
    """Return how many rows of an entry are different, refused here, and taken here only."""
    width, name = entry.split()
    home, _, name = name.rpartition(".")
    counts = collections.Counter()
    with weft.config.scope(enable_x64=width == "64"):
        for call, want in JAX[entry].items():
            found = describe(getattr(HOMES[home], name), call.split("-"))
            if found != want:
                kind = "refused" if found == "-" else "taken" if want == "-" else "different"
                counts[kind] += 1
    return counts


def list_entries():
    """The functions that both have; those that are absent are in test_public_names.py."""
    found = (entry.split()[1].rpartition(".") for entry in JAX)
    return [e for e, (home, _, name) in zip(JAX, found, strict=True) if hasattr(HOMES[home], name)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sample(one_in=10)
@pytest.mark.parametrize("entry", list_entries())
def test_types_of_results_of_mixed_operands(entry):
    known = {"different": DIFFERENT, "refused": REFUSED, "taken": TAKEN}
    width, name = entry.split()
    want = {kind: table[name][width == "64"] for kind, table in known.items() if name in table}
    assert compare(entry) == collections.Counter({k: n for k, n in want.items() if n})


def test_weak_arrays_of_32_bits_keep_their_dtype_with_enable_x64():
    """Alone or together; an operand of another type decides, as it does without."""
    with weft.config.scope(enable_x64=True):
        f, i = (weft.ShapeDtypeStruct((3,), d, weak_type=True) for d in (np.float32, np.int32))
        for fun in (jnp.sin, jnp.sqrt, jnp.reciprocal, jnp.fabs, lambda x: jnp.add(x, x)):
            assert weft.eval_shape(fun, f).dtype == np.float32
        assert weft.eval_shape(jnp.sin, i).dtype == np.float32
        assert jnp.sin(2).dtype == jnp.rint(np.int8(1)).dtype == np.float64
        assert jnp.floor_divide(True, True).dtype == jnp.power(True, True).dtype == np.int32
