"""Every row of the conformance suite as a program in C, against NumPy."""

import functools
import itertools
import pathlib
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.rows import find_reason, group_rows, list_rows, run_rows
from tests.settings import ALL
from weft import export, lax
from weft.core.facts import Elements
from weft.export.c.expand import opaque_p, primitives_in
from weft.export.c.program import prepare
from weft.export.recorder import read_dims, read_numbers

DOCS = pathlib.Path(__file__).parents[3] / "docs/programs-in-c.md"


@functools.cache
def rows():
    """Return every row at its first dtype, or at all, with its reason for having no form in C."""
    return list(map(find_reason, list_rows(every=ALL)))


def test_every_row_has_a_form():
    assert not [row.why for row in rows() if row.why]


def test_rows_agree_with_numpy():
    """One row in twelve; `--all` runs all rows at every dtype."""
    chosen = rows() if ALL else rows()[::12]
    wrong = list(itertools.chain.from_iterable(map(run_rows, group_rows(chosen))))
    assert not wrong, "\n".join(wrong)


def test_share_of_primitives_in_the_docs():
    """docs/programs-in-c.md says how many primitives of the suite have a form in C."""
    names = {row.case.prim.name for row in rows()}
    lacking = names - {row.case.prim.name for row in rows() if not row.why}
    found = re.search(r"(\d+) of the (\d+) primitives", DOCS.read_text())
    assert found
    assert (int(found[1]), int(found[2])) == (len(names) - len(lacking), len(names))


def expanded(fun, *args):
    return prepare(weft.jit(fun).trace(*args)._program)[0]


def test_an_expanded_program_has_few_kinds_of_operations():
    def f(x):
        y = lax.while_loop(lambda y: jnp.sum(y) < 9, lambda y: jnp.sort(y) + 1, x)
        return lax.cond(y[0] > 0, jnp.cumsum, lambda y: jnp.fft.fft(y).real, y)

    jaxpr = expanded(f, np.ones(3, np.float32))
    eqns = list(primitives_in(jaxpr))
    assert all(e.primitive.element is not None or e.primitive is opaque_p or
               e.primitive.elements is Elements.CHOSEN for e in eqns)  # fmt: skip
    names = {e.params["operation"] for e in eqns if e.primitive is opaque_p}
    assert names == {"while", "switch", "sort", "fft"}


def test_calls_are_inlined():
    @weft.custom_jvp
    def f(x):
        return weft.jit(jnp.sin)(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    jaxpr = expanded(lambda x: weft.checkpoint(f)(x) + f(x), np.ones(3, np.float32))
    assert str(jaxpr).count(" = ") == 2


def test_attributes_are_read():
    assert read_numbers("array<i64: 1, -2>") == (1, -2)
    assert read_numbers("array<i64>") == ()
    assert read_numbers("3 : i64") == (3,)
    text = "#stablehlo.scatter<update_window_dims = [0, 1], index_vector_dim = 2>"
    assert read_dims(text) == {"update_window_dims": (0, 1), "index_vector_dim": (2,)}


def refuse(fun, *args):
    with pytest.raises(NotImplementedError) as found:
        export.to_c(fun)(*args)
    return str(found.value)


X = np.ones(3, np.float32)
MESSAGE = r"to_c: a program must be of operations that C can compute by itself; got {} .*at {}:\d+"


@pytest.mark.parametrize(
    ("fun", "name"),
    [
        (lambda x: weft.pure_callback(np.sin, x, x), "pure_callback"),
        (lambda x: [weft.debug.print("{}", x), x][1], "debug_print"),
        (lambda x: weft.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(x) * weft.ffi.ffi_call(
            "somebody", weft.ShapeDtypeStruct((3,), np.float32))(x), "ffi_call"),
        (lambda x: x.astype(jnp.int4), "convert_element_type"),
    ],
    ids=["pure_callback", "debug_print", "ffi_call", "int4"],
)  # fmt: skip
def test_operations_without_a_form_are_refused_with_their_line(fun, name):
    assert re.match(MESSAGE.format(name, "test_expand.py"), refuse(fun, X))


def test_a_refusal_within_a_loop_names_the_operation():
    body = lambda c, _: (c + weft.pure_callback(np.sin, c, c), None)
    found = refuse(lambda x: lax.scan(body, x, None, 3)[0], X)
    assert "got scan" in found or "got pure_callback" in found
    assert "test_expand.py" in found
