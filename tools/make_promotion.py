"""Write tests/golden/promotion.json: every pairwise promotion of dtypes, as JAX has it.

Run it in an environment that has jax: `python tools/make_promotion.py`. Operands are
traced values, strong and weak, of every dtype; `~` marks weak, `-` a refused promotion.
"""

import json
import pathlib

import jax
import ml_dtypes
import numpy as np

KINDS = "int1 int2 int4 uint1 uint2 uint4 bfloat16 float4_e2m1fn float6_e2m3fn float6_e3m2fn"
FLOAT8 = "e3m4 e4m3 e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz e8m0fnu"
BUILTIN = "bool int8 int16 int32 uint8 uint16 uint32 float16 float32 complex64"
WIDE = "int64 uint64 float64 complex128"


def operands(x64: bool) -> list[jax.ShapeDtypeStruct]:
    small = [*KINDS.split(), *("float8_" + kind for kind in FLOAT8.split())]
    dtypes = [np.dtype(getattr(ml_dtypes, name)) for name in small]
    builtin = [np.dtype(name) for name in BUILTIN.split() + WIDE.split() * x64]
    # JAX itself fails (KeyError) on weak values of the dtypes of ml_dtypes, and has no weak bool.
    weak = [jax.ShapeDtypeStruct((), d, weak_type=True) for d in builtin if d != np.bool_]
    return [jax.ShapeDtypeStruct((), d) for d in dtypes + builtin] + weak


def promoted(*values: jax.Array) -> str:
    try:
        dtype, weak = jax.dtypes.result_type(*values, return_weak_type_flag=True)
    except jax.dtypes.TypePromotionError:
        return "-"
    return dtype.name + "~" * weak


def added(x: jax.ShapeDtypeStruct, y: jax.ShapeDtypeStruct) -> str:
    """The type of a sum, which is narrower than `result_type` where all operands are weak."""
    out = jax.eval_shape(jax.numpy.add, x, y)
    return out.dtype.name + "~" * out.weak_type


def sums(x64: bool) -> dict[str, str]:
    """One row for each weak operand: its sums with all weak operands."""
    weak = [x for x in operands(x64) if x.weak_type]
    return {x.dtype.name: " ".join([added(x, y) for y in weak]) for x in weak}


def table(x64: bool, mode: str) -> dict[str, str]:
    """One row per operand: its promotions with itself and with the operands before it."""
    rows = {}

    def record(*values: jax.Array) -> None:
        for i, x in enumerate(values):
            name = x.dtype.name + "~" * x.aval.weak_type
            rows[name] = " ".join([promoted(x), *(promoted(x, y) for y in values[: i + 1])])

    with jax.numpy_dtype_promotion(mode):
        jax.eval_shape(record, *operands(x64))
    return rows


def main() -> None:
    golden = {}
    for x64 in (False, True):
        with jax.enable_x64(x64):
            for mode in ("standard", "strict"):
                golden[f"{mode} x{64 if x64 else 32}"] = table(x64, mode)
            golden[f"weak sums x{64 if x64 else 32}"] = sums(x64)
    golden["jax"] = jax.__version__
    path = pathlib.Path(__file__).parents[1].joinpath("tests/golden/promotion.json")
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
