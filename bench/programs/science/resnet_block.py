"""A bottleneck block of a residual network: three convolutions with batch normalization.

Source: K. He and others, CVPR 2016, figure 5, on the right.
"""

import numpy as np

sizes = {"small": (2, 8, 16, 4), "medium": (4, 28, 64, 16), "large": (8, 56, 256, 64)}
gradient = 1


def make(size, rng):
    batch, side, wide, narrow = sizes[size]

    def weights(*shape):
        return (rng.randn(*shape) / np.sqrt(np.prod(shape[:-1]))).astype("f")

    params = weights(1, 1, wide, narrow), weights(3, 3, narrow, narrow), weights(1, 1, narrow, wide)
    return rng.randn(batch, side, side, wide).astype("f"), params


def conv_numpy(x, w):
    edge = w.shape[0] // 2
    x = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], (1, 2))
    return np.tensordot(windows, w, ((4, 5, 3), (0, 1, 2)))


def block(xp, conv, x, params):
    """The mean square of the block's output, a loss that needs no labels."""
    y = x
    for w in params:
        y = conv(xp.maximum(y, 0), w)
        mean = y.mean((0, 1, 2), keepdims=True)
        variance = ((y - mean) ** 2).mean((0, 1, 2), keepdims=True)
        y = (y - mean) / xp.sqrt(variance + 1e-5)
    return (xp.maximum(x + y, 0) ** 2).mean()


def numpy_form(*inputs):
    return block(np, conv_numpy, *inputs)


def jax_form(jax, *inputs):
    def conv(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    return block(jax.numpy, conv, *inputs)


def torch_form(torch, x, params):
    nn = torch.nn.functional
    x = y = x.permute(0, 3, 1, 2)
    for w in params:
        y = nn.conv2d(torch.relu(y), w.permute(3, 2, 0, 1), padding=w.shape[0] // 2)
        y = nn.batch_norm(y, None, None, training=True)
    return (torch.relu(x + y) ** 2).mean()
