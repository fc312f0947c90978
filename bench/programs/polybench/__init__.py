"""The thirty kernels of PolyBench/C 4.2.1 (L.-N. Pouchet and others), from their mathematics.

Each is written here from the formulas of the suite's documentation, in float64 as there.
"""
