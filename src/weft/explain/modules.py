"""Read compiled programs from XLA: instructions, their costs, and memory.

Instructions and buffers are parsed from XLA's protocol buffers (xla/service/hlo.proto), since
jaxlib has no Python classes for these. The cost of an instruction comes from XLA's cost analysis of
a module that contains only this instruction.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jaxlib import _hlo, _jax

from weft.primitives.hlo_work import correct_flops
from weft.primitives.lapack_work import count_library_flops

# Opcodes of instructions that contain others, which have profiler events of their own.
CONTAINERS = frozenset(("while", "conditional", "call"))
# Our kernels for matrix products. XLA's cost analysis does not know them.
PRODUCTS = frozenset(("weft_dot", "weft_dot_symmetric", "weft_matvec"))
# Opcodes that do no work, or no work that should be counted.
FREE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"))
# Opcodes of instructions that read an element of an operand at most once for each element of their
# result.
LOCAL = frozenset(
    ("abs", "add", "and", "bitcast", "broadcast", "clamp", "compare", "convert", "copy", "divide")
    + ("dynamic-slice", "exponential", "is-finite", "log", "maximum", "minimum", "multiply")
    + ("negate", "not", "or", "power", "reshape", "reverse", "rsqrt", "select", "slice", "sqrt")
    + ("subtract", "tanh", "transpose")
)

_SHAPE = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\]")
_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_NAMED = re.compile(r"^\s*(?:ROOT )?%?([^\s=]+) = (.*)$")


def read_integer(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint of a protocol buffer, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a protocol buffer: a field number, and an integer or bytes."""
    at = 0
    while at < len(data):
        tag, at = read_integer(data, at)
        size = {1: 8, 5: 4}.get(tag & 7, 0)
        if tag & 7 in (0, 2):
            size, at = read_integer(data, at)
        if tag & 7 == 0:
            yield tag >> 3, size
        else:
            yield tag >> 3, data[at : at + size]
            at += size


def read_message(data: bytes) -> dict[int, list]:
    """Return the values of each field of a protocol buffer, by field number."""
    found: dict[int, list] = {}
    for number, value in read_fields(data):
        found.setdefault(number, []).append(value)
    return found


def read_integers(parts: Sequence[Any]) -> list[int]:
    """Return the values of a repeated field of integers, packed or not."""
    found = []
    for part in parts:
        at = 0
        while not isinstance(part, int) and at < len(part):
            value, at = read_integer(part, at)
            found.append(value)
        if isinstance(part, int):
            found.append(part)
    return found


def shape_bytes(shape: str) -> int:
    """Return the size in bytes of a value of a shape in XLA's text form.

    The size of a tuple is the sum over its members.
    """
    total = 0
    for letters, bits, dims in _SHAPE.findall(shape):
        count = 1
        for d in filter(None, dims.split(",")):
            count *= int(d)
        total += -(-count * (8 if letters == "pred" else int(bits or 0)) // 8)
    return total


class Cost(NamedTuple):
    """The costs of one execution, by XLA's analysis."""

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0

    @property
    def weight(self) -> float:
        """The work, for dividing a kernel's time: a transcendental counts as 16 FLOPs."""
        return self.flops + 16 * self.transcendentals

    @property
    def total(self) -> float:
        """The work and the memory traffic: four bytes count as one FLOP."""
        return self.weight + self.bytes / 4


def count_elements(shape: str) -> int:
    """Return the number of elements of an array, of which the shape is in XLA's text form."""
    found = _SHAPE.search(shape)
    return math.prod(map(int, filter(None, found[3].split(",")))) if found else 0


def read_elements(user: Instruction, size: int, share: float) -> float:
    """Return how many of the `size` elements of its operand an instruction reads at most.

    `share` is the share of its own elements that are needed.
    """
    if user.opcode in LOCAL:
        return min(share * count_elements(user.shape), size)
    return size


def cost_of_product(*shapes: str) -> Cost:
    """Return the FLOPs of a product of stacks of matrices, or of a matrix and a vector."""
    dims = [[*map(int, _SHAPE.findall(shape)[0][2].split(","))] for shape in shapes]
    batch = dims[-1][0] if len(dims[-1]) == 3 else 1
    flops = 2 * math.isqrt(math.prod(map(math.prod, dims)) // batch)
    return Cost(float(flops), 0.0, float(sum(map(shape_bytes, shapes))))


def read_costs(analysis: dict[str, float]) -> Cost:
    """Return the costs in XLA's analysis. XLA gives -1 for an unknown cost; this returns 0."""
    keys = ("flops", "transcendentals", "bytes accessed")
    return Cost(*[max(0.0, float(analysis.get(k, 0.0))) for k in keys])


class Instruction(NamedTuple):
    """One instruction of a compiled module."""

    name: str
    opcode: str
    operands: tuple[int, ...]  # ids
    called: tuple[int, ...]  # ids of computations
    path: str  # of named scopes, in XLA's metadata
    id: int
    computation: int
    parameter: int
    target: str  # of a custom call
    shape: str


class CompiledModule:
    """The instructions of a loaded executable."""

    def __init__(self, loaded: Any):
        self.client = loaded.client
        self.loaded = loaded
        (module,) = loaded.hlo_modules()
        self.name = module.name
        options = _hlo.HloPrintOptions()
        options.print_metadata = False
        self.blocks, self.texts = split_text(module.to_string(options))
        message = read_message(module.as_serialized_hlo_module_proto())
        self.entry = message[6][0]
        self.computations: dict[int, list[Instruction]] = {}
        self.names: dict[int, str] = {}  # of computations
        for data in message[3]:
            self.read_computation(read_message(data))
        every = [i for listed in self.computations.values() for i in listed]
        self.by_id = {i.id: i for i in every}
        self.by_name = {i.name: i for i in every}
        self.callers = {c: i for i in every for c in i.called}
        self.users: dict[int, Instruction] = {o: i for i in reversed(every) for o in i.operands}
        self.costs: dict[str, Cost] = {}

    def read_computation(self, message: dict[int, list]) -> None:
        key = message[5][0]
        self.names[key] = message[1][0].decode()
        self.computations[key] = listed = []
        for data in message[2]:
            m = read_message(data)
            name, opcode = m[1][0].decode(), m[2][0].decode()
            path = read_message(m[7][0]).get(2, [b""])[0].decode() if 7 in m else ""
            operands = tuple(read_integers(m.get(36, ())))
            called = tuple(read_integers(m.get(38, ())))
            target = m.get(28, [b""])[0].decode()
            shape = self.texts.get(name, "").partition(f" {opcode}(")[0]
            more = m[35][0], key, m.get(9, [0])[0], target, shape
            listed.append(Instruction(name, opcode, operands, called, path, *more))

    @functools.cached_property
    def readers(self) -> dict[str, set[str]]:
        """The names of the instructions that read each instruction's results, by its name."""
        found: dict[str, set[str]] = {}
        for reader in self.by_id.values():
            todo = [*reader.operands] if reader.opcode not in FREE else []
            while todo:
                made = self.by_id[todo.pop()]
                if made.opcode in FREE:  # it forwards its operands
                    todo += made.operands
                else:
                    found.setdefault(made.name, set()).add(reader.name)
        return found

    def reach(self, instruction: Instruction) -> list[int]:
        """Return the computations that an instruction calls, directly or indirectly."""
        found: dict[int, None] = {}
        todo = list(instruction.called)
        while todo:
            key = todo.pop()
            if key not in found:
                found[key] = None
                todo += [c for i in self.computations[key] for c in i.called]
        return list(found)

    def cost(self, instruction: Instruction) -> Cost:
        """Return the costs of one execution of an instruction."""
        name = instruction.name
        if instruction.opcode in FREE:
            return Cost()
        caller = self.callers.get(instruction.computation)
        if caller is not None and caller.opcode == "fusion" and caller.name not in self.costs:
            self.cost(caller)  # finds the costs of what is in the fusion, too
        found = self.costs.get(name)
        if found is None:
            found = self.costs[name] = self.analyse(instruction)
            if instruction.opcode == "fusion":
                found = self.costs[name] = self.count_needed(instruction, found)
        return found

    def count_needed(self, fusion: Instruction, whole: Cost) -> Cost:
        """Return the cost of a fusion without the elements that nothing in it reads.

        XLA's analysis counts all elements of an instruction, also where the fusion only reads a
        slice of its result. `whole` is this analysis. The instructions in the fusion get their
        costs, too.
        """
        flops, transcendentals = whole.flops, whole.transcendentals
        for key in fusion.called:
            shares = self.share_elements(key)
            for i in self.computations[key]:
                if i.opcode in FREE or shares[i.id] == 1:
                    continue
                all_of_it = self.cost(i)
                part = Cost(
                    all_of_it.flops * shares[i.id],
                    all_of_it.transcendentals * shares[i.id],
                    all_of_it.bytes,
                )
                self.costs[i.name] = part
                flops -= all_of_it.flops - part.flops
                transcendentals -= all_of_it.transcendentals - part.transcendentals
        return Cost(max(flops, 0.0), max(transcendentals, 0.0), whole.bytes)

    def share_elements(self, computation: int) -> dict[int, float]:
        """Return the share of the elements of each instruction that a fused computation needs.

        An element that several instructions read is computed once for each of them, but counts as
        one element. An instruction that is not of the elementwise or moving kinds reads all.
        """
        listed = self.computations[computation]
        users: dict[int, list[Instruction]] = {}
        for i in listed:
            for operand in i.operands:
                users.setdefault(operand, []).append(i)
        shares: dict[int, float] = {}
        for i in reversed(listed):  # users come after their operands
            size = count_elements(i.shape) or 1
            read = sum(read_elements(u, size, shares[u.id]) for u in users.get(i.id, ()))
            shares[i.id] = min(read / size, 1.0) if i.id in users else 1.0
        return shares

    def analyse(self, instruction: Instruction) -> Cost:
        if instruction.target in PRODUCTS:
            x, y, *extras = [self.by_id[o].shape for o in instruction.operands]
            cost = cost_of_product(x, y, instruction.shape)
            cost = cost._replace(bytes=cost.bytes + sum(map(shape_bytes, extras)))
            half = instruction.target.endswith("symmetric")
            return cost._replace(flops=cost.flops / 2) if half else cost
        operands = [self.by_id[o] for o in dict.fromkeys(instruction.operands)]
        library_flops = count_library_flops(self.texts[instruction.name])
        if library_flops:
            return Cost(library_flops, 0.0, self.moved_bytes(instruction))
        lines = [f"%{o.name} = {o.shape} parameter({i})" for i, o in enumerate(operands)]
        lines.append(f"ROOT %{instruction.name} = {self.texts[instruction.name]}")
        blocks = [self.blocks[self.names[c]] for c in reversed(self.reach(instruction))]
        text = "\n".join(["HloModule m\n", *blocks, "ENTRY %only {", *lines, "}"])
        try:
            module = _hlo.hlo_module_from_text(text)
            costs = _jax.hlo_module_cost_analysis(self.client, module)
        except (RuntimeError, ValueError):  # an instruction that XLA does not read back
            return Cost(bytes=float(shape_bytes(instruction.shape)))
        found = read_costs(costs)
        return found._replace(flops=max(0.0, found.flops + correct_flops(text)))

    def total(self, computation: int) -> Cost:
        """Return the cost of a computation.

        The body of a loop counts once for each iteration, or once if their number is unknown.
        """
        costs = [self.cost(i) for i in self.computations[computation] if i.opcode not in CONTAINERS]
        for i in self.computations[computation]:
            if i.opcode in CONTAINERS:
                inner = [self.total(c) for c in i.called]
                costs += [Cost(*[x * (self.turns(i) or 1) for x in cost]) for cost in inner]
        return Cost(*[sum(parts) for parts in zip(Cost(), *costs, strict=True)])

    def turns(self, loop: Instruction) -> int | None:
        """Return the number of iterations of a loop, or None if XLA does not know it."""
        found = _TURNS.search(self.texts.get(loop.name, ""))
        return int(found[1]) if found else None

    def moved_bytes(self, instruction: Instruction) -> float:
        """Return the bytes of an instruction's operands and results, each counted once."""
        operands = [self.by_id[o].shape for o in dict.fromkeys(instruction.operands)]
        return float(sum(map(shape_bytes, [*operands, instruction.shape])))

    @functools.cached_property
    def peak(self) -> list[tuple[int, int]]:
        """The arrays in memory at the peak, except for constants.

        Each array is a pair: its bytes, and the id of the instruction that makes it. The list is
        empty if PJRT does not report the buffers.
        """
        stats = self.loaded.get_compiled_memory_stats()
        message = read_message(getattr(stats, "serialized_buffer_assignment_proto", b""))
        buffers, constant, found = {}, set(), []
        for m in map(read_message, message.get(1, ())):
            maker = read_message(m[3][0]).get(4, [0])[0] if 3 in m else 0
            buffers[m.get(1, [0])[0]] = m.get(2, [0])[0], maker
        for m in map(read_message, message.get(3, ())):  # allocations
            if m.get(12, [0])[0] or m.get(3, [0])[0]:  # of a constant, or of a thread
                constant.add(m.get(1, [0])[0])
        for m in map(read_message, message.get(5, ())):  # each allocation's buffers at the peak
            if m.get(1, [0])[0] not in constant:
                found += [buffers[i] for i in read_integers(m.get(2, ())) if i in buffers]
        return found


def split_text(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Split the text of a module.

    Returns:
      The text of each computation by its name, and the text of each instruction by its name. The
      text of an instruction is the part after `name =`.
    """
    blocks, texts, name, lines = {}, {}, "", []
    for line in text.split("\n"):
        if not line.startswith(" ") and line.endswith("{"):
            name = line.removeprefix("ENTRY ").lstrip("%").split(" ")[0].split("(")[0]
            lines = [line.removeprefix("ENTRY ")]
        elif line == "}" and lines:
            blocks[name] = "\n".join([*lines, line])
            lines = []
        elif lines:
            lines.append(line)
            found = _NAMED.match(line)
            if found:
                texts[found[1]] = found[2]
    return blocks, texts
