"""cpu/memory.py: values that are kept in memory."""

import numpy as np

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, expect, show_prepared
from weft import nn
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


def test_operations_after_it_read_the_operand_from_memory():
    expect(
        show_prepared(lambda x: (keep_p.apply(y := -x)[0] == jnp.sum(y), y), jnp.ones(3)),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = neg a
            c:f32[3] = cpu_call[aliases={0: 0} kernel=weft_keep] b
            d:f32[] = reduce_sum[axes=(0,)] c
            e:bool[3] = eq c d
          in (e, c) }
        """,
    )


def test_maxima_without_derivatives_keep_nothing():
    lower = lambda fun: weft.jit(weft.grad(fun)).lower(np.ones((4, 5), "f")).as_text()
    assert "weft_keep" not in lower(lambda x: jnp.sum(nn.log_softmax(jnp.sin(x))[:, 0]))
    assert "weft_keep" in lower(lambda x: jnp.sum(jnp.max(jnp.sin(x), 1)))
