"""`compile_in_c`: programs of `jit` that are compiled from C and called by XLA."""

import os
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax, random
from weft.experimental import serialize_executable
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
        monkeypatch.setenv("PATH", str(tmp_path))  # where there is no compiler
        again = []
        monkeypatch.setattr(calls, "register_ffi_target", lambda name, capsule: again.append(name))
        monkeypatch.setattr(calls._jax, "custom_call_targets", lambda platform: {})
        assert calls.load_target(source) == target
        assert again == [target]


START = """\
import numpy as np
import weft
f = weft.jit(lambda x: x * 7 + 0.125, compiler_options={"backend": "c"})
print(f(np.float32([1, 2])))
"""


def test_a_process_without_a_compiler_runs_what_another_one_compiled(tmp_path):
    env = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    found = []
    for path in (os.environ["PATH"], str(tmp_path / "empty")):
        command = [sys.executable, "-c", START]
        done = subprocess.run(
            command, env={**env, "PATH": path}, capture_output=True, text=True, check=True
        )
        found.append(done.stdout)
    assert found == ["[ 7.125 14.125]\n"] * 2


def test_errors():
    with pytest.raises(NotImplementedError, match=r"to_c: .*pure_callback.* at .*test_calls\.py"):
        weft.jit(lambda x: weft.pure_callback(np.sin, x, x), passes=IN_C)(np.float32(1))


BY_C = {"backend": "c"}


def count_calls(jitted, *args):
    return jitted.lower(*args).as_text().count("_in_c_")


def test_the_backend_is_chosen_by_a_compiler_option():
    """Also for derivatives, mapped calls, and as a part of a program that XLA compiles."""
    loss = lambda x: jnp.sum(jnp.tanh(x) ** 2)
    in_c = weft.jit(loss, compiler_options=BY_C)
    x = np.linspace(0, 1, 4, dtype=np.float32)
    forms = {
        "call": lambda f: f,
        "grad of jit": weft.grad,
        "jit of grad of jit": lambda f: weft.jit(weft.grad(f)),
        "vmap of jit": weft.vmap,
        "jvp of jit": lambda f: lambda x: weft.jvp(f, (x,), (x,))[1],
        "in a loop": lambda f: weft.jit(
            lambda x: lax.fori_loop(0, 3, lambda k, s: s + f(x * s), jnp.float32(1))
        ),
    }
    for name, form in forms.items():
        given = np.stack([x, 2 * x]) if name == "vmap of jit" else x
        np.testing.assert_allclose(form(in_c)(given), form(loss)(given), 1e-5, err_msg=name)
        if hasattr(form(in_c), "lower"):
            assert count_calls(form(in_c), given) > 0, name
    assert count_calls(weft.jit(loss, compiler_options={"backend": "xla"}), x) == 0
    assert [e.primitive.name for e in weft.make_jaxpr(in_c)(x).jaxpr.eqns] == ["jit"]
    assert "tanh" in export.to_c(in_c)(x).source  # of the function itself


def test_finite_numbers_are_promised_by_a_compiler_option():
    """Products by zeros of arrays that a function closes over are left out."""
    turn = np.float32([[1, 0], [0.5, 1]])
    step = lambda x: jnp.sum(turn @ x)
    strict, *finite = [
        weft.jit(step, compiler_options={**BY_C, **more})
        for more in ({}, {"finite_math": True}, {"finite_math": True})
    ]
    x = np.float32([np.inf, 1])
    assert np.isnan(strict(x[::-1])) and np.isinf(finite[0](x[::-1]))
    np.testing.assert_array_equal(weft.grad(finite[0])(x), [1.5, 1])
    assert finite[0].lower(x).as_text() == finite[1].lower(x).as_text()
    assert strict.lower(x).as_text() != finite[0].lower(x).as_text()
    off = weft.jit(step, compiler_options={**BY_C, "finite_math": False})
    assert strict.lower(x).as_text() == off.lower(x).as_text()


@pytest.mark.parametrize("options", [
    {"finite_math": True}, {"backend": "xla", "finite_math": True}, {**BY_C, "finite_math": 2},
])  # fmt: skip
def test_finite_math_is_of_the_backend_c(options):
    with pytest.raises(ValueError, match="finite_math of compiler_options must be True or False"):
        weft.jit(jnp.sin, compiler_options=options)


# Operations that XLA's programs compute by kernels, which C does not have.
KERNELS = {
    "cumulative": jnp.cumsum,
    "sort": jnp.sort,
    "product": lambda x: jnp.tanh(jnp.outer(x, x)) @ x,
    "functions": lambda x: jnp.exp(jnp.sin(x)),
    "scatter": lambda x: x.at[(x * 100).astype(int)].add(1.0),
    "factors": lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + 300 * jnp.eye(300))[-1],
}


@pytest.mark.parametrize("name", KERNELS)
def test_passes_for_xla_leave_a_part_by_c_alone(name):
    fun, x = KERNELS[name], jnp.linspace(0, 1, 300)
    in_c = weft.jit(fun, compiler_options=BY_C)
    for form in (
        lambda f: lambda x: f(x) + 1,
        lambda f: lambda x: lax.fori_loop(0, 2, lambda _, y: f(y) / 300, x),
        lambda f: lambda x: lax.cond(x[0] < 1, f, jnp.negative, x),
        lambda f: weft.checkpoint(lambda x: f(f(x) / 300)),
    ):
        np.testing.assert_allclose(weft.jit(form(in_c))(x), form(fun)(x), 2e-4, 2e-5)


def test_derivatives_are_compiled_from_c(monkeypatch):
    written = []
    write = calls.write_call
    monkeypatch.setattr(
        calls, "write_call", lambda jaxpr, *how: written.append(jaxpr) or write(jaxpr, *how)
    )
    in_c = weft.jit(lambda x: jnp.sum(x**3), compiler_options=BY_C)
    np.testing.assert_allclose(weft.grad(in_c)(np.float32([1, 2])), [3, 12])
    assert len(written) == 2  # forwards with what the derivative needs, and backwards


def test_keys_are_arguments_and_results():
    def draw(key):
        key, other = random.split(key)
        return key, random.normal(other, (3,))

    in_c = weft.jit(draw, compiler_options=BY_C)
    (key, x), (want, y) = in_c(random.key(0)), draw(random.key(0))
    assert key.dtype == want.dtype and key == want
    np.testing.assert_allclose(x, y, 1e-5)
    keys, xs = weft.vmap(in_c)(random.split(random.key(0), 2))
    assert keys.shape == (2,) and xs.shape == (2, 3)


def test_errors_of_the_backend():
    x = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="backend of compiler_options must be 'xla' or 'c'"):
        weft.jit(np.sin, compiler_options={"backend": "llvm"})
    with pytest.raises(ValueError, match="a backend must be chosen before a program is lowered"):
        weft.jit(jnp.sin).lower(x).compile(BY_C)
    call = weft.jit(lambda x: weft.pure_callback(np.sin, x, x), compiler_options=BY_C)
    with pytest.raises(NotImplementedError, match=r"got pure_callback .* at test_calls.py:\d+"):
        call(x)
    flags = {**BY_C, "xla_cpu_enable_fast_math": True}
    inner = weft.jit(jnp.sin, compiler_options=flags)
    np.testing.assert_allclose(inner(x), np.sin(x), 1e-6)
    with pytest.raises(ValueError, match=r"got {'xla_cpu_enable_fast_math': True} for sin"):
        weft.jit(lambda x: inner(x))(x)
    compiled = weft.jit(jnp.sin, compiler_options=BY_C).lower(x).compile()
    np.testing.assert_allclose(compiled(x), np.sin(x), 1e-6)
    with pytest.raises(ValueError, match="got a program of the backend 'c'"):
        serialize_executable.serialize(compiled)
