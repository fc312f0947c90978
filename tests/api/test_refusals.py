"""The errors of functions of `api/` for bad arguments: a valid call, with one argument replaced.

For each parameter, tests/golden/refusals_api.txt has the number of values that were tried, with a
digest of all messages, and each error in full with its number. An error of the user's function, or
of NumPy, is listed only by its class. A call that succeeds is listed with its program. `python -m
tests.api.test_refusals` writes the file anew; with the name of a call it prints all its messages.
"""
# ruff: noqa: E501  (a call is one row)

import collections
import inspect
import re
import sys
import traceback
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.primitives.test_rules import read_blocks
from tests.told import find_wrong_options
from weft import P, debug, lax, shard_map
from weft.ad_checkpoint import checkpoint_name
from weft.core.source import is_own_file
from weft.custom_batching import custom_vmap
from weft.custom_derivatives import closure_convert, custom_gradient, linear_call
from weft.experimental import checkify, io_callback
from weft.sharding import AbstractMesh, AxisType, NamedSharding, reshard, use_abstract_mesh

FILE = Path(__file__).parents[1] / "golden/refusals_api.txt"
AUTO = AbstractMesh((2, 3), ("a", "b"), AxisType.Auto)  # since jaxlib 0.12 not the default
EXPLICIT = AbstractMesh((2, 3), ("a", "b"), AxisType.Explicit)
V, M = np.ones(3, np.float32), np.ones((2, 3), np.float32)
HALF, INT, CPX = V.astype(np.float16), np.arange(3, dtype=np.int32), V.astype(np.complex64)
LONG, WIDE = np.ones(6, np.float32), np.ones((6, 12), np.float32)
F3 = weft.ShapeDtypeStruct((3,), np.float32)

# In place of a function: too few and too many results, other shapes, dtypes and trees.
FUNCTIONS = {
    "none": lambda *a: None,
    "first": lambda *a: a[0],
    "all": lambda *a: a,
    "last": lambda *a: (a[-1],),
    "one": lambda *a: 1.0,
    "text": lambda *a: "text",
    "pair": lambda *a: (a[0], a[0]),
    "dict": lambda *a: {"a": a[0]},
    "longer": lambda *a: jnp.ones(7),
    "int": lambda *a: jnp.int32(1),
    "true": lambda *a: jnp.bool_(True),
    "complex": lambda *a: weft.tree.map(lambda x: x * 1j, a[0]),
    "no arguments": lambda: V,
    "3": 3,
    "None": None,
}
VALUES = {
    repr(x): x
    for x in (
        None, True, False, 0, 1, -1, 3, 7, 2.5, 1j, "a", "i", "x", (), (0,), (0, 1), (0, None),
        (1, 0), (0, 0), [0], [None, 1], {"a": 0}, ("a",), ["a", "b"], P(), P("a"), P("b", "a"),
        P("b"), P("z"), P(("a", "b")), P("a", "a"), P(None, "a"), P(unreduced={"a"}),
        P("b", unreduced={"a"}), P(reduced={"a"}), P("a", reduced={"b"}), P(unreduced={"z"}),
        P(P.UNCONSTRAINED, "b"), (P("a"), P("b")), (P("b"), P("b"), P()), (None, P("b")),
    )
} | {
    "f32[3]": V, "f32[2,3]": M, "f16[3]": HALF, "i32[3]": INT, "c64[3]": CPX, "i32": np.int32(1),
    "f32[0]": V[:0], "float0": np.zeros(3, weft.dtypes.float0), "function": lambda *a: a[0],
    "{a}": {"a"}, "{b}": {"b"}, "strings": np.array(["a"]), "struct": F3, "object": object,
}  # fmt: skip


def make_vjp_rule(fun, fwd, bwd, nondiff_argnums=(), x=V, y=V):
    f = weft.custom_vjp(fun, nondiff_argnums=nondiff_argnums)
    f.defvjp(fwd, bwd)
    return weft.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)


def make_jvp_rule(fun, rule, nondiff_argnums=(), x=V, y=V):
    f = weft.custom_jvp(fun, nondiff_argnums=nondiff_argnums)
    f.defjvp(rule)
    return weft.jvp(f, (x, y), (x, y))


def make_vmap_rule(fun, rule, x=M, y=V, in_axes=(0, None)):
    f = custom_vmap(fun)
    f.def_vmap(rule)
    return weft.vmap(f, in_axes)(x, y)


both = lambda x, y: x * y
total = lambda x, y: (x * y).sum()
step = lambda c, x: (c * x, c)
same = lambda x: x
going = lambda c: c.sum() < 3


def shard(
    f=both,
    mesh=AUTO,
    in_specs=(P("b"), P("b")),
    out_specs=P("b"),
    axis_names=(),
    check_vma=True,
    x=LONG,
    y=LONG,
):
    return shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names=axis_names,
        check_vma=check_vma,
    )(x, y)


def shard_explicit(f=both, in_specs=None, out_specs=P("b"), axis_names=(), x=P("b"), y=P("b")):
    with use_abstract_mesh(EXPLICIT):
        return shard_map(f, in_specs=in_specs, out_specs=out_specs, axis_names=axis_names)(
            lie(x), lie(y)
        )


def lie(spec, x=LONG):
    return reshard(x, NamedSharding(EXPLICIT, spec))


def over_explicit(f):
    def call(**given):
        with use_abstract_mesh(EXPLICIT):
            return f(**given)

    call.__signature__ = inspect.signature(f)
    return call


def copies(f):
    def call(**given):
        return weft.vmap(lambda x: f(x, **given), axis_name="i")(M)

    parameters = [*inspect.signature(f).parameters.values()][1:]
    call.__signature__ = inspect.Signature(parameters)
    return call


CALLS = {
    "vmap": lambda fun=both, in_axes=0, out_axes=0, axis_name="i", axis_size=None, spmd_axis_name=None, x=M, y=M:
        weft.vmap(fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name)(x, y),
    "grad": lambda fun=total, argnums=0, has_aux=False, holomorphic=False, allow_int=False, x=V, y=V:
        weft.grad(fun, argnums, has_aux, holomorphic, allow_int)(x, y),
    "value_and_grad": lambda fun=total, argnums=(0, 1), has_aux=False, x=V, y=V: weft.value_and_grad(fun, argnums, has_aux)(x, y),
    "jvp": lambda fun=both, primals=(V, V), tangents=(V, V), has_aux=False: weft.jvp(fun, primals, tangents, has_aux),
    "jvp of one": lambda fun=same, primal=V, tangent=V: weft.jvp(fun, (primal,), (tangent,)),
    "vjp": lambda fun=both, has_aux=False, x=V, y=V, ct=V: weft.vjp(fun, x, y, has_aux=has_aux)[1](ct),
    "linearize": lambda fun=both, has_aux=False, x=V, y=V, t=V: weft.linearize(fun, x, y, has_aux=has_aux)[1](t, t),
    "linear_transpose": lambda fun=same, x=V, ct=V: weft.linear_transpose(fun, x)(ct),
    "jacfwd": lambda fun=both, argnums=0, has_aux=False, holomorphic=False, x=V, y=V: weft.jacfwd(fun, argnums, has_aux, holomorphic)(x, y),
    "jacrev": lambda fun=both, argnums=0, has_aux=False, holomorphic=False, allow_int=False, x=V, y=V:
        weft.jacrev(fun, argnums, has_aux, holomorphic, allow_int)(x, y),
    "hessian": lambda fun=total, argnums=0, has_aux=False, x=V, y=V: weft.hessian(fun, argnums, has_aux)(x, y),
    "jit": lambda fun=both, static_argnums=None, static_argnames=None, donate_argnums=None, donate_argnames=None, inline=False, x=V, y=V:
        weft.jit(fun, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums, donate_argnames=donate_argnames, inline=inline)(x, y),
    "checkpoint": lambda fun=both, policy=None, prevent_cse=True, static_argnums=None, static_argnames=None, budget=None, x=V, y=V:
        weft.checkpoint(fun, policy=policy, prevent_cse=prevent_cse, static_argnums=static_argnums, static_argnames=static_argnames, budget=budget)(x, y),
    "checkpoint_name": lambda x=V, name="h": checkpoint_name(x, name),
    "scan": lambda f=step, init=V, xs=M, length=None, reverse=False, unroll=1: lax.scan(f, init, xs, length, reverse, unroll),
    "map": lambda f=same, xs=M, batch_size=None: lax.map(f, xs, batch_size=batch_size),
    "while_loop": lambda cond_fun=going, body_fun=same, init_val=V, max_steps=None, checkpoints=None:
        lax.while_loop(cond_fun, body_fun, init_val, max_steps=max_steps, checkpoints=checkpoints),
    "fori_loop": lambda lower=0, upper=3, body_fun=lambda i, c: c, init_val=V, unroll=None: lax.fori_loop(lower, upper, body_fun, init_val, unroll=unroll),
    "cond": lambda pred=True, true_fun=same, false_fun=same, x=V: lax.cond(pred, true_fun, false_fun, x),
    "cond of none": lambda pred=True, true_fun=lambda: V, false_fun=lambda: V: lax.cond(pred, true_fun, false_fun),
    "cond of five": lambda pred=True, x=V, true_fun=same, y=V, false_fun=same: lax.cond(pred, x, true_fun, y, false_fun),
    "switch": lambda index=1, first=same, second=same, x=V: lax.switch(index, [first, second], x),
    "switch of": lambda index=0, branches=[same]: lax.switch(index, branches, V),
    "associative_scan": lambda fn=both, elems=M, reverse=False, axis=0: lax.associative_scan(fn, elems, reverse, axis),
    "platform_dependent": lambda cpu=same, default=same, x=V: lax.platform_dependent(x, cpu=cpu, default=default),
    "custom_jvp": lambda fun=both, rule=lambda p, t: (p[0] * p[1], t[0]), nondiff_argnums=(), x=V, y=V: make_jvp_rule(fun, rule, nondiff_argnums, x, y),
    "defjvps": lambda first=lambda t, out, x, y: t, second=None, x=V, y=V: (lambda f: (f.defjvps(first, second), weft.jvp(f, (x, y), (x, y))))(weft.custom_jvp(both)),
    "custom_vjp": lambda fun=both, fwd=lambda x, y: (x * y, (x, y)), bwd=lambda kept, ct: (ct * kept[1], ct * kept[0]), nondiff_argnums=(), x=V, y=V:
        make_vjp_rule(fun, fwd, bwd, nondiff_argnums, x, y),
    "custom_vmap": lambda fun=both, rule=lambda n, b, x, y: (x * y, True), x=M, y=V, in_axes=(0, None): make_vmap_rule(fun, rule, x, y, in_axes),
    "custom_gradient": lambda fun=lambda x: (x * 2, lambda ct: ct * 3), x=V: weft.grad(lambda x: custom_gradient(fun)(x).sum())(x),
    "pullback": lambda rule=lambda ct: ct * 3, x=V: weft.grad(lambda x: custom_gradient(lambda x: (x * 2, rule))(x).sum())(x),
    "closure_convert": lambda fun=same, x=V: closure_convert(fun, x)[0](x),
    "linear_call": lambda fun=lambda r, x: x * r, fun_transpose=lambda r, ct: ct * r, residual_args=V, linear_args=V:
        weft.grad(lambda x: linear_call(fun, fun_transpose, residual_args, x).sum())(linear_args),
    "custom_linear_solve": lambda matvec=lambda v: 2 * v, b=V, solve=lambda f, b: b / 2, transpose_solve=lambda f, b: b / 2, symmetric=False, has_aux=False:
        weft.grad(lambda b: lax.custom_linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux).sum())(b),
    "custom_root": lambda f=lambda x: x**2 - 2, initial_guess=V, solve=lambda f, x: x, tangent_solve=lambda g, y: y, has_aux=False:
        lax.custom_root(f, initial_guess, solve, tangent_solve, has_aux),
    "composite": lambda decomposition=same, name="mine.f", version=1, x=V: lax.composite(decomposition, name, version)(x),
    "composite with": lambda scale=2.0: lax.composite(lambda x, *, scale: x, "mine.f")(V, scale=scale),
    "pure_callback": lambda callback=np.sin, result_shape_dtypes=F3, x=V, vmap_method=None: weft.pure_callback(callback, result_shape_dtypes, x, vmap_method=vmap_method),
    "pure_callback, mapped": lambda vmap_method="sequential": weft.vmap(lambda x: weft.pure_callback(np.sin, F3, x, vmap_method=vmap_method))(M),
    "io_callback": lambda callback=np.sin, result_shape_dtypes=F3, x=V, ordered=True: io_callback(callback, result_shape_dtypes, x, ordered=ordered),
    "debug.print": lambda fmt="{} {y}", x=V, y=V, ordered=False: debug.print(fmt, x, y=y, ordered=ordered),
    "debug.callback": lambda callback=np.sin, x=V, ordered=False: debug.callback(callback, x, ordered=ordered),
    "checkify": lambda f=both, errors=checkify.all_checks, x=V, y=V: checkify.checkify(f, errors)(x, y),
    "check": lambda pred=True, msg="bad {}", x=V: checkify.checkify(lambda: checkify.check(pred, msg, x))(),
    "named_call": lambda fun=same, name="n", x=V: weft.named_call(fun, name=name)(x),
    "eval_shape": lambda fun=both, x=V, y=V: weft.eval_shape(fun, x, y),
    "make_jaxpr": lambda fun=both, static_argnums=(), return_shape=False, x=V, y=V: weft.make_jaxpr(fun, static_argnums=static_argnums, return_shape=return_shape)(x, y),
    "ShapeDtypeStruct": lambda shape=(3,), dtype=np.float32, sharding=None, weak_type=False: weft.ShapeDtypeStruct(shape, dtype, sharding=sharding, weak_type=weak_type),
    "shard_map": shard,
    "shard_map over explicit axes": shard_explicit,
    "shard_map of specs over explicit axes": lambda in_specs=(P("b"), P("b")), out_specs=P("b"), axis_names=(), x=P("b"), y=P("b"):
        shard_explicit(both, in_specs, out_specs, axis_names, x, y),
    "shard_map of one": lambda spec=P("a"): shard_map(same, mesh=AUTO, in_specs=(spec,), out_specs=spec)(WIDE),
    "shard_map of some axes": lambda spec=P(("a", "b")), axis_names={"a"}: over_explicit(
        lambda: shard_map(same, out_specs=spec, axis_names=axis_names)(lie(spec)))(),
    "with_sharding_constraint over explicit axes": over_explicit(lambda spec=P("b"), to=P("b"): lax.with_sharding_constraint(lie(spec, WIDE), to)),
    "vmap over explicit axes": over_explicit(lambda fun=both, x=P("a"), y=P("a"), in_axes=0, out_axes=0, spmd_axis_name=None:
        weft.vmap(fun, in_axes, out_axes, spmd_axis_name=spmd_axis_name)(lie(x, WIDE), lie(y, WIDE))),
    "dot over explicit axes": over_explicit(lambda x=P("a"), y=P("b"), out_sharding=None: lax.dot_general(lie(x, WIDE), lie(y, WIDE), (((1,), (1,)), ((), ())), out_sharding=out_sharding)),
    "batched dot over explicit axes": over_explicit(lambda x=P("a"), y=P("a"), out_sharding=None, axis=0: weft.vmap(
        lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ())), out_sharding=out_sharding), (axis, axis))(lie(x, WIDE), lie(y, WIDE))),
    "sum over explicit axes": over_explicit(lambda x=P("a"), axis=0, out_sharding=None: weft.grad(lambda x: lax.reduce_sum(lax.reduce_sum(x, (axis,), out_sharding=out_sharding), (0,)))(lie(x, WIDE))),
    "batched sum over explicit axes": over_explicit(lambda x=P("a"), axis=1, in_axes=0, out_sharding=P(): weft.vmap(
        lambda x: lax.reduce_sum(x, (axis,), out_sharding=out_sharding), in_axes)(lie(x, np.ones((6, 6, 12), np.float32)))),
    "reshape over explicit axes": over_explicit(lambda x=P("a"), new_sizes=(72,), out_sharding=None: lax.reshape(lie(x, WIDE), new_sizes, out_sharding=out_sharding)),
    "batched reshape over explicit axes": over_explicit(lambda x=P("a"), axis=0, out_sharding=None: weft.vmap(lambda r: lax.reshape(r, (6, 2), out_sharding=out_sharding), axis)(lie(x, WIDE))),
    "broadcast over explicit axes": over_explicit(lambda x=P("a"), out_sharding=None, axis=0: weft.vmap(lambda r: lax.broadcast_in_dim(r, (2, 12), (1,), out_sharding=out_sharding), axis)(lie(x, WIDE))),
    "grad over explicit axes": over_explicit(lambda fun=lambda x, y: (x * y).sum(), x=P("a"), y=P("a"): weft.grad(fun, (0, 1))(lie(x, WIDE), lie(y, WIDE))),
    "scan over explicit axes": over_explicit(lambda init=P("b"), xs=P(None, "b"): lax.scan(lambda c, r: (c * r, r), lie(init), lie(xs, np.ones((2, 6), np.float32)))),
    "while over explicit axes": over_explicit(lambda init=P("b"), spec=P("b"): lax.while_loop(lambda c: c.sum() < 3, lambda c: reshard(c, spec), lie(init))),
    "cond over explicit axes": over_explicit(lambda x=P("b"), one=P("b"), other=P("b"): lax.cond(True, lambda x: reshard(x, one), lambda x: reshard(x, other), lie(x))),
    "gather over explicit axes": over_explicit(lambda x=P("a"), i=P(): lie(x, WIDE).at[lie(i, np.arange(6))].get()),
    "slice over explicit axes": over_explicit(lambda x=P("a"), start=0, size=6: lax.dynamic_slice(lie(x, WIDE), (start, 0), (size, 12))),
    "concatenate over explicit axes": over_explicit(lambda x=P("a"), y=P("a"), dimension=0: lax.concatenate([lie(x, WIDE), lie(y, WIDE)], dimension)),
    "with_sharding_constraint": lambda x=M, spec=P("a"), mesh=AUTO: lax.with_sharding_constraint(x, NamedSharding(mesh, spec)),
    "reshard": lambda x=M, spec=P("a"), mesh=EXPLICIT: reshard(x, NamedSharding(mesh, spec)),
    "AbstractMesh": lambda axis_sizes=(2, 3), axis_names=("a", "b"), axis_types=AxisType.Auto: AbstractMesh(axis_sizes, axis_names, AxisType.Auto if axis_types is None else axis_types),
    "NamedSharding": lambda mesh=AUTO, spec=P("a"): NamedSharding(mesh, spec).shard_shape((6, 6)),
    "P": lambda first="a", second=None, unreduced=frozenset(): P(first, second, unreduced=unreduced),
    "new_ref": lambda x=V: weft.new_ref(x)[...],
    "psum": copies(lambda x, axis_name="i", axis_index_groups=None: lax.psum(x, axis_name, axis_index_groups=axis_index_groups)),
    "all_gather": copies(lambda x, axis_name="i", axis=0, tiled=False: lax.all_gather(x, axis_name, axis=axis, tiled=tiled)),
    "all_to_all": copies(lambda x, axis_name="i", split_axis=0, concat_axis=0, tiled=False: lax.all_to_all(x, axis_name, split_axis, concat_axis, tiled=tiled)),
    "ppermute": copies(lambda x, axis_name="i", perm=((0, 1), (1, 0)): lax.ppermute(x, axis_name, perm)),
    "axis_index": copies(lambda x, axis_name="i": lax.axis_index(axis_name)),
}  # fmt: skip


def is_own_class(kind: type) -> bool:
    return kind.__module__.startswith("weft")


# What Python and NumPy say of the number of arguments, of an array as a flag, and of one as an index.
PLAIN = r"takes \w+ (positional )?arg|too many pos|truth value|only integer scalar arrays"


def outcome(call, **given) -> str:
    """The program that a call is, or its error, without addresses."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            text = str(weft.make_jaxpr(lambda: call(**given))())
        except Exception as error:
            text = type(error).__name__  # what others say is of their version
            if is_own_class(type(error)) or "; got " in str(error):
                text += f": {error}"
            elif is_own_file(traceback.extract_tb(error.__traceback__)[-1].filename):
                text += "" if re.search(PLAIN, str(error)) else " raised inside"
    text += "".join(f"\nWarning: {w.message}" for w in heard)
    assert not (wrong := [*find_wrong_options(text)]), wrong
    return re.sub(r"0x[0-9a-f]{6,}|(?<=test_refusals.py:)\d+", "0", text)


def outcomes_of(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the parameter, its value, and the error message or program."""
    call = CALLS[name]
    parameters = inspect.signature(call).parameters
    yield "", "", outcome(call)
    for key, parameter in parameters.items():
        tried = (
            FUNCTIONS
            if callable(parameter.default) and parameter.default is not np.float32
            else VALUES
        )
        for text, value in tried.items():
            if (key, text) != ("dtype", "'a'"):  # bytes to NumPy, and since its 2.5 nothing
                yield key, text, outcome(call, **{key: value})


def describe(name: str) -> list[str]:
    found: dict[str, list] = collections.defaultdict(list)
    for key, text, said in outcomes_of(name):
        found[key].append((text, " ".join(said.split("\n"))))
    lines = []
    for key, said in found.items():
        digest = zlib.crc32("\n".join(f"{a} {b}" for a, b in said).encode())
        told = collections.Counter(b.partition("; got ")[0] for _, b in said)
        told = {b: n for b, n in told.items() if not b.startswith("{") or not key}
        lines += [f"{key}: {len(said)} {digest:08x}", *(f"{n} {b}" for b, n in told.items())]
    return lines


@pytest.mark.parametrize("name", CALLS)
def test_what_is_said_of_arguments(name):
    told = describe(name)
    assert not [line for line in told if line.endswith("raised inside")], told
    assert told == read_blocks(FILE)[name], "if meant: python -m tests.api.test_refusals"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*[f"{key}={text}: {said}" for key, text, said in outcomes_of(sys.argv[1])], sep="\n")
    else:
        blocks = ["\n".join([f"== {name}", *describe(name), ""]) for name in CALLS]
        FILE.write_text("".join(blocks))
