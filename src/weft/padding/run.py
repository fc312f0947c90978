"""Run a program with symbolic sizes on arrays of true sizes.

Operands are padded, the compiled padded program runs, and its results are sliced. NumPy does the
padding and slicing in host memory, so that nothing is compiled for a true size. C++ moves small
padded operands to the device, and calls with operands that need no padding are all in C++.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.api.jit import JitFunction
from weft.control.call import Call
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr, eval_jaxpr, memo_jaxpr
from weft.core.primitive import Body
from weft.dtypes import WIDE, is_extended
from weft.errors import ShapeError
from weft.mesh.client import default_device
from weft.mesh.sharding import NamedSharding, sharding_on
from weft.mesh.spec import PartitionSpec
from weft.numpy.creation import ALIGNMENT
from weft.padding.interpret import pad_jaxpr, run_padded
from weft.padding.sizes import Sizes, TrueSizes, is_symbolic
from weft.primitives.constant import stage_whole
from weft.run.pipeline import JitSpec
from weft.util import keep_newest
from weft.xla.array import (
    SMALL,
    ArrayImpl,
    array_from_host,
    copy_writable,
    host_view,
    put,
    retype_array,
)
from weft.xla.compile import FastPath
from weft.xla.lower import lower_jaxpr

MAX_RUNS = 4096  # cached sizes of one program, about 2 KB each
_ARRAYS = frozenset((ArrayImpl,))


class Variable(NamedTuple):
    """A size that varies: its name, its value in a call, and its bucket, the size in memory."""

    name: str
    value: int
    bucket: int


class PaddedRun:
    """A padded program for fixed true sizes, with the padding of its operands and results.

    `call(*args)` takes operands of the true sizes and returns the results as a list. It pads with
    zeros, which the program `jaxpr` relies on.
    """

    __slots__ = (
        "buckets",
        "call",
        "cuts",
        "jaxpr",
        "outs",
        "pads",
        "run",
        "run_owned",
        "sizes",
        "weak",
    )

    def __init__(self, jaxpr: Jaxpr, variables: tuple[Variable, ...], spec: JitSpec):
        self.buckets = tuple([(v.name, v.bucket) for v in variables])
        self.jaxpr = pad_jaxpr(jaxpr, self.buckets, zeros=True)
        self.sizes = [put(np.int32(v.value)) for v in variables]
        jitted = jit_padded(self.jaxpr, spec)
        self.run = functools.partial(jitted, *self.sizes)
        # `run` copies NumPy's arrays, and this one does not.
        self.run_owned = functools.partial(jitted._on_copies, *self.sizes)
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
        self.outs = list_types(jaxpr, variables)
        cut = {k for k, _ in self.cuts}
        self.weak = [(k, a) for k, a in enumerate(self.outs) if a.weak_type and k not in cut]

        as_it_is = not (self.pads or self.cuts or self.weak)
        self.call: Callable[..., list] = self.run if as_it_is else self.pad_and_cut

    def pad_and_cut(self, *args: Any) -> list:
        """Return the results of the program for operands of the true sizes."""
        if not self.pads:
            return self.cut(self.run(*args))
        return self.cut(self.run_owned(*self.pad(args)))

    def pad(self, args: Sequence[Any]) -> list:
        """Return the operands padded to their shapes in memory.

        NumPy's arrays among them are copies, which nothing else refers to.
        """
        given = list(args)
        home = sharding_on(default_device())
        for k, shape, part in self.pads:
            given[k] = pad_array(given[k], shape, part, home)
        if not _ARRAYS.issuperset(map(type, args)):
            padded = {k for k, *_ in self.pads}
            given = [x if k in padded else copy_writable(x) for k, x in enumerate(given)]
        return given

    def cut(self, outs: list) -> list:
        """Replace the padded results in a list by the results at true sizes; return the list."""
        for k, part in self.cuts:
            outs[k] = cut_array(outs[k], part, self.outs[k].weak_type)
        for k, aval in self.weak:
            outs[k] = retype_array(outs[k], aval)
        return outs

    @property
    def is_exact(self) -> bool:
        """Return True if operands and results have the sizes of their buckets."""
        return not (self.pads or self.cuts)

    def run_exact(
        self, closed: Sequence[Any], args: Sequence[Any], out_tree: Any
    ) -> tuple[list, FastPath | None]:
        """Return the results of the program, and how C++ may run calls without padding.

        `closed` are the values that the function closes over. They are constants of the C++ call,
        as the sizes are. `args` are its arguments, and `out_tree` is the structure of its results.
        """
        consts = [*self.sizes, *closed]
        trace: Any = self.run.func.trace  # type: ignore[attr-defined]
        jitted = trace.__self__
        outs, fast = jitted.run_call((*consts, *map(copy_writable, args)), {})
        outs = self.cut(outs)
        if fast is None or fast.const_args or not _ARRAYS.issuperset(map(type, closed)):
            return outs, None
        if any(is_extended(a.dtype) for a in self.outs):  # C++ makes arrays of words of them
            return outs, None
        # C++ passes all constants to the program, so those that it does not take must go.
        kept = fast.kept_var_bitvec
        taken = [k for k, x in enumerate(kept) if x or k >= len(consts)]
        weak = dict(self.weak)
        return outs, fast._replace(
            out_pytree_def=out_tree,
            in_shardings=[fast.in_shardings[k] for k in taken],
            out_avals=[weak.get(k, a) for k, a in enumerate(fast.out_avals)],
            kept_var_bitvec=[kept[k] for k in taken],
            in_device_local_layouts=[None] * len(taken),
            const_args=[x for x, keep in zip(consts, kept, strict=False) if keep],
        )


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


def pad_array(x: Any, shape: tuple[int, ...], part: tuple[slice, ...], home: Any) -> Any:
    """Return an array padded with zeros to a shape. `part` is the slice that holds the array.

    Small arrays on the default device, whose sharding is `home`, are returned as NumPy's.
    """
    if type(x) is not ArrayImpl:
        host, sharding, committed = dtypes.cast_on_host(x, typeof(x).dtype), home, False
    else:
        host, sharding, committed = host_view(x), x._sharding, x._committed
        if sharding.num_devices > 1 and not is_even(sharding, shape):
            raise ShapeError(
                "jit: the bucket of an axis must be a multiple of the number of devices that it is "
                f"split over; got {sharding} for {x.aval}, {shape} in memory. Hint: buckets=lambda "
                "n: ... of multiples."
            )
    found = make_zeros(shape, host.dtype)
    found[part] = host
    if committed or sharding != home:
        return put(found, sharding, committed)
    small = found.nbytes <= SMALL and found.dtype not in WIDE
    return found if small else array_from_host(found, False)


def make_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return a NumPy array of zeros. XLA uses the memory of a large one without a copy."""
    size = math.prod(shape) * dtype.itemsize
    if size <= SMALL:
        return np.zeros(shape, dtype)
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def cut_array(y: Any, part: tuple[slice, ...], weak_type: bool) -> Any:
    """Return a slice of an array.

    If the slice cannot be sharded evenly like the array, it is replicated over the devices.
    """
    host, sharding = np.ascontiguousarray(host_view(y)[part]), y._sharding
    if sharding.num_devices > 1 and not is_even(sharding, host.shape):
        sharding = NamedSharding(sharding.mesh, PartitionSpec())
    if y._committed or sharding != sharding_on(default_device()):
        found = put(host, sharding, y._committed)
        return retype_array(found, found.aval.update(weak_type=True)) if weak_type else found
    return array_from_host(host, weak_type)


def is_even(sharding: Any, shape: tuple[int, ...]) -> bool:
    """Return True if a sharding splits an array of a shape into equal parts."""
    try:
        sharding.shard_shape(shape)
    except ShapeError:
        return False
    return True


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

    def bodies(
        self, params: Any
    ) -> list[Body]:  # UNKNOWN: its types are symbolic, but the operands' types are not
        return [Body(params["jaxpr"], "jaxpr", Runs.UNKNOWN, label=f"jit({params['spec'].name})")]

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return list_types(params["jaxpr"], params["variables"])

    def impl(
        self, *args: Any, jaxpr: Jaxpr, variables: tuple[Variable, ...], spec: JitSpec
    ) -> list:
        return find_run(jaxpr, variables, spec).call(*args)

    def lower(
        self, hlo: Any, *args: Any, jaxpr: Jaxpr, variables: tuple[Variable, ...], **_: Any
    ) -> list:
        return lower_jaxpr(hlo, fix_sizes(jaxpr, variables), args)


padded_call_p = PaddedCall()
