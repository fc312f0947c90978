import enum
import itertools
import json
import pathlib
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import dtypes, lax
from weft.errors import DtypeError, TypePromotionError
from weft.options import config

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "promotion.json").read_text())
FLOAT8 = ["e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"]
NAMES = {  # short name, StableHLO name
    "bool": ("bool", "i1"),
    **{f"int{n}": (f"i{n}", f"i{n}") for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": (f"u{n}", f"ui{n}") for n in (2, 4, 8, 16, 32, 64)},
    "float4_e2m1fn": ("f4_e2m1fn", "f4E2M1FN"),
    "float6_e2m3fn": ("f6_e2m3fn", "f6E2M3FN"),
    "float6_e3m2fn": ("f6_e3m2fn", "f6E3M2FN"),
    **{f"float8_{k}": (f"f8_{k}", f"f8{k.upper()}") for k in FLOAT8},
    "bfloat16": ("bf16", "bf16"),
    "float16": ("f16", "f16"),
    "float32": ("f32", "f32"),
    "float64": ("f64", "f64"),
    "complex64": ("c64", "complex<f32>"),
    "complex128": ("c128", "complex<f64>"),
}


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


PYTHON_TYPE = {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}
ALL = [dtype(name) for name in NAMES]


class Key:
    """An extended dtype as the random layer will have them."""

    type = dtypes.prng_key
    name = "key<fry>"

    def __repr__(self):
        return self.name


class Aval:
    def __init__(self, dtype, weak_type=False):
        self.dtype, self.weak_type = np.dtype(dtype), weak_type


class Tracer:
    def __init__(self, dtype, weak_type=False):
        self.aval = Aval(dtype, weak_type)


class ScalarType:
    """An object like `weft.numpy.float32`."""

    dtype = np.dtype("float64")


KEY = Key()


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    d = dtype(name)
    short, hlo = NAMES[name]
    assert dtypes.short_name(d) == short
    assert dtypes.from_short_name(short) is d
    assert dtypes.hlo_name(d) == hlo


def test_names_of_the_special_dtypes():
    assert dtypes.short_name(dtypes.float0) == "float0"
    assert dtypes.from_short_name("float0") is dtypes.float0
    assert dtypes.hlo_name(dtypes.float0) == "i1"
    assert dtypes.short_name(KEY) == "key<fry>"
    with pytest.raises(
        DtypeError, match=r"^from_short_name: must be one of bool, .*; got 'f33'\.$"
    ):
        dtypes.from_short_name("f33")


WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def test_dtypes_that_no_array_has_are_refused():
    for make in (lambda t: jnp.zeros(3, t), lambda t: jnp.asarray([1.0, 2.0, 3.0], t)):
        with pytest.raises(DtypeError, match=r"must be of .* that XLA has arrays of; got f6.*\."):
            make("float6_e2m3fn").astype("float32")  # jaxlib 0.12 has arrays, and no programs
    for name in ("int1", "uint1"):  # StableHLO's i1 is bool
        if hasattr(ml_dtypes, name):
            x = jnp.asarray(np.array([0, 1, 0]).astype(getattr(ml_dtypes, name)))
            for use in (lambda x: x + x, lambda x: x.astype("int8"), lambda x: x[0]):
                for run in (use, weft.jit(use)):
                    with pytest.raises(DtypeError, match=r"of dtypes that XLA has arrays of; got"):
                        run(x)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_canonicalize_every_spelling(name, x64):
    d = dtype(name)
    want = d if x64 else dtype(WIDE.get(name, name))
    with config.scope(enable_x64=x64):
        for spelling in (d, d.type, name, d.newbyteorder("=")):
            assert dtypes.canonicalize(spelling) is want
            assert dtypes.canonicalize_dtype(spelling) == want


@pytest.mark.parametrize("x64", [False, True])
def test_canonicalize_python_types(x64):
    with config.scope(enable_x64=x64):
        bits = 64 if x64 else 32
        assert dtypes.canonicalize(bool) == np.bool_
        assert dtypes.canonicalize(int) == dtypes.default_int() == f"int{bits}"
        assert dtypes.canonicalize(float) == dtypes.default_float() == f"float{bits}"
        assert dtypes.canonicalize(complex) == dtypes.default_complex() == f"complex{2 * bits}"
        assert dtypes.canonicalize("f4") == dtypes.canonicalize("single") == "float32"
        assert dtypes.canonicalize(np.longlong) == dtypes.canonicalize("int") == f"int{bits}"
        assert dtypes.canonicalize(ScalarType) == f"float{bits}"
        assert dtypes.canonicalize(ScalarType()) == f"float{bits}"
        assert dtypes.canonicalize(None) == f"float{bits}"
        assert dtypes.canonicalize(dtypes.float0) is dtypes.float0
        assert dtypes.canonicalize(KEY) is KEY
        for x, name in ((True, "bool"), (1, f"int{bits}"), (1.0, f"float{bits}")):
            assert dtypes.python_scalar_dtype(x) == dtypes.python_scalar_dtype(type(x)) == name


@pytest.mark.parametrize("bad", [object, "U3", ">f4", np.longdouble, "M8[s]", "V4", Key.__init__])
def test_canonicalize_refuses_what_no_array_holds(bad):
    with pytest.raises(DtypeError, match=r"^zeros: must be a bool, .*; got |^zeros: needs a dtype"):
        dtypes.canonicalize(bad, "zeros")


@pytest.mark.parametrize("bad", ["bogus", np.floating, np.generic, [1, 2], 7])
def test_canonicalize_refuses_what_is_no_dtype(bad):
    with pytest.raises(DtypeError, match=r"^zeros: needs a dtype, or a value that has one; got "):
        dtypes.canonicalize(bad, "zeros")


def test_canonicalize_dtype_passes_other_numpy_dtypes_through():
    assert dtypes.canonicalize_dtype("U3") == np.dtype("U3")
    assert dtypes.canonicalize_dtype(object) == np.dtype(object)
    assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
    with pytest.raises(DtypeError, match=r"must be a NumPy dtype; got key<fry>\. Hint: canon"):
        dtypes.canonicalize_dtype(KEY)


def test_check_user_dtype_warns_of_narrowing_at_the_callers_line():
    text = r"^zeros: dtype float64 needs enable_x64; used float32\. Hint: weft\.config\.update"
    with pytest.warns(UserWarning, match=text) as caught:
        assert dtypes.check_user_dtype("float64", "zeros") == np.float32
    assert caught[0].filename == __file__
    for quiet in (float, int, complex, None, "float32", np.int8, KEY):
        dtypes.check_user_dtype(quiet, "zeros")
    with config.scope(enable_x64=True):
        assert dtypes.check_user_dtype("float64", "zeros") == np.float64


def test_kinds_partition_the_dtypes():
    kinds = [
        dtypes.is_bool,
        dtypes.is_signed,
        dtypes.is_unsigned,
        dtypes.is_float,
        dtypes.is_complex,
    ]
    for d, name in zip(ALL, NAMES, strict=True):
        stem = name.split("_")[0].rstrip("0123456789").removeprefix("b" * (name == "bfloat16"))
        assert [k(d) for k in kinds] == [
            stem == s for s in ("bool", "int", "uint", "float", "complex")
        ]
        assert dtypes.is_integer(d) == (stem in ("int", "uint"))
        assert dtypes.is_inexact(d) == (stem in ("float", "complex"))
        assert dtypes.tangent_dtype(d) == (d if dtypes.is_inexact(d) else dtypes.float0)
        assert dtypes.valid_dtype(d)
        assert dtypes.scalar_type_of(d) is PYTHON_TYPE[stem]
    for d in (dtypes.float0, KEY, np.dtype("U3"), np.dtype(object)):
        assert not any(k(d) for k in [*kinds, dtypes.is_integer, dtypes.is_inexact])
        assert dtypes.tangent_dtype(d) is dtypes.float0
    assert dtypes.valid_dtype(KEY)
    assert not any(map(dtypes.valid_dtype, [dtypes.float0, np.dtype("U3"), np.dtype(">f4")]))


def test_related_dtypes():
    f32, f64, c64, c128 = map(np.dtype, ("float32", "float64", "complex64", "complex128"))
    assert [dtypes.real_dtype(d) for d in (c64, c128, f32)] == [f32, f64, f32]
    assert [dtypes.complex_dtype(d) for d in (f32, f64, c64, c128)] == [c64, c128, c64, c128]
    assert dtypes.complex_dtype(np.dtype("int8")) == dtypes.complex_dtype(np.dtype("f2")) == c64
    for name in ("bool", "int4", "uint32"):
        assert dtypes.inexact_dtype(dtype(name)) == f32
    assert dtypes.inexact_dtype(np.dtype("int64")) == f64
    assert dtypes.inexact_dtype(dtype("bfloat16")) == dtypes.bfloat16
    with pytest.raises(DtypeError, match=r"^inexact_dtype: needs a numeric dtype; got float0\.$"):
        dtypes.inexact_dtype(dtypes.float0)


def test_itemsize_bits():
    packed = {"int2": 2, "uint4": 4, "float4_e2m1fn": 4, "float6_e3m2fn": 6}
    for d in ALL:
        assert dtypes.itemsize_bits(d) == packed.get(d.name, dtypes.itemsize_bits(d.name))
        assert d.name in {*packed, "int4", "uint2", "float6_e2m3fn"} or (
            dtypes.itemsize_bits(d) == 8 * d.itemsize
        )
    with pytest.raises(DtypeError, match=r"^itemsize_bits: needs a numeric dtype; got float0\.$"):
        dtypes.itemsize_bits(dtypes.float0)


def test_scalars():
    class Color(enum.IntEnum):
        RED = 1

    for x in (True, 1, 1.0, 1j, Color.RED):
        assert dtypes.is_python_scalar(x)
    for x in (np.float64(1), np.int8(1), np.array(1), [1], "1", None):
        assert not dtypes.is_python_scalar(x)
    for x, t in ((1, int), (np.int8(1), int), (Tracer("bool"), bool), (1j, complex)):
        assert dtypes.scalar_type_of(x) is t
    assert dtypes.scalar_type_of(ml_dtypes.bfloat16) is float
    assert dtypes.dtype_and_weak(Color.RED) == (np.dtype(int), True)
    with pytest.raises(DtypeError, match=r"^scalar_type_of: needs a numeric .*; got float0\.$"):
        dtypes.scalar_type_of(dtypes.float0)


BELOW = [
    (ml_dtypes.bfloat16, np.floating),
    (ml_dtypes.bfloat16, np.inexact),
    (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    ("bfloat16", np.generic),
    (ml_dtypes.int4, np.signedinteger),
    (ml_dtypes.uint4, np.unsignedinteger),
    (ml_dtypes.uint4, np.number),
    (ml_dtypes.float8_e4m3fn, np.floating),
    (int, np.int64),
    (float, np.floating),
    ("f4", np.float32),
    (np.floating, np.inexact),
    (np.zeros(2), np.floating),
    (ScalarType, np.floating),
    (dtypes.float0, np.void),
    (dtypes.prng_key, dtypes.extended),
    (KEY, dtypes.prng_key),
    (KEY, dtypes.extended),
    (KEY, np.generic),
    (KEY, KEY),
]
NOT_BELOW = [
    (ml_dtypes.int4, int),
    (np.int32, int),
    (np.floating, float),
    (np.inexact, np.floating),
    (np.floating, ml_dtypes.bfloat16),
    (ml_dtypes.bfloat16, object),
    (ml_dtypes.int4, np.unsignedinteger),
    (dtypes.float0, np.inexact),
    (np.bool_, np.number),
    (KEY, np.floating),
    (np.float32, dtypes.extended),
    (KEY, Key()),
    (dtypes.prng_key, KEY),
]


@pytest.mark.parametrize(("lower", "upper"), BELOW)
def test_issubdtype(lower, upper):
    assert dtypes.issubdtype(lower, upper)


@pytest.mark.parametrize(("lower", "upper"), NOT_BELOW)
def test_not_issubdtype(lower, upper):
    assert not dtypes.issubdtype(lower, upper)


def test_issubdtype_agrees_with_numpy_on_its_own_types():
    abstract = [np.generic, np.number, np.integer, np.signedinteger, np.floating, np.inexact]
    concrete = [np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64]
    for a, b in itertools.product(abstract + concrete, repeat=2):
        assert dtypes.issubdtype(a, b) == np.issubdtype(a, b)


def test_isdtype():
    kinds = "bool|signed integer|unsigned integer|integral|real floating|complex floating|numeric"
    members = {
        "bool": {"bool"},
        "int8": {"signed integer", "integral", "numeric"},
        "uint4": {"unsigned integer", "integral", "numeric"},
        "bfloat16": {"real floating", "numeric"},
        "complex64": {"complex floating", "numeric"},
    }
    for name, of in members.items():
        for kind in kinds.split("|"):
            assert dtypes.isdtype(name, kind) == (kind in of)
            assert dtypes.isdtype(dtype(name), ("bool", kind)) == (kind in of or name == "bool")
    assert dtypes.isdtype(np.int8, np.int8)
    assert dtypes.isdtype(np.int8, "int8")
    assert dtypes.isdtype(int, int)
    assert not dtypes.isdtype(np.float64, np.float32)
    assert not dtypes.isdtype(np.int8, ())
    for bad in ("bogus", np.floating, ["bool"]):
        with pytest.raises(DtypeError, match=r"^isdtype: kind must be a dtype, one of 'bool', "):
            dtypes.isdtype(np.int8, bad)


def test_machine_limits():
    assert dtypes.finfo is ml_dtypes.finfo
    assert dtypes.finfo("float32").eps == np.finfo("float32").eps
    assert float(dtypes.finfo(ml_dtypes.bfloat16).eps) == 2**-7
    assert float(dtypes.finfo(ml_dtypes.float8_e4m3fn).max) == 448
    assert dtypes.finfo(np.complex64).dtype == np.float32
    for name in ("int2", "int4", "uint4", "int8", "uint64"):
        bits, signed = dtypes.itemsize_bits(name), dtypes.is_signed(dtype(name))
        info = dtypes.iinfo(dtype(name))
        assert info.max == 2 ** (bits - signed) - 1
        assert info.min == (-(2 ** (bits - 1)) if signed else 0)


# ---- promotion


def operand(text: str) -> tuple[np.dtype, bool]:
    return dtype(text.removesuffix("~")), text.endswith("~")


def promoted(*operands) -> str:
    try:
        out, weak = dtypes.promote(operands)
    except TypePromotionError:
        return "-"
    return out.name + "~" * weak


def named(*operands) -> str:
    try:
        avals = [Aval(*pair) for pair in operands]
        out, weak = dtypes.result_type(*avals, return_weak_type_flag=True)
    except TypePromotionError:
        return "-"
    return out.name + "~" * weak


@pytest.mark.parametrize("state", [s for s in GOLDEN if s.startswith("weak")])
def test_weak_operands_keep_their_dtypes(state):
    with config.scope(enable_x64=state.endswith("64")):
        for name, row in GOLDEN[state].items():
            for other, want in zip(GOLDEN[state], row.split(), strict=True):
                assert promoted((dtype(name), True), (dtype(other), True)) == want, (name, other)


@pytest.mark.parametrize("state", [s for s in GOLDEN if s.startswith(("standard", "strict"))])
def test_promotion_is_that_of_jax(state):
    mode, bits = state.split(" x")
    table = GOLDEN[state]
    names = list(table)
    with config.scope(enable_x64=bits == "64", numpy_dtype_promotion=mode):
        for i, name in enumerate(names):
            alone, *pairs = table[name].split()
            assert named(operand(name)) == alone
            for other, want in zip(names[: i + 1], pairs, strict=True):
                assert named(operand(name), operand(other)) == want, (name, other)
                assert named(operand(other), operand(name)) == want, (other, name)


WEAK = [(np.dtype(t), True) for t in (int, float, complex)]


@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promotion_is_a_join(mode):
    """The order of the operands and repetition do not affect the promotion of many operands."""
    strong = "bool int8 uint8 int32 uint32 float16 bfloat16 float32 complex64 float8_e5m2 int4"
    operands = [(dtype(n), False) for n in strong.split()] + WEAK
    with config.scope(enable_x64=True, numpy_dtype_promotion=mode):
        for triple in itertools.combinations(operands, 3):
            want = promoted(*triple)
            for order in itertools.permutations(triple):
                assert promoted(*order) == want
            assert promoted(*triple, *triple) == want


def test_promotion_of_pairs_is_associative():
    """If every pair has a common type, pairwise promotion equals joint promotion.

    Exceptions are two 16-bit floats, or weak and strong integers, mixed in one chain: then, as in
    JAX, only the joint answer is the smallest.
    """
    names = "bool int8 uint8 int16 uint16 int32 uint32 float32 complex64"
    operands = [(dtype(n), False) for n in names.split()]
    with config.scope(enable_x64=True):
        for a, b, c in itertools.product(operands, repeat=3):
            left = promoted(operand(promoted(a, b)), c)
            right = promoted(a, operand(promoted(b, c)))
            assert left == right == promoted(a, b, c)


def test_promotion_errors_say_how_to_cast():
    with pytest.raises(
        TypePromotionError,
        match=r"^add: dtypes must have a common type, .*; got f8_e4m3fn, f8_e5m2\. "
        r'Hint: x\.astype\("float32"\)$',
    ):
        dtypes.promote(((dtype("float8_e4m3fn"), False), (dtype("float8_e5m2"), False)), "add")
    with pytest.raises(TypePromotionError, match=r'got i4, u4\. Hint: x\.astype\("int32"\)$'):
        dtypes.promote(((dtype("int4"), False), (dtype("uint4"), False)), "add")
    with pytest.raises(TypePromotionError, match=r"got i4, weak f32\. "):
        dtypes.promote(((dtype("int4"), False), (np.dtype(float), True)), "add")
    with (
        config.scope(numpy_dtype_promotion="strict"),
        pytest.raises(
            TypePromotionError,
            match=r"^add: dtypes must be equal under numpy_dtype_promotion='strict'; "
            r'got i32, f16\. Hint: x\.astype\("float16"\), or weft\.config\.update\(',
        ),
    ):
        dtypes.promote(((dtype("int32"), False), (dtype("float16"), False)), "add")
    with (
        config.scope(numpy_dtype_promotion="strict"),
        pytest.raises(TypePromotionError, match=r"got f8_e4m3fn, f8_e5m2\. Hint: x\.astype"),
    ):
        dtypes.promote(((dtype("float8_e4m3fn"), False), (dtype("float8_e5m2"), False)), "add")


def test_float0_and_keys_promote_only_with_themselves():
    f0 = (dtypes.float0, False)
    assert dtypes.promote((f0, f0)) == f0
    assert dtypes.promote(((KEY, False), (KEY, False))) == (KEY, False)
    for other in ((np.dtype("f4"), False), (KEY, False)):
        with pytest.raises(TypePromotionError, match=r"^promote: must not be given float0"):
            dtypes.promote((f0, other))
        with pytest.raises(TypePromotionError, match=r"^promote_types: must not be given float0"):
            dtypes.promote_types(f0[0], other[0])
    with pytest.raises(TypePromotionError, match=r"^promote: random keys promote only with them"):
        dtypes.promote(((KEY, False), (np.dtype("f4"), False)))


def test_result_type():
    result = dtypes.result_type
    assert result(np.int8(1), 2) == result("int8", int) == np.int8
    assert result(1) == result(int) == result(np.array(1)) == np.int32
    assert result(np.float64(1)) == np.float32
    assert result(True, np.uint8) == np.uint8
    assert result(Tracer("int8"), Tracer("float32", weak_type=True)) == np.float32
    assert result(Tracer("float16"), 1.0, 2j) == np.complex64
    assert result(np.int8, 1.0, return_weak_type_flag=True) == (np.float32, True)
    assert result(1, 2.0, return_weak_type_flag=True) == (np.float32, True)
    assert result(True, return_weak_type_flag=True) == (np.bool_, False)
    assert result(ScalarType, ml_dtypes.bfloat16) == np.float32
    with config.scope(enable_x64=True):
        assert result(1) == np.int64
        assert result("uint32", "int32") == np.int64
    with pytest.warns(UserWarning, match=r"^result_type: dtype int64 needs enable_x64; used int32"):
        assert result("int64", np.int8) == np.int32
    with pytest.raises(DtypeError, match=r"^result_type: needs at least one .*; got none\.$"):
        result()
    with pytest.raises(DtypeError, match=r"^result_type: needs a dtype, or a value .*; got \[1\]"):
        result([1])
    with pytest.raises(DtypeError, match=r"^result_type: must be a bool, .*; got object\.$"):
        result(np.array(1, object))


def test_promote_types_knows_64_bits_always():
    promote_types = dtypes.promote_types
    assert promote_types("int64", "uint64") == promote_types(int, float) == np.float64
    assert promote_types("uint32", "int32") == promote_types(int, int) == np.int64
    assert promote_types(int, "int8") == np.int8
    assert promote_types(complex, "float64") == np.complex128
    assert promote_types("int8", ml_dtypes.float8_e4m3fn) == ml_dtypes.float8_e4m3fn
    with pytest.raises(TypePromotionError, match=r"^promote_types: dtypes must have a common"):
        promote_types("int4", "int8")
    with config.scope(numpy_dtype_promotion="strict"):
        assert promote_types(int, "float32") == np.float32
        with pytest.raises(
            TypePromotionError, match=r"got f64, f32\. Hint: x.astype\(\"float64\"\)"
        ):
            promote_types("float64", "float32")


def test_promotion_cache_does_not_grow_with_length():
    before = len(dtypes._PROMOTED)
    for n in range(3, 50):
        dtypes.promote(((np.dtype("i4"), False), (np.dtype("f4"), False)) * n)
    assert len(dtypes._PROMOTED) <= before + 1


def test_imports_fast():
    code = (
        "import sys, time, numpy, ml_dtypes, weft.options, weft.errors; t = time.perf_counter();"
        "import weft.dtypes; print(time.perf_counter() - t)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
        for _ in range(3)
    ]
    assert min(runs) < 0.01  # 1-2 ms on a quiet machine


def test_nothing_warns_on_the_common_paths():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dtypes.result_type(np.zeros(2), 1.0, np.float32, "int8")
        dtypes.issubdtype(np.zeros(2), np.floating)
        dtypes.canonicalize(np.float64)


ASK_FOR_A_DTYPE = {
    "zeros": lambda dtype: jnp.zeros(3, dtype=dtype),
    "full": lambda dtype: lax.full((3,), 1, dtype),
    "full_like": lambda dtype: lax.full_like(jnp.ones(3), 1, dtype),
    "broadcasted_iota": lambda dtype: lax.iota(dtype, 3),
    "argmin": lambda dtype: lax.argmin(jnp.ones(3), 0, dtype),
    "convert_element_type": lambda dtype: lax.convert_element_type(jnp.ones(3), dtype),
    "bitcast_convert_type": lambda dtype: lax.bitcast_convert_type(jnp.ones(3), dtype),
    "dot_general": lambda dtype: lax.dot(jnp.ones(3), jnp.ones(3), preferred_element_type=dtype),
}


@pytest.mark.parametrize("name", ASK_FOR_A_DTYPE)
def test_an_array_is_no_dtype_for_any_function(name):
    for x, got in ((np.ones(2, np.int8), "ndarray"), (jnp.ones(2, np.int8), r"i8\[2\]")):
        match = f"^{name}: dtype must be .* got {got}. Hint: x.dtype"
        with pytest.raises(DtypeError, match=match):
            ASK_FOR_A_DTYPE[name](x)


def test_what_has_a_dtype_and_is_no_array_is_one():
    for kind in (np.float16(1), weft.ShapeDtypeStruct((2,), np.float16), jnp.float16):
        assert jnp.zeros(3, dtype=kind).dtype == np.float16
