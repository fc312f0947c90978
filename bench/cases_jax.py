"""The field's common work for a package with JAX's public API, as cases to time.

Groups: eager (one small operation, dispatched from Python), trace, lower (trace and lower) and
compile (trace, lower and compile), residual (what a compiled gradient keeps), dispatch (a call of
compiled code), model (whole training steps), and op (one large operation each; those are in
cases_jax_ops.py). A feature that the package lacks fails its own cases only.
"""

import importlib
import itertools

from cases_jax_ops import add_operations
from suite import Suite


class Package:
    """A package with JAX's public API: `p.jax`, `p.jnp`, `p.lax`, and its other doors by name."""

    def __init__(self, name):
        self.name = name
        self.jax = importlib.import_module(name)
        self.jnp = importlib.import_module(name + ".numpy")
        self.suite = Suite(lambda out: self.jax.block_until_ready(out))

    def __getattr__(self, door):
        return importlib.import_module(f"{self.name}.{door}")

    def floats(self, *shape):
        """Standard normal float32 values, as the package's arrays."""
        return self.jnp.asarray(self.suite.floats(*shape))

    def ints(self, high, *shape):
        """Int32 values in [0, high), as the package's arrays."""
        return self.jnp.asarray(self.suite.ints(high, *shape))


def add_eager(p):
    """One operation on eight numbers: what a call costs; and three on many, as op/fuse_5000 has."""
    jnp = p.jnp

    def add(name, f, *makers):
        def make():
            args = [maker() for maker in makers] or [p.floats(8)]
            return lambda: f(*args)

        p.suite.add("eager/" + name, make)

    def matrix():
        return p.floats(4, 8)

    def key():
        return p.random.PRNGKey(0)

    add("add", lambda x: x + x)
    add("add_scalar", lambda x: x + 1)
    add("sin", lambda x: jnp.sin(x))
    add("matmul", lambda x, w: x @ w, matrix, lambda: p.floats(8, 8))
    add("sum", lambda x: x.sum())
    add("slow_f_5000", lambda x: x * x + x * 2.0, lambda: p.floats(5000, 5000))
    add("index0", lambda x: x[0])
    add("slice", lambda x: x[2:5])
    add("index_array", lambda x: x[jnp.array([1, 2])])
    add("at_set", lambda x: x.at[0].set(1.0))
    add("reshape", lambda x: x.reshape(2, 4))
    add("zeros", lambda x: jnp.zeros((3,)))
    add("float", lambda x: float(x[0]))
    add("transpose", lambda x: x.T, matrix)
    add("asarray", lambda a: jnp.asarray(a), lambda: p.suite.floats(8))
    add("where", lambda x: jnp.where(x > 0, x, 0.0))
    add("concatenate", lambda x: jnp.concatenate([x, x]))
    add("stack", lambda x: jnp.stack([x, x]))
    add("ones", lambda x: jnp.ones((3,)))
    add("arange", lambda x: jnp.arange(8))
    add("arange_float", lambda x: jnp.arange(0.0, 1.0, 0.125))
    add("linspace", lambda x: jnp.linspace(0.0, 1.0, 8))
    add("mean", lambda x: jnp.mean(x))
    add("clip", lambda x: jnp.clip(x, 0.0, 1.0))
    add("dot", lambda x: jnp.dot(x, x))
    add("median", lambda x: jnp.median(x))
    add("split_key", lambda k: p.random.split(k), key)
    add("normal", lambda k: p.random.normal(k, (3,)), key)


def mlp_loss(p):
    """A network of tanh layers; `params` is a list of (weights, bias)."""

    def loss(params, x):
        for w, b in params:
            x = p.jnp.tanh(x @ w + b)
        return (x**2).sum()

    return loss


def mlp_args(p):
    """Three layers of eight units, and four examples."""
    return [(p.floats(8, 8), p.floats(8)) for _ in range(3)], p.floats(4, 8)


def transformer_block(p):
    """Single-head attention, layer norm and a GELU network, from plain operations."""
    jnp, lax = p.jnp, p.lax

    def softmax(x):
        e = jnp.exp(x - lax.stop_gradient(x.max(-1, keepdims=True)))
        return e / e.sum(-1, keepdims=True)

    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def block(layer, h):
        q, k, v = (h @ layer[name] for name in ("q", "k", "v"))
        h = h + (softmax(q @ k.swapaxes(-1, -2) / 8.0) @ v) @ layer["o"]
        mean = h.mean(-1, keepdims=True)
        deviation = jnp.sqrt(((h - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
        normal = (h - mean) / deviation * layer["g"] + layer["b"]
        return h + gelu(normal @ layer["w1"]) @ layer["w2"]

    return block


def transformer_loss(p):
    """Blocks one after the other."""
    block = transformer_block(p)

    def loss(layers, h):
        for layer in layers:
            h = block(layer, h)
        return (h**2).mean()

    return loss


def transformer_args(p, d=64):
    """Twelve layers of width 64, and four sequences of 32."""
    return [block_params(p, d) for _ in range(12)], p.floats(4, 32, d)


def block_params(p, d, *stack):
    """The weights of a block, or of a stack of them."""
    shapes = {**dict.fromkeys("qkvo", (d, d)), "w1": (d, 4 * d), "w2": (4 * d, d)}
    return {
        **{name: p.floats(*stack, *shape) * 0.1 for name, shape in shapes.items()},
        "g": p.jnp.ones((*stack, d)),
        "b": p.jnp.zeros((*stack, d)),
    }


def scanned_loss(p):
    """The blocks as one scan over their stacked weights."""
    block = transformer_block(p)

    def loss(layers, h):
        return (p.lax.scan(lambda h, layer: (block(layer, h), None), h, layers)[0] ** 2).mean()

    return loss


def scanned_args(p, d=64):
    """Return the arguments of transformer_args, stacked."""
    return block_params(p, d, 12), p.floats(4, 32, d)


def remat_loss(p):
    """Fifty dense layers, each checkpointed."""

    def loss(layers, x):
        for w in layers:
            x = p.jax.checkpoint(lambda w, x: p.jnp.tanh(p.jnp.sin(x @ w)))(w, x)
        return (x**2).sum()

    return loss


def remat_args(p):
    """Layers of 64 units, and 256 examples."""
    return [p.floats(64, 64) * 0.1 for _ in range(50)], p.floats(256, 64)


def scalars_loss(p):
    """A scan that carries sixty separate numbers."""

    def loss(start, xs):
        def step(carry, x):
            turned = [*carry[1:], carry[0]]
            return [p.jnp.sin(a) * x + b for a, b in zip(carry, turned, strict=True)], None

        return sum(p.lax.scan(step, start, xs)[0])

    return loss


def scalars_args(p, steps=100):
    """The numbers to start with, and one for each step."""
    return [p.jnp.float32(0.01 * i) for i in range(60)], p.floats(steps)


def convnet_loss(p):
    """Two convolutions with ReLU, a max pool and a linear layer."""
    jnp, lax = p.jnp, p.lax
    layout = ("NHWC", "HWIO", "NHWC")

    def loss(params, x):
        *kernels, out = params
        for w in kernels:
            x = jnp.maximum(
                lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout), 0
            )
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return ((x.reshape(x.shape[0], -1) @ out) ** 2).mean()

    return loss


def convnet_args(p):
    """Kernels for 28 x 28 grey images, and 32 of them."""
    params = [p.floats(3, 3, 1, 32) * 0.1, p.floats(3, 3, 32, 64) * 0.1]
    return [*params, p.floats(14 * 14 * 64, 10) * 0.01], p.floats(32, 28, 28, 1)


def rnn_loss(p):
    """A tanh recurrence as one scan."""
    jnp, lax = p.jnp, p.lax

    def loss(params, xs):
        def step(h, x):
            h = jnp.tanh(h @ params[0] + x @ params[1])
            return h, h

        start = jnp.zeros((xs.shape[1], params[0].shape[0]))
        return (lax.scan(step, start, xs)[1] ** 2).mean()

    return loss


def rnn_args(p):
    """A state of 64, inputs of 32, fifty steps of eight sequences."""
    return (p.floats(64, 64) * 0.1, p.floats(32, 64) * 0.1), p.floats(50, 8, 32)


def chain(x):
    """Two thousand operations in a row."""
    for _ in range(1000):
        x = x * 1.5 + 2.0
    return x


def add_transformed(p):
    """Transformations of a small network outside jit."""
    jax, loss = p.jax, mlp_loss(p)

    def grad():
        params, x = mlp_args(p)
        return lambda: jax.grad(loss)(params, x)

    def vmap():
        params, xs = mlp_args(p)[0], p.floats(5, 4, 8)
        return lambda: jax.vmap(loss, (None, 0))(params, xs)

    def jvp():
        params, x = mlp_args(p)
        return lambda: jax.jvp(lambda q: loss(q, x), (params,), (params,))

    p.suite.add("eager/grad_mlp3", grad)
    p.suite.add("eager/vmap_mlp3", vmap)
    p.suite.add("eager/jvp_mlp3", jvp)


def add_stages(p):
    """Front-end work: each call hands over a new function, so that no cache of programs helps."""
    jax = p.jax

    def add_trace(name, f, make_args, per=1):
        def make():
            args = make_args()
            return lambda: (jax.make_jaxpr(lambda *z: f(*z))(*args), 0)[1]

        p.suite.add("trace/" + name, make, per)

    def add_lower(name, f, make_args, per=1):
        def make():
            args = make_args()
            return lambda: (jax.jit(lambda *z: f(*z)).lower(*args), 0)[1]

        p.suite.add("lower/" + name, make, per)

    def add_compile(name, loss, make_args):
        def make():
            args, salt = make_args(), itertools.count()

            def call():  # a constant of its own makes each program one that no cache has seen
                scale = 1.0 + 1e-6 * next(salt)
                jax.jit(jax.grad(lambda *z: loss(*z) * scale)).lower(*args).compile()
                return 0

            return call

        p.suite.add("compile/" + name, make)

    def add_residual(name, loss, make_args):
        def measure():
            compiled = jax.jit(jax.grad(loss)).lower(*make_args()).compile()
            return compiled.memory_analysis().temp_size_in_bytes

        p.suite.measure("residual/" + name, measure)

    models = {
        "mlp3": (mlp_loss, mlp_args),
        "transformer12": (transformer_loss, transformer_args),
        "rnn_scan": (rnn_loss, rnn_args),
        "transformer12_scan": (scanned_loss, scanned_args),
        "remat50": (remat_loss, remat_args),
        "scan60": (scalars_loss, scalars_args),
    }
    for name, (make_loss, make_args) in models.items():
        loss, args = make_loss(p), lambda make_args=make_args: make_args(p)
        grad = lambda *z, loss=loss: jax.grad(loss)(*z)
        add_trace(name + "_fwd", loss, args)
        add_trace(name + "_grad", grad, args)
        add_lower(name + "_grad", grad, args)
        add_compile(name + "_grad", loss, args)
        add_residual(name + "_grad", loss, args)
    mlp = mlp_loss(p)

    def mlp_hessian(params, x):
        return jax.hessian(lambda q: mlp(q, x))(params[:1])

    add_trace("hessian_mlp3", mlp_hessian, lambda: mlp_args(p))
    add_trace("chain2000_per_op", chain, lambda: (p.floats(8),), per=2000)
    add_lower("chain2000_per_op", chain, lambda: (p.floats(8),), per=2000)


def add_dispatch(p):
    """A call of compiled code that computes next to nothing."""
    jax = p.jax

    def add(name, f, make_args, **options):
        def make():
            args, compiled = make_args(), jax.jit(f, **options)
            return lambda: compiled(*args)

        p.suite.add("dispatch/" + name, make)

    def dict_of_100():
        x = p.floats(8)
        return {f"k{i}": x for i in range(100)}

    def tree_map():
        tree, mapped = dict_of_100(), p.tree_util.tree_map
        return lambda: mapped(lambda leaf: leaf, tree)

    add("two_args", lambda a, b: a + b, lambda: (p.floats(8), p.floats(8)))
    add("pytree100", lambda t: t, lambda: (dict_of_100(),))
    add("numpy_arg", lambda a, b: a + b, lambda: (p.suite.floats(8),) * 2)
    add("python_scalar", lambda a, b: a + b, lambda: (1.0, 2.0))
    add("static_argnum", lambda a, n: a * n, lambda: (p.floats(8), 3), static_argnums=1)
    p.suite.add("dispatch/tree_map100", tree_map)


def add_models(p):
    """Compiled training steps (gradient and update) and other whole programs."""
    jax = p.jax

    def add(name, loss, make_args):
        def step(params, *batch):
            grads = jax.grad(loss)(params, *batch)
            return p.tree_util.tree_map(lambda w, g: w - 1e-3 * g, params, grads)

        def make():
            args, compiled = make_args(), jax.jit(step)
            return lambda: compiled(*args)

        p.suite.add("model/" + name, make)

    def mnist_params():
        sizes = (784, 512), (512, 512), (512, 10)
        return [(p.floats(*s) * 0.05, p.floats(s[1])) for s in sizes]

    def per_example():
        params, batch = mnist_params(), p.floats(16, 1, 784)
        compiled = jax.jit(jax.vmap(jax.grad(mlp_loss(p)), (None, 0)))
        return lambda: compiled(params, batch)

    def hessian():
        matrix, w = p.floats(64, 64), p.floats(64)
        compiled = jax.jit(jax.hessian(lambda w: p.jnp.sum(p.jnp.tanh(matrix @ w) ** 4)))
        return lambda: compiled(w)

    add("mlp_mnist_b128", mlp_loss(p), lambda: (mnist_params(), p.floats(128, 784)))
    add("convnet_b32", convnet_loss(p), lambda: convnet_args(p))
    add("transformer12", transformer_loss(p), lambda: transformer_args(p))
    add("rnn_scan50", rnn_loss(p), lambda: rnn_args(p))
    add("transformer12_scan", scanned_loss(p), lambda: scanned_args(p))
    add("scan60_scalars", scalars_loss(p), lambda: scalars_args(p))
    add("scan60_scalars_1000", scalars_loss(p), lambda: scalars_args(p, 1000))
    p.suite.add("model/per_example_grads", per_example)
    p.suite.add("model/hessian_64", hessian)


def jax_suite(name):
    """All cases for the package called `name`."""
    p = Package(name)
    for add in (add_eager, add_transformed, add_stages, add_dispatch, add_models, add_operations):
        add(p)
    return p.suite
