from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr, Var
from weft.core.stage import stage
from weft.experimental import io_callback
from weft.experimental.xla_metadata import set_xla_metadata
from weft.primitives.elementwise import add, convert, mul
from weft.primitives.layout import broadcast_in_dim
from weft.xla.hlo import Builder, array_text, scalar_text
from weft.xla.lower import lower_module

F3 = ShapedArray((3,), np.float32)


@pytest.mark.parametrize(
    "value, dtype, text",
    [
        (True, bool, "true"),
        (3, np.int32, "3"),
        (-1, np.int8, "-1"),
        (3.0, np.float32, "3.0"),
        (np.float32(0.1), np.float32, "0x3DCCCCCD"),
        (-0.0, np.float32, "0x80000000"),
        (float("inf"), np.float32, "0x7F800000"),
        (float("nan"), np.float32, "0x7FC00000"),
        (1.5, ml_dtypes.bfloat16, "0x3FC0"),
        (0.5, np.float64, "0x3FE0000000000000"),
        (1 + 2j, np.complex64, "(1.0, 2.0)"),
    ],
)
def test_scalars_are_exact(value, dtype, text):
    assert scalar_text(value, np.dtype(dtype)) == text


ALL = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16, np.float32,
    np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
]  # fmt: skip


def compile_constant(values):
    """Return the result of a program that holds an array."""
    from weft.mesh.client import all_devices
    from weft.xla.compile import Executable, compile_text
    from weft.xla.placement import on_device

    aval = ShapedArray(values.shape, values.dtype)
    hlo = Builder()
    hlo.function("main", [], lambda: [hlo.constant(values, aval)], "public")
    here = on_device(all_devices()[0], False)
    loaded, _ = compile_text(hlo.module("m"), here)
    (out,) = Executable(loaded, Jaxpr((), [], [Var(aval)], []), here)()
    return out


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: np.dtype(d).name)
def test_constants_survive_compilation(dtype):
    """XLA returns an array constant of every dtype unchanged."""
    from weft.primitives.layout import reshape

    values = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    out = compile_constant(values)
    got = np.asarray(out)
    assert got.dtype == values.dtype
    assert (got.astype(np.complex64) == values.astype(np.complex64)).all()
    assert reshape(out, (6,)).shape == (6,)


def test_an_array_of_one_value_is_a_splat():
    assert array_text(np.full((2, 2), 3, np.int32), np.dtype(np.int32)) == "3"
    assert array_text(np.zeros((0, 2), np.float32), np.dtype(np.float32)) == ""


SIGNED = {
    "zeros": np.array([0.0, -0.0, 0.0], np.float32),
    "negative zeros": np.array([-0.0, -0.0], np.float16),
    "complex zeros": np.array([0j, complex(0, -0.0), complex(-0.0, 0)], np.complex64),
    "imaginary parts": np.array([complex(1, 0.0), complex(1, -0.0)], np.complex64),
    "narrow floats": np.array([0, -0.0], ml_dtypes.float8_e4m3fn),
    "packed floats": np.array([-0.0, 0, -0.0, 0], ml_dtypes.float4_e2m1fn),
}


@pytest.mark.parametrize("name", SIGNED)
def test_constants_keep_signs_of_zeros(name):
    assert np.asarray(compile_constant(SIGNED[name])).tobytes() == SIGNED[name].tobytes()


def test_complex_numbers_that_differ_in_a_sign_are_two_constants():
    signs = 0.0, -0.0
    roots = weft.jit(lambda: [jnp.sqrt(jnp.full((2,), complex(-1, s))) for s in signs])()
    assert [complex(v[0]) for v in roots] == [1j, -1j]


def test_a_module_reads():
    jaxpr, _ = stage(lambda x: [add(mul(x, 2.0), x)], [F3])
    assert lower_module(jaxpr, "f").text == (
        "module @jit_f attributes "
        "{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
        "func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {\n"
        '%1 = "stablehlo.constant"() <{value = dense<2.0> : tensor<f32>}> : () -> (tensor<f32>)\n'
        '%2 = "stablehlo.constant"() <{value = dense<2.0> : tensor<3xf32>}> : () -> '
        "(tensor<3xf32>)\n"
        '%3 = "stablehlo.multiply"(%arg0, %2) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>)\n'
        '%4 = "stablehlo.add"(%3, %arg0) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>)\n'
        '"func.return"(%4) : (tensor<3xf32>) -> ()\n'
        "}\n}\n"
    )


def test_a_constant_is_written_once():
    jaxpr, _ = stage(lambda x: [add(mul(x, 2.5), mul(add(x, 2.5), 2.5))], [F3])
    assert lower_module(jaxpr, "f").text.count("dense<0x40200000> : tensor<3xf32>") == 1


def test_the_text_is_the_same_in_every_process():
    """It is the key of the disk cache, so it must not hold an address or an order of hashing."""
    texts = set()
    for _ in range(2):
        jaxpr, _ = stage(
            lambda x: [convert(broadcast_in_dim(x, (2, 3), (1,)), np.dtype(np.int32))], [F3]
        )
        texts.add(lower_module(jaxpr, "f").text)
    assert len(texts) == 1


def test_function_names_are_safe_and_unique():
    hlo = Builder()
    assert [hlo.unique(n) for n in ("f", "f", "<lambda>", "f")] == ["f", "f_1", "_lambda_", "f_2"]


GOLDEN = Path(__file__).parent / "golden/module.txt"


@weft.jit
def twice(x):
    return x + x


def with_a_bit_of_everything(x, n):
    """Scopes, attributes, calls, loops and branches that call Python, constants, reductions."""
    host, scalar = np.float32, weft.ShapeDtypeStruct((), np.float32)
    with weft.named_scope("outer"):
        with set_xla_metadata(kind="a b", n=3):
            y = jnp.sin(x)
        z = twice(y)

    def body(state):
        i, v = state
        return i + 1, twice(io_callback(host, scalar, v, ordered=True))

    _, v = weft.lax.while_loop(lambda state: state[0] < n, body, (0, z[0]))
    branches = lambda v: weft.pure_callback(host, scalar, v), lambda v: v * 2
    ordered = np.arange(3, dtype=np.float32)[::-1] * x
    return weft.lax.cond(v > 0, *branches, v), x.max(), ordered


def test_a_module_as_a_whole():
    """After an intended change of lowering, write the new text to the file."""
    lowered = weft.jit(with_a_bit_of_everything).lower(np.ones(3, np.float32), 4)
    assert lowered._lowered.module.text.splitlines() == GOLDEN.read_text().splitlines()


def test_an_array_without_axes_is_the_number():
    hlo, aval = Builder(), ShapedArray((2,), np.float32)
    made = [hlo.constant(x, aval) for x in (2.0, np.float32(2), np.array(2.0, np.float32))]
    assert made[1] is made[2] and made[0].aval is made[1].aval
    assert sum("dense<2.0>" in line or "dense<0x40000000>" in line for line in hlo.lines) <= 2
