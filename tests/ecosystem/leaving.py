"""Check that a function of arrays leaves Python: as an ONNX model and as a program in C.

Under the switch both must give what the function gives. On JAX there is nothing to check, and the
numbers that the function gives are recorded, which those under the switch are compared with.
"""

import sys

import jax
import numpy as np

IS_WEFT = "weft.compat" in sys.modules
RTOL, ATOL = 2e-5, 2e-6


def check(fun, record, *args):
    """Record the results of a function; compare them with those of its ONNX model and of its C."""
    want = jax.jit(fun)(*args)
    record(want)
    if not IS_WEFT:
        return
    from weft import export

    args = jax.tree.map(np.asarray, args)
    leaves = [np.asarray(x) for x in jax.tree.leaves(want)]
    compare = lambda a, b: np.testing.assert_allclose(a, b, RTOL, ATOL * max(1, np.abs(b).max()))
    for found, x in zip(
        jax.tree.leaves(export.to_c(fun)(*args).build()(*args)), leaves, strict=True
    ):
        compare(found, x)
    import onnxruntime

    program = export.to_onnx(fun)(*args)
    session = onnxruntime.InferenceSession(
        program.model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [x.name for x in session.get_inputs()]
    given = dict(zip(names, jax.tree.leaves(args), strict=True))
    for y, x in zip(session.run(None, given), leaves, strict=True):
        compare(y, x)
