"""Checks of programs as they run: NaN, infinity, integers that wrap, random keys used twice.

One hook, which run/programs.py calls; nothing is done while the options for it are off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.jaxpr import Jaxpr
from weft.options import config
from weft.run.overflow import can_overflow, check_overflow
from weft.watch.key_reuse import follow_keys
from weft.watch.nans import Watch, check_results


class Observer(NamedTuple):
    """The faults to look for in a program: bad results, keys used twice, integers that overflow."""

    results: Sequence[Watch]
    keys: bool
    overflow: bool

    def observe(
        self,
        run: Callable[[], list],
        name: str,
        jaxpr: Jaxpr,
        args: Sequence[Any],
        names: Callable[[], Sequence[str]],
        inner: bool,
    ) -> list:
        """Return the results of `run`, which applies `jaxpr` to `args`, or raise for a finding.

        `names()` are the names of its last parameters; the first ones are closed over. If not
        `inner`, the program is a function of weft's, and the user's line is the line that calls it.
        """
        outs = follow_keys(jaxpr, args, run, inner) if self.keys else run()
        for watch in self.results:
            check_results(watch, name, jaxpr, args, outs, names, inner)
        if self.overflow and can_overflow(jaxpr):
            with config.scope(debug="off"):
                check_overflow(name, jaxpr, args, inner)
        return outs


def make_observer() -> Observer:
    """Return the checks that the options ask for, if the option `debug` is not "off"."""
    nans, infs, keys = config.debug_nans, config.debug_infs, config.debug_key_reuse
    overflow = config.debug_overflow
    # If infinities are allowed to propagate, an infinity must not hide a NaN.
    watches = [Watch(nans, False), Watch(False, infs)] if infs == "made" else [Watch(nans, infs)]
    return Observer([w for w in watches if any(w)], keys, overflow)
