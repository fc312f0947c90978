"""`dce_sink`: a use of values that keeps what computes them in a program."""

from __future__ import annotations

from typing import Any

from weft.core.primitive import Effect, Primitive
from weft.pytrees import leaves


class SinkEffect(Effect):
    """Using a value for nothing."""

    name = "Sink"


class DceSink(Primitive):
    """Compute the operand even if nothing else needs it. No results.

    With `prevent_mlir_dce` XLA has to compute it too, in the compiled program.
    """

    name = "dce_sink"
    effect = SinkEffect()
    multiple_results = True

    def abstract_eval(self, x, *, prevent_mlir_dce):
        return []

    def impl(self, x, *, prevent_mlir_dce):
        return []

    def lower(self, hlo, x, *, prevent_mlir_dce):
        if prevent_mlir_dce:
            hlo.custom_call("dce_sink", [x], [], has_side_effect="true")
        return []

    def jvp(self, primals, tangents, **params):
        return self.apply(*primals, **params), []

    def batch(self, axis, args, dims, **params):
        return self.apply(*args, **params), []


dce_sink_p = DceSink()


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep a computation in a program, although its result is not used.

    Passes remove operations without uses (dead code). Timings of a part of a program, for example,
    need that part to stay.

    Args:
      val: a pytree of arrays. The operations that compute them stay in the jaxpr.
      prevent_mlir_dce: if True, they also stay in the compiled program. The default is False.

    Returns:
      None.

    >>> def f(x):
    ...     lax.dce_sink(jnp.sin(x))
    ...     return x
    >>> "sin" in str(weft.make_jaxpr(f)(1.0))
    True
    """
    for x in leaves(val):
        dce_sink_p.apply(x, prevent_mlir_dce=prevent_mlir_dce)
