"""Batching of flat functions and programs: where the mapped axis goes, and named axes."""

import itertools

import numpy as np
import pytest

import weft
from weft import jit, lax
from weft.api.callbacks import io_callback
from weft.core.aval import typeof
from weft.core.primitive import Axis, Primitive
from weft.core.stage import stage_closed
from weft.core.trace import current_trace
from weft.options import named_axes
from weft.passes.check import check_jaxpr
from weft.transforms.batch import (
    BatchTracer,
    batch,
    batch_jaxpr,
    batch_to_front,
    mapped_aval,
    unmapped_aval,
)

A = np.array([1.0, 2.0, 3.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def program(fun, *args):
    return stage_closed(fun, [typeof(x) for x in args])[0]


def functions():
    yield lambda x, y: [x * y, x, y, 3.0]
    yield lambda x, y: [lax.reduce_sum(x, (0,)) + y, lax.sin(y)]
    yield lambda x, y: [lax.reshape(x, (3, 1)) * 2.0, lax.dot(x, y)]
    yield lambda x, y: list(jit(lambda a, b: (a + b, a))(x, y))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("dims", [d for d in itertools.product((None, 0, 1), repeat=2) if any(
    x is not None for x in d)])  # fmt: skip
def test_mapping_is_a_loop(number, dims):
    fun = list(functions())[number]
    args = [A + i if d is None else (M + i if d == 0 else (M + i).T) for i, d in enumerate(dims)]
    outs, out_dims = batch(fun, args, dims, Axis(2))
    front = batch_to_front(fun, args, dims, Axis(2))
    rows = []
    for i in range(2):
        row = [x if d is None else np.take(x, i, d) for x, d in zip(args, dims, strict=True)]
        rows.append(fun(*row))
    for y, d, f, want in zip(outs, out_dims, front, zip(*rows, strict=True), strict=True):
        want = np.stack([np.asarray(w) for w in want])
        np.testing.assert_allclose(f, want, rtol=1e-5)
        if d is None:
            np.testing.assert_allclose(y, want[0], rtol=1e-5)
            np.testing.assert_allclose(want[0], want[1])
        else:
            np.testing.assert_allclose(np.moveaxis(np.asarray(y), d, 0), want, rtol=1e-5)


def test_an_element_has_the_type_of_one_element():
    seen = []
    batch(
        lambda x, y: seen.append((type(x), str(x.aval), type(y))) or [x], [M, A], [1, None], Axis(3)
    )
    assert seen == [(BatchTracer, "f32[2]", np.ndarray)]
    aval = typeof(M)
    assert mapped_aval(aval, 1) is typeof(np.zeros(2, np.float32))
    assert unmapped_aval(mapped_aval(aval, 1), 3, 1) is aval


def test_names_are_in_scope_inside_and_put_back_after_an_error():
    seen = []
    batch(lambda x: seen.append(named_axes.value) or [x], [A], [0], Axis(3, "i"))
    assert seen == [(Axis(3, "i"),)]
    before = current_trace()
    with pytest.raises(ZeroDivisionError):
        batch(lambda x: [1 / 0], [A], [0], Axis(3, "i"))
    assert named_axes.value == () and current_trace() is before


def test_a_mapped_program_is_made_once_and_its_results_are_in_front():
    jaxpr = program(lambda x, y: [x * 2.0, y, lax.sin(y)], A, A)
    mapped, out_dims = batch_jaxpr(jaxpr, Axis(2), (1, None))
    check_jaxpr(mapped)
    assert out_dims == [0, None, None]
    assert batch_jaxpr(jaxpr, Axis(2), (1, None))[0] is mapped
    assert [str(a) for a in mapped.in_avals] == ["f32[3,2]", "f32[3]"]
    np.testing.assert_allclose(mapped(M.T, A)[0], M * 2)


def test_results_may_be_made_mapped():
    jaxpr = program(lambda x, y: [x * 2.0, y], A, A)
    mapped, out_dims = batch_jaxpr(jaxpr, Axis(2), (0, None), True)
    assert out_dims == [0, 0]
    np.testing.assert_allclose(mapped(M, A)[1], np.stack([A, A]))
    assert batch_jaxpr(jaxpr, Axis(2), (0, None), (False, True))[1] == [0, 0]


def test_weak_types_survive():
    out = weft.vmap(lambda x, y: y * 2.0, (0, None))(M, 1.0)
    assert out.weak_type
    assert weft.vmap(lambda x: x * 2)(np.arange(3)).dtype == np.int32


def test_where_a_mapped_value_comes_from():
    seen = []

    def look(x):
        y = lax.sin(x)
        seen.extend([x.origin(), y.origin()])
        return y

    weft.vmap(look, in_axes=1)(M)
    assert seen[0].endswith("mapped by vmap along axis 1 of f32[2,3]")
    weft.jit(weft.vmap(look))(M)
    assert "argument `x` of look" in seen[2] or "argument" in seen[2]
    with weft.config.scope(enable_checks=True):
        weft.vmap(look)(M)


def test_named_axes_are_in_scope_within_alone():
    assert named_axes.value == ()
    sizes = lambda x: (lax.axis_size("i"), lax.axis_size("j"), x)[:2]
    out = weft.vmap(
        lambda x: weft.vmap(sizes, axis_name="j", out_axes=None)(x), axis_name="i", out_axes=None
    )(M)
    assert tuple(map(int, out)) == (2, 3) and named_axes.value == ()
    with pytest.raises(ZeroDivisionError):
        weft.vmap(lambda x: 1 / 0, axis_name="i")(M)
    assert named_axes.value == ()


def test_what_has_an_effect_is_not_done_for_some_alone():
    def branch(x):
        io_callback(print, None, x, ordered=False)
        return x

    f = lambda p, x: lax.cond(p, branch, lambda x: x, x)
    with pytest.raises(NotImplementedError, match="is computed too.*Hint: lax.map"):
        weft.vmap(f)(np.array([True, False]), A[:2])


def test_tangents_of_integers_are_mapped_by_their_shape():
    zero = np.zeros((2, 3), weft.dtypes.float0)
    run = lambda x, t: weft.jvp(lambda n: (n, 2 * n), (x,), (t,))[1]
    dots = weft.vmap(run)(M.astype(int), zero)
    assert [(d.dtype, d.shape) for d in dots] == [(weft.dtypes.float0, (2, 3))] * 2


class Pair(Primitive):
    """x and x; its batch rule forgets where the second is mapped."""

    name = "pair"

    def abstract_eval(self, x):
        return [x, x]

    def batch(self, axis, args, dims):
        return self.apply(*args), dims


def test_a_batch_rule_gives_an_axis_for_each_result():
    message = r"^pair: the batch rule must return a mapped axis, .*; got 1 for 2\.$"
    with pytest.raises(ValueError, match=message):
        weft.make_jaxpr(weft.vmap(lambda x: Pair().apply(x)))(A)
