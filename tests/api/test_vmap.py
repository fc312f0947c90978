"""vmap's arguments and results."""

import numpy as np
import pytest

import weft
from weft import jit, lax, vmap
from weft.options import named_axes

A = np.array([1.0, 2.0, 3.0], np.float32)
B = np.array([4.0, 5.0, 6.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def same(got, want):
    got_leaves, got_tree = weft.tree.flatten(got)
    want_leaves, want_tree = weft.tree.flatten(want)
    assert got_tree == want_tree
    for g, w in zip(got_leaves, want_leaves, strict=True):
        np.testing.assert_array_equal(g, w)


def test_in_axes():
    same(vmap(lambda x, y: x + y, in_axes=(0, None))(M, A), M + A)
    same(vmap(lambda x: x * 2, in_axes=1)(M), M.T * 2)
    same(vmap(lambda x: x * 2, in_axes=-1)(M), M.T * 2)
    same(vmap(lambda x, y: x + y, in_axes=[0, None])(M, A), M + A)
    same(vmap(lambda p: p["a"] * p["b"], in_axes=({"a": 0, "b": None},))({"a": M, "b": A}), M * A)
    same(vmap(lambda p: p[0] + p[1], in_axes=([0, None],))([M, A]), M + A)
    same(vmap(lambda t, u: t + u["x"] + u["y"], (0, None))(M, {"x": 1.0, "y": 2.0}), M + 3)


def test_out_axes():
    same(vmap(lambda x: x * 2, out_axes=1)(M), M.T * 2)
    same(vmap(lambda x: x * 2, out_axes=-1)(M), M.T * 2)
    same(vmap(lambda x: (x, A), out_axes=(0, None))(M), (M, A))
    got = vmap(lambda x: {"a": x, "b": [x, x + 1]}, out_axes={"a": 1, "b": 0})(M)
    same(got, {"a": M.T, "b": [M, M + 1]})
    got = vmap(lambda x: {"a": x, "b": [x, x + 1]}, out_axes={"a": 1, "b": [0, 1]})(M)
    same(got, {"a": M.T, "b": [M, (M + 1).T]})


def test_results_that_are_not_mapped_are_repeated():
    same(vmap(lambda x: 3.0)(M), np.full(2, 3, np.float32))
    same(vmap(lambda x: (A, None, 2))(M), (np.stack([A, A]), None, np.array([2, 2])))


def test_none_in_the_arguments_and_keywords():
    same(vmap(lambda x, y: x)(M, None), M)
    same(vmap(lambda t: t[0])((M, None)), M)
    same(vmap(lambda x, k: x + k)(M, k=M), 2 * M)
    same(vmap(lambda x, k: x + k, in_axes=(None,))(A, k=M), A + M)


def test_axis_size():
    same(vmap(lambda: 1.0, axis_size=3)(), np.ones(3, np.float32))
    same(vmap(lambda x: x * 2, in_axes=None, axis_size=3)(2.0), np.full(3, 4, np.float32))
    assert vmap(lax.sin)(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_nested_and_mixed_with_jit():
    same(vmap(vmap(lambda x, y: x * y, (None, 0)), (0, None))(A, B), np.outer(A, B))
    same(vmap(jit(vmap(lambda x, y: x * y, (0, None))), (0, None))(M, 2.0), M * 2)
    same(jit(vmap(jit(lambda x, y: x * y), (None, 1)))(np.float32(2), M), M.T * 2)
    same(vmap(lambda x: jit(lambda x, n: x * n, static_argnums=1)(x, 3))(M), M * 3)
    same(vmap(jit(lambda x, y: (x, y)), (0, None), (0, None))(M, A), (M, A))


def test_the_axis_name_is_in_scope_inside_alone():
    seen = []

    def f(x):
        seen.append([(a.name, a.size) for a in named_axes.value])
        return x

    vmap(vmap(f, axis_name="j"), axis_name="i")(M)
    assert seen == [[("i", 2), ("j", 3)]]
    vmap(jit(f), axis_name="i")(A)
    vmap(jit(f), axis_name="k")(A)
    assert seen[1:] == [[("i", 3)], [("k", 3)]]
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 // 0, axis_name="i")(A)
    assert named_axes.value == ()


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: vmap(lambda x: x, in_axes="a"), TypeError, "must hold ints and None; got 'a'"),
        (lambda: vmap(lambda x: x, in_axes=1.5), TypeError, "got 1.5"),
        (lambda: vmap(lambda x: x, in_axes=(0,))(M, M), ValueError, "got 1 for the 2 of"),
        (lambda: vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": M}), ValueError, "tree prefix"),
        (lambda: vmap(lambda x: x, out_axes=(0,))(M), ValueError, "out_axes must be a tree prefix"),
        (lambda: vmap(lambda x: x, in_axes=3)(M), ValueError, "got axis 3 for f32[2,3] as x of"),
        (lambda: vmap(lambda x: x)(1.0), ValueError, "got axis 0 for f32[] as x of <lambda>"),
        (lambda: vmap(lambda x: x, out_axes=3)(M), ValueError, "got 3 for rank 2"),
        (lambda: vmap(lambda x: x, out_axes=None)(M), ValueError, "results that are not mapped"),
        (lambda: vmap(lambda x: x, in_axes=None)(M), ValueError, "at least one argument"),
        (lambda: vmap(lambda: 1.0)(), ValueError, "Hint: give axis_size"),
        (lambda: vmap(lambda x, y: x)(M, A), ValueError, "2 (axis 0 of x, f32[2,3]), 3 (axis 0"),
        (lambda: vmap(lambda x: x, axis_size=3)(M), ValueError, "3 (axis_size)"),
        (lambda: vmap(lambda x: x, axis_size=[2])(M), TypeError, "must be an integer; got [2]"),
        (lambda: vmap(lambda x: x)("a"), TypeError, "got 'a' of type str at x"),
        (lambda: vmap(lambda x: "a")(M), TypeError, "got 'a' of type str at result"),
        (lambda: vmap(lambda x: x if x > 0 else -x)(A), TypeError, "mapped by vmap along axis 0"),
        (lambda: vmap(lambda x: np.sin(x))(A), TypeError, "Hint: jnp.sin(x)."),
    ],
)  # fmt: skip
def test_what_vmap_refuses(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_what_is_not_mapped_may_be_anything():
    f = vmap(lambda g, names, x: (g(x), len(names)), in_axes=(None, None, 0))
    out, count = f(weft.numpy.sin, {"a": "b"}, np.zeros(2, np.float32))
    assert out.tolist() == [0, 0] and count.tolist() == [1, 1]
    with pytest.raises(TypeError, match="vmap: arguments must be arrays or numbers; got 'b'"):
        f(weft.numpy.sin, {}, "b")


@weft.tree_util.register_pytree_node_class
class Row:
    """A class that checks its contents, and therefore rejects placeholders of pytrees."""

    def __init__(self, x):
        if hasattr(x, "shape") and x.shape[-1] != 2:
            raise ValueError(f"the last axis must be of size 2; got {x.shape}")
        self.x = x

    def tree_flatten(self):
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def test_a_class_that_checks_its_leaves_sees_results_in_place():
    out = vmap(lambda x: Row(x), in_axes=1)(np.arange(6.0).reshape(2, 3))
    assert out.x.shape == (3, 2)
