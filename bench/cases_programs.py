"""The programs of programs/ as cases of one implementation, and a check of their results.

usage: cases_programs.py IMPL [NAME ...] runs the programs (all of them) at their smallest size and
compares with NumPy; it prints a line for each that differs or fails, and exits with 1 then.
IMPL is torch, numba, or the import name of a package with JAX's public API.
"""

import functools
import importlib
import sys

import numpy as np

from programs import load_programs
from suite import Suite

PROGRAMS = load_programs()
DOORS = "numpy", "lax", "nn", "ops", "scipy.linalg"  # what programs use of `jax` by attribute
GRAD = ".grad"
FIRST_SIZE = "small"  # the size of timed first calls: running takes little of their time


def map_arrays(fun, tree):
    """The inputs of a program, nested in tuples and lists, with `fun` of each array."""
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_arrays(fun, item) for item in tree)
    return fun(tree) if isinstance(tree, np.ndarray) else tree


def list_arrays(tree):
    """The arrays and numbers of nested tuples and lists, in order, as NumPy's arrays."""
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in list_arrays(item)]
    return [np.asarray(tree)]


def is_double(inputs):
    """Return True if an input has elements of 64 bits (128 if complex), or Python's floats."""
    return any(a.dtype in (np.float64, np.complex128) for a in list_arrays(inputs))


def build_numpy(program, inputs, gradient=None):
    """The call of a program's NumPy form."""
    assert gradient is None, "NumPy has no gradients"
    form = getattr(program, "numpy_form", None) or functools.partial(program.program, np)
    return lambda: form(*inputs)


def build_numba(program, inputs, gradient=None):
    """Return a program's loops, compiled by Numba, which caches compiled code on disk."""
    import numba

    assert gradient is None, "Numba has no gradients"
    form = numba.njit(cache=True)(program.loops)
    return lambda: form(*inputs)


def build_torch(program, inputs, gradient=None):
    """The call of a program's PyTorch form, or of its value and gradient."""
    import torch

    args = map_arrays(torch.from_numpy, inputs)
    if gradient is None:
        return lambda: program.torch_form(torch, *args)
    given = args[gradient]
    leaves = [x.requires_grad_() for x in ([given] if torch.is_tensor(given) else given)]

    def value_and_grad():
        value = program.torch_form(torch, *args)
        slopes = torch.autograd.grad(value, leaves)
        return value.detach(), slopes

    return value_and_grad


def build_jax(impl, program, inputs, gradient=None):
    """The call of the program, or of its value and gradient, compiled by a package like JAX."""
    jax = importlib.import_module(impl)
    for door in DOORS:
        importlib.import_module(f"{impl}.{door}")
    jax.config.update("jax_enable_x64", is_double(inputs))
    if hasattr(program, "jax_form"):
        form = functools.partial(program.jax_form, jax)
    else:
        form = functools.partial(program.program, jax.numpy)
    if gradient is not None:
        form = jax.value_and_grad(form, gradient)
    static = [i for i, x in enumerate(inputs) if type(x) is int]
    compiled = jax.jit(form, static_argnums=static)
    args = map_arrays(jax.numpy.asarray, inputs)
    return lambda: compiled(*args)


def find_builder(impl):
    """The function above for an implementation, and the form that a program must have for it."""
    known = {"numpy": (build_numpy, ""), "torch": (build_torch, "torch_form")}
    known["numba"] = build_numba, "loops"
    return known.get(impl, (functools.partial(build_jax, impl), ""))


def list_cases(impl):
    """{name, with `.grad` for a gradient: (program, the argument to differentiate by or None)}."""
    form = find_builder(impl)[1]
    found = {}
    for name, program in PROGRAMS.items():
        if not form or hasattr(program, form):
            found[name] = program, None
            if hasattr(program, "gradient") and impl not in ("numpy", "numba"):
                found[name + GRAD] = program, program.gradient
    return found


def programs_suite(impl):
    """Every program at every size."""
    build = find_builder(impl)[0]
    suite = Suite()
    if impl not in ("numpy", "numba", "torch"):
        suite.sync = importlib.import_module(impl).block_until_ready
    for name, (program, gradient) in list_cases(impl).items():
        for size in program.sizes:

            def make(program=program, gradient=gradient, size=size):
                return build(program, program.make(size, suite.rng), gradient)

            suite.add(f"programs/{name}/{size}", make)
    return suite


def find_slope(program, inputs, gradient):
    """The derivative of the NumPy form along the arrays of the direction, and the direction.

    By central differences, in double precision.
    """
    wide = map_arrays(lambda a: a.astype(float) if a.dtype == np.float32 else a, inputs)
    rng = np.random.RandomState(1)
    direction = map_arrays(lambda a: rng.randn(*a.shape), wide[gradient])

    def value(step):
        moved = iter([a + step * d for a, d in zip(*map(list_arrays, (wide[gradient], direction)))])
        given = map_arrays(lambda _: next(moved), wide[gradient])
        args = (*wide[:gradient], given, *wide[gradient + 1 :])
        return float(build_numpy(program, args)())

    return (value(1e-6) - value(-1e-6)) / 2e-6, direction


def check_program(impl, name):
    """Compare a case at the smallest size with NumPy; an AssertionError says how it differs."""
    program, gradient = list_cases(impl)[name]
    inputs = program.make("small", np.random.RandomState(0))
    expected = build_numpy(program, inputs)()
    double = is_double(inputs)
    tolerance = getattr(program, "tolerance", 1e-9 if double else 2e-4)
    got = find_builder(impl)[0](program, inputs, gradient)()
    if gradient is not None:
        got, slopes = got
        slope, direction = find_slope(program, inputs, gradient)
        pairs = zip(*map(list_arrays, (slopes, direction)), strict=True)
        found = sum(np.vdot(a.astype(float), d) for a, d in pairs)
        np.testing.assert_allclose(found, slope, rtol=1e-5 if double else 2e-3)
    for a, b in zip(list_arrays(got), list_arrays(expected), strict=True):
        if hasattr(program, "differs"):
            assert not program.differs(a, b), "results differ"
        else:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


def main():
    """Check the programs that are named."""
    impl, *names = sys.argv[1:]
    cases = names or list(list_cases(impl))
    failed = 0
    for name in cases:
        try:
            check_program(impl, name)
        except Exception as error:
            failed += 1
            words = " ".join(str(error).split())[:400]
            print(f"{name}: {type(error).__name__}: {words}", flush=True)
    print(f"{impl}: {len(cases) - failed} of {len(cases)} programs as NumPy")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
