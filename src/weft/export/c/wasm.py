"""Programs as WebAssembly: compiled by zig, and called from Python by wasmtime.

A module imports nothing. It has the function of the program, its memory and `__heap_base`, from
which on memory is free.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.export.c.compiler import Calling, run_compiler
from weft.export.c.memory import ALIGNMENT
from weft.export.c.source import Source

PAGE = 1 << 16  # bytes, of WebAssembly's memory
FLAGS = ("-std=c99", "-O3", "-target", "wasm32-wasi", "-mexec-model=reactor", "-s")


def find_package(name: str) -> bool:
    """Return True if a package is installed."""
    return importlib.util.find_spec(name) is not None


def find_zig() -> list[str]:
    """Return the command of zig's compiler of C; RuntimeError if there is none."""
    if find_package("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    if shutil.which("zig"):
        return ["zig", "cc"]
    raise RuntimeError(
        "build: zig must be installed for target 'wasm32'; got neither the package ziglang nor zig "
        "on PATH. Hint: pip install weft[c]."
    )


def compile_wasm(source: Source, header: str, flags: Sequence[str] = ()) -> bytes:
    """Compile a source to a module of WebAssembly; its bytes."""
    if source.weights is not None:
        raise ValueError(
            f"{source.name}: weights must be in the source of a program for WebAssembly; got a "
            "file. Hint: to_c(f, weights='source')."
        )
    with tempfile.TemporaryDirectory(prefix="weft-c-") as name:
        folder = pathlib.Path(name)
        (folder / f"{source.name}.c").write_text(source.text)
        (folder / f"{source.name}.h").write_text(header)
        out = folder / "model.wasm"
        names = [source.name, "__heap_base"] + [f"{source.name}_workspace"] * bool(source.sizes)
        exports = [f"-Wl,--export={name}" for name in names]
        run_compiler(
            [*find_zig(), *FLAGS, *flags, *exports, "-o", str(out),
             str(folder / f"{source.name}.c"), "-lm"]
        )  # fmt: skip
        return out.read_bytes()


class WasmFunction(Calling):
    """A program as WebAssembly, which is called as the function in Python is.

    Results are NumPy arrays in the pytree of the function's results. It has one memory: calls must
    not be made by several threads at the same time.

    Attributes:
      module: the bytes of the module.
    """

    def __init__(self, source: Source, module: bytes, trees: Any, select: Any, restore: Any):
        super().__init__(source, trees, select, restore)
        self.module = module
        if not find_package("wasmtime"):
            raise RuntimeError(
                "build: wasmtime must be installed to call target 'wasm32'; got no such package. "
                "Hint: pip install weft[c], or to_web(folder), which needs zig only."
            )
        wasmtime: Any = importlib.import_module("wasmtime")
        self._store = wasmtime.Store()
        compiled = wasmtime.Module(self._store.engine, module)
        self._exports = wasmtime.Instance(self._store, compiled, []).exports(self._store)
        if "_initialize" in self._exports:
            self._exports["_initialize"](self._store)

    def run(self, sizes: Sequence[int], given: Sequence[Any], outs: Sequence[np.ndarray]) -> None:
        """Call the function with symbolic sizes, on arrays and numbers, and fill results."""
        store, memory = self._store, self._exports["memory"]
        at = self._exports["__heap_base"].value(store)
        places = []
        for p, x in zip((*self.source.parameters, *self.source.results), (*given, *outs),
                        strict=True):  # fmt: skip
            at += -at % ALIGNMENT
            places.append(at)
            at += 0 if p.by_value else x.nbytes
        at += -at % ALIGNMENT
        size = self.source.workspace
        if sizes:
            size = self._exports[f"{self.source.name}_workspace"](store, *sizes) % (1 << 32)
        more = at + size - memory.data_len(store)
        if more > 0:
            memory.grow(store, -(-more // PAGE))
        values: list[Any] = [*sizes]
        for p, x, place in zip(self.source.parameters, given, places, strict=False):
            if p.by_value:
                values.append(as_number(x, p.kind.bits))
            else:
                memory.write(store, x.tobytes(), place)
                values.append(place)
        rest = places[len(given) :]
        self._exports[self.source.name](store, *values, *rest, at)
        for y, place in zip(outs, rest, strict=True):
            data = memory.read(store, place, place + y.nbytes)
            y[...] = np.frombuffer(bytes(data), y.dtype).reshape(y.shape)


def as_number(x: Any, bits: int) -> int | float:
    """Return a number as WebAssembly takes it: integers with a sign, of 32 bits or of 64."""
    if isinstance(x, float):
        return x
    size = 64 if bits == 64 else 32
    low = int(x) % (1 << size)
    return low - (1 << size) if low >> (size - 1) else low
