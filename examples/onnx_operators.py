"""The operators of ONNX as functions of arrays: operands by place, attributes by name.

Operands that are sizes, axes or places in shapes are NumPy arrays. Sources: the specification,
https://onnx.ai/onnx/operators.
"""

import functools
import math

import numpy as np
import onnx

import weft
import weft.numpy as jnp
from weft import lax, nn
from weft.scipy import special

OPERATORS = {}
ONNX_DTYPES = onnx.helper.tensor_dtype_to_np_dtype


def dtype_of(number):
    """Return the dtype that ONNX has a number for, of 32 bits where weft has no wider ones."""
    return weft.dtypes.canonicalize_dtype(ONNX_DTYPES(number))


def operator(name):
    """Return a decorator that enters a function into the table."""

    def enter(function):
        OPERATORS[name] = function
        return function

    return enter


def concrete(x):
    """Return True if the value of an operand is known while programs are traced."""
    return x is None or isinstance(x, np.ndarray | np.generic | int | float | bool | list)


def ints(x):
    """Return an operand, or an attribute, as a list of integers; None for none."""
    return None if x is None else [int(k) for k in np.ravel(np.asarray(x))]


def axis_of(axis, x):
    """Return an axis as one that is not negative."""
    return axis % x.ndim


# --- on each element ---

for _name, _function in {
    "Abs": jnp.abs, "Acos": jnp.arccos, "Acosh": jnp.arccosh, "Add": jnp.add,
    "And": jnp.logical_and, "Asin": jnp.arcsin, "Asinh": jnp.arcsinh, "Atan": jnp.arctan,
    "Atanh": jnp.arctanh, "BitwiseAnd": jnp.bitwise_and, "BitwiseNot": jnp.bitwise_not,
    "BitwiseOr": jnp.bitwise_or, "BitwiseXor": jnp.bitwise_xor, "Ceil": jnp.ceil, "Cos": jnp.cos,
    "Cosh": jnp.cosh, "Equal": jnp.equal, "Erf": special.erf, "Exp": jnp.exp, "Floor": jnp.floor,
    "Greater": jnp.greater, "GreaterOrEqual": jnp.greater_equal, "IsNaN": jnp.isnan,
    "Less": jnp.less, "LessOrEqual": jnp.less_equal, "Log": jnp.log, "Mul": jnp.multiply,
    "Neg": jnp.negative, "Not": jnp.logical_not, "Or": jnp.logical_or, "Relu": nn.relu,
    "Round": jnp.round, "Sigmoid": nn.sigmoid, "Sign": jnp.sign, "Sin": jnp.sin,
    "Sinh": jnp.sinh, "Softplus": nn.softplus, "Softsign": nn.soft_sign, "Sqrt": jnp.sqrt,
    "Sub": jnp.subtract, "Tan": jnp.tan, "Tanh": jnp.tanh, "Where": jnp.where,
    "Xor": jnp.logical_xor, "Det": jnp.linalg.det,
}.items():  # fmt: skip
    OPERATORS[_name] = lambda *xs, _function=_function: _function(*map(jnp.asarray, xs))

for _name, _combine in {
    "Max": jnp.maximum, "Min": jnp.minimum, "Sum": jnp.add,
}.items():  # fmt: skip
    OPERATORS[_name] = lambda *xs, _combine=_combine: functools.reduce(
        _combine, map(jnp.asarray, xs)
    )


def like(y, x):
    """Return an array in the dtype of another."""
    return jnp.asarray(y).astype(jnp.asarray(x).dtype)


@operator("Mean")
def mean(*xs):
    return functools.reduce(jnp.add, xs) / len(xs)


@operator("Div")
def div(x, y):
    x, y = jnp.asarray(x), jnp.asarray(y)
    return lax.div(*jnp.broadcast_arrays(x, y)) if jnp.issubdtype(x.dtype, jnp.integer) else x / y


@operator("Mod")
def mod(x, y, fmod=0):
    return (jnp.fmod if fmod else jnp.mod)(jnp.asarray(x), jnp.asarray(y))


@operator("Pow")
def power(x, y):
    if jnp.issubdtype(jnp.asarray(x).dtype, jnp.integer) and jnp.issubdtype(
        jnp.asarray(y).dtype, jnp.integer
    ):
        return like(jnp.power(x, like(y, x)), x)
    return like(jnp.power(x, y), x)


@operator("Reciprocal")
def reciprocal(x):
    return 1 / jnp.asarray(x)


@operator("BitShift")
def bit_shift(x, y, direction):
    return (jnp.left_shift if direction == "LEFT" else jnp.right_shift)(
        jnp.asarray(x), jnp.asarray(y)
    )


@operator("IsInf")
def is_inf(x, detect_negative=1, detect_positive=1):
    x = jnp.asarray(x)
    return jnp.isinf(x) & ((x < 0) & bool(detect_negative) | (x > 0) & bool(detect_positive))


@operator("Cast")
def cast(x, to, saturate=1, round_mode="up"):
    return convert(jnp.asarray(x), dtype_of(to), saturate)


@operator("CastLike")
def cast_like(x, y, saturate=1, round_mode="up"):
    return convert(jnp.asarray(x), jnp.asarray(y).dtype, saturate)


def convert(x, dtype, saturate):
    """Return an array in a dtype; numbers that 8-bit floats do not hold are their greatest one."""
    if saturate and dtype.itemsize == 1 and jnp.issubdtype(dtype, jnp.floating):
        info = jnp.finfo(dtype)
        x = jnp.clip(x, float(info.min), float(info.max))
    return x.astype(dtype)


@operator("BitCast")
def bit_cast(x, to):
    return lax.bitcast_convert_type(jnp.asarray(x), dtype_of(to))


@operator("Clip")
def clip(x, low=None, high=None, min=None, max=None):
    x = jnp.asarray(x)
    for bound, choose in (
        (low if min is None else min, jnp.maximum),
        (high if max is None else max, jnp.minimum),
    ):
        x = x if bound is None else choose(x, like(bound, x))
    return x


@operator("Elu")
def elu(x, alpha=1.0):
    return jnp.where(x > 0, x, like(alpha, x) * jnp.expm1(jnp.minimum(x, 0)))


@operator("Celu")
def celu(x, alpha=1.0):
    return jnp.maximum(x, 0) + jnp.minimum(0, alpha * jnp.expm1(x / alpha))


@operator("Selu")
def selu(x, alpha=1.6732631921768188, gamma=1.0507010221481323):
    return gamma * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0)))


@operator("LeakyRelu")
def leaky_relu(x, alpha=0.01):
    return jnp.where(x >= 0, x, like(alpha, x) * x)


@operator("PRelu")
def prelu(x, slope):
    return jnp.where(x >= 0, x, slope * x)


@operator("ThresholdedRelu")
def thresholded_relu(x, alpha=1.0):
    return jnp.where(x > alpha, x, 0 * x)


@operator("HardSigmoid")
def hard_sigmoid(x, alpha=0.2, beta=0.5):
    return jnp.clip(alpha * x + beta, 0, 1)


@operator("HardSwish")
def hard_swish(x):
    return x * hard_sigmoid(x, 1 / 6, 0.5)


@operator("Swish")
def swish(x, alpha=1.0):
    return x * nn.sigmoid(like(alpha, x) * x)


@operator("Mish")
def mish(x):
    return x * jnp.tanh(nn.softplus(x))


@operator("Gelu")
def gelu(x, approximate="none"):
    return nn.gelu(x, approximate=approximate == "tanh")


@operator("Shrink")
def shrink(x, bias=0.0, lambd=0.5):
    zero = jnp.zeros_like(x)
    return jnp.where(x < -lambd, x + like(bias, x), jnp.where(x > lambd, x - like(bias, x), zero))


# --- shapes and places ---


@operator("Constant")
def constant(value=None, value_int=None, value_ints=None, value_float=None, value_floats=None,
             value_string=None, value_strings=None):  # fmt: skip
    found = [value, *[v if v is None else np.asarray(v, np.int64) for v in (value_int, value_ints)]]
    found += [v if v is None else np.asarray(v, np.float32) for v in (value_float, value_floats)]
    return next(v for v in found if v is not None)


@operator("ConstantOfShape")
def constant_of_shape(shape, value=None):
    value = np.zeros(1, np.float32) if value is None else value
    return jnp.full(ints(shape), value.reshape(()), value.dtype)


OPERATORS["Identity"] = lambda x: x


@operator("Shape")
def shape_of(x, start=0, end=None):
    return np.asarray(np.shape(x)[start:end], np.int64)


@operator("Size")
def size_of(x):
    return np.asarray(np.prod(np.shape(x)), np.int64)


@operator("Reshape")
def reshape(x, shape, allowzero=0):
    sizes = ints(shape)
    if not allowzero:
        sizes = [np.shape(x)[k] if n == 0 else n for k, n in enumerate(sizes)]
    return jnp.reshape(x, sizes)


@operator("Flatten")
def flatten(x, axis=1):
    axis = axis if axis >= 0 else axis + x.ndim
    return jnp.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Squeeze")
def squeeze(x, axes=None):
    return jnp.squeeze(x, None if axes is None else tuple(ints(axes)))


@operator("Unsqueeze")
def unsqueeze(x, axes):
    return jnp.expand_dims(x, tuple(ints(axes)))


@operator("Transpose")
def transpose(x, perm=None):
    return jnp.transpose(x, perm)


@operator("Expand")
def expand(x, shape):
    sizes = np.broadcast_shapes(np.shape(x), tuple(ints(shape)))
    return jnp.broadcast_to(x, sizes)


@operator("Tile")
def tile(x, repeats):
    return jnp.tile(x, ints(repeats))


@operator("Concat")
def concat(*xs, axis):
    return jnp.concatenate([jnp.asarray(x) for x in xs], axis)


@operator("Split")
def split(x, sizes=None, axis=0, split=None, num_outputs=None, count=1):
    sizes = ints(split if sizes is None else sizes)
    if sizes is None:
        n, parts = x.shape[axis], num_outputs or count
        each = -(-n // parts)
        sizes = [min(each, n - k * each) for k in range(parts)]
    return tuple(jnp.split(x, np.cumsum(sizes)[:-1].tolist(), axis))


@operator("Slice")
def slice_array(x, starts=None, ends=None, axes=None, steps=None):
    starts, ends = ints(starts), ints(ends)
    axes = list(range(len(starts))) if axes is None else ints(axes)
    steps = [1] * len(starts) if steps is None else ints(steps)
    index = [slice(None)] * np.ndim(x)
    for low, high, axis, step in zip(starts, ends, axes, steps, strict=True):
        n = np.shape(x)[axis]
        if step < 0:
            low = min(max(low + n if low < 0 else low, 0), n - 1)
            high = max(high + n if high < 0 else high, -1)
            index[axis] = slice(low, None if high < 0 else high, step)
        else:
            index[axis] = slice(low, high, step)
    return jnp.asarray(x)[tuple(index)]


@operator("Pad")
def pad(x, pads, value=None, axes=None, mode="constant"):
    pads = ints(pads)
    axes = list(range(x.ndim)) if axes is None else [axis_of(a, x) for a in ints(axes)]
    rows = [(0, 0)] * x.ndim
    for k, axis in enumerate(axes):
        rows[axis] = pads[k], pads[k + len(axes)]
    negative = tuple([slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(rows, x.shape)])
    x, rows = jnp.asarray(x)[negative], [(max(a, 0), max(b, 0)) for a, b in rows]
    if mode == "constant":
        return lax.pad(
            x, like(0 if value is None else value, x).reshape(()), [(*r, 0) for r in rows]
        )
    return jnp.pad(x, rows, mode=mode)


@operator("Gather")
def gather(x, indices, axis=0):
    return jnp.take(x, wrap(indices, np.shape(x)[axis]), axis)


def wrap(indices, n):
    """Return indices with those from the end counted from the start."""
    return jnp.where(jnp.asarray(indices) < 0, jnp.asarray(indices) + n, indices)


@operator("GatherElements")
def gather_elements(x, indices, axis=0):
    places = list(jnp.indices(np.shape(indices), sparse=True))
    places[axis] = wrap(indices, np.shape(x)[axis])
    return jnp.asarray(x)[tuple(places)]


@operator("GatherND")
def gather_nd(x, indices, batch_dims=0):
    pick = lambda x, i: x[tuple(jnp.moveaxis(i, -1, 0))]
    for _ in range(batch_dims):
        pick = weft.vmap(pick)
    return pick(jnp.asarray(x), jnp.asarray(indices))


def scatter_at(x, places, updates, reduction):
    at = jnp.asarray(x).at[places]
    write = {"none": at.set, "add": at.add, "mul": at.multiply, "max": at.max, "min": at.min}
    return write[reduction](updates)


@operator("ScatterElements")
def scatter_elements(x, indices, updates, axis=0, reduction="none"):
    places = list(jnp.indices(np.shape(indices), sparse=True))
    places[axis] = wrap(indices, np.shape(x)[axis])
    return scatter_at(x, tuple(places), updates, reduction)


OPERATORS["Scatter"] = scatter_elements


@operator("ScatterND")
def scatter_nd(x, indices, updates, reduction="none"):
    return scatter_at(x, tuple(jnp.moveaxis(jnp.asarray(indices), -1, 0)), updates, reduction)


@operator("TensorScatter")
def tensor_scatter(x, update, starts=None, axis=-2, mode="linear"):
    axis = axis_of(axis, x)
    starts = jnp.zeros(x.shape[0], np.int32) if starts is None else jnp.asarray(starts)

    def write(x, update, start):
        places = start + jnp.arange(update.shape[axis - 1])
        places = places % x.shape[axis - 1] if mode == "circular" else places
        return x.at[(slice(None),) * (axis - 1) + (places,)].set(update)

    return weft.vmap(write)(jnp.asarray(x), jnp.asarray(update), starts)


@operator("Compress")
def compress(x, condition, axis=None):
    return jnp.compress(condition, x, axis)


@operator("NonZero")
def nonzero(x):
    return jnp.stack(jnp.nonzero(x)).astype(int)


@operator("Unique")
def unique(x, axis=None, sorted=1):
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        y = np.take(y, order, axis or 0)
        inverse = np.argsort(order)[inverse]
        first, counts = first[order], counts[order]
    return y, first, inverse, counts


@operator("OneHot")
def one_hot(indices, depth, values, axis=-1):
    depth = ints(depth)[0]
    indices = jnp.asarray(indices)
    hot = jnp.expand_dims(wrap(indices, depth), axis) == jnp.expand_dims(
        jnp.arange(depth), [k for k in range(indices.ndim + 1) if k != axis % (indices.ndim + 1)]
    )
    return jnp.where(hot, values[1], values[0])


@operator("Range")
def arange(start, limit, delta):
    return np.arange(
        np.asarray(start).item(), np.asarray(limit).item(), np.asarray(delta).item()
    ).astype(np.asarray(start).dtype)


@operator("EyeLike")
def eye_like(x, dtype=None, k=0):
    return jnp.eye(*x.shape, k=k, dtype=x.dtype if dtype is None else dtype_of(dtype))


@operator("Trilu")
def trilu(x, k=0, upper=1):
    return (jnp.triu if upper else jnp.tril)(x, int(np.asarray(k)))


@operator("ReverseSequence")
def reverse_sequence(x, lengths, batch_axis=1, time_axis=0):
    y = jnp.moveaxis(x, (batch_axis, time_axis), (0, 1))
    t = jnp.arange(y.shape[1])
    n = jnp.asarray(lengths)[:, None]
    places = jnp.where(t < n, n - 1 - t, t)
    y = weft.vmap(lambda y, i: y[i])(y, places)
    return jnp.moveaxis(y, (0, 1), (batch_axis, time_axis))


@operator("DepthToSpace")
def depth_to_space(x, blocksize, mode="DCR"):
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // b**2, h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(x, blocksize, mode="DCR"):
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b)
    y = y.transpose(0, 3, 5, 1, 2, 4) if mode == "DCR" else y.transpose(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * b * b, h // b, w // b)


@operator("CenterCropPad")
def center_crop_pad(x, shape, axes=None):
    axes = range(x.ndim) if axes is None else axes
    for axis, n in zip(axes, ints(shape), strict=True):
        m = x.shape[axis]
        if m >= n:
            low = (m - n) // 2
            x = lax.slice_in_dim(jnp.asarray(x), low, low + n, axis=axis)
        else:
            rows = [(0, 0)] * x.ndim
            rows[axis] = (n - m) // 2, n - m - (n - m) // 2
            x = jnp.pad(x, rows)
    return x


# --- reductions ---


def reduce_by(function):
    """Return an operator that reduces along axes, which are an attribute or an operand."""

    def reduce(x, given=None, axes=None, keepdims=1, noop_with_empty_axes=0):
        axes = ints(given if axes is None else axes)
        if not axes and noop_with_empty_axes:
            axes = []
        elif not axes:
            axes = range(np.ndim(x))
        return function(jnp.asarray(x), tuple(axes), bool(keepdims))

    return reduce


for _name, _reduce in {
    "L1": lambda x, a, k: jnp.abs(x).sum(a, keepdims=k, dtype=x.dtype),
    "L2": lambda x, a, k: jnp.sqrt((x * x).sum(a, keepdims=k)).astype(x.dtype),
    "LogSum": lambda x, a, k: jnp.log(x.sum(a, keepdims=k)),
    "LogSumExp": lambda x, a, k: nn.logsumexp(x, a, keepdims=k),
    "Max": lambda x, a, k: reduce_extremum(x, a, k, jnp.max, -math.inf, False),
    "Mean": lambda x, a, k: x.mean(a, keepdims=k).astype(x.dtype),
    "Min": lambda x, a, k: reduce_extremum(x, a, k, jnp.min, math.inf, True),
    "Prod": lambda x, a, k: x.prod(a, keepdims=k, dtype=x.dtype),
    "Sum": lambda x, a, k: x.sum(a, keepdims=k, dtype=x.dtype),
    "SumSquare": lambda x, a, k: (x * x).sum(a, keepdims=k, dtype=x.dtype),
}.items():
    OPERATORS[f"Reduce{_name}"] = reduce_by(_reduce)


def reduce_extremum(x, axes, keepdims, function, start, start_of_bools):
    """Return an extremum; that of no elements is the start of all reductions."""
    if x.dtype == bool:
        start = start_of_bools
    elif jnp.issubdtype(x.dtype, jnp.integer):
        info = jnp.iinfo(x.dtype)
        start = info.min if start < 0 else info.max
    return function(x, axes, keepdims=keepdims, initial=start)


def find_place(function):
    def find(x, axis=0, keepdims=1, select_last_index=0):
        if select_last_index:
            y = x.shape[axis] - 1 - function(jnp.flip(x, axis), axis)
        else:
            y = function(x, axis)
        return (jnp.expand_dims(y, axis) if keepdims else y).astype(int)

    return find


OPERATORS["ArgMax"], OPERATORS["ArgMin"] = find_place(jnp.argmax), find_place(jnp.argmin)


def accumulate(function, identity):
    def run(x, axis, exclusive=0, reverse=0):
        axis = ints(axis)[0]
        y = jnp.flip(x, axis) if reverse else jnp.asarray(x)
        if exclusive:
            rows = [(0, 0)] * y.ndim
            rows[axis] = 1, 0
            y = jnp.pad(y, rows, constant_values=identity)
            y = lax.slice_in_dim(y, 0, y.shape[axis] - 1, axis=axis % y.ndim)
        y = function(y, axis).astype(x.dtype)
        return jnp.flip(y, axis) if reverse else y

    return run


OPERATORS["CumSum"], OPERATORS["CumProd"] = accumulate(jnp.cumsum, 0), accumulate(jnp.cumprod, 1)


@operator("TopK")
def top_k(x, k, axis=-1, largest=1, sorted=1):
    x, k = jnp.asarray(x), ints(k)[0]
    order = jnp.argsort(x, axis, stable=True, descending=bool(largest))
    order = lax.slice_in_dim(order, 0, k, axis=axis_of(axis, x))
    return jnp.take_along_axis(x, order, axis), order.astype(int)


@operator("Softmax")
def softmax(x, axis=-1, version=13):
    return over_axes(nn.softmax, x, axis, version)


@operator("LogSoftmax")
def log_softmax(x, axis=-1, version=13):
    return over_axes(nn.log_softmax, x, axis, version)


def over_axes(function, x, axis, version):
    if version >= 13:
        return function(x, axis)
    return function(flatten(x, axis), 1).reshape(x.shape)


@operator("Hardmax")
def hardmax(x, axis=-1):
    hot = jnp.expand_dims(jnp.argmax(x, axis), axis) == jnp.expand_dims(
        jnp.arange(x.shape[axis]), [k for k in range(x.ndim) if k != axis % x.ndim]
    )
    return like(hot, x)


# --- products and networks ---


@operator("MatMul")
def matmul(x, y):
    return jnp.matmul(x, y)


@operator("MatMulInteger")
def matmul_integer(x, y, x_zero=None, y_zero=None):
    x, y = (jnp.asarray(v).astype(np.int32) for v in (x, y))
    x = x if x_zero is None else x - like(x_zero, x).reshape(-1, 1)[: x.shape[-2] or 1]
    return jnp.matmul(x, y if y_zero is None else y - like(y_zero, y))


@operator("Gemm")
def gemm(a, b, c=None, alpha=1.0, beta=1.0, transA=0, transB=0):
    a, b = (jnp.asarray(a).T if transA else a), (jnp.asarray(b).T if transB else b)
    y = alpha * jnp.matmul(a, b)
    return y if c is None else y + beta * jnp.asarray(c)


@operator("Einsum")
def einsum(*xs, equation):
    return jnp.einsum(equation, *xs)


def find_pads(shape, kernel, strides, dilations, pads, auto_pad):
    """Return the padding of spatial axes, (low, high) for each."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if auto_pad.startswith("SAME"):
        total = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(shape, strides, reach)]
        small = [t // 2 for t in total]
        large = [t - s for t, s in zip(total, small)]
        return list(zip(small, large) if auto_pad == "SAME_UPPER" else zip(large, small))
    n = len(kernel)
    return list(zip(pads[:n], pads[n:])) if pads and auto_pad != "VALID" else [(0, 0)] * n


@operator("Conv")
def conv(x, w, b=None, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None,
         strides=None):  # fmt: skip
    x, w = jnp.asarray(x), jnp.asarray(w)
    ones = [1] * (x.ndim - 2)
    strides, dilations = strides or ones, dilations or ones
    rows = find_pads(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad)
    y = lax.conv_general_dilated(
        x, w, strides, rows, rhs_dilation=dilations, feature_group_count=group
    )
    return y if b is None else y + jnp.reshape(b, (-1, *ones))


@operator("ConvInteger")
def conv_integer(x, w, x_zero=None, w_zero=None, **attrs):
    x, w = (jnp.asarray(v).astype(np.int32) for v in (x, w))
    x = x if x_zero is None else x - like(x_zero, x)
    return conv(x, w if w_zero is None else w - like(w_zero, w), **attrs)


@operator("ConvTranspose")
def conv_transpose(x, w, b=None, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None,
                   output_padding=None, output_shape=None, pads=None, strides=None):  # fmt: skip
    x, w = jnp.asarray(x), jnp.asarray(w)
    n = x.ndim - 2
    strides, dilations, more = strides or [1] * n, dilations or [1] * n, output_padding or [0] * n
    reach = [(k - 1) * d for k, d in zip(w.shape[2:], dilations)]
    if output_shape or auto_pad.startswith("SAME"):
        output_shape = output_shape or [m * s for m, s in zip(x.shape[2:], strides)]
        total = [
            s * (m - 1) + o + r + 1 - k
            for s, m, o, r, k in zip(strides, x.shape[2:], more, reach, output_shape[-n:])
        ]
        low = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in total]
        pads = [*low, *[t - a for t, a in zip(total, low)]]
    pads = pads or [0] * 2 * n
    rows = [(r - a, r - b_ + o) for r, a, b_, o in zip(reach, pads[:n], pads[n:], more)]
    w = jnp.flip(w, range(2, n + 2)).reshape(group, -1, *w.shape[1:])
    w = jnp.swapaxes(w, 1, 2).reshape(-1, w.shape[1], *w.shape[3:])
    y = lax.conv_general_dilated(
        x, w, [1] * n, rows, lhs_dilation=strides, rhs_dilation=dilations, feature_group_count=group
    )
    return y if b is None else y + jnp.reshape(b, (-1, *[1] * n))


def pool_windows(x, kernel, strides, dilations, rows, ceil_mode, start, combine):
    """Reduce windows of spatial axes; with `ceil_mode` the last one may reach over the end."""
    if ceil_mode:
        longer = []
        for n, k, s, d, (low, high) in zip(x.shape[2:], kernel, strides, dilations, rows):
            span = n + low + high - (k - 1) * d - 1
            count = -(-span // s) + 1
            if (count - 1) * s >= n + low:
                count -= 1
            longer.append((low, high + max((count - 1) * s - span, 0)))
        rows = longer
    return lax.reduce_window(
        x, np.asarray(start, x.dtype), combine, (1, 1, *kernel), (1, 1, *strides),
        [(0, 0), (0, 0), *rows], window_dilation=(1, 1, *dilations),
    )  # fmt: skip


@operator("MaxPool")
def max_pool(x, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape=(), pads=None,
             storage_order=0, strides=None, count=1):  # fmt: skip
    x = jnp.asarray(x)
    ones = [1] * (x.ndim - 2)
    strides, dilations = strides or ones, dilations or ones
    rows = find_pads(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
    floats = jnp.issubdtype(x.dtype, jnp.floating)
    start = -math.inf if floats else jnp.iinfo(x.dtype).min
    run = lambda x: pool_windows(
        x, kernel_shape, strides, dilations, rows, ceil_mode, start, lax.max
    )
    if count == 1:
        return run(x)
    place = jnp.arange(x.size).reshape(x.shape)
    if storage_order:
        space = x.shape[2:]
        place = jnp.arange(x.size).reshape(*x.shape[:2], *space[::-1])
        place = jnp.transpose(place, (0, 1, *range(x.ndim - 1, 1, -1)))
    best = run(x)
    # the first place at which a window has its maximum: ordered by value, then by place
    order = jnp.argsort(jnp.argsort(x, None, stable=True)).reshape(x.shape)
    first = pool_windows(order, kernel_shape, strides, dilations, rows, ceil_mode, -1, lax.max)
    return best, place.reshape(-1)[jnp.argsort(order, None)[first]].astype(int)


@operator("AveragePool")
def average_pool(x, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0, dilations=None,
                 kernel_shape=(), pads=None, strides=None):  # fmt: skip
    x = jnp.asarray(x)
    ones = [1] * (x.ndim - 2)
    strides, dilations = strides or ones, dilations or ones
    rows = find_pads(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
    run = lambda x, rows: pool_windows(
        x, kernel_shape, strides, dilations, rows, ceil_mode, 0, lax.add
    )
    one = jnp.ones_like(x)
    if count_include_pad:
        padding = [(0, 0), (0, 0), *rows]
        return run(x, rows) / run(jnp.pad(one, padding, constant_values=1), [(0, 0)] * len(rows))
    return run(x, rows) / run(one, rows)


@operator("LpPool")
def lp_pool(x, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape=(), p=2, pads=None,
            strides=None):  # fmt: skip
    x = jnp.abs(x) ** p
    ones = [1] * (x.ndim - 2)
    strides, dilations = strides or ones, dilations or ones
    rows = find_pads(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
    return pool_windows(x, kernel_shape, strides, dilations, rows, ceil_mode, 0, lax.add) ** (1 / p)


@operator("GlobalAveragePool")
def global_average_pool(x):
    return jnp.mean(x, tuple(range(2, x.ndim)), keepdims=True)


@operator("GlobalMaxPool")
def global_max_pool(x):
    return jnp.max(x, tuple(range(2, x.ndim)), keepdims=True)


def normalize(x, axes, epsilon):
    """Return an array with mean 0 and variance 1 along axes."""
    centered = x - x.mean(axes, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(axes, keepdims=True) + epsilon)


def along_features(v, x):
    """Return a vector of features, the second axis, that broadcasts to an array."""
    return jnp.reshape(v, (-1, *[1] * (x.ndim - 2)))


@operator("BatchNormalization")
def batch_normalization(
    x, scale, b, mean, var, epsilon=1e-5, momentum=0.9, training_mode=0, spatial=1
):
    x, new = jnp.asarray(x), ()
    if training_mode:
        axes = tuple(k for k in range(x.ndim) if k != 1)
        seen = x.mean(axes), x.var(axes)
        new = tuple(old * momentum + s * (1 - momentum) for old, s in zip((mean, var), seen))
        mean, var = seen
    scale, b, mean, var = (along_features(jnp.asarray(v), x) for v in (scale, b, mean, var))
    y = (x - mean) / jnp.sqrt(var + epsilon) * scale + b
    return (like(y, x), *new)


@operator("InstanceNormalization")
def instance_normalization(x, scale, b, epsilon=1e-5):
    y = normalize(jnp.asarray(x), tuple(range(2, x.ndim)), epsilon)
    return y * along_features(scale, x) + along_features(b, x)


@operator("GroupNormalization")
def group_normalization(x, scale, b, num_groups, epsilon=1e-5, stash_type=1):
    x = jnp.asarray(x)
    y = x.reshape(x.shape[0], num_groups, -1)
    y = normalize(y, (2,), epsilon).reshape(x.shape)
    return y * along_features(scale, x) + along_features(b, x)


@operator("LayerNormalization")
def layer_normalization(x, scale, b=None, axis=-1, epsilon=1e-5, stash_type=1):
    x = jnp.asarray(x)
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / jnp.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)
    y = (x - mean) * inverse * scale
    return (y if b is None else y + b), mean, inverse


@operator("RMSNormalization")
def rms_normalization(x, scale, axis=-1, epsilon=1e-5, stash_type=1):
    x = jnp.asarray(x)
    axes = tuple(range(axis % x.ndim, x.ndim))
    return x / jnp.sqrt((x * x).mean(axes, keepdims=True) + epsilon) * scale


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x, axes=(0, 2, 3)):
    return normalize(jnp.asarray(x), tuple(axes), 1e-9)


@operator("LpNormalization")
def lp_normalization(x, axis=-1, p=2):
    size = (
        jnp.abs(x).sum(axis, keepdims=True)
        if p == 1
        else jnp.sqrt((x * x).sum(axis, keepdims=True))
    )
    return jnp.where(size == 0, 0 * x, x / jnp.where(size == 0, 1, size))


@operator("LRN")
def local_response_normalization(x, size, alpha=1e-4, beta=0.75, bias=1.0):
    x = jnp.asarray(x)
    low = (size - 1) // 2
    pads = [(0, 0), (low, size - 1 - low), *[(0, 0)] * (x.ndim - 2)]
    window = (1, size, *[1] * (x.ndim - 2))
    total = lax.reduce_window(x * x, np.asarray(0, x.dtype), lax.add, window, [1] * x.ndim, pads)
    return x / (bias + alpha / size * total) ** beta


@operator("Dropout")
def dropout(x, ratio=None, training_mode=None, seed=0, count=1):
    if training_mode is not None and bool(np.asarray(training_mode)) and float(np.asarray(ratio)):
        raise NotImplementedError("onnx_import: Dropout must not be training; got a ratio.")
    return x, jnp.ones(np.shape(x), bool)


@operator("QuantizeLinear")
def quantize(x, scale, zero=None, axis=1, block_size=0, output_dtype=0, saturate=1, precision=0):
    x, scale = jnp.asarray(x), jnp.asarray(scale)
    dtype = np.dtype(np.uint8) if zero is None else jnp.asarray(zero).dtype
    dtype = dtype_of(output_dtype) if output_dtype else dtype
    y = jnp.round(x / spread(scale, x, axis, block_size))
    if not jnp.issubdtype(dtype, jnp.integer):
        return y.astype(dtype)
    y = y if zero is None else y + spread(jnp.asarray(zero).astype(x.dtype), x, axis, block_size)
    return jnp.clip(y, jnp.iinfo(dtype).min, jnp.iinfo(dtype).max).astype(dtype)


def spread(v, x, axis, block_size):
    """Return parameters of quantization, of an axis, of blocks or of all, along an array."""
    if v.ndim == 0 or v.size == 1 and v.ndim < 2:
        return v.reshape(())
    if v.ndim == 1 and not block_size:
        return jnp.expand_dims(v, [k for k in range(x.ndim) if k != axis % x.ndim])
    return jnp.repeat(v, block_size, axis)


@operator("DequantizeLinear")
def dequantize(x, scale, zero=None, axis=1, block_size=0, output_dtype=0):
    x, scale = jnp.asarray(x), jnp.asarray(scale)
    y = x.astype(scale.dtype)
    if zero is not None:
        y = y - spread(jnp.asarray(zero).astype(scale.dtype), x, axis, block_size)
    return y * spread(scale, x, axis, block_size)


@operator("NegativeLogLikelihoodLoss")
def nll_loss(x, target, weight=None, ignore_index=None, reduction="mean"):
    x, target = jnp.asarray(x), jnp.asarray(target)
    some = jnp.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    place = jnp.where(some, target, 0)
    loss = -jnp.squeeze(jnp.take_along_axis(x, jnp.expand_dims(place, 1), 1), 1)
    w = like(some, x) if weight is None else jnp.where(some, jnp.asarray(weight)[place], 0)
    loss = loss * w
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / w.sum()


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(x, labels, weights=None, ignore_index=None, reduction="mean"):
    logs = nn.log_softmax(jnp.asarray(x), 1)
    return nll_loss(logs, labels, weights, ignore_index, reduction), logs


@operator("DFT")
def dft(x, length=None, axis=None, onesided=0, inverse=0, version=20, **given):
    axis = given.get("axis_attribute", axis)
    axis = (1 if version < 20 else -2) if axis is None else ints(axis)[0]
    x = jnp.asarray(x)
    axis = axis % x.ndim
    z = x[..., 0] if x.shape[-1] == 1 else lax.complex(x[..., 0], x[..., 1])
    n = None if length is None else ints(length)[0]
    if inverse and onesided:
        return jnp.fft.irfft(z, n, axis)[..., None]
    if onesided:
        z = jnp.fft.rfft(z.real, n, axis)
    else:
        z = (jnp.fft.ifft if inverse else jnp.fft.fft)(z, n, axis)
    return jnp.stack([z.real, z.imag], -1).astype(x.dtype)


def window_operator(weights):
    def window(size, output_datatype=1, periodic=1):
        n = ints(size)[0]
        t = 2 * np.pi * np.arange(n) / (n if periodic else n - 1)
        return sum(w * np.cos(k * t) for k, w in enumerate(weights)).astype(
            ONNX_DTYPES(output_datatype)
        )

    return window


OPERATORS["HannWindow"] = window_operator([0.5, -0.5])
OPERATORS["HammingWindow"] = window_operator([25 / 46, -21 / 46])
OPERATORS["BlackmanWindow"] = window_operator([0.42, -0.5, 0.08])


# --- recurrent networks ---


def run_recurrent(x, start, direction, layout, step):
    """Run cells forward, backward or both ways over (time, batch, features)."""
    x = jnp.swapaxes(x, 0, 1) if layout else x
    outs, lasts = [], []
    for k, backward in enumerate({"forward": [0], "reverse": [1]}.get(direction, [0, 1])):
        state = tuple([s[k] for s in start])
        last, y = lax.scan(functools.partial(step, k), state, x, reverse=bool(backward))
        outs.append(y)
        lasts.append(last)
    y = jnp.stack(outs, 1)
    lasts = [jnp.stack(row) for row in zip(*lasts, strict=True)]
    if layout:
        y, lasts = jnp.transpose(y, (2, 0, 1, 3)), [jnp.swapaxes(h, 0, 1) for h in lasts]
    return (y, *lasts)


def start_of(h, x, w, size, layout):
    if h is None:
        return jnp.zeros((w.shape[0], x.shape[0 if layout else 1], size), x.dtype)
    return jnp.swapaxes(h, 0, 1) if layout else jnp.asarray(h)


@operator("RNN")
def rnn(
    x, w, r, b=None, lengths=None, h=None, hidden_size=0, direction="forward", layout=0, **rest
):
    b = jnp.zeros((w.shape[0], 2 * hidden_size), x.dtype) if b is None else jnp.asarray(b)
    bias = b[:, :hidden_size] + b[:, hidden_size:]

    def step(k, state, x):
        h = jnp.tanh(x @ w[k].T + state[0] @ r[k].T + bias[k])
        return (h,), h

    return run_recurrent(x, [start_of(h, x, w, hidden_size, layout)], direction, layout, step)


@operator("GRU")
def gru(x, w, r, b=None, lengths=None, h=None, hidden_size=0, direction="forward", layout=0,
        linear_before_reset=0, **rest):  # fmt: skip
    n = hidden_size
    b = jnp.zeros((w.shape[0], 6 * n), x.dtype) if b is None else jnp.asarray(b)

    def step(k, state, x):
        (h,) = state
        wz, wr, wh = jnp.split(w[k], 3)
        rz, rr, rh = jnp.split(r[k], 3)
        bz, br, bh, cz, cr, ch = jnp.split(b[k], 6)
        z = nn.sigmoid(x @ wz.T + h @ rz.T + bz + cz)
        reset = nn.sigmoid(x @ wr.T + h @ rr.T + br + cr)
        inner = reset * (h @ rh.T + ch) if linear_before_reset else (reset * h) @ rh.T + ch
        h = (1 - z) * jnp.tanh(x @ wh.T + bh + inner) + z * h
        return (h,), h

    return run_recurrent(x, [start_of(h, x, w, n, layout)], direction, layout, step)


@operator("LSTM")
def lstm(x, w, r, b=None, lengths=None, h=None, c=None, p=None, hidden_size=0, direction="forward",
         layout=0, **rest):  # fmt: skip
    n = hidden_size
    b = jnp.zeros((w.shape[0], 8 * n), x.dtype) if b is None else jnp.asarray(b)
    p = jnp.zeros((w.shape[0], 3 * n), x.dtype) if p is None else jnp.asarray(p)

    def step(k, state, x):
        h, c = state
        i, o, f, g = jnp.split(x @ w[k].T + h @ r[k].T + b[k, : 4 * n] + b[k, 4 * n :], 4, -1)
        pi, po, pf = jnp.split(p[k], 3)
        c = nn.sigmoid(f + pf * c) * c + nn.sigmoid(i + pi * c) * jnp.tanh(g)
        h = nn.sigmoid(o + po * c) * jnp.tanh(c)
        return (h, c), h

    start = [start_of(s, x, w, n, layout) for s in (h, c)]
    return run_recurrent(x, start, direction, layout, step)
