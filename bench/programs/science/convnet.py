"""A convolutional network: two layers with pooling and two dense ones, and its loss.

Source: Y. LeCun and others, Proc. IEEE 86 (1998), with ReLU and max pooling in place of theirs.
"""

import numpy as np

sizes = {"small": 2, "medium": 16, "large": 64}
gradient = 0


def make(size, rng):
    def weights(*shape):
        return (rng.randn(*shape) / np.sqrt(np.prod(shape[:-1]))).astype("f")

    batch = sizes[size]
    params = weights(5, 5, 1, 6), weights(5, 5, 6, 16), weights(256, 84), weights(84, 10)
    labels = np.eye(10, dtype="f")[rng.randint(0, 10, batch)]
    return params, rng.randn(batch, 28, 28, 1).astype("f"), labels


def conv_numpy(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], (1, 2))
    return np.tensordot(windows, w, ((4, 5, 3), (0, 1, 2)))


def loss(xp, conv, params, x, labels):
    first, second, dense, last = params
    for w in (first, second):
        x = xp.maximum(conv(x, w), 0)
        n, height, width, channels = x.shape
        x = x.reshape(n, height // 2, 2, width // 2, 2, channels).max((2, 4))
    x = xp.maximum(x.reshape(len(x), -1) @ dense, 0) @ last
    x = x - x.max(-1, keepdims=True)
    return xp.mean(xp.log(xp.exp(x).sum(-1)) - (x * labels).sum(-1))


def numpy_form(*inputs):
    return loss(np, conv_numpy, *inputs)


def jax_form(jax, *inputs):
    def conv(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    return loss(jax.numpy, conv, *inputs)


def torch_form(torch, params, x, labels):
    nn = torch.nn.functional
    first, second, dense, last = params
    x = x.permute(0, 3, 1, 2)
    for w in (first, second):
        x = nn.max_pool2d(torch.relu(nn.conv2d(x, w.permute(3, 2, 0, 1))), 2)
    x = torch.relu(x.permute(0, 2, 3, 1).reshape(len(x), -1) @ dense) @ last
    return nn.cross_entropy(x, labels)
