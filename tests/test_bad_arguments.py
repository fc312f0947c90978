"""Arguments that no function takes: each function of a namespace, each parameter, bad values.

What is raised must be raised by a check of ours, not by Python inside the package, and name the
function; no call may hang. Each namespace is tried by a process of its own. With --all a sample is
tried, of functions and of values, in about two minutes; everything, in an hour, by

    WEFT_TEST_ARGUMENTS=every pytest --all tests/test_bad_arguments.py
"""

import json
import os
import subprocess
import sys

import pytest

NAMESPACES = [
    "weft", "weft.numpy", "weft.numpy.linalg", "weft.numpy.fft", "weft.lax", "weft.lax.linalg",
    "weft.random", "weft.nn", "weft.nn.initializers", "weft.image", "weft.ops",
    "weft.scipy.special", "weft.scipy.linalg", "weft.scipy.signal", "weft.scipy.fft",
    "weft.scipy.ndimage", "weft.scipy.integrate", "weft.scipy.stats",
    "weft.scipy.sparse.linalg", "weft.scipy.optimize", "weft.scipy.cluster.vq", "weft.tree_util",
]  # fmt: skip
ONE_IN = 1 if os.environ.get("WEFT_TEST_ARGUMENTS") == "every" else 3  # functions, and values

PROGRAM = r"""
import dis, importlib, inspect, itertools, json, re, resource, signal, sys
import traceback, warnings, zlib

warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
import numpy as np
import weft
from weft import config, lax, random
from weft.core.trace import current
from weft.core.source import is_own_file

SECONDS = 30
MATRIX = np.diag(np.arange(1, 4, dtype=np.float32)) + 1
KEY = np.array([0, 1], np.uint32)
TAKES = lambda *args, **kwargs: args[0] if args else 0.0
BAD = ["a", b"ab", None, object(), {1}, {"a": 1}, float("nan"), 2.5, -1, (), [None], [2.5],
       np.array("a"), 1j, 10**19, iter([1])]
# Values that are right for parameters of these names; others are found by trying.
RIGHT = {"key": KEY, "shape": (3,), "axis": 0, "dtype": np.float32, "f": TAKES, "fun": TAKES,
         "func": TAKES, "body_fun": TAKES, "axes": (0,), "n": 3, "subscripts": "ij->i"}
OTHERS = [MATRIX, MATRIX[0], 1, (3,), np.int32(1), TAKES, 2, "f", ((0, 1),), True]
# They do what is asked of them to the process, or wait for another one.
LEFT_OUT = set("load save savez set_printoptions printoptions infeed outfeed fromfile "
               "clear_caches live_arrays".split())
# NumPy's own functions: the texts are NumPy's.
FORWARDED = {"array2string", "array_repr", "array_str", "can_cast"}


class Late(BaseException):
    pass


def stop(*_):
    raise Late


def call(function, args, kwargs):
    # The error, or None.
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        function(*args, **kwargs)
    except Late as error:
        return error
    except Exception as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def is_checked(error, name):
    # Whether a `raise` of ours made the error, with a text that begins as ours do.
    if isinstance(error, (weft.errors.JaxRuntimeError, MemoryError)):
        return False
    entry = error.__traceback__
    while entry.tb_next is not None:
        entry = entry.tb_next
    code = entry.tb_frame.f_code
    operation = dis.opname[code.co_code[entry.tb_lasti]]
    raised = is_own_file(code.co_filename) and operation in ("RAISE_VARARGS", "RERAISE")
    return raised and re.match(r"[^\n]{1,60}?: ", str(error)) is not None


def is_chosen(*parts):
    # Whether it is in the sample, which is the same in every run.
    return zlib.crc32(repr(parts).encode()) % ONE_IN == 0


def try_function(name, function):
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    if any(p.kind == 3 and p.default is p.empty for p in parameters):
        return
    needed = [p for p in parameters if p.default is p.empty and p.kind in (0, 1)]
    given = [p for p in parameters if p.default is not p.empty and p.kind in (1, 3)]
    choices = [[RIGHT[p.name]] if p.name in RIGHT else OTHERS for p in needed]
    base = next((c for c in itertools.islice(itertools.product(*choices), 60)
                 if call(function, c, {}) is None), [c[0] for c in choices])
    chosen = lambda p: [x for i, x in enumerate(BAD) if is_chosen(name, p.name, i)]
    trials = [(p.name, bad, (*base[:i], bad, *base[i + 1:]), {})
              for i, p in enumerate(needed) for bad in chosen(p)]
    trials += [(p.name, bad, base, {p.name: bad}) for p in given for bad in chosen(p)]
    for parameter, bad, args, kwargs in trials:
        error = call(function, args, kwargs)
        if isinstance(error, Late):
            yield f"{name}({parameter}={bad!r}): no answer in {SECONDS} s"
        elif error is not None and name not in FORWARDED and not is_checked(error, name):
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} {last.name}"
            said = f"{type(error).__name__}: {error!s:.120} @ {place}"
            yield f"{name}({parameter}={str(repr(bad))[:40]}): {said}"


signal.signal(signal.SIGALRM, stop)
settings = dict(vars(config))
trace, source = current.trace, current.source
module = importlib.import_module(sys.argv[1])
ONE_IN, only = int(sys.argv[2]), sys.argv[3:]
found = []
for name in sorted(getattr(module, "__all__", None) or dir(module)):
    function = getattr(module, name)
    if (callable(function) and not isinstance(function, type) and not name.startswith("_")
            and name not in LEFT_OUT and not name.endswith("_p")
            and (name in only if only else is_chosen(name))):
        found += try_function(name, function)
        if (current.trace, current.source) != (trace, source):
            found.append(f"{name}: leaves a trace in force")
            current.trace, current.source = trace, source
        if vars(config) != settings:
            found.append(f"{name}: leaves options changed")
assert weft.jit(lambda x: x + 1)(1.0) == 2.0
print("FOUND", json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_bad_arguments_are_told_by_checks(namespace):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, namespace, str(ONE_IN)],
        capture_output=True,
        text=True,
        timeout=3600,
    )
    last = run.stdout.splitlines()[-1:] or [""]
    assert last[0].startswith("FOUND "), run.stderr[-2000:]
    found = json.loads(last[0].removeprefix("FOUND "))
    assert not found, "\n".join(found[:40])
