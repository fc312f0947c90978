"""Programs that outlive their process: exporting, calling, derivatives, platforms, refusals."""

import dataclasses
import functools
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax
from weft.export import DisabledSafetyCheck
from weft.export.modules import ARTEFACT, read_artefact

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.int32(3)


def compute(x, n, *, b=1.0):
    return {"y": jnp.sin(x) * b, "m": (n + 1, (x * x * x).sum())}


@functools.cache
def exported():
    return export.export(weft.jit(compute))(X, N, b=2.0)


@functools.cache
def loaded():
    return export.deserialize(exported().serialize(vjp_order=2))


def test_what_is_exported_is_described():
    found = exported()
    assert repr(found) == (
        "Exported(compute: (f32[2,3], i32[], f32[]) -> (i32[], f32[], f32[2,3]), "
        "platforms=('cpu',))"
    )
    assert (found.nr_devices, found.module_kept_var_idx) == (1, (0, 1, 2))
    assert found.in_shardings_hlo == (None,) * 3 == found.out_shardings_hlo
    assert not found.uses_global_constants and found.has_vjp()
    assert found.calling_convention_version == export.maximum_supported_calling_convention_version
    assert "func.func public @main(%arg0: tensor<2x3xf32>" in found.mlir_module()
    assert found.mlir_module_serialized.startswith(b"ML\xefR\rStableHLO_v")
    assert export.default_export_platform() == "cpu"


@pytest.mark.parametrize("get", [exported, loaded], ids=["exported", "loaded"])
def test_a_call_computes_what_the_function_does(get):
    got, want = get().call(X, N, b=2.0), compute(X, N, b=2.0)
    weft.tree.map(np.testing.assert_allclose, got, want)
    assert got["m"][0].dtype == np.int32


def test_a_call_within_transformed_functions():
    f = lambda x: loaded().call(x, N, b=2.0)["m"][1]
    want = (X**3).sum()
    np.testing.assert_allclose(weft.jit(f)(X), want)
    np.testing.assert_allclose(weft.vmap(f)(np.stack([X, 2 * X])), [want, 8 * want])
    np.testing.assert_allclose(weft.grad(f)(X), 3 * X**2, rtol=1e-6)
    second = weft.grad(lambda x: weft.grad(f)(x).sum())(X)
    np.testing.assert_allclose(second, 6 * X, rtol=1e-6)
    # where the cotangent depends on the argument too
    square = lambda x: weft.grad(lambda x: f(x) ** 2)(x).sum()
    want = 6 * (3 * X**2 * (X**2).sum() + 2 * X * (X**3).sum())
    np.testing.assert_allclose(weft.jit(weft.grad(square))(X), want, rtol=1e-5)
    assert "call_exported[exported=compute]" in str(weft.make_jaxpr(f)(X))


def test_the_derivative_is_a_program_too():
    back = loaded().vjp()
    assert [str(a) for a in back.in_avals] == [
        "f32[2,3]", "i32[]", "f32[]", "float0[]", "f32[]", "f32[2,3]",
    ]  # fmt: skip
    zero = np.zeros((), weft.float0)
    dx, dn, db = back.call(X, N, np.float32(2), zero, np.float32(0), np.ones_like(X))
    np.testing.assert_allclose(dx, 2 * np.cos(X), rtol=1e-5)
    np.testing.assert_allclose(db, np.sin(X).sum(), rtol=1e-5)
    assert dn.dtype == weft.float0


def test_a_derivative_that_is_not_there():
    alone = export.deserialize(exported().serialize())
    assert not alone.has_vjp() and not loaded().vjp().vjp().has_vjp()
    with pytest.raises(ValueError, match=r"^compute: its derivative must have been exported with"):
        weft.grad(lambda x: alone.call(x, N, b=2.0)["m"][1])(X)
    with pytest.raises(TypeError, match="^jvp: .* no forward-mode derivative; got compute"):
        weft.jvp(lambda x: alone.call(x, N, b=2.0)["m"][1], (X,), (X,))


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((X[:1], N), weft.errors.ShapeError, r"it was exported for, f32\[2,3\] for args\[0\]; got"),
        ((X, np.float32(1)), weft.errors.ShapeError, r"i32\[\] for args\[1\]; got f32\[\]"),
        ((X,), TypeError, "must be called with the structure it was exported for"),
    ],
)
def test_a_call_with_other_types(args, error, text):
    with pytest.raises(error, match=text):
        loaded().call(*args, b=2.0)


def test_a_process_without_the_code(tmp_path):
    (tmp_path / "f.weft").write_bytes(exported().serialize(vjp_order=1))
    code = (
        "import numpy as np, weft\n"
        "f = weft.export.deserialize(open('f.weft', 'rb').read())\n"
        "x = np.ones((2, 3), np.float32)\n"
        "print(weft.grad(lambda x: f.call(x, np.int32(1), b=1.0)['m'][1])(x))"
    )
    path = os.pathsep.join(filter(None, sys.path))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.stdout.split() == ["[[3.", "3.", "3.]", "[3.", "3.", "3.]]"], done.stderr


def test_several_platforms_in_one_module():
    """A program that is equal on all platforms, and one that is not."""
    f = weft.jit(lambda x: x + 1)
    both = export.export(f, platforms=("cuda", "cpu"))(X)
    assert both.uses_global_constants and "stablehlo.case" not in both.mlir_module()
    assert '%arg0: tensor<i32> {jax.global_constant = "_platform_index"}' in both.mlir_module()
    np.testing.assert_array_equal(both.call(X), X + 1)
    f = weft.jit(jnp.linalg.eigvalsh)
    a = X @ X.T
    both = export.deserialize(export.export(f, platforms=("cuda", "cpu"))(a).serialize())
    assert "stablehlo.case" in both.mlir_module() and "lapack_ssyevd" in both.mlir_module()
    np.testing.assert_allclose(both.call(a), np.linalg.eigvalsh(a), rtol=1e-4, atol=1e-4)


def test_a_platform_that_it_was_not_exported_for():
    f = weft.jit(lambda x: x + 1)
    away = export.export(f, platforms=["tpu"])(X)
    with pytest.raises(ValueError, match="^<lambda>: must be called on a platform it was exported"):
        away.call(X)
    check = DisabledSafetyCheck.platform()
    assert str(check) == "platform" and check.is_custom_call() is None
    away = export.export(f, platforms=["tpu"], disabled_checks=[check])(X)
    np.testing.assert_array_equal(export.deserialize(away.serialize()).call(X), X + 1)


def test_custom_calls_that_may_go():
    solve = weft.ffi.ffi_call("lapack_strsm_ffi", X)
    f = weft.jit(lambda x: solve(np.eye(3, dtype=np.float32), x, side=np.uint8(ord("R"))))
    assert export.export(f)(X).platforms == ("cpu",)
    text = f.trace(X).lower().as_text().replace("lapack_strsm_ffi", "theirs")
    module = read_artefact(export.modules.write_artefact(text))
    check = export.modules.check_custom_calls
    with pytest.raises(ValueError, match=r"^export: f must call what later .* call of 'theirs'\."):
        check("export: f", module, set())
    check("export: f", module, {"theirs"})


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x: weft.pure_callback(np.sin, x, x), "got a callback"),
        (lambda x: weft.debug.print("{}", x), "got a callback"),
    ],
)
def test_programs_of_more_than_arrays(f, text):
    with pytest.raises(ValueError, match=f"^export: <lambda> must be a program of arrays.*{text}"):
        export.export(weft.jit(f))(X)


def test_what_export_takes():
    with pytest.raises(TypeError, match="^pickle: an exported program has bytes of its own; got E"):
        pickle.dumps(exported())
    with pytest.raises(ValueError, match="^export: needs a function that jit has made"):
        export.export(compute)
    for own in (jnp.sin, jnp.add, lax.exp):
        args = (X, X) if own is jnp.add else (X,)
        np.testing.assert_allclose(export.export(own)(*args).call(*args), own(*args), rtol=1e-6)
    for bad in ("cpu", ["gpux"], []):
        with pytest.raises(ValueError, match="^export: platforms must be some of 'cpu', 'cuda'"):
            export.export(weft.jit(compute), platforms=bad)


def test_keys_and_kernels_of_weft():
    """Keys are their words in a module; sorting and cumulative sums are XLA's own there."""
    key = weft.random.key(1)

    def f(key, x):
        return weft.random.split(key), jnp.sort(jnp.cumsum(x))

    got = export.deserialize(export.export(weft.jit(f))(key, X).serialize())
    assert "custom_call" not in got.mlir_module()
    keys, y = got.call(key, X)
    want = f(key, X)
    assert keys.dtype == key.dtype and (keys == want[0]).all()
    np.testing.assert_array_equal(y, want[1])


def test_unused_arguments_are_no_parameters():
    found = export.export(weft.jit(lambda x, y: x + 1))(X, X)
    assert found.module_kept_var_idx == (0,) and "%arg1" not in found.mlir_module()
    kept = export.export(weft.jit(lambda x, y: x + 1, keep_unused=True))(X, X)
    assert kept.module_kept_var_idx == (0, 1)
    assert dataclasses.replace(kept, fun_name="g").fun_name == "g"


def test_modules_and_meshes_that_do_not_fit():
    found = export.export(weft.jit(jnp.sin))(1.0)
    mesh = weft.sharding.AbstractMesh((2,), ("x",))
    for over in (found.in_shardings_jax, found.out_shardings_jax):
        with pytest.raises(ValueError, match="sin: the mesh must have the 1 devices .* got 2"):
            over(mesh)
    with pytest.raises(ValueError, match="must be a portable artefact of StableHLO; got bytes"):
        read_artefact(b"module {}")
    for version in (b"99.0.0", b"x"):
        with pytest.raises(
            ValueError, match=rf"version .* must be at most .*; got {version.decode()}"
        ):
            read_artefact(ARTEFACT + version + b"\0")
    with pytest.raises(ValueError, match="must be StableHLO as this jaxlib reads it"):
        read_artefact(ARTEFACT + b"1.0.0\0 nothing")
