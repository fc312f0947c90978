"""Symbolic sizes: arguments of the function in C, its arena, and the errors for other sizes.

tests/export/test_dynamic.py compares the values of its programs, as C too.
"""

import ctypes
import json
import shutil
import subprocess

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.sanitized import run_sanitized
from tests.export.c.test_wasm import needs_zig
from weft import export, lax
from weft.errors import ShapeError
from weft.export.c.compiler import WARNINGS, find_compiler
from weft.export.c.sizes import DOUBLE, JAVASCRIPT, find_typical, is_at_least, write_size

STRUCT = weft.ShapeDtypeStruct
NAMES = {"weft_floor": lambda a, b: a // b, "weft_max": max, "weft_min": min}


def model(params, x, key):
    """A scan over n rows, with intermediate results of n, k and n * k elements."""
    hidden, rows = lax.scan(lambda h, r: (jnp.tanh(h * 0.5 + r @ params), h), jnp.zeros(3), x)
    order = jnp.argsort(rows[:, 0])
    gram = jnp.sort(rows @ rows.T, axis=0)
    return {
        "hidden": hidden,
        "rows": rows[order],
        "gram": jnp.cumsum(gram @ x, 0),
        "count": x.shape[0],
    }


def specify(constraints=()):
    n, k = export.symbolic_shape("n, k", constraints=constraints)
    return STRUCT((k, 3), np.float32), STRUCT((n, k), np.float32), STRUCT((), np.int32)


def draw(n, k):
    rng = np.random.default_rng(n)
    return (
        rng.normal(size=(k, 3)).astype(np.float32),
        rng.normal(size=(n, k)).astype(np.float32),
        np.int32(1),
    )


@pytest.fixture(scope="module")
def program():
    return export.to_c(model)(*specify(["n >= 2", "n <= 9*k"]))


def same(got, want):
    weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-5), got, want)


def test_calls_with_any_sizes(program):
    call = program.build(flags=["-O0", *WARNINGS, "-Werror"])
    for n, k in ((2, 1), (7, 4)):
        same(call(*draw(n, k)), model(*draw(n, k)))
    with pytest.raises(ShapeError, match=r"where k = 3, n = 1: n >= 2 does not hold"):
        call(*draw(1, 3))
    with pytest.raises(ShapeError, match=r"n <= 9\*k does not hold"):
        call(*draw(10, 1))
    params, x, key = draw(4, 3)
    with pytest.raises(ShapeError, match="k is not 2"):
        call(params, x[:, :2], key)
    with pytest.raises(ShapeError, match=r"argument params must be of shape \(k, 3\); got \(3, 2"):
        call(params[:, :2], x, key)


def test_memory_is_as_large_as_it_has_to_be():
    sizes = ((2, 1), (3, 5))
    calls = [(export.to_c(model, name=f"model_{n}")(*specify()), draw(n, k)) for n, k in sizes]
    for (_, args), got in zip(calls, run_sanitized(calls), strict=True):
        same(got, weft.tree.leaves(model(*args)))


def test_the_function_refuses_wrong_sizes(program):
    library = ctypes.CDLL(str((call := program.build(flags=["-O0"])).library))
    measure = library.model_workspace
    measure.restype, measure.argtypes = ctypes.c_size_t, [ctypes.c_ssize_t] * 2
    unknown = 2 * (ctypes.c_size_t(-1).value // 2) + 1
    for k, n in ((1, 1), (0, 2), (-1, 2), (1, 10), (1 << 31, 2), ((1 << 31) - 1, (1 << 31) - 1)):
        assert measure(k, n) == unknown
        assert library.model(*map(ctypes.c_ssize_t, (k, n)), *[None] * 8) == 1
    sizes = [measure(k, n) for k, n in ((1, 2), (1, 3), (3, 3))]
    bound = program.report().workspace_bytes
    assert sizes == [bound.evaluate({"k": k, "n": n}) for k, n in ((1, 2), (1, 3), (3, 3))]
    assert call.source.sizes == ["k", "n"]


def test_the_header_says_how_large_and_for_which_sizes(program):
    header = program.header
    assert "params: float [k][3], the argument params" in header
    assert "x: float [n][k], the argument x" in header
    assert "size_t model_workspace(ptrdiff_t k, ptrdiff_t n);" in header
    assert "int model(ptrdiff_t k, ptrdiff_t n, const float *params" in header
    assert "n <= 9 * k" in header
    assert program.report().operations > 1000


def test_the_example_runs(program, tmp_path):
    folder = program.save(tmp_path / "model")
    out = str(folder / "main")
    files = [str(folder / "main.c"), str(folder / "model.c")]
    command = [*find_compiler(), "-std=c99", *WARNINGS, "-Werror", *files, "-o", out, "-lm"]
    subprocess.run(command, check=True)
    told = subprocess.run([out], check=True, capture_output=True, text=True).stdout
    assert "result_count[0] = 4\n" in told
    if "gcc" in find_compiler()[0]:
        text = '#include "model.hpp"\nint main() { ModelProgram p; return p.result_hidden_size; }\n'
        (folder / "use.cpp").write_text(text)
        subprocess.run(
            ["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", str(folder / "use.cpp")],
            check=True,
        )
    assert "n: isize" in (folder / "model.rs").read_text()


def test_names_in_c():
    (size,) = export.symbolic_shape("double")
    program = export.to_c(lambda n, double: n + double, name="f")(
        STRUCT((size,), np.float32), np.float32(1)
    )
    assert (
        "int f(ptrdiff_t double_, const float *n, float double__2, float *result" in program.header
    )
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(program.build(flags=["-O0"])(x, np.float32(2)), 3 * x)
    (size,) = export.symbolic_shape("f")
    with pytest.raises(ValueError, match="sizes must have names that are different in C; got f"):
        export.to_c(lambda x: x, name="f")(STRUCT((size,), np.float32))


def test_texts_of_sizes():
    n, k = export.symbolic_shape("n, k", constraints=["n >= 3"])
    sizes = [n, 2 * n * k - 3, (n + k) // 2, 5 - n * n, (n * k) % 3 + 1, weft.core.max_dim(n, k)]
    for size in sizes:
        for values in ({"n": 3, "k": 1}, {"n": 7, "k": 9}):
            want = size.evaluate(values)
            assert eval(write_size(size), NAMES, dict(values)) == want
            floor = {"floor": lambda x: x // 1, "fmax": max, "fmin": min}
            text = write_size(size, DOUBLE).replace("(double)", "")
            assert eval(text, floor, dict(values)) == want
    assert write_size((n + k) // 2, JAVASCRIPT) == "Math.floor((k + n) / (2))"
    assert find_typical(n * k + 1) == 64 * 64 + 1
    assert is_at_least(n, 3) and not is_at_least(n, 4) and not is_at_least(n, k)


@needs_zig
def test_webassembly(program, tmp_path):
    pytest.importorskip("wasmtime")
    call = program.build("wasm32")
    for n, k in ((3, 2), (8, 3)):
        same(call(*draw(n, k)), model(*draw(n, k)))
    if not shutil.which("node"):
        pytest.skip("needs node")
    folder = program.to_web(tmp_path / "web")
    (folder / "package.json").write_text('{"type": "module"}')
    params, x, key = draw(5, 2)
    given = {"params": params.ravel().tolist(), "x": x.ravel().tolist(), "key": int(key)}
    (folder / "test.js").write_text(
        'import { bind } from "./model.js";\nimport { readFileSync } from "node:fs";\n'
        'const { instance } = await WebAssembly.instantiate(readFileSync("model.wasm"), {});\n'
        f"const call = bind(instance), given = {json.dumps(given)};\n"
        "const out = call({ ...given, n: 5, k: 2 });\n"
        "let error; try { call({ ...given, n: 1, k: 2 }); } catch (e) { error = e.message; }\n"
        "console.log(JSON.stringify([Array.from(out.result_rows), error]));\n"
    )
    told = subprocess.run(["node", "test.js"], cwd=folder, capture_output=True, check=True)
    rows, error = json.loads(told.stdout)
    np.testing.assert_allclose(rows, np.ravel(model(params, x, key)["rows"]), 1e-4, 1e-5)
    assert error == "model: sizes must fit; got 2,1"
