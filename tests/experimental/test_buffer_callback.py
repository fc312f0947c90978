"""Python functions that write into the buffers of results."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.experimental.buffer_callback import ExecutionStage, buffer_callback

X = np.arange(3, dtype=np.float32)
seen = []


def fill(ctx, out, x, *, y):
    assert ctx.stage is ExecutionStage.EXECUTE and (out["s"].writeable, x.writeable) == (
        True,
        False,
    )
    seen.append((out["s"].shape, x.ndim, x.dtype))
    np.asarray(out["s"])[...] += np.asarray(x) + np.asarray(y["z"])


@pytest.mark.parametrize("aliases, extra", [(None, 0), ({0: 0}, X)])
def test_results_are_what_is_written(aliases, extra):
    f = buffer_callback(fill, {"s": X}, input_output_aliases=aliases)
    for g in (f, weft.jit(f)):
        np.testing.assert_array_equal(g(X, y={"z": 2 * X})["s"], 3 * X + extra)


@pytest.mark.parametrize("method", ["sequential", "broadcast_all", "expand_dims"])
def test_mapped_calls(method):
    f = buffer_callback(fill, {"s": jnp.float32(0)}, vmap_method=method)
    got = weft.vmap(lambda x: f(x, y={"z": 1.0}))(X)["s"]
    np.testing.assert_array_equal(got, X + 1)
    assert seen[-1][0] == (() if method == "sequential" else (3,))


def test_effects_and_errors():
    seen.clear()
    quiet = buffer_callback(lambda ctx, out: seen.append(1), (), has_side_effect=True)
    weft.jit(quiet)()
    weft.effects_barrier()
    assert seen == [1]
    with pytest.raises(Exception, match="must write into its results, and return None; got 3"):
        buffer_callback(lambda ctx, out: 3, X)()
    view = []
    buffer_callback(lambda ctx, out, x: view.append(np.from_dlpack(x) + 0), X)(X)
    np.testing.assert_array_equal(view[0], X)
    with pytest.raises(Exception, match="read-only"):
        buffer_callback(lambda ctx, out, x: np.asarray(x).fill(0), X)(X)
