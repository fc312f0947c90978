"""What is on trial, under the names of `jax.experimental`."""
