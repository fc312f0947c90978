# ruff: noqa: F722, F821 -- its annotations are of its own language
"""jaxtyping as its documentation shows it: annotations, checked where functions are called."""

import dataclasses

import beartype
import jax
import jax.numpy as jnp
import jaxtyping as jt
import numpy as np
import pytest
from jaxtyping import Array, ArrayLike, Float, Int, Key, PRNGKeyArray, PyTree, Scalar, jaxtyped
from public_names import find_unused

CHECKERS = {"beartype": beartype.beartype}

DTYPES = {
    jt.Float32: "float32", jt.Float16: "float16", jt.BFloat16: "bfloat16", jt.Int8: "int8",
    jt.Int16: "int16", jt.Int32: "int32", jt.UInt8: "uint8", jt.UInt16: "uint16",
    jt.UInt32: "uint32", jt.Bool: "bool", jt.Complex64: "complex64", jt.Int4: "int4",
    jt.UInt4: "uint4", jt.Float8e4m3fn: "float8_e4m3fn", jt.Float8e5m2: "float8_e5m2",
    jt.Float8e4m3b11fnuz: "float8_e4m3b11fnuz", jt.Float8e4m3fnuz: "float8_e4m3fnuz",
    jt.Float8e5m2fnuz: "float8_e5m2fnuz", jt.Int2: "int2", jt.UInt2: "uint2",
}  # fmt: skip
WIDE = {jt.Float64: "float64", jt.Int64: "int64", jt.UInt64: "uint64", jt.Complex128: "complex128"}
GROUPS = (jt.Float, jt.Int, jt.UInt, jt.Integer, jt.Complex, jt.Inexact, jt.Num, jt.Real, jt.Shaped)


@pytest.mark.parametrize("kind", DTYPES, ids=lambda kind: kind.__name__)
def test_dtypes(kind, record):
    x = jnp.zeros((2, 3), DTYPES[kind])
    assert isinstance(x, kind[Array, "a b"]) and isinstance(x, kind[Array, "2 3"])
    assert not isinstance(x, kind[Array, "a a"]) and not isinstance(x, kind[Array, "3"])
    record([isinstance(x, group[Array, "..."]) for group in (*GROUPS, *DTYPES)])


def test_wide_dtypes():
    with jax.enable_x64(True):
        for kind, dtype in WIDE.items():
            assert isinstance(jnp.zeros(2, dtype), kind[Array, "2"])
            assert isinstance(np.zeros(2, dtype), kind[np.ndarray, "2"])


@pytest.mark.parametrize("checker", CHECKERS)
def test_functions(checker, record):
    @jaxtyped(typechecker=CHECKERS[checker])
    def matmul(x: Float[Array, "*batch a b"], y: Float[Array, "b c"]) -> Float[Array, "*batch a c"]:
        return x @ y

    record(matmul(jnp.ones((2, 3)), jnp.ones((3, 4))))
    record(jax.jit(matmul)(jnp.ones((5, 2, 3)), jnp.ones((3, 4))))
    record(jax.vmap(matmul, in_axes=(0, None))(jnp.ones((5, 2, 3)), jnp.ones((3, 4))))
    record(jax.grad(lambda x: matmul(x, jnp.ones((3, 4))).sum())(jnp.ones((2, 3))))
    for bad in (jnp.ones((4, 4)), jnp.ones((3, 4), jnp.int32), 1.0):
        with pytest.raises(jt.TypeCheckError):
            matmul(jnp.ones((2, 3)), bad)
        if not isinstance(bad, float):
            with pytest.raises(jt.TypeCheckError):
                jax.jit(matmul)(jnp.ones((2, 3)), bad)


@pytest.mark.parametrize("checker", CHECKERS)
def test_dataclasses(checker):
    @jaxtyped(typechecker=CHECKERS[checker])
    @dataclasses.dataclass
    class Data:
        x: Float[Array, "n"]
        y: Int[Array, "n"]

    assert Data(jnp.ones(2), jnp.ones(2, int)).x.shape == (2,)
    with pytest.raises(jt.TypeCheckError):
        Data(jnp.ones(2), jnp.ones(3, int))


def test_trees_and_scalars():
    tree = {"a": jnp.ones(2), "b": [jnp.ones(3)]}
    assert isinstance(tree, PyTree[Float[Array, "_"]]) and isinstance(tree, PyTree[Array, "T"])
    assert not isinstance(tree, PyTree[Int[Array, "_"]]) and not isinstance(tree, PyTree[int])
    assert isinstance(jnp.float32(1), Scalar) and isinstance(1.0, jt.ScalarLike)
    assert isinstance(1.0, ArrayLike) and isinstance(jnp.ones(2), ArrayLike)
    assert isinstance(jnp.ones((2, 3)), Float[Array, "..."])
    assert isinstance(jnp.ones((1, 3)), Float[Array, "#2 3"])
    assert isinstance(jnp.ones((2, 3)), jt.Shaped[Array, "rows=2 columns=3"])


def test_keys():
    key, words = jax.random.key(0), jax.random.PRNGKey(0)

    @jaxtyped(typechecker=beartype.beartype)
    def f(key: PRNGKeyArray):
        return 1

    assert f(key) + f(words) == 2
    assert isinstance(jax.random.split(key, 3), Key[Array, "3"])
    assert not isinstance(words, Key[Array, "..."]) and isinstance(words, jt.UInt32[Array, "2"])


def test_structs_and_tracers(record):
    seen = []

    @jax.jit
    def f(x):
        seen.append([isinstance(x, Float[Array, "2"]), isinstance(x, Int[Array, "2"])])
        return x

    f(jnp.ones(2)), jax.vmap(f)(jnp.ones((3, 2))), jax.eval_shape(f, jnp.ones(2))
    record(seen)
    shape = jax.ShapeDtypeStruct((2,), jnp.float32)
    record(isinstance(shape, jt.Float[jax.ShapeDtypeStruct, "2"]))


def test_names(capsys):
    @jaxtyped(typechecker=beartype.beartype)
    def f(x: Float[Array, "rows columns"]):
        jt.print_bindings()

    f(jnp.ones((2, 3)))
    assert "rows=2" in capsys.readouterr().out
    assert Float[Array, "a b"].dim_str == "a b" and issubclass(Float[Array, "a"], jt.AbstractArray)
    assert issubclass(Float, jt.AbstractDtype) and issubclass(jt.AnnotationError, Exception)
    with pytest.raises(ValueError):
        Float[Array, "... ..."]
    before = jt.get_array_name_format()
    jt.set_array_name_format("array")
    assert "Array" in Float[Array, "a"].__name__
    jt.set_array_name_format(before)
    assert jt.config.jaxtyping_disable in (False, True)


MODULE = """
from jaxtyping import Array, Float

def f(x: Float[Array, "n"]) -> Float[Array, "n"]:
    return x
"""


def test_import_hook(tmp_path, monkeypatch):
    (tmp_path / "hooked.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with jt.install_import_hook("hooked", "beartype.beartype"):
        import hooked
    assert hooked.f(jnp.ones(2)).shape == (2,)
    with pytest.raises(jt.TypeCheckError):
        hooked.f(jnp.ones((2, 2)))


def test_every_public_name_is_used():
    rest = "TypeAlias Union load_ipython_extension make_numpy_struct_dtype"
    assert not find_unused(jt, __file__, rest)
