"""Compute costs by the user's line and by kernel: measured times, and XLA's counts of work."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Container, Sequence

from weft.explain.machine import Peaks
from weft.explain.modules import CONTAINERS, CompiledModule, Instruction, shape_bytes
from weft.explain.origins import Attribution, Place
from weft.explain.profiles import Profile, cut_events, share_time
from weft.xla.compile import COLLECTIVES

# At the machine's peak rates, the work takes some part of the measured time. If that part is
# smaller than this, the bound of the time is "overhead", not arithmetic or memory.
BUSY = 0.15


@dataclasses.dataclass
class Work:
    """The costs of one line, or of one kernel, in a run of the program."""

    forward: float = 0.0  # seconds
    backward: float = 0.0  # seconds, in a reverse pass
    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0
    operations: dict[str, None] = dataclasses.field(default_factory=dict)  # primitives, in order
    # the smallest and the largest share of a run's time, over the runs
    spread: tuple[float, float] = dataclasses.field(default=(0.0, 0.0), kw_only=True)

    @property
    def seconds(self) -> float:
        return self.forward + self.backward

    def add(self, work: Work) -> None:
        """Add the costs of other work to these."""
        self.forward += work.forward
        self.backward += work.backward
        self.flops += work.flops
        self.transcendentals += work.transcendentals
        self.bytes += work.bytes
        self.operations.update(work.operations)

    def bound(self, peaks: Peaks | None) -> str:
        """Return the bound of the time: "arithmetic", "memory", or "overhead" if it is neither."""
        if peaks is None or not self.seconds:
            return ""
        arithmetic = self.flops / peaks.flops + self.transcendentals / peaks.transcendentals
        memory = self.bytes / peaks.bytes
        if max(arithmetic, memory) < BUSY * self.seconds:
            return "overhead"
        return "arithmetic" if arithmetic >= memory else "memory"


@dataclasses.dataclass
class Kernel(Work):
    """A kernel: its costs, the operations that are fused in it, and the lines that wrote them."""

    name: str = ""
    kind: str = ""
    runs: float = 0.0
    places: dict[Place, float] = dataclasses.field(default_factory=dict)  # lines, and their seconds
    moved: float = 0.0  # bytes of the operands of a collective or a host call


class Costs:
    """The costs of a program by line and by kernel.

    With a profile, times are measured. Without one, the costs are only XLA's counts, and each
    instruction is counted once.
    """

    def __init__(
        self, module: CompiledModule, attribution: Attribution, profile: Profile | None = None
    ):
        self.module = module
        self.attribution = attribution
        self.lines: dict[Place, Work] = {}
        self.kernels: list[Kernel] = []
        self.wall = self.profiled = self.attributed = 0.0
        self.unknown: dict[str, float] = {}  # seconds by names that the program does not have
        self.runs = 0, 0  # under the profiler: how many counted, and how many ran
        if profile is None:  # in program order; a loop or a branch gives its members
            for instruction in module.computations[module.entry]:
                for kernel, times in attribution.members(instruction):
                    self.add_instruction(kernel, 0.0, times, True)
        else:
            self.add_profile(profile)
        self.kernels.sort(key=lambda k: (-k.seconds, -k.flops, -k.bytes))

    def is_container(self, name: str) -> bool:
        """Return True if the instruction of this name contains others, as a loop does."""
        found = self.module.by_name.get(name)
        return found is not None and found.opcode in CONTAINERS

    def add_profile(self, profile: Profile) -> None:
        """Add the costs of the instructions in a profile, as means over its runs."""
        windows = [
            cut_events(listed, self.module.readers)
            for listed in profile.events_of(self.module.name)
        ]
        runs = len(windows)
        self.runs = runs, profile.calls
        ours = [event for listed in windows for event in listed]
        counts = collections.Counter(e.name for e in ours)
        calls = len({e.run for e in ours})
        devices = len(self.module.loaded.local_devices())
        self.wall = self.profiled = profile.wall / runs
        shared = [share_time(listed, self.is_container) for listed in windows]
        names = dict.fromkeys(name for found in shared for name in found)
        mean = {n: sum(found.get(n, 0.0) for found in shared) / runs for n in names}
        around = {n for n in names if self.is_container(n) and self.has_run(n, counts)}
        seconds = self.correct(mean, around, profile.plain)
        for name, taken in seconds.items():
            instruction = self.module.by_name.get(name)
            if instruction is None:  # a device may run several under one name
                self.unknown[name] = taken
                continue
            # some instructions have several events in a run
            known = self.attribution.count_runs(instruction)
            each = counts[name] / devices if known is None else known * calls
            self.add_instruction(instruction, taken, each / runs, name not in around, devices)
        self.attributed = sum(seconds.values()) - sum(self.unknown.values())
        self.add_spread(shared, [(end - start) * 1e-9 for start, end in profile.windows])

    def correct(
        self, seconds: dict[str, float], around: Container[str], plain: float
    ) -> dict[str, float]:
        """Subtract the overhead of the profiler from the times of instructions.

        The profiler writes its events between instructions. So its overhead is first taken from
        time between instructions: time that belongs to no instruction, or to a container such as a
        loop. If the overhead is larger than that, the times of all instructions are scaled down.

        Args:
          seconds: the time of each instruction in a run, by name.
          around: the names of containers whose members ran as kernels of their own.
          plain: the seconds of a run without the profiler; 0 if unknown.
        """
        added = self.wall - plain if plain else 0.0
        if added <= 0.0:
            return seconds
        between = self.wall - sum(t for n, t in seconds.items() if n not in around)
        left = max(0.0, 1.0 - added / between) if between > 0.0 else 0.0
        scale = min(1.0, plain / (self.wall - between)) if self.wall > between else 1.0
        self.wall = plain
        return {n: t * (left if n in around else scale) for n, t in seconds.items()}

    def add_spread(self, shared: Sequence[dict[str, float]], lengths: Sequence[float]) -> None:
        """Set the smallest and the largest share that each line has of a run's time."""
        shares: dict[Place, list[float]] = {place: [] for place in self.lines}
        for found, length in zip(shared, lengths, strict=True):
            taken = dict.fromkeys(self.lines, 0.0)
            for kernel in self.kernels:
                whole = sum(kernel.places.values())
                for place, part in kernel.places.items():
                    taken[place] += found.get(kernel.name, 0.0) * (part / whole if whole else 0.0)
            for place, t in taken.items():
                shares[place].append(t / length)
        for place, every in shares.items():
            self.lines[place].spread = min(every), max(every)

    def has_run(self, container: str, counts: dict[str, int]) -> bool:
        """Return True if instructions inside a loop or a branch ran as kernels of their own."""
        held = self.module.reach(self.module.by_name[container])
        reached = map(self.module.computations.__getitem__, held)
        return any(i.name in counts for listed in reached for i in listed)

    def add_instruction(
        self, instruction: Instruction, taken: float, each: float, is_work: bool, devices: int = 1
    ) -> None:
        """Count an instruction that takes `taken` seconds and runs `each` times in a run.

        `is_work` is False for a container whose members are counted themselves.
        """
        kernel = Kernel(name=instruction.name, kind=kind_text(instruction), runs=each)
        if is_collective(instruction) or is_host_call(instruction):
            given = sum(shape_bytes(self.module.by_id[o].shape) for o in instruction.operands)
            kernel.moved = each * devices * given
        members = self.attribution.members(instruction) if is_work else []
        # a loop that runs as one kernel: its members share its time in proportion to their work
        weights = [times * self.attribution.cost(i).total for i, times in members]
        if not any(weights):
            place, back, operation = self.attribution.origin(instruction)
            self.add_part(kernel, place, back, taken, Work(operations={operation: None}))
            members = []
        for (member, times), weight in zip(members, weights, strict=False):
            cost, count = self.attribution.cost(member), times * each * devices
            for p in self.attribution.split(member):
                work = Work(flops=p.flops * count, operations={p.operation: None})
                work.transcendentals = cost.transcendentals * count * p.share
                work.bytes = cost.bytes * count * p.share
                seconds = taken * p.share * weight / sum(weights)
                self.add_part(kernel, p.place, p.backward, seconds, work)
        if is_work or taken:
            self.kernels.append(kernel)

    def add_part(
        self, kernel: Kernel, place: Place, is_backward: bool, taken: float, work: Work
    ) -> None:
        if is_backward:
            work.backward = taken
        else:
            work.forward = taken
        kernel.add(work)
        self.lines.setdefault(place, Work()).add(work)
        kernel.places[place] = kernel.places.get(place, 0.0) + taken

    def sorted_lines(self) -> list[tuple[Place, Work]]:
        """Return lines and their costs, the most expensive first."""
        return sorted(self.lines.items(), key=lambda x: (-x[1].seconds, -x[1].flops, -x[1].bytes))


def kind_text(instruction: Instruction) -> str:
    if is_collective(instruction):
        return f"collective {instruction.opcode}"
    if is_host_call(instruction):
        return "host call"
    if instruction.opcode == "custom-call":
        return f"call of {instruction.target}"
    return instruction.opcode


def is_collective(instruction: Instruction) -> bool:
    return instruction.opcode.removesuffix("-start") in COLLECTIVES


HOST_CALLS = ("xla_buffer_python", "xla_ffi_python", "xla_ffi_partitioned_python")


def is_host_call(instruction: Instruction) -> bool:
    return instruction.target.startswith(HOST_CALLS) or instruction.opcode in (
        "infeed", "outfeed", "send", "recv",
    )  # fmt: skip
