"""Loop nests of programs: fusion and in-place results; random programs under sanitizers."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.sanitized import run_sanitized
from tests.random_programs import draw_program
from tests.settings import ALL
from weft import export, lax

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
Y = np.linspace(-1, 1, 160, dtype=np.float32).reshape(5, 32)


def write(fun, *args):
    return export.to_c(fun, name="program")(*args)


def count_loops(program):
    return program.source.count("for (")


def check(fun, *args):
    program = write(fun, *args)
    got, want = program.build(flags=["-O1"])(*args), weft.jit(fun)(*args)
    weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6), got, want)
    return program


def test_a_chain_is_one_loop_nest():
    program = check(lambda x: jnp.exp(jnp.sin(x.T) * 2)[::-1] + jnp.arange(3.0), X)
    assert count_loops(program) == 2
    assert program.report().workspace_bytes == 0


def test_a_chain_is_part_of_the_reduction_that_reads_it():
    program = check(lambda x: jnp.sum(jnp.sin(x) ** 2, 0), Y)
    assert count_loops(program) == 2
    assert program.report().workspace_bytes == 0


def test_a_sum_of_few_terms_has_no_loop():
    program = check(lambda x: jnp.sum(x, 0) + x[0] @ x[1], X)
    assert count_loops(program) == 1
    assert program.report().workspace_bytes == 0


def test_transpositions_are_copied_by_tiles():
    x = np.arange(40 * 50, dtype=np.float32).reshape(40, 50)
    program = check(lambda x: x.T, x)
    assert count_loops(program) == 5  # tiles, rows, elements, and the elements that are left
    check(lambda x: jnp.moveaxis(x.reshape(2, 40, 50), 2, 1), np.concatenate([x, x]))


def test_a_chain_may_be_long():
    def f(x):
        for k in range(300):
            x = jnp.sin(x) + k % 3
        return x

    check(f, X)


def test_what_is_read_twice_is_in_memory():
    program = check(lambda x: (y := jnp.sin(x)) + y[::-1], Y)
    assert program.source.count("sinf(") == 1
    assert program.report().workspace_bytes == Y.nbytes


def test_what_is_repeated_is_in_memory():
    program = check(lambda x: jnp.sin(x[0]) + jnp.zeros((100, 32), np.float32), Y)
    assert "[32]" not in program.source.partition("sinf(")[0]
    assert program.report().workspace_bytes == 128


def test_a_loop_updates_its_carry_in_place():
    def fill(x):
        return lax.fori_loop(0, 4, lambda i, x: x.at[:, i].set(i * 1.0), x)

    program = check(fill, Y)
    assert program.report().workspace_bytes == 0  # a column is a local array
    assert program.source.count("memcpy") == 1


def test_a_carry_that_is_read_elsewhere_is_not_overwritten():
    swap = lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0] * 2), (x, y))
    check(swap, X, X + 1)
    check(lambda x: lax.fori_loop(0, 3, lambda i, c: c[::-1] + 1, x), X)
    check(lambda x: lax.fori_loop(0, 3, lambda i, c: c @ c.T @ c, x / 4), X)
    check(lambda x: lax.scan(lambda c, y: (c * y, c), x[0], x), X)
    check(lambda x: lax.scan(lambda c, y: (c * y, (c * y)[::-1]), x[0], x, reverse=True), X)


def test_an_operand_that_is_needed_later_is_not_overwritten():
    def f(x):
        y = jnp.sin(x)
        z = y.at[1].set(9.0)
        return y + 1, z, y.at[0].add(z[1])

    check(f, X)


def test_branches_and_loops_of_numbers():
    def collatz(n):
        step = lambda s: (lax.cond(s[0] % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, s[0]),
                          s[1] + 1)  # fmt: skip
        return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))

    check(collatz, np.int32(27))
    check(lambda k, x: lax.switch(k, [jnp.sin, jnp.cos, lambda x: x[::-1]], x), np.int32(2), X)
    check(lambda k, x: lax.switch(k, [jnp.sin, jnp.cos, lambda x: x[::-1]], x), np.int32(-7), X)


def test_a_product_adds_up_rows():
    a, b = np.random.default_rng(0).normal(size=(2, 12, 12)).astype(np.float32)
    program = check(lambda a, b: jnp.tanh(a @ b), a, b)
    inner = re.search(r"for [^{]*{\n\s*const float \w+ = b\[[^\n]*\n[^}]*}", program.source)
    assert inner and "a[" not in inner[0]  # the factor of a row is read once


def test_no_elements_and_no_axes():
    check(lambda x: (jnp.sum(x), x + 1, jnp.sort(x, 1)), np.zeros((0, 3), np.float32))
    check(lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x), np.zeros(0, np.float32))
    check(lambda x: (x.reshape(1, 1), jnp.max(x.reshape(1))), np.float32(3))


def test_results_that_are_arguments_constants_or_equal():
    table = np.arange(5)
    check(lambda x: (x, x, 3.0, jnp.asarray(table), x.T, x.sum(), x.sum()), X)


SEEDS = range(500 if ALL else 6)


@pytest.mark.parametrize("first", SEEDS[::20] if ALL else SEEDS[:1])
def test_random_programs(first):
    """Values against NumPy; gradients, of one in four, against those that XLA computes.

    Every second program may have factorizations.
    """
    calls, wants = [], []
    for seed in range(first, min(first + 20, SEEDS.stop)):
        program, given = draw_program(seed, factors=seed % 2 == 1)
        with weft.enable_x64(True):
            fun = lambda *xs, program=program: program(jnp, *xs)
            want = list(map(np.asarray, program(np, *given)))
            if seed % 4 == 3:
                fun = weft.grad(lambda *xs, fun=fun: fun(*xs)[1], argnums=(0, 1))
                want = list(map(np.asarray, weft.jit(fun)(*given)))
            calls.append((export.to_c(fun, name=f"program_{seed}")(*given), tuple(given)))
        wants.append(want)
    for (program, _), outs, want in zip(calls, run_sanitized(calls), wants, strict=True):
        for got, expected in zip(outs, want, strict=True):
            np.testing.assert_allclose(got, expected, 1e-6, 1e-8, err_msg=program.name)
