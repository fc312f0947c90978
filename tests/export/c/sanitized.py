"""Programs in C run under the sanitizers of addresses and of undefined behaviour.

Each call is in a process of its own, on memory of exactly the sizes that a header says.
"""

import math
import pathlib
import subprocess
import tempfile

import numpy as np

from weft.export.c.compiler import find_compiler
from weft.export.c.kinds import PARTS, list_elements
from weft.export.dims import evaluate_size
from weft.export.solving import solve_sizes
from weft.pytrees import flatten

FLAGS = ("-std=c99", "-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
CALL = """\
static void call_{n}(void) {{
{declarations}
  unsigned char *work = malloc({work} + !{work});
  if (!work) abort();
  for (size_t k = 0; k < sizes[{n}]; ++k) work[k] = 0x7f;
  {name}({arguments}work);
{writes}
{frees}
  free(work);
}}
"""


def write_call(n, program, leaves):
    """A function of C that calls a program, and writes the bytes of its results."""
    source, known = program._source, find_sizes(program, leaves)
    declarations, writes, frees = [], [], []
    arguments = [str(known[name]) for name in source.limits.names]
    for k, (p, x) in enumerate(zip(source.parameters, leaves, strict=True)):
        texts = list_elements(np.asarray(x, p.aval.dtype), p.kind)
        if p.by_value:
            arguments.append(texts[0])
            continue
        count, stored = len(texts), PARTS.get(p.kind.name, p.kind).stored
        declarations += [
            f"  static const {stored} v{k}[{max(count, 1)}] = {{{', '.join(texts) or '0'}}};",
            f"  {stored} *a{k} = malloc({count} * sizeof *a{k} + !{count});",
            f"  if (!a{k}) abort();",
            f"  memcpy(a{k}, v{k}, {count} * sizeof *a{k});",
        ]
        arguments.append(f"(const {p.kind.stored} *)a{k}")
        frees.append(f"  free(a{k});")
    for k, r in enumerate(source.results):
        size = evaluate_size(r.aval.size, known) * np.dtype(r.aval.dtype).itemsize
        declarations += [
            f"  {r.kind.stored} *r{k} = malloc({size} + !{size});",
            f"  if (!r{k}) abort();",
        ]
        arguments.append(f"r{k}")
        writes.append(f"  fwrite(r{k}, 1, {size}, stdout);")
        frees.append(f"  free(r{k});")
    return CALL.format(
        n=n,
        name=source.name,
        declarations="\n".join(declarations),
        arguments="".join(f"{a}, " for a in arguments),
        work=evaluate_size(source.workspace, known),
        writes="\n".join(writes),
        frees="\n".join(frees),
    )


def find_sizes(program, leaves):
    """The symbolic sizes of a call."""
    source = program._source
    wanted = [p.aval for p in source.parameters]
    return solve_sizes(
        source.name,
        wanted,
        [a.update(shape=np.shape(x)) for a, x in zip(wanted, leaves, strict=True)],
    )


def run_sanitized(calls, flags=WARNINGS):
    """Run programs, which have different names, on arguments; the flat results of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        includes, bodies, files = [], [], []
        for n, (program, args) in enumerate(calls):
            leaves, _ = flatten((args, {}))
            bodies.append(write_call(n, program, leaves))
            includes.append(f'#include "{program.name}.h"')
            (path / f"{program.name}.c").write_text(program.source)
            (path / f"{program.name}.h").write_text(program.header)
            files.append(str(path / f"{program.name}.c"))
        heads = [f"#include <{h}.h>" for h in ("math", "stdio", "stdlib", "string")]
        main = "\n".join(f"  call_{n}();" for n in range(len(calls)))
        sizes = ", ".join(
            str(evaluate_size(p.report().workspace_bytes, find_sizes(p, flatten((args, {}))[0])))
            for p, args in calls
        )
        heads.append(f"static const size_t sizes[] = {{{sizes}}};")
        text = "\n".join([*includes, *heads, "", *bodies, f"int main(void) {{\n{main}\n}}\n"])
        (path / "main_.c").write_text(text)
        out = str(path / "main_")
        command = [*find_compiler(), *FLAGS, *flags, *files, str(path / "main_.c"), "-o", out]
        done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr[:3000]
        ran = subprocess.run([out], capture_output=True, check=False)
        assert not ran.returncode, ran.stderr.decode()[:3000]
    return split_results(calls, ran.stdout)


def split_results(calls, data):
    """The results that calls wrote, in order."""
    found, at = [], 0
    for program, args in calls:
        outs, known = [], find_sizes(program, flatten((args, {}))[0])
        for r in program._source.results:
            shape = [evaluate_size(n, known) for n in r.aval.shape]
            size = math.prod(shape) * np.dtype(r.aval.dtype).itemsize
            outs.append(np.frombuffer(data[at : at + size], r.aval.dtype).reshape(shape))
            at += size
        found.append(outs)
    assert at == len(data)
    return found
