import pickle

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.aval import ShapedArray, typeof
from weft.errors import DtypeError, ShapeError
from weft.options import config


def test_equal_types_are_one_object():
    a = ShapedArray((3, 4), np.float32)
    assert a is ShapedArray([3, 4], "float32")
    assert a is ShapedArray((np.int64(3), 4), np.dtype("f4"))
    assert a is not ShapedArray((3, 4), np.float32, True)
    assert a is pickle.loads(pickle.dumps(a))
    assert a is a.update(weak_type=True).strong()


HUGE = {
    "zeros": lambda: jnp.zeros((2**62, 4)),
    "zeros of none": lambda: jnp.zeros((0, 2**62, 4)),
    "a size too large": lambda: jnp.ones((2**64, 0)),
    "bytes": lambda: jnp.full(2**60, 1, np.complex64),
    "broadcast": lambda: jnp.broadcast_to(1.0, (2**62, 4)),
    "tile": lambda: jnp.tile(jnp.ones(2), 2**62),
    "repeat": lambda: jnp.repeat(jnp.ones(4), 2**62),
    "iota": lambda: lax.iota(np.int32, 2**63),
    "eye": lambda: jnp.eye(2**32),
    "arange": lambda: jnp.arange(2**62, dtype="float32"),
    "linspace": lambda: jnp.linspace(0, 1, 2**62),
    "pad": lambda: jnp.pad(jnp.ones(3), (0, 2**63 - 1)),
    "one_hot": lambda: weft.nn.one_hot(jnp.zeros(4, int), 2**61),
    "meshgrid": lambda: jnp.meshgrid(*[np.zeros(2**8)] * 8),
    "vmap": lambda: weft.vmap(lambda x: jnp.broadcast_to(x, 2**60))(jnp.ones(8)),
    "jit": lambda: weft.jit(lambda: jnp.zeros((2**62, 4)).sum())(),
    "outer": lambda: weft.eval_shape(jnp.outer, *[weft.ShapeDtypeStruct((2**32,), "int32")] * 2),
    "kron": lambda: weft.eval_shape(jnp.kron, *[weft.ShapeDtypeStruct((2**32,), "int32")] * 2),
}


@pytest.mark.parametrize("name", HUGE)
def test_an_array_that_nothing_could_hold_is_an_error(name):
    """The engine ends the process where a product of sizes passes 2**63."""
    said = r"^array: must have fewer than 2\*\*63 bytes; got \w+\[|^iota: size must be at most 9223"
    with pytest.raises(ValueError, match=said):
        HUGE[name]()


@pytest.mark.parametrize("size", [2**55, 2**60])
def test_a_result_that_no_address_space_holds_is_an_error_before_it_is_allocated(size):
    with pytest.raises(
        ShapeError, match=r"^array: must have fewer than 2\*\*57 bytes; got float32"
    ):
        weft.vmap(lambda x: jnp.broadcast_to(x, size))(jnp.ones(1))
    assert weft.eval_shape(lambda: jnp.ones(2**55)).size == 2**55


def test_a_type_cannot_be_changed():
    with pytest.raises(AttributeError, match="immutable"):
        ShapedArray((), np.float32).shape = (3,)


@pytest.mark.parametrize(
    "dtype, shape, text",
    [
        ("float32", (3, 4), "f32[3,4]"),
        ("int32", (), "i32[]"),
        ("bool", (0,), "bool[0]"),
        (ml_dtypes.bfloat16, (2,), "bf16[2]"),
        ("complex64", (1, 1), "c64[1,1]"),
    ],
)
def test_printing(dtype, shape, text):
    assert str(ShapedArray(shape, dtype)) == text


def test_repr_names_the_dtype_and_weakness():
    assert repr(ShapedArray((2,), "float32", True)) == "ShapedArray(float32[2], weak_type=True)"


@pytest.mark.parametrize(
    "value, text, weak",
    [
        (1, "i32[]", True),
        (1.0, "f32[]", True),
        (1j, "c64[]", True),
        (True, "bool[]", False),
        (np.float64(1), "f32[]", False),
        (np.int8(1), "i8[]", False),
        (np.zeros((2, 3)), "f32[2,3]", False),
        (ml_dtypes.bfloat16(1), "bf16[]", False),
    ],
)
def test_typeof_host_values(value, text, weak):
    aval = typeof(value)
    assert (str(aval), aval.weak_type) == (text, weak)


def test_typeof_under_x64():
    with config.scope(enable_x64=True):
        assert str(typeof(1)) == "i64[]"
        assert str(typeof(np.zeros(2))) == "f64[2]"
    assert str(typeof(1)) == "i32[]"


def test_typeof_subclasses():
    class Celsius(float):
        pass

    class Grid(np.ndarray):
        pass

    assert typeof(Celsius(3)) is typeof(3.0)
    assert str(typeof(np.ones(2).view(Grid))) == "f32[2]"


@pytest.mark.parametrize("value", ["a", None, [1.0], object(), np.array(["a"]), {1}])
def test_typeof_refuses_what_is_no_array(value):
    with pytest.raises(DtypeError, match="array: "):
        typeof(value)


def test_tangent_types():
    assert ShapedArray((2,), "float32").to_tangent() is ShapedArray((2,), "float32")
    assert ShapedArray((2,), "int32").to_tangent().dtype == weft.dtypes.float0


def test_operands_that_are_no_arrays_are_shown_where_they_are_short():
    for n, shown in ((1, True), (54, True), (55, True), (57, True), (58, False), (70, False)):
        x = "a" * n
        with pytest.raises(DtypeError) as info:
            typeof(x, "f")
        text = f"({x!r})" if len(repr(x)) < 60 else "(...)"
        assert (text != "(...)") is shown
        assert str(info.value) == f"f: operands must be arrays or numbers; got a str {text}."
    with pytest.raises(DtypeError) as info:
        typeof([1.5], "f")
    said = "f: operands must be arrays or numbers; got a list. Hint: jnp.array([1.5])."
    assert str(info.value) == said
