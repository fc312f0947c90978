"""Programs for XLA's CPU compiler: faster forms of operations, and calls of kernels.

`prepare_jaxpr` in passes.py runs the passes of this folder, from jaxpr to jaxpr. Nothing outside
the folder knows of them but run/pipeline.py, which calls it. The modules are imported when a
program is first compiled for a CPU, and those that few programs need when one needs them.
"""

from weft.util import import_lazily

MODULES = (
    "attention",
    "flags",
    "kernels",
    "matrices",
    "passes",
    "plain_call",
    "row_programs",
    "scope",
    "threads",
)
__getattr__, __dir__ = import_lazily(__name__, {f"weft.cpu.{name}": "" for name in MODULES})
