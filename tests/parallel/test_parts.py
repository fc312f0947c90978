"""Python values in an eager shard_map; on many devices: on8/test_shard_map.py."""

import pickle

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, lax

MESH = weft.make_mesh((1,), ("x",))
X = np.array([1.5, -2.5], np.float32)


def at_once(f, **settings):
    return weft.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), **settings)


def test_values_are_shown_and_decide():
    seen = []

    def f(x):
        total = lax.psum(x.sum(), "x")
        seen.append(
            (str(x), f"{total}", bool(total < 0), float(total), total.item(), total.tolist())
        )
        seen.append(np.asarray(lax.psum(x, "x")).tolist())
        return x[: int(lax.psum(jnp.int32(1), "x"))]

    assert at_once(f)(X).tolist() == [1.5]
    head = "On cpu:0 at mesh coordinates (x,) = (0,):\n"
    assert seen == [
        (f"{head}[ 1.5 -2.5]\n", f"{head}-1.0\n", True, -1.0, -1.0, -1.0), [1.5, -2.5],
    ]  # fmt: skip


def test_what_differs_does_not_decide():
    text = (
        r"bool\(\): needs a value that is the same on all devices; got bool\[\]\{V:x\} made by "
        r"`x.sum\(\) > 0` at test_parts.py:\d+, which differs along 'x'. Hint: lax.psum\(x, 'x"
    )
    with pytest.raises(weft.errors.TracerBoolConversionError, match=text):
        at_once(lambda x: x if x.sum() > 0 else -x)(X)
    assert at_once(lambda x: x if x.sum() > 0 else -x, check_vma=False)(X).tolist() == [-1.5, 2.5]


def test_within_other_transformations_nothing_is_known():
    kept = []
    with pytest.raises(weft.errors.TracerBoolConversionError, match="needs a concrete value"):
        weft.jit(at_once(lambda x: x if lax.psum(x.sum(), "x") > 0 else -x))(X)
    at_once(lambda x: kept.append(x) or x)(X)
    with pytest.raises(weft.errors.UnexpectedTracerError):
        bool(kept[0].sum() > 0)
    assert str(kept[0]) == "Traced<f32[2]{V:x}>with<StageTrace>"
    with pytest.raises(weft.errors.ConcretizationTypeError, match="pickle: needs a concrete value"):
        at_once(lambda x: pickle.dumps(x))(X)
