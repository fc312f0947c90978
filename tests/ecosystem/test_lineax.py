"""lineax as its documentation shows it: every operator, every solver, and their queries."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from public_names import find_unused


def values(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def struct(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


GENERAL = values(3, 3) + 3 * jnp.eye(3)
POSITIVE = GENERAL @ GENERAL.T
LOWER, UPPER = jnp.tril(GENERAL), jnp.triu(GENERAL)
TALL, WIDE = values(4, 3), values(3, 4)
SINGULAR = jnp.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
BANDS = GENERAL * (abs(np.subtract.outer(range(3), range(3))) <= 1)
DIAGONAL = jnp.diag(jnp.array([1.0, 2.0, 4.0]))
COMPLEX = GENERAL + 1j * values(3, 3, seed=1)
HERMITIAN = COMPLEX @ COMPLEX.conj().T


def matrix(x, *tags):
    return lx.MatrixLinearOperator(x, tags)


def cubic(x, args):
    return jnp.sin(GENERAL @ x) + x**3


OPERATORS = {
    "matrix": lambda: matrix(GENERAL),
    "tall": lambda: matrix(TALL),
    "complex": lambda: matrix(COMPLEX),
    "positive": lambda: matrix(POSITIVE, lx.positive_semidefinite_tag),
    "symmetric": lambda: matrix(POSITIVE, lx.symmetric_tag),
    "lower": lambda: matrix(LOWER, lx.lower_triangular_tag),
    "unit": lambda: matrix(
        LOWER - jnp.diag(jnp.diag(LOWER)) + jnp.eye(3),
        *(lx.lower_triangular_tag, lx.unit_diagonal_tag),
    ),
    "diagonal": lambda: lx.DiagonalLinearOperator(jnp.array([1.0, 2.0, 4.0])),
    "diagonal_tree": lambda: lx.DiagonalLinearOperator({"a": values(2), "b": jnp.array(3.0)}),
    "tridiagonal": lambda: lx.TridiagonalLinearOperator(values(3) + 3, values(2), values(2)),
    "identity": lambda: lx.IdentityLinearOperator(struct(3)),
    "identity_wide": lambda: lx.IdentityLinearOperator(struct(3), struct(2)),
    "function": lambda: lx.FunctionLinearOperator(lambda x: GENERAL @ x, struct(3)),
    "function_tree": lambda: lx.FunctionLinearOperator(
        lambda t: (2 * t["a"], t["b"] @ TALL), {"a": struct(2), "b": struct(4)}
    ),
    "jacobian": lambda: lx.JacobianLinearOperator(cubic, values(3)),
    "jacobian_fwd": lambda: lx.JacobianLinearOperator(cubic, values(3), jac="fwd"),
    "jacobian_bwd": lambda: lx.JacobianLinearOperator(cubic, values(3), jac="bwd"),
    "pytree": lambda: lx.PyTreeLinearOperator(
        {"x": {"a": values(2, 3), "b": values(2)}, "y": {"a": values(3), "b": jnp.array(2.0)}},
        {"x": struct(2), "y": struct()},
    ),
    "tagged": lambda: lx.TaggedLinearOperator(matrix(POSITIVE), lx.positive_semidefinite_tag),
    "sum": lambda: matrix(GENERAL) + matrix(LOWER),
    "difference": lambda: matrix(GENERAL) - matrix(LOWER),
    "product": lambda: matrix(GENERAL) @ lx.DiagonalLinearOperator(values(3)),
    "scaled": lambda: 2 * matrix(GENERAL) / 3,
    "negative": lambda: -matrix(POSITIVE, lx.positive_semidefinite_tag),
    "transpose": lambda: matrix(TALL).T,
}  # fmt: skip

ASKED = (
    *(lx.is_symmetric, lx.is_diagonal, lx.is_tridiagonal, lx.has_unit_diagonal),
    *(lx.is_lower_triangular, lx.is_upper_triangular, lx.is_positive_semidefinite),
    lx.is_negative_semidefinite,
)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name, record):
    """Products, transposes and dense forms, jitted and with every query."""
    operator = OPERATORS[name]()
    assert isinstance(operator, lx.AbstractLinearOperator)
    vector = jax.tree.map(lambda s: values(*s.shape).astype(s.dtype), operator.in_structure())
    cotangent = jax.tree.map(lambda s: values(*s.shape).astype(s.dtype), operator.out_structure())
    record(eqx.filter_jit(lambda a, x: a.mv(x))(operator, vector))
    record(eqx.filter_jit(lambda a, x: a.T.mv(x))(operator, cotangent))
    record(operator.as_matrix())
    record([ask(operator) for ask in ASKED])
    record([operator.in_size(), operator.out_size()])
    record(lx.materialise(operator).as_matrix())
    record(lx.linearise(operator).mv(vector))
    record(lx.conj(operator).as_matrix())
    if operator.in_size() == operator.out_size():
        record(lx.diagonal(operator))
        record(lx.tridiagonal(operator))


TOLERANCE = dict(rtol=1e-6, atol=1e-6)
SOLVERS = {
    "auto": (lx.AutoLinearSolver(well_posed=True), matrix(GENERAL)),
    "auto_positive": (
        lx.AutoLinearSolver(well_posed=True), matrix(POSITIVE, lx.positive_semidefinite_tag)),
    "auto_lower": (lx.AutoLinearSolver(True), matrix(LOWER, lx.lower_triangular_tag)),
    "auto_tall": (lx.AutoLinearSolver(well_posed=None), matrix(TALL)),
    "auto_any": (lx.AutoLinearSolver(well_posed=False), matrix(SINGULAR)),
    "lu": (lx.LU(), matrix(GENERAL)),
    "lu_complex": (lx.LU(), matrix(COMPLEX)),
    "qr": (lx.QR(), matrix(GENERAL)),
    "qr_tall": (lx.QR(), matrix(TALL)),
    "qr_wide": (lx.QR(), matrix(WIDE)),
    "svd": (lx.SVD(), matrix(TALL)),
    "svd_singular": (lx.SVD(rcond=1e-4), matrix(SINGULAR)),
    "svd_complex": (lx.SVD(), matrix(COMPLEX)),
    "cholesky": (lx.Cholesky(), matrix(POSITIVE, lx.positive_semidefinite_tag)),
    "cholesky_negative": (lx.Cholesky(), matrix(-POSITIVE, lx.negative_semidefinite_tag)),
    "cholesky_complex": (lx.Cholesky(), matrix(HERMITIAN, lx.positive_semidefinite_tag)),
    "diagonal": (lx.Diagonal(), matrix(DIAGONAL, lx.diagonal_tag)),
    "diagonal_any": (lx.Diagonal(rcond=1e-5), lx.DiagonalLinearOperator(jnp.array([1.0, 0, 2]))),
    "triangular": (lx.Triangular(), matrix(LOWER, lx.lower_triangular_tag)),
    "triangular_upper": (lx.Triangular(), matrix(UPPER, lx.upper_triangular_tag)),
    "tridiagonal": (lx.Tridiagonal(), matrix(BANDS, lx.tridiagonal_tag)),
    "cg": (lx.CG(**TOLERANCE), matrix(POSITIVE, lx.positive_semidefinite_tag)),
    "cg_stabilised": (
        lx.CG(**TOLERANCE, stabilise_every=2, norm=lx.internal.two_norm),
        matrix(POSITIVE, lx.positive_semidefinite_tag)),
    "normal_cg": (lx.Normal(lx.CG(**TOLERANCE)), matrix(TALL)),
    "normal_cholesky": (lx.Normal(lx.Cholesky()), matrix(TALL)),
    "normal_cg_function": (lx.NormalCG(**TOLERANCE), matrix(GENERAL)),
    "bicgstab": (lx.BiCGStab(**TOLERANCE), matrix(GENERAL)),
    "gmres": (lx.GMRES(**TOLERANCE, restart=3, max_steps=20), matrix(GENERAL)),
    "lsmr": (lx.LSMR(**TOLERANCE), matrix(TALL)),
    "lsmr_square": (lx.LSMR(**TOLERANCE), matrix(GENERAL)),
}  # fmt: skip


def solve(solver, operator, vector):
    return lx.linear_solve(operator, vector, solver).value


@pytest.mark.parametrize("name", SOLVERS)
def test_solver(name, record):
    """The solution; its derivatives in the operator and the vector, by both modes; mapped."""
    solver, operator = SOLVERS[name]
    vector = values(operator.out_size(), seed=2).astype(operator.out_structure().dtype)
    if "singular" in name or "any" in name:
        vector = operator.mv(jnp.ones(operator.in_size()))  # in the range
    assert isinstance(solver, lx.AbstractLinearSolver)
    solution = eqx.filter_jit(lx.linear_solve)(operator, vector, solver)
    assert isinstance(solution, lx.Solution) and solution.result == lx.RESULTS.successful
    record(solution.value)
    total = lambda a, b: jnp.sum(abs(solve(solver, a, b)) ** 2)
    record(jax.grad(total, argnums=1)(operator, vector))
    record(jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(total))(operator, vector)))
    record(jax.jvp(lambda b: solve(solver, operator, b), (vector,), (vector * 0.5,)))
    record(jax.vmap(lambda b: solve(solver, operator, b))(jnp.stack([vector, 2 * vector])))
    dynamic, static = eqx.partition(operator, eqx.is_array)
    stacked = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), dynamic)
    record(jax.vmap(lambda a: solve(solver, eqx.combine(a, static), vector))(stacked))


def test_state_of_a_solver(record):
    """A factorization is used again; transposed and conjugated."""
    operator, solver = matrix(COMPLEX), lx.LU()
    state = solver.init(operator, options={})
    vector = values(3).astype(jnp.complex64)
    record(lx.linear_solve(operator, vector, solver, state=state).value)
    for kept, options in (solver.transpose(state, {}), solver.conj(state, {})):
        record(solver.compute(kept, vector, options)[0])
    record([lx.LU().assume_full_rank(), lx.SVD().assume_full_rank()])


def test_options(record):
    """A first guess and a preconditioner."""
    operator = matrix(POSITIVE, lx.positive_semidefinite_tag)
    inverse = matrix(jnp.diag(1 / jnp.diag(POSITIVE)), lx.positive_semidefinite_tag)
    options = dict(preconditioner=inverse, y0=jnp.ones(3))
    out = lx.linear_solve(operator, values(3), lx.CG(**TOLERANCE), options=options)
    record(out.value)
    assert int(out.stats["num_steps"]) > 0


def test_failure_is_reported():
    operator = matrix(jnp.zeros((3, 3)))
    out = lx.linear_solve(operator, values(3), lx.LU(), throw=False)
    assert out.result != lx.RESULTS.successful
    with pytest.raises(Exception, match="singular|non-finite|linear"):
        jax.block_until_ready(lx.linear_solve(operator, values(3), lx.LU()).value)
    with pytest.raises(ValueError):
        lx.linear_solve(matrix(GENERAL), values(3), lx.Cholesky())
    with pytest.raises((TypeError, ValueError)):
        matrix(GENERAL).mv(values(4))


def test_invert(record):
    inverse = lx.invert(matrix(GENERAL))
    assert isinstance(inverse, lx.FunctionLinearOperator)
    record(inverse.mv(values(3)))
    record(eqx.filter_jit(lambda a, x: lx.invert(a, lx.QR()).T.mv(x))(matrix(GENERAL), values(3)))
    record((inverse @ matrix(GENERAL)).as_matrix())


def test_types_of_compositions():
    a = matrix(GENERAL)
    assert type(a + a) is lx.AddLinearOperator and type(a @ a) is lx.ComposedLinearOperator
    assert type(2 * a) is lx.MulLinearOperator and type(a / 2) is lx.DivLinearOperator
    assert type(-a) is lx.NegLinearOperator


def test_tangents(record):
    """The derivative of an operator is one too."""
    operator, moved = matrix(GENERAL), matrix(POSITIVE)
    primal, tangent = eqx.filter_jvp(lambda a: a, (operator,), (moved,))
    record(lx.TangentLinearOperator(primal, tangent).mv(values(3)))
    linear = lambda x: lx.linearise(lx.JacobianLinearOperator(cubic, x)).mv(jnp.ones(3))
    record(jax.jacfwd(linear)(values(3)))
    record(jax.jacrev(lambda x: lx.JacobianLinearOperator(cubic, x).as_matrix().sum())(values(3)))


def test_tags():
    tags = frozenset({lx.lower_triangular_tag, lx.symmetric_tag})
    assert lx.transpose_tags(tags) == tags
    assert lx.transpose_tags(frozenset({lx.lower_triangular_tag})) == {lx.upper_triangular_tag}
    assert len(lx.transpose_tags_rules) > 0


def test_internal(record):
    tree = {"a": values(2), "b": values(3, 2)}
    for norm in (lx.internal.max_norm, lx.internal.rms_norm, lx.internal.two_norm):
        record(jax.jit(norm)(tree))
    record(jax.grad(lx.internal.two_norm)(jax.tree.map(jnp.zeros_like, tree)))
    record([lx.internal.sum_squares(tree), lx.internal.tree_dot(tree, tree)])
    record(lx.internal.complex_to_real_dtype(jnp.complex64) == jnp.float32)
    assert lx.internal.default_floating_dtype() == jnp.float32
    assert jax.make_jaxpr(lambda b: solve(lx.LU(), matrix(GENERAL), b))(values(3)) is not None


def test_lists_of_operators(record):
    """Operators are pytrees: through jit, scan and serialization."""

    def step(x, scale):
        return (lx.linear_solve(scale * matrix(GENERAL), x).value), x.sum()

    record(jax.lax.scan(step, values(3), jnp.array([1.0, 2.0, 0.5])))
    leaves, treedef = jax.tree.flatten(OPERATORS["pytree"]())
    record(jax.tree.unflatten(treedef, leaves).as_matrix())


def test_every_public_name_is_used():
    assert not find_unused(lx, __file__)
