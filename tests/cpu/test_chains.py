"""cpu/chains.py: functions and the cheap operations around them, as one call of the kernel."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, prepare_ungrouped
from weft import config, jit, lax
from weft.cpu.chains import MAX_LAST_BYTES
from weft.passes.check import check_jaxpr
from weft.primitives.expr import LARGE

N = LARGE + 7  # no multiple of a row of the kernel
X = jnp.linspace(0.1, 0.9, N)
LARGER = jnp.zeros(MAX_LAST_BYTES // 4 + 1)


def names_of(fun, *args, target=KERNELS) -> str:
    """The names of the operations that a CPU is given, also in loops."""
    jaxpr = prepare_ungrouped(weft.make_jaxpr(fun)(*args).jaxpr, target)
    check_jaxpr(jaxpr)
    return " ".join(find_names(jaxpr))


def find_names(jaxpr) -> list[str]:
    names = []
    for eqn in jaxpr.eqns:
        names.append(eqn.primitive.name.replace("cpu_call", "call"))
        body = eqn.params.get("jaxpr") or eqn.params.get("body_jaxpr")
        if body is not None:
            names += ["{", *find_names(getattr(body, "jaxpr", body)), "}"]
    return names


def repeat(step, times):
    """Apply `step(x, i)` for i = 1, 2, ..."""

    def fun(x):
        for i in range(1, times + 1):
            x = step(x, i)
        return x

    return fun


def sine(x, i):
    return jnp.sin(x * (1 + i / 7))


def sum_of_sines(x):
    total = jnp.sin(x)
    for i in range(2, 12):
        total = total + jnp.sin(x * (i / 7))
    return total


# A program of x, the operations that a CPU is given, and the reason.
FUSED = {
    "around": (lambda x: jnp.sin(x * 2.5 + 1) * 0.5, "call"),
    "of arrays": (lambda x: jnp.sin(x) * jnp.cos(x) - x, "call"),
    "each of forty": (repeat(sine, 40), " ".join(["call"] * 5)),
    "sums": (sum_of_sines, "call"),
    "shared": (lambda x: (jnp.sin(x * 2.5), jnp.cos(x * 2.5)), "call call"),
    "a number": (lambda x: (jnp.sin(x * 2.5), 1.0), "call"),
    "two results": (lambda x: (y := jnp.sin(x), y * 2.5), "call mul"),
    "exp stays XLA's": (lambda x: jnp.exp(x) * jnp.sin(x), "exp call mul"),
    "broadcast stays XLA's": (
        lambda x: jnp.sin(x).reshape(-1, 1) * x[:3],
        "call reshape slice broadcast_in_dim broadcast_in_dim mul",
    ),
    "no function": (lambda x: jnp.exp(x) * 2.5 + x, "exp mul add"),
    "comparison": (lambda x: jnp.where(x > 0.5, jnp.sin(x), x), "gt call select_n"),
    "derivative": (weft.grad(lambda x: jnp.sin(x * 2.5).sum()), "call"),
    "derivatives of a chain": (weft.grad(lambda x: repeat(sine, 3)(x).sum()), "call"),
    "computed twice": (lambda x: (jnp.cos(y := jnp.sin(x) * 2.5), jnp.exp(y)), "call mul call exp"),
}


@pytest.mark.parametrize("name", FUSED)
def test_what_is_one_call(name):
    fun, wanted = FUSED[name]
    assert names_of(fun, X) == wanted


def test_the_last_operation_on_a_large_array_is_xlas():
    fun = lambda x: jnp.sin(x * 2.5) + 1.5
    assert names_of(fun, X) == "call"
    assert names_of(fun, LARGER) == "call add"


def test_the_result_of_a_loop_is_not_copied():
    fun = lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sin(x * 2.5) + 1.5, x)
    assert names_of(fun, X) == "scan { call add }"


@pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH, KERNELS._replace(located=True)])
def test_nothing_is_fused_where_it_must_be_seen_or_split(target):
    assert "mul" in names_of(lambda x: jnp.sin(x * 2.5), X, target=target)


# --- results ------------------------------------------------------------------------------------

STEPS = [
    lambda np, x, y, c: np.sin(x),
    lambda np, x, y, c: np.sin(x * c) * y,
    lambda np, x, y, c: np.cos(x + c) - np.sin(y - c),
    lambda np, x, y, c: np.cos(x * c),
    lambda np, x, y, c: x * c,
    lambda np, x, y, c: x + y,
    lambda np, x, y, c: x - y * c,
    lambda np, x, y, c: np.abs(y) / (abs(c) + 2) - 0.0,
    lambda np, x, y, c: np.maximum(x, c),
    lambda np, x, y, c: np.minimum(y, x),
    lambda np, x, y, c: np.exp(-np.abs(x)),
    lambda np, x, y, c: np.sqrt(np.abs(x) + 1) * 1,
    lambda np, x, y, c: np.square(x) * 0.5,
    lambda np, x, y, c: np.arctan(x) * y,
]


def draw_program(seed):
    """A random program of two arrays, which reads any of its values again, and has two results."""
    draw = np.random.default_rng(seed)
    plan = [
        (STEPS[draw.integers(len(STEPS))], *draw.integers(0, i + 2, 2), draw.uniform(-2, 2))
        for i in range(24)
    ]

    def fun(np, x, y):
        values = [x, y]
        for step, i, j, c in plan:
            values.append(step(np, values[i], values[j], float(c)))
        return values[-1], values[-4]

    return fun


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed, dtype):
    fun = draw_program(seed)
    with config.scope(enable_x64=dtype == "float64"):
        draw = np.random.default_rng(seed)
        x, y = (draw.uniform(-1, 1, N).astype(dtype) for _ in range(2))
        found = jit(lambda x, y: fun(jnp, x, y))(x, y)
        wanted = fun(np, x.astype(np.float64), y.astype(np.float64))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == dtype
        error = np.abs(a - b) / (1 + np.abs(b))
        assert error.max() < (1e-4 if dtype == "float32" else 1e-12)


def test_random_programs_have_calls():
    """The test above compares programs that the pass changes."""
    texts = [names_of(lambda x, y, s=s: draw_program(s)(jnp, x, y), X, X) for s in range(6)]
    assert sum(text.count("call") for text in texts) >= 10
