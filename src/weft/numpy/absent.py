"""Names that NumPy has and this package has not, and what to use instead.

Imported when such a name is looked up.
"""

from __future__ import annotations

import numpy as np

# Groups of names, and what stands for each: `{}` is the name itself.
INSTEAD = {
    "asmatrix matrix bmat": "two-dimensional arrays and x @ y; jnp.block for blocks",
    "nditer ndenumerate nested_iters flatiter broadcast": "vmap over the axes, or lax.scan",
    "ndindex": "itertools.product of ranges, or jnp.indices",
    "busday_count busday_offset busdaycalendar is_busday isnat datetime64 timedelta64 "
    "datetime_as_string datetime_data": "np.{}: arrays here hold numbers only",
    "char strings str_ bytes_ rec recarray record void": "np.{}: arrays here hold numbers only",
    "ma": "jnp.where, where= of reductions, or the nan-functions",
    "asanyarray asarray_chkfinite ascontiguousarray asfortranarray require": "jnp.asarray(x)",
    "copyto putmask": "jnp.where(mask, values, x), or x.at[mask].set(values)",
    "array2string": "str(x), or jnp.array_str(x)",
    "base_repr binary_repr format_float_positional format_float_scientific": "np.{}",
    "poly1d polynomial": "vectors of coefficients with jnp.polyval, jnp.polyadd ...",
    "random": "weft.random, whose functions take a key",
    "loadtxt genfromtxt fromregex memmap": "jnp.asarray(np.{}(...))",
    "savetxt savez_compressed": "np.{}(file, np.asarray(x))",
    "errstate seterr geterr seterrcall geterrcall": "weft.debug_nans, which stops at a NaN",
    "half": "jnp.float16",
    "byte short intc": "jnp.int8, jnp.int16 or jnp.int32",
    "intp long longlong": "jnp.int_",
    "ubyte ushort uintc uintp ulong ulonglong": "jnp.uint",
    "longdouble float128 clongdouble complex256": "jnp.float64 or jnp.complex128",
    "fix": "jnp.trunc(x)",
    "common_type min_scalar_type mintypecode": "jnp.result_type(...) or jnp.promote_types(x, y)",
    "isfortran may_share_memory shares_memory": "nothing: arrays have no strides, and no views",
    "real_if_close": "jnp.real(x)", "row_stack": "jnp.vstack",
    "emath": "the function of x.astype(complex)",
    "testing": "np.testing, which takes arrays of weft", "trapz": "jnp.trapezoid",
    "in1d": "jnp.isin(x.ravel(), y)", "product cumproduct": "jnp.prod or jnp.cumprod",
    "sometrue alltrue": "jnp.any or jnp.all", "msort": "jnp.sort(x, axis=0)",
    "round_": "jnp.round", "Inf Infinity infty PINF": "jnp.inf", "NINF": "-jnp.inf",
    "NaN NAN": "jnp.nan", "PZERO NZERO": "0.0 or -0.0",
    "find_common_type": "jnp.promote_types(x, y)", "bool8 True_ False_": "jnp.bool_",
    "cast sctypes obj2sctype issctype": "x.astype(dtype) and jnp.dtype(...)",
    "asscalar": "x.item()", "mat": "jnp.asarray(x)",
    "safe_eval source who lookfor info": "help(...)",
    "ctypeslib lib core f2py get_include show_config show_runtime": "np.{}",
}  # fmt: skip


def suggest_instead(name: str) -> str:
    """Return the message for a name that NumPy has and weft does not."""
    for names, instead in INSTEAD.items():
        if name in names.split():
            return f" Hint: use {instead.format(name)}."
    if name in np.__all__:
        return f" Hint: use np.{name} on np.asarray(x)."
    return ""
