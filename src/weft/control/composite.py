"""`composite` as a primitive: a program under a name that compilers may know.

Turning attributes into text is here; pytrees and staging are api/composite.py's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.control.call import Call
from weft.control.jit import jit_p
from weft.core.aval import ShapedArray
from weft.xla.hlo import array_text, scalar_text
from weft.xla.lower import lower_jaxpr


class Composite(Call):
    """Call `jaxpr`, or what the compiler has in its place under `name`, `version`, `attributes`.

    `attributes` are pairs of a name and a text. Transformed, it is a call of a program without that
    name: what is known by the name is the operation itself. Source: StableHLO, composite.
    """

    name = "composite"
    dce = None  # type: ignore[assignment]

    def bodies(self, params):
        (body,) = super().bodies(params)
        return [body._replace(label=params["name"])]

    def transformed(self, params, jaxpr, ins, outs):
        return jit_p, {"jaxpr": jaxpr, "name": params["name"]}

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


composite_p = Composite()


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
