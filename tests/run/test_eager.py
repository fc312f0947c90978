"""Operations one by one: compiled once for each type, placed where their operands are."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.primitives.elementwise import add_p
from weft.run import eager

TWO_DEVICES = """
import numpy as np, pickle, weft, weft.numpy as jnp
first, second = weft.devices()
V = np.ones(3)
x = jnp.arange(3.0)
a, b = weft.device_put(x, first), weft.device_put(x, second)
def place(y):
    return y.device.id, y.committed
"""


def in_process(program, **environment):
    """Run a program in a new process; return its output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_two_devices(program):
    """Run a program after `TWO_DEVICES` where there are two CPU devices."""
    return in_process(TWO_DEVICES + textwrap.dedent(program), WEFT_NUM_CPU_DEVICES="2")


# --- compiled once ---------------------------------------------------------------------------


def test_one_compile_for_each_type(executables):
    x, y = jnp.ones(7), jnp.ones((7, 2))
    for _ in range(3):
        add_p.apply(x, x), add_p.apply(y, y), add_p.apply(x, 1.5)
    assert len(executables) <= 3
    weft.clear_caches()
    del executables[:]
    for _ in range(3):
        add_p.apply(x, x)
    assert len(executables) == 1


def test_python_numbers_share_a_kernel(executables):
    x = jnp.ones(11)
    x * 0.1375
    del executables[:]  # of numbers that are met often there are arrays
    assert [float((x * c)[0]) for c in (0.375, 0.4375, 2.625)] == [0.375, 0.4375, 2.625]
    assert [float((c + x)[0]) for c in (1.375, 2.375)] == [2.375, 3.375]
    assert len(executables) <= 2  # of the addition and of the index, but of no number


def test_one_kernel_for_each_set_of_parameters(executables):
    x = jnp.ones((2, 3, 5))
    weft.clear_caches()
    del executables[:]
    for _ in range(2):
        for axes in ((0, 1, 2), (2, 1, 0)):
            lax.transpose(x, axes)
    assert len(executables) == 1  # the identity compiles nothing


def test_an_operation_that_fails_leaves_nothing_behind():
    before = len(eager.KERNELS)
    for _ in range(2):
        with pytest.raises(TypeError, match="add"):
            add_p.apply(jnp.ones(3), jnp.ones(4))
    assert len(eager.KERNELS) <= before + 1
    assert add_p.apply(jnp.ones(3), jnp.ones(3))[0].tolist() == [2, 2, 2]


# --- Python's numbers ---------------------------------------------------------------------------


def test_integers_wrap_in_the_dtype_of_the_array():
    assert (jnp.int8(5) + 300).tolist() == 49 and (jnp.int8(5) + 300).dtype == np.int8
    assert (jnp.uint8(5) + -1).tolist() == 4 and (jnp.uint8(5) - 6).tolist() == 255
    assert (jnp.int8(127) + 1).tolist() == -128
    assert (jnp.bfloat16(1) + 2).dtype == jnp.bfloat16


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40, 2**63, 2**70])
def test_integers_that_no_default_integer_holds_are_refused(number):
    for use in (lambda: jnp.int32(3) + number, lambda: jnp.int8(3) * number):
        with pytest.raises(OverflowError, match=f"got {number}"):
            use()
    with pytest.raises(OverflowError):
        jnp.asarray(number)
    assert (jnp.ones(()) + 2**31).dtype == np.float32


def test_weak_types_follow_python():
    assert (jnp.asarray(1) + 1).weak_type and not (jnp.int32(1) + 1).weak_type
    assert (jnp.asarray(1) + 1.5).dtype == np.float32
    assert (jnp.float16(1) + 1.5).dtype == np.float16


# --- placed ------------------------------------------------------------------------------------


def test_operations_run_where_their_operands_are_bound():
    on_two_devices("""
        for made in (b + 1, b + x, x + b, b * np.ones(3), jnp.sin(b), b[0], b[1:], b.sum(), b @ b,
                     b.at[0].set(1), b.reshape(3, 1), jnp.stack([b, x]), weft.jit(jnp.sin)(b),
                     weft.grad(lambda v: (v * v).sum())(b), weft.vmap(jnp.sin)(b), jnp.array(b)):
            assert place(made) == (1, True), made
        for made in (a + 1, a + x, a.sum(), weft.device_put(b, first), b.to_device(first)):
            assert place(made) == (0, True), made
        assert place(x + 1) == (0, False) and place(x) == (0, False)
        f = weft.jit(lambda v, w: v * w)
        for _ in range(3):
            assert place(f(b, x)) == (1, True) and place(f(x, x)) == (0, False)
            assert place(f(b, np.ones(3, np.float32))) == (1, True)
            assert (f(b, x) == x * x).all()
        assert np.asarray(b).tolist() == [0, 1, 2]
        assert bytes(memoryview(b)) == np.asarray(x).tobytes()
        assert float(b[1]) == 1 and np.from_dlpack(b).tolist() == [0, 1, 2]
        assert place(pickle.loads(pickle.dumps(b))) == (0, False)
        assert a.sharding != b.sharding and place(weft.device_put(b)) == (1, True)
        assert place(weft.jit(lambda v: v, device=second)(x)) == (1, True)
    """)


def test_operands_bound_to_two_devices_are_refused():
    on_two_devices("""
        text = ("array: operands must be on one device, or over one mesh; got f32[3] on "
                "CpuDevice(id=1) where another is on CpuDevice(id=0). "
                "Hint: weft.device_put(x, y.sharding).")
        for use in (lambda: a + b, lambda: jnp.add(a, b), lambda: jnp.stack([a, b]), lambda: a @ b,
                    lambda: weft.jit(lambda v, w: v + w)(a, b), lambda: jnp.where(a > 0, a, b)):
            for _ in range(2):
                try:
                    use()
                    raise SystemExit("no error")
                except ValueError as error:
                    assert "CpuDevice(id=0)" in str(error) and "CpuDevice(id=1)" in str(error)
        try:
            a + b
        except ValueError as error:
            assert str(error) == text, error
        assert place(weft.device_put(a, second) + b) == (1, True)
    """)


def test_the_default_device():
    on_two_devices("""
        with weft.default_device(second):
            z = jnp.arange(3.0)
            for made in (z, jnp.zeros(3), jnp.asarray(1.0), weft.device_put(V), x + 1, x[0],
                         jnp.add(1, 2), weft.jit(jnp.sin)(x), weft.jit(lambda: jnp.ones(3))()):
                assert place(made) == (1, False), made
            assert place(a + 1) == (0, True) and place(jnp.asarray(x)) == (0, False)
        for made in (z + 1, x + z, weft.jit(jnp.sin)(z), jnp.zeros(3)):
            assert place(made) == (0, False), made
        assert place(z) == (1, False) and place(z + a) == (0, True) and place(z + b) == (1, True)
        with weft.default_device("cpu"):
            assert place(jnp.zeros(3)) == (0, False)
    """)


def test_one_executable_on_disk_for_each_device(tmp_path):
    program = "assert (b + 1).tolist() == [1, 2, 3] == (a + 1).tolist(); print(place(b + 1))"
    environment = {"WEFT_NUM_CPU_DEVICES": "2", "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # the second time from the disk
        assert in_process(TWO_DEVICES + program, **environment) == "(1, True)\n"
