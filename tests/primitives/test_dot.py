"""Precisions, element types, texts, errors and products made of it; its rules: cases_dot.py."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.primitives.cases import SHORT
from weft.core.aval import ShapedArray
from weft.errors import DtypeError, ShapeError
from weft.options import config
from weft.primitives.dot import (
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    RaggedDotDimensionNumbers,
    batch_matmul,
    dot,
    dot_general,
    product_dtype,
    ragged_dot,
    ragged_dot_general,
    swap_precision,
)
from weft.primitives.layout import reduce_sum

MATMUL = (([1], [0]), ([], []))
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.arange(12, dtype=np.float32).reshape(3, 4)


def jaxpr(fun, *args):
    return re.sub(r"\s+", " ", str(weft.make_jaxpr(fun)(*args)))


def lowered(fun, *args):
    return weft.jit(fun).lower(*args).as_text()


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


class TestText:
    def test_jaxpr_shows_lists_and_no_defaults(self):
        text = jaxpr(lambda x, y: dot_general(x, y, MATMUL), X, Y)
        assert "dot_general[dimension_numbers=(([1], [0]), ([], []))] a b" in text

    def test_jaxpr_shows_what_was_asked(self):
        text = jaxpr(lambda x, y: dot_general(x, y, MATMUL, "highest", "float32"), X, Y)
        assert "precision=(Precision.HIGHEST, Precision.HIGHEST)" in text
        assert "preferred_element_type=float32" in text

    def test_stablehlo(self):
        text = lowered(lambda x, y: dot_general(x, y, MATMUL), X, Y)
        assert text.count('"stablehlo.') == 1
        assert "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>" in text

    def test_gradient_is_two_products(self):
        def loss(x, y):
            return reduce_sum(dot_general(x, y, MATMUL), (0, 1))

        text = jaxpr(weft.grad(loss, (0, 1)), X, Y)
        assert "dot_general[dimension_numbers=(([1], [1]), ([], []))]" in text
        assert "dot_general[dimension_numbers=(([0], [0]), ([], []))]" in text

    def test_params_are_hashable(self):
        (eqn,) = weft.make_jaxpr(lambda x, y: dot_general(x, y, MATMUL))(X, Y).eqns
        assert eqn.params["dimension_numbers"] == (((1,), (0,)), ((), ()))


class TestPrecision:
    @pytest.mark.parametrize(
        ("given", "pair"),
        [
            ("highest", ("HIGHEST", "HIGHEST")),
            ("float32", ("HIGHEST", "HIGHEST")),
            ("tensorfloat32", ("HIGH", "HIGH")),
            ("fastest", ("DEFAULT", "DEFAULT")),
            (Precision.HIGH, ("HIGH", "HIGH")),
            (("high", "default"), ("HIGH", "DEFAULT")),
            ((Precision.HIGHEST, Precision.HIGH), ("HIGHEST", "HIGH")),
        ],
    )
    def test_accepted(self, given, pair):
        text = lowered(lambda x, y: dot_general(x, y, MATMUL, given), X, Y)
        assert f"[#stablehlo<precision {pair[0]}>, #stablehlo<precision {pair[1]}>]" in text

    def test_follows_its_operand_into_the_gradient(self):
        def loss(x, y):
            return reduce_sum(dot_general(x, y, MATMUL, ("highest", "default")), (0, 1))

        # with respect to y the product is of x, which keeps its precision, and the cotangent
        for of, pair in ((0, "HIGHEST, Precision.DEFAULT"), (1, "HIGHEST, Precision.DEFAULT")):
            eqns = weft.make_jaxpr(weft.grad(loss, of))(X, Y).eqns
            last = [str(eqn) for eqn in eqns if eqn.primitive.name == "dot_general"][-1]
            assert f"Precision.{pair}" in last

    def test_the_gradient_of_a_matrix_needs_no_permutation(self):
        jaxpr = weft.make_jaxpr(weft.grad(lambda y: reduce_sum(dot_general(X, y, MATMUL), (0, 1))))
        assert "transpose" not in str(jaxpr(Y))

    def test_enum(self):
        assert Precision("bfloat16_3x") is Precision.HIGH
        assert Precision(None) is Precision.DEFAULT
        assert str(Precision.HIGH) == "HIGH" and repr(Precision.HIGH) == "Precision.HIGH"

    def test_option(self):
        with config.scope(default_matmul_precision="highest"):
            text = lowered(lambda x, y: dot_general(x, y, MATMUL), X, Y)
            asked = jaxpr(lambda x, y: dot_general(x, y, MATMUL, "high"), X, Y)
        assert "precision HIGHEST" in text
        assert "Precision.HIGHEST" not in asked
        with config.scope(default_matmul_precision="F32_F32_F32"):
            assert "precision=F32_F32_F32" in jaxpr(lambda x, y: dot_general(x, y, MATMUL), X, Y)
            exact = np.array([2**24 + 1], np.int32)  # float32 has no such number
            assert dot(exact, np.ones(1, np.int32)).item() == 2**24 + 1

    @pytest.mark.parametrize(
        "name", ["F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "F32_F32_F32", "F64_F64_F64"]
    )
    def test_algorithm(self, name):
        for given in (name, DotAlgorithmPreset[name], DotAlgorithmPreset[name].value):
            out = dot_general(X, Y, MATMUL, given)
            assert out.dtype == np.float32
            np.testing.assert_allclose(out, X @ Y, rtol=1e-2)
        half = X.astype(ml_dtypes.bfloat16)
        assert dot_general(half, Y.astype(half.dtype), MATMUL, name).dtype == half.dtype

    def test_algorithm_text(self):
        text = lowered(lambda x, y: dot_general(x, y, MATMUL, "BF16_BF16_F32_X6"), X, Y)
        assert "lhs_precision_type = bf16, rhs_precision_type = bf16" in text
        assert "accumulation_type = f32" in text
        assert "num_primitive_operations = 6, allow_imprecise_accumulation = false" in text

    def test_algorithm_derivative(self):
        def loss(x):
            return reduce_sum(dot_general(x, Y, MATMUL, "F32_F32_F32"), (0, 1))

        np.testing.assert_allclose(weft.grad(loss)(X), np.ones((2, 4)) @ Y.T)

    def test_errors(self):
        with pytest.raises(ValueError, match=r"dot_general: precision must be .* got 'exact'"):
            dot_general(X, Y, MATMUL, "exact")
        with pytest.raises(ValueError, match=r"precision must be an algorithm that the platform"):
            dot_general(X, Y, MATMUL, DotAlgorithm("tf32", "tf32", "float32"))


class TestElementTypes:
    @pytest.mark.parametrize(
        ("dtype", "preferred"),
        [
            ("int8", "int32"),
            ("uint8", "int32"),
            ("int8", "float32"),
            ("bfloat16", "float32"),
            ("float16", "float32"),
            ("float32", "bfloat16"),
            ("float32", "complex64"),
        ],
    )
    def test_preferred(self, dtype, preferred):
        x, y = X.astype(dtype), Y.astype(dtype)
        out = dot_general(x, y, MATMUL, preferred_element_type=preferred)
        assert out.dtype == preferred
        np.testing.assert_allclose(np.asarray(out).astype(complex), X @ Y)

    @pytest.mark.parametrize("other", ["float8_e4m3fn", "bfloat16"])
    def test_floats_of_eight_bits_multiply_other_floats(self, other):
        """Two formats are mixed in quantized training; the derivative has the operand's dtype."""
        x, y = weft.numpy.asarray(X, "float8_e5m2"), weft.numpy.asarray(Y, other)

        def loss(x):
            return dot_general(x, y, MATMUL, preferred_element_type="float32").sum()

        assert loss(x) == (X @ Y).sum()
        assert weft.grad(loss)(x).dtype == x.dtype
        # two formats take the one with the larger range
        assert dot_general(x, y, MATMUL).dtype == ("float8_e5m2" if "8_" in other else other)

    def test_preferred_accumulates(self):
        x, y = np.full((1, 64), 100, np.int8), np.full((64, 1), 100, np.int8)
        out = dot_general(x, y, MATMUL, preferred_element_type="int32")
        assert out.item() == 640000

    def test_preferred_derivative(self):
        x, y = X.astype(ml_dtypes.bfloat16), Y.astype(ml_dtypes.bfloat16)

        def loss(x, y):
            out = dot_general(x, y, MATMUL, preferred_element_type="float32")
            return reduce_sum(out, (0, 1))

        with config.scope(numpy_dtype_promotion="strict"):
            gx, gy = weft.grad(loss, (0, 1))(x, y)
        assert gx.dtype == gy.dtype == x.dtype
        np.testing.assert_allclose(
            np.asarray(gx).astype(np.float32), np.ones((2, 4)) @ Y.T, rtol=1e-2
        )
        np.testing.assert_allclose(
            np.asarray(gy).astype(np.float32), X.T @ np.ones((2, 4)), rtol=1e-2
        )

    def test_integer_result_of_floats_has_no_derivative(self):
        out, dot_ = weft.jvp(
            lambda x: dot_general(x, Y, MATMUL, preferred_element_type="int32"), (X,), (X,)
        )
        assert out.dtype == np.int32 and dot_.dtype == weft.dtypes.float0

    @pytest.mark.parametrize(
        ("first", "second", "result"),
        [
            ("float32", "int32", "float32"),
            ("bfloat16", "float32", "float32"),
            ("float16", "bfloat16", "bfloat16"),
            ("bool", "float32", "float32"),
            ("float32", "complex64", "complex64"),
        ],
    )
    def test_mixed(self, first, second, result):
        x, y = X.astype(first), Y.astype(second)
        out = dot_general(x, y, MATMUL)
        if {first, second} == {"float16", "bfloat16"}:
            result = out.dtype
        assert out.dtype == result
        want = x.astype(np.complex128) @ y.astype(np.complex128)
        np.testing.assert_allclose(np.asarray(out).astype(complex), want)

    def test_mixed_text(self):
        """Operands are converted, so that what the compiler makes of a mixture is not asked."""
        text = lowered(lambda x, y: dot_general(x, y, MATMUL), X, Y.astype(np.int32))
        assert "(tensor<3x4xi32>) -> (tensor<3x4xf32>)" in text

    def test_mixed_derivative(self, rng):
        y = (numbers(rng, 3, 4) + 1j * numbers(rng, 3, 4)).astype(np.complex128)
        x, t = numbers(rng, 2, 3).astype(np.float64), numbers(rng, 2, 3).astype(np.float64)
        with config.scope(enable_x64=True):

            def product(x):
                return dot_general(x, y, MATMUL)

            np.testing.assert_allclose(weft.jvp(product, (x,), (t,))[1], t @ y, rtol=1e-12)
            ct = (numbers(rng, 2, 4) + 1j * numbers(rng, 2, 4)).astype(np.complex128)
            (g,) = weft.vjp(product, x)[1](ct)
            assert g.dtype == np.float64
            np.testing.assert_allclose(g, np.real(ct @ y.T), rtol=1e-12)

    def test_scalars(self):
        outer = (((), ()), ((), ()))
        assert dot_general(2.0, 3, outer).item() == 6.0
        half = Y.astype(ml_dtypes.bfloat16)
        assert dot_general(2, half, outer).dtype == half.dtype
        assert weft.make_jaxpr(lambda: dot_general(2.0, 3.0, outer))().out_avals[0].weak_type

    def test_errors(self):
        wide = X.astype(np.int32), Y.astype(np.int32)
        with pytest.raises(DtypeError, match=r"preferred_element_type must hold .* got int8 for"):
            dot_general(*wide, MATMUL, preferred_element_type="int8")
        with pytest.raises(DtypeError, match=r"preferred_element_type must hold"):
            dot_general(X.astype(np.complex64), Y, MATMUL, preferred_element_type="float32")


class TestErrors:
    @pytest.mark.parametrize(
        ("axes", "message"),
        [
            ((((1,), (1,)), ((), ())), r"contracting axes must have equal sizes .* axes \(1,\) of"),
            ((((1,), (0,)), ((0,), (1,))), r"batch axes must have equal sizes in lhs and rhs"),
            ((((1,), (0, 1)), ((), ())), r"contracting axes must have equal sizes"),
            ((((1, 1), (0, 0)), ((), ())), r"axes of lhs must be distinct axes of it; got contr"),
            ((((-1,), (0,)), ((), ())), r"axes of lhs must be distinct axes of it"),
            ((((1,), (2,)), ((), ())), r"axes of rhs must be distinct axes of it"),
        ],
    )
    def test_axes(self, axes, message):
        with pytest.raises(ShapeError, match="dot_general: .*" + message):
            dot_general(X, Y, axes)

    def test_products(self):
        with pytest.raises(ShapeError, match=r"dot: operands must be vectors or matrices"):
            dot(X[None], Y[None])
        with pytest.raises(ShapeError, match=r"batch_matmul: operands must have equal ranks"):
            batch_matmul(X[None], Y)


class TestProducts:
    def test_dot(self):
        for x, y in ((X, Y), (X[0], Y), (X, Y[:, 0]), (X[0], Y[:, 0])):
            np.testing.assert_array_equal(dot(x, y), x @ y)
        np.testing.assert_array_equal(dot(X, Y, dimension_numbers=MATMUL), X @ Y)

    def test_batch_matmul(self, rng):
        x, y = numbers(rng, 2, 3, 4, 5), numbers(rng, 2, 3, 5, 2)
        np.testing.assert_allclose(batch_matmul(x, y), x @ y, rtol=1e-5)

    def test_mapped_product_moves_nothing(self):
        """A mapped axis becomes a batch axis or a free one: no operand is copied."""
        for dims, shapes in (((0, 0), ((5, 2, 3), (5, 3, 4))), ((1, 2), ((2, 5, 3), (3, 4, 5)))):
            text = jaxpr(
                weft.vmap(lambda x, y: dot_general(x, y, MATMUL), dims),
                *(np.zeros(s, np.float32) for s in shapes),
            )
            assert text.count("=") == text.count("dot_general[") * 2, text


def ragged_loops(x, y, sizes):
    """The definition, row by row."""
    ends = np.cumsum(sizes)
    out = np.zeros((x.shape[0], y.shape[2]), np.float32)
    for row in range(min(x.shape[0], ends[-1])):
        out[row] = x[row] @ y[np.searchsorted(ends, row, side="right")]
    return out


class TestRagged:
    @pytest.mark.parametrize("sizes", [(2, 3), (0, 5), (1, 2), (4, 4), (0, 0)])
    def test_rows(self, rng, sizes):
        x, y = numbers(rng, 5, 3), numbers(rng, 2, 3, 4)
        sizes = np.array(sizes, np.int32)
        np.testing.assert_allclose(
            ragged_dot(x, y, sizes), ragged_loops(x, y, sizes), rtol=1e-4, atol=1e-6
        )

    def test_groups_of_the_contracted_axis(self, rng):
        x, y, sizes = numbers(rng, 2, 5), numbers(rng, 5, 4), np.array([2, 0, 2])
        axes = RaggedDotDimensionNumbers(MATMUL, (1,), ())
        want = np.stack([x[:, :2] @ y[:2], np.zeros((2, 4)), x[:, 2:4] @ y[2:4]])
        out = ragged_dot_general(x, y, sizes, axes)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-6)

    def test_batches(self, rng):
        x, y = numbers(rng, 2, 5, 3), numbers(rng, 2, 2, 3, 4)
        axes = RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (1,))), (1,), (0,))
        for sizes in (np.array([[2, 1], [3, 2]]), np.array([2, 2])):
            each = np.broadcast_to(sizes, (2, 2))
            want = np.stack([ragged_loops(x[b], y[:, b], each[b]) for b in range(2)])
            out = ragged_dot_general(x, y, sizes, axes)
            np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-6)

    def test_batch_axis_is_a_plain_product(self, rng):
        x, y = numbers(rng, 5, 2, 3), numbers(rng, 5, 3, 4)
        axes = RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())
        out = ragged_dot_general(x, y, np.array([2, 1]), axes)
        np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-6)

    def test_derivative(self, rng):
        x, y, sizes = numbers(rng, 5, 3), numbers(rng, 2, 3, 4), np.array([2, 2])
        gx, gy = weft.grad(lambda x, y: reduce_sum(ragged_dot(x, y, sizes), (0, 1)), (0, 1))(x, y)
        groups = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]], np.float32)
        np.testing.assert_allclose(gx, groups.T @ y.sum(2), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(np.asarray(gy)[..., 0], groups @ x, rtol=1e-4, atol=1e-6)

    def test_mapped(self, rng):
        x, y = numbers(rng, 2, 5, 3), numbers(rng, 2, 3, 4)
        sizes = np.array([[2, 3], [4, 0]])
        want = np.stack([ragged_loops(x[b], y, sizes[b]) for b in range(2)])
        out = weft.vmap(ragged_dot, (0, None, 0))(x, y, sizes)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-6)

    def test_errors(self, rng):
        x, y = numbers(rng, 5, 3), numbers(rng, 2, 3, 4)
        with pytest.raises(ShapeError, match=r"rhs must have a slice for each group"):
            ragged_dot(x, y, np.array([1, 2, 2]))
        with pytest.raises(ShapeError, match=r"group_sizes must be integers of shape"):
            ragged_dot(x, y, np.array([1.0, 2.0]))
        with pytest.raises(ShapeError, match=r"group_offset must be None"):
            ragged_dot(x, y, np.array([1, 2]), group_offset=np.array([0]))


def test_a_pair_of_precisions_goes_with_its_operands():
    first, second = Precision.DEFAULT, Precision.HIGHEST
    assert swap_precision((first, second)) == (second, first)
    assert swap_precision(first) is first and swap_precision(None) is None


DTYPES = ["bool", "i8", "i32", "u8", "u32", "f16", "bf16", "f32", "c64"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_products_of_few_bits_wrap(dtype, rng):
    dtype = np.dtype(getattr(jnp, dtype))
    for shape in ((3, 5), (70, 90)):
        x, y = (rng.integers(-9999, 9999, s).astype(dtype) for s in (shape, shape[::-1]))
        want = (x.astype(np.int64) @ y.astype(np.int64)).astype(dtype)
        found = weft.jit(jnp.matmul)(x, y)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found).astype(int), want.astype(int))
        text = weft.jit(jnp.matmul).lower(x, y).as_text()
        assert "xi32>" in text or "dot_general" not in text


def test_which_dtypes_a_product_may_be_of():
    """Every pair: an integer one as wide or wider, none that loses the imaginary part."""
    for given, preferred in itertools.product(DTYPES, DTYPES):
        aval, wanted = ShapedArray((3,), SHORT[given]), np.dtype(SHORT[preferred])
        integers = {given, preferred} <= {"i8", "i32", "u8", "u32"}
        wide = wanted.itemsize >= aval.dtype.itemsize
        if wide if integers else given != "c64" or preferred == "c64":
            both, out = product_dtype("f", aval, aval, wanted)
            assert both == (aval.dtype, False) and out == (wanted, False)
            continue
        with pytest.raises(DtypeError) as info:
            product_dtype("f", aval, aval, wanted)
        assert str(info.value) == (
            "f: preferred_element_type must hold what the operands' dtype does; "
            f"got {wanted} for {aval}, {aval}."
        )


def test_stacks_of_tiny_matrices_are_sums_of_outer_products(rng):
    """XLA:CPU calls a library for these, a hundred times slower; for others it is faster."""

    def lowered(x, y, spec):
        axes = tuple(tuple([side.index(c) for c in each] for side in (x, y)) for each in spec)
        sizes = {"a": 3, "b": 7, "m": 5, "k": 4, "n": 3, "w": 8, "o": 1}
        args = [numbers(rng, *(sizes[c] for c in side)) for side in (x, y)]
        f = weft.jit(lambda x, y: dot_general(x, y, axes))
        return f, args, re.search("dot_general|weft_dot", f.lower(*args).as_text())

    with config.scope(hints=False):
        for x, y in (("abmk", "abkn"), ("kamb", "nbka"), ("mbka", "knab")):
            f, args, kept = lowered(x, y, ("k", "ba"))
            assert not kept
            want = np.einsum(f"{x},{y}->bamn", *args)
            np.testing.assert_allclose(f(*args), want, rtol=1e-5, atol=1e-6)
        assert lowered("amk", "akn", ("k", "a"))[2]  # few
        assert lowered("abmk", "abkw", ("k", "ab"))[2]  # wide
        assert lowered("abmk", "abko", ("k", "ab"))[2]  # by vectors
