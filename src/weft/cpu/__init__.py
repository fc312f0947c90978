"""Programs for XLA's CPU compiler: faster forms of operations, and calls of kernels.

`prepare_jaxpr` in passes.py runs the passes of this folder, from jaxpr to jaxpr. Nothing outside
the folder knows of them but run/pipeline.py, which calls it.
"""
