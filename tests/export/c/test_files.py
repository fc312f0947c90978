"""The files of a saved program: they compile, and the example runs."""

import re
import subprocess

import numpy as np
import pytest

import weft.numpy as jnp
from weft import export
from weft.export.c.compiler import WARNINGS, find_compiler


def model(params, x, n):
    return {"y": jnp.tanh(x @ params["w"]) * n, "z": jnp.fft.fft(x[0])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    params = {"w": np.ones((3, 4), np.float32)}
    program = export.to_c(model)(params, np.ones((2, 3), jnp.bfloat16), np.int32(2))
    return program.save(tmp_path_factory.mktemp("saved") / "model")


def test_files(folder):
    assert sorted(p.name for p in folder.iterdir()) == [
        "CMakeLists.txt", "main.c", "model.c", "model.h", "model.hpp", "model.rs",
    ]  # fmt: skip
    header = (folder / "model.h").read_text()
    assert "params_w: float [3][4], the argument params['w']" in header
    assert "x: uint16_t [2][3], bfloat16 as its bits, the argument x" in header
    assert "const float *params_w, const uint16_t *x, int32_t n" in header
    assert re.search(r"#define MODEL_WORKSPACE \d+", header)


def test_the_example_runs(folder):
    files = [str(folder / "main.c"), str(folder / "model.c")]
    out = str(folder / "main")
    command = [*find_compiler(), "-std=c99", *WARNINGS, "-Werror", *files, "-o", out, "-lm"]
    subprocess.run(command, check=True)
    told = subprocess.run([out], check=True, capture_output=True, text=True).stdout
    values = dict(re.findall(r"(\w+)\[0\] = (\S+)", told))
    assert float(values["result_y"]) == pytest.approx(np.tanh(3), rel=1e-3)
    assert float(values["result_z"]) == 3


def test_cpp(folder):
    text = '#include "model.hpp"\nint main() { ModelProgram p; return p.params_w_size != 12; }\n'
    (folder / "use.cpp").write_text(text)
    out = str(folder / "use")
    warnings = ["-std=c++17", "-Wall", "-Wextra", "-pedantic"]
    if "gcc" not in find_compiler()[0]:
        pytest.skip("needs g++")
    made = ["g++", *warnings, "-c", str(folder / "use.cpp"), "-o", out]
    subprocess.run(made, check=True)


def test_weights_in_a_file(tmp_path):
    table, more = np.linspace(0, 1, 30, dtype=np.float32), np.arange(3, dtype=np.int8)

    def fun(i):
        return jnp.asarray(table)[i] + jnp.asarray(more)[i % 3], jnp.asarray(table)

    program = export.to_c(fun, name="lookup", weights="file")(np.int32(1))
    assert "static const" not in program.source
    assert re.search(r"#define LOOKUP_WEIGHTS \d+\n", program.header)
    got, want = program.build(flags=["-O1", *WARNINGS, "-Werror"])(np.int32(5)), fun(np.int32(5))
    np.testing.assert_allclose(got[0], want[0])
    np.testing.assert_array_equal(got[1], table)
    folder = program.save(tmp_path)
    files = [str(folder / "main.c"), str(folder / "lookup.c")]
    command = [*find_compiler(), "-std=c99", *WARNINGS, "-Werror", *files, "-o", "main", "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    told = subprocess.run(["./main"], check=True, capture_output=True, text=True, cwd=folder)
    assert f"result_0[0] = {1 + table[1]:g}" in told.stdout
    with pytest.raises(ValueError, match="weights must be in the source of a program for WebAs"):
        program.build("wasm32")
    with pytest.raises(ValueError, match="to_c: weights must be 'source' or 'file'; got 'disk'"):
        export.to_c(fun, weights="disk")
