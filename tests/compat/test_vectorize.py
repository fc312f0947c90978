"""The steps of `vectorize` that libraries copy it with."""

import pytest

import weft.numpy as jnp
from weft.compat import vectorize


def test_vectorize_by_the_steps_of_jax():
    assert vectorize._parse_gufunc_signature("(n,m),(m)->(n)") == ([("n", "m"), ("m",)], [("n",)])
    dims, arrays = [("n", "m"), ("m",)], (jnp.ones((4, 2, 3)), jnp.ones(3))
    assert vectorize._parse_input_dimensions(arrays, dims) == ((4,), {"n": 2, "m": 3})
    for wrong, text in (
        ((arrays[0], jnp.ones(2)), "vectorize of f: axis 'm' must have one size; got 3 and 2"),
        ((arrays[0],), "vectorize of f: must have 2 arguments; got 1"),
        ((jnp.ones(1), jnp.ones(2)), "vectorize of f: an argument must have the axes"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            vectorize._parse_input_dimensions(wrong, dims, "of f")
    call, args, named = vectorize._apply_excluded(
        lambda *a, **k: (a, k), {1, "z"}, (1, 2, 3), {"z": 4, "y": 5}
    )
    assert (args, named) == ([1, 3], {"y": 5})
    assert call(*args, **named) == ((1, 2, 3), {"y": 5, "z": 4})
    checked = vectorize._check_output_dims(jnp.sin, {"n": 3}, [("n",)], "of f")
    assert checked(jnp.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="vectorize of f: axis 'n' must have one size"):
        checked(jnp.ones(2))
