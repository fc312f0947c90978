"""The table of shapes: it has every kernel of jaxlib's. tests/export runs each against it."""

import pytest

from weft.primitives.lapack_shapes import PREFIXES, find_pattern, fit_call


def test_every_kernel_is_in_the_table():
    from jaxlib.cpu import _lapack

    for target in _lapack.registrations():
        assert target.startswith(PREFIXES) and find_pattern(target, {}), target
    assert not find_pattern("lapack_sabcde_ffi", {}) and not find_pattern("lapack_spotrf", {})


@pytest.mark.parametrize(
    ("target", "operands", "results", "options", "fits"),
    [
        ("lapack_spotrf_ffi", [(5, 3, 3)], [(5, 3, 3), (5,)], {}, True),
        ("lapack_spotrf_ffi", [(5, 3, 3)], [(4, 3, 3), (5,)], {}, False),
        ("lapack_spotrf_ffi", [(5, 3, 3)], [(5, 3, 3)], {}, False),
        ("lapack_sgetrf_ffi", [(3, 4)], [(3, 4), (3,), ()], {}, True),
        ("lapack_sgetrf_ffi", [(3, 4)], [(3, 4), (4,), ()], {}, False),
        ("lapack_strsm_ffi", [(4, 4), (3, 4)], [(3, 4)], {"side": ord("R")}, True),
        ("lapack_strsm_ffi", [(4, 4), (3, 4)], [(3, 4)], {"side": ord("L")}, False),
        ("lapack_other_ffi", [(4, 4)], [(4, 4)], {}, False),
    ],
)
def test_shapes(target, operands, results, options, fits):
    assert fit_call(target, operands, results, options) == fits
