"""The transformer over eight CPU devices with explicit axes of a mesh, and by shard_map.

In four layouts: the batch split, the heads and hidden units, both, and both with the tokens split
between products (Korthikanti et al. 2022). What counts is how often devices speak to each other in
a step, and of how many bytes: read off the compiled program. Once for each package with JAX's
public API, in a process of its own:

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python bench/explicit.py weft|jax [LAYERS]
"""

import collections
import functools
import re
import sys
import time

import numpy as np

from cases_devices import step_of, transformer
from cases_jax import Package

# how many devices along each axis of the mesh, and whether tokens are split over the last
LAYOUTS = {
    "data": ({"data": 8}, False),
    "tensor": ({"model": 8}, False),
    "both": ({"data": 4, "model": 2}, False),
    "sequence": ({"data": 2, "model": 4}, True),
}
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
HEAD, HEADS, TOKENS, BATCH = 4, 8, 8, 8  # small: the program is only compiled
WIDTH = HEAD * HEADS


class Layout:
    """A mesh with explicit axes, and the model's sharding on it."""

    def __init__(self, p, name):
        self.p = p
        sizes, self.splits_tokens = LAYOUTS[name]
        self.data, self.model = (axis if axis in sizes else None for axis in ("data", "model"))
        explicit = (p.sharding.AxisType.Explicit,) * len(sizes)
        self.mesh = p.jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=explicit)
        P = self.P = p.sharding.PartitionSpec
        self.tokens = P(self.data, self.model if self.splits_tokens else None, None)
        self.layer = {
            "qkv": P(None, None, self.model, None),
            "out": P(self.model, None, None),
            "up": P(None, self.model),
            "down": P(self.model, None),
        }

    def arguments(self, layers):
        """The parameters and a batch, each where it belongs."""
        random = np.random.default_rng(0)
        draw = lambda *shape: random.standard_normal(shape).astype(np.float32)
        laid = lambda x, spec: self.p.jax.device_put(
            x, self.p.sharding.NamedSharding(self.mesh, spec)
        )
        shapes = {
            "qkv": (3, WIDTH, HEADS, HEAD),
            "out": (HEADS, HEAD, WIDTH),
            "up": (WIDTH, 4 * WIDTH),
            "down": (4 * WIDTH, WIDTH),
        }
        params = [
            {name: laid(0.1 * draw(*shape), self.layer[name]) for name, shape in shapes.items()}
            for _ in range(layers)
        ]
        return params, laid(draw(BATCH, TOKENS, WIDTH), self.tokens)

    def by_types(self):
        """Return a step that gives shardings only to sums over devices; types decide others."""
        p, P, reshard = self.p, self.P, self.p.sharding.reshard
        if not self.splits_tokens:
            joined = functools.partial(p.jnp.einsum, out_sharding=self.tokens)
            return p.jax.jit(step_of(p, transformer(p, joined)))
        # Devices have all tokens between products, and sums are scattered; also for cotangents.
        terms = P(self.data, None, None, unreduced={self.model})
        whole = P(self.data, None, None, reduced={self.model})
        joined = lambda *sum: reshard(p.jnp.einsum(*sum, out_sharding=terms), self.tokens)
        return p.jax.jit(step_of(p, transformer(p, joined, lambda x: reshard(x, whole))))

    def by_shard_map(self, layers):
        """A step that is each device's own program, with its collectives written out."""
        p, lax, model = self.p, self.p.lax, self.model
        along = dict(scatter_dimension=1, tiled=True)

        def joined(*sum):
            y = p.jnp.einsum(*sum)
            if self.splits_tokens:
                return lax.psum_scatter(y, model, **along)
            return y if model is None else lax.psum(y, model)

        def gathered(x):
            return lax.all_gather(x, model, axis=1, tiled=True) if self.splits_tokens else x

        loss = transformer(p, joined, gathered)
        axes = tuple(a for entry in self.tokens if entry for a in [entry])

        def mean_loss(params, x):
            if self.data is not None:
                own = lambda w: lax.pcast(w, self.data, to="varying")
                params = p.tree_util.tree_map(own, params)
            return lax.pmean(loss(params, x), axes) if axes else loss(params, x)

        specs = [self.layer] * layers, self.tokens
        step = p.jax.shard_map(
            step_of(p, mean_loss), mesh=self.mesh, in_specs=specs, out_specs=(specs[0], self.P())
        )
        return p.jax.jit(step)


def count_collectives(text):
    """Return the number of collectives of each kind in a compiled program, and the result bytes."""
    found = collections.Counter()
    size = 0
    for result, kind in re.findall(rf"= (.*?) ({KINDS})(?:-start)?\(", text):
        found[kind] += 1
        for bits, shape in re.findall(r"[a-z]+(\d+)\[([\d,]*)\]", result):
            size += int(bits) // 8 * int(np.prod([int(n) for n in shape.split(",") if n] or [1]))
    return dict(sorted(found.items())), size


def main(package, layers="4"):
    """Print what each layout costs."""
    p = Package(package)
    for name in LAYOUTS:
        s = Layout(p, name)
        with p.jax.set_mesh(s.mesh):
            args = s.arguments(int(layers))
            for way, step in (("types", s.by_types()), ("shard_map", s.by_shard_map(int(layers)))):
                kinds, size = count_collectives(step.lower(*args).compile().as_text())
                loss = p.jax.block_until_ready(step(*args))[1]
                begin = time.process_time()
                for _ in range(10):
                    p.jax.block_until_ready(step(*args))
                spent = (time.process_time() - begin) / 10 * 1e3
                print(f"{name:8} {way:9} {size:9} bytes {spent:6.1f} ms {kinds} {float(loss):.6f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
