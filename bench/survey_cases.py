"""The survey's cases: survey.txt, an operation on a million elements in each line.

`@ a=normal b=normal:1000x1000:f64` names the arrays of the lines below it: a kind of DATA, a shape
(a million elements) and a dtype (float32). A line is what to compute, `jax | torch | numpy`. A
column that is left out or empty is as the first; `-` says that this library has no such function.
In the first `jnp`, `lax`, `nn`, `special`, ... are those of weft or JAX; `xp` is jnp, torch or
numpy, `sp` the special functions of each, and `grad(f)(a)` the gradient of a sum by either's. A
name that a library lacks fails there alone.
"""

import importlib
from pathlib import Path

import numpy as np

from suite import Suite

TABLE = Path(__file__).with_name("survey.txt")

DATA = {
    "normal": lambda r, shape: r.randn(*shape),
    "positive": lambda r, shape: r.uniform(0.01, 6, shape),
    "unit": lambda r, shape: r.uniform(0.001, 0.999, shape),
    "probabilities": lambda r, shape: r.dirichlet(np.ones(shape[-1]), shape[:-1]),
    "index": lambda r, shape: r.randint(1, 1000, shape),
    "complex": lambda r, shape: r.randn(*shape) + 1j * r.randn(*shape),
    "bool": lambda r, shape: r.rand(*shape) < 0.5,
    "key": lambda r, shape: np.uint32([0, 1]),
}
DTYPES = dict(
    f32="float32",
    f64="float64",
    f16="float16",
    i32="int32",
    u8="uint8",
    bf16="float32",
    c64="complex64",
    bool="bool",
)


def rows():
    """(name, {variable: (kind, shape, dtype)}, the three columns) of each line of the table."""
    for line in TABLE.read_text().splitlines():
        if line.startswith("@"):
            given = line.removeprefix("@ ")
            arrays = dict(parse(word) for word in given.split())
            continue
        first, *more = [column.strip() for column in line.split(" | ")]
        columns = [first, *[column or first for column in (*more, "", "")][:2]]
        yield f"{first}  [{given}]", arrays, columns


def parse(word):
    """Return a variable and its array, given `a=kind:shape:dtype`."""
    name, _, rest = word.partition("=")
    kind, shape, dtype = (*rest.split(":"), "", "")[:3]
    whole = tuple(map(int, shape.split("x"))) if shape else (1_000_000,)
    return name, (kind, whole, dtype or ("i32" if kind == "index" else "f32"))


def make_data(suite, kind, shape, dtype):
    """An array of the table, by NumPy."""
    made = DATA[kind](suite.rng, shape)
    return made if kind == "key" else made.astype(DTYPES[dtype])


def survey_suite(impl):
    """The table as cases of an implementation."""
    add = {"torch": add_torch, "numpy": add_numpy}.get(impl, add_jax)
    suite = Suite()
    add(suite, impl)
    return suite


def add_jax(suite, impl):
    """For a package with JAX's public API; float64 is on where a row asks for it."""
    names = {"nn": ".nn", "lax": ".lax", "random": ".random", "jnp": ".numpy", "jax": ""}
    doors = {name: importlib.import_module(impl + door) for name, door in names.items()}
    jax, jnp = doors["jax"], doors["jnp"]
    for door in ("special", "stats", "ndimage", "signal"):
        importlib.import_module(f"{impl}.scipy.{door}")
    importlib.import_module(impl + ".image"), importlib.import_module(impl + ".ops")
    doors.update(xp=jnp, jsp=jax.scipy, sp=jax.scipy.special, grad=jax.grad)
    suite.sync = jax.block_until_ready

    def add(name, arrays, expression):
        def make():
            jax.config.update("jax_enable_x64", any(d == "f64" for _, _, d in arrays.values()))
            args = [jnp.asarray(make_data(suite, *row)) for row in arrays.values()]
            if any(row[2] == "bf16" for row in arrays.values()):
                args = [x.astype(jnp.bfloat16) for x in args]
            compiled = jax.jit(eval(f"lambda {', '.join(arrays)}: {expression}", doors))
            return lambda: compiled(*args)

        suite.add(name, make)

    for name, arrays, columns in rows():
        add(name, arrays, columns[0])


def add_torch(suite, impl):
    """For PyTorch; its functions that need an index take 64 bits."""
    torch = importlib.import_module(impl)

    def grad(fun, argnums=(0,)):
        @torch.enable_grad()
        def derivative(*xs):
            xs = [x.detach().requires_grad_(i in argnums) for i, x in enumerate(xs)]
            return torch.autograd.grad(fun(*xs), [xs[i] for i in argnums])

        return derivative

    doors = {"torch": torch, "xp": torch, "F": torch.nn.functional, "sp": torch.special}
    doors["grad"] = grad

    def tensor(kind, shape, dtype):
        made = torch.from_numpy(make_data(suite, kind, shape, dtype))
        if kind == "index" and len(shape) == 1 and shape[0] == 1000:
            return made.long()
        return made.to(torch.bfloat16) if dtype == "bf16" else made

    def add(name, arrays, expression):
        def make():
            args = [tensor(*row) for row in arrays.values()]
            call = torch.no_grad()(eval(f"lambda {', '.join(arrays)}: {expression}", doors))
            return lambda: call(*args)

        suite.add(name, make)

    for name, arrays, columns in rows():
        if columns[1] != "-":
            add(name, arrays, columns[1])


def add_numpy(suite, impl):
    """For NumPy and SciPy."""
    doors = {"np": np, "xp": np, "rng": np.random.default_rng(0)}
    others = {"sp": "special", "stats": "stats", "ndimage": "ndimage", "signal": "signal"}

    def add(name, arrays, expression):
        def make():
            for door in (door for door in others if f"{door}." in expression):
                doors[door] = importlib.import_module(f"scipy.{others[door]}")
            args = [make_data(suite, *row) for row in arrays.values()]
            call = eval(f"lambda {', '.join(arrays)}: {expression}", doors)
            return lambda: call(*args)

        suite.add(name, make)

    for name, arrays, columns in rows():
        if columns[2] != "-" and "bf16" not in name:
            add(name, arrays, columns[2])
