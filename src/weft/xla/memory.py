"""Programs that need much memory: which ones do, and the error line if one runs out of it.

XLA says how many bytes it could not allocate. The line that is added names the largest values and
the user's lines that compute them. Elsewhere: a limit that programs are made to fit (`footprint`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from weft.core.jaxpr import Eqn, Jaxpr, held_jaxprs
from weft.core.source import describe_maker
from weft.errors import JaxRuntimeError

MAX_NAMED = 3  # values in an error
MIN_SHARE = 0.01  # of the largest value, that another value must have to be named


@functools.cache
def much_memory() -> int:
    """Return an eighth of this machine's memory, in bytes. Programs that need more block.

    If a result's memory cannot be allocated after its call has returned, the process ends when
    NumPy reads the result. A call with ready operands raises instead; so large programs block.
    The same holds for values that a program stores while it runs. Without blocking, their error
    would be raised where a result is read, and could not name the program.
    """
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8
    except (AttributeError, OSError, ValueError):  # Windows
        return 1 << 31


def needs_much_memory(loaded: Any, jaxpr: Jaxpr, out_avals: Sequence[Any]) -> bool:
    """Return True if the results of a program, or the values that it stores, are large.

    XLA is asked for the size of the stored values only if all values together are large, because
    its answer takes up to milliseconds.
    """
    limit = much_memory()
    total, programs = 0, [jaxpr]
    for a in out_avals:
        total += a.nbytes
    if total > limit:
        return True
    while programs:
        for eqn in programs.pop().eqns:
            for v in eqn.outvars:
                count = getattr(v.aval.physical, "nbytes", 0)
                total += count if type(count) is int else 0  # not a size that varies
            if not eqn.primitive.memoize_type:
                programs += held_jaxprs(eqn)
    if total <= limit:
        return False
    try:
        return loaded.get_compiled_memory_stats().temp_size_in_bytes > limit
    except JaxRuntimeError:  # a plugin that does not know
        return False


def describe_memory(
    out_avals: Sequence[Any], args: Sequence[Any], jaxpr: Jaxpr | None = None
) -> str:
    """Return the error line that names the arrays of a program that ran out of memory.

    If `jaxpr` is given, the line also names the largest values in it, and the user's lines.
    """
    given = [a.aval for a in args if hasattr(a, "aval")]
    held = sorted([*out_avals, *given], key=count_bytes, reverse=True)
    total = sum(map(count_bytes, held)) / 2**30
    largest = ", ".join(map(describe_size, keep_large(held)))
    made = ", ".join(largest_values(jaxpr)) if jaxpr is not None else ""
    return (
        "weft: operands, results and intermediate values must fit the memory of a device; got "
        f"operands and results of {total:.3g} GiB, the largest of them {largest}"
        f"{'; the largest values computed are ' + made if made else ''}. Hint: smaller batches, "
        "lax.map over parts of the data, jit(f, memory='2GB'), or weft.checkpoint around what a "
        "gradient keeps."
    )


def largest_values(jaxpr: Jaxpr) -> list[str]:
    """Return the largest values that a program computes, as text, one for each expression.

    XLA may fuse such a value into the operation that reads it, and then does not store it. A
    program that one expression made may be an operation outside `jit`. Operations are kept for
    other lines, so the line is not named: the traceback shows it.
    """
    made: dict[str, Any] = {}
    for eqn in all_eqns(jaxpr):
        avals = [v.aval for v in eqn.outvars]
        maker = describe_maker(eqn.source, eqn.primitive.name)
        made[maker] = max([*avals, *filter(None, [made.get(maker)])], key=count_bytes)
    ranked = sorted(made.items(), key=lambda item: count_bytes(item[1]), reverse=True)
    if len(ranked) < 2:
        return []
    kept = keep_large([aval for _, aval in ranked])
    return [f"{describe_size(aval)} {maker}" for (maker, aval), _ in zip(ranked, kept)]


def keep_large(avals: Sequence[Any]) -> list[Any]:
    """Return the values that are worth naming, of values that are ordered by size."""
    least = MIN_SHARE * count_bytes(avals[0]) if avals else 0
    return [a for a in avals[:MAX_NAMED] if count_bytes(a) >= least]


def describe_size(aval: Any) -> str:
    """Return a value's type and size, as `f32[1024,1024] (0.00391 GiB)`."""
    return f"{aval} ({count_bytes(aval) / 2**30:.3g} GiB)"


def count_bytes(aval: Any) -> int:
    """Return the bytes of a value; 0 for a token, and for a size that varies."""
    count = getattr(aval.physical, "nbytes", 0)
    return count if type(count) is int else 0


def all_eqns(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """Return the equations of a program and of the programs that it holds."""
    for eqn in jaxpr.eqns:
        held = () if eqn.primitive.memoize_type else held_jaxprs(eqn)
        for inner in held:
            yield from all_eqns(inner)
        if not held:
            yield eqn
