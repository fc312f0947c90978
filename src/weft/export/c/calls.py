"""`compile_in_c`: a pass of `jit` that replaces a program by a call of its compiled C source.

The call goes through XLA's FFI, so a jitted function has its usual arrays, devices and fast path.
"""

from __future__ import annotations

import ctypes
import pathlib
import tempfile
import threading
from typing import Any

from jaxlib import _jax

from weft.api.ffi_call import ffi_call
from weft.api.shape_struct import ShapeDtypeStruct
from weft.core.jaxpr import Jaxpr
from weft.core.stage import stage_closed
from weft.export.c.compiler import FLAGS, find_compiler, run_compiler
from weft.export.c.files import write_header
from weft.export.c.names import make_identifier
from weft.export.c.program import prepare_jaxpr
from weft.export.c.sizes import Limits
from weft.export.c.source import Parameter, Signature, Source, write_source
from weft.ffi import include_dir, pycapsule, register_ffi_target
from weft.options import config
from weft.passes.physical import has_extended, physical_jaxpr
from weft.random import key_data, wrap_key_data
from weft.xla.diskcache import cache_key, disk_cache, fingerprint

# Code for this machine. Sums keep their order and products are not fused with sums, as in `to_c`.
MORE_FLAGS = ("-march=native", "-fno-math-errno", "-ffp-contract=off", "-shared", "-fPIC")
HANDLER = """\
#include <xla/ffi/api/c_api.h>

XLA_FFI_Error *weft_handle(XLA_FFI_CallFrame *frame);

XLA_FFI_Error *weft_handle(XLA_FFI_CallFrame *frame) {{
  XLA_FFI_Metadata_Extension *const asked = (XLA_FFI_Metadata_Extension *)frame->extension_start;
  if (asked && asked->extension_base.type == XLA_FFI_Extension_Metadata) {{
    XLA_FFI_Metadata *const told = asked->metadata;
    told->api_version.major_version = XLA_FFI_API_MAJOR;
    told->api_version.minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }}
  {name}({arguments});
  return NULL;
}}
"""
_loading = threading.Lock()  # a target is registered once


def compile_in_c(jaxpr: Jaxpr, *, finite_math: bool = False) -> Jaxpr:
    """Return a program that calls the program compiled from C, as a pass of `jit`.

    It is for small arrays on the CPU, where XLA's overhead for each operation and each loop step
    is longer than the computation: loops over a few numbers, filters, equations of motion.
    `jit(f, compiler_options={"backend": "c"})` runs it on a function and its derivatives; `to_c`
    writes the same source. The system's compiler compiles it once; the library is stored in the
    disk cache. Large products and convolutions are slower than XLA's.

    Args:
      jaxpr: a program of arrays and random keys, whose sizes are numbers.
      finite_math: True promises that no argument and no intermediate result is NaN or infinite, and
        that the signs of zeros do not matter, as in `to_c`. Only constants of `jaxpr` itself are
        known to be zero. In passes of `jit`, arrays that a function closes over are arguments of
        `jaxpr`. With `compiler_options={"backend": "c", "finite_math": True}` small ones are
        constants.

    Returns:
      A program of the same arguments and results, whose only operation is an `ffi_call`.

    Raises:
      NotImplementedError: an operation cannot be computed by C; the message names its line.
      RuntimeError: the library is not in the disk cache, and no C compiler is installed.

    >>> step = weft.jit(lambda x: x * x + 1, passes=[weft.export.compile_in_c])
    >>> step(np.float32([2, 3]))
    Array([ 5., 10.], dtype=float32)
    >>> options = {"backend": "c", "finite_math": True}
    >>> turn = np.float32([[1, 0.5], [0, 1]])
    >>> weft.jit(lambda x: turn @ x, compiler_options=options)(np.float32([2, 4]))
    Array([4., 4.], dtype=float32)
    """
    plain = physical_jaxpr(jaxpr) if has_extended(jaxpr) else jaxpr
    source = write_call(plain, finite_math)
    target = load_target(source)
    outs = [ShapeDtypeStruct(a.shape, a.dtype) for a in plain.out_avals]
    work = [ShapeDtypeStruct((source.workspace,), "uint8")] * bool(source.workspace)
    call = ffi_call(target, [*outs, *work], vmap_method="sequential")

    def call_on_words(*xs: Any) -> list[Any]:
        words = [x if a.physical is a else key_data(x) for x, a in zip(xs, jaxpr.in_avals)]
        results = zip(call(*words), jaxpr.out_avals)
        return [y if a.physical is a else wrap_key_data(y, dtype=a.dtype) for y, a in results]

    called, consts = stage_closed(call_on_words, jaxpr.in_avals)
    assert not consts
    return called


def compile_finite_in_c(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program compiled from C for finite numbers, as a pass of `jit`."""
    return compile_in_c(jaxpr, finite_math=True)


def write_call(jaxpr: Jaxpr, finite: bool = False) -> Source:
    """Return the source of a closed program, whose arguments and results have numbers for names."""
    expanded, given = prepare_jaxpr(jaxpr, ())
    parameters = [
        Parameter(f"a{n}", f"argument {n}", a, not a.shape and Parameter("", "", a).kind.by_value)
        for n, a in enumerate(given)
    ]
    results = [Parameter(f"y{n}_", f"result {n}", a) for n, a in enumerate(expanded.out_avals)]
    name = make_identifier(f"{jaxpr.name or 'program'}_in_c")
    signature = Signature(name, parameters, results, Limits([], ()))
    return write_source(expanded, signature, finite=finite)


def write_handler(source: Source) -> str:
    """Return the function that XLA calls, which calls the program."""
    listed = []
    for n, p in enumerate(source.parameters):
        data = f"((XLA_FFI_Buffer *)frame->args.args[{n}])->data"
        listed.append(f"*(const {p.kind.stored} *){data}" if p.by_value else data)
    count = len(source.results) + bool(source.workspace)
    listed += [f"((XLA_FFI_Buffer *)frame->rets.rets[{n}])->data" for n in range(count)]
    listed += ["NULL"] * (not source.workspace)
    return HANDLER.format(name=source.name, arguments=",\n      ".join(listed))


def load_target(source: Source) -> str:
    """Compile a program, or take it from the disk cache, and register it; the target's name."""
    text = f"{source.text}\n{write_handler(source)}"
    # Not the compiler: a library from the disk cache is loaded where no compiler is installed, too.
    key = cache_key(text, *FLAGS, *MORE_FLAGS, fingerprint())
    target = f"{source.name}_{key}"
    with _loading:
        if target not in _jax.custom_call_targets("Host"):
            disk = disk_cache(config.compilation_cache_dir)
            library = disk.get(key)
            if library is None:
                library = compile_call(source, text)
                disk.put(key, library)
            with tempfile.NamedTemporaryFile(suffix=".so") as file:
                file.write(library)
                file.flush()
                loaded = ctypes.CDLL(file.name)  # which is never unloaded
            register_ffi_target(target, pycapsule(loaded.weft_handle))
    return target


def compile_call(source: Source, text: str) -> bytes:
    """Compile a program and its handler; the bytes of the library."""
    command = [*find_compiler(), *FLAGS, *MORE_FLAGS]
    with tempfile.TemporaryDirectory(prefix="weft-c-") as name:
        folder = pathlib.Path(name)
        (folder / f"{source.name}.c").write_text(text)
        (folder / f"{source.name}.h").write_text(write_header(source))
        out = folder / "call.so"
        files: list[Any] = [f"-I{include_dir()}", "-o", out, folder / f"{source.name}.c", "-lm"]
        run_compiler([*command, *map(str, files)])
        return out.read_bytes()
