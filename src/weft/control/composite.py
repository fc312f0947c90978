"""`composite` as a primitive: a program under a name that compilers may know.

Turning attributes into text is here; pytrees and staging are api/composite.py's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.control.jit import jit_p
from weft.core.aval import ShapedArray
from weft.core.primitive import Primitive
from weft.xla.hlo import array_text, scalar_text
from weft.xla.lower import lower_jaxpr
from weft.xla.run import run_primitive


class Composite(Primitive):
    """Call `jaxpr`, or what the compiler has in its place under `name`, `version`, `attributes`.

    `attributes` are pairs of a name and a text. Transformed, it is a call of a program without that
    name: what is known by the name is the operation itself. Source: StableHLO, composite.
    """

    name = "composite"
    memoize_type = False

    def abstract_eval(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def path_name(self, params):
        return params["name"]

    def impl(self, *args, jaxpr, **params):
        return run_primitive(self, args, {"jaxpr": jaxpr, **params}, jaxpr)

    def lower(self, hlo, *args, attributes, jaxpr, name, version):
        if jaxpr.calls_host:  # functions that do take and give more than their operands
            return lower_jaxpr(hlo, jaxpr, args)
        function = hlo.memo.get((self, jaxpr))
        if function is None:
            write = lambda *xs: lower_jaxpr(hlo, jaxpr, xs)
            function = hlo.memo[self, jaxpr] = hlo.function(name, jaxpr.in_avals, write)
        return hlo.op(
            "stablehlo.composite",
            args,
            jaxpr.out_avals,
            name=f'"{name}"',
            composite_attributes=f"{{{', '.join(f'{k} = {text}' for k, text in attributes)}}}",
            decomposition=f"@{function}",
            version=f"{version} : i32",
        )

    def jvp(self, primals, tangents, **params):
        return jit_p.jvp(primals, tangents, **as_call(params))

    def partial_eval(self, trace, unknown, args, params):
        return jit_p.partial_eval(trace, unknown, args, as_call(params))

    def transpose(self, cts, *args, **params):
        return jit_p.transpose(cts, *args, **as_call(params))

    def batch(self, axis, args, dims, **params):
        return jit_p.batch(axis, args, dims, **as_call(params))

    def checked(self, trace, args, params):
        return jit_p.checked(trace, args, as_call(params))

    def steps(self, *args, jaxpr, **params):
        yield jaxpr, args

    def uses_axis(self, name, params):
        return jit_p.uses_axis(name, as_call(params))


composite_p = Composite()


def as_call(params: dict) -> dict:
    """The parameters of a call of the program."""
    return {"jaxpr": params["jaxpr"], "name": params["name"]}


def attribute_text(x: Any) -> str | None:
    """A Python value as an attribute in MLIR's notation; None if it has none.

    Ints and floats are of 64 bits; arrays and NumPy's numbers of their own dtype.
    """
    if isinstance(x, bool | int | float) and not isinstance(x, np.generic):
        dtype = np.dtype(type(x))
        text = scalar_text(x, dtype)
        return text if dtype == np.bool_ else f"{text} : {dtypes.hlo_name(dtype)}"
    if isinstance(x, str):
        return quoted(x)
    if isinstance(x, list | tuple):
        texts = list(map(attribute_text, x))
        return None if None in texts else f"[{', '.join(texts)}]"  # type: ignore[arg-type]
    if isinstance(x, dict) and all(isinstance(k, str) for k in x):
        return pairs_text({k: attribute_text(v) for k, v in x.items()})
    if isinstance(x, np.ndarray | np.generic) and dtypes.valid_dtype(x.dtype):
        aval = ShapedArray(x.shape, x.dtype)
        return f"dense<{array_text(np.asarray(x), x.dtype)}> : {aval.hlo}"
    if isinstance(x, np.dtype) and dtypes.valid_dtype(x):
        return dtypes.hlo_name(x)
    return None


def pairs_text(texts: dict[str, str | None]) -> str | None:
    """A dictionary attribute."""
    if None in texts.values():
        return None
    return f"{{{', '.join(f'{quoted(k)} = {text}' for k, text in texts.items())}}}"


def quoted(x: str) -> str:
    """A string in MLIR's notation: what is not printable ASCII as the bytes of its UTF-8."""
    plain = lambda byte: 32 <= byte < 127 and byte not in b'"\\'
    return '"' + "".join(chr(b) if plain(b) else f"\\{b:02X}" for b in x.encode()) + '"'
