"""Traced, Lowered and Compiled: what each says of itself, and calls of a compiled function."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config, jit
from weft.core.jaxpr import ClosedJaxpr
from weft.dtypes import float0
from weft.experimental.layout import Format, Layout
from weft.stages import ArgInfo

A = np.array([1.0, 2.0, 3.0], np.float32)
B = np.array([4.0, 5.0, 6.0], np.float32)


@pytest.fixture
def traced():
    f = jit(
        lambda p, x, n=2: {"y": p["a"] * x * n, "z": x + 1}, static_argnames="n", donate_argnums=1
    )
    return f.trace({"a": A}, B, n=3)


SORTS = [lambda x: jnp.median(x, 1), lambda x: jnp.sort(x, 1), lambda x: jnp.partition(x, 3, 1)]


@pytest.mark.parametrize("fun", SORTS, ids=["median", "sort", "partition"])
def test_a_program_for_another_platform(fun):
    """What is quick on the CPU, a kernel or a loop over bits, is not written for others."""
    traced = jit(fun).trace(np.ones((64, 64), np.float32))
    here = traced.lower(lowering_platforms=("cpu",))
    assert here.as_text() == traced.lower().as_text() and "weft_" in here.as_text()
    assert here.compile()(np.ones((64, 64), np.float32)).shape
    for platform in ("cuda", "rocm", "tpu"):
        lowered = traced.lower(lowering_platforms=(platform,))
        text = lowered.as_text()
        assert "weft_" not in text and ("stablehlo.sort" in text or platform == "tpu")
        assert ("stablehlo.while" in text) == (fun is SORTS[0] and platform == "tpu")
        assert lowered.cost_analysis()["bytes accessed"] > 0
        with pytest.raises(
            ValueError, match=f"for cpu, the platform .* for {platform}. Hint: weft"
        ):
            lowered.compile()


@pytest.mark.parametrize("names", [(), ("cpu", "cuda"), ("gpu",), "cuda"])
def test_platforms_that_cannot_be_lowered_for(names):
    with pytest.raises(ValueError, match="lowering_platforms must be one of cpu, cuda, rocm, tpu"):
        jit(jnp.sin).trace(1.0).lower(lowering_platforms=names)


def test_a_traced_function(traced):
    assert isinstance(traced.jaxpr, ClosedJaxpr)
    assert traced.fun_name == "<lambda>"
    assert traced.effects == frozenset()
    assert {k: str(a) for k, a in traced.out_avals.items()} == {"y": "f32[3]", "z": "f32[3]"}


@pytest.mark.parametrize("stage", [lambda t: t, lambda t: t.lower(), lambda t: t.lower().compile()])
def test_what_every_stage_knows_of_the_call(traced, stage):
    at = stage(traced)
    struct = weft.ShapeDtypeStruct((3,), np.float32)
    assert repr(at) == f"{type(at).__name__}(<lambda>: (f32[3], f32[3]) -> (f32[3], f32[3]))"
    assert at.in_tree == weft.tree.structure((({"a": 0}, 0), {}))
    assert at.out_tree == weft.tree.structure({"y": 0, "z": 0})
    found = {k: s.update(sharding=None) for k, s in at.out_info.items()}  # a compiled one has that
    assert found == {"y": struct, "z": struct}
    assert at.donate_argnums == (1,)
    (params, x), kwargs = at.args_info
    assert (params["a"].donated, x.donated, kwargs) == (False, True, {})
    assert isinstance(x, ArgInfo) and (x.shape, x.dtype) == ((3,), np.float32)
    assert str(at.in_avals[0][1]) == "f32[3]"
    assert weft.tree.map(lambda info: info.shape, at.args_info) == (({"a": (3,)}, (3,)), {})


def test_lowered_text():
    with config.scope(native=False):
        lowered = jit(lambda x: x * 2).lower(A)
    assert "stablehlo.multiply" in lowered.as_text()
    assert lowered.compiler_ir() == lowered.as_text("stablehlo") == lowered.as_text()
    assert "HloModule" in lowered.as_text("hlo") and "is_scheduled" not in lowered.as_text("hlo")
    for dialect, debug_info in itertools.product((None, "stablehlo", "hlo"), (False, True)):
        text = lowered.as_text(dialect, debug_info=debug_info)
        assert ("HloModule" in text) == (dialect == "hlo")
        assert ("test_stages.py" in text) == debug_info
    with pytest.raises(ValueError, match="'stablehlo' or 'hlo'; got 'foo'"):
        lowered.as_text("foo")


def test_compiled_properties():
    compiled = jit(lambda x: x * 2).lower(A).compile()
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] == 3.0
    with config.scope(native=False):
        lowered = jit(lambda x: x * 2 + x * 2).lower(A)  # the compiler sees that both are one
        assert lowered.cost_analysis()["flops"] == 9.0 > lowered.compile().cost_analysis()["flops"]
    assert compiled.memory_analysis().argument_size_in_bytes == 12
    assert compiled.runtime_executable() is not None
    assert compiled.input_shardings == ((weft.device_put(A).sharding,), {})
    assert compiled.output_shardings == weft.device_put(A).sharding


def test_formats():
    held = jnp.arange(5000.0)  # so large that the program takes it first
    zeros = np.zeros((), float0)
    f = jit(lambda x, unused, z, s: {"t": x.T + held[:2], "s": s + 1, "z": z})
    compiled = f.lower(np.ones((2, 3)), A, zeros, 1).compile()
    where = weft.device_put(A).sharding
    (x, unused, z, s), kwargs = compiled.input_formats
    assert x == Format(Layout((0, 1), ()), where) and s == Format(Layout((), ()), where)
    assert (unused, z, kwargs) == (Format(), Format(), {})
    out = compiled.output_formats
    assert out["t"].layout.major_to_minor == (0, 1) and out["s"].layout.major_to_minor == ()
    assert out["z"] == Format(None, where)
    assert compiled.input_shardings == ((where, None, None, where), {})
    assert compiled.output_shardings == dict.fromkeys("tsz", where)
    assert repr(Format(Layout((0,)))).startswith(
        "Format(layout=Layout(major_to_minor=(0,), tiling="
    )
    assert len({Format(), Format(None), Format(Layout((0,)))}) == 2
    assert weft.tree.map(lambda f: f.sharding, out) == dict.fromkeys("tsz", where)


def test_calls_of_a_compiled_function(traced):
    compiled = traced.lower().compile()
    out = compiled({"a": A}, B)
    np.testing.assert_array_equal(out["y"], A * B * 3)
    np.testing.assert_array_equal(compiled.call({"a": A}, B)["z"], B + 1)
    g = jit(lambda x, *, y: x + y).lower(A, y=B).compile()
    np.testing.assert_array_equal(g(A, y=B), A + B)
    unused = jit(lambda x, y: x * 2).lower(A, B).compile()
    np.testing.assert_array_equal(unused(A, B), A * 2)
    weak = jit(lambda x: x * 2).lower(1.0).compile()
    assert float(weak(np.float32(2))) == float(weak(2.0)) == 4.0
    np.testing.assert_array_equal(
        jit(lambda x: x * 2).lower(A).compile()(A.astype(np.float64)), A * 2
    )


def test_where_arguments_that_are_not_used_go():
    compiled = jit(lambda x, *, y: {"a": x}).lower(A, y=1).compile()
    place = weft.device_put(A).sharding
    assert compiled.input_shardings == ((place,), {"y": None})
    assert compiled.output_shardings == {"a": place}


def test_a_jitted_function_is_wrapped():
    assert isinstance(jit(lambda x: x), weft.stages.Wrapped)
    assert not isinstance(lambda x: x, weft.stages.Wrapped)


def test_a_compiled_function_takes_what_it_was_told_to():
    x = jnp.add(A, 1)
    compiled = jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()
    np.testing.assert_array_equal(compiled(x), A + 2)
    assert x.is_deleted()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda f: f(np.ones(4, np.float32)), "got f32[4] where argument 0 was f32[3]"),
        (lambda f: f(np.arange(3)), "got i32[3] where argument 0 was f32[3]"),
        (lambda f: f(A, A), "called with the structure it was compiled for"),
        (lambda f: f(y=A), "called with the structure it was compiled for"),
        (lambda f: f("a"), "got 'a' of type str"),
        (lambda f: weft.grad(lambda x: f(x)[0])(A), "got a tracer. Hint: call the jitted function"),
        (lambda f: jit(f)(A), "got a tracer"),
        (lambda f: weft.vmap(f)(np.stack([A, B])), "got a tracer"),
    ],
)
def test_what_a_compiled_function_refuses(call, text):
    with pytest.raises(TypeError) as caught:
        call(jit(lambda x: x * 2).lower(A).compile())
    assert text in str(caught.value)


def test_types_may_stand_for_arrays():
    struct = weft.ShapeDtypeStruct((3,), np.float32)
    np.testing.assert_array_equal(jit(lambda x: x * 2).lower(struct).compile()(A), A * 2)
    assert jit(lambda x: x * 2).eval_shape(struct) == struct
    wide = weft.ShapeDtypeStruct((3,), np.float64)
    assert jit(lambda x: x).lower(wide).out_info == struct
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        jit(lambda x: x)(struct)


def test_static_arguments_are_not_passed_to_a_compiled_function():
    compiled = jit(lambda x, s: x * len(s), static_argnums=1).lower(1.0, "abc").compile()
    assert float(compiled(2.0)) == 6.0


def test_float0_arguments_and_results():
    zeros = np.zeros(3, float0)
    f = jit(lambda x, t: (x, t, x > 1), donate_argnums=0)
    lowered = f.lower(A, zeros)
    assert [a.dtype for a in weft.tree.leaves(lowered.in_avals)] == [np.float32, float0]
    assert lowered.out_info[1].dtype == float0
    out = lowered.compile()(A, zeros)
    assert out[1].dtype == float0 and out[2].dtype == bool


def test_compiler_options():
    lowered = jit(lambda x: x * 2).lower(1.0)
    assert float(lowered.compile({"xla_cpu_enable_fast_math": True})(1.0)) == 2.0
    with pytest.raises(weft.errors.JaxRuntimeError, match="xla_nonsense"):
        lowered.compile({"xla_nonsense": True})


def test_module_as_hlo():
    lowered = jit(lambda x: x + 1).lower(np.float32(1))
    assert "ENTRY" in lowered.compiler_ir("hlo").as_hlo_text()
    assert lowered.compiler_ir() == lowered.compiler_ir("stablehlo") == lowered.as_text()


def test_costs_of_kernels_are_those_of_what_they_replace():
    x, v = jnp.ones((64, 64)), jnp.ones(5000)
    programs = [
        (lambda a: a @ a, x, 2 * 64**3),
        (weft.grad(lambda a: jnp.sum(jnp.tanh(a @ a))), x, 6 * 64**3),
        (lambda a: a.sum(0), x, 63 * 64),
        (jnp.sort, v, 5000),
        (lambda a: weft.lax.fori_loop(0, 5, lambda i, c: c @ c, a), x, 2 * 64**3),
    ]
    for fun, arg, least in programs:
        lowered = weft.jit(fun).lower(arg)
        for stage in (lowered, lowered.compile()):
            costs = stage.cost_analysis()
            assert least <= costs["flops"] < 60 * least and costs["bytes accessed"] >= arg.nbytes


def test_results_of_a_compiled_function_say_where_they_are():
    compiled = jit(lambda x: {"y": jnp.sin(x), "z": x.sum()}).lower(np.ones(3)).compile()
    found = compiled.out_info
    assert weft.tree.map(lambda s: s.sharding, found) == compiled.output_shardings
    assert (found["y"].shape, found["z"].dtype) == ((3,), np.float32)


def test_avals_stand_for_arrays():
    f = jit(lambda x, y: x @ y)
    avals = [weft.typeof(jnp.ones(shape)) for shape in ((2, 3), (3, 4))]
    assert f.lower(*avals).out_info.shape == (2, 4) == f.eval_shape(*avals).shape
    np.testing.assert_array_equal(f.lower(*avals).compile()(np.ones((2, 3)), np.ones((3, 4))), 3)
    assert (
        f.trace(*avals).jaxpr.out_avals
        == f.trace(jnp.ones((2, 3)), jnp.ones((3, 4))).jaxpr.out_avals
    )


def test_hlo_with_scopes_and_lines():
    lowered = jit(lambda x: jnp.sin(x) * 2).lower(np.ones(3))
    assert "metadata" not in lowered.as_text("hlo")
    text = lowered.as_text("hlo", debug_info=True)
    assert 'op_name="jit(<lambda>)/sin"' in text and __file__ in text
