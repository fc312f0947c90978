"""The smaller names of interpreters.ad."""

import numpy as np

import weft
from weft import make_jaxpr
from weft.interpreters import ad

X = np.linspace(-1, 1, 3).astype(np.float32)
Y = X + 2


def test_names_of_ad():
    zero = ad.Zero(weft.typeof(X))
    assert ad.add_tangents(zero, 2.0) == ad.add_tangents(2.0, zero) == 2.0
    assert ad.add_tangents(1.0, 2.0) == ad.add_jaxvals(1.0, 2.0) == 3.0
    np.testing.assert_array_equal(ad.instantiate_zeros(zero), 0 * X)
    np.testing.assert_array_equal(ad.zeros_like_aval(weft.typeof(X)), 0 * X)
    jaxpr = make_jaxpr(lambda x: 3.0 * x)(X).jaxpr
    (ct,) = ad.backward_pass(jaxpr, False, (), [ad.UndefinedPrimal(weft.typeof(X))], [Y])
    np.testing.assert_allclose(ct, 3 * Y)
