"""Programs over four CPU devices, for a package with JAX's public API.

peers.py serves these in a process of its own, since how many devices there are is settled when a
process begins. The model is a transformer split over a mesh: two halves of the batch, and two of
every layer's heads and hidden units (Shoeybi et al. 2019), by `jit` and by `shard_map`.
"""

import re

import numpy as np

from cases_jax import Package

DEVICES = 4
SHAPE = {"data": 2, "model": 2}
LAYERS, WIDTH, HEADS = 4, 64, 4
COLLECTIVE = (
    r"= .*? (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start)?\("
)


class Spread:
    """The package's mesh, and its arrays."""

    def __init__(self, p):
        self.p, self.P = p, p.sharding.PartitionSpec
        devices = np.array(p.jax.devices()[:DEVICES]).reshape(tuple(SHAPE.values()))
        self.mesh = p.sharding.Mesh(devices, tuple(SHAPE))

    def laid(self, *spec):
        """A sharding over the mesh."""
        return self.p.sharding.NamedSharding(self.mesh, self.P(*spec))

    def floats(self, shape, *spec):
        """Standard normal values, laid so."""
        return self.p.jax.device_put(self.p.suite.floats(*shape), self.laid(*spec))

    def specs(self):
        """Return the sharding of each parameter of the transformer."""
        P = self.P
        layer = {
            "qkv": P(None, None, "model"),
            "out": P("model"),
            "up": P(None, "model"),
            "down": P("model"),
        }
        return [layer] * LAYERS

    def arguments(self):
        """The parameters of the transformer and a batch, where they belong."""
        head = WIDTH // HEADS
        shapes = {
            "qkv": (3, WIDTH, HEADS, head),
            "out": (HEADS, head, WIDTH),
            "up": (WIDTH, 4 * WIDTH),
            "down": (4 * WIDTH, WIDTH),
        }
        params = [
            {name: self.floats(shape, *spec[name]) * 0.1 for name, shape in shapes.items()}
            for spec in self.specs()
        ]
        return params, self.floats((8, 32, WIDTH), "data")


def transformer(p, joined, gathered=lambda x: x):
    """Its loss; `joined` is an einsum whose sum over heads or units is over devices too.

    `gathered` makes a whole of what each device has of the tokens.
    """
    jnp, nn = p.jnp, p.nn

    def normal(x):
        return gathered(x * p.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6))

    def loss(params, x):
        for layer in params:
            q, k, v = jnp.einsum("btw,cwhf->cbhtf", normal(x), layer["qkv"])
            weights = nn.softmax(jnp.einsum("bhtf,bhsf->bhts", q, k) / 4.0)
            seen = jnp.einsum("bhts,bhsf->bthf", weights, v)
            x = x + joined("bthf,hfw->btw", seen, layer["out"])
            x = x + joined("btu,uw->btw", nn.gelu(normal(x) @ layer["up"]), layer["down"])
        return jnp.mean(x**2)

    return loss


def step_of(p, loss):
    """One step down the gradient."""

    def step(params, x):
        value, grads = p.jax.value_and_grad(loss)(params, x)
        return p.tree_util.tree_map(lambda w, g: w - 1e-3 * g, params, grads), value

    return step


def by_jit(s):
    """Return a new jitted step with shardings of arrays and sums."""
    p = s.p
    whole = lambda *sum: p.lax.with_sharding_constraint(p.jnp.einsum(*sum), s.laid("data"))
    params = p.tree_util.tree_map(lambda spec: s.laid(*spec), s.specs())
    step = step_of(p, transformer(p, whole))
    return p.jax.jit(step, in_shardings=(params, s.laid("data")), out_shardings=(params, s.laid()))


def by_shard_map(s):
    """A new jitted step that is each device's own program."""
    p, lax = s.p, s.p.lax
    loss = transformer(p, lambda *sum: lax.psum(p.jnp.einsum(*sum), "model"))

    def mean_loss(params, x):
        own = p.tree_util.tree_map(lambda w: lax.pcast(w, "data", to="varying"), params)
        return lax.pmean(loss(own, x), "data")

    specs = s.specs(), s.P("data")
    step = p.jax.shard_map(
        step_of(p, mean_loss), mesh=s.mesh, in_specs=specs, out_specs=(specs[0], s.P())
    )
    return p.jax.jit(step)


def waited(p, result):
    """The result, when it is there.

    JAX 0.10 stops for good where more calls with collectives are under way than there are threads.
    """
    return p.jax.block_until_ready(result)


def add_steps(p):
    """The transformer: its lowering, its step, and how often devices speak to each other."""
    for name, make_step in (("jit", by_jit), ("shard_map", by_shard_map)):

        def lower(make_step=make_step):
            s = Spread(p)
            args = s.arguments()
            return lambda: (make_step(s).lower(*args), 0)[1]

        def run(make_step=make_step):
            s = Spread(p)
            args, step = s.arguments(), make_step(s)
            return lambda: waited(p, step(*args))

        def collectives(make_step=make_step):
            s = Spread(p)
            text = make_step(s).lower(*s.arguments()).compile().as_text()
            return len(re.findall(COLLECTIVE, text))

        p.suite.add(f"devices/lower_{name}", lower)
        p.suite.add(f"devices/step_{name}", run)
        p.suite.measure(f"devices/collectives_{name}", collectives)


def add_calls(p):
    """Add costs of calls: of compiled functions that do almost nothing, and of one operation."""
    jax, add = p.jax, lambda name, make: p.suite.add("devices/" + name, make)

    def pmapped():
        mapped = jax.pmap(lambda a, b: a + b)
        x = mapped(p.suite.floats(DEVICES, 8), p.suite.floats(DEVICES, 8))
        return lambda: mapped(x, x)

    def summed():
        mapped = jax.pmap(lambda x: p.lax.psum(x, "i"), axis_name="i")
        x = mapped(p.suite.floats(DEVICES, 8))
        return lambda: waited(p, mapped(x))

    def jitted(wrap):
        def make():
            s = Spread(p)
            x, compiled = s.floats((8, 8), "data", "model"), jax.jit(wrap(s))
            return lambda: compiled(x, x)

        return make

    def eager(f, *spec):
        def make():
            x = Spread(p).floats((8, 8), *spec)
            return lambda: f(x)

        return make

    def placed():
        s, x = Spread(p), p.suite.floats(8, 8)
        where = s.laid("data", "model")
        return lambda: jax.device_put(x, where)

    def mapped(s):
        spec = s.P("data", "model")
        return jax.shard_map(lambda a, b: a + b, mesh=s.mesh, in_specs=(spec, spec), out_specs=spec)

    add("call_pmap", pmapped)
    add("psum_waited", summed)
    add("call_jit", jitted(lambda s: lambda a, b: a + b))
    add("call_shard_map", jitted(mapped))
    add("eager_add", eager(lambda x: x + x, "data", "model"))
    add("eager_sin", eager(p.jnp.sin, "data", "model"))
    add("eager_sum_waited", eager(lambda x: waited(p, x.sum()), "data"))
    add("put", placed)


def devices_suite(name):
    """All cases for the package called `name`."""
    p = Package(name)
    add_calls(p)
    add_steps(p)
    return p.suite
