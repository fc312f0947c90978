"""Derivatives of exported functions along axes of a symbolic size, against the function's own.

Each function of `numpy`, `lax` and others is called in a few ways that give floats. A call that is
refused for a symbolic size is left out; its derivative must not be refused.
"""

import inspect

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax, nn
from weft.scipy import special

FORMS = {
    "one": lambda f, x: f(x),
    "two": lambda f, x: f(x, x * 0.5 + 0.3),
    "first": lambda f, x: f(x, axis=0),
    "last": lambda f, x: f(x, axis=1),
    "square": lambda f, x: f(x.T @ x / 9 + jnp.eye(3)),
    "row": lambda f, x: f(x[:, 0]),
}
MODULES = {"numpy": jnp, "lax": lax, "linalg": jnp.linalg, "fft": jnp.fft, "nn": nn,
           "special": special}  # fmt: skip
RUNNING = ("cumprod", "cummax", "cummin", "cumlogsumexp")
X = np.random.default_rng(0).uniform(0.5, 1.5, (5, 3)).astype(np.float32)


def find_functions():
    found = {}
    for where, module in MODULES.items():
        for name, f in inspect.getmembers(module, callable):
            if name[0] != "_" and not isinstance(f, type) and getattr(f, "__doc__", None):
                found.setdefault(f, (where, name))
    return sorted(found.values())


def differentiate(f):
    """The first derivative of a scalar function of f, and the second."""
    first = weft.grad(lambda x: jnp.sin(f(x)).sum())
    return weft.jit(lambda x: (first(x), weft.grad(lambda x: jnp.cos(first(x)).sum())(x)))


def sized(text):
    return weft.ShapeDtypeStruct(export.symbolic_shape(text), np.float32)


def is_differentiable(f, x):
    try:
        if not np.issubdtype(weft.eval_shape(f, x).dtype, np.floating):
            return False
        weft.eval_shape(differentiate(f), x)
        return True
    except Exception:  # of any kind: the call does not fit the function
        return False


def compare(f, text="b, 3"):
    exported = export.export(weft.jit(f))(sized(text)).serialize(vjp_order=2)
    call = export.deserialize(exported).call
    for n in (1, 2, 5):
        found, want = differentiate(call)(X[:n]), differentiate(f)(X[:n])
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, 1e-3, 1e-4)


@pytest.mark.sample(one_in=150)
@pytest.mark.parametrize("where, name", find_functions())
def test_no_derivative_refuses_a_symbolic_size(where, name):
    for form in FORMS.values():
        f = lambda x, form=form: form(getattr(MODULES[where], name), x)
        if is_differentiable(f, X):
            try:
                weft.eval_shape(f, sized("b, 3"))
            except Exception:
                continue
            weft.eval_shape(differentiate(f), sized("b, 3"))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", RUNNING)
def test_running_reductions(name, reverse):
    compare(lambda x: getattr(lax, name)(x, axis=0, reverse=reverse))


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("f", [
    jnp.prod, lambda x: jnp.nanprod(x, axis=0),
    lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + a + b, (0,)),
])  # fmt: skip
def test_products_and_reductions(f):
    compare(f)


def test_elements_that_are_the_lowest():
    f = lambda x: lax.cummax(jnp.where(x > 1, x, -jnp.inf), axis=0)
    exported = export.export(weft.jit(lambda x: weft.jvp(f, (x,), (x,))[1]))(sized("b"))
    x = jnp.asarray([0.5, 0.2, 1.5, 0.1, 1.2])
    np.testing.assert_allclose(exported.call(x), [0, 0, 1.5, 1.5, 1.5])
