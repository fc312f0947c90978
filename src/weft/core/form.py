"""`Form`: the fact that a platform may have a quicker way to compute a primitive.

A class attribute `form` names a family of ways. The platform's folder (cpu/) chooses among them.
"""

from __future__ import annotations

import enum


class Form(enum.Enum):
    """The families of ways to compute a primitive that platforms choose from."""

    __hash__ = object.__hash__  # by identity; that of `Enum` is in Python
    POWER = "a power, by default the square, as products"
    COMPLEMENT = "one minus a square, as a product"
    SORT = "a sort of rows by their first arrays"
    PARTITION = "a partition of rows about an element"
    TOP_K = "the largest elements of rows"
    RANKS = "the elements of rows that a sort would put at some places"
    PLACES = "the places of the elements that are true"
    MEMBERS = "the elements of a vector that are in another"
    SUM = "a sum over axes"
    LOGICAL = "a reduction of bits over axes: and, or, xor"
    REDUCED_PRODUCT = "a product over axes"
    SUM_OF_NUMBERS = "a sum over axes that skips NaN, or the number of elements that are not NaN"
    EXTREMUM = "the largest or the smallest element over axes"
    ARG_EXTREMUM = "the index of the largest or the smallest element along an axis"
    FUNCTION = "a function of each element, which takes far longer than a product does"
    POWER_OF_VALUES = "a power whose exponent is an operand"
    LOG_OF_SUM = "the logarithm of a sum of exponentials of each element"
    PRODUCT = "a product of matrices, or of stacks of them"
    CONVOLUTION = "a convolution"
    WINDOWS = "a reduction of arrays over windows"
    WINDOW_EXTREMUM = "the maximum or minimum of each window"
    SELECT_AND_SCATTER = "numbers added where an operand has the extremum of its window"
    SCATTER = "updates written to, or combined with, elements at indices"
    SLICE = "a part of an array, at places that are computed"
    UPDATE = "a part of an array replaced, at places that are computed"
    SCAN = "a loop that carries values"
    SPARSE_PRODUCT = "a product with a matrix of few entries"
    RESAMPLE = "a product with a matrix of bands"
    RESIZE = "an image resampled along an axis, each pixel from a few near it"
    FACTORS = "factors of matrices, or solutions, which LAPACK computes and others complete"
    CHOLESKY = "the lower Cholesky factor of matrices"
    LU = "the factors L and U of matrices, pivots, and the order of rows"
    QR = "a matrix with orthonormal columns, and a triangular one"
    PIVOTS = "the order of rows that pivots stand for"
    TRIANGULAR_SOLVE = "the solution of triangular systems"
    ZETA = "a special function that has zeta functions in its formula"
    QUOTIENT = "a division of each element"
    REMAINDER = "the remainder of a division of each element"
    RUNNING = "a running reduction along an axis"
    JOIN = "arrays one after another along an axis"
    STACK = "arrays along a new axis"
    TILE = "an array repeated along axes"
    FRAME = "an array within a frame of one value"
    FFT = "a Fourier transform"
    KEEP = "values that are to be in memory"
    ATTENTION = "means of values by weights of queries and keys, and their derivatives"
