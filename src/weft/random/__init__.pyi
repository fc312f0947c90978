"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from weft.dtypes import DTypeLike as _DTypeLike
from weft.random.keys import KeyDtype as _KeyDtype
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
from weft.xla.typing import Shape as _Shape
from weft.xla.typing import ShardingLike as _ShardingLike

from weft.random.keys import Key as Key

def PRNGKey(seed: int | _ArrayLike, *, impl: str | _KeyDtype | None = ...) -> _Array: ...
def ball(
    key: _ArrayLike,
    d: int,
    p: _ArrayLike = ...,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def bernoulli(
    key: _ArrayLike,
    p: _ArrayLike = ...,
    shape: _Shape | None = ...,
    mode: str = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def beta(
    key: _ArrayLike,
    a: _ArrayLike,
    b: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    method: str = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def binomial(
    key: _ArrayLike,
    n: _ArrayLike,
    p: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def bits(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def categorical(
    key: _ArrayLike,
    logits: _ArrayLike,
    axis: int = ...,
    shape: _Shape | None = ...,
    replace: bool = ...,
    mode: str | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def cauchy(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def chisquare(
    key: _ArrayLike,
    df: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    method: str = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def choice(
    key: _ArrayLike,
    a: _ArrayLike,
    shape: _Shape = ...,
    replace: bool = ...,
    p: _ArrayLike | None = ...,
    axis: int = ...,
    mode: str | None = ...,
) -> _Array: ...
def clone(key: _ArrayLike) -> _Array: ...
def dirichlet(
    key: _ArrayLike,
    alpha: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def double_sided_maxwell(
    key: _ArrayLike,
    loc: _ArrayLike,
    scale: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def exponential(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def f(
    key: _ArrayLike,
    dfnum: _ArrayLike,
    dfden: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def fold_in(key: _ArrayLike, data: _ArrayLike) -> _Array: ...
def gamma(
    key: _ArrayLike,
    a: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    method: str = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def generalized_normal(
    key: _ArrayLike,
    p: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def geometric(
    key: _ArrayLike,
    p: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def gumbel(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    mode: str | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def key(
    seed: int | _ArrayLike, *, impl: str | _KeyDtype | None = ..., dtype: _DTypeLike | None = ...
) -> _Array: ...
def key_data(keys: _ArrayLike) -> _Array: ...
def key_dtype(impl_spec: _Any = ...) -> _KeyDtype: ...
def key_impl(keys: _ArrayLike) -> str | _KeyDtype: ...
def laplace(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def loggamma(
    key: _ArrayLike,
    a: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    method: str = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def logistic(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def lognormal(
    key: _ArrayLike,
    sigma: _ArrayLike = ...,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def maxwell(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def multinomial(
    key: _ArrayLike,
    n: _ArrayLike,
    p: _ArrayLike,
    *,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    unroll: int | bool = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def multivariate_normal(
    key: _ArrayLike,
    mean: _ArrayLike,
    cov: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    method: str = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def normal(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def orthogonal(
    key: _ArrayLike,
    n: int,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    m: int | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def pareto(
    key: _ArrayLike,
    b: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def permutation(
    key: _ArrayLike,
    x: _ArrayLike,
    axis: int = ...,
    independent: bool = ...,
    *,
    out_sharding: _ShardingLike = ...,
) -> _Array: ...
def poisson(
    key: _ArrayLike,
    lam: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    method: str = ...,
    out_sharding: _Any = ...,
) -> _Array: ...
def rademacher(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def randint(
    key: _ArrayLike,
    shape: _Shape,
    minval: _ArrayLike,
    maxval: _ArrayLike,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def rayleigh(
    key: _ArrayLike,
    scale: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def split(key: _ArrayLike, num: int | _Sequence[int] = ...) -> _Array: ...
def t(
    key: _ArrayLike,
    df: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def triangular(
    key: _ArrayLike,
    left: _ArrayLike,
    mode: _ArrayLike,
    right: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def truncated_normal(
    key: _ArrayLike,
    lower: _ArrayLike,
    upper: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def uniform(
    key: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    minval: _ArrayLike = ...,
    maxval: _ArrayLike = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def wald(
    key: _ArrayLike,
    mean: _ArrayLike,
    shape: _Shape | None = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def weibull_min(
    key: _ArrayLike,
    scale: _ArrayLike,
    concentration: _ArrayLike,
    shape: _Shape = ...,
    dtype: _DTypeLike | None = ...,
    *,
    out_sharding: _Any = ...,
) -> _Array: ...
def wrap_key_data(
    key_bits_array: _ArrayLike,
    *,
    impl: str | _KeyDtype | None = ...,
    dtype: _DTypeLike | None = ...,
) -> _Array: ...
