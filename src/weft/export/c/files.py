"""The files that go with a source: its header, a program that calls it, and how it is built."""

from __future__ import annotations

import pathlib

from weft.export.c.memory import ALIGNMENT
from weft.export.c.source import Source
from weft.export.dims import evaluate_size

HEADER = """\
/* {name}: written by weft.

{documents}

{weights}\
   Results and the workspace may not overlap each other or an argument. `workspace` is at
   least {wanted} bytes, aligned to {alignment} bytes, with any contents; threads need one each. */

#ifndef {upper}_H
#define {upper}_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
{complex}
#ifdef __cplusplus
extern "C" {{
#endif

{workspace}
{size}
{prototype};

#ifdef __cplusplus
}}
#endif

#endif
"""
COMPLEX = """
#ifndef WEFT_COMPLEX
#define WEFT_COMPLEX
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> weft_complex64;
typedef std::complex<double> weft_complex128;
#else
#include <complex.h>
typedef float complex weft_complex64;
typedef double complex weft_complex128;
#endif
#endif
"""
WEIGHTS = """\
   `weights` are the bytes of {name}.weights, aligned to 16 bytes, read or mapped to memory.

"""
SIZES = """\
   {name} returns 0. Sizes must be such that
     {limits},
   and small enough for memory. Otherwise {name} does nothing and returns 1, and
   {name}_workspace returns SIZE_MAX.

"""
FINITE = """\
   {name} is for finite numbers: it leaves out products by zeros, so a NaN or an infinity in
   arguments or between operations may be missing in results. Signs of zeros are not kept.

"""
READ_WEIGHTS = """\
  FILE *const file = fopen("{name}.weights", "rb");
  if (!file || fread(weights.bytes, 1, {upper}_WEIGHTS, file) != {upper}_WEIGHTS) {{
    fprintf(stderr, "{name}.weights cannot be read\\n");
    return EXIT_FAILURE;
  }}
  fclose(file);
"""
MAIN = """\
/* Calls {name} once, with arguments of ones. */

#include <stdio.h>
#include <stdlib.h>

#include "{name}.h"

static union {{
  unsigned char bytes[{size}];
  double aligned;
  long double most;
}} workspace{weights};

{arrays}

int main(void) {{
{read}{fills}
  {run}
{prints}
  return EXIT_SUCCESS;
}}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project({name} C)

set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library({name} STATIC {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
find_library(MATH_LIBRARY m)
if(MATH_LIBRARY)
  target_link_libraries({name} PUBLIC ${{MATH_LIBRARY}})
endif()

add_executable({name}_main main.c)
target_link_libraries({name}_main {name})
"""
CPP = """\
// A call of {name} from C++.
#include <vector>

#include "{name}.h"

struct {camel} {{
{fields}
  std::vector<double> workspace{workspace};

  {kind} operator()({parameters}) {{
{resize}    {returns}{name}({arguments}workspace.data());
  }}
}};
"""
RUST = """\
// A call of {name} from Rust of edition 2018 or newer. Link with the library of CMakeLists.txt:
// rustc --edition 2021 main.rs -L build -l static={name} -l m
use core::ffi::c_void;

{constant}extern "C" {{
{measure}    pub fn {name}(
{parameters}        workspace: *mut c_void,
    ){returns};
}}
"""
RUST_TYPES = {
    "b": "bool", "bf16": "u16", "f16": "u16", "c64": "[f32; 2]", "c128": "[f64; 2]",
}  # fmt: skip


def write_header(source: Source) -> str:
    """Return the header of a source."""
    lines = [f"   {p.name}: {p.shape_text}, the argument {p.path}" for p in source.parameters]
    lines += [f"   {r.name}: {r.shape_text}, the result {r.path}" for r in source.results]
    every = (*source.parameters, *source.results)
    upper, given = source.name.upper(), ", ".join(source.sizes)
    notes = "" if source.weights is None else WEIGHTS.format(name=source.name)
    if source.sizes:
        limits = source.limits.text.replace(" && ", ",\n     ")
        notes += SIZES.format(name=source.name, limits=limits)
    if source.finite:
        notes += FINITE.format(name=source.name)
    return HEADER.format(
        name=source.name,
        upper=upper,
        documents="\n".join(lines),
        alignment=ALIGNMENT,
        complex=COMPLEX if any(p.kind.letter == "c" for p in every) else "",
        wanted=f"{source.name}_workspace({given})" if given else f"{upper}_WORKSPACE",
        workspace=f"{source.measure};"
        if given
        else f"#define {upper}_WORKSPACE {source.workspace}",
        weights=notes,
        size=f"#define {upper}_WEIGHTS {len(source.weights)}\n"
        if source.weights is not None
        else "",
        prototype=name_complex(source.prototype),
    )


def name_complex(text: str) -> str:
    """Return declarations with the names of complex types that C and C++ share."""
    text = text.replace("float complex", "weft_complex64")
    return text.replace("double complex", "weft_complex128")


def write_main(source: Source) -> str:
    """Return a program that calls the function once, with small sizes where they are symbolic."""
    sizes = source.limits.find_sample()
    arrays, fills, prints = [], [], []
    call = [str(n) for n in sizes.values()]
    for p in source.parameters:
        size = max(evaluate_size(p.aval.size, sizes), 1)
        if p.by_value:
            call.append("1")
            continue
        arrays.append(f"static {p.kind.stored} {p.name}[{size}];")
        one = {"bf16": "0x3f80", "f16": "0x3c00"}.get(p.kind.name, "1")
        fills.append(f"  for (int i = 0; i < {size}; ++i) {p.name}[i] = {one};")
        call.append(p.name)
    for r in source.results:
        size = max(evaluate_size(r.aval.size, sizes), 1)
        arrays.append(f"static {r.kind.stored} {r.name}[{size}];")
        call.append(r.name)
        first = f"(double){'creal' * (r.kind.letter == 'c')}({r.name}[0])"
        prints.append(f'  printf("{r.name}[0] = %g\\n", {first});')
    call += [] if source.weights is None else ["weights.bytes"]
    run = f"{source.name}({', '.join([*call, 'workspace.bytes'])})"
    complex_header = "#include <complex.h>\n" * any("complex" in a for a in arrays)
    return complex_header + MAIN.format(
        name=source.name,
        upper=source.name.upper(),
        arrays="\n".join(arrays),
        weights="" if source.weights is None else ", weights",
        read=READ_WEIGHTS.format(name=source.name, upper=source.name.upper())
        if source.weights is not None
        else "",
        fills="\n".join(fills),
        size=max(evaluate_size(source.workspace, sizes), len(source.weights or b""), 1),
        run=f"if ({run}) return EXIT_FAILURE;" if sizes else f"{run};",
        prints="\n".join(prints),
    )


def write_cpp(source: Source) -> str:
    """Return a class of C++ that calls the function."""
    listed = [f"ptrdiff_t {n}" for n in source.sizes]
    listed += [name_complex(p.declare()) for p in source.parameters]
    listed += [name_complex(r.declare(True)) for r in source.results]
    names = [*source.sizes, *[p.name for p in (*source.parameters, *source.results)]]
    if source.weights is not None:
        listed.append("const void *weights")
        names.append("weights")
    fields = [
        f"  static constexpr int {p.name}_size = {p.aval.size};"
        for p in (*source.parameters, *source.results)
        if not p.by_value and type(p.aval.size) is int
    ]
    resize, known = (
        "",
        f" = std::vector<double>({source.name.upper()}_WORKSPACE / sizeof(double) + 2)",
    )
    if source.sizes:
        known = ""
        resize = (
            f"    const size_t bytes = {source.name}_workspace({', '.join(source.sizes)});\n"
            "    if (bytes == SIZE_MAX) return 1;\n"
            "    workspace.resize(bytes / sizeof(double) + 2);\n"
        )
    return CPP.format(
        name=source.name,
        camel="".join(w.capitalize() for w in source.name.split("_")) + "Program",
        fields="\n".join(fields),
        workspace=known,
        resize=resize,
        kind="int" if source.sizes else "void",
        returns="return " * bool(source.sizes),
        parameters=", ".join(listed),
        arguments="".join(f"{n}, " for n in names),
    )


def write_rust(source: Source) -> str:
    """Return declarations of Rust that call the function."""
    rows = [f"        {n}: isize,\n" for n in source.sizes]
    for p in source.parameters:
        element = RUST_TYPES.get(p.kind.name, p.kind.name)
        kind = element if p.by_value else f"*const {element}"
        rows.append(f"        {p.name}: {kind}, // {p.shape_text}\n")
    for r in source.results:
        element = RUST_TYPES.get(r.kind.name, r.kind.name)
        rows.append(f"        {r.name}: *mut {element}, // {r.shape_text}\n")
    if source.weights is not None:
        rows.append("        weights: *const c_void,\n")
    constant, measure = f"pub const WORKSPACE: usize = {source.workspace};\n\n", ""
    if source.sizes:
        taken = ", ".join(f"{n}: isize" for n in source.sizes)
        constant, measure = "", f"    pub fn {source.name}_workspace({taken}) -> usize;\n"
    return RUST.format(
        name=source.name,
        constant=constant,
        measure=measure,
        parameters="".join(rows),
        returns=" -> i32" * bool(source.sizes),
    )


def write_files(source: Source, header: str, folder: pathlib.Path) -> pathlib.Path:
    """Write all files of a program to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        f"{source.name}.c": source.text,
        f"{source.name}.h": header,
        "main.c": write_main(source),
        "CMakeLists.txt": CMAKE.format(name=source.name),
        f"{source.name}.hpp": write_cpp(source),
        f"{source.name}.rs": write_rust(source),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    if source.weights is not None:
        (folder / f"{source.name}.weights").write_bytes(source.weights)
    return folder
