"""Rotations in three dimensions, stored as unit quaternions: `Rotation`, and `Slerp` between them.

The formulas are functions of quaternions x, y, z, w along the last axis; all leading axes are a
stack of rotations. Everything is differentiable, also at the identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.core.source import boundary
from weft.core.trace import Tracer
from weft.errors import ShapeError
from weft.lax import linalg
from weft.numpy.promotion import as_array, as_inexact
from weft.primitives.layout import broadcast_to_rank
from weft.pytrees import register_dataclass
from weft.run.operation import operation
from weft.util import list_public

__all__ = ["Rotation", "Slerp"]
__dir__ = list_public(__name__)

# Below this square of an angle (or of its tangent) series stand for quotients by it. The first term
# they leave out is below the precision of float64 there.
SMALL = 1e-3


# --- quaternions ------------------------------------------------------------------------------


def sum_last(x: Any) -> Any:
    """The sum along the last axis, which is kept."""
    return jnp.sum(x, axis=-1, keepdims=True)


def safe_sqrt(x: Any) -> Any:
    """The square root, with derivative 0 at 0."""
    return jnp.where(x == 0, 0, jnp.sqrt(jnp.where(x == 0, 1, x)))


def evaluate_series(x: Any, *coefficients: float) -> Any:
    """A polynomial, the constant first."""
    out = coefficients[-1]
    for c in coefficients[-2::-1]:
        out = out * x + c
    return out


@operation
def normalize(q: Any) -> Any:
    """A quaternion of length 1; NaN for 0, which is not a rotation."""
    q = as_inexact("Rotation", q)
    return q / jnp.sqrt(sum_last(q * q))


def match_ranks(x: Any, y: Any) -> tuple[Any, Any]:
    """Two arrays of equal rank: one rotation goes with each of a stack."""
    rank = max(x.ndim, y.ndim)
    return broadcast_to_rank(x, rank), broadcast_to_rank(y, rank)


@operation
def compose(p: Any, q: Any) -> Any:
    """The rotation q and then p: Hamilton's product."""
    p, q = match_ranks(p, q)
    p, w = jnp.split(p, [3], axis=-1)
    q, s = jnp.split(q, [3], axis=-1)
    return normalize(
        jnp.concatenate([w * q + s * p + jnp.cross(p, q), w * s - sum_last(p * q)], -1)
    )


@operation(static=("axes", "extrinsic"))
def combine_turns(angles: Any, axes: tuple[int, ...], extrinsic: bool) -> Any:
    """The quaternion of rotations about axes, one after the other; angles along the last axis."""
    half = as_inexact("Rotation.from_euler", angles) / 2
    sine, cosine = jnp.sin(half), jnp.cos(half)
    out = None
    for i, axis in enumerate(axes):
        unit = broadcast_to_rank(jnp.eye(3, dtype=half.dtype)[axis], half.ndim)
        q = jnp.concatenate([sine[..., i, None] * unit, cosine[..., i, None]], axis=-1)
        if out is not None:
            q = compose(q, out) if extrinsic else compose(out, q)
        out = q
    return out


@operation(static=("axes", "extrinsic"))
def split_turns(q: Any, axes: tuple[int, int, int], extrinsic: bool) -> Any:
    """The angles of rotations about three axes that make up a rotation.

    Bernardes and Viollet, "Quaternion to Euler angles conversion", 2022. Where only the sum or the
    difference of the first and the third matters, the third is 0.
    """
    i, j, k = axes if extrinsic else axes[::-1]
    proper = i == k
    k = 3 - i - j if proper else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x = [q[..., n] for n in range(4)]
    a, b, c, d = x[3], x[i], x[j], sign * x[k]
    if not proper:
        a, b, c, d = a - c, b + d, c + a, d - b
    middle = 2 * jnp.arctan2(safe_sqrt(c * c + d * d), safe_sqrt(a * a + b * b))
    plus, minus = angle_of(b, a), angle_of(d, c)
    limit = max(1e-7, 10 * float(dtypes.finfo(q.dtype).eps))
    start, end = middle <= limit, middle >= np.pi - limit
    first, third = plus - minus, plus + minus
    first, third = (first, third) if extrinsic else (third, first)
    free = 2 * jnp.where(start, plus, -minus if extrinsic else minus)
    first = jnp.where(start | end, free, first)
    third = jnp.where(start | end, 0, third)
    if not proper:
        first, third = (first, sign * third) if extrinsic else (sign * first, third)
        middle = middle - np.pi / 2
    turns = jnp.stack([first, middle, third], axis=-1)
    return turns - 2 * np.pi * jnp.round(turns / (2 * np.pi))


def angle_of(y: Any, x: Any) -> Any:
    """atan2, with derivative 0 at the origin."""
    origin = (x == 0) & (y == 0)
    return jnp.arctan2(y, jnp.where(origin, 1, x))


# --- rotations --------------------------------------------------------------------------------


def parse_axes(op: str, seq: str, counts: Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """The axes that a text as "xyz" names, and whether they stay (lower case) or turn along."""
    extrinsic = seq.islower()
    known = isinstance(seq, str) and (not set(seq) - set("xyz") or not set(seq) - set("XYZ"))
    axes = tuple("xyz".index(c) for c in seq.lower()) if known else ()
    if len(axes) not in counts or any(a == b for a, b in zip(axes, axes[1:], strict=False)):
        raise ValueError(
            f"{op}: seq must be {' or '.join(map(str, counts))} axes of 'xyz' or of 'XYZ', none "
            f"after itself; got {seq!r}."
        )
    return axes, extrinsic


def check_vectors(op: str, x: Any, *shape: int) -> Any:
    """Return an array whose last axes have the given sizes; raise for other sizes."""
    x = as_array(x, op)
    if x.shape[-len(shape) :] != shape:
        sizes = ", ".join(map(str, shape))
        raise ShapeError(f"{op}: the last axes must be of sizes {sizes}; got {x.aval}.")
    return x


def constructor(*static: str) -> Callable[[Callable], staticmethod]:
    """A decorator of functions that make rotations: static methods, each compiled as a whole."""
    return lambda fun: staticmethod(operation(fun, static=static))


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation in three dimensions, or a stack of rotations. It is a pytree.

    `from_quat`, `from_matrix`, `from_euler`, `from_rotvec` and others make one. `r * s` is the
    rotation s followed by r.

    Args:
      quat: unit quaternions, a float array of shape (4,) or (n, 4) with x, y, z, w along the last
        axis.

    >>> r = Rotation.from_euler("z", 90, degrees=True)
    >>> print(r.apply(jnp.array([1.0, 0.0, 0.0])).round(6), r.magnitude())
    [0. 1. 0.] 1.5707964
    """

    quat: Any

    @constructor("scalar_first")
    def from_quat(quat: Any, *, scalar_first: bool = False) -> Rotation:
        """Make rotations of quaternions x, y, z, w, or w, x, y, z, of any length except 0."""
        q = check_vectors("Rotation.from_quat", quat, 4)
        return Rotation(normalize(jnp.roll(q, -1, axis=-1) if scalar_first else q))

    @constructor()
    def from_matrix(matrix: Any) -> Rotation:
        """Make rotations of orthogonal matrices [..., 3, 3]. Determinants are not checked."""
        op = "Rotation.from_matrix"  # by the largest component (Markley, 2008, eq. 3)
        m = as_inexact(op, check_vectors(op, matrix, 3, 3))
        at = lambda i, j: m[..., i, j]
        trace = at(0, 0) + at(1, 1) + at(2, 2)
        turn = [at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1)]
        out, best = jnp.stack([*turn, 1 + trace], axis=-1), trace
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            parts = [None] * 3
            parts[i] = 1 - trace + 2 * at(i, i)
            parts[j], parts[k] = at(j, i) + at(i, j), at(k, i) + at(i, k)
            q = jnp.stack([*parts, at(k, j) - at(j, k)], axis=-1)
            out = jnp.where((at(i, i) > best)[..., None], q, out)
            best = jnp.maximum(at(i, i), best)
        return Rotation(normalize(out))

    @constructor("degrees")
    def from_rotvec(rotvec: Any, degrees: bool = False) -> Rotation:
        """Make rotations of vectors along the axis, as long as the angle, in radians or degrees."""
        op = "Rotation.from_rotvec"
        v = check_vectors(op, rotvec, 3)
        v = as_inexact(op, jnp.deg2rad(v) if degrees else v)
        square = sum_last(v * v)
        small = square < SMALL
        angle = jnp.sqrt(jnp.where(small, 1, square))
        near = jnp.where(small, square, 0) / 4
        sine = evaluate_series(near, 1 / 2, -1 / 12, 1 / 240, -1 / 10080)
        cosine = evaluate_series(near, 1, -1 / 2, 1 / 24, -1 / 720, 1 / 40320)
        sine = jnp.where(small, sine, jnp.sin(angle / 2) / angle)
        cosine = jnp.where(small, cosine, jnp.cos(angle / 2))
        return Rotation(jnp.concatenate([sine * v, cosine], axis=-1))

    @constructor()
    def from_mrp(mrp: Any) -> Rotation:
        """Make rotations of modified Rodrigues parameters: the axis, times tan(angle / 4)."""
        v = as_inexact("Rotation.from_mrp", check_vectors("Rotation.from_mrp", mrp, 3))
        square = sum_last(v * v)
        return Rotation(jnp.concatenate([2 * v, 1 - square], axis=-1) / (1 + square))

    @constructor("seq", "degrees")
    def from_euler(seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Make rotations of up to three angles about axes, "xyz" fixed, "XYZ" turned along.

        `angles` has one for each axis along its last axis; a number will do for a single axis.
        """
        op = "Rotation.from_euler"
        axes, extrinsic = parse_axes(op, seq, (1, 2, 3))
        angles = as_array(angles, op)
        if len(axes) == 1 and not angles.ndim:
            angles = angles[None]
        angles = check_vectors(op, angles, len(axes))
        return Rotation(combine_turns(jnp.deg2rad(angles) if degrees else angles, axes, extrinsic))

    @constructor("num", "dtype")
    def identity(num: int | None = None, dtype: Any = float) -> Rotation:
        """Return the identity rotation, or a stack of `num` identity rotations."""
        unit = jnp.array([0, 0, 0, 1], dtype)
        return Rotation(unit if num is None else jnp.tile(unit, (num, 1)))

    @staticmethod
    def random(random_key: Any, num: int | None = None) -> Rotation:
        """Not available: Rotation.from_quat(random.normal(key, (num, 4))) is uniform."""
        raise NotImplementedError(
            "Rotation.random: must be made of normal numbers. "
            "Hint: Rotation.from_quat(random.normal(key, (num, 4)))."
        )

    @constructor()
    def concatenate(rotations: Sequence[Rotation]) -> Rotation:
        """A stack of rotations and of stacks of them, one after the other."""
        return Rotation(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @property
    def single(self) -> bool:
        """Return True if this is one rotation, no stack."""
        return self.quat.ndim == 1

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Rotation: len() needs a stack of rotations; got a single one.")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise TypeError("Rotation: an index needs a stack of rotations; got a single one.")
        return Rotation(self.quat[index])

    def __iter__(self) -> Iterator[Rotation]:
        return (self[i] for i in range(len(self)))

    def __mul__(self, other: Rotation) -> Rotation:
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(compose(self.quat, other.quat))

    @operation(static=("inverse",))
    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Vectors [..., 3] turned, or turned back; their leading axes and the stack's broadcast."""
        v = check_vectors("Rotation.apply", vectors, 3)
        try:
            jnp.broadcast_shapes(self.quat.shape[:-1], v.shape[:-1])
        except ShapeError:
            raise ShapeError(
                "Rotation.apply: vectors must be as many as rotations, or one of them single; got "
                f"{v.aval} for quaternions {self.quat.aval}."
            ) from None
        m = (self.inv() if inverse else self).as_matrix()
        m, v = match_ranks(m, v[..., None, :])
        return jnp.sum(m * v, axis=-1)

    @operation(static=("canonical", "scalar_first"))
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """Return the quaternions x, y, z, w, or w, x, y, z if `scalar_first`.

        q and -q are the same rotation; `canonical` returns the one with w > 0. If w is 0, the first
        of x, y, z that is not 0 is positive.
        """
        q = self.quat
        if canonical:
            x, y, z, w = (q[..., i] for i in range(4))
            negative, decided = w < 0, w != 0
            for c in (x, y, z):
                negative |= ~decided & (c < 0)
                decided |= c != 0
            q = jnp.where(negative[..., None], -q, q)
        return jnp.roll(q, 1, axis=-1) if scalar_first else q

    @operation
    def as_matrix(self) -> Any:
        """The matrices [..., 3, 3] that turn column vectors."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
        ]
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    @operation(static=("degrees",))
    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors along the axis, as long as the angle, from 0 to pi."""
        v, w = jnp.split(jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat), [3], axis=-1)
        square = sum_last(v * v)
        small = square < SMALL * w * w
        ratio = jnp.where(small, square, 0) / jnp.where(small, w * w, 1)
        size = jnp.sqrt(jnp.where(small, 1, square))
        near = 2 / jnp.where(small, w, 1) * evaluate_series(ratio, 1, -1 / 3, 1 / 5, -1 / 7, 1 / 9)
        v = v * jnp.where(small, near, 2 * jnp.arctan2(size, w) / size)
        return jnp.rad2deg(v) if degrees else v

    @operation
    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters: the axis, times tan(angle / 4)."""
        q = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    @operation(static=("seq", "degrees"))
    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Three angles [..., 3] of rotations about axes one after the other, as `from_euler`.

        Where only the sum or the difference of the first and the third matters, the third is 0.
        """
        angles = split_turns(self.quat, *parse_axes("Rotation.as_euler", seq, (3,)))
        return jnp.rad2deg(angles) if degrees else angles

    @operation
    def inv(self) -> Rotation:
        """The rotation back."""
        signs = jnp.array([-1, -1, -1, 1], self.quat.dtype)
        return Rotation(self.quat * broadcast_to_rank(signs, self.quat.ndim))

    @operation
    def magnitude(self) -> Any:
        """The angle, from 0 to pi."""
        q = self.quat
        return 2 * jnp.arctan2(safe_sqrt(sum_last(q[..., :3] ** 2)), jnp.abs(q[..., 3:]))[..., 0]

    @operation
    def mean(self, weights: Any = None) -> Rotation:
        """Return the rotation with the smallest sum of (weighted) squared distances to a stack."""
        if self.single:
            raise TypeError("Rotation.mean: needs a stack of rotations; got a single one.")
        q = self.quat.reshape(-1, 4)
        weights = jnp.ones(q.shape[0], q.dtype) if weights is None else as_array(weights, "mean")
        if weights.shape != (q.shape[0],):
            raise ShapeError(
                f"Rotation.mean: weights must be a number for each rotation, {q.shape[0]}; "
                f"got {weights.aval}."
            )
        # the eigenvector of the largest eigenvalue of the sum of q q^T (Markley et al., 2007)
        moments = jnp.sum(weights[:, None, None] * q[:, :, None] * q[:, None, :], axis=0)
        return Rotation(linalg.eigh(moments)[0][:, -1])  # eigenvalues ascend


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Slerp:
    """An interpolation between rotations at constant speed. `Slerp.init` makes one.

    A call with a time, or with a vector of times, returns the rotations at these times. Before the
    first time and after the last one, the motion goes on as next to it.

    Attributes:
      times: the times of the rotations, a float array of shape (n,).
      timedelta: the differences between the times.
      rotations: the rotations at the beginning of each interval, a `Rotation`.
      rotvecs: the rotation of each interval, as rotation vectors.

    >>> ends = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> turn = Slerp.init(jnp.array([0.0, 1.0]), ends)
    >>> print(turn(0.5).as_euler("zyx", degrees=True).astype(int))
    [45  0  0]
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @staticmethod
    @boundary
    def init(times: Any, rotations: Rotation) -> Slerp:
        """Through a stack of two rotations or more, at times that ascend."""
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise ValueError(
                f"Slerp.init: rotations must be a stack of two or more; got {rotations}."
            )
        times = jnp.asarray(times)
        if times.shape != (len(rotations),):
            raise ShapeError(
                f"Slerp.init: times must be one for each rotation, {len(rotations)}; "
                f"got {times.aval}."
            )
        steps = jnp.diff(times)
        if not isinstance(steps, Tracer) and not np.all(np.asarray(steps) > 0):
            raise ValueError(f"Slerp.init: times must strictly ascend; got {np.asarray(times)}.")
        starts = rotations[:-1]
        return Slerp(times, steps, starts, (starts.inv() * rotations[1:]).as_rotvec())

    @operation(name="slerp")
    def __call__(self, times: Any) -> Rotation:
        """The rotation at a time, or a stack of those at a vector of times."""
        times = jnp.asarray(times)
        if times.ndim > 1:
            raise ShapeError(f"Slerp: times must be a number or a vector; got {times.aval}.")
        knots = self.times
        i = jnp.clip(jnp.searchsorted(knots, times, side="right") - 1, 0, knots.shape[0] - 2)
        share = (times - knots[i]) / self.timedelta[i]
        return self.rotations[i] * Rotation.from_rotvec(self.rotvecs[i] * share[..., None])
