"""Programs of kernels: how they are written, what the kernel refuses, the header in C++."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from tests.cpu.instructions import NAMED, OPCODES, format_program
from weft import ffi
from weft.cpu import kernels
from weft.cpu.opcodes import DTYPES, MAX_SLOTS, Kind, Operand, Step, encode_program
from weft.errors import JaxRuntimeError

needs_kernels = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")
SCALAR, PER_ROW, SHARED_ROW, FULL = Kind
BOOL, I32, F16, F32, F64 = map(np.dtype, ("bool", "int32", "float16", "float32", "float64"))
TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.skipif(
    not (kernels.FOLDER / "opcodes.h").exists(), reason="a wheel has no sources of kernels"
)
@pytest.mark.parametrize(
    "tool, name", [("make_opcodes", "opcodes.h"), ("make_formulas", "derived.h")]
)
def test_headers_are_what_the_tools_write(tool, name):
    write = f"import {tool} as tool, sys; sys.stdout.write(tool.write_header())"
    made = subprocess.run(
        [sys.executable, "-c", write], cwd=TOOLS, capture_output=True, text=True, check=True
    )
    assert (kernels.FOLDER / name).read_text() == made.stdout, f"run python tools/{tool}.py"


def step(name, *fields):
    return Step(NAMED[name], *fields)


def write_softmax(row):
    operands = [Operand("x", FULL), Operand("one", SCALAR)]
    steps = [
        step("convert_element_type", "wide", FULL, F32, ["x"]),
        step("reduce_max", "most", PER_ROW, F32, ["wide"]),
        step("spread", "all", FULL, F32, ["most"]),
        step("sub", "less", FULL, F32, ["wide", "all"]),
        step("exp", "e", FULL, F32, ["less"]),
        step("reduce_sum", "sum", PER_ROW, F32, ["e"]),
        step("div", "inverse", PER_ROW, F32, ["one", "sum"]),
        step("spread", "factor", FULL, F32, ["inverse"]),
        step("mul", "y", FULL, F32, ["e", "factor"]),
        step("convert_element_type", "out", FULL, F16, ["y"]),
    ]
    return encode_program(operands, steps, row, 4)


def test_a_program_as_text():
    assert (
        format_program(write_softmax(100))
        == """\
rows of 100 elements, 4 for a thread
0: full
1: scalar
15 = convert_element_type(0): full float32
0 = reduce_max(15): per_row float32
0 = spread(0): full float32
0 = sub(15, 0): full float32
0 = exp(0): full float32
15 = reduce_sum(0): per_row float32
15 = div(1, 15): per_row float32
15 = spread(15): full float32
15 = mul(0, 15): full float32
0 = convert_element_type(15): full float16"""
    )


def test_what_rows_share_is_computed_first():
    operands = [Operand("x", FULL, 5), Operand("g", SHARED_ROW)]
    steps = [
        step("convert_element_type", "wide", FULL, F32, ["x"]),
        step("convert_element_type", "factor", SHARED_ROW, F32, ["g"]),
        step("mul", "y", FULL, F32, ["wide", "factor"]),
    ]
    assert (
        format_program(encode_program(operands, steps, 64, 2))
        == """\
rows of 64 elements, 2 for a thread
0: full from element 5
1: shared_row
15 = convert_element_type(1): shared_row float32
1 = convert_element_type(0): full float32
1 = mul(1, 15): full float32"""
    )


def test_programs_of_too_many_values():
    operands = [Operand(i, FULL) for i in range(MAX_SLOTS)]
    add = step("add", "y", FULL, F32, [0, 1])
    assert encode_program(operands, [add], 16, 1) is None
    assert encode_program(operands[:-1], [add], 16, 1) is not None
    assert encode_program([*operands, Operand("more", FULL)], [add], 16, 1) is None
    chain = [step("neg", i + 1, FULL, F32, [i]) for i in range(81)]
    assert encode_program(operands[:1], chain[:80], 16, 1) is not None
    assert encode_program(operands[:1], chain, 16, 1) is None


def run_program(code, out, *operands):
    return ffi.ffi_call("weft_program", out)(*operands, program=np.asarray(code, np.int64))


@needs_kernels
@pytest.mark.parametrize("row", [1, 15, 16, 17, 33, 64])
def test_rows_of_each_length(row):
    x = np.random.default_rng(0).standard_normal((7, row)).astype(np.float16)
    one = np.float32(1)
    y = run_program(write_softmax(row), weft.ShapeDtypeStruct(x.shape, x.dtype), x, one)
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(-1, keepdims=True), rtol=1e-3, atol=1e-6)


@needs_kernels
def test_operands_of_each_kind():
    rng = np.random.default_rng(0)
    for rows, row in itertools.product([1, 3, 40], [5, 16, 23, 64]):
        x = rng.standard_normal(rows * row + 3).astype(np.float32)
        g, number = x[:row] + 1, np.float32(2)
        operands = [Operand("x", FULL, 3), Operand("g", SHARED_ROW), Operand("n", SCALAR)]
        steps = [
            step("mul", "gg", SHARED_ROW, F32, ["g", "n"]),
            step("mul", "y", FULL, F32, ["x", "gg"]),
            step("lt", "small", FULL, BOOL, ["y", "n"]),
            step("select_n", "z", FULL, F32, ["small", "y", "x"]),
        ]
        code = encode_program(operands, steps, row, 2)
        z = run_program(code, weft.ShapeDtypeStruct((rows, row), F32), x, g, number)
        x = x[3:].reshape(rows, row)
        y = x * (g * number)
        np.testing.assert_array_equal(z, np.where(y < number, x, y))


# A program of 20 elements from the third on: its numbers by place, and forbidden values of each.
PLACES = {
    "row": (0, [0, -1, 1 << 62]), "piece": (1, [0, -1, 1 << 62]),
    "operands": (2, [0, 1, 3, -1, 17, 1 << 62]),
    "kind": (3, [PER_ROW, 4, -1, 1 << 62]), "start": (4, [6, -1, (1 << 63) - 1, -(1 << 63)]),
    "kind of a scalar": (5, [FULL, PER_ROW]),
    "opcode": (7, [-1, len(OPCODES), 1 << 62, OPCODES["reduce_sum"], OPCODES["and"]]),
    "kind of a result": (8, [SCALAR, PER_ROW, SHARED_ROW, 4, -1]),
    "dtype": (9, [0, DTYPES[F16], DTYPES[I32], 3, 99, -1]),
    "slot": (10, [-1, MAX_SLOTS, 1 << 62, 1]),
    "operand": (11, [-1, MAX_SLOTS, 1 << 62, 14]),
    "last dtype": (15, [DTYPES[F32], DTYPES[F64], 0]), "last operand": (17, [14]),
}  # fmt: skip


def write_comparison():
    steps = [step("mul", "y", FULL, F32, ["x", "n"]), step("lt", "z", FULL, BOOL, ["n", "y"])]
    return encode_program([Operand("x", FULL, 2), Operand("n", SCALAR)], steps, 16, 1)


@needs_kernels
def test_what_is_no_program():
    x, number, out = np.arange(25, dtype=F32), np.float32(3), weft.ShapeDtypeStruct((20,), BOOL)
    good = write_comparison()
    np.testing.assert_array_equal(run_program(good, out, x, number), x[2:22] * 3 > 3)
    wrong = [good[:n] for n in (0, 2, 5, 7, 9, 12, len(good) - 1)] + [[*good, 1]]
    for place, values in PLACES.values():
        wrong += [[*good[:place], value, *good[place + 1 :]] for value in values]
    for code in wrong:
        with pytest.raises(JaxRuntimeError, match="the program must be one for such operands"):
            run_program(code, out, x, number).block_until_ready()
    for other in ((x[:21], number), (x,), (x, number, x), (x.astype(np.int32), number)):
        with pytest.raises(JaxRuntimeError, match="the program must be one for"):
            run_program(good, out, *other).block_until_ready()
    long = weft.ShapeDtypeStruct((24,), BOOL)
    with pytest.raises(JaxRuntimeError, match="the program must be one for"):
        run_program(good, long, x, number).block_until_ready()


@needs_kernels
@pytest.mark.parametrize(
    "steps",
    [
        [step("exp", "y", PER_ROW, F32, ["x"])],
        [step("reduce_sum", "s", FULL, F32, ["x"])],
        [step("reduce_sum", "s", PER_ROW, F32, ["x"]), step("add", "y", FULL, F32, ["x", "s"])],
        [step("add", "s", PER_ROW, F32, ["g", "g"]), step("spread", "y", FULL, F32, ["s"])],
        [step("spread", "y", FULL, F32, ["x"])],
        [step("neg", "s", SHARED_ROW, F32, ["x"]), step("add", "y", FULL, F32, ["x", "s"])],
        [step("neg", "s", SHARED_ROW, F32, ["g"])],
        [step("select_n", "y", FULL, F32, ["x", "x", "x"])],
        [step("clamp", "y", FULL, F32, ["i", "x", "x"])],
        [step("convert_element_type", "y", FULL, np.dtype(np.int64), ["x"])],
        [step("floor", "y", FULL, I32, ["i"])],
        [],
    ],
)  # fmt: skip
def test_steps_that_do_not_fit(steps):
    x = np.ones((3, 20), F32)
    operands = [Operand("x", FULL), Operand("g", SHARED_ROW), Operand("i", FULL)]
    code = encode_program(operands, steps, 20, 1)
    with pytest.raises(JaxRuntimeError, match="the program must be one for"):
        out = weft.ShapeDtypeStruct(x.shape, steps[-1].dtype if steps else F32)
        run_program(code, out, x, x[0], x.astype(np.int32)).block_until_ready()


@needs_kernels
def test_results_take_no_slot_that_is_read_later():
    x, g = np.ones((3, 16), F32), np.ones(16, F32)
    out = weft.ShapeDtypeStruct(x.shape, F32)
    head = [16, 1, 2, FULL, 0, SHARED_ROW, 0]
    code = lambda name, slot, *reads: [OPCODES[name], FULL, DTYPES[F32], slot, *reads]
    run_program([*head, *code("add", 0, 0, 1)], out, x, g)
    for steps in (code("add", 1, 0, 1), [*code("add", 2, 0, 1), *code("neg", 1, 2)]):
        with pytest.raises(JaxRuntimeError, match="the program must be one for"):
            run_program([*head, *steps], out, x, g).block_until_ready()
    wider = [OPCODES["convert_element_type"], FULL, DTYPES[F64], 0, 0]  # over its operand
    with pytest.raises(JaxRuntimeError, match="the program must be one for"):
        run_program([*head, *wider], weft.ShapeDtypeStruct(x.shape, F64), x, g).block_until_ready()
