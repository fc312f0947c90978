"""Functions that bring their own derivative: `custom_jvp_call`, `custom_vjp_call`, `stop_gradient`.

Ordinary primitives whose parameters are flat functions, Python or IR. Pytrees, checks and the
decorators users know are in custom_derivatives.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Linear, Primitive, Zero
from weft.core.stage import stage_closed
from weft.core.trace import current
from weft.primitives.elementwise import Elementwise
from weft.primitives.layout import batched_at_front, instantiate, reduce_sum, transpose, zeros
from weft.transforms.batch import Axis, batch_jaxpr, batch_to_front
from weft.transforms.transpose import backward
from weft.xla.lower import lower_jaxpr

stop_gradient_p = Elementwise(
    "stop_gradient", lambda hlo, aval, x: x, takes="any", doc="x, whose derivative is zero."
)


def batched_call(call: Callable, axis: Axis, dims: list) -> Callable:
    """A flat function mapped over `axis`, with the axis in front of every result."""
    if isinstance(call, Jaxpr):
        return batch_jaxpr(call, axis, tuple(dims), True)[0]
    return lambda *args: batch_to_front(call, args, dims, axis)


class CustomCall(Primitive):
    """A family: call the flat function `call_jaxpr`, whose derivative the other params give.

    The first `num_consts` operands are values that the function closed over, hoisted when it was
    staged; the derivative rules do not see them.
    """

    memoize_type = False

    def impl(self, *args, call_jaxpr, **params):
        return call_jaxpr(*args)

    def staged(self, args, params):
        call = params["call_jaxpr"]
        if isinstance(call, Jaxpr):
            return args, params
        jaxpr, consts = stage_closed(call, [typeof(x) for x in args], params["name"])
        return [*consts, *args], {**params, "call_jaxpr": jaxpr, "num_consts": len(consts)}

    def abstract_eval(self, *avals, call_jaxpr, **params):
        return call_jaxpr.out_avals

    def lower(self, hlo, *args, call_jaxpr, **params):
        return lower_jaxpr(hlo, call_jaxpr, args)

    def transpose(self, cts, *args, call_jaxpr, **params):
        return backward(call_jaxpr, (), args, cts)

    def inlined(self, eqn):
        return eqn.params["call_jaxpr"]

    def pretty_params(self, params):
        return dict(sorted(params.items(), key=lambda kv: kv[0] != "name"))

    def check_consts(self, tangents: Any, params: dict) -> None:
        """Raise where a closed-over value moves: the rule says nothing of it."""
        for t in tangents[: params["num_consts"]]:
            if type(t) is not Zero:
                raise TypeError(
                    f"{self.name}: {params['name']} must not close over values that are "
                    f"differentiated; got a closed-over {typeof(t)}. Hint: pass it as an argument."
                )


class CustomJVP(CustomCall):
    """Call a function whose derivative is whatever `jvp(*primals, *tangents)` computes."""

    name = "custom_jvp_call"

    def jvp(self, primals, tangents, **params):
        self.check_consts(tangents, params)
        n = params["num_consts"]
        current.source = None  # what the user's rule writes has lines of its own
        outs = params["jvp"](*primals[n:], *map(instantiate, tangents[n:]))
        half = len(outs) // 2
        return outs[:half], [as_tangent(t) for t in outs[half:]]

    def batch(self, axis, args, dims, **params):
        n = params["num_consts"]
        rule, own = params["jvp"], dims[n:]
        params["call_jaxpr"] = batched_call(params["call_jaxpr"], axis, dims)
        params["jvp"] = lambda *xs: batch_to_front(rule, xs, [*own, *own], axis)
        outs = self.bind(*args, **params)
        return outs, [0] * len(outs)


def as_tangent(t: Any) -> Any:
    """A tangent from a rule: Zero where it is float0."""
    aval = typeof(t)
    return Zero(aval) if aval.dtype == dtypes.float0 else t


class CustomVJP(CustomCall):
    """Call a function whose pullback is `bwd`, on the residuals that `fwd` leaves.

    fwd(*primals) -> (outs, residuals), flat lists; bwd(*residuals, *cts) -> cotangents of primals.
    """

    name = "custom_vjp_call"

    def jvp(self, primals, tangents, **params):
        self.check_consts(tangents, params)
        n = params["num_consts"]
        current.source = None  # what the user's rule writes has lines of its own
        outs, residuals = params["fwd"](*primals[n:])
        moves = [dtypes.is_inexact(typeof(x).dtype) for x in primals[n:]]
        out_avals = [typeof(x).to_tangent() for x in outs]
        dots = iter(
            custom_linear_p.bind(
                *residuals,
                *[instantiate(t) for t, m in zip(tangents[n:], moves, strict=True) if m],
                name=params["name"],
                bwd=pullback_of_moving(params["bwd"], len(residuals), moves, out_avals),
                num_residuals=len(residuals),
                out_avals=tuple(a for a in out_avals if a.dtype != dtypes.float0),
            )
        )
        return outs, [Zero(a) if a.dtype == dtypes.float0 else next(dots) for a in out_avals]

    def batch(self, axis, args, dims, **params):
        fwd, bwd, own = params["fwd"], params["bwd"], dims[params["num_consts"] :]
        params["call_jaxpr"] = batched_call(params["call_jaxpr"], axis, dims)

        def batched_fwd(*xs: Any) -> tuple[list, list]:
            counts: list[int] = []

            def flat(*ys: Any) -> list:
                outs, residuals = fwd(*ys)
                counts.append(len(outs))
                return [*outs, *residuals]

            both = batch_to_front(flat, xs, own, axis)
            return both[: counts[0]], both[counts[0] :]

        params["fwd"] = batched_fwd
        params["bwd"] = batched_bwd(bwd, axis, own)
        outs = self.bind(*args, **params)
        return outs, [0] * len(outs)


def pullback_of_moving(
    bwd: Callable, n: int, moves: list[bool], out_avals: list[ShapedArray]
) -> Callable:
    """`bwd` with n residuals for the primals and outputs that are not float0 alone."""

    def pull(*operands: Any) -> list:
        given = iter(operands[n:])
        cts = [zeros(a) if a.dtype == dtypes.float0 else next(given) for a in out_avals]
        grads = bwd(*operands[:n], *cts)
        return [g for g, m in zip(grads, moves, strict=True) if m]

    return pull


def batched_bwd(bwd: Callable, axis: Axis, dims: list) -> Callable:
    """A pullback mapped over `axis`, all its operands in front; `dims` are those of the primals.

    The cotangent of a primal that was not mapped is the sum over the axis.
    """

    def pull(*operands: Any) -> list:
        grads = batch_to_front(bwd, operands, [0] * len(operands), axis)
        out = []
        for g, d in zip(grads, dims, strict=True):
            if typeof(g).dtype == dtypes.float0:
                out.append(g)
            else:
                out.append(reduce_sum(g, (0,)) if d is None else front_to(g, d))
        return out

    return pull


def front_to(x: Any, dim: int) -> Any:
    """`x` with its front axis moved to `dim`."""
    return transpose(x, (*range(1, dim + 1), 0, *range(dim + 1, typeof(x).ndim)))


class CustomLinear(Primitive):
    """The tangent map of a custom_vjp function: known only by its transpose, `bwd`."""

    name = "custom_linear"
    memoize_type = False

    def abstract_eval(self, *avals, out_avals, **params):
        return list(out_avals)

    def impl(self, *args, name, **params):
        raise forward_error(name)

    def lower(self, hlo, *values, name, **params):
        raise forward_error(name)

    def jvp(self, primals, tangents, *, name, **params):
        raise forward_error(name)

    def transpose(self, cts, *args, name, bwd, num_residuals, out_avals):
        residuals = args[:num_residuals]
        current.source = None  # what the user's function writes has lines of its own
        grads = bwd(*residuals, *map(instantiate, cts))
        return [
            *[None] * num_residuals,
            *[
                g if type(x) is Linear else None
                for g, x in zip(grads, args[num_residuals:], strict=True)
            ],
        ]

    def batch(self, axis, args, dims, *, name, bwd, num_residuals, out_avals):
        n = num_residuals
        residuals = [
            batched_at_front(x, d, axis.size) for x, d in zip(args[:n], dims[:n], strict=True)
        ]
        outs = self.bind(
            *residuals,
            *args[n:],
            name=name,
            bwd=batched_bwd(bwd, axis, dims[n:]),
            num_residuals=n,
            out_avals=tuple(ShapedArray((axis.size, *a.shape), a.dtype) for a in out_avals),
        )
        return outs, [0] * len(outs)


def forward_error(name: str) -> TypeError:
    """The error for forward mode through a function that has only a pullback."""
    return TypeError(
        f"jvp: a custom_vjp function has no forward-mode derivative; got {name}. "
        "Hint: reverse mode (grad, vjp), or custom_jvp, which serves both modes."
    )


custom_jvp_p = CustomJVP()
custom_vjp_p = CustomVJP()
custom_linear_p = CustomLinear()
