"""Operations on small arrays that become calls, which XLA compiles as one function each."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import jit, lax
from weft.cpu import groups
from weft.cpu.groups import MAX_ELEMENTS, MAX_FUNCTION_ELEMENTS, Group, group_program
from weft.cpu.kernels import load_kernels
from weft.util import JAXLIB

# XLA 0.10 has the older way to write loops for whole programs instead
grouped = pytest.mark.skipif(
    bool(load_kernels()) or JAXLIB < (0, 12), reason="the kernels are not built, or XLA is 0.10"
)


@pytest.fixture(autouse=True)
def leave_groups(monkeypatch):
    """Have small programs compiled by XLA, not computed by calls of kernels."""
    monkeypatch.setattr(groups, "call_operations", lambda jaxpr: jaxpr)


A = np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((24, 24)).astype(np.float32)


def groups_of(fun, *args) -> list[list[str]]:
    """Return the names of the primitives in each group of a program."""
    jaxpr = weft.make_jaxpr(fun)(*args).jaxpr
    found: list[list[str]] = []

    def walk(program) -> None:
        for eqn in program.eqns:
            if isinstance(eqn.primitive, Group):
                found.append([e.primitive.name for e in eqn.params["jaxpr"].eqns])
            for held in eqn.params.values():
                if hasattr(held, "eqns") and not isinstance(eqn.primitive, Group):
                    walk(held)

    walk(group_program(jaxpr))
    return found


def masked_product(a, b):
    return 2 * (jnp.where(a > 0, a, 0) @ b + b)


# Programs, and the operations of their groups.
PROGRAMS = {
    "before and after a product": (masked_product, [["gt", "select_n"], ["add", "mul"]]),
    "one group for all results": (lambda a, b: (a + b, a - b, a * 2), [["add", "sub", "mul"]]),
    "views of operands of products stay": (lambda a, b: a.T @ b.reshape(24, 24), []),
    "a reduction computes its operand": (lambda a, b: (a * b).sum(0), []),
    "numbers alone stay": (lambda a, b: (a.sum() + 1) * 2, []),
    "as late as they are read": (lambda a, b: (a @ b + a * 2) @ b, [["mul", "add"]]),
    "constants are computed where they are read": (
        lambda a, b: jnp.tril(jnp.tril(a) @ b),
        [["iota", "iota", "ge", "select_n"]] * 2,
    ),
    "a loop with products": (
        lambda a, b: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ b) - a, a),
        [["tanh", "sub", "add"]],  # and the counter
    ),
    "functions that XLA inlines": (lambda a, b: jit(lambda x: x * 2)(a) + jit(jnp.negative)(b), []),
    "a loop without": (lambda a, b: lax.fori_loop(0, 3, lambda i, x: x * b - a, a), []),
    "a loop that stacks": (
        lambda a, b: lax.scan(lambda x, _: (jnp.tanh(x @ b), x.sum()), a, None, length=3)[1],
        [],
    ),
    "a loop over slices": (lambda a, b: lax.map(lambda x: jnp.tanh(x @ b @ b), a[None]), []),
    "results that reductions would compute": (
        lambda a, b: [(c := a @ b + a).sum(0), c.max(1), c],
        [],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups(name):
    fun, expected = PROGRAMS[name]
    found = groups_of(fun, A, B)
    assert [sorted(g) for g in found] == [sorted(g) for g in expected]


@pytest.mark.parametrize("count", [MAX_FUNCTION_ELEMENTS, MAX_ELEMENTS, MAX_ELEMENTS + 1])
def test_sizes(count):
    x = jnp.zeros(count)
    assert bool(groups_of(lambda x: x * 2 + 1, x)) == (count <= MAX_ELEMENTS)
    assert bool(groups_of(jnp.exp, x)) == (count <= MAX_FUNCTION_ELEMENTS)


def test_dtypes():
    for dtype in (jnp.bfloat16, jnp.float16, jnp.int8, jnp.complex64):
        assert not groups_of(lambda x: x + x, jnp.zeros(100, dtype))
    for dtype in (jnp.float32, jnp.int32, jnp.uint32, jnp.bool_):
        assert groups_of(lambda x: x | x if x.dtype == bool else x + x, jnp.zeros(100, dtype))


# Programs of two matrices of integers, with operands that XLA finds out not to need. It ends the
# process for a call without operands that are read.
UNREAD = {
    "a product with 0": lambda a, b: (a @ b, a * 0),
    "a difference of equal operands": lambda a, b: (a @ b, a - a),
    "an operand": lambda a, b: (a @ b, a * 1),
    "operands in another order": lambda a, b: (b + 0, a @ b, a * 1),
    "a part of what is joined": lambda a, b: (a @ b, jnp.concatenate([a, b * 0 + 3])[24:]),
    "a number of results": lambda a, b: (a @ b, [a + i for i in range(40)]),
    "one result twice": lambda a, b: [a @ b, *[a + b] * 2],
}


@grouped
@pytest.mark.parametrize("name", UNREAD)
def test_operands_that_are_not_read(name):
    a, b = (np.round(x * 9).astype(np.int32) for x in (A, B))
    for found, expected in zip(
        weft.tree.leaves(jit(UNREAD[name])(a, b)), weft.tree.leaves(UNREAD[name](a, b)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@grouped
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    fun = PROGRAMS[name][0]
    with weft.disable_jit():
        expected = weft.tree.leaves(fun(A, B))
    for x, y in zip(weft.tree.leaves(jit(fun)(A, B)), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-4)


@grouped
def test_donated_operands_and_compiled_text():
    fun = lambda a, b: (a @ b + a, a * 2)
    compiled = jit(fun, donate_argnums=0).lower(A, B).compile()
    assert "xla_cpu_small_call" in compiled.as_text()
    given = jnp.array(A)
    x, y = compiled(given, B)
    np.testing.assert_allclose(x, A @ B + A, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(y, A * 2)
    assert given.is_deleted()


def scoped(x, y):
    with weft.named_scope("a"):
        x = jnp.sin(x) - y
    with weft.named_scope("b"):
        return x @ jnp.cos(y)


# Programs, and names of operations of their groups.
NAMED = {
    "in a program": (scoped, {"a/sin", "a/sub", "b/cos"}),
    "a gradient": (
        weft.grad(lambda x, y: scoped(x, y).sum()),
        {"transpose(jvp(a))/mul", "jvp(a)/cos"},
    ),
    "in a loop in a scope": (
        lambda x, y: weft.named_scope("loop")(
            lambda: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ y) - y, x)
        )(),
        {"loop/scan/tanh", "loop/scan/sub"},
    ),
}


@grouped
@pytest.mark.parametrize("name", NAMED)
def test_names(name):
    """Operations are named as if they were in no group."""
    fun, expected = NAMED[name]

    def f(x, y):
        return fun(x, y)

    text = jit(f).lower(A, B).compile().as_text()
    assert "xla_cpu_small_call" in text
    found = re.findall(r'op_name="([^"]*)"', text)
    assert {f"jit(f)/{name}" for name in expected} <= {*found}
    assert not [name for name in found if "cpu_group" in name or name.count("jit(f)") > 1]
