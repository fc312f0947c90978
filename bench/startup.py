"""One measurement that needs a fresh process: prints {figure: value} as JSON.

usage: startup.py KIND PACKAGE [PROGRAM]
Kinds: `engine` (only NumPy and jaxlib), `import`, `first_op`, `first_grad`, `functions`, and
`program`, which takes the name of a program of programs/. Before the clock starts, nothing is
imported that the interpreter has not loaded already, except that `program` imports its package.
"""

import sys
import time


def load(package):
    """The package and its `numpy`, imported now."""
    __import__(package + ".numpy")
    return sys.modules[package], sys.modules[package + ".numpy"]


def engine(package):
    """Importing what any such package has to import."""
    start = time.perf_counter()
    __import__("numpy")
    __import__("jaxlib._jax")
    return {"start/engine": time.perf_counter() - start}


def package_import(package):
    """Importing the package."""
    start = time.perf_counter()
    load(package)
    return {"start/import": time.perf_counter() - start}


def first_op(package):
    """Measure the time from the start to the first result."""
    start = time.perf_counter()
    _, jnp = load(package)
    (jnp.ones(3) + 1).block_until_ready()
    return {"start/import_first_op": time.perf_counter() - start}


def first_grad(package):
    """The first call of a jitted gradient of a three-layer network, and the memory it all took."""
    import resource

    jax, jnp = load(package)
    import numpy as np

    rng = np.random.RandomState(0)
    arrays = [jnp.asarray(rng.randn(*s).astype("f")) for s in [(8, 8), (8,)] * 3 + [(4, 8)]]
    params, x = [tuple(arrays[i : i + 2]) for i in (0, 2, 4)], arrays[6]

    def loss(params, x):
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return (x**2).sum()

    # The first program with two products of their own costs XLA:CPU 20 ms, in any package.
    jax.block_until_ready(jax.jit(lambda w, x: (x.T @ x, x @ w))(params[0][0], x))
    start = time.perf_counter()
    jax.block_until_ready(jax.jit(jax.grad(loss))(params, x))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"start/first_mlp3_grad": seconds, "memory/first_mlp3_grad": peak}


def functions(package):
    """Count the named functions of the package that a cold `jit(lambda x: sin(x) * x)(x)` runs.

    What modules run while they are imported does not count, whenever that is.
    """
    jax, jnp = load(package)
    x, seen, importing = jnp.ones(3), set(), 0
    home = jax.__file__.rsplit("__init__", 1)[0]

    def note(frame, event, _):
        nonlocal importing
        code = frame.f_code
        own = code.co_filename.startswith(home) and code.co_name[0] != "<"
        if code.co_name == "_find_and_load":  # of importlib
            importing += (event == "call") - (event == "return")
        elif event == "call" and own and not importing:
            seen.add(code)

    sys.setprofile(note)
    jax.jit(lambda x: jnp.sin(x) * x)(x)
    sys.setprofile(None)
    return {"walk/cold_jit_functions": len(seen)}


def program(package, name):
    """The first call of a program of programs/, in a process that has compiled one.

    The package is imported before, and `x + 1` compiled. So neither pays for the start of XLA's
    compiler, nor for modules that one package imports at once and another with its first program.
    """
    from cases_programs import FIRST_SIZE, programs_suite

    suite = programs_suite(package)
    make = suite.cases[f"programs/{name}/{FIRST_SIZE}"].make
    if package not in ("numpy", "numba", "torch"):
        jax, jnp = load(package)
        jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.ones(3)))
    call = make()
    start = time.perf_counter()
    suite.sync(call())
    return {"seconds": time.perf_counter() - start}


KINDS = {
    "engine": engine,
    "import": package_import,
    "first_op": first_op,
    "first_grad": first_grad,
    "functions": functions,
    "program": program,
}

if __name__ == "__main__":
    figures = KINDS[sys.argv[1]](*sys.argv[2:])
    import json

    print(json.dumps(figures))
