"""Programs as WebAssembly, called by wasmtime and by Node. They need ziglang, wasmtime, node."""

import importlib.util
import json
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest

import weft.numpy as jnp
from weft import export, random
from weft.export.c import wasm
from weft.export.c.wasm import as_number

HAS_ZIG = importlib.util.find_spec("ziglang") is not None or shutil.which("zig")
needs_zig = pytest.mark.skipif(not HAS_ZIG, reason="needs ziglang: pip install weft[c]")


def model(params, x, n, key):
    noise = random.normal(key, (2,))
    return {"y": jnp.tanh(x @ params["w"]) * n, "z": jnp.fft.fft(x[0]), "noise": noise}


def make_arguments():
    x = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    return {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}, x, np.int32(-2)


@needs_zig
def test_calls():
    pytest.importorskip("wasmtime")
    args = (*make_arguments(), random.key(3))
    program = export.to_c(model)(*args)
    call, want = program.build("wasm32"), program.build()(*args)
    assert call.module.startswith(b"\0asm")
    for _ in range(2):
        got = call(*args)
        for name, y in want.items():
            np.testing.assert_allclose(got[name], y, 1e-5, 1e-6)


@needs_zig
def test_memory_grows():
    pytest.importorskip("wasmtime")
    x = np.ones(300_000, np.float32)
    call = export.to_c(lambda x: jnp.sort(x) + x)(x).build("wasm32")
    np.testing.assert_array_equal(call(x), 2 * x)


@needs_zig
@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_a_folder_for_the_web(tmp_path):
    params, x, n = make_arguments()
    fun = lambda w, x, n, big: (x @ w * n, big + 1, x > 2)
    args = params["w"], x.astype(np.float32), n, np.uint32(4_000_000_000)
    folder = export.to_c(fun, name="model")(*args).to_web(tmp_path / "web")
    assert sorted(p.name for p in folder.iterdir()) == ["index.html", "model.js", "model.wasm"]
    (folder / "package.json").write_text('{"type": "module"}')
    given = {"w": args[0].ravel().tolist(), "x": args[1].ravel().tolist(), "n": -2,
             "big": 4_000_000_000}  # fmt: skip
    (folder / "test.js").write_text(
        'import { bind, load } from "./model.js";\nimport { readFileSync } from "node:fs";\n'
        'const { instance } = await WebAssembly.instantiate(readFileSync("model.wasm"), {});\n'
        f"const given = {json.dumps(given)}, out = bind(instance)(given);\n"
        "const call = await load();\ncall(given);\n"  # which reads the file
        'if (String(call(given).y) !== String(out.y)) throw new Error("load");\n'
        "console.log(JSON.stringify(Object.values(out).map((x) => Array.from(x))));\n"
    )
    told = subprocess.run(["node", "test.js"], cwd=folder, capture_output=True, check=True)
    y, big, mask = json.loads(told.stdout)
    np.testing.assert_allclose(y, (args[1] @ args[0] * n).ravel(), 1e-5)
    assert big == [4_000_000_001]
    assert mask == (args[1] > 2).ravel().astype(int).tolist()


def test_numbers_have_signs():
    assert as_number(4_000_000_000, 32) == 4_000_000_000 - 2**32
    assert as_number(-1, 8) == -1
    assert as_number(True, 8) == 1
    assert as_number(2**63, 64) == -(2**63)
    assert as_number(1.5, 64) == 1.5


def test_errors(monkeypatch):
    program = export.to_c(jnp.sin)(np.float32(1))
    with pytest.raises(ValueError, match="build: target must be None, for this machine, or 'wasm3"):
        program.build("riscv")
    monkeypatch.setattr(wasm, "find_package", lambda name: False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="build: zig must be installed for target 'wasm32'"):
        program.build("wasm32")
