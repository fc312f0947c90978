"""Compiling a source in C with a compiler of the system, and calling it from Python."""

from __future__ import annotations

import ctypes
import importlib.util
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.core.aval import words_of
from weft.errors import DtypeError, ShapeError
from weft.export.c.kinds import CTYPES
from weft.export.c.memory import ALIGNMENT
from weft.export.c.source import Parameter, Source
from weft.export.dims import evaluate_size
from weft.export.solving import solve_sizes
from weft.pytrees import PyTreeDef, flatten, unflatten

COMPILERS = ("gcc", "clang", "cc", "zig")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic")
FLAGS = ("-std=c99", "-O3")
# If GCC links a library with one of these, loading it makes the processor replace subnormal numbers
# by 0 from then on, in all of the process.
FLUSHING = frozenset(("-ffast-math", "-Ofast", "-funsafe-math-optimizations"))


def find_compiler(given: str | None = None) -> list[str]:
    """Return the command of a C compiler: the named one, or the first one that is installed.

    Raises RuntimeError if no compiler is found.
    """
    for name in (given,) if given else COMPILERS:
        words = shlex.split(name)
        if shutil.which(words[0]):
            return [*words, "cc"] if words == ["zig"] else words
    if not given and importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise RuntimeError(
        f"build: a compiler of C must be installed; got none of {given or ', '.join(COMPILERS)} on "
        "PATH. Hint: apt-get install gcc, or pip install ziglang."
    )


def run_compiler(command: Sequence[str]) -> None:
    """Run a compiler; raise RuntimeError with its error output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"build: the compiler must accept the source; got exit status {done.returncode} from "
            f"{shlex.join(command)}:\n{done.stderr[:4000]}"
        )


def compile_library(
    source: Source, header: str, compiler: str | None, flags: Sequence[str]
) -> pathlib.Path:
    """Compile a source to a shared library in a new folder; return the library's path."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-c-"))
    (folder / f"{source.name}.c").write_text(source.text)
    (folder / f"{source.name}.h").write_text(header)
    text, compiled, library = [folder / f"{source.name}.{kind}" for kind in ("c", "o", "so")]
    command = find_compiler(compiler)
    run_compiler([*command, *FLAGS, "-fPIC", "-c", "-o", str(compiled), str(text), *flags])
    linked = [flag for flag in flags if flag not in FLUSHING]
    run_compiler([*command, "-shared", "-o", str(library), str(compiled), *linked, "-lm"])
    return library


class Calling:
    """The calls of a compiled program: pytrees in and out, with checks of their types.

    Attributes:
      source: the program.
      in_tree: the structure of `(args, kwargs)`.
      out_tree: the structure of the result.
    """

    def __init__(
        self,
        source: Source,
        trees: tuple[PyTreeDef, PyTreeDef],
        select: Callable[[list], list],
        restore: Callable[[list], Any],
    ):
        self.source = source
        self.in_tree, self.out_tree = trees
        self._select, self._restore = select, restore

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source.name})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the program with arguments of the structure and types it was written for."""
        leaves, tree = flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                f"{self.source.name}: a program in C must be called with the structure it was "
                f"written for, {self.in_tree}; got {tree}."
            )
        given = []
        for x, p in zip(self._select(leaves), self.source.parameters, strict=True):
            array = self.read_argument(x, p)
            given.append(array[()].item() if p.by_value else array)
        sizes = self.find_sizes(given)
        outs = [
            np.empty([evaluate_size(n, sizes) for n in r.aval.shape], r.aval.dtype)
            for r in self.source.results
        ]
        self.run([sizes[n] for n in self.source.limits.names], given, outs)
        return unflatten(self.out_tree, self._restore(outs))

    def run(self, sizes: Sequence[int], given: Sequence[Any], outs: Sequence[np.ndarray]) -> None:
        """Call the function with symbolic sizes, on arrays and numbers, and fill results."""
        raise NotImplementedError

    def find_sizes(self, given: Sequence[Any]) -> Mapping[str, int]:
        """Return the symbolic sizes, for arguments whose shapes have them."""
        if not self.source.limits.names:
            return {}
        wanted = [p.aval for p in self.source.parameters]
        found = [
            a if p.by_value else a.update(shape=x.shape)
            for a, x, p in zip(wanted, given, self.source.parameters, strict=True)
        ]
        return solve_sizes(self.source.name, wanted, found)

    def read_argument(self, x: Any, p: Parameter) -> np.ndarray:
        """Return an argument as the program takes it."""
        x = words_of(x)
        array = np.asarray(x)
        if array.dtype != p.aval.dtype and type(x) in (bool, int, float, complex):
            array = array.astype(p.aval.dtype)
        if array.dtype != p.aval.dtype:
            raise DtypeError(
                f"{self.source.name}: argument {p.path} must be of dtype {p.aval.dtype}; got "
                f"{array.dtype}."
            )
        if not fits_shape(array.shape, p.aval.shape):
            raise ShapeError(
                f"{self.source.name}: argument {p.path} must be of shape {p.aval.shape}; got "
                f"{array.shape}."
            )
        return np.ascontiguousarray(array).reshape(array.shape)


def fits_shape(shape: Sequence[int], wanted: Sequence[Any]) -> bool:
    """Return True if a shape has the wanted rank and sizes. Symbolic sizes match any size."""
    return len(shape) == len(wanted) and all(
        n == size for n, size in zip(shape, wanted, strict=True) if type(size) is int
    )


class CFunction(Calling):
    """A compiled program, which is called as the function in Python is.

    Results are NumPy arrays in the pytree of the function's results. Each call has an arena of its
    own, so threads may call it at the same time.

    Attributes:
      library: the path of the shared library.
    """

    def __init__(
        self, source: Source, library: pathlib.Path, trees: Any, select: Any, restore: Any
    ):
        super().__init__(source, trees, select, restore)
        self.library = library
        loaded = ctypes.CDLL(str(library))
        count = len(source.sizes)
        self._call: Any = getattr(loaded, source.name)
        self._call.restype = ctypes.c_int if count else None
        self._measure: Any = getattr(loaded, f"{source.name}_workspace") if count else None
        if count:
            self._measure.restype = ctypes.c_size_t
            self._measure.argtypes = [ctypes.c_ssize_t] * count
        self._call.argtypes = (
            [ctypes.c_ssize_t] * count
            + [CTYPES[p.kind.name] if p.by_value else ctypes.c_void_p for p in source.parameters]
            + [ctypes.c_void_p] * (len(source.results) + 1 + (source.weights is not None))
        )
        self._weights = align_bytes(source.weights or b"")
        weakref.finalize(self, shutil.rmtree, library.parent, True)

    def run(self, sizes: Sequence[int], given: Sequence[Any], outs: Sequence[np.ndarray]) -> None:
        """Call the function with symbolic sizes, on arrays and numbers, and fill results."""
        size = self._measure(*sizes) if sizes else self.source.workspace
        work = np.empty(size + ALIGNMENT, np.uint8)
        start = work.ctypes.data + -work.ctypes.data % ALIGNMENT
        values = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in given]
        values += [y.ctypes.data for y in outs]
        values += [] if self.source.weights is None else [self._weights.ctypes.data]
        self._call(*sizes, *values, start)


def align_bytes(data: bytes) -> np.ndarray:
    """Return bytes at an address that is aligned as the arrays in them have to be."""
    memory = np.zeros(len(data) + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    memory[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return memory[start : start + len(data)]
