"""Report the costs of a program, line by line: `weft.explain(f)(*args)`.

`explain.memory(f)` and `explain.compile(f)` return parts of the report and do not run the program.
`explain.numerics(f)` reports where precision is lost: docs/numerics.md.
"""

import sys
import types
from collections.abc import Callable
from typing import Any

from weft.api.functions import check_callable
from weft.explain import numerics
from weft.explain.costs import Costs
from weft.explain.machine import raise_peaks
from weft.explain.memory import find_residuals, list_live
from weft.explain.numerics import CallableModule as CallableNumerics
from weft.explain.padding import measure_padding
from weft.explain.profiles import profile_calls
from weft.explain.report import Report
from weft.explain.subject import Phase, Subject, name_operations
from weft.mesh.blocks import count_kept_bytes
from weft.optimize.passes import run_passes
from weft.util import list_public

__all__ = ["Report", "compile", "memory", "numerics"]
__dir__ = list_public(__name__)

RUNS = 5
MIN_SECONDS = 1e-4  # shorter kernels are too noisy for an estimate of the machine's peak


def explain(fun: Callable[..., Any], *, runs: int = RUNS) -> Callable[..., Report]:
    """Return a function that runs `fun` a few times and reports its costs, line by line.

    Args:
      fun: a function of pytrees of arrays, jitted or not.
      runs: the number of calls that are timed before the profiler starts, and again after it
        stops. At least this many calls run under the profiler. The default is 5.

    Returns:
      A function of the arguments of `fun` that returns a `Report`. It has, for each of your lines,
      the share of the measured time in the forward and the backward pass, FLOPs and bytes by XLA's
      analysis, the rates, and the bound: arithmetic, memory or overhead. It also has the times of
      tracing, lowering and compiling, the arrays saved for the backward pass, the peak memory,
      kernels, collectives and host calls. It prints as text, and `report.save("page.html")` writes
      a page.

    >>> report = weft.explain(lambda x: x @ x)(jnp.ones((64, 64)))
    >>> [work.flops for place, work in report.lines]
    [524288.0]
    """

    check_callable("explain", fun, wraps=True)

    def explained(*args: Any, **kwargs: Any) -> Report:
        subject = Subject(fun, args, kwargs)
        report = begin_report(subject, runs=True)
        with name_operations():
            subject.call()
            profile = profile_calls(subject.call, runs)
        note = f"the quickest of {2 * runs} calls without the profiler"
        report.phases.append(Phase("running", profile.plain, note))
        costs = Costs(subject.module, subject.attribution, profile)
        best = max(
            [k.flops / k.seconds for k in costs.kernels if k.seconds > MIN_SECONDS], default=0.0
        )
        report.add_costs(costs, raise_peaks(subject.platform, best))
        report.host_bytes = subject.host_bytes()
        return add_memory(report, subject)

    return explained


def memory(fun: Callable[..., Any]) -> Callable[..., Report]:
    """Return a function that reports the memory that `fun` needs, without running `fun`.

    Each array of the report comes with the user's line that makes it.

    Args:
      fun: a function of pytrees of arrays, jitted or not.

    Returns:
      A function of the arguments of `fun` that returns a `Report`. `Report.residuals` lists the
      arrays that the forward pass saves for the backward pass. `Report.live` lists the arrays that
      are in memory at the peak. `Report.memory` has totals in bytes.

    >>> f = weft.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w)))
    >>> report = weft.explain.memory(f)(jnp.ones((3, 4)), jnp.ones((5, 3)))
    >>> [(str(r.aval), r.source) for r in report.residuals if not r.is_argument]
    [('f32[5,4]', 'tanh_slope')]
    """

    check_callable("explain.memory", fun, wraps=True)

    def explained(*args: Any, **kwargs: Any) -> Report:
        subject = Subject(fun, args, kwargs, "explain.memory")
        return add_memory(Report(subject.name), subject)

    return explained


def compile(fun: Callable[..., Any]) -> Callable[..., Report]:
    """Return a function that reports how `fun` is compiled, without running `fun`.

    Args:
      fun: a function of pytrees of arrays, jitted or not.

    Returns:
      A function of the arguments of `fun` that returns a `Report`. The report has the seconds of
      tracing, lowering and compiling. It says if the executable came from a cache, and the reason
      if it did not. It lists the kernels, the operations that are fused in each, and FLOPs and
      bytes by line.

    >>> report = weft.explain.compile(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    >>> [phase.name for phase in report.phases]
    ['tracing', 'lowering', 'compiling']
    """

    check_callable("explain.compile", fun, wraps=True)

    def explained(*args: Any, **kwargs: Any) -> Report:
        subject = Subject(fun, args, kwargs, "explain.compile")
        report = begin_report(subject)
        report.add_costs(Costs(subject.module, subject.attribution), None)
        return report

    return explained


def begin_report(subject: Subject, runs: bool = False) -> Report:
    """Return a report that has the stages of the user's own program.

    Args:
      subject: the function and its arguments.
      runs: True if the program may run, to measure the time of padding.
    """
    report = Report(subject.name, subject.stages.phases)
    if subject.padded is not None:
        report.padding = measure_padding(subject.padded, runs)
    return report


def add_memory(report: Report, subject: Subject) -> Report:
    """Add the residuals of the backward pass and the peak memory to a report."""
    program = subject.located.traced._program
    names = [*["closed over"] * len(program.consts), *program.argument_names()]
    report.residuals = find_residuals(run_passes(program.jaxpr, program.spec.passes), names)
    report.live = list_live(subject.module, subject.attribution, subject.parameter_names())
    stats = subject.located.compiled.memory_analysis()
    temporaries = stats.temp_size_in_bytes
    is_known = report.live or not temporaries  # a GPU's compiler does not say what is live
    report.memory = {
        **({"live": sum(x.bytes for x in report.live)} if is_known else {}),
        "arguments": stats.argument_size_in_bytes,
        "results": stats.output_size_in_bytes - stats.alias_size_in_bytes,
        "temporaries": temporaries,
        "kept": count_kept_bytes(),
    }
    return report


class CallableModule(types.ModuleType):
    """The type of this module, which makes the module callable as `explain`.

    The class declares the members of the module for type checkers.
    """

    numerics: CallableNumerics
    memory = staticmethod(memory)
    compile = staticmethod(compile)

    def __call__(self, fun: Callable[..., Any], *, runs: int = RUNS) -> Callable[..., Report]:
        return explain(fun, runs=runs)

    __call__.__doc__ = explain.__doc__


sys.modules[__name__].__class__ = CallableModule
sys.modules[__name__].__doc__ = explain.__doc__  # for `help(weft.explain)`
