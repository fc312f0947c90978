"""The public checkpoint: decorators, static arguments, policies, printed residuals, and errors."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import ad_checkpoint, checkpoint_policies, grad, jit, lax, remat
from weft.ad_checkpoint import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint,
    checkpoint_name,
    print_saved_residuals,
    saved_residuals,
)

X = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize("module", [ad_checkpoint, checkpoint_policies])
def test_examples(module):
    check_examples(module)


def test_it_is_a_decorator_with_and_without_options():
    assert checkpoint is weft.checkpoint and remat is weft.remat

    @checkpoint
    def f(x):
        """Square."""
        return x * x

    @functools.partial(checkpoint, policy=checkpoint_policies.dots_saveable)
    def g(x):
        return x * x

    @checkpoint(prevent_cse=False)
    def h(x):
        return x * x

    assert f.__name__ == "f" and f.__doc__ == "Square."
    for fun in (f, g, h, checkpoint(lambda x: x * x, prevent_cse=(True, False))):
        assert grad(fun)(3.0) == 6.0


def test_methods():
    class Layer:
        scale = 3.0

        @checkpoint
        def once(self, x):
            return self.scale * x

        @functools.partial(checkpoint, static_argnums=0)
        def __call__(self, x):
            return self.scale * jnp.sin(x)

    np.testing.assert_allclose(grad(Layer().__call__)(0.0), 3.0)
    with pytest.raises(
        weft.errors.DtypeError, match="^checkpoint: arguments must be arrays or num"
    ):
        Layer().once(1.0)


def test_static_arguments():
    traces = []

    def f(x, n, *, flip=False):
        traces.append((n, flip))
        y = sum(jnp.sin(x) for _ in range(n))
        return -y if flip else y

    g = checkpoint(f, static_argnums=1, static_argnames="flip")
    np.testing.assert_allclose(grad(g)(0.0, 3), 3.0)
    np.testing.assert_allclose(grad(g)(0.0, 3), 3.0)
    np.testing.assert_allclose(jit(grad(lambda x: g(x, 2, flip=True)))(0.0), -2.0)
    assert traces == [(3, False), (2, True)]


def test_keyword_arguments():
    f = checkpoint(lambda x, *, w: x * w["w"])
    np.testing.assert_allclose(grad(lambda x: f(x, w={"w": 2.0}))(1.0), 2.0)


def test_a_traced_value_may_be_closed_over():
    @jit
    def f(x):
        return grad(lambda y: checkpoint(lambda z: z * x * y)(y))(x)

    np.testing.assert_allclose(f(3.0), 18.0)


def model(x, w, d):
    y = jnp.sin(x @ w)
    y = checkpoint_name(jnp.cos(y) * d["b"], "hidden")
    return jnp.sum(y * jnp.exp(y))


ARGS = (X, np.ones((3, 4), np.float32), {"b": np.ones(4, np.float32)})


def lines(capsys, f, *args, **kwargs):
    print_saved_residuals(f, *args, **kwargs)
    return [line.rsplit(":", 1)[0] for line in capsys.readouterr().out.splitlines()]


def test_what_is_printed(capsys):
    first = model.__code__.co_firstlineno
    arguments = [
        "f32[3] from the argument x",
        "f32[3,4] from the argument w",
        "f32[4] from the argument d['b']",
    ]

    def place(line):
        return f"test_checkpoint.py:{first + line}"

    assert lines(capsys, model, *ARGS) == [
        *arguments,
        f"f32[4] output of cos from {place(1)}",
        f"f32[4] output of cos from {place(2)}",
        f"f32[4] output of sin from {place(2)}",
        f"f32[4] named 'hidden' from {place(2)}",
        f"f32[4] output of exp from {place(3)}",
    ]
    assert lines(capsys, checkpoint(model), *ARGS) == arguments
    named = checkpoint_policies.save_only_these_names("hidden")
    assert lines(capsys, checkpoint(model, policy=named), *ARGS) == [
        *arguments,
        f"f32[4] named 'hidden' from {place(2)}",
    ]


def test_where_residuals_may_be_from():
    def rows(f, *args, **kwargs):
        found = saved_residuals(f, *args, **kwargs)
        return [f"{a} {text.split(' from test')[0]}" for a, text in found]

    def kwarg(x, *a, **k):
        return x * a[0] * k["w"][0]

    assert rows(kwarg, X, X, w=[X]) == [
        "f32[3] from the argument x",
        "f32[3] from the argument a[0]",
        "f32[3] from the argument w[0]",
        "f32[3] output of mul",
    ]
    c = jnp.ones(3)
    assert rows(lambda x: c * x, X) == ["f32[3] from a constant"]
    assert rows(lambda x: jit(jnp.sin, inline=False)(x), X) == [
        "f32[3] output of jitted function 'sin'"
    ]
    assert rows(lambda x, n: jnp.sin(x) * n, 1.0, 3)[:1] == ["f32[] output of cos"]
    assert rows(lambda x: x + x, X) == []
    struct = weft.ShapeDtypeStruct((5,), np.float32)
    assert rows(lambda x: x * x, struct) == ["f32[5] from the argument x"]


# --- policies -----------------------------------------------------------------------------------

P = checkpoint_policies
DOTS = ["output of dot_general"]
BOTH = P.save_from_both_policies


@pytest.mark.parametrize(
    "policy, saved",
    [
        (P.everything_saveable, None),
        (P.nothing_saveable, []),
        (P.dots_saveable, DOTS),
        (P.checkpoint_dots, DOTS),
        (P.dots_with_no_batch_dims_saveable, DOTS),
        (P.checkpoint_dots_with_no_batch_dims, DOTS),
        (P.offload_dot_with_no_batch_dims("device", "pinned_host"), DOTS),
        (P.save_only_these_names("hidden", "other"), ["named 'hidden'"]),
        (P.save_only_these_names("other"), []),
        (P.save_any_names_but_these("other"), ["named 'hidden'"]),
        (P.save_any_names_but_these("hidden"), []),
        (BOTH(P.dots_saveable, P.save_only_these_names("hidden")), [*DOTS, "named 'hidden'"]),
        (
            P.save_and_offload_only_these_names(
                names_which_can_be_saved=[],
                names_which_can_be_offloaded=["hidden"],
                offload_src="device",
                offload_dst="pinned_host",
            ),
            ["named 'hidden'"],
        ),
        (lambda prim, *_, **__: Saveable if prim is lax.dot_general_p else Recompute, DOTS),
        (lambda *_, **__: Recompute, []),
        (lambda *_, **__: Offloadable("device", "pinned_host"), None),
    ],
)
def test_what_policies_save(policy, saved):
    rows = [
        t.split(" from test")[0]
        for _, t in saved_residuals(checkpoint(model, policy=policy), *ARGS)
    ]
    rows = [t for t in rows if not t.startswith("from the argument")]
    if saved is None:
        plain = [t.split(" from test")[0] for _, t in saved_residuals(model, *ARGS)]
        assert rows == [t for t in plain if not t.startswith("from the argument")]
    else:
        assert rows == saved
    np.testing.assert_allclose(
        jit(grad(checkpoint(model, policy=policy)))(*ARGS), grad(model)(*ARGS), rtol=1e-5
    )


def test_products_with_a_batch_and_convolutions():
    a = np.ones((2, 3, 3), np.float32)

    def saved(policy, f, *args):
        return len(
            [1 for _, t in saved_residuals(checkpoint(f, policy=policy), *args) if "output" in t]
        )

    f = lambda a: jnp.sin(a @ a)
    assert saved(P.dots_saveable, f, a) == 1
    assert saved(P.dots_with_no_batch_dims_saveable, f, a) == 0
    x, k = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 2, 2), np.float32)
    g = lambda x, k: jnp.sin(lax.conv(x, k, (1, 1), "SAME"))
    assert saved(P.dots_saveable, g, x, k) == 1
    assert saved(P.dots_with_no_batch_dims_saveable, g, x, k) == 0


def test_policies_are_values():
    assert P.save_only_these_names("a", "b") == P.save_only_these_names("b", "a")
    assert hash(P.save_only_these_names("a")) != hash(P.save_any_names_but_these("a"))
    both = BOTH(P.dots_saveable, P.save_only_these_names("b", "a"))
    assert repr(both) == "save_from_both_policies(dots_saveable, save_only_these_names('a', 'b'))"
    assert repr(P.offload_dot_with_no_batch_dims("device", "pinned_host")) == (
        "offloading(dots_with_no_batch_dims_saveable, Offloadable(src='device', dst='pinned_host'))"
    )
    assert (repr(Saveable), repr(Recompute)) == ("Saveable", "Recompute")


def test_names_of_pytrees():
    tree = {"a": X, "b": [1.0, None]}
    named = checkpoint_name(tree, "t")
    np.testing.assert_array_equal(named["a"], X)
    assert named["b"] == [1.0, None]


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: checkpoint(3), TypeError, "checkpoint: needs a function; got 3 of type int."),
        (
            lambda: checkpoint(jnp.sin, policy=3),
            TypeError,
            "checkpoint policy: needs a function; got 3 of type int.",
        ),
        (
            lambda: checkpoint(jnp.sin, concrete=True),
            NotImplementedError,
            "checkpoint: concrete must be False; got True. Hint: static_argnums",
        ),
        (
            lambda: checkpoint(jnp.sin)("a"),
            TypeError,
            "checkpoint: arguments must be arrays or numbers; got 'a' of type str at x of sin.",
        ),
        (
            lambda: checkpoint(lambda x: "a")(1.0),
            TypeError,
            "checkpoint: results must be arrays or numbers; got 'a' of type str",
        ),
        (lambda: checkpoint_name(X, 3), TypeError, "checkpoint_name: name must be a str; got 3."),
        (
            lambda: checkpoint_name({"a": "b"}, "c"),
            TypeError,
            "checkpoint_name: arguments must be arrays or numbers; got 'b' of type str at x['a']",
        ),
        (
            lambda: print_saved_residuals(3),
            TypeError,
            "saved_residuals: needs a function; got 3 of type int.",
        ),
        (
            lambda: P.save_and_offload_only_these_names(
                names_which_can_be_saved=["a"],
                names_which_can_be_offloaded=["a"],
                offload_src="device",
                offload_dst="pinned_host",
            ),
            ValueError,
            "save_and_offload_only_these_names: a name must be saved or offloaded, not both; got a",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_static_arguments_need_not_be_hashable():
    scale = weft.checkpoint(lambda options, x: x * options["by"], static_argnums=0)
    assert [weft.grad(scale, 1)({"by": n}, 1.0) for n in (2, 3)] == [2, 3]


# --- a budget -------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [-1, 1.5, -0.1, float("nan")])
def test_a_budget_out_of_range(budget):
    with pytest.raises(ValueError, match=r"^checkpoint: budget must be a number of bytes"):
        checkpoint(jnp.sin, budget=budget)


@pytest.mark.parametrize("budget", [True, "0.5", 1j, [1]])
def test_a_budget_of_the_wrong_type(budget):
    with pytest.raises(TypeError, match=r"^checkpoint: budget must be a number of bytes"):
        checkpoint(jnp.sin, budget=budget)


def test_a_budget_and_a_policy_are_an_error():
    with pytest.raises(ValueError, match=r"^checkpoint: only one of policy and budget may be"):
        checkpoint(jnp.sin, budget=0.5, policy=checkpoint_policies.dots_saveable)


def test_the_plan_of_a_budget():
    @checkpoint(budget=np.float32(0.5), static_argnums=2)
    def f(x, w, n):
        """Layers."""
        for _ in range(n):
            x = jnp.tanh(x @ w)
        return jnp.sum(x)

    x, w = jnp.ones((800, 3)), jnp.ones((3, 3))
    plan = f.plan(x, w, 2)
    assert f.__doc__ == "Layers." and not hasattr(checkpoint(jnp.sin), "plan")
    assert (plan.bytes, plan.limit, plan.without_budget) == (9600, 9600, 19200)
    (kept,) = plan.kept
    line = f.__wrapped__.__code__.co_firstlineno + 4
    assert kept.bytes == 9600 and kept.source.startswith("output of ")
    assert f"{__file__.rsplit('/', 1)[-1]}:{line}:" in kept.source
    first, _, row = repr(plan).splitlines()
    assert first.startswith("kept: 9,600 bytes of 9,600 (without a budget: 19,200); computed again")
    assert row.split()[0] == "9,600" and "f32[800,3] output of " in row
    assert f.plan(weft.ShapeDtypeStruct((8, 3), np.float32), w, 1).bytes == 0
    assert checkpoint(jnp.sin, budget=0).plan(1.0).bytes == 0
