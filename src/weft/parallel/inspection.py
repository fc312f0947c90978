"""`inspect_sharding`: calls a Python function with the sharding of a value inside a program.

What users call is debug/layout.py's.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from jaxlib import _jax

from weft.core.primitive import Effect, Primitive
from weft.mesh.client import default_device
from weft.mesh.sharding import sharding_of_result, sharding_on
from weft.xla.array import ArrayImpl


class InspectEffect(Effect):
    """A call with the sharding of a value."""

    name = "InspectSharding"


class Inspector:
    """A function to tell of shardings, and what XLA calls to do so, kept alive for it."""

    def __init__(self, tell: Callable[[Any], Any]):
        self.tell = tell
        self.entries: list[Any] = []

    def __repr__(self) -> str:
        return repr(self.tell)


class InspectSharding(Primitive):
    """No results: `callback.tell(sharding)` is called once, when the program is compiled.

    Computing operation by operation, it is called at once. Source: XLA's custom call of the name.
    """

    name = "inspect_sharding"
    effect = InspectEffect()
    multiple_results = True

    def abstract_eval(self, x, *, callback):
        return []

    def impl(self, x, *, callback):
        sharding = x._sharding if type(x) is ArrayImpl else sharding_on(default_device())
        callback.tell(sharding)
        return []

    def lower(self, hlo, x, *, callback):
        if not hlo.devices:
            callback.tell(sharding_on(default_device()))
            return []
        devices, meshes, ndim = tuple(hlo.devices), hlo.meshes, x.aval.ndim

        def told(said: Any, *_: Any) -> None:
            mesh = next((m for m in meshes if m._device_assignment == devices), devices)
            callback.tell(sharding_of_result(said, mesh, ndim))

        callback.entries.append(told)
        address = _jax.encode_inspect_sharding_callback(told)
        escaped = "".join(f"\\{byte:02X}" for byte in address)
        hlo.op(
            "stablehlo.custom_call",
            [x],
            [x.aval],
            call_target_name='"InspectSharding"',
            backend_config=f'"{escaped}"',
            has_side_effect="true",
            # an address means nothing to another process, so the text must be new to the disk cache
            weft_nonce=f'"{uuid.uuid4().hex}"',
        )
        return []

    def label_axes(self, avals, outs, **params):
        return None  # it has no results

    def jvp(self, primals, tangents, **params):
        return self.apply(*primals, **params), []

    def batch(self, axis, args, dims, **params):
        return self.apply(*args, **params), []


inspect_sharding_p = InspectSharding()
