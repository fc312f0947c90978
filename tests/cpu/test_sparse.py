"""cpu/sparse.py: which sparse products are kernels; values: primitives/cases_sparse.py."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, expect, show_prepared
from weft.primitives.sparse import coo_dot, csr_dot

DENSE = jnp.ones((4, 5))


def test_a_product_is_its_kernel_at_indices_of_one_width():
    expect(
        show_prepared(csr_dot, jnp.ones(6), DENSE, np.zeros(6, np.int8), np.zeros(4, np.int32)),
        """
        { lambda ; a:f32[6] b:f32[4,5] c:i8[6] d:i32[4]. let
            e:i32[6] = convert_element_type[new_dtype=int32 weak_type=False] c
            f:f32[3,5] = cpu_call[kernel=weft_csr_dot] a b e d
          in (f,) }
        """,
    )


@pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "over a mesh"])
def test_without_kernels_rows_are_gathered_and_added(target):
    multiply = lambda x, y, i: coo_dot(x, y, i, 3)
    text = show_prepared(multiply, jnp.ones(6), DENSE, np.zeros((6, 2), np.int32), target=target)
    assert "gather" in text and "scatter-add" in text and "coo_dot" not in text


def test_narrow_floats_are_added_up_in_32_bits():
    multiply = lambda x, y, i: coo_dot(x, y, i, 3)
    x, y = jnp.ones(6, "bfloat16"), DENSE.astype("bfloat16")
    text = show_prepared(multiply, x, y, np.zeros((6, 2), np.int32), target=KERNELS)
    assert "weft_coo_dot" not in text and "f32[3,5] = scatter-add" in text
