"""Reading compiled programs: protocol buffers, costs, memory."""

import pytest

import weft
from weft import lax
from weft import numpy as jnp
from weft.explain.modules import CompiledModule, read_fields, read_integers, shape_bytes


def test_fields_of_a_protocol_buffer():
    data = bytes([8, 150, 1, 18, 2, 104, 105, 29, 1, 0, 0, 0])  # 1: 150, 2: b"hi", 3: 32 bits
    assert list(read_fields(data)) == [(1, 150), (2, b"hi"), (3, b"\1\0\0\0")]
    assert read_integers([3, bytes([150, 1, 7])]) == [3, 150, 7]


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[2,3]{1,0}", 24),
        ("pred[5]", 5),
        ("(s64[], /*index=1*/bf16[4])", 16),
        ("f8e4m3fn[7]", 7),
        ("s4[3]", 2),
        ("token[]", 0),
        ("f32[0,9]", 0),
    ],
)
def test_bytes_of_a_shape(shape, size):
    assert shape_bytes(shape) == size


@pytest.fixture(scope="module")
def module():
    def f(w, x):
        h = jnp.tanh(x @ w)
        h = lax.scan(lambda c, _: (jnp.sin(c @ w) + c, None), h, None, length=3)[0]
        return lax.cond(h[0, 0] > 0, jnp.exp, lambda h: h * 2, jnp.sort(h, axis=0)).sum()

    compiled = weft.jit(weft.grad(f)).lower(jnp.ones((16, 16)), jnp.ones((8, 16))).compile()
    return CompiledModule(compiled.runtime_executable()), compiled


def test_costs_of_instructions_add_up_to_those_of_the_program(module):
    read, compiled = module
    costs = [read.cost(i) for i in read.computations[read.entry]]
    whole = compiled.runtime_executable().cost_analysis()  # without what the kernels compute
    unknown = [i for i in read.by_id.values() if i.opcode == "custom-call"]  # -1 each, for XLA
    assert sum(c.flops for c in costs) == whole["flops"] + len(unknown)
    assert sum(c.transcendentals for c in costs) == whole["transcendentals"]
    assert sum(c.bytes for c in costs) == pytest.approx(whole["bytes accessed"], rel=0.05)


def test_a_matrix_product_costs_2mnk(module):
    read, _ = module
    products = {i.name: read.cost(i).flops for i in read.by_id.values() if i.opcode == "dot"}
    assert set(products.values()) == {2 * 16 * 16 * 8}


def test_what_is_live_at_the_peak_is_most_of_what_is_allocated(module):
    read, compiled = module
    stats = compiled.memory_analysis()
    given = stats.argument_size_in_bytes + stats.output_size_in_bytes
    live = sum(size for size, _ in read.peak)
    assert given < live <= given + stats.temp_size_in_bytes
    assert all(maker in read.by_id for _, maker in read.peak)
