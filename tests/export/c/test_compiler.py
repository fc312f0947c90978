"""Compiling programs in C and calling them: arguments, results, and errors."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export
from weft.errors import DtypeError, ShapeError
from weft.export.c.compiler import find_compiler


@pytest.fixture(scope="module")
def step():
    fun = lambda params, x, *, rate: {"w": params["w"] - rate * x, "n": params["n"] + 1}
    params = {"w": np.ones(3, np.float32), "n": np.int32(4)}
    return export.to_c(fun, name="step")(params, np.ones(3, np.float32), rate=0.5).build()


def test_calls_take_and_give_pytrees(step):
    params = {"w": np.float32([1, 2, 3]), "n": np.int32(7)}
    for rate in (1.0, np.float32(1)):
        out = step(params, jnp.float32([1, 1, 1]), rate=rate)
        np.testing.assert_array_equal(out["w"], [0, 1, 2])
        assert out["n"] == 8 and out["n"].dtype == np.int32


def test_strided_arguments(step):
    x = np.arange(6, dtype=np.float32)[::2]
    out = step({"w": np.zeros(3, np.float32), "n": 0}, x, rate=1.0)
    np.testing.assert_array_equal(out["w"], [0, -2, -4])


def test_wrong_arguments_are_errors(step):
    params = {"w": np.ones(3, np.float32), "n": np.int32(4)}
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="step: a program in C must be called with the structure"):
        step(params, rate=1.0)
    with pytest.raises(ShapeError, match=r"argument x must be of shape \(3,\); got \(4,\)"):
        step(params, np.ones(4, np.float32), rate=1.0)
    with pytest.raises(DtypeError, match="argument x must be of dtype float32; got float64"):
        step(params, x.astype(np.float64), rate=1.0)


def test_compilers():
    assert find_compiler("gcc -m64") == ["gcc", "-m64"]
    with pytest.raises(RuntimeError, match="build: a compiler of C must be installed; got none of"):
        find_compiler("no-such-compiler")
    program = export.to_c(jnp.sin)(np.float32(1))
    with pytest.raises(RuntimeError, match="build: the compiler must accept the source; got exit"):
        program.build(flags=["--no-such-flag"])


def test_float0_arguments_and_results():
    fun = weft.grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True)
    x, n = np.float32(3), np.int32(2)
    got = export.to_c(fun)(x, n).build()(x, n)
    assert got[0] == 2 and got[1].dtype == weft.dtypes.float0


def test_a_built_function_outlives_its_program():
    call = export.to_c(lambda x: x + 1, name="one")(np.float32(1)).build()
    assert call(np.float32(2)) == 3 and call(np.float32(4)) == 5
    assert repr(call) == "CFunction(one)"


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast"])
def test_flags_of_a_program_do_not_change_the_process(flag):
    """A library that GCC links with them would have the processor flush subnormal numbers."""
    program = export.to_c(lambda x: x * 0.5)(np.float32(1)).build(flags=[flag])
    assert program(np.float32(3)) == 1.5
    assert np.float32(1e-38) * np.float32(0.5) > 0
