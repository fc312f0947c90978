"""zodiax: fields of nested classes by their paths."""

import equinox as eqx
import jax
import jax.numpy as jnp
import zodiax as zdx


class Source(zdx.Base):
    position: jax.Array
    flux: float

    def __init__(self):
        self.position, self.flux = jnp.array([1.0, 2.0]), 3.0


class Scene(zdx.Base):
    source: Source
    width: float

    def __init__(self):
        self.source, self.width = Source(), 0.5

    def model(self, x):
        r = x - self.source.position
        return self.source.flux * jnp.exp(-jnp.sum(r**2) / self.width)


scene = Scene()
print(scene.get("source.flux"), scene.set("width", 2.0).width, scene.add("source.flux", 1.0).source)
print(scene.multiply(["width", "source.position"], [2.0, 3.0]))
slope = eqx.filter_grad(lambda s: s.model(jnp.array([1.2, 2.1])))(scene)
print(slope.source.position, slope.width)
value = jax.hessian(lambda p: scene.set("source.position", p).model(jnp.zeros(2) + 1.1))
print(
    value(scene.source.position),
    zdx.stats.loglike(jnp.ones(2), jnp.zeros(2), jnp.array([1.0, 2.0])),
)
