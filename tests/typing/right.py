"""A user's programs that are right, with the types that a checker must find."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, assert_type

import numpy as np

import weft
import weft.numpy as jnp
from weft import Array, lax, nn, random
from weft.experimental import sparse
from weft.explain.numerics import Numerics
from weft.explain.report import Report
from weft.typing import ArrayLike, DTypeLike


class Params(NamedTuple):
    w: Array
    b: Array


def init(key: Array, n: int, dtype: DTypeLike = jnp.float32) -> Params:
    k1, k2 = random.split(key)
    return Params(random.normal(k1, (n, n), dtype), 0.1 * random.uniform(k2, (n,)))


def predict(params: Params, x: Array) -> Array:
    return nn.relu(x @ params.w + params.b)


def loss(params: Params, x: Array, y: Array) -> Array:
    return jnp.mean((predict(params, x) - y) ** 2)


def scaled(x: ArrayLike, *, by: float = 2.0) -> Array:
    return jnp.sin(x) * by


def scaled_rows(x: Array, by: Array | None = None) -> Array:
    return x * (2.0 if by is None else by)


params = init(random.key(0), 3)
x = jnp.ones((5, 3))

# transformations keep the signature
assert_type(weft.jit(loss)(params, x, y=x), Array)
assert_type(weft.grad(loss)(params, x, x), Params)
assert_type(weft.value_and_grad(loss)(params, x, x), tuple[Array, Params])
assert_type(weft.jit(weft.grad(loss))(params, x, x), Params)
assert_type(weft.grad(loss, 1)(params, x, x), Array)
assert_type(weft.grad(loss, argnums=(0,))(params, x, x), tuple[Params])
assert_type(weft.grad(loss, (0, 1))(params, x, x), tuple[Params, Array])
assert_type(weft.jit(weft.grad(loss, argnums=(0, 1, 2)))(params, x, x), tuple[Params, Array, Array])
assert_type(weft.value_and_grad(loss, argnums=1)(params, x, x), tuple[Array, Array])
assert_type(
    weft.value_and_grad(loss, argnums=(0, 1))(params, x, x), tuple[Array, tuple[Params, Array]]
)

# places of arrays, and where arrays are put
assert_type(x.at[0].set(1.0, mode="drop", unique_indices=True, indices_are_sorted=True), Array)
assert_type(x.at[1:, 0].add(x[1:, 0], wrap_negative_indices=False), Array)
assert_type(x.at[9].get(mode="fill", fill_value=0.0), Array)
assert_type(jnp.zeros(3, device=weft.devices()[0]), Array)
assert_type(jnp.reshape(x, (3, 5), out_sharding=weft.P(None)), Array)
mesh = weft.make_mesh((1,), ("i",))
assert_type(jnp.arange(3, device=weft.NamedSharding(mesh, weft.P("i"))), Array)

# programs for other processes, and sparse arrays
exported = weft.export.export(weft.jit(loss))(params, x, x)
assert_type(exported.serialize(), bytearray)
assert_type(weft.export.deserialize(exported.serialize()), weft.export.Exported)
mat = sparse.BCOO.fromdense(x)
assert_type(mat, sparse.BCOO)
assert_type(sparse.bcoo_todense(mat), Array)
assert_type(mat.nse, int)
assert_type(weft.vmap(predict, in_axes=(None, 0))(params, x), Array)
assert_type(weft.checkpoint(predict)(params, x), Array)
assert_type(weft.jit(scaled)(x, by=3.0), Array)
assert_type(weft.jit(loss).lower(params, x, x).as_text(), str)
assert_type(weft.vjp(loss, params, x, x)[0], Array)
assert_type(weft.vjp(predict, params, x)[1], Callable[[Array], tuple[Params, Array]])
assert_type(weft.jacfwd(scaled_rows)(x), Array)
assert_type(weft.hessian(scaled_rows)(x, by=x), Array)
assert_type(weft.jacrev(loss, (0, 1))(params, x, x), Any)
assert_type(weft.eval_shape(scaled_rows, x), weft.ShapeDtypeStruct)
updated: Params = weft.tree.map(lambda w, g: w - 0.1 * g, params, params)
assert_type(weft.tree.map(jnp.sin, {"a": x}), dict[str, Array])
assert_type(weft.explain(loss)(params, x, x).wall, float)
assert_type(weft.explain.memory(loss)(params, x, x).memory, dict[str, int])
assert_type(weft.explain.numerics(scaled)(x), Numerics)
assert_type(weft.named_call(scaled, name="scaled")(1.0), Array)
assert_type(weft.block_until_ready(params), Params)
assert_type(weft.device_put(params), Params)


@weft.jit
def step(params: Params, x: Array) -> tuple[Params, Array]:
    value, grads = weft.value_and_grad(loss)(params, x, x)
    return Params(params.w - 0.1 * grads.w, params.b - 0.1 * grads.b), value


@weft.jit(static_argnames="n", donate_argnums=0)
def power(x: Array, n: int) -> Array:
    return x**n


@partial(weft.jit, static_argnames="n")
def rooted(x: Array, n: int) -> Array:
    return x ** (1 / n)


class Scaler:
    def __init__(self, by: float) -> None:
        self.by = by

    @partial(weft.jit, static_argnums=0)
    def __call__(self, x: Array) -> Array:
        return self.by * x


@weft.custom_vjp
def clipped(x: Array, limit: float) -> Array:
    return jnp.clip(x, -limit, limit)


def clipped_fwd(x: Array, limit: float) -> tuple[Array, Array]:
    return clipped(x, limit), x


def clipped_bwd(res: Array, ct: Array) -> tuple[Array, None]:
    return ct * res, None


clipped.defvjp(clipped_fwd, clipped_bwd)


@weft.custom_jvp
def cube(x: Array) -> Array:
    return x**3


@cube.defjvp
def cube_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return cube(primals[0]), 3 * primals[0] ** 2 * tangents[0]


assert_type(step(params, x), tuple[Params, Array])
assert_type(power(x, 3), Array)
assert_type(rooted(x, 3), Array)
assert_type(rooted(x, n=3), Array)
assert_type(rooted.lower(x, 3).as_text(), str)
assert_type(weft.grad(rooted)(x, 3), Array)
assert_type(weft.vmap(rooted, in_axes=(0, None))(x, 3), Array)
assert_type(weft.jit(rooted)(x, 3), Array)
assert_type(weft.grad(power)(x, 3), Array)
assert_type(weft.value_and_grad(weft.jit(loss))(params, x, x), tuple[Array, Params])
assert_type(partial(weft.jit(loss), params)(x, x), Array)
jitted: Callable[[Array, int], Array] = rooted
jitted = weft.jit(rooted)
assert_type(clipped(x, 1.0), Array)
assert_type(cube(x), Array)


def with_aux(w: Array, x: Array) -> tuple[Array, dict[str, Array]]:
    return jnp.sum(w * x), {"x": x}


assert_type(weft.grad(with_aux, has_aux=True)(x, x), tuple[Array, dict[str, Array]])


# control flow is generic in the carry and in the stacked results
def body(carry: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
    return (carry[0] + x, carry[1]), carry[0]


assert_type(lax.scan(body, (x[0], x[1]), x), tuple[tuple[Array, Array], Array])
assert_type(lax.scan(lambda c, x: (c + x, c * 2), 0.0, x[0]), tuple[Array, Array])


def add_step(total: Array, x: Array) -> tuple[Array, Array]:  # the example of lax.scan
    total = total + x
    return total, total


assert_type(lax.scan(add_step, 0.0, x[0]), tuple[Array, Array])
assert_type(weft.eval_shape(loss, params, x, x), weft.ShapeDtypeStruct)
value, pull = weft.vjp(loss, params, x, x)
assert_type(pull(value), tuple[Params, Array, Array])
assert_type(weft.jacfwd(scaled)(x), Array)
assert_type(weft.tree.map(jnp.sin, params), Params)
assert_type(weft.explain(loss)(params, x, x), Report)
counted: Array = lax.fori_loop(0, 3, lambda i, c: c + 1, 0.0)
counted = lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
assert_type(lax.fori_loop(0, 3, lambda i, p: Params(p.w * i, p.b), params), Params)
assert_type(lax.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, x), Array)
assert_type(lax.cond(x.sum() > 0, lambda p: p, lambda p: p, params), Params)
assert_type(lax.map(scaled, x), Array)
assert_type(lax.associative_scan(jnp.add, x), Array)
assert_type(lax.stop_gradient(params), Params)


# functions of arrays
assert_type(jnp.sum(x, axis=(0, 1), keepdims=True), Array)
assert_type(jnp.where(x > 0, x, 0), Array)
assert_type(jnp.concatenate([x, x], axis=-1), Array)
assert_type(jnp.zeros((3, 4), dtype=jnp.bfloat16), Array)
assert_type(jnp.arange(10, dtype="int32"), Array)
assert_type(jnp.split(x, 5), list[Array])
assert_type(jnp.linalg.solve(x.T @ x, jnp.ones(3)), Array)
assert_type(jnp.linalg.svd(x).Vh, Array)
assert_type(jnp.linalg.svd(x, compute_uv=False), Array)
assert_type(jnp.linalg.eigh(x).eigenvalues, Array)
assert_type(jnp.linalg.slogdet(x).sign, Array)
assert_type(jnp.unique(x), Array)
assert_type(jnp.unique(x, return_counts=True), tuple[Array, ...])
assert_type(jnp.unique_counts(x).counts, Array)
assert_type(jnp.fft.rfft(x, axis=0), Array)
assert_type(jnp.float32(3), Array)
assert_type(lax.top_k(x, 2), tuple[Array, Array])
assert_type(lax.exp(x), Array)
assert_type(nn.softmax(x, axis=-1), Array)
assert_type(nn.initializers.glorot_normal()(random.key(0), (3, 3)), Array)
assert_type(weft.scipy.special.erf(x), Array)
assert_type(weft.scipy.stats.norm.logpdf(x, loc=1.0), Array)

# arrays
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x + np.ones(3), Array)
assert_type(2 * x - x / 3, Array)
assert_type(-x @ x.T, Array)
assert_type(x[0, 1:], Array)
assert_type(x.at[0].set(1.0), Array)
assert_type(x.reshape(-1).astype(jnp.int32), Array)
assert_type(x.mean(axis=0), Array)
assert_type(x.T.block_until_ready(), Array)
assert_type(x > 0, Array)
total: float = float(x.sum())
host: np.ndarray[Any, Any] = np.asarray(x)
rows = [row.sum() for row in x]
activation: Callable[[Array], Array] = nn.gelu
