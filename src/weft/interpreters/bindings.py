"""Rules of lowering that are written with MLIR's Python bindings: `hlo.AddOp(x, y).result`.

Such a rule runs in a function of a module of MLIR's own, whose text goes into the program's. A rule
cannot be told by its look, so it is run on the names of values first, as a rule that writes text,
and on MLIR's values if that fails and the bindings are loaded.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.aval import ShapedArray
from weft.core.primitive import Primitive
from weft.xla.callbacks import mlir_context
from weft.xla.hlo import Builder, Value


class WritesText(Exception):
    """A rule asks for the Builder, so it writes text."""


class _Module(threading.local):
    """The module that holds a rule's function while the rule runs."""

    bridge: Bridge | None = None


_module = _Module()


class Bridge:
    """A module of MLIR with one function, into which a rule writes its computation.

    It serves as the context of the rule and of the module in JAX's rules.
    """

    def __init__(
        self,
        builder: Builder,
        primitive: Primitive,
        avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray],
    ):
        from jaxlib.mlir import ir

        self.builder, self.primitive = builder, primitive
        self.avals_in, self.avals_out = avals_in, avals_out
        self.declared: dict[str, None] = {}
        self.context = mlir_context()
        self.platforms = (builder.platform,)
        with self.context, ir.Location.unknown():
            self.module = ir.Module.create()
            self.ip = ir.InsertionPoint(self.module.body)
            self.symbol_table = ir.SymbolTable(self.module.operation)

    @property
    def hlo(self) -> Builder:
        """The Builder of rules that write text; this rule does not."""
        raise WritesText

    @property
    def module_context(self) -> Bridge:
        """The object itself, which stands for both contexts."""
        return self

    def replace(self, **changes: Any) -> Bridge:
        """Return the context with other types, for a rule that calls another one."""
        new = object.__new__(Bridge)
        vars(new).update({**vars(self), **changes})
        return new

    def add_keepalive(self, x: Any) -> None:
        """Keep a value for as long as the program is; functions that it calls are kept anyway."""

    def parse_type(self, text: str) -> Any:
        """Return the type that a text stands for."""
        from jaxlib.mlir import ir

        return ir.Type.parse(text, self.context)

    def parse_attribute(self, text: str) -> Any:
        """Return the attribute that a text stands for."""
        from jaxlib.mlir import ir

        return ir.Attribute.parse(text, self.context)

    def write_constant(self, text: str) -> Any:
        """Write a constant of the value that a text stands for."""
        from jaxlib.mlir.dialects import stablehlo

        return stablehlo.ConstantOp(self.parse_attribute(text)).result

    def run(self, rule: Callable, params: dict) -> None:
        """Run the rule in a function of the module, and check the function."""
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import func

        ins, outs = (
            [self.parse_type(a.hlo) for a in avals] for avals in (self.avals_in, self.avals_out)
        )
        with self.context, ir.Location.unknown():
            with self.ip:
                main = func.FuncOp("main", (ins, outs), visibility="private")
            block = main.add_entry_block()
            with ir.InsertionPoint(block):
                func.ReturnOp(list(flatten(rule(self, *block.arguments, **params))))
            main.verify()

    def call_text(self, name: str, operands: Sequence[Any], out_avals: Sequence) -> list:
        """Call a function of the program's text from the rule's function."""
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import func

        outs = [self.parse_type(a.hlo) for a in out_avals]
        if name not in self.declared:
            self.declared[name] = None
            with self.ip:
                func.FuncOp(name, ([x.type for x in operands], outs), visibility="private")
        return list(func.CallOp(outs, ir.FlatSymbolRefAttr.get(name), operands).results)

    def texts(self) -> dict[str, str]:
        """Return the functions that were written, as text by name."""
        found = {}
        for op in self.module.body.operations:
            name = op.attributes["sym_name"].value
            if name not in self.declared:
                found[name] = op.operation.get_asm(
                    print_generic_op_form=True, use_local_scope=True, enable_debug_info=False
                )
        return found


def flatten(results: Any) -> Any:
    """The values of a rule's results, which may be values, operations, and sequences of these."""
    from jaxlib.mlir import ir

    if isinstance(results, ir.Value):
        yield results
    elif isinstance(results, ir.OpView | ir.Operation):
        yield from results.results
    else:
        for x in results:
            yield from flatten(x)


def current_bridge() -> Bridge | None:
    """Return the module that the current rule writes into; None if it writes text."""
    return _module.bridge


def run_rule(rule: Callable, bridge: Bridge, values: Sequence[Value], params: dict) -> list[Value]:
    """Run a rule that uses the bindings, and write a call of the function that it makes."""
    around, _module.bridge = _module.bridge, bridge
    try:
        bridge.run(rule, params)
    finally:
        _module.bridge = around
    builder = bridge.builder
    texts = bridge.texts()
    names = {name: builder.unique(f"{bridge.primitive.name}_{name}") for name in texts}
    for name, text in texts.items():
        text = text.replace(f'sym_name = "{name}"', f'sym_name = "{names[name]}"')
        for old, new in names.items():
            text = text.replace(f"@{old}}}", f"@{new}}}").replace(f"@{old},", f"@{new},")
        builder.functions.append(text)
    return builder.call(names["main"], values, bridge.avals_out)


def uses_bindings() -> bool:
    """Return True if MLIR's bindings are loaded, without which no rule can use them."""
    return "jaxlib.mlir.ir" in sys.modules
