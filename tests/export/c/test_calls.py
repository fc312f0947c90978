"""`compile_in_c`: programs of `jit` that are compiled from C and called by XLA."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax, random
from weft.export.c import calls

IN_C = [export.compile_in_c]


def model(params, n, half, z, mask):
    """A loop with intermediate results, and arguments of several dtypes, scalars by value too."""
    state = lax.fori_loop(0, 5, lambda i, s: jnp.tanh(s @ params["w"]) + i, params["b"])
    return {"y": state * n, "half": half + 1, "z": z * 1j, "mask": ~mask, "scalar": n + 1}


def make_arguments():
    w = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
    params = {"w": w, "b": np.ones(3, np.float32)}
    z = np.array([1 + 2j], np.complex64)
    return params, np.float32(2), jnp.ones(2, jnp.bfloat16), z, np.array([True, False])


def test_values_and_transformations():
    args = make_arguments()
    in_c = weft.jit(model, passes=IN_C)
    for _ in range(2):
        weft.tree.map(
            lambda a, b: np.testing.assert_allclose(
                np.asarray(a).astype(complex), np.asarray(b).astype(complex), 1e-5
            ),
            in_c(*args),
            weft.jit(model)(*args),
        )
    loss = lambda params: jnp.sum(weft.vmap(lambda b: model({**params, "b": b}, *args[1:])["y"])(w))
    w = args[0]["w"]
    got, want = (weft.jit(weft.grad(loss), passes=p)(args[0]) for p in (IN_C, None))
    np.testing.assert_allclose(got["w"], want["w"], 1e-5)
    program = weft.make_jaxpr(lambda x: jnp.sin(x) + 1)(w).jaxpr
    assert [e.primitive.name for e in export.compile_in_c(program).eqns] == ["ffi_call"]


def test_libraries_are_kept_on_disk(tmp_path, monkeypatch):
    with weft.options.config.scope(compilation_cache_dir=str(tmp_path)):
        source = calls.write_call(weft.make_jaxpr(lambda x: x * 3 + 1.25)(np.ones(2, "f")).jaxpr)
        target = calls.load_target(source)
        assert calls.load_target(source) == target
        monkeypatch.setattr(calls, "compile_call", None)
        again = []
        monkeypatch.setattr(calls, "register_ffi_target", lambda name, capsule: again.append(name))
        monkeypatch.setattr(calls._jax, "custom_call_targets", lambda platform: {})
        assert calls.load_target(source) == target
        assert again == [target]


def test_errors():
    with pytest.raises(NotImplementedError, match="compile_in_c: a program must take and give arr"):
        weft.jit(random.split, passes=IN_C)(random.key(0))
    with pytest.raises(NotImplementedError, match=r"to_c: .*pure_callback.* at .*test_calls\.py"):
        weft.jit(lambda x: weft.pure_callback(np.sin, x, x), passes=IN_C)(np.float32(1))
