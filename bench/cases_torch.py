"""The common cases of the field that PyTorch supports, under the names of cases_jax.py."""

import torch
import torch.nn.functional as nnf

from suite import Suite


class Torch:
    """The suite, and data as tensors."""

    def __init__(self):
        self.suite = Suite()

    def floats(self, *shape):
        """Standard normal float32 values."""
        return torch.from_numpy(self.suite.floats(*shape))

    def ints(self, high, *shape):
        """Integers in [0, high), as PyTorch wants its indices."""
        return torch.from_numpy(self.suite.ints(high, *shape)).long()


def add_eager(p):
    """One operation on eight numbers, and a gradient of a small network."""
    rows = {
        "add": lambda x: x + x,
        "add_scalar": lambda x: x + 1,
        "sin": torch.sin,
        "sum": lambda x: x.sum(),
        "index0": lambda x: x[0],
        "slice": lambda x: x[2:5],
        "index_array": lambda x: x[torch.tensor([1, 2])],
        "reshape": lambda x: x.reshape(2, 4),
        "zeros": lambda x: torch.zeros(3),
        "float": lambda x: float(x[0]),
        "where": lambda x: torch.where(x > 0, x, 0.0),
        "concatenate": lambda x: torch.cat([x, x]),
        "normal": lambda x: torch.randn(3),
    }
    for name, f in rows.items():

        def make(f=f):
            x = p.floats(8)
            return lambda: f(x)

        p.suite.add("eager/" + name, make)

    def matmul():
        x, w = p.floats(4, 8), p.floats(8, 8)
        return lambda: x @ w

    def grad():
        params = [(p.floats(8, 8), p.floats(8)) for _ in range(3)]
        x, leaves = p.floats(4, 8), [leaf.requires_grad_() for pair in params for leaf in pair]
        return lambda: torch.autograd.grad(mlp_loss(params, x), leaves)

    p.suite.add("eager/matmul", matmul)
    p.suite.add("eager/grad_mlp3", grad)


def mlp_loss(params, x):
    """A network of tanh layers."""
    for w, b in params:
        x = torch.tanh(x @ w + b)
    return (x**2).sum()


def convnet_loss(params, x):
    """Two convolutions with ReLU, a max pool and a linear layer."""
    *kernels, out = params
    for w in kernels:
        x = torch.relu(nnf.conv2d(x, w, padding="same"))
    x = nnf.max_pool2d(x, 2)
    return ((x.reshape(x.shape[0], -1) @ out) ** 2).mean()


def transformer_loss(layers, h):
    """Blocks of single-head attention, layer norm and a GELU network."""
    for layer in layers:
        q, k, v = (h @ layer[name] for name in ("q", "k", "v"))
        h = h + (torch.softmax(q @ k.transpose(-1, -2) / 8.0, dim=-1) @ v) @ layer["o"]
        normal = nnf.layer_norm(h, h.shape[-1:], layer["g"], layer["b"])
        h = h + nnf.gelu(normal @ layer["w1"], approximate="tanh") @ layer["w2"]
    return (h**2).mean()


def rnn_loss(params, xs):
    """A tanh recurrence over fifty steps."""
    h, states = torch.zeros(8, 64), []
    for x in xs:
        h = torch.tanh(h @ params[0] + x @ params[1])
        states.append(h)
    return (torch.stack(states) ** 2).mean()


def add_models(p):
    """Training steps: gradient and update."""

    def add(name, loss, make_args):
        def make():
            params, *batch = make_args()
            leaves = [leaf.requires_grad_() for leaf in torch.utils._pytree.tree_leaves(params)]

            def step():
                grads = torch.autograd.grad(loss(params, *batch), leaves)
                with torch.no_grad():
                    return [w - 1e-3 * g for w, g in zip(leaves, grads, strict=True)]

            return step

        p.suite.add("model/" + name, make)

    def mlp_args():
        sizes = (784, 512), (512, 512), (512, 10)
        return [(p.floats(*s) * 0.05, p.floats(s[1])) for s in sizes], p.floats(128, 784)

    def convnet_args():
        kernels = [p.floats(32, 1, 3, 3) * 0.1, p.floats(64, 32, 3, 3) * 0.1]
        return [*kernels, p.floats(14 * 14 * 64, 10) * 0.01], p.floats(32, 1, 28, 28)

    def transformer_args():
        d = 64
        shapes = {**dict.fromkeys("qkvo", (d, d)), "w1": (d, 4 * d), "w2": (4 * d, d)}
        layers = [
            {
                **{name: p.floats(*shape) * 0.1 for name, shape in shapes.items()},
                "g": torch.ones(d),
                "b": torch.zeros(d),
            }
            for _ in range(12)
        ]
        return layers, p.floats(4, 32, d)

    def rnn_args():
        return [p.floats(64, 64) * 0.1, p.floats(32, 64) * 0.1], p.floats(50, 8, 32)

    add("mlp_mnist_b128", mlp_loss, mlp_args)
    add("convnet_b32", convnet_loss, convnet_args)
    add("transformer12", transformer_loss, transformer_args)
    add("rnn_scan50", rnn_loss, rnn_args)


def add_operations(p):
    """One large operation each."""
    vector, square, heads = (1_000_000,), (2000, 2000), (8, 8, 128, 64)

    def op(name, f, *shapes):
        def make():
            args = [shape() if callable(shape) else p.floats(*shape) for shape in shapes]

            def call():
                with torch.no_grad():
                    return f(*args)

            return call

        p.suite.add("op/" + name, make)

    def ints(*args):
        return lambda: p.ints(*args)

    def positive():
        s = p.floats(256, 256)
        return s @ s.T + 256 * torch.eye(256)

    def sorted_floats(n):
        return lambda: torch.sort(p.floats(n))[0]

    conv = lambda x, w: nnf.conv2d(x, w, padding="same")
    op("fuse_5000", lambda a: a * a + a * 2.0, (5000, 5000))
    op("matmul_1024", lambda a: a @ a, (1024, 1024))
    op("matmul_batch", lambda a: a @ a, (64, 128, 128))
    op("matvec_2000", lambda a, b: a @ b, square, (2000,))
    op("einsum_attn", lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), heads, heads)
    op("tanh_1e6", torch.tanh, vector)
    op("exp_1e6", torch.exp, vector)
    op("log1p_1e6", lambda a: torch.log1p(torch.abs(a)), vector)
    op("erf_1e6", torch.erf, vector)
    op("sum_1e6", torch.sum, vector)
    op("sum_axis0", lambda a: a.sum(0), square)
    op("sum_axis1", lambda a: a.sum(1), square)
    op("var_axis", lambda a: a.var(0), square)
    op("argmax_1e6", torch.argmax, vector)
    op("softmax_2000", lambda a: torch.softmax(a, -1), square)
    op("logsumexp_2000", lambda a: torch.logsumexp(a, -1), square)
    op("where_clip", lambda a: torch.where(a > 0, torch.clip(a, -1, 1), 0), vector)
    op("conv2d_3x3", conv, (16, 32, 56, 56), (32, 32, 3, 3))
    op("conv1d", lambda x, w: nnf.conv1d(x, w, padding="same"), (16, 32, 1000), (32, 32, 5))
    op("maxpool", lambda a: nnf.max_pool2d(a, 2), (16, 32, 56, 56))
    op("cumsum_1e6", lambda a: torch.cumsum(a, 0), vector)
    op("cumsum_axis", lambda a: torch.cumsum(a, 0), square)
    op("cummax_1e6", lambda a: torch.cummax(a, 0)[0], vector)
    op("sort_1e6", lambda a: torch.sort(a)[0], vector)
    op("argsort_1e6", torch.argsort, vector)
    op("top_k_1e6", lambda a: torch.topk(a, 10)[0], vector)
    op("searchsorted", torch.searchsorted, sorted_floats(1_000_000), (10_000,))
    op("unique_size", torch.unique, ints(1000, 100_000))
    op("bincount", lambda a: torch.bincount(a, minlength=100_000), ints(100_000, 1_000_000))
    op("histogram", lambda a: torch.histc(a, 100), vector)
    op("median", torch.median, (100_000,))
    op("gather_1e6", lambda a, i: a[i], vector, ints(100_000, 1_000_000))
    op(
        "scatter_add_1e6",
        lambda i, u: torch.zeros(100_000).index_add_(0, i, u),
        ints(100_000, 1_000_000),
        vector,
    )
    op(
        "segment_sum",
        lambda u, i: torch.zeros(100_000, 8).index_add_(0, i, u),
        (100_000, 8),
        ints(100_000, 100_000),
    )
    op("transpose_2000", lambda a: a.T.contiguous(), square)
    op("concat", lambda a: torch.cat([a, a]), vector)
    op("roll", lambda a: torch.roll(a, 7), vector)
    op("pad", lambda a: nnf.pad(a, (3, 3, 3, 3)), square)
    op("one_hot", lambda i: nnf.one_hot(i, 1000).float(), ints(1000, 2000))
    op("random_bits_1e6", lambda: torch.randint(0, 2**31 - 1, vector))
    op("random_uniform_1e6", lambda: torch.rand(1_000_000))
    op("random_normal_1e6", lambda: torch.randn(1_000_000))
    op("random_permutation_1e5", lambda: torch.randperm(100_000))
    op("random_categorical", lambda a: torch.multinomial(torch.softmax(a, -1), 1), (1000, 1000))
    op("random_gamma_1e4", torch._standard_gamma, lambda: torch.full((10_000,), 2.0))
    op("fft_2e18", lambda a: torch.fft.fft(a).abs(), (2**18,))
    op("fft2_512", lambda a: torch.fft.fft2(a).abs(), (512, 512))
    op("cholesky_256", torch.linalg.cholesky, positive)
    op("solve_256", torch.linalg.solve, (256, 256), (256,))
    op("inv_256", torch.linalg.inv, (256, 256))
    op("eigh_256", lambda a: torch.linalg.eigh(a)[0], positive)
    op("svd_256", lambda a: torch.linalg.svd(a)[1], (256, 256))
    op("qr_256", lambda a: torch.linalg.qr(a)[0], (256, 256))
    op("det_batch", torch.linalg.det, (1000, 8, 8))


def torch_suite():
    """All cases that PyTorch has."""
    p = Torch()
    add_eager(p)
    add_models(p)
    add_operations(p)
    return p.suite
