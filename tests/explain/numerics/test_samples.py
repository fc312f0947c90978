"""Figures that the host computes when it reads a tape are those that the device computes."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.explain.numerics import recording
from weft.explain.numerics.follow import follow_program
from weft.explain.numerics.samples import FIELDS
from weft.explain.subject import Subject

X = np.random.default_rng(0).uniform(0.5, 2, 6).astype(np.float32)


def elementwise(x):
    y = (x * x - 1.5) / (x + 2.25)
    return jnp.sum(y, dtype=jnp.float32) + y.max() - 0.5


def products(x):
    y = x.reshape(2, 3)
    return (y @ y.T + 1).astype(jnp.bfloat16) * 3


def specials(x):
    y = jnp.log(x - 1)  # NaN and -inf
    return jnp.where(x > 1, y, 0.0) * jnp.inf


def loop(x):
    def step(c, row):
        c = jnp.where(row > 1, c * 0.5 + x, lax.cond(row > 0.7, jnp.sin, jnp.exp, c))
        return c, jnp.sum(c - row)

    return lax.scan(step, x, jnp.asarray(X))


def nested(x):
    inner = lambda c: lax.fori_loop(0, 9, lambda i, v: v * 0.9 + x[0], c)
    return lax.while_loop(lambda c: c[0] < 10, lambda c: inner(c) + 4.0, x)


PROGRAMS = {f.__name__: f for f in (elementwise, products, specials, loop, nested)}


def read(fun, x, monkeypatch, on_host):
    with monkeypatch.context() as m:
        if not on_host:
            plan = lambda self, item, *_: item._replace(fields=recording.FIELDS)
            m.setattr(recording.Look, "plan_fields", plan)
        subject = Subject(weft.jit(lambda x: fun(x)), (x,), {}, "numerics")
        return follow_program(subject).records


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_host_computes_what_the_device_computes(name, monkeypatch):
    x = np.where(np.arange(6) == 2, np.float32(1), X)
    host, device = (read(PROGRAMS[name], x, monkeypatch, on) for on in (True, False))
    assert any(r.item.operands is not None for r in host)
    check_equal(host, device)


def test_pairs(monkeypatch):
    with weft.enable_x64(True):
        x = X.astype(np.float64)
        check_equal(
            *[read(lambda x: (x * x - 2) * 1.1, x, monkeypatch, on) for on in (True, False)]
        )


def check_equal(host, device):
    assert [r.site.operation for r in host] == [r.site.operation for r in device]
    for mine, theirs in zip(host, device, strict=True):
        assert mine.block.turns == theirs.block.turns
        for field in FIELDS:
            found, wanted = mine.block.fields[field], theirs.block.fields[field]
            # the last bits of the wide run depend on what XLA fuses
            np.testing.assert_allclose(found, wanted, 1e-6, 1e-14, err_msg=field)
        for fact, wanted in theirs.block.facts.items():
            np.testing.assert_array_equal(mine.block.facts[fact], wanted, fact)
