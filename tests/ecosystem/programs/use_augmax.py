"""augmax: chains of changes of pictures with random parameters, and of points with them."""

import augmax
import jax
import jax.numpy as jnp
from augmax import InputType

images = jax.random.uniform(jax.random.key(0), (4, 16, 16, 3))
keys = jax.random.split(jax.random.PRNGKey(1), 4)
transform = augmax.Chain(
    augmax.RandomCrop(12, 12), augmax.HorizontalFlip(), augmax.Rotate(20), augmax.RandomGamma()
)
out = jax.jit(jax.vmap(transform))(keys, images)
print(out.shape, jnp.sum(out, axis=(1, 2, 3)))
points = jnp.array([[2.0, 3.0], [8.0, 4.0]])
both = augmax.Chain(
    augmax.Resize(8), augmax.Rotate(30), input_types=[InputType.IMAGE, InputType.KEYPOINTS]
)
image, moved = both(keys[0], [images[0], points])
print(image.shape, image.sum(), moved)
for change in (augmax.ColorJitter(), augmax.RandomContrast(), augmax.RandomBrightness()):
    print(jnp.sum(change(keys[1], images[0])))
