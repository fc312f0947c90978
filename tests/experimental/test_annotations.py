"""Hints for the compiler: attributes, scheduling groups, layouts, memories, passes."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import ShapeError
from weft.experimental import multihost_utils, profiler, topologies
from weft.experimental.compilation_cache import compilation_cache
from weft.experimental.fused import fused
from weft.experimental.layout import Format, Layout, with_layout_constraint
from weft.experimental.scheduling_groups import scheduling_group
from weft.experimental.xla_metadata import set_xla_metadata
from weft.extend import xla

X = np.ones((2, 3), np.float32)


def lines(f, *args, has):
    """The names of the operations of a lowered function in whose line there is a text."""
    text = weft.jit(f).lower(*args).as_text()
    return [
        line.split('"')[1].removeprefix("stablehlo.") for line in text.split("\n") if has in line
    ]


def noted(x):
    with set_xla_metadata(a="b", n=3, t=True):
        y = jnp.sin(x)
    return y + set_xla_metadata(jnp.cos(x), c='"d"')


def test_attributes_are_where_they_were_set():
    assert lines(noted, 1.0, has='{a = "b", n = "3", t = "true"}') == ["sine"]
    assert lines(noted, 1.0, has=r'{c = "\"d\""}') == ["cosine"]
    assert lines(noted, 1.0, has="frontend_attributes") == ["sine", "cosine"]
    f = set_xla_metadata(jnp.sin, k="v")
    assert lines(weft.grad(f), 1.0, has='k = "v"')[0] == "cosine"
    assert 'k="v"' in weft.jit(f).lower(1.0).compile().as_text()
    assert lines(set_xla_metadata(f, k="w", m="x"), 1.0, has='{k = "v", m = "x"}') == ["sine"]
    same = weft.vmap(weft.grad(noted))(X[0])
    np.testing.assert_allclose(same, np.cos(1) - np.sin(1) * np.ones(3), rtol=1e-6)
    with pytest.raises(
        TypeError, match=r"set_xla_metadata: attributes must be .*; got \[1\] for a"
    ):
        set_xla_metadata(1.0, a=[1])


def test_scheduling_groups_are_calls():
    f = lambda x: scheduling_group("g")(jnp.sin)(x) * 2
    assert lines(f, 1.0, has='scheduling_group = "g"') == ["func.call"]


def test_layouts_within_programs():
    f = lambda x: with_layout_constraint(x * 3, Layout((1, 0)))
    assert "dense<[0, 1]> : tensor<2xindex>]}" in weft.jit(f).lower(X).as_text()
    np.testing.assert_array_equal(weft.jit(f)(X), 3 * X)
    np.testing.assert_array_equal(weft.grad(lambda x: f(x).sum())(X), 3 * X)
    stacked = weft.vmap(f, in_axes=1, out_axes=1)
    assert "dense<[0, 2, 1]>" in weft.jit(stacked).lower(np.ones((2, 5, 3), np.float32)).as_text()
    for layout, error in [(3, TypeError), (Layout((0,)), ShapeError)]:
        with pytest.raises(error, match="with_layout_constraint: "):
            with_layout_constraint(X, layout)


def test_results_go_to_memories():
    f = fused(out_spaces=(weft.memory.Space.Device,))(lambda x: (2 * x,))
    np.testing.assert_array_equal(f(X)[0], 2 * X)
    with pytest.raises(ShapeError, match="fused: there must be a memory for each result; got 1"):
        fused(out_spaces=(weft.memory.Space.Device,))(lambda x: (x, x))(X)


def test_passes_of_the_users_own():
    seen = []
    xla.register_hlo_module_transformation(lambda module: seen.append(len(module)), name="look")
    try:
        with weft.config.scope(enable_compilation_cache=False):
            weft.jit(lambda x: x + 1.5)(1.0)
    finally:
        assert xla.clear_hlo_module_transformation("look")
    assert len(seen) == 1 and not xla.clear_hlo_module_transformation("look")
    with pytest.raises(TypeError, match="stage must be a PipelineStage; got 3"):
        xla.clear_hlo_module_transformation("look", 3)


def test_topologies():
    there = topologies.get_attached_topology()
    mesh = topologies.make_mesh(there, (len(there.devices),), ("x",))
    assert mesh.axis_names == ("x",)
    with pytest.raises(NotImplementedError, match="must have a plugin that describes devices; got"):
        topologies.get_topology_desc("h100", platform="cpu")


def test_where_programs_and_profiles_are(tmp_path):
    before = weft.config.compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path)
        assert weft.config.compilation_cache_dir == str(tmp_path)
        compilation_cache.reset_cache()
        assert weft.config.compilation_cache_dir is None and compilation_cache.is_initialized()
    finally:
        weft.config.update("compilation_cache_dir", before)
    with pytest.raises(FileNotFoundError, match="the directory must hold a profile; got"):
        profiler.get_profiled_instructions_proto(tmp_path)


def test_parts_of_processes_by_their_types():
    mesh, x = weft.make_mesh((1,), ("x",)), weft.typeof(X)
    given = {"global_mesh": mesh, "pspec": weft.P("x")}
    assert multihost_utils.ltg_abstract_eval(x, **given) is multihost_utils.gtl_abstract_eval(
        x, **given
    )
    whole = multihost_utils.host_local_array_to_global_array_impl(X, **given)
    assert whole.sharding.spec == weft.P("x")
    np.testing.assert_array_equal(
        multihost_utils.global_array_to_host_local_array_impl(whole, **given), X
    )
    y, dim = multihost_utils.ltg_batcher(None, None, (X,), (0,), mesh, weft.P("x"))
    assert (dim, y.sharding.spec) == (0, weft.P(None, "x"))


# --- layouts that arrays cannot have ----------------------------------------------------------

BY_COLUMNS = "must be row by row; got (1, 0)"
ONE_AXIS = "must name each axis of the array once; got (0,) for 2 axes"
PLACED = {  # a call with a format
    "device_put": lambda x, f: weft.device_put(x, f),
    "out_shardings": lambda x, f: weft.jit(lambda x: x + 1, out_shardings=f)(x) - 1,
    "in_shardings": lambda x, f: weft.jit(lambda x: x + 0, in_shardings=f)(x),
}


@pytest.mark.parametrize("name", PLACED)
def test_a_layout_is_given_or_refused(name):
    """No program of ours stores its results in another order, so a request for one is an error."""
    x = jnp.arange(6.0).reshape(2, 3)
    form = lambda layout: Format(layout, x.sharding)
    for layout in (None, Layout((0, 1)), x.format.layout):
        np.testing.assert_array_equal(PLACED[name](x, form(layout)), x)
    with pytest.raises(NotImplementedError, match=re.escape(BY_COLUMNS)):
        PLACED[name](x, form(Layout((1, 0))))
    with pytest.raises(ValueError, match=re.escape(ONE_AXIS)):
        PLACED[name](x, form(Layout((0,))))
    if name == "device_put":
        with pytest.raises(ValueError, match="a layout that says an order; got Format.layout=AUTO"):
            PLACED[name](x, form(Layout.AUTO))
    else:
        np.testing.assert_array_equal(PLACED[name](x, form(Layout.AUTO)), x)


def test_a_layout_within_a_program_is_no_request():
    """There device_put moves nothing, as in JAX."""
    x = jnp.arange(6.0).reshape(2, 3)
    by_columns = Format(Layout((1, 0)), x.sharding)
    out = weft.jit(lambda x: weft.device_put(x, by_columns) + 1)(x)
    np.testing.assert_array_equal(out, x + 1)
