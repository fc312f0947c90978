"""Every function of numbers at the extremes of each dtype, against NumPy.

Operands are the least and the largest integer, 0 and its neighbours, and of floats zeros of both
signs, infinities, NaN, the least normal number and the largest. The functions are those that NumPy
has under the same name and computes for such operands; all of a dtype are one program.
"""

import warnings

import numpy as np
import pytest
import scipy.special

import weft
import weft.numpy as jnp
from tests.numpy.evaluation import evaluate, evaluate_numpy, evaluate_weft

INTEGERS = "int8 uint8 int16 int32 uint32 int64 uint64".split()  # noqa: SIM905
FLOATS = ["float16", "float32", "float64"]

# They choose, order, count or lay out elements, make arrays, or have sizes that depend on values.
NOT_OF_NUMBERS = """
append apply_along_axis apply_over_axes arange argmax argmin argpartition argsort argwhere array
array2string array_equal array_equiv array_repr array_split array_str asarray astype atleast_1d
atleast_2d atleast_3d bartlett bincount blackman block broadcast_arrays broadcast_shapes
broadcast_to can_cast choose column_stack compress concat concatenate convolve copy correlate
delete diag diag_indices diag_indices_from diagflat diagonal digitize dsplit dstack ediff1d einsum
einsum_path empty empty_like expand_dims extract eye fill_diagonal finfo flatnonzero flip fliplr
flipud from_dlpack frombuffer fromfile fromfunction fromiter frompyfunc fromstring full full_like
geomspace get_printoptions hamming hanning histogram histogram2d histogram_bin_edges histogramdd
hsplit hstack identity iinfo indices insert intersect1d iscomplexobj isdtype isin isrealobj
isscalar issubdtype iterable ix_ kaiser kron lexsort linspace load logspace mask_indices
matrix_transpose meshgrid moveaxis nanargmax nanargmin ndim nonzero ones ones_like outer packbits
pad partition permute_dims piecewise place poly polydiv polymul printoptions promote_types put
put_along_axis ravel ravel_multi_index repeat require reshape resize result_type roll rollaxis
roots rot90 save savez searchsorted select set_printoptions setdiff1d setxor1d shape size sort
sort_complex split squeeze stack swapaxes take take_along_axis tile transpose tri tril tril_indices
tril_indices_from trim_zeros triu triu_indices triu_indices_from union1d unique unique_all
unique_counts unique_inverse unique_values unpackbits unravel_index unstack vander vectorize vsplit
vstack where zeros zeros_like
""".split()  # noqa: SIM905

# name: why NumPy is not the oracle
OTHERS = {
    "reciprocal": "of integers it is a float here, and an integer in NumPy",
    "trapezoid": "NumPy adds neighbours as integers, and overflows",
    "polyder": "NumPy multiplies integers, and overflows",
    "spacing": "NumPy looks beyond the largest number, and takes integers as another dtype",
    "nextafter": "NumPy takes integers as another dtype",
    "ldexp": "NumPy takes integers as another dtype",
    "gradient": "of points that do not rise there is no derivative",
    "sinc": "of whole numbers it is 0, but for rounding",
}
# 0.0 and -0.0 are equal, and either may be the result; sign(-0.0) is -0.0, as in JAX.
UNSIGNED_ZEROS = {"maximum", "minimum", "fmax", "fmin", "max", "min", "amax", "amin", "nanmax",
                  "nanmin", "sign", "clip", "median", "nanmedian"}  # fmt: skip
# NumPy's and SciPy's are NaN for infinity.
ORACLES = {"i0": lambda v: np.where(np.isinf(v), np.inf, scipy.special.i0(v))}


def name_functions():
    """Return the names of functions of numbers that NumPy has too; one name of each function."""
    left_out = {*NOT_OF_NUMBERS, *OTHERS}
    public = {n: getattr(np, n, None) for n in sorted(jnp.__all__) if n not in left_out}
    names = {id(fun): n for n, fun in public.items() if callable(fun) and not isinstance(fun, type)}
    return sorted(names.values())


def make_operands(dtype):
    """Return the numbers v, and the pairs (x, y) of each with each; NumPy may not write to them."""
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        around = [-1, -2] if info.min else []
        numbers = [info.min, info.min + 1, *around, 0, 1, 2, 7, info.max - 1, info.max]
    else:
        info = np.finfo(dtype)
        sizes = [0.0, np.inf, info.tiny, info.max, 0.5, 1, 2, 3]
        numbers = [np.nan, info.eps, *sizes, *[-x for x in sizes]]
    v = np.array(numbers, dtype)
    arrays = {"v": v, "x": np.repeat(v, len(v)), "y": np.tile(v, len(v))}
    for x in arrays.values():
        x.flags.writeable = False
    return arrays


def evaluate_oracle(name, text, arrays):
    """Return NumPy's result, or None if it has no numbers for such operands."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if name in ORACLES:
                return [ORACLES[name](arrays["v"])] if text.endswith("(v)") else None
            found = [np.asarray(x) for x in evaluate(text, np, None, arrays)]
        except Exception:
            return None
    return found if all(x.dtype.kind in "biuf" for x in found) else None


def differ(name, got, want, size):
    """Return the numbers of results that are wrong."""
    got = np.asarray(got)
    if got.shape != want.shape:
        return f"shape {got.shape} for {want.shape}"
    if got.dtype.kind != "f":
        return np.flatnonzero(got != want.astype(got.dtype))
    info = jnp.finfo(got.dtype)
    eps, least = float(info.eps), 2 * float(info.tiny)
    with np.errstate(all="ignore"):
        want = want.astype(got.dtype)
        near = np.float64(least)  # numbers below the least normal one are 0 on CPUs
        if want.ndim == 0 or name in ("cov", "corrcoef"):  # sums cancel
            near += 8 * eps * max(size, 1) ** np.float64(2 if name == "cov" else 1)
        close = (got == want) | (np.abs(got - want) <= 64 * eps * np.abs(want) + near)
    good = np.where(np.isfinite(want), close, (got == want) | (np.isnan(got) & np.isnan(want)))
    if name not in UNSIGNED_ZEROS:
        good &= (want != 0) | (np.signbit(got) == np.signbit(want)) | (near > least)
    return np.flatnonzero(~good)


def find_differences(dtype, names, run):
    """Return the calls with results that differ from NumPy's."""
    arrays = make_operands(dtype)
    v, wrong, checked = arrays["v"], [], set()
    texts = {f"np.{name}({operands})": name for name in names for operands in ("v", "x, y")}
    wanted = {t: evaluate_oracle(name, t, arrays) for t, name in texts.items()}
    wanted = {t: want for t, want in wanted.items() if want is not None}
    with weft.config.scope(enable_x64=np.dtype(dtype).itemsize == 8), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(wanted, arrays)
        for text, want in wanted.items():
            name, got = texts[text], found[text]
            if isinstance(got, Exception):
                wrong.append(f"{text}: {got}")
                continue
            got = [np.asarray(x) for x in got]
            if v.dtype.kind in "iu" and got[0].dtype.kind == "f":  # integers become floats first
                operands = {n: x.astype(got[0].dtype) for n, x in arrays.items()}
                want = evaluate_oracle(name, text, operands) or want
            size = float(np.max(np.abs(v.astype(float)), where=np.isfinite(v), initial=0))
            for i, (g, w) in enumerate(zip(got, want, strict=True)):
                at = differ(name, g, w, size)
                if len(at):
                    rows = at if isinstance(at, str) else [
                        (*[arrays[o].flat[k] for o in ("xy" if "x, y" in text else "v")
                           if g.size == arrays[o].size], g.flat[k], w.flat[k])
                        for k in at[:3]
                    ]  # fmt: skip
                    wrong.append(f"{text}, result {i}: (operands, got, want) {rows}")
            checked.add(name)
    assert len(checked) > len(names) / 2
    return wrong


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("case", [f"{d}-{i}" for d in [*INTEGERS, *FLOATS] for i in range(3)])
def test_compiled_functions_at_the_extremes(case):
    dtype, part = case.split("-")
    wrong = find_differences(dtype, name_functions()[int(part) :: 3], evaluate_weft)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_eager_functions_at_the_extremes(dtype):
    def run(texts, arrays):
        arrays = {name: jnp.array(x) for name, x in arrays.items()}
        return {text: evaluate(text, jnp, weft.scipy, arrays) for text in texts}

    wrong = find_differences(dtype, name_functions(), run)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("home", ["np", pytest.param("sp.special", marks=pytest.mark.slow)])
def test_numbers_below_the_least_normal_one(home):
    """CPUs take them for 0: a result is that of the number, or that of a zero of its sign."""
    names = name_functions() if home == "np" else weft.scipy.special.__all__
    v = np.array([1e-45, 1e-42, 1.1e-38, -1e-45, -1e-42, -1.1e-38], np.float32)
    calls = [f"{home}.{name}(v)" for name in names]
    exact, flushed = (
        {
            call: found[0]
            for call, found in evaluate_numpy(calls, {"v": x}).items()
            if np.shape(found[0]) == v.shape and found[0].dtype.kind in "biuf"
        }
        for x in (v, np.copysign(np.float32(0), v))
    )
    found, wrong = evaluate_weft(exact, {"v": v}), []
    for call, want in exact.items():
        got = np.asarray(found[call][0])
        near = lambda x, got=got: np.isclose(got, x.astype(got.dtype), 1e-5, 3e-38, equal_nan=True)
        if not np.all(near(want) | near(flushed[call])):
            wrong.append(f"{call}: {got} for {want}")
    assert not wrong, "\n".join(wrong)
    assert len(exact) > 25
