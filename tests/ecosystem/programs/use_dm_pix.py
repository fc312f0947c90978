"""dm-pix: augment a picture, and differentiate a measure of likeness."""

import dm_pix as pix
import jax
import jax.numpy as jnp

image = jax.random.uniform(jax.random.key(0), (16, 16, 3))
keys = jax.random.split(jax.random.key(1), 8)

changes = [
    pix.flip_left_right,
    lambda x: pix.adjust_brightness(x, 0.1),
    lambda x: pix.adjust_contrast(x, 1.3),
    lambda x: pix.adjust_gamma(x, 0.8),
    lambda x: pix.adjust_hue(x, 0.1),
    lambda x: pix.adjust_saturation(x, 1.2),
    lambda x: pix.gaussian_blur(x, 1.0, kernel_size=3.0),
    lambda x: pix.rotate(x, 0.3),
    lambda x: pix.random_crop(keys[0], x, (8, 8, 3)),
    lambda x: pix.random_contrast(keys[1], x, 0.5, 1.5),
    lambda x: pix.solarize(x, 0.5),
    pix.rgb_to_hsv,
    pix.rgb_to_grayscale,
    lambda x: pix.depth_to_space(x[..., :1].reshape(8, 8, 4), 2),
    lambda x: pix.elastic_deformation(keys[2], x, 2.0, 1.5),
]
for change in changes:
    y = jax.jit(change)(image)
    print(y.shape, y.dtype, jnp.sum(y), jnp.sum(y**2))

batch = jax.vmap(lambda k, x: pix.random_flip_left_right(k, x))(keys, jnp.stack([image] * 8))
print(jnp.sum(batch[:, :, 0]))

other = pix.adjust_brightness(image, 0.05)
for measure in (pix.psnr, pix.mae, pix.mse, pix.rmse, pix.simse, pix.ssim):
    value, slope = jax.value_and_grad(lambda x, m=measure: jnp.mean(m(x, other)))(image * 0.9)
    print(measure.__name__, value, jnp.sum(jnp.abs(slope)))
