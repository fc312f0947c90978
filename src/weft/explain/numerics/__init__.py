"""Report where precision is lost, line by line: `weft.explain.numerics(f)(*args)`.

`numerics.diff` compares two reports. See docs/numerics.md.
"""

import numbers
import sys
import types
from collections.abc import Callable
from typing import Any

from weft.api.functions import check_callable
from weft.explain.numerics.difference import Difference, diff
from weft.explain.numerics.findings import add_remedies, find_findings, find_given
from weft.explain.numerics.follow import Followed, find_program, follow_program
from weft.explain.numerics.gradients import check_gradients
from weft.explain.numerics.precision import advise
from weft.explain.numerics.remedies import find_remedies
from weft.explain.numerics.report import Numerics, find_sums, make_lines, make_result
from weft.explain.subject import Subject
from weft.options import config
from weft.util import list_public

__all__ = ["Difference", "Numerics", "diff"]
__dir__ = list_public(__name__)


def numerics(
    fun: Callable[..., Any], *, tolerance: float | None = None, gradients: bool = False
) -> Callable[..., Numerics]:
    """Report where a function loses precision, by the user's line.

    The program of the function runs beside itself in a wider type: floats of up to 32 bits in
    float64, complex64 in complex128. A float64 is followed by its error, a second float64. Branches
    and loops go where the narrow run goes.

    Args:
      fun: a function that is jitted, or may be.
      tolerance: if given, each line is tried in bfloat16 and in float16, and the report says which
        lines may run in these so that results change by at most this much, relative to their
        largest element.
      gradients: if True, the rules of derivatives of each operation are compared with differences.

    Returns:
      A function of the arguments of `fun`. Its result is a `Numerics`.

    Raises:
      TracerError: the returned function is called within `jit`, `grad` or `vmap`.
      ValueError: `tolerance` is not a positive number.

    >>> def variance(x):
    ...     return jnp.mean(x * x) - jnp.mean(x) ** 2
    >>> report = weft.explain.numerics(variance)(jnp.arange(8.0) * 1.1 + 3000)
    >>> report.findings[0].kind
    'cancellation'
    """
    check_callable("numerics", fun, wraps=True)
    is_number = isinstance(tolerance, numbers.Real) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and tolerance > 0):
        raise ValueError(
            f"numerics: tolerance must be a positive number; got {tolerance!r}. "
            "Hint: 1e-2 allows results to change by one percent."
        )

    def followed(*args: Any, **kwargs: Any) -> Numerics:
        subject = Subject(fun, args, kwargs, "numerics")
        report = Numerics(subject.name)
        add_lines(report, follow_program(subject, find_remedies))
        if tolerance is None and not gradients:
            return report
        program, consts, leaves = find_program(subject)
        with config.scope(enable_x64=True, hints=False):
            if tolerance is not None:
                report.tolerance = tolerance
                report.advice = advise(program, [*consts, *leaves], tolerance)
            if gradients:
                report.gradients = check_gradients(program, [*consts, *leaves])
        return report

    return followed


def add_lines(report: Numerics, followed: Followed) -> None:
    """Add the findings, lines, results and sums of a recorded run to a report."""
    records, results, given = followed
    found = [*find_findings(records, results), *find_given(given, results)]
    report.findings = add_remedies(found, records)
    report.lines = make_lines(records)
    report.results = list(map(make_result, results))
    report.sums = find_sums(records)


class CallableModule(types.ModuleType):
    """The type of this module, which makes the module callable as `numerics`."""

    diff = staticmethod(diff)

    def __call__(
        self, fun: Callable[..., Any], *, tolerance: float | None = None, gradients: bool = False
    ) -> Callable[..., Numerics]:
        return numerics(fun, tolerance=tolerance, gradients=gradients)

    __call__.__doc__ = numerics.__doc__


sys.modules[__name__].__class__ = CallableModule
sys.modules[__name__].__doc__ = numerics.__doc__  # for `help(weft.explain.numerics)`
