"""Writing StableHLO: `Builder` writes operations, one line each, `Value` is a typed SSA name.

Text is MLIR's generic form, which every operation shares. What to write for a primitive is the
primitive's `lower`; walking a jaxpr is lower.py's.
"""

from __future__ import annotations

import enum
import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.dtypes import NUMBERS
from weft.mesh.mesh import axis_text, has_same_grid
from weft.mesh.plugins import GPUS
from weft.mesh.typed import entries_of
from weft.options import trace_context
from weft.util import allocate

# The type of a token, which a host call takes, and returns if calls are ordered.
TOKEN = ShapedArray((), np.dtype(np.int32))

MAX_PATTERNS = 10_000  # of a platform
PATTERNS: dict[tuple, dict[tuple, Any]] = {}  # by platform and settings

_LOCATION = r'(?m) loc\("(?:[^"\\]|\\.)*"(?:\(".*":\d+:\d+\))?\)$'  # compiled at its first use


class Value:
    """A value of a StableHLO program: an SSA name and its type.

    Lowering rules take and return values. A rule gets them from `ctx.hlo.op` or `ir_constant`, and
    does not construct them.

    Args:
      name: the name in the text, such as "%1".
      aval: the type, a `ShapedArray`.
      scalar: the number, if the value is a scalar constant. None, the default, for other values.

    >>> from weft.interpreters import mlir
    >>> mlir.Value("%1", weft.typeof(jnp.ones(3)))
    %1: f32[3]
    """

    __slots__ = ("aval", "name", "scalar")

    def __init__(self, name: str, aval: ShapedArray, scalar: Any = None):
        self.name = name
        self.aval = aval
        self.scalar = scalar

    @property
    def is_argument(self) -> bool:
        """Return True if a program is called with it, and does not compute it."""
        return self.name.startswith("%arg")

    def __repr__(self) -> str:
        return f"{self.name}: {self.aval}"


class Pattern(NamedTuple):
    """Return the lines of an equation without names, which are operands or new ones."""

    text: str  # "%s" for a name
    pick: Callable[[list[str]], Any]  # of the names of operands and then new ones, those in `text`
    new: int
    outs: list[tuple[int, ShapedArray]]  # which of the names are results, and their types


class Repeat(enum.Enum):
    """The facts of the lines of an equation that no pattern is kept of."""

    # They were written once. A pattern is made of several lines when they are written again,
    # because most programs have few equations twice.
    ONCE = enum.auto()
    # They cannot be repeated.
    NEVER = enum.auto()


class Part(NamedTuple):
    """One device of a mesh, while a region for it is written.

    Attributes:
      axes: names and sizes of the axes of the mesh. The first ones may be known by the names of
        pmaps.
      mesh: the mesh.
      symbol: the name of the mesh in the text.
      automatic: the axes over which the compiler splits the region.
      pmaps: the names of the pmaps along the first axes; None within a shard_map.
    """

    axes: tuple[tuple[Any, int], ...]
    mesh: Any = None
    symbol: str = ""
    automatic: tuple = ()
    pmaps: tuple | None = None


class FrontendAttributes(str):
    """Attributes of operations, `a = "b", n = "3"`, which a scope may hold.

    `pairs` has the text of each value by name.
    """

    pairs: dict[str, str]

    @classmethod
    def of(cls, pairs: dict[str, str]) -> FrontendAttributes:
        attributes = cls(", ".join(f"{name} = {value}" for name, value in pairs.items()))
        attributes.pairs = pairs
        return attributes


class PlaceholderMesh(str):
    """A mesh that no `Mesh` is for: the text of its declaration."""

    def sdy(self, symbol: str, devices: Sequence[Any]) -> str:
        return f"sdy.mesh {symbol} = {self}"


FIRST_DEVICE = PlaceholderMesh("<[], device_ids=[0]>")
EACH_DEVICE = PlaceholderMesh("<[]>")


class Builder:
    """Writes a StableHLO module: functions, and in each the lines of the one being written."""

    names_all = False  # whether operations outside of named scopes are named too

    def __init__(self, devices: Sequence[Any] = (), platform: str = "cpu"):
        self.platform = platform
        self.devices = devices  # of a program over a mesh, in the order of their numbers in it
        self.meshes: dict[Any, str] = {}  # the meshes that the text names
        # the device that the region being written is for; None where it is for all devices
        self.part: Part | None = None
        self.lines: list[str] = []
        self.count = 0
        # constants of the region being written, and patterns of equations that name any
        self.constants: dict[tuple, Any] = {}
        self.functions: list[str] = []  # the text of finished private functions
        self.memo: dict[Any, Any] = {}  # what lowering remembers for this module
        # patterns of equations, to repeat in any region, and in any program for one device
        self.written = {} if devices else PATTERNS.setdefault((platform, trace_context()), {})
        if len(self.written) > MAX_PATTERNS:
            self.written.clear()
        self.names: dict[str, int] = {}  # function names in use
        self.host_calls: list[Callable] = []  # the Python functions that the program calls
        self.foreign_calls: list[Any] = []  # the calls of users' kernels, for errors
        self.token: Any = None  # a Value of type TOKEN, in programs that call any
        self.path = ""  # the prefix of the names of operations in the region being written
        self.scoped = self.names_all  # whether a named scope is around that region
        self.origins: list = []  # what a LocatingBuilder names operations by

    def value(self, aval: ShapedArray) -> Value:
        """A fresh SSA name."""
        self.count += 1
        return Value(f"%{self.count}", aval)

    def op(
        self,
        name: str,
        /,
        operands: Sequence[Value],
        out_avals: Sequence[ShapedArray],
        regions: Sequence[Callable[[], None]] = (),
        discardable: Mapping[str, str] | None = None,
        **attrs: Any,
    ) -> list[Value]:
        """Write one operation; each region is a function that writes its lines.

        `attrs` are attribute texts by name, as in `dimensions="array<i64: 0>"`, which the operation
        defines. `discardable` are attributes of other dialects.
        """
        outs = []
        for a in out_avals:
            self.count += 1
            outs.append(Value(f"%{self.count}", a))
        left = ", ".join([v.name for v in outs]) + " = " if outs else ""
        given = " <{" + ", ".join([f"{k} = {v}" for k, v in attrs.items()]) + "}>" if attrs else ""
        if discardable:
            given += " {" + ", ".join([f"{k} = {v}" for k, v in discardable.items()]) + "}"
        head = f'{left}"{name}"({", ".join([v.name for v in operands])}){given}'
        types = (
            f" : ({', '.join([v.aval.hlo for v in operands])})"
            f" -> ({', '.join([a.hlo for a in out_avals])})"
        )
        if not regions:
            self.lines.append(head + types)
            return outs
        self.lines.append(head + " ({")
        for i, write in enumerate(regions):
            if i:
                self.lines.append("}, {")
            outer = self.constants, self.token
            self.constants = {}
            write()
            self.constants, self.token = outer
        self.lines.append("})" + types)
        return outs

    def read_pattern(
        self, start: int, count: int, operands: Sequence[Value], outs: Sequence[Value]
    ) -> tuple[Pattern | None, bool]:
        """Return the pattern of the lines from `start` on, and True if only this region may use it.

        `count` names were assigned before. There is no pattern if lines name values that are not
        constants; if operands are equal, so that their order is unknown; or if operations in a
        region have names, which are numbers of this module or scopes of this place.
        """
        given = {v.name: i for i, v in enumerate(operands)}
        n, text = len(operands), "\0".join(self.lines[start:])
        if len(outs) == 1 and outs[0].name == f"%{count + 1}" and len(given) == n > 0:
            head, names = f"{outs[0].name} = ", f"({', '.join(given)})"  # as most lines are
            at = text.find(names)
            if text.startswith(head) and at > 0 and text.count("%") == n + 1:
                between, after = text[len(head) : at], text[at + len(names) :]
                text = f"%s = {between}({', '.join(['%s'] * n)}){after}"
                pick = operator.itemgetter(n, *range(n))
                return Pattern(text, pick, 1, [(n, outs[0].aval)]), False
        quoted = '\\"' in text or "%" in "".join(text.split('"')[1::2])
        if len(given) < n or quoted or ' loc("' in text:
            return None, False
        places: list[int] = []
        others: set[str] = set()

        def find_place(name: str) -> int | None:
            number = int(name[1:]) - count if name[1:].isdecimal() else 0
            return given.get(name, n + number - 1 if number > 0 else None)

        def hold(found: re.Match) -> str:
            name = found[0]
            place = find_place(name)
            if place is not None:
                places.append(place)
                return "%s"
            if name not in ("%a", "%b", "%c"):  # of `scalar_block`
                others.add(name)
            return "%" + name

        text = re.sub(r"%\w+", hold, text)
        made = [(find_place(v.name) or -1, v.aval) for v in outs if v.scalar is None]
        if not places or len(made) < len(outs) or any(i < n for i, _ in made):
            return None, False
        if others and not others <= {v.name for v in self.constants.values() if type(v) is Value}:
            return None, False
        pattern = Pattern(text, operator.itemgetter(*places), self.count - count, made)
        return pattern, bool(others)

    def again(self, pattern: Pattern, names: list[str]) -> list[Value]:
        """Write lines like earlier ones, with the names of other operands."""
        text, pick, new, outs = pattern
        count = self.count = self.count + 1
        name = f"%{count}"
        names.append(name)
        if new == 1 and "\0" not in text:
            self.lines.append(text % pick(names))
            out = allocate(Value)  # without a call of `__init__`, as in `StageTrace.process`
            out.name = name
            out.aval = outs[0][1]
            out.scalar = None
            return [out]
        self.count = count + new - 1
        names += [f"%{i}" for i in range(count + 1, count + new)]
        self.lines += (text % pick(names)).split("\0")
        return [Value(names[i], aval) for i, aval in outs]

    def locate(self, start: int, path: str, eqn: Any = None) -> None:
        """Give the operations written from line `start` on a name, except for those that have one.

        `eqn` is the equation that they compute: it is in scopes, which may hold attributes too.
        """
        scope = eqn.source_info.scope if eqn is not None else ()
        held = [name.pairs for name in scope if type(name) is FrontendAttributes]
        if held:
            inner = functools.reduce(operator.or_, held)
            self.annotate(range(start, len(self.lines)), FrontendAttributes.of(inner))
        quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        for i in range(start, len(self.lines)):
            line = self.lines[i]
            if line.endswith(")") and not line.endswith('")'):  # not the start of a region
                self.lines[i] = f'{line} loc("{quoted}")'

    def annotate(self, places: Iterable[int], attributes: str) -> None:
        """Give the operations of some lines frontend attributes, except for those that have any."""
        for i in places:
            head, between, types = self.lines[i].rpartition(" : (")
            if between and "mhlo.frontend_attributes" not in head:
                added = f"{{mhlo.frontend_attributes = {{{attributes}}}}}"
                self.lines[i] = f"{head} {added}{between}{types}"

    def annotate_maker(self, x: Value, attributes: str) -> None:
        """Give the operation that computes `x` attributes; a parameter has none."""
        for i in reversed(range(len(self.lines))):
            if x.name in self.lines[i].partition(" = ")[0].split(", "):
                return self.annotate([i], attributes)

    def elementwise(self, name: str, operands: Sequence[Value], aval: ShapedArray) -> list[Value]:
        """Write as `op` does, for the commonest kind: one result, no attributes."""
        self.count += 1
        out = Value(f"%{self.count}", aval)
        names = ", ".join([v.name for v in operands])
        types = ", ".join([v.aval.hlo for v in operands])
        self.lines.append(f'{out.name} = "{name}"({names}) : ({types}) -> ({aval.hlo})')
        return [out]

    def scalar_block(self, name: str, aval: ShapedArray) -> Callable[[], None]:
        """A region that applies one operation to two scalars; the same text in every place."""
        t = aval.hlo
        text = (
            f'^bb0(%a: {t}, %b: {t}):\n%c = "stablehlo.{name}"(%a, %b) : ({t}, {t}) -> ({t})\n'
            f'"stablehlo.return"(%c) : ({t}) -> ()'
        )
        return lambda: self.lines.append(text)

    def block(
        self, avals: Sequence[ShapedArray], write: Callable[..., Sequence[Value]]
    ) -> Callable[[], None]:
        """A region of one block: its arguments are passed to `write`, whose results it returns."""

        def region() -> None:
            args = [self.value(a) for a in avals]
            if args:
                listed = ", ".join(f"{v.name}: {v.aval.hlo}" for v in args)
                self.lines.append(f"^bb0({listed}):")
            self.op("stablehlo.return", list(write(*args)), [])

        return region

    def like(self, name: str, *operands: Value) -> list[Value]:
        """An operation whose one result has the type of its first operand."""
        return self.op("stablehlo." + name, operands, [operands[0].aval])

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """A constant: a number spread over `aval`, or an array of its shape."""
        # the commonest, except for zeros and complex numbers, whose texts differ
        if type(value) in NUMBERS and value and type(value) is not complex:
            found = self.constants.get((value, type(value), aval))
            if found is not None:
                return found
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]  # a scalar, which can be part of a key
        splat = not isinstance(value, np.ndarray)
        # zeros and complex numbers differ by their text: 0.0 equals -0.0, and 1 + 0j equals 1 - 0j
        write = scalar_text if splat else array_text
        by_value = splat and value and not isinstance(value, (complex, np.complexfloating))
        text = None if by_value else write(value, aval.dtype)
        key = (value if text is None else text, type(value), aval)
        found = self.constants.get(key)
        if found is None:
            text = scalar_text(value, aval.dtype) if text is None else text
            line = f"dense<{text}> : {aval.hlo}"
            (found,) = self.op("stablehlo.constant", [], [aval], value=line)
            if splat and not aval.shape:
                found.scalar = value
            self.constants[key] = found
        return found

    def spread(self, x: Value, aval: ShapedArray) -> Value:
        """A scalar broadcast to the shape of `aval`; `x` itself where it has that shape."""
        if x.aval.shape == aval.shape:
            return x
        target = aval if x.aval.dtype == aval.dtype else aval.update(dtype=x.aval.dtype)
        if x.scalar is not None:
            return self.constant(x.scalar, target)
        return self.op(
            "stablehlo.broadcast_in_dim", [x], [target], broadcast_dimensions="array<i64>"
        )[0]

    def convert(self, x: Value, dtype: np.dtype) -> Value:
        """`x` with another dtype, by StableHLO's conversion."""
        if x.aval.dtype == dtype:
            return x
        return self.op("stablehlo.convert", [x], [x.aval.update(dtype=dtype)])[0]

    def compare(self, direction: str, x: Value, y: Value, floats: str = "FLOAT") -> Value:
        """`x` compared with `y`; floats as IEEE 754 says, so that NaN differs from all.

        `floats="TOTALORDER"` puts -0 before 0, and NaN of either sign at the ends.
        """
        if dtypes.is_of_two_bits(x.aval.dtype):
            wide = dtypes.whole_byte_dtype(x.aval.dtype)
            x, y = self.convert(x, wide), self.convert(y, wide)
        dtype = x.aval.dtype
        kind = floats if dtypes.is_inexact(dtype) else "UNSIGNED"
        if dtypes.is_integer(dtype) and dtypes.is_signed(dtype):
            kind = "SIGNED"
        return self.op(
            "stablehlo.compare",
            [x, y],
            [ShapedArray(x.aval.shape, np.bool_)],
            comparison_direction=f"#stablehlo<comparison_direction {direction}>",
            compare_type=f"#stablehlo<comparison_type {kind}>",
        )[0]

    def custom_call(
        self,
        target: str,
        operands: Sequence[Value],
        out_avals: Sequence[ShapedArray],
        backend_config: str = "{}",
        discardable: Mapping[str, str] | None = None,
        **attrs: Any,
    ) -> list[Value]:
        """Call the handler registered as `target`, of the typed FFI (api_version 4)."""
        attrs = {"api_version": "4 : i32", "backend_config": backend_config, **attrs}
        return self.op(
            "stablehlo.custom_call",
            operands,
            out_avals,
            discardable=discardable,
            call_target_name=quote_text(target),
            **attrs,
        )

    def host_call(
        self,
        function: Callable,
        operands: Sequence[Value],
        out_avals: Sequence[ShapedArray],
        effect: Any = None,
    ) -> list[Value]:
        """Call a Python function. A call without an effect may go if its results are unused.

        The call takes the token, which identifies the run of the program, and returns it. So calls
        with an effect are ordered here. Regions and functions that keep the order pass the token on
        as well.
        """
        self.host_calls.append(function)
        token, *outs = self.custom_call(
            self.host_target(avals=[*[v.aval for v in operands], *out_avals]),
            [self.token, *operands],
            [TOKEN, *out_avals],
            f"{{index = {len(self.host_calls) - 1} : ui64}}",
            {"sdy.sharding": self.on_host([TOKEN, *out_avals])} if self.devices else None,
            has_side_effect="false" if effect is None else "true",
        )
        if effect is not None:
            self.token = token
        return outs

    def host_target(self, kind: str = "", avals: Sequence[ShapedArray] = ()) -> str:
        """Return XLA's name for a call of a Python function; `kind` is a part of it.

        If operands and results have the types `avals`, which a call on buffers may have, the
        function works on XLA's memory. Its other calls copy each array once more. XLA splits
        programs over devices by their name, and a buffer holds packed numbers as they are.
        """
        packed = any(a.dtype in dtypes.PACKED for a in avals)
        if self.platform == "cpu" and avals and not packed and not self.devices:
            return "xla_buffer_python_cpu_callback"
        platform = "gpu" if self.platform in GPUS else self.platform
        return f"xla_ffi_{kind}python_{platform}_callback"

    def on_host(self, out_avals: Sequence[ShapedArray]) -> str:
        """Return the sharding of a call of Python with these results, in a program over a mesh.

        The first device makes the call, with complete operands; in a region for one device, each
        does.
        """
        each = self.part is not None
        symbol = self.named(EACH_DEVICE if each else FIRST_DEVICE)
        dims = [", ".join(["{}"] * a.ndim) if each else "" for a in out_avals]
        listed = ", ".join([f"<{symbol}, [{d}]>" for d in dims])
        return f"#sdy.sharding_per_value<[{listed}]>"

    def threaded(self, write: Callable, gives: bool = True) -> Callable:
        """Return `write` with the token as first operand and, if it `gives`, as first result."""

        def with_token(token: Value, *args: Value) -> list[Value]:
            self.token = token
            outs = write(*args)
            return [self.token, *outs] if gives else list(outs)

        return with_token

    def while_loop(
        self,
        values: Sequence[Value],
        condition: Callable[..., Sequence[Value]],
        body: Callable[..., Sequence[Value]],
        ordered: bool = False,
    ) -> list[Value]:
        """Repeat `body` on carried values while `condition` holds; with the token if `ordered`."""
        if ordered:
            values = [self.token, *values]
            condition, body = self.threaded(condition, False), self.threaded(body)
        avals = [v.aval for v in values]
        regions = [self.block(avals, condition), self.block(avals, body)]
        outs = self.op("stablehlo.while", values, avals, regions)
        if ordered:
            self.token, *outs = outs
        return outs

    def case(
        self,
        index: Value,
        branches: Sequence[Callable[[], Sequence[Value]]],
        out_avals: Sequence[ShapedArray],
        ordered: bool = False,
    ) -> list[Value]:
        """Write the branch number `index`; with the token if its effects are `ordered`."""
        if ordered:
            branches = [functools.partial(self.threaded(b), self.token) for b in branches]
            out_avals = [TOKEN, *out_avals]
        regions = [self.block([], b) for b in branches]
        outs = self.op("stablehlo.case", [index], out_avals, regions)
        if ordered:
            self.token, *outs = outs
        return outs

    def named(self, mesh: Any) -> str:
        """The symbol of a mesh, which the module declares."""
        mesh = next((m for m in self.meshes if has_same_grid(m, mesh)), mesh)
        return self.meshes.setdefault(mesh, f"@mesh_{len(self.meshes)}" if self.meshes else "@mesh")

    def placed(self, sharding: Any, ndim: int) -> str:
        """The attribute with the sharding of a value of this rank; empty where it is None."""
        if sharding is None:
            return ""
        return f"sdy.sharding = #sdy.sharding{sharding.sdy(ndim, self.named(sharding.mesh))}"

    def constrain(self, x: Value, aval: ShapedArray, mesh: Any) -> Value:
        """A value split over the explicit axes of a mesh as its type says; over others freely."""
        symbol, free = self.named(mesh), mesh.axis_names
        if self.part is not None:
            symbol, free = self.part.symbol, self.part.automatic
        names, lies, entries = mesh.explicit_axes, aval.sharded, entries_of(aval)
        terms = [n for n in names if lies is not None and n in lies.unreduced]
        is_open = not terms and any(n not in names for n in free)
        used = {*terms, *[n for e in entries for n in e]}
        whole = [n for n in names if is_open and n in free and n not in used]
        more = ["?"] if is_open else []
        dims = [f"{{{', '.join([*map(axis_text, e), *more])}}}" for e in entries]
        text = f"{symbol}, [{', '.join(dims)}]"
        for kind, axes in (("replicated", whole), ("unreduced", terms)):
            text += f", {kind}={{{', '.join(map(axis_text, axes))}}}" if axes else ""
        shows = f"#sdy.sharding<{text}>"
        return self.op("sdy.sharding_constraint", [x], [aval], sharding=shows)[0]

    def unique(self, name: str) -> str:
        """A function name nothing else in the module has."""
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "_.$") else "_" for c in name)
        safe = safe or "f"
        seen = self.names.get(safe)
        self.names[safe] = 0 if seen is None else seen + 1
        return safe if seen is None else self.unique(f"{safe}_{seen + 1}")

    def function(
        self,
        name: str,
        in_avals: Sequence[ShapedArray],
        write: Callable[..., Sequence[Value]],
        visibility: str = "private",
        attrs: tuple[Sequence[str], Sequence[str]] = ((), ()),
        path: str = "",
    ) -> str:
        """Write a function of the module; `write` gets its arguments. Its name is returned.

        `attrs` are the attribute texts of its parameters and of its results, and `path` is the
        prefix of the names of its operations.
        """
        name = self.unique(name)
        outer = self.lines, self.constants, self.count, self.path, self.scoped, self.token
        self.lines, self.constants, self.count, self.path = [], {}, 0, path
        if not path:
            self.scoped = self.names_all
        args = [Value(f"%arg{i}", a) for i, a in enumerate(in_avals)]
        outs = list(write(*args))
        self.op("func.return", outs, [])
        given = [f" {{{a}}}" if a else "" for a in attrs[0]] or [""] * len(args)
        made = [f" {{{a}}}" if a else "" for a in attrs[1]] or [""] * len(outs)
        listed = ", ".join([f"{v.name}: {v.aval.hlo}{a}" for v, a in zip(args, given)])
        types = ", ".join([f"{v.aval.hlo}{a}" for v, a in zip(outs, made)])
        head = f"func.func {visibility} @{name}({listed}) -> ({types}) {{"
        self.functions.append("\n".join([head, *self.lines, "}"]))
        self.lines, self.constants, self.count, self.path, self.scoped, self.token = outer
        return name

    def call(
        self,
        name: str,
        operands: Sequence[Value],
        out_avals: Any,
        discardable: Mapping[str, str] | None = None,
    ) -> list[Value]:
        """Call a function of the module."""
        return self.op("func.call", operands, out_avals, discardable=discardable, callee="@" + name)

    def module(self, name: str) -> str:
        """The whole text."""
        texts = self.functions[::-1]
        if self.meshes:
            texts = [*[mesh.sdy(s, self.devices) for mesh, s in self.meshes.items()], *texts]
        body = "\n".join(texts)
        count = len(self.devices) or 1
        counts = f"mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32"
        return f"module @{name} attributes {{{counts}}} {{\n{body}\n}}\n"


def strip_locations(text: str) -> str:
    """A module's text without the names of its operations."""
    return re.sub(_LOCATION, "", text) if " loc(" in text else text


def i64s(xs: Iterable[int]) -> str:
    """A dense i64 array attribute."""
    listed = ", ".join(map(str, xs))
    return f"array<i64: {listed}>" if listed else "array<i64>"


def bool_text(x: bool) -> str:
    """A bool attribute."""
    return "true" if x else "false"


def bools(xs: Iterable[bool]) -> str:
    """A dense bool array attribute."""
    listed = ", ".join(map(bool_text, xs))
    return f"array<i1: {listed}>" if listed else "array<i1>"


def pairs(rows: Sequence[Sequence[int]]) -> str:
    """An n x 2 tensor attribute, as for padding."""
    rows = [list(r) for r in rows]
    return f"dense<{rows if rows else ''}> : tensor<{len(rows)}x2xi64>"


_SIZES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def scalar_text(x: Any, dtype: np.dtype) -> str:
    """A number in MLIR's notation; floats that have no exact decimal are written as bits."""
    if dtype == np.bool_:
        return bool_text(x)
    if dtypes.is_complex(dtype):
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return f"({scalar_text(x.real, part)}, {scalar_text(x.imag, part)})"
    if dtypes.is_float(dtype):
        if type(x) is float and x == int_or_none(x) and abs(x) < 256 and str(x) != "-0.0":
            return f"{x!r}"
        value = dtypes.cast_on_host(x, dtype)
        if dtypes.itemsize_bits(dtype) % 8 or value.dtype.itemsize not in _SIZES:
            return repr(float(value))
        bits = int(value.reshape(1).view(_SIZES[value.dtype.itemsize])[0])
        if dtypes.itemsize_bits(dtype) != value.dtype.itemsize * 8:
            return repr(float(value))
        return f"0x{bits:0{value.dtype.itemsize * 2}X}"
    return str(int(x))


def int_or_none(x: float) -> int | None:
    """The integer equal to `x`, where there is one."""
    try:
        return int(x)
    except (OverflowError, ValueError):
        return None


def array_text(x: np.ndarray, dtype: np.dtype) -> str:
    """An array in MLIR's notation: raw bytes as hexadecimal, or element by element."""
    x = np.ascontiguousarray(dtypes.cast_on_host(x, dtype))
    if x.size == 0:
        return ""
    first = x.flat[0]
    exact = first != 0 and not dtypes.is_complex(dtype)  # 0.0 equals -0.0
    if (x == first).all() and (exact or x.tobytes() == first.tobytes() * x.size):
        return scalar_text(x.flat[0], dtype)
    if dtype == np.bool_ or dtypes.itemsize_bits(dtype) != dtype.itemsize * 8:
        return nested_text(x, dtype)
    return f'"0x{x.tobytes().hex().upper()}"'


def nested_text(x: np.ndarray, dtype: np.dtype) -> str:
    """An array as nested brackets."""
    if dtype == np.bool_:
        texts = np.where(x, "true", "false")
    else:
        texts = np.array([scalar_text(v, dtype) for v in x.flat]).reshape(x.shape)
    return bracket_text(texts.tolist(), x.ndim)


def bracket_text(texts: Any, depth: int) -> str:
    """Nested lists of texts as one."""
    if depth == 0:
        return texts
    rows = texts if depth == 1 else [bracket_text(row, depth - 1) for row in texts]
    return f"[{', '.join(rows)}]"


def attribute_text(x: Any) -> str | None:
    """A Python value as an attribute in MLIR's notation; None if it has none.

    Ints and floats are of 64 bits; arrays and NumPy's numbers of their own dtype.
    """
    if isinstance(x, bool | int | float) and not isinstance(x, np.generic):
        dtype = np.dtype(type(x))
        text = scalar_text(x, dtype)
        return text if dtype == np.bool_ else f"{text} : {dtypes.hlo_name(dtype)}"
    if isinstance(x, str):
        return quote_text(x)
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
    return f"{{{', '.join(f'{quote_text(k)} = {text}' for k, text in texts.items())}}}"


def quote_text(x: str) -> str:
    """Return a string in MLIR's notation: bytes that are not printable ASCII are escaped."""
    plain = lambda byte: 32 <= byte < 127 and byte not in b'"\\'
    return '"' + "".join(chr(b) if plain(b) else f"\\{b:02X}" for b in x.encode()) + '"'
