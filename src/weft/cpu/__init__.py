"""What XLA's CPU compiler is given in place of a program: quicker forms, and calls of kernels.

`prepare_jaxpr` in passes.py runs the passes of this folder, from jaxpr to jaxpr. Nothing outside
the folder knows of them but run/pipeline.py, which calls it.
"""
