"""Calls of foreign functions: compiled handlers, under each transformation, and errors.

The arithmetic of the handlers is checked against NumPy.
"""

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import ffi, lax
from weft.core.primitive import Primitive
from weft.extend.core import Primitive as NamedPrimitive
from weft.interpreters import mlir
from weft.mesh import plugins
from weft.xla.layouts import Layout

COMPILER = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")

Struct = weft.ShapeDtypeStruct
X = np.arange(12, dtype=np.float32).reshape(3, 4)
HANDLERS = "row_sums add_rows in_memory add_in_place count fail describe"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The handlers, registered by their names; compiled once for all processes of a run."""
    source = Path(__file__).with_name("ffi_kernels.cc")
    flags = ["-std=c++17", "-O0", "-w", "-shared", "-fPIC", f"-I{ffi.include_dir()}"]
    key = hashlib.sha256(source.read_bytes() + repr([COMPILER, *flags]).encode()).hexdigest()
    path = tmp_path_factory.getbasetemp().parent / f"ffi_kernels_{key}.so"
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            made = path.with_suffix(".new")
            subprocess.run([COMPILER, *flags, source, "-o", made], check=True)
            made.rename(path)
    library = ctypes.CDLL(str(path))
    for name in HANDLERS.split():
        ffi.register_ffi_target(f"test.{name}", ffi.pycapsule(getattr(library, name)))
    return library


def row_sums(x, scale=np.float32(2), **options):
    struct = Struct(x.shape[:-1], np.float32)
    return ffi.ffi_call("test.row_sums", struct, **options)(x, scale=scale)


@pytest.mark.usefixtures("library")
def test_a_call_computes_eagerly_compiled_and_in_programs():
    np.testing.assert_array_equal(row_sums(X), 2 * X.sum(1))
    np.testing.assert_array_equal(row_sums(X[:, :0]), np.zeros(3))  # no elements
    f = weft.jit(lambda x: row_sums(x + 1) * 3)
    np.testing.assert_array_equal(f(X), 6 * (X + 1).sum(1))
    loop = lambda x: lax.fori_loop(0, 3, lambda i, c: row_sums(c)[:, None] + c, x)
    expected = X
    for _ in range(3):
        expected = 2 * expected.sum(1)[:, None] + expected
    np.testing.assert_array_equal(weft.jit(loop)(X), expected)
    branch = weft.jit(lambda x: lax.cond(x[0, 0] > 0, row_sums, lambda x: x[:, 0], x))
    np.testing.assert_array_equal(branch(X), X[:, 0])
    np.testing.assert_array_equal(weft.checkpoint(row_sums)(X), 2 * X.sum(1))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]
)
def test_vmap_by_each_method(method):
    struct = Struct((4,), np.float32)
    add = ffi.ffi_call("test.add_rows", struct, vmap_method=method)
    y = np.float32([10, 20, 30, 40])
    np.testing.assert_array_equal(weft.vmap(add)(X, X[::-1]), X + X[::-1])
    np.testing.assert_array_equal(weft.vmap(add, (0, None))(X, y), X + y)
    np.testing.assert_array_equal(weft.vmap(add, (1, None), 1)(X.T, y), (X + y).T)
    nested = weft.jit(weft.vmap(weft.vmap(add, (0, None)), (0, None)))
    np.testing.assert_array_equal(nested(np.stack([X, 2 * X]), y), np.stack([X, 2 * X]) + y)


@pytest.mark.usefixtures("library")
def test_vmap_with_fewer_rows_and_without_a_method():
    legacy = ffi.ffi_call(
        "test.add_rows", Struct((4,), np.float32), vmap_method="legacy_vectorized"
    )
    y = np.float32([10, 20, 30, 40])  # repeated by the handler
    np.testing.assert_array_equal(weft.vmap(legacy, (0, None))(X, y), X + y)
    with pytest.raises(NotImplementedError, match=r"ffi_call: under vmap, vmap_method must be one"):
        weft.vmap(row_sums)(X[None])


@pytest.mark.usefixtures("library")
def test_derivatives_are_those_of_custom_rules():
    @weft.custom_vjp
    def total(x):
        return row_sums(x, vmap_method="broadcast_all")

    total.defvjp(lambda x: (total(x), None), lambda _, ct: (2 * jnp.outer(ct, jnp.ones(4)),))
    grad = weft.grad(lambda x: jnp.sum(total(x) ** 2))
    expected = np.broadcast_to(8 * X.sum(1)[:, None], X.shape)
    np.testing.assert_allclose(weft.jit(grad)(X), expected)
    np.testing.assert_allclose(weft.vmap(grad)(X[None])[0], expected)
    with pytest.raises(ValueError, match=r"the derivative of 'test.row_sums' is not known.*custom"):
        weft.grad(lambda x: row_sums(x).sum())(X)
    # Results without derivatives need no rule.
    count = ffi.ffi_call("test.count", Struct((), np.int32), has_side_effect=True)
    np.testing.assert_array_equal(weft.grad(lambda x: (x * x).sum() + 0 * count(x))(X), 2 * X)


def test_side_effects_stay(library):
    def calls(**options):
        def f(x):
            ffi.ffi_call("test.count", (), **options)(x)
            return x + 1

        before = library.count_calls()
        f = weft.jit(f)
        for _ in range(2):
            f(X).block_until_ready()
        return library.count_calls() - before

    assert calls() == 0
    assert calls(has_side_effect=True) == 2
    jaxpr = weft.make_jaxpr(ffi.ffi_call("test.count", (), has_side_effect=True))(X)
    assert "has_side_effect=True" in str(jaxpr)
    assert "target_name=test.count" in str(jaxpr)


@pytest.mark.usefixtures("library")
def test_layouts_are_orders_in_memory():
    call = lambda **options: ffi.ffi_call("test.in_memory", Struct((3, 4), np.float32), **options)
    by_columns = X.T.reshape(3, 4)  # the elements of X column by column
    np.testing.assert_array_equal(call()(X), X)
    for order in [(1, 0), Layout((1, 0))]:
        np.testing.assert_array_equal(call(input_layouts=[order])(X), by_columns)
        both = call(input_layouts=[order], output_layouts=order)
        np.testing.assert_array_equal(both(X), X)
    back = call(output_layouts=[(1, 0)])(by_columns)
    np.testing.assert_array_equal(back, X)
    mapped = weft.vmap(call(input_layouts=[(1, 0)], vmap_method="broadcast_all"))
    np.testing.assert_array_equal(mapped(np.stack([X, X + 1])), [by_columns, by_columns + 1])


@pytest.mark.usefixtures("library")
def test_aliases_share_buffers():
    add = ffi.ffi_call(
        "test.add_in_place",
        Struct((3, 4), np.float32),
        input_output_aliases={0: 0},
        vmap_method="expand_dims",
    )
    x = jnp.asarray(X)
    np.testing.assert_array_equal(add(x), X + 1)
    np.testing.assert_array_equal(x, X)  # values that are needed later are copied
    np.testing.assert_array_equal(weft.jit(lambda x: add(add(x)) + x)(x), 2 * X + 2)
    mapped = weft.vmap(add, in_axes=None, axis_size=2)
    np.testing.assert_array_equal(mapped(x), [X + 1, X + 1])


ATTRIBUTES = [
    (True, "true"), (3, "i64 3"), (-1.5, "f64 -1.500000"), (np.int8(-3), "i8 -3"),
    (np.uint16(7), "u16 7"), (np.uint64(2**63), "u64 9223372036854775808"),
    (np.float32(0.5), "f32 0.500000"), (float("nan"), "f64 nan"), ('a"b\\\n', 'a"b\\\n'),
    (b"a\x00b", "a\0b"), (np.arange(3, dtype=np.int32), "i32 0 1 2 end"), ([1, 2], "i64 1 2 end"),
    ((1.5, 2), "f64 1.500000 2.000000 end"), (np.float64([]), "f64 end"),
    (np.uint8([[1, 2], [3, 4]]), "u8 1 2 3 4 end"), ({"b": 5, "c": "x"}, "dict 5"),
]  # fmt: skip


@pytest.mark.usefixtures("library")
def test_attributes_arrive_with_their_types():
    def describe(value):
        return ffi.ffi_call("test.describe", Struct((40,), np.uint8))(a=value)

    found = weft.jit(lambda: [describe(value) for value, _ in ATTRIBUTES])()
    texts = [bytes(np.asarray(x)).rstrip(b"\0").decode() for x in found]
    assert texts == [text for _, text in ATTRIBUTES]


@pytest.mark.parametrize("value", [None, 1j, np.float16(1), np.array([True]), ["a", "b"], {1: 2}])
def test_attributes_that_handlers_cannot_read_are_refused(value):
    with pytest.raises(TypeError, match="ffi_call: attribute a.* must be a bool, a number"):
        ffi.ffi_call("test.describe", Struct((40,), np.uint8))(a=value)


def test_a_traced_attribute_is_refused():
    call = lambda x: ffi.ffi_call("test.describe", Struct((), np.uint8))(a=x)
    with pytest.raises(
        TypeError, match=r"attribute a must .* known now; got Traced.*as an operand"
    ):
        weft.jit(call)(1.0)


X32 = Struct((3, 4), np.float32)
MISFITS = {
    "Wrong number of arguments": lambda: ffi.ffi_call("test.in_memory", X32)(X, X),
    "Wrong number of results": lambda: ffi.ffi_call("test.in_memory", (X32, X32))(X),
    "expected F32 but got S32": lambda: ffi.ffi_call("test.in_memory", X32)(X.astype(np.int32)),
    "expected F32 but got F64": lambda: row_sums(X, scale=2.0),
    "name mismatch: size vs scale": lambda: ffi.ffi_call("test.row_sums", X32)(X, size=1.0),
    "the handler says no": lambda: weft.jit(ffi.ffi_call("test.fail", X32))(X),
}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("said", MISFITS)
def test_a_call_that_a_handler_refuses_is_named_with_its_types(said):
    for _ in range(2):  # what failed is not kept
        with pytest.raises(weft.errors.JaxRuntimeError, match=said) as caught:
            MISFITS[said]()
        assert "ffi_call: the handler must accept the call; got 'test." in str(caught.value)
        assert "[3,4]" in str(caught.value)


def test_options_are_checked():
    call = lambda *args, **options: ffi.ffi_call("test.in_memory", X32, **options)(*args)
    for fails, error, said in [
        (lambda: ffi.ffi_call(3, X32), TypeError, "target_name must be a string; got 3"),
        (lambda: ffi.ffi_call("a", 3.0)("x"), TypeError, "arguments must be"),
        (lambda: ffi.ffi_call("a", "f32"), TypeError, "result_shape_dtypes must be a pytree"),
        (lambda: call(X, vmap_method="all"), ValueError, "vmap_method"),
        (lambda: call((X, X)), TypeError, "must be arrays; got a pytree"),
        (lambda: call(X, input_layouts=[(0, 0)]), ValueError, "name each axis of a value once"),
        (lambda: call(X, input_layouts=[None] * 2), ValueError, "one for each value; got 2 for 1"),
        (lambda: call(X, input_output_aliases={1: 0}), ValueError, "by number; got 1: 0 for 1"),
        (lambda: call(X[0], input_output_aliases={0: 0}), ValueError, r"got f32\[4\] and f32\[3"),
        (lambda: call(X, legacy_backend_config="a"), ValueError, "must be left out with"),
        (lambda: call(X, custom_call_api_version=7), ValueError, "custom_call_api_version"),
        (lambda: call(weft.random.key(0)), TypeError, "not random keys"),
        (lambda: ffi.ffi_call("absent", X32)(X), NotImplementedError,
         r"must be registered for the platform; got 'absent' on cpu\. Hint: ffi\.register_ffi"),
        (lambda: ffi.register_ffi_target("a", 3), TypeError, r"fn must be a PyCapsule"),
        (lambda: ffi.register_ffi_target("a", {}), TypeError, r"fn must be a PyCapsule"),
        (lambda: ffi.register_ffi_target("a", len, 3), TypeError, r"fn must be a PyCapsule"),
        (lambda: ffi.pycapsule(3.5), TypeError, "must be a function of a library"),
        (lambda: ffi.register_ffi_type_id("a", None), NotImplementedError, "register_ffi_type"),
    ]:  # fmt: skip
        with pytest.raises(error, match=said):
            fails()


def test_a_name_has_one_function(library):
    ffi.register_ffi_target("test.fail", ffi.pycapsule(library.fail))  # the same again
    with pytest.raises(ValueError, match=r"one function of a platform; got 'test.fail' on Host"):
        ffi.register_ffi_target("test.fail", ffi.pycapsule(library.count))


def test_a_handler_keeps_a_state_between_its_stages(library):
    for get in (library.state_id, library.state_info):
        get.restype = ctypes.c_void_p
    pointer = lambda get: ffi.pycapsule(ctypes.c_void_p(get()))
    registration = {"type_id": pointer(library.state_id), "type_info": pointer(library.state_info)}
    ffi.register_ffi_type("test.State", registration)
    stages = {name: ffi.pycapsule(getattr(library, name)) for name in ("instantiate", "execute")}
    ffi.register_ffi_target("test.stateful", stages)
    assert int(weft.jit(ffi.ffi_call("test.stateful", Struct((), np.int32)))()) == 42


def test_older_custom_calls(library):
    x, struct = X[0, :3], Struct((3,), np.float32)
    ffi.register_ffi_target("test.older", ffi.pycapsule(library.older), api_version=0)
    ffi.register_ffi_target("test.text", ffi.pycapsule(library.older_with_text), api_version=0)
    older = ffi.ffi_call("test.older", struct, custom_call_api_version=1)
    np.testing.assert_array_equal(older(x), 2 * x)
    text = {"custom_call_api_version": 3, "legacy_backend_config": 'ab"c'}
    np.testing.assert_array_equal(ffi.ffi_call("test.text", struct, **text)(x), x + 4)
    with pytest.raises(ValueError, match="attributes must be left out with custom_call_api"):
        older(x, a=1)


@pytest.mark.usefixtures("library")
def test_a_lowering_rule_that_calls_a_target():
    class Twice(Primitive):
        name = "twice_row_sums"

        def abstract_eval(self, x, *, scale):
            return [x.update(shape=x.shape[:-1])]

    twice = Twice()
    mlir.register_lowering(twice, ffi.ffi_lowering("test.row_sums"))
    (found,) = twice.apply(jnp.asarray(X), scale=np.float32(2))
    np.testing.assert_array_equal(found, 2 * X.sum(1))
    write = ffi.build_ffi_lowering_function("test.in_memory", operand_layouts=[(0, 1)])
    columns = Twice()
    columns.abstract_eval = lambda x: [x]
    mlir.register_lowering(columns, lambda ctx, x: write(ctx, x).results)
    (found,) = weft.jit(columns.apply)(jnp.asarray(X))
    np.testing.assert_array_equal(found, X.T.reshape(3, 4))


def test_a_configuration_that_is_text_is_quoted():
    target = NamedPrimitive("target")
    target.def_abstract_eval(lambda x: x)
    rule = ffi.ffi_lowering("target", backend_config='a "b" \n', api_version=2)
    mlir.register_lowering(target, rule)
    text = weft.jit(target.bind).lower(jnp.ones(3)).as_text()
    assert r'backend_config = "a \22b\22 \0A"' in text


@pytest.mark.usefixtures("library")
def test_over_devices():
    mesh = weft.make_mesh((1,), ("i",))
    P = weft.P
    f = weft.shard_map(row_sums, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    np.testing.assert_array_equal(weft.jit(f)(X), 2 * X.sum(1))


def test_what_is_registered_for_a_gpu_waits_for_its_plugin(library, monkeypatch):
    monkeypatch.setattr(plugins, "_WAITING", {})
    monkeypatch.setattr(plugins, "_REGISTRIES", {})
    capsule = ffi.pycapsule(library.fail)
    ffi.register_ffi_target("test.gpu", capsule, platform="CUDA", traits=1)
    ffi.register_ffi_type("test.type", {"type_id": capsule}, platform="CUDA")
    seen = []

    class Extension:
        def register_custom_call_target(self, *args, **options):
            seen.append((args, options))

        def register_custom_type(self, *args):
            seen.append((args, {}))

    for register in plugins._WAITING.pop("cuda"):
        register(Extension(), "c_api")
    monkeypatch.setitem(plugins._REGISTRIES, "cuda", (Extension(), "c_api"))
    ffi.register_ffi_target("test.later", {"execute": capsule}, platform="cuda")
    assert seen == [
        (("c_api", "test.gpu", capsule, "CUDA", 1), {"traits": 1}),
        (("c_api", "test.type", {"type_id": capsule}), {}),
        (("c_api", "test.later", {"execute": capsule}, "CUDA", 1), {}),
    ]
