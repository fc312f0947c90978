"""`Interface`: the members of a primitive that interpreters and libraries written for JAX ask for.

Rules and passes of weft use `Primitive.apply`, which always gives a list. The names here are JAX's.
"""

from __future__ import annotations

from typing import Any, final

from weft.core.trace import use


class Interface:
    """The base of `Primitive` that has the members which JAX's primitives have."""

    multiple_results = False  # True if `bind` returns a list, False if the only result
    call_primitive = map_primitive = False  # True for primitives that take functions
    apply: Any

    def bind(self, *args: Any, **params: Any) -> Any:
        """Return the results of `apply`: a list if `multiple_results`, else the only result."""
        outs = self.apply(*args, **params)
        return outs if self.multiple_results else outs[0]

    def bind_with_trace(self, trace: Any, args: Any, *rest: Any) -> Any:
        """Call `bind` under a trace; the last of `rest` is the parameters."""
        with use(trace):
            return self.bind(*args, **rest[-1])

    @final
    def get_bind_params(self, params: dict) -> dict:
        """Return what an interpreter passes to `bind` by name: the parameters of an equation."""
        return dict(params)
