"""Run a program with symbolic sizes on arrays of true sizes.

Operands are padded, the compiled padded program runs, and its results are sliced. NumPy does the
padding and slicing in host memory, so that nothing is compiled for a true size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.api.jit import JitFunction
from weft.control.call import Call
from weft.core.aval import ShapedArray
from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr, eval_jaxpr, memo_jaxpr
from weft.core.primitive import Body
from weft.dtypes import is_extended
from weft.errors import ShapeError
from weft.mesh.client import default_device
from weft.mesh.sharding import NamedSharding, sharding_on
from weft.mesh.spec import PartitionSpec
from weft.padding.interpret import pad_jaxpr, run_padded
from weft.padding.sizes import Sizes, TrueSizes, is_symbolic
from weft.primitives.constant import stage_whole
from weft.run.pipeline import JitSpec
from weft.util import keep_newest
from weft.xla.array import ArrayImpl, array_from_host, host_view, put, retype_array
from weft.xla.lower import lower_jaxpr

MAX_RUNS = 4096  # cached sizes of one program, about 2 KB each


class Variable(NamedTuple):
    """A size that varies: its name, its value in a call, and its bucket, the size in memory."""

    name: str
    value: int
    bucket: int


class PaddedRun:
    """A padded program for fixed true sizes, with the padding of its operands and results.

    `call(*args)` takes operands of the true sizes and returns the results as a list.
    """

    __slots__ = ("call", "cuts", "jaxpr", "pads", "run", "weak")

    def __init__(self, jaxpr: Jaxpr, variables: tuple[Variable, ...], spec: JitSpec):
        self.jaxpr = pad_jaxpr(jaxpr, tuple([(v.name, v.bucket) for v in variables]))
        sizes = [put(np.int32(v.value)) for v in variables]
        self.run = functools.partial(jit_padded(self.jaxpr, spec), *sizes)
        true = true_sizes(variables)
        memory = Sizes({v.name: v.bucket for v in variables}, {})
        # (number of the operand, shape in memory, slice that holds the operand)
        self.pads: list[tuple] = []
        for k, a in enumerate(jaxpr.in_avals):
            part = find_part(a, true, memory)
            if part is not None:
                self.pads.append((k, memory.pad_type(a).shape, part))
        self.cuts: list[tuple] = []  # (number of the result, slice that holds it)
        for k, a in enumerate(jaxpr.out_avals):
            part = find_part(a, true, memory)
            if part is not None:
                self.cuts.append((k, part))
        outs = list_types(jaxpr, variables)
        self.weak = [(k, a) for k, a in enumerate(outs) if a.weak_type]

        as_it_is = not (self.pads or self.cuts or self.weak)
        self.call: Callable[..., list] = self.run if as_it_is else self.pad_and_cut

    def pad_and_cut(self, *args: Any) -> list:
        """Return the results of the program for operands of the true sizes."""
        return self.cut(self.run(*self.pad(args)))

    def pad(self, args: Sequence[Any]) -> list:
        """Return the operands padded to their shapes in memory."""
        given = list(args)
        for k, shape, part in self.pads:
            given[k] = pad_array(given[k], shape, part)
        return given

    def cut(self, outs: list) -> list:
        """Replace the padded results in a list by the results at true sizes; return the list."""
        for k, part in self.cuts:
            outs[k] = cut_array(outs[k], part)
        for k, aval in self.weak:
            outs[k] = retype_array(outs[k], aval)
        return outs


def true_sizes(variables: tuple[Variable, ...]) -> TrueSizes:
    """Return the true sizes of a call."""
    return TrueSizes({v.name: v.value for v in variables})


def list_types(jaxpr: Jaxpr, variables: tuple[Variable, ...]) -> list[ShapedArray]:
    """Return the types of the results of a program at true sizes."""
    true = true_sizes(variables)
    of = lambda a: a.update(shape=true.pad_type(a).shape)
    return [of(a) if is_symbolic(a) else a for a in jaxpr.out_avals]


def find_part(aval: ShapedArray, true: TrueSizes, memory: Sizes) -> tuple[slice, ...] | None:
    """Return the part of a padded array that is the array, None if it is all of it."""
    if not is_symbolic(aval):
        return None
    if is_extended(aval.dtype):
        raise ShapeError(f"jit: random keys among results must have known sizes; got {aval}.")
    shape = true.pad_type(aval).shape
    return None if shape == memory.pad_type(aval).shape else tuple(map(slice, shape))


def find_run(jaxpr: Jaxpr, variables: tuple[Variable, ...], spec: JitSpec) -> PaddedRun:
    """Return how a program with symbolic sizes runs at some sizes."""
    runs = jaxpr.memo.setdefault("padded runs", {})
    found = runs.get((variables, spec))
    if found is None:
        found = PaddedRun(jaxpr, variables, spec)
        keep_newest(runs, (variables, spec), found, MAX_RUNS)
    return found


def jit_padded(jaxpr: Jaxpr, spec: JitSpec) -> Any:
    """Return the jitted function of a padded program; all sizes of a bucket share it."""
    found = jaxpr.memo.get(("jitted", spec))
    if found is None:
        run = functools.partial(eval_jaxpr, jaxpr, ())
        found = jaxpr.memo["jitted", spec] = JitFunction(run, spec).make_callable()
    return found


# --- padding and cutting ----------------------------------------------------------------------


def pad_array(x: Any, shape: tuple[int, ...], part: tuple[slice, ...]) -> Any:
    """Return an array padded with zeros to a shape. `part` is the slice that holds the array."""
    found = np.zeros(shape, x.dtype)
    if type(x) is not ArrayImpl:
        found[part] = x
        return put(found)
    if x._sharding.num_devices > 1 and not is_even(x._sharding, shape):
        raise ShapeError(
            "jit: the bucket of an axis must be a multiple of the number of devices that it is "
            f"split over; got {x._sharding} for {x.aval}, {shape} in memory. Hint: buckets=lambda "
            "n: ... of multiples."
        )
    found[part] = host_view(x)
    return take_over(found, x._sharding, x._committed)


def cut_array(y: Any, part: tuple[slice, ...]) -> Any:
    """Return a slice of an array.

    If the slice cannot be sharded evenly like the array, it is replicated over the devices.
    """
    host, sharding = np.ascontiguousarray(host_view(y)[part]), y._sharding
    if sharding.num_devices > 1 and not is_even(sharding, host.shape):
        sharding = NamedSharding(sharding.mesh, PartitionSpec())
    return take_over(host, sharding, y._committed)


def is_even(sharding: Any, shape: tuple[int, ...]) -> bool:
    """Return True if a sharding splits an array of a shape into equal parts."""
    try:
        sharding.shard_shape(shape)
    except ShapeError:
        return False
    return True


def take_over(host: np.ndarray, sharding: Any, committed: bool) -> Any:
    """Return a NumPy array that nothing else refers to as an array with a sharding."""
    if committed or sharding != sharding_on(default_device()):
        return put(host, sharding, committed)
    return array_from_host(host, False)


# --- under transformations --------------------------------------------------------------------


@memo_jaxpr
def fix_sizes(jaxpr: Jaxpr, variables: tuple[Variable, ...]) -> Any:
    """Return the program at true sizes, without padding."""
    sizes = true_sizes(variables)
    avals = [sizes.pad_type(a) for a in jaxpr.in_avals]
    return stage_whole(lambda *xs: run_padded(jaxpr, sizes, xs), avals, jaxpr.name)


class PaddedCall(Call):
    """Call a program with symbolic sizes on arrays of true sizes.

    In an eager call, arrays are padded, and one compiled program runs for all sizes of a bucket.
    `jvp`, `vjp` and `vmap` transform the program with symbolic sizes, so that their results are
    compiled for buckets too. Inside another program, the call is lowered at the true sizes.
    """

    name = "padded_call"

    def bodies(self, params):  # UNKNOWN: its types are symbolic, but the operands' types are not
        return [Body(params["jaxpr"], "jaxpr", Runs.UNKNOWN, label=f"jit({params['spec'].name})")]

    def abstract_eval(self, *avals, jaxpr, variables, spec):
        return list_types(jaxpr, variables)

    def impl(self, *args, jaxpr, variables, spec):
        return find_run(jaxpr, variables, spec).call(*args)

    def lower(self, hlo, *args, jaxpr, variables, spec):
        return lower_jaxpr(hlo, fix_sizes(jaxpr, variables), args)


padded_call_p = PaddedCall()
