"""Every function that NumPy has too, with each of NumPy's keywords once, against NumPy."""

import contextlib
import inspect
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy import keyword_calls
from tests.numpy.evaluation import differ, evaluate_numpy, evaluate_weft

M = np.array([[3.5, 1, 2, 4], [2.25, 5, 4.5, 1.5], [7, 6, 0, 2.75]], np.float32)
# ruff: noqa: E741, SIM905
V, I, B = M[0], np.array([[1, 0, 2, 3], [3, 1, 2, 0], [0, 2, 1, 3]], np.int32), M > 2.1
S = M[:, :3] @ M[:, :3].T + 3 * np.eye(3, dtype=np.float32)
UP = np.sort(V)
for _x in (M, V, I, B, S, UP):
    _x.flags.writeable = False

# Values of keywords, by name. What NumPy refuses is passed over.
VALUES = {
    "axis": [0, 1, -1, None, (0, 1)], "keepdims": [True], "dtype": ["float32", "int32"],
    "ddof": [1], "correction": [1], "where": [B], "initial": [2.0], "bias": [True], "k": [1],
    "rowvar": [False], "side": ["right"], "right": [True, 5.0], "left": [-1.0], "period": [3.0],
    "n": [2, 5], "norm": ["ortho", "forward"], "s": [(2, 3)], "axes": [(0, 1), 1, ((0,), (0,))],
    "indexing": ["ij"], "sparse": [True], "copy": [True], "return_index": [True],
    "return_inverse": [True], "return_counts": [True], "equal_nan": [True, False],
    "mode": ["same", "valid", "wrap", "clip", "edge", "reflect", "symmetric", "maximum"],
    "bins": [4, np.array([0.0, 2, 8]), "auto"], "range": [(0.0, 5.0)], "density": [True],
    "weights": [V + 1, M + 1], "decimals": [1, -1], "nan": [1.0], "posinf": [2.0], "neginf": [-2.0],
    "rtol": [0.1], "atol": [0.5], "rcond": [1e-3], "full_matrices": [False], "compute_uv": [False],
    "ord": [1, np.inf, "fro", -1, 2], "edge_order": [2], "dx": [0.5], "method": [
        "linear", "lower", "higher", "midpoint", "nearest", "median_unbiased", "weibull", "hazen",
        "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "normal_unbiased",
        "interpolated_inverted_cdf"],
    "overwrite_input": [False], "returned": [True], "fill_value": [7], "stable": [True],
    "axis1": [1], "axis2": [0], "axisa": [0], "axisb": [0], "axisc": [0], "offset": [1], "N": [3],
    "M": [4], "increasing": [True], "repeats": [2], "prepend": [0.0], "append": [0.0],
    "to_begin": [1.0], "to_end": [np.array([2.0, 3])], "invert": [True], "minlength": [9],
    "trim": ["f", "b"], "discont": [4.0], "endpoint": [False], "retstep": [True], "num": [7],
    "base": [3.0], "start": [1], "constant_values": [5.0], "stat_length": [2], "end_values": [3],
    "reflect_type": ["odd"], "shape": [(2, 6), (12,)], "include_initial": [True], "min": [1.0],
    "max": [3.0], "deg": [True], "w": [np.ones(4)], "optimize": [True], "order": ["C", "F"],
    "stop": [9], "step": [2], "kind": ["stable"], "a_min": [1.0], "a_max": [3.0],
    "y": [M + 1, V[::-1]], "x": [V], "fweights": [I[0]], "aweights": [V], "ndim": [3],
    "assume_unique": [False], "return_indices": [True], "bitorder": ["little"], "m": [2],
    "mean": [np.array(2.5, np.float32)], "default": [7], "sorted": [True], "count": [5],
    "upper": [True], "p": [1, "fro"], "UPLO": ["U"], "tol": [0.5], "hermitian": [True], "d": [0.5],
    "ind": [1],
}  # fmt: skip
# Keywords that mean nothing for arrays without a memory layout, and keywords of ufuncs only.
MEANINGLESS = {"out", "like", "casting", "subok", "device", "sorter", "einsum_call", "wrap"}

# The leading arguments, where these are not one of OPERANDS.
ARGUMENTS = {
    "arange": (1, 7), "linspace": (0.0, 1.0), "logspace": (0.0, 1.0), "geomspace": (1.0, 8.0),
    "eye": (3,), "identity": (3,), "tri": (3,), "full": ((2, 3), 4.0), "full_like": (M, 2),
    "zeros": ((2, 3),), "ones": ((2, 3),), "broadcast_to": (V, (3, 4)), "reshape": (M, (4, 3)),
    "resize": (M, (2, 7)), "take": (M, np.array([0, 2])), "take_along_axis": (M, I),
    "percentile": (M, 30.0), "quantile": (M, 0.3), "nanpercentile": (M, 30.0),
    "nanquantile": (M, 0.3), "repeat": (M, 2), "tile": (M, 2), "roll": (M, 1), "pad": (M, 2),
    "insert": (V, 1, 5.0), "delete": (M, 1), "append": (M, M), "choose": (I[0] % 2, [V, V + 1]),
    "compress": (np.array([True, False, True]), M), "extract": (B, M), "searchsorted": (UP, V),
    "digitize": (M, np.array([0.0, 2, 5])), "interp": (M, UP, V), "convolve": (V, V[:3]),
    "correlate": (V, V[:3]), "polyval": (V, M), "histogram": (M,), "histogram2d": (V, V),
    "bincount": (I[0],), "cross": (S, S[::-1]), "tensordot": (M, M), "kron": (M, M), "vander": (V,),
    "einsum": ("ij,ij->i", M, M), "meshgrid": (V, V[:3]), "unravel_index": (I[1], (3, 4)),
    "ravel_multi_index": ((I[0] % 3, I[1]), (3, 4)), "moveaxis": (M, 0, 1), "rollaxis": (M, 1),
    "permute_dims": (M, (1, 0)), "polyadd": (V, V[:3]), "polysub": (V, V[:3]),
    "swapaxes": (M, 0, 1), "expand_dims": (M, 1), "squeeze": (M[None],), "clip": (M, 1, 3),
    "nan_to_num": (np.where(B, np.nan, np.where(M < 1, np.inf, M)),), "unique": (I,),
    "stack": ([M, M],), "concatenate": ([M, M],), "concat": ([M, M],), "hstack": ([M, M],),
    "vstack": ([M, M],), "dstack": ([M, M],), "column_stack": ([V, V],), "allclose": (M, M + 0.01),
    "isclose": (M, M + 0.01), "isin": (I, I[:, :2]), "matrix_power": (S, 3), "solve": (S, M),
    "tensorsolve": (S, V[:3]), "split": (M, 2), "array_split": (M, 3), "lexsort": (M,),
    "trim_zeros": (np.array([0.0, 1, 0]),), "fftfreq": (5,), "rfftfreq": (5,),
    "histogramdd": (M,), "select": ([B, ~B], [M, M + 1]), "where": (B, M, M + 1),
}  # fmt: skip
OPERANDS = [(M,), (S,), (V,), (I,), (B,), (M, M + 1), (V, V), (I, I), (B, B), (S, S)]

# Functions whose results are free (empty), random, or of Python's; and what differs, as in JAX.
APART = set(
    """
    empty empty_like asarray array copy fromiter fromfunction frombuffer fromstring fromfile save
    savez load loadtxt genfromtxt printoptions array_repr array_str array2string set_printoptions
    get_printoptions from_dlpack fromregex asanyarray ascontiguousarray argpartition partition
    lstsq eig eigh svd qr polydiv polyfit poly roots iscomplexobj isrealobj result_type
""".split()
)
ORDERED = {"ravel", "reshape", "ravel_multi_index"}  # in others `order` is about memory
DIFFERENT = {
    ("meshgrid", "copy"), ("std", "dtype"), ("nanstd", "dtype"), ("argsort", "axis"),
    ("argsort", "kind"), ("sort", "kind"),
    ("nanvar", "correction"), ("nanstd", "correction"), ("concat", "dtype"), ("geomspace", "dtype"),
}  # fmt: skip


def list_functions():
    for home, ours in ((np, jnp), (np.linalg, jnp.linalg), (np.fft, jnp.fft)):
        for name in sorted({*dir(home)} & {*dir(ours)} - APART):
            fun = getattr(home, name)
            plain = callable(fun) and not isinstance(fun, type | np.ufunc)
            if plain and name[0] != "_" and not name.startswith("set_"):
                yield pytest.param(name, fun, getattr(ours, name), id=f"{home.__name__}.{name}")


def test_each_keyword_of_numpy_has_values():
    """A version of NumPy with a new keyword is noticed here."""
    missing = set()
    for _, fun, _ in (case.values for case in list_functions()):
        with contextlib.suppress(ValueError, TypeError):  # some have no signature
            rows = inspect.signature(fun).parameters.values()
            named = {p.name for p in rows if p.default is not p.empty or p.kind == p.KEYWORD_ONLY}
            missing |= named - MEANINGLESS - {*VALUES}
    assert not missing


OUT = "out must be None|unexpected keyword argument 'out'"


def test_functions_refuse_out_or_lack_it():
    """`out` is refused in one way by all functions that have it, as arrays never change."""
    wrong = {}
    for name, fun, ours in (case.values for case in list_functions()):
        found = call_first(fun, name, {})
        if found is None or found[1] is None or "out" not in inspect.signature(fun).parameters:
            continue
        try:
            ours(*found[0], out=np.zeros(3, np.float32))
        except (TypeError, NotImplementedError) as error:
            wrong |= {} if re.search(OUT, str(error)) else {name: str(error)}
        else:
            wrong[name] = "is taken"
    assert not wrong


def list_keywords(fun, of):
    yield {}
    try:
        names = list(inspect.signature(fun).parameters)
    except (ValueError, TypeError):
        return
    for name in names:
        known = name in MEANINGLESS or (of, name) in DIFFERENT
        if not known and not (name == "order" and of not in ORDERED):
            yield from ({name: value} for value in VALUES.get(name, ()))


def leaves_of(x):
    nested = isinstance(x, tuple | list)
    return [leaf for part in x for leaf in leaves_of(part)] if nested else [np.asarray(x)]


def call_first(fun, name, kwargs):
    """Return the first arguments that NumPy takes with these keywords, and its result."""
    given = ARGUMENTS.get(name)
    for args in OPERANDS if given is None else [given]:
        try:
            with np.errstate(all="ignore"):
                return args, fun(*args, **kwargs)
        except Exception:
            continue
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sample(one_in=48)
@pytest.mark.parametrize(("name", "fun", "ours"), [*list_functions()])
def test_each_keyword_against_numpy(name, fun, ours):
    wrong = []
    for kwargs in list_keywords(fun, name):
        found = call_first(fun, name, kwargs)
        if found is None or found[1] is None:
            continue
        args, wanted = found
        try:
            got = leaves_of(ours(*args, **kwargs))
            for a, b in zip(got, leaves_of(wanted), strict=True):
                assert a.shape == b.shape, (a.shape, b.shape)
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
        except Exception as error:
            wrong.append(f"{kwargs}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    assert not wrong, "\n".join(wrong)


# --- calls written out ------------------------------------------------------------------------

NUMPY, SCIPY = (text.strip().split("\n") for text in (keyword_calls.NUMPY, keyword_calls.SCIPY))
KINDS = {"float64": NUMPY + SCIPY, "float32": NUMPY, "int64": NUMPY, "complex128": NUMPY}
# Functions with other dtypes than NumPy's, and calls that are refused, or differ, all as in JAX.
OTHER_DTYPES = """
np.argpartition V.argpartition np.bincount np.convolve np.correlate np.histogram np.percentile
np.poly np.linalg.eigvals np.linalg.lstsq sp.stats.rankdata sp.linalg.invpascal sp.linalg.pascal
sp.linalg.sqrtm sp.cluster.vq
"""
# Of float32 operands NumPy's results have another dtype, mostly float64, here. Weft's have JAX's.
OTHER_SINGLE_DTYPES = """
np.average( np.corrcoef np.cov(M,y= np.cov(M,fweights= np.cov(M,aweights= np.cov(V,y= np.diff(
np.geomspace np.gradient np.nanquantile np.quantile np.sort_complex np.vander
"""
OTHER = """
np.histogramdd((V np.logspace(0
"""
REFUSED = {
    "int64": "np.round M.round",
    "complex128": """
        np.argm np.nanargm np.clip np.histogram np.interp np.median np.nanmedian M.argm M.clip
        np.var(M,axis=(0,1),dtype="float64")
    """,
}
CHUNK = 25


def make_arrays(dtype):
    """The operands of the calls."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.integers(0, 7, shape) + 0.0
    found = {"M": draw(3, 4), "N": draw(3, 4) + 1, "P": draw(2, 3, 4), "V": draw(4) + 1}
    found |= {"W": draw(4) + 2, "L": draw(32)}
    if np.dtype(dtype).kind not in "iu":
        found = {name: x + 0.3 * rng.uniform(size=x.shape) for name, x in found.items()}
    if np.dtype(dtype).kind == "c":
        found = {name: x + 1j * draw(*x.shape) for name, x in found.items()}
    found["S"] = found["M"] @ found["M"].conj().T + 9 * np.eye(3)
    found = {name: x.astype(dtype) for name, x in found.items()}
    found |= {"I": rng.integers(0, 4, (3, 4)), "J": np.array([1, 0, 2, 1])}
    return found | {"B": draw(3, 4) > 2, "C": np.array([True, False, True, False])}


def compare_calls(dtype, texts):
    """Return the failures of calls on operands of a dtype."""
    arrays = make_arrays(dtype)
    apart = (OTHER + REFUSED.get(dtype, "")).split()
    texts = [text for text in texts if not text.replace(" ", "").startswith(tuple(apart))]
    wanted = evaluate_numpy(texts, arrays)
    with weft.config.scope(enable_x64=True):
        found = evaluate_weft(wanted, arrays)
    single = dtype == "float32"
    near = {"float32": 2e-4, "complex64": 2e-4}
    near |= dict.fromkeys(["float64", "complex128"], 2e-4 if single else 1e-9)
    free = (OTHER_DTYPES + OTHER_SINGLE_DTYPES * single).split()
    wrong = {
        text: differ(found[text], want, near, not text.replace(" ", "").startswith(tuple(free)))
        for text, want in wanted.items()
    }
    return {text: why for text, why in wrong.items() if why}


CHUNKS = [
    pytest.param(dtype, texts[k : k + CHUNK], id=f"{dtype}-{k}")
    for dtype, texts in KINDS.items()
    for k in range(0, len(texts), CHUNK)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sample(one_in=40)
@pytest.mark.parametrize(("dtype", "texts"), CHUNKS)
def test_calls_against_numpy_and_scipy(dtype, texts):
    wrong = compare_calls(dtype, texts)
    assert not wrong, "\n".join(map(str, wrong.items()))
