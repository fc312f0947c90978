"""Functions of flat lists, as libraries make them of functions of pytrees."""

import inspect

import pytest

import weft
import weft.numpy as jnp
from weft import api_util
from weft.extend import linear_util as lu
from weft.extend.core.primitives import call_p


def test_transformations_go_around_a_function():
    @lu.transformation
    def scale(factor, *xs):
        out = yield [factor * x for x in xs], {}
        yield out + 1

    @lu.transformation_with_aux
    def count(*xs):
        out = yield xs, {}
        yield out, len(xs)

    fun, aux = count(scale(lu.wrap_init(lambda x, y: x - y), 10))
    with pytest.raises(lu.StoreException):
        aux()
    assert fun.call_wrapped(3, 1) == 21 and aux() == 2
    other = count(lu.wrap_init(lambda: 0))[1]
    assert lu.merge_linear_aux(aux, other) == (True, 2)
    assert lu.merge_linear_aux(other, aux) == (False, 2)
    assert lu.wrap_init(lambda x, y: x - y, dict(y=2)).call_wrapped(5) == 3


def test_functions_of_pytrees_become_flat():
    f = lambda x, *, y: {"sum": x["a"] + y, "x": x}
    leaves, tree = weft.tree.flatten((({"a": 1},), {"y": 2}))
    info = api_util.debug_info("jit", f, ({"a": 1},), {"y": 2})
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(f, debug_info=info), tree)
    assert flat.call_wrapped(*leaves) == [3, 1]
    assert weft.tree.unflatten(out_tree(), [3, 1]) == {"sum": 3, "x": {"a": 1}}
    tree = weft.tree.structure(([1, 2],))
    flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(lambda x: x[0] - x[1]), tree)
    assert flat.call_wrapped(5, 3) == [2]
    fun, args = api_util.argnums_partial(
        lu.wrap_init(lambda x, y, z: (x, y, z)), (0, -1), [1, 2, 3]
    )
    assert args == [1, 3] and fun.call_wrapped(7, 9) == (7, 2, 9)
    assert api_util.flatten_axes("vmap", weft.tree.structure([1, (2, 3)]), [0, None]) == [
        0,
        None,
        None,
    ]
    assert api_util.rebase_donate_argnums((0, 3), (1,)) == (0, 2)
    with pytest.raises(ValueError):
        api_util.safe_map(max, [1, 2], [3])
    aval = weft.typeof(jnp.ones(2))
    assert api_util.shaped_abstractify(jnp.ones(2)) is aval is api_util.shaped_abstractify(aval)


def test_calls_take_functions_and_programs():
    program = weft.make_jaxpr(lambda x: 3 * x)(1.0)
    assert call_p.bind(lu.wrap_init(lambda x: [x + 1]), 2) == [3]
    assert call_p.bind(2, subfuns=[lu.wrap_init(lambda x: [x + 1])]) == [3]
    assert float(weft.grad(lambda x: call_p.bind(x, call_jaxpr=program)[0])(2.0)) == 3


def test_results_are_kept_by_what_a_function_is_made_of():
    calls = []
    run = lu.cache(lambda fun, *args: calls.append(args) or fun.call_wrapped(*args))

    @lu.transformation
    def negate(*xs):
        yield -(yield xs, {})

    assert run(negate(lu.wrap_init(abs)), 2) == run(negate(lu.wrap_init(abs)), 2) == -2
    assert run(lu.wrap_init(abs), 2) == 2 and calls == [(2,), (2,)]


def test_donated_arguments_leaf_by_leaf():
    tree = weft.tree.structure(((1, (2, 3)), {"b": 4, "a": 5}))
    assert api_util.donation_vector((1,), ("b",), tree) == (False, True, True, False, True)
    tree = weft.tree.structure((1, (2, 3)))
    assert api_util.donation_vector((0,), (), tree, kws=False) == (True, False, False)


def test_arguments_are_named_and_numbered():
    sig = inspect.signature(lambda a, b, /, c, d, *e, f: 0)
    infer = api_util.infer_argnums_and_argnames
    for given, found in [
        ((None, None), ((), ())),
        ((0, None), ((0,), ("c",))),
        (((1, -1, 7), None), ((1, -1, 7), ("d", "d"))),
        ((None, "d"), ((1,), ("d",))),
        ((None, ["d", "f"]), ((1,), ("d", "f"))),
        ((0, ["d"]), ((0,), ("d",))),
    ]:
        assert infer(sig, *given) == found, given
