"""cpu/memory.py: values that are kept in memory."""

import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, expect, show_prepared
from weft.primitives.tokens import keep_p


def test_the_kernel_takes_the_buffers_of_values_that_are_computed():
    expect(
        show_prepared(lambda x, y: keep_p.apply(x, y + 1, -y), jnp.ones(3), jnp.ones(2)),
        """
        { lambda ; a:f32[3] b:f32[2]. let
            c:f32[2] = add b 1.0
            d:f32[2] = neg b
            e:f32[2] f:f32[2] = cpu_call[aliases={0: 0, 1: 1} kernel=weft_keep] c d
          in (a, e, f) }
        """,
    )
    text = show_prepared(lambda x: keep_p.apply(-x), jnp.ones(3), target=NO_KERNELS)
    assert "cpu_call" not in text
