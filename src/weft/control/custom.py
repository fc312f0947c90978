"""Functions that bring their own derivative: `custom_jvp_call`, `custom_vjp_call`.

Ordinary primitives whose parameters are flat functions, Python or IR. Pytrees, checks and the
decorators are in api/custom_rules.py; what the functions close over, in api/closures.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from weft import dtypes
from weft.control.call import Call
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr, Var
from weft.core.primitive import Axis, Body, Linear, Primitive, Zero, tangents_of
from weft.core.ref import AbstractRef, Ref, is_ref, write_error
from weft.core.source import own_lines
from weft.core.stage import close_jaxpr
from weft.core.trace import Tracer, current, run_once
from weft.errors import RefError
from weft.passes.dce import dce_jaxpr
from weft.passes.discharge import state_effects
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import add, stop_gradient_p
from weft.primitives.layout import batched_at_front, instantiate, reduce_sum, transpose
from weft.primitives.state import discharge_fwd_rule, run_on_values, writes_of_rule
from weft.transforms.batch import batch_jaxpr, batch_to_front, mapped_aval, unmapped_aval
from weft.transforms.check import CheckTrace, skip_checks
from weft.transforms.jvp import jvp, jvp_jaxpr
from weft.transforms.transpose import backward
from weft.util import insert_at, select_masked
from weft.watch.leaks import stage_function
from weft.xla.lower import lower_jaxpr


def batch_call(call: Callable, axis: Axis, dims: Sequence[int | None]) -> Callable:
    """A flat function mapped over `axis`, with the axis in front of every result."""
    if isinstance(call, Jaxpr):
        return batch_jaxpr(call, axis, tuple(dims), True)[0]
    return lambda *args: batch_to_front(call, args, dims, axis)


def batch_sparse(
    fun: Callable, args: Sequence[Any], dims: Sequence[int | None], axis: Axis
) -> list:
    """Do as `batch_to_front` does, for a function some of whose arguments and results are Zero."""
    given = [i for i, x in enumerate(args) if type(x) is not Zero]
    outs: list = []

    def values(*xs: Any) -> list:
        elements = dict(zip(given, xs, strict=True))
        outs[:] = fun(*[elements[i] if i in elements else zeros[i] for i in range(len(args))])
        return [y for y in outs if type(y) is not Zero]

    zeros = {
        i: x if d is None else Zero(mapped_aval(x.aval, d))
        for i, (x, d) in enumerate(zip(args, dims, strict=True))
        if type(x) is Zero
    }
    mapped = iter(batch_to_front(values, [args[i] for i in given], [dims[i] for i in given], axis))
    return [
        Zero(unmapped_aval(y.aval, axis.size, 0)) if type(y) is Zero else next(mapped) for y in outs
    ]


def look_into(trace: CheckTrace, call: Callable, args: Sequence[Any]) -> list:
    """Call a flat function to find what goes wrong in it. Derivatives do not go through it."""
    moves = [isinstance(x, Tracer) and dtypes.is_inexact(x.dtype) for x in args]
    values = [stop_gradient_p.apply(x)[0] if m else x for x, m in zip(args, moves, strict=True)]
    return run_once(trace, call, values, mark="checking")


class CustomCall(Call):
    """A family: call the flat function `call_jaxpr`, whose derivative the other params give.

    The first `num_consts` operands are values that the function closed over, hoisted by the call or
    when it was staged; the derivative rules do not see them. Where references are discharged, the
    last `num_held` of these operands are the values of references that the function writes, and so
    are its last results. A rule does not write them, so that they stay unchanged. The `num_stored`
    results before them are the values of references that the rules are given as well.
    """

    program = "call_jaxpr"
    partial_eval = None  # type: ignore[assignment]

    def apply(self, *args, **params):
        trace = current.trace
        if trace.parent is not None and any(type(x) is Ref and x.trace is trace for x in args):
            # made by the function that is transformed: the rules run outside of its trace
            args, params = self.staged(args, params)
            return run_on_values(self, args, params, concrete=False)
        return super().apply(*args, **params)

    def bodies(self, params):
        call = params[self.program]
        if not isinstance(call, Jaxpr):
            return [Body(None)]
        return [Body(call, self.program, Runs.ONCE, range(len(call.invars)), inlines=True)]

    def impl(self, *args, **params):
        return params[self.program](*args)

    def run_series(self, trace, args, params):
        return None

    def staged(self, args, params):
        call = params["call_jaxpr"]
        if isinstance(call, Jaxpr):
            return args, params
        jaxpr, consts = stage_function(call, [typeof(x) for x in args], params["name"])
        count = len(consts) + params["num_consts"]
        return [*consts, *args], {**params, "call_jaxpr": close_jaxpr(jaxpr), "num_consts": count}

    def discharge(self, params, refs, written, verb):
        n, held = params["num_consts"], num_held(params)
        own = [i for i in written if i < n]
        shared = [i for i in written if i >= n]  # with the rules
        handed = [i for i in verb.given if i >= n]
        params = self.discharge_rules(
            params, refs[n:], [i - n for i in shared], [i - n for i in handed]
        )
        avals = params["call_jaxpr"].in_avals
        call, _ = verb(params["call_jaxpr"], range(len(refs)), written, False)
        kept = [i for i in range(n - held) if i not in own]
        order = [*kept, *range(n - held, n), *own, *range(n, len(refs)), *[~i for i in handed]]
        count = len(call.outvars) - len(written)
        last, end = count - held, count + len(own)
        results = [*range(last), *range(end, len(call.outvars)), *range(last, end)]
        invars = [call.invars[i] if i >= 0 else Var(avals[~i]) for i in order]
        outvars = [call.outvars[k] for k in results]
        call = call.replace(invars=invars, outvars=outvars)
        if own:
            params = {**params, "num_held": held + len(own)}
        places = [*range(count), *[~i for i in own], *[~i for i in shared]]
        return {**params, "call_jaxpr": call}, order, [places[k] for k in results]

    def discharge_rules(
        self,
        params: dict,
        refs: Sequence[Hashable | None],
        written: Sequence[int],
        handed: Sequence[int],
    ) -> dict:
        """The parameters where rules are given values of `refs`.

        The function, or its rule, writes those `written`. Those `handed` are its last operands.
        """
        if any(r is not None for r in refs):
            raise RefError(
                f"{self.name}: a rule of forward mode must not use references that the function "
                f"uses as well, in a loop or a branch that is differentiated; got {params['name']}."
                " Hint: pass it r[...], and return what is to be written."
            )
        return params

    def transpose(self, cts, *args, call_jaxpr, **params):
        return backward(call_jaxpr, (), args, cts)

    def dce(self, eqn, live):
        own = len(live) - num_held(eqn.params) - num_stored(eqn.params)
        live = [*live[:own], *[True] * (len(live) - own)]  # what references hold is kept
        if all(live):
            return eqn
        params = dict(eqn.params)
        params["call_jaxpr"], _ = dce_jaxpr(params["call_jaxpr"], live)
        outvars, live = select_masked(eqn.outvars, live), live[:own]
        if params["jvp"] is not None:
            rule = params["jvp"]
            params["jvp"] = lambda *given: tuple(select_masked(xs, live) for xs in rule(*given))
        if "fwd" in params:
            params["fwd"] = keep_live_fwd(params["fwd"], live)
        return eqn.replace(params=params, outvars=outvars)

    def checked(self, trace, args, params):
        outs = look_into(trace, params["call_jaxpr"], args)
        if not any(isinstance(x, Tracer) for x in args):
            return outs  # nothing asks for derivatives
        functions = {k: skip_checks(v) for k, v in params.items() if callable(v)}
        return self.apply(*args, **{**params, **functions})

    def pretty_params(self, params):
        shown = {k: v for k, v in params.items() if v is not None and k != "optimize_remat"}
        return dict(sorted(shown.items(), key=lambda kv: kv[0] != "name"))

    def check_consts(self, primals: Any, tangents: Any, params: dict) -> None:
        """Raise where a closed-over value moves the result: the rules say nothing of it."""
        n = params["num_consts"]
        if all(type(t) is Zero for t in tangents[:n]):
            return
        call = params["call_jaxpr"]
        if isinstance(call, Jaxpr):
            moved = tuple(i < n and type(t) is not Zero for i, t in enumerate(tangents))
            moves = any(jvp_jaxpr(call, moved)[1])
        else:
            _, dots = jvp(lambda *cs: call(*cs, *primals[n:]), primals[:n], tangents[:n])
            moves = not all(type(t) is Zero for t in dots)
        if moves:
            closed = next(typeof(t) for t in tangents[:n] if type(t) is not Zero)
            raise TypeError(
                f"{self.name}: {params['name']} must not close over values that are "
                f"differentiated; got a closed-over {closed}. Hint: pass it as an argument, "
                "of those that are not in nondiff_argnums."
            )


def num_held(params: dict) -> int:
    """Return the number of references whose values a call takes and gives."""
    return params.get("num_held", 0)


def num_stored(params: dict) -> int:
    """Return the number of results that references hold which the rules are given."""
    return params.get("num_stored", 0)


def keep_live_fwd(fwd: Callable, live: Sequence[bool]) -> Callable:
    """A forward rule for a call some of whose results are used."""

    def of_live(primals: Sequence, perturbed: Sequence[bool]) -> tuple[list, list, Callable]:
        outs, residuals, pull = fwd(primals, perturbed)
        dead = [None if keep else Zero(typeof(x).to_tangent()) for x, keep in zip(outs, live)]

        def pull_live(held: Sequence, cts: Sequence) -> list:
            given = iter(cts)
            return pull(held, [next(given) if z is None else z for z in dead])

        kept = [*select_masked(outs[: len(live)], live), *outs[len(live) :]]
        return kept, residuals, pull_live

    return of_live


class CustomJVP(CustomCall):
    """Call a function with the derivative that `jvp` computes.

    jvp(primals, tangents) -> (outs, tangents), flat lists. A tangent may be Zero in the result and,
    with `symbolic_zeros`, in the arguments.
    """

    name = "custom_jvp_call"

    def staged(self, args, params):
        args, params = super().staged(args, params)
        if params["call_jaxpr"].effects and state_effects(params["call_jaxpr"]):
            raise RefError(
                f"custom_jvp: a function with a forward rule must be pure; got {params['name']}, "
                "which reads or writes a reference from outside. Hint: pass r[...] as an argument, "
                "or make the reference in the function."
            )
        return args, params

    def jvp(self, primals, tangents, **params):
        self.check_consts(primals, tangents, params)
        n = params["num_consts"]
        dots = tangents[n:] if params["symbolic_zeros"] else [*map(instantiate, tangents[n:])]
        held = slice(n - num_held(params), n)
        with own_lines():
            outs, dots = params["jvp"](primals[n:], dots)
        return [*outs, *primals[held]], [*dots, *tangents[held]]

    def batch(self, axis, args, dims, **params):
        params["jvp"] = batch_jvp_rule(params["jvp"], axis, dims[params["num_consts"] :])
        params["call_jaxpr"] = batch_call(params["call_jaxpr"], axis, dims)
        outs = self.apply(*args, **params)
        return outs, [0] * len(outs)


def batch_jvp_rule(rule: Callable, axis: Axis, dims: Sequence[int | None]) -> Callable:
    """Map a rule, (primals, tangents) -> (outs, tangents); the primals have axes `dims`."""
    n = len(dims)

    def flat(*xs: Any) -> list:
        outs, dots = rule(xs[:n], xs[n:])
        return [*outs, *dots]

    def mapped(primals: Sequence, tangents: Sequence) -> tuple[list, list]:
        both = batch_sparse(flat, [*primals, *tangents], [*dims, *dims], axis)
        half = len(both) // 2
        return both[:half], both[half:]

    mapped.__name__ = getattr(rule, "__name__", "jvp")
    return mapped


class CustomVJP(CustomCall):
    """Call a function with the reverse derivative that `fwd` computes.

    fwd(primals, perturbed) -> (outs, residuals, pull), the first two flat lists; pull(residuals,
    cts) -> cotangents of the primals. A result may be Zero, and a ct too if `symbolic_zeros`.
    `jvp`, as in CustomJVP, is for forward mode; it may be None.
    """

    name = "custom_vjp_call"

    def read_params(self, params, avals, out_avals):
        return {"jvp": None, "optimize_remat": False, **params}

    def run_series(self, trace, args, params):
        return None if params["jvp"] is not None else params[self.program](*args)

    def jvp(self, primals, tangents, **params):
        self.check_consts(primals, tangents, params)
        n = params["num_consts"]
        moves = [type(t) is not Zero and not is_float0(t) for t in tangents[n:]]
        with own_lines():
            if params["optimize_remat"]:
                outs, residuals, pull = forward_for_remat(primals, moves, params)
            else:
                outs, residuals, pull = params["fwd"](primals[n:], moves)
        own = len(outs) - num_stored(params)
        outs, stored = outs[:own], outs[own:]
        out_avals = [typeof(x).to_tangent() for x in outs]
        count, rule = len(residuals), None
        if params["jvp"] is not None:
            residuals = [*residuals, *primals[n:]]
            rule = select_pushforward(params["jvp"], count, moves)
        moved = iter(
            custom_linear_p.apply(
                *residuals,
                *[t for t, m in zip(tangents[n:], moves, strict=True) if m],
                name=params["name"],
                bwd=select_pullback(pull, count, moves, out_avals),
                jvp=rule,
                num_residuals=len(residuals),
                out_avals=tuple(a for a in out_avals if a.dtype != dtypes.float0),
                symbolic_zeros=params["symbolic_zeros"],
            )
        )
        dots = [Zero(a) if a.dtype == dtypes.float0 else next(moved) for a in out_avals]
        dots += [Zero(typeof(x).to_tangent()) for x in stored]
        held = slice(n - num_held(params), n)
        return [*outs, *stored, *primals[held]], [*dots, *tangents[held]]

    def discharge_rules(self, params, refs, written, handed):
        if params["jvp"] is not None or all(r is None for r in refs):
            return super().discharge_rules(params, refs, written, handed)
        fwd = discharge_fwd_rule(params["fwd"], refs, written, handed, params["name"])
        return {**params, "fwd": fwd, "num_stored": num_stored(params) + len(written)}

    def rule_writes(self, params, avals=None):
        """The primals that are references which the rule writes to; `avals` are their types."""
        call, fwd = params["call_jaxpr"], params["fwd"]
        own = avals or call.in_avals[params["num_consts"] :]
        if params["jvp"] is not None or AbstractRef not in map(type, own):
            return ()
        memo = call.memo if isinstance(call, Jaxpr) else {}
        key = ("rule_writes", fwd)
        if key not in memo:
            memo[key] = writes_of_rule(fwd, own, params["name"])
        return memo[key]

    def batch(self, axis, args, dims, **params):
        outs = self.apply(*args, **self.batch_params(axis, dims, params))
        return outs, [0] * len(outs)

    def batch_params(self, axis: Axis, dims: Sequence[int | None], params: dict) -> dict:
        """The parameters of this call mapped over `axis`."""
        own = dims[params["num_consts"] :]
        rule = params["jvp"]
        return {
            **params,
            "call_jaxpr": batch_call(params["call_jaxpr"], axis, dims),
            "fwd": batch_fwd_rule(params["fwd"], axis, own, lambda a: self.rule_writes(params, a)),
            "jvp": None if rule is None else batch_jvp_rule(rule, axis, own),
        }


def batch_fwd_rule(
    fwd: Callable, axis: Axis, dims: Sequence[int | None], writes: Callable[[list], Sequence[int]]
) -> Callable:
    """Return a forward rule mapped over `axis`; the primals have axes `dims`.

    `writes` takes the types of primals, and returns those that are references which the rule writes
    to. They must be mapped.
    """

    def mapped(primals: Sequence, perturbed: Sequence[bool]) -> tuple[list, list, Callable]:
        if any(d is None and is_ref(x) for x, d in zip(primals, dims, strict=True)):
            pairs = zip(map(typeof, primals), dims, strict=True)
            for i in writes([a if d is None else mapped_aval(a, d) for a, d in pairs]):
                if dims[i] is None:
                    raise write_error(primals[i].aval, axis)
        found: list = []

        def flat(*xs: Any) -> list:
            outs, residuals, pull = fwd(xs, perturbed)
            refs = places_of_refs(residuals, xs)
            found[:] = len(outs), pull, refs
            return [*outs, *[r for r in residuals if not is_ref(r)]]

        both = batch_to_front(flat, primals, dims, axis)
        count, pull, refs = found
        residuals = insert_at(both[count:], {k: primals[i] for k, i in refs.items()})
        held = {k: dims[i] for k, i in refs.items()}
        return both[:count], residuals, batch_pull_rule(pull, axis, dims, held)

    mapped.__name__ = getattr(fwd, "__name__", "fwd")
    return mapped


def places_of_refs(residuals: Sequence, primals: Sequence) -> dict[int, int]:
    """Return which residuals are references, and which primals they are."""
    places = {id(x): i for i, x in enumerate(primals)}
    return {k: places[id(r)] for k, r in enumerate(residuals) if is_ref(r)}


def batch_pull_rule(
    pull: Callable, axis: Axis, dims: Sequence[int | None], refs: dict[int, int | None]
) -> Callable:
    """Return a pullback mapped over `axis`. All its operands but `refs` have the axis in front.

    `dims` are the axes of the primals. The cotangent of an unmapped primal is summed over the axis.
    `refs` has the axes of the residuals that are references.
    """

    def mapped(residuals: Sequence, cts: Sequence) -> list:
        n = len(residuals)
        operands = [*residuals, *cts]
        flat = lambda *xs: pull(xs[:n], xs[n:])
        fronts = [refs.get(i, 0) for i in range(len(operands))]
        grads = batch_sparse(flat, operands, fronts, axis)
        return [
            unbatch_ct(g) if d is None else move_ct_axis(g, d)
            for g, d in zip(grads, dims, strict=True)
        ]

    return mapped


def unbatch_ct(ct: Any) -> Any:
    """The sum of a cotangent over its front axis."""
    return Zero(mapped_aval(ct.aval, 0)) if type(ct) is Zero else reduce_sum(ct, (0,))


def move_ct_axis(ct: Any, dim: int) -> Any:
    """A cotangent with its front axis moved to `dim`."""
    if type(ct) is Zero:
        return Zero(unmapped_aval(mapped_aval(ct.aval, 0), ct.aval.shape[0], dim))
    return transpose(ct, (*range(1, dim + 1), 0, *range(dim + 1, typeof(ct).ndim)))


def select_pullback(
    pull: Callable, count: int, moves: list[bool], out_avals: list[ShapedArray]
) -> Callable:
    """`pull`, on `count` residuals, for the primals that move and outputs that are not float0."""

    def of_moving(residuals: Sequence, cts: Sequence) -> list:
        given = iter(cts)
        whole = [Zero(a) if a.dtype == dtypes.float0 else next(given) for a in out_avals]
        grads = pull(residuals[:count], whole)
        return [g for g, m in zip(grads, moves, strict=True) if m]

    return of_moving


def select_pushforward(rule: Callable, count: int, moves: list[bool]) -> Callable:
    """The tangents that a jvp rule gives; the primals are the residuals after the first `count`."""

    def of_moving(residuals: Sequence, tangents: Sequence) -> list:
        primals = residuals[count:]
        _, dots = rule(primals, tangents_of(primals, tangents, moves))
        return [instantiate(t) for t in dots if not is_float0(t)]

    return of_moving


class CustomLinear(Primitive):
    """A linear map of the operands after `num_residuals`, known by its transpose, `bwd`.

    bwd(residuals, cts) -> cts of the linear operands; jvp(residuals, linear) -> outs is the map
    itself, None for a custom_vjp function that has no forward rule.
    """

    name = "custom_linear"
    memoize_type = False
    multiple_results = True

    def abstract_eval(self, *avals, out_avals, **params):
        return list(out_avals)

    def impl(self, *args, **params):
        n = params["num_residuals"]
        if params["jvp"] is None:
            name = params["name"]
            raise TypeError(
                f"jvp: a custom_vjp function has no forward-mode derivative; got {name}. "
                f"Hint: give it one with {name}.defjvp(rule), or use reverse mode (grad, vjp)."
            )
        return params["jvp"](args[:n], args[n:])

    def lower(self, hlo, *values, **params):
        avals = [v.aval for v in values]
        return lower_jaxpr(hlo, stage_whole(lambda *xs: self.impl(*xs, **params), avals), values)

    def jvp(self, primals, tangents, **params):
        n = params["num_residuals"]
        parts = []  # of the tangent: from the linear operands, and from the residuals
        if not all(type(t) is Zero for t in tangents[n:]):
            parts.append(self.apply(*primals[:n], *map(instantiate, tangents[n:]), **params))
        if not all(type(t) is Zero for t in tangents[:n]):
            of_residuals = lambda *residuals: self.impl(*residuals, *primals[n:], **params)
            parts.append(jvp(of_residuals, primals[:n], tangents[:n])[1])
        dots = parts[0] if len(parts) == 1 else [*map(add_tangents, *parts)]
        return self.apply(*primals, **params), dots

    def transpose(self, cts, *args, **params):
        n, bwd = params["num_residuals"], params["bwd"]
        if params["jvp"] is None or params["symbolic_zeros"]:
            with own_lines():
                grads = bwd(args[:n], cts if params["symbolic_zeros"] else [*map(instantiate, cts)])
        else:  # a map again, whose transpose is this one
            back = lambda residuals, given: [*map(instantiate, bwd(residuals, given))]
            turned = {**params, "bwd": params["jvp"], "jvp": back}
            turned["out_avals"] = tuple(typeof(x) for x in args[n:])
            grads = self.apply(*args[:n], *map(instantiate, cts), **turned)
        linear = zip(grads, args[n:], strict=True)
        return [*[None] * n, *[g if type(x) is Linear else None for g, x in linear]]

    def batch(self, axis, args, dims, **params):
        n, rule = params["num_residuals"], params["jvp"]
        residuals = [
            x if is_ref(x) else batched_at_front(x, d, axis.size)
            for x, d in zip(args[:n], dims[:n], strict=True)
        ]
        refs = {i: dims[i] for i, x in enumerate(residuals) if is_ref(x)}
        params["bwd"] = batch_pull_rule(params["bwd"], axis, dims[n:], refs)
        fronts = [refs.get(i, 0) for i in range(n)]
        if rule is not None:
            params["jvp"] = lambda rs, ts: batch_to_front(
                lambda *xs: rule(xs[:n], xs[n:]), [*rs, *ts], [*fronts, *dims[n:]], axis
            )
        params["out_avals"] = tuple(unmapped_aval(a, axis.size, 0) for a in params["out_avals"])
        outs = self.apply(*residuals, *args[n:], **params)
        return outs, [0] * len(outs)

    def pretty_params(self, params):
        return {k: v for k, v in params.items() if v is not None}


class RematOpt(CustomVJP):
    """Call the forward rule of a custom_vjp function: the results of the call, then residuals.

    If no residual is needed, as in the forward pass of `checkpoint`, the call replaces the rule: it
    costs less, and an opaque rule cannot be pruned. `fwd_jaxpr` is the flat rule. It has
    `num_fwd_consts` hoisted operands in front of the call's operands.
    """

    name = "remat_opt"
    program = "fwd_jaxpr"

    def staged(self, args, params):
        if isinstance(params["fwd_jaxpr"], Jaxpr):
            return args, params
        avals = [typeof(x) for x in args]
        fwd, consts = stage_function(params["fwd_jaxpr"], avals, params["name"])
        held, params = super().staged(args, params)
        unused = [Var(typeof(x)) for x in held[: len(held) - len(args)]]
        whole = fwd.replace(constvars=[], invars=[*fwd.constvars, *unused, *fwd.invars])
        params = {**params, "fwd_jaxpr": whole, "num_fwd_consts": len(consts)}
        return [*consts, *held], params

    def checked(self, trace, args, params):
        return run_once(trace, params["fwd_jaxpr"], args, mark="checking")

    def jvp(self, primals, tangents, *, fwd_jaxpr, **params):
        return jvp(fwd_jaxpr, primals, tangents)

    def batch_params(self, axis, dims, params):
        call = super().batch_params(axis, dims[params["num_fwd_consts"] :], params)
        return {**call, "fwd_jaxpr": batch_call(params["fwd_jaxpr"], axis, dims)}

    def dce(self, eqn, live):
        call = dict(eqn.params)
        n, _ = call.pop("num_fwd_consts"), call.pop("fwd_jaxpr")
        count = len(call["call_jaxpr"].outvars)
        if True in live[count:]:
            return eqn
        outvars = eqn.outvars[:count]
        return eqn.replace(
            primitive=custom_vjp_p, invars=eqn.invars[n:], outvars=outvars, params=call
        )


def forward_for_remat(
    primals: Sequence, moves: Sequence[bool], params: dict
) -> tuple[list, list, Callable]:
    """Return the results of the forward rule in a form that `checkpoint` can leave out."""
    n = params["num_consts"]
    found: list = []

    def flat(*xs: Any) -> list:
        outs, residuals, pull = params["fwd"](xs[n:], moves)
        found[:] = len(outs), pull, places_of_refs(residuals, xs)
        return [*outs, *xs[n - held : n], *[r for r in residuals if not is_ref(r)]]

    held = num_held(params)
    both = remat_opt_p.apply(*primals, fwd_jaxpr=flat, num_fwd_consts=0, **params)
    count, pull, refs = found
    residuals = insert_at(both[count + held :], {k: primals[i] for k, i in refs.items()})
    return both[:count], residuals, pull


def add_tangents(s: Any, t: Any) -> Any:
    """The sum of two tangents, each maybe Zero."""
    if type(s) is Zero or type(t) is Zero:
        return t if type(s) is Zero else s
    return add(s, t)


def is_float0(t: Any) -> bool:
    """Return True if a tangent or cotangent, maybe Zero, belongs to a discrete value."""
    return (t.aval if type(t) is Zero else typeof(t)).dtype == dtypes.float0


custom_jvp_p = CustomJVP()
custom_vjp_p = CustomVJP()
custom_linear_p = CustomLinear()
remat_opt_p = RematOpt()
