"""Reductions over axes split over devices equal those on one device, NaN included."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.mesh.mesh import make_mesh
from weft.mesh.spec import PartitionSpec as P
from weft.sharding import AxisType, NamedSharding

MESH = make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
BASE = np.random.default_rng(0).integers(-3, 3, size=(8, 4)).astype(np.float32)
COMPLEX = [
    "max", "min", "sum", "prod", "mean", "any", "ptp", "nansum", "nanprod", "cumsum", "sort",
]  # fmt: skip
NAMES = [
    *COMPLEX, "all", "argmax", "argmin", "std", "median", "nanmax", "nanmin", "nanmean", "nanstd",
    "nanmedian", "nanargmax", "cumprod", "nancumsum", "count_nonzero",
]  # fmt: skip


def places(x):
    """Arrays with NaN, and infinities, at other places, one array for each."""
    found = [x]
    for index in ((0, 0), (5, 2), (slice(None), 1)):
        y = x.copy()
        y[index] = np.nan
        found.append(y)
    y = x.copy()
    y[2], y[3] = np.inf, -np.inf
    return [*found, y]


def same(got, want):
    """Equal, where any NaN is as good as another."""
    got, want = np.asarray(got), np.asarray(want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    left = ~np.isnan(want)
    np.testing.assert_allclose(got[left], want[left], rtol=1e-5, atol=1e-6)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize(
    "name, kind",
    [*[(n, np.float32) for n in NAMES], *[(n, np.complex64) for n in COMPLEX]],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_reductions_over_devices(name, kind):
    fun, axes = getattr(jnp, name), (0, 1) if name == "sort" else (None, 0, 1)
    program = weft.jit(lambda x: [fun(x, axis=axis) for axis in axes])
    xs = places(BASE if kind is np.float32 else (BASE + 1j * BASE[::-1]).astype(kind))
    spread = NamedSharding(MESH, P("x", "y"))
    for x in xs:
        for got, want in zip(program(weft.device_put(x, spread)), program(x), strict=True):
            same(got, want)


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_extremum_of_complex_numbers_is_lexicographic(name):
    x = (BASE + 1j * BASE[::-1]).astype(np.complex64)
    for spec in (P("x", "y"), P("x"), P(None, "y"), P(("x", "y"))):
        spread = weft.device_put(x, NamedSharding(MESH, spec))
        for axis in (None, 0, 1, (1, 0)):
            got = weft.jit(lambda x, axis=axis: getattr(jnp, name)(x, axis=axis))(spread)
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis=axis))
