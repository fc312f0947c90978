"""Lower a staged program to the module that is exported: one main function for all platforms.

Its parameters are the arguments that the program uses. A module for several platforms takes an
integer before them: the index of the platform in the module's list, as in JAX's modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.api.programs import StagedProgram
from weft.core.aval import ShapedArray, words_of
from weft.core.jaxpr import Jaxpr
from weft.cpu.passes import prepare_jaxpr
from weft.cpu.scope import Target
from weft.export.dynamic import DynamicBuilder
from weft.export.solving import Step, find_scope, plan_sizes
from weft.mesh.typed import sharding_of
from weft.optimize.passes import run_passes
from weft.options import config
from weft.passes.dce import used_inputs
from weft.passes.physical import has_extended, physical_jaxpr
from weft.util import insert_at, select_masked
from weft.xla.hlo import Builder, Value
from weft.xla.lower import lower_jaxpr
from weft.xla.placement import Placement, explicit_mesh

INDEX = ShapedArray((), np.dtype(np.int32))
PLATFORM_ARGUMENT = 'jax.global_constant = "_platform_index"'


class LoweredExport(NamedTuple):
    """The text of a module, and which arguments its main function takes, by flat place."""

    text: str
    kept: tuple[int, ...]
    shardings: tuple[Sequence[Any], Sequence[Any]]  # of all arguments and results, or None


def lower_exported(
    program: StagedProgram, placement: Placement, platforms: Sequence[str]
) -> LoweredExport:
    """The module of a program for some platforms."""
    spec, jaxpr = program.spec, run_passes(program.jaxpr, program.spec.passes, program.spec.name)
    consts, n = [*program.consts], len(program.consts)
    used = list(used_inputs(jaxpr))
    if spec.keep_unused:
        used[n:] = [True] * (len(used) - n)
    places = [i for i in range(len(program.in_avals)) if i not in program.hidden]
    steps = plan_sizes(f"export: {spec.name}", program.in_avals)
    for step in steps:
        used[n + places.index(step.argument)] = True
    kept = select_masked(places, used[n:])
    taken = select_masked(jaxpr.invars[n:], used[n:])
    written = {v: c for v, c, u in zip(jaxpr.invars, consts, used, strict=False) if u}
    jaxpr = jaxpr.replace(constvars=list(written), invars=taken)
    values = list(written.values())
    if has_extended(jaxpr):
        jaxpr, values = physical_jaxpr(jaxpr), [*map(words_of, values)]
    given = place_values(placement, spec.in_shardings, len(places))
    results = place_values(placement._replace(arguments=()), spec.out_shardings, len(jaxpr.outvars))
    mesh = explicit_mesh(placement)
    if mesh is not None:
        pairs = zip(results, jaxpr.out_avals, strict=True)
        results = [sharding_of(a, mesh) if s is None else s for s, a in pairs]
    steps = [step._replace(argument=kept.index(step.argument)) for step in steps]
    writer = ModuleWriter(program, jaxpr, values, placement, platforms, steps)
    text = writer.write(select_masked(given, used[n:]), results)
    shardings = (
        insert_at(given, dict.fromkeys(program.hidden)),
        insert_at(results, dict.fromkeys(program.hidden_results)),
    )
    return LoweredExport(text, tuple(kept), shardings)


def place_values(placement: Placement, asked: Sequence[Any], count: int) -> list:
    """Return the shardings of arguments or results; None where no sharding is set."""
    found = placement.arguments or asked or [None] * count
    return [s if hasattr(s, "mesh") else None for s in found]


class ModuleWriter:
    """Writes the module of one program."""

    def __init__(
        self,
        program: StagedProgram,
        jaxpr: Jaxpr,
        consts: Sequence[Any],
        placement: Placement,
        platforms: Sequence[str],
        steps: Sequence[Step],
    ):
        self.program, self.jaxpr, self.consts = program, jaxpr, consts
        self.devices = placement.devices if placement.partitioned else ()
        self.platforms, self.steps = platforms, steps
        self.scope = find_scope(program.in_avals)

    def builder(self, platform: str) -> Builder:
        """Return the builder for a platform."""
        if self.scope is None:
            return Builder(self.devices, platform)
        return DynamicBuilder(self.devices, platform, self.scope, [s.name for s in self.steps])

    def body(self, hlo: Builder) -> Callable[..., list[Value]]:
        """Write the body of the main function, on the platform of `hlo`."""

        def write(*args: Value) -> list[Value]:
            jaxpr = self.jaxpr
            if hlo.platform == "cpu":
                # without weft's own kernels, which later releases may change; XLA keeps its kernels
                target = Target(native=False, devices=bool(self.devices))
                jaxpr = prepare_jaxpr(jaxpr, target, self.program.spec.name)
            outs = lower_jaxpr(hlo, jaxpr, args, self.consts)
            bools = {
                i: hlo.constant(False, ShapedArray(x.shape, np.bool_))
                for i, x in self.program.hidden_results.items()
            }
            return insert_at(outs, bools)

        return write

    def write(self, parameters: Sequence[Any], results: Sequence[Any]) -> str:
        """The text of the module."""
        several = len(self.platforms) > 1
        hlo = self.builder(self.platforms[0])
        in_avals, name = self.jaxpr.in_avals, self.program.spec.name
        path = f"jit({name})"
        attrs = [hlo.placed(s, a.ndim) for s, a in zip(parameters, in_avals, strict=True)]
        out_attrs = [hlo.placed(s, v.aval.ndim) for s, v in zip(results, self.jaxpr.outvars)]
        out_attrs = insert_at(out_attrs, dict.fromkeys(self.program.hidden_results, ""))
        write = self.body(hlo)
        # XLA's kernels last longer than those that weft brings
        with config.scope(native=False):
            if several and self.differs():
                write = self.choose(hlo)
            elif several:
                write = lambda index, *args: self.body(hlo)(*args)
            if several:
                in_avals, attrs = [INDEX, *in_avals], [PLATFORM_ARGUMENT, *attrs]
            if isinstance(hlo, DynamicBuilder):
                write = self.find_sizes(hlo, write, in_avals, several)
            hlo.function("main", in_avals, write, "public", (attrs, out_attrs), path)
        text = hlo.module(Builder().unique(f"jit_{name}"))
        refines = "true" if several or self.scope is not None else "false"
        return text.replace(
            "attributes {", f"attributes {{jax.uses_shape_polymorphism = {refines}, ", 1
        )

    def find_sizes(
        self, hlo: DynamicBuilder, write: Callable, in_avals: Sequence[ShapedArray], several: bool
    ) -> Callable[..., list[Value]]:
        """Write the body of the main function: the variables, and a call with them."""

        def write_main(*args: Value) -> list[Value]:
            sizes = []
            for name, argument, axis, count, rest in self.steps:
                x = args[argument + several]
                (size,) = hlo.op(
                    "stablehlo.get_dimension_size", [x], [INDEX], dimension=f"{axis} : i64"
                )
                if rest != 0:
                    (size,) = hlo.like("subtract", size, hlo.size_value(rest))
                if count != 1:
                    (size,) = hlo.like("divide", size, hlo.size_value(count))
                hlo.sizes[name] = size
                sizes.append(size)
            inner = hlo.function("_wrapped_jax_export_main", in_avals, write)
            hidden = {
                i: ShapedArray(x.shape, np.bool_) for i, x in self.program.hidden_results.items()
            }
            return hlo.call(inner, args, insert_at(self.jaxpr.out_avals, hidden))

        return write_main

    def differs(self) -> bool:
        """Return True if the program is written in another way for some of the platforms."""
        texts = set()
        for platform in self.platforms:
            hlo = self.builder(platform)
            hlo.function("main", self.jaxpr.in_avals, self.body(hlo))
            texts.add("\n".join(hlo.functions))
        return len(texts) > 1

    def choose(self, hlo: Builder) -> Callable[..., list[Value]]:
        """Write the body of the main function: the function of the given platform index."""
        in_avals = self.jaxpr.in_avals
        hidden = {i: ShapedArray(x.shape, np.bool_) for i, x in self.program.hidden_results.items()}
        out_avals = insert_at(self.jaxpr.out_avals, hidden)

        def write(index: Value, *args: Value) -> list[Value]:
            names = []
            for platform in self.platforms:
                hlo.platform, hlo.memo, hlo.written = platform, {}, {}
                names.append(hlo.function(f"main_{platform}", in_avals, self.body(hlo)))
            branches = [lambda name=name: hlo.call(name, args, out_avals) for name in names]
            return hlo.case(index, branches, out_avals)

        return write
