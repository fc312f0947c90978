"""Programs as ONNX models: `to_onnx` writes a function of arrays as a graph of ONNX operators.

From top to bottom: program.py takes a staged program; writer.py walks it, and has the loops and
branches; graph.py is a `Builder` that writes nodes instead of StableHLO. One table says how each
operation of StableHLO is written: OPERATIONS in operations.py, with its rows for operations on each
element in elementwise.py, for reductions and windows in windows.py, for gathers and scatters in
places.py, and for sums of products in products.py.
"""
