"""The rows of the conformance suite as ONNX models: the list of them, and comparisons."""

import ctypes

import numpy as np
import onnx
import onnxruntime
from ml_dtypes import bfloat16

from tests.export.c.rows import Row, list_rows
from tests.primitives.test_conformance import check_value
from weft import export
from weft.core.aval import words_of
from weft.options import config

__all__ = ["Row", "list_rows", "run_model", "run_row"]


def run_model(program, *args):
    """The results of a model in onnxruntime, after onnx has checked it."""
    onnx.checker.check_model(program.model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(program.model.SerializeToString(), options)
    held = {i.name for i in session.get_inputs()}
    given = {}
    for name, x in zip(program.inputs, args, strict=True):
        x = np.asarray(words_of(x))
        if x.dtype == bfloat16:
            bits = x.view(np.uint16)
            x = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
        else:
            x = onnxruntime.OrtValue.ortvalue_from_numpy(x)
        if name in held:
            given[name] = x
    outs = session.run_with_ort_values(None, given)
    return [read_value(v) for v in outs]


def read_value(value):
    """The array of a result; onnxruntime gives bfloat16 as the integers of its bits."""
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    shape = value.shape()
    held = ctypes.string_at(value.data_ptr(), 2 * int(np.prod(shape))) if 0 not in shape else b""
    return np.frombuffer(held, bfloat16).reshape(shape)


def run_row(row):
    """Return the reason why a row has no model, or its difference; "" if it agrees."""
    with config.scope(enable_x64=row.wide, hints=False):
        xs = row.arrays()
        try:
            program = export.to_onnx(lambda *xs: row.case.apply(*xs))(*xs)
        except NotImplementedError as error:
            return f"not in ONNX: {error}"
        try:
            outs = run_model(program, *xs)
        except Exception as error:
            return f"does not run: {type(error).__name__}: {error}"
        try:
            check_value(row.case, row.dtype, xs, outs)
        except AssertionError as error:
            return f"differs: {error}"
    return ""
