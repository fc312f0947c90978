"""One implementation under the clock: serve its cases to run.py, or time them all and print JSON.

usage: peers.py IMPL [--only SUBSTRING] [--budget SECONDS] [--serve] [--devices N] [--suite NAME]
IMPL is torch, numpy, numba, or the import name of a package with JAX's public API. The cases are in
cases_jax.py, cases_torch.py and cases_numpy.py, and with `--devices`, which splits the CPU, in
cases_devices.py, with `--suite survey` in survey_cases.py, with `--suite programs` in
cases_programs.py; what needs a fresh process is startup.py. `--cpu` counts seconds of all threads,
which other work on the machine changes less.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time

ROUNDS = 7
MOST_CALLS = 5000


def load_suite(impl, devices=1, suite=""):
    """The Suite of an implementation; only the wanted one is imported."""
    if suite == "programs":
        from cases_programs import programs_suite

        return programs_suite(impl)
    if suite == "survey":
        from survey_cases import survey_suite

        return survey_suite(impl)
    if devices > 1:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
        from cases_devices import devices_suite

        return devices_suite(impl)
    if impl == "torch":
        from cases_torch import torch_suite

        return torch_suite()
    if impl == "numpy":
        from cases_numpy import numpy_suite

        return numpy_suite()
    from cases_jax import jax_suite

    return jax_suite(impl)


class Timer:
    """A prepared case: warmed up, so that compiling is over, and with a batch size chosen."""

    clock = staticmethod(time.perf_counter)

    def __init__(self, suite, name, seconds):
        suite.reseed()
        self.sync, self.per = suite.sync, suite.cases[name].per
        self.fn = suite.cases[name].make()
        self.calls = 1
        self.batch()
        self.batch()
        once = self.batch() * self.per
        self.calls = min(MOST_CALLS, max(1, int(seconds / max(once, 1e-7))))
        self.batch()
        gc.collect()

    def batch(self):
        """Seconds per call, over one batch."""
        fn, calls = self.fn, self.calls
        start = self.clock()
        for _ in range(calls):
            out = fn()
        self.sync(out)
        return (self.clock() - start) / calls / self.per


class Quantity:
    """A prepared case whose figure is not a time: it is taken once."""

    calls = 1

    def __init__(self, suite, name):
        suite.reseed()
        self.value = suite.cases[name].make()

    def batch(self):
        """The figure."""
        return self.value


def prepared(suite, name, seconds):
    """The case, ready for its batches."""
    if suite.cases[name].timed:
        return Timer(suite, name, seconds)
    return Quantity(suite, name)


def describe(error):
    """An exception as one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def wait_until_idle(patience=1.0):
    """Return when this process's threads have gone to sleep.

    Those of OpenBLAS wait busily for some 0.1 s after a batch: whoever is next would share the
    processors with them (products of 1024 x 1024 took 1.4 of their time after NumPy's).
    """
    end = time.perf_counter() + patience
    busy = True
    while busy and time.perf_counter() < end:
        start = time.process_time()
        time.sleep(0.005)
        busy = time.process_time() - start > 0.001


def answer(suite, request, state):
    """Do one request of run.py: list the cases, prepare one, or time a batch of it."""
    if request["do"] == "list":
        return {"cases": list(suite.cases)}
    if request["do"] == "prepare":
        state.clear()
        if request["case"] not in suite.cases:
            return {"error": "no such case"}
        state["timer"] = prepared(suite, request["case"], request["seconds"])
        wait_until_idle()
        return {"calls": state["timer"].calls}
    seconds = state["timer"].batch()
    wait_until_idle()
    return {"seconds": seconds}


def serve(*wanted):
    """Answer requests, a JSON line each, until the input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not mix with the replies
    suite, state = load_suite(*wanted), {}
    for line in sys.stdin:
        try:
            reply = answer(suite, json.loads(line), state)
        except Exception as error:  # a missing feature is a result too
            reply = {"error": describe(error)}
        print(json.dumps(reply), file=replies, flush=True)


def time_all(impl, only, seconds, devices):
    """{case: seconds} and {case: error} of every case whose name contains `only`."""
    suite, results, errors = load_suite(impl, devices), {}, {}
    for name in suite.cases:
        if only not in name:
            continue
        try:
            timer = prepared(suite, name, seconds / ROUNDS)
            results[name] = statistics.median(timer.batch() for _ in range(ROUNDS))
        except Exception as error:
            errors[name] = describe(error)
    return {"impl": impl, "python": sys.version.split()[0], "results": results, "errors": errors}


def main():
    """Serve, or time everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("impl")
    parser.add_argument("--only", default="")
    parser.add_argument("--budget", type=float, default=0.6, help="seconds to spend on a case")
    parser.add_argument("--serve", action="store_true", help="answer requests of run.py")
    parser.add_argument("--devices", type=int, default=1, help="cases over so many CPU devices")
    parser.add_argument("--suite", choices=["survey", "programs"], help="other cases than common")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor")
    args = parser.parse_args()
    if args.cpu:
        Timer.clock = staticmethod(time.process_time)
    if args.serve:
        serve(args.impl, args.devices, args.suite)
    else:
        json.dump(time_all(args.impl, args.only, args.budget, args.devices), sys.stdout)


if __name__ == "__main__":
    main()
