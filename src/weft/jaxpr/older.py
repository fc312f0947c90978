"""The forms that equations had in documents of 2020, and have in today's JAX, as weft's.

All are changes of the tree: names of primitives and parameters, and operands put in another order.
"""

from __future__ import annotations

from typing import Any

from weft.jaxpr.syntax import Atom, Binder, Equation, Program, Word

_RENAMED = {"add_any": "add", "pjit": "jit", "remat2": "checkpoint", "xla_call": "jit"}
# Parameters that do not affect the results.
_DROPPED = {
    "cond": ("linear",),
    "jit": (
        "backend", "device", "donated_invars", "ctx_mesh", "in_layouts", "in_shardings", "inline",
        "keep_unused", "out_layouts", "out_shardings", "resource_env",
    ),
    "scan": ("forward",),
    "xla_pmap": ("donated_invars", "out_axes"),
}  # fmt: skip


def modernize(eqn: Equation) -> list[Equation]:
    """The equation as weft writes it: the last of those given."""
    before = []
    name = _RENAMED.get(eqn.primitive, eqn.primitive)
    params = dict(eqn.params)
    if name == "jit" and "call_jaxpr" in params:
        params["jaxpr"] = params.pop("call_jaxpr")
    if name == "cond" and {"true_jaxpr", "false_jaxpr"} <= params.keys():
        before, eqn = choose_by_number(eqn)
        params["branches"] = join_branches(params)
    if name == "scan":
        eqn, params = fill_scan(eqn, params)
    if name == "shard_map" and "newly_manual_axes" in params:
        params["manual_axes"] = params.pop("newly_manual_axes")
    if name.startswith("reduce_"):
        params.pop("input_shape", None)
    if name == "xla_pmap" and "axis_name" in params:
        params.setdefault("devices", (None, 0))
    params = {k: v for k, v in params.items() if k not in _DROPPED.get(name, ())}
    return [*before, eqn._replace(primitive=name, params=params)]


def choose_by_number(eqn: Equation) -> tuple[list[Equation], Equation]:
    """A cond by a truth value as one by a number, and the equation that makes it."""
    pos, chosen = eqn.args[0].pos, f"{eqn.pos}.index"  # no name that a text has
    params = {"new_dtype": (Word("int32", pos), pos), "weak_type": (False, pos)}
    number = Equation(
        [Binder(chosen, None, pos)], "convert_element_type", params, eqn.args[:1], pos
    )
    return [number], eqn._replace(args=[Atom(Word(chosen, pos), None, pos), *eqn.args[1:]])


def join_branches(params: dict[str, Any]) -> tuple[Any, int]:
    """The branches of `cond[true_jaxpr false_jaxpr] pred x y`, such that both take all operands."""
    yes, pos = params.pop("true_jaxpr")
    no, _ = params.pop("false_jaxpr")
    skip = lambda program: [Binder("_", b.type, b.pos) for b in program.params]
    first = no._replace(params=[*skip(yes), *no.params])
    return (first, yes._replace(params=[*yes.params, *skip(no)])), pos


def fill_scan(eqn: Equation, params: dict[str, Any]) -> tuple[Equation, dict[str, Any]]:
    """The parameters that scan did not have, and no operands that were not needed."""
    forward, pos = params.get("forward", (True, eqn.pos))
    for key, value in (("reverse", not forward), ("unroll", 1), ("_split_transpose", False)):
        params.setdefault(key, (value, pos))
    body = params["jaxpr"][0]
    # an operand that is not needed is `*`
    kept = [type(a.value) is not Word or a.value.text != "*" for a in eqn.args]
    if type(body) is Program and not all(kept):
        select = lambda xs: [x for x, k in zip(xs, kept, strict=True) if k]
        params["jaxpr"] = body._replace(params=select(body.params)), pos
        linear, at = params["linear"]
        params["linear"] = tuple(select(linear)), at
        eqn = eqn._replace(args=select(eqn.args))
    return eqn, params
