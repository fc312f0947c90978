"""The environment of every test and doctest; to be imported before the first `import weft`."""

import importlib.metadata
import os
import signal
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

# The environment must not affect the tests: weft's defaults apply, such as float32.
NAMES = ["CACHE_DIR", "KERNELS", "TEST_ALL", "TEST_ARGUMENTS", "TEST_DEVICES"]
KEPT = {f"WEFT_{name}" for name in NAMES}
for name in [name for name in os.environ if name.startswith("WEFT_") and name not in KEPT]:
    del os.environ[name]

# Read here and not by pytest_configure: the flags below come before the first import. The variable
# tells the processes that tests and pytest-xdist start.
if "--all" in sys.argv:
    os.environ["WEFT_TEST_ALL"] = "1"
ALL = "WEFT_TEST_ALL" in os.environ

# The programs of tests are many and small, and most run once: XLA compiles them in less than half
# the time if it is told not to optimize them. The flags are part of the key of the disk cache.
# A test of the speed, memory or text of a compiled program asks for `as_for_users`.
QUICK = {"xla_backend_optimization_level": (0, 3)}  # here, and for users
if importlib.metadata.version("jaxlib").startswith("0.10."):  # later ones have no other emitters
    QUICK["xla_cpu_use_fusion_emitters"] = (False, True)
    QUICK["xla_cpu_parallel_codegen_split_count"] = (1, 32)  # a module of LLVM's costs 2 ms
# Passes that only move code of loops: a tenth of the time to compile programs with loops.
LOOP_PASSES = "while-loop-invariant-code-motion,simplify-while-loops"
QUICK["xla_disable_hlo_passes"] = (LOOP_PASSES, "")
flags = [] if ALL else [f"--{name}={here}" for name, (here, _) in QUICK.items()]

# Tests of many devices are run with that many; see tests/parallel/devices.py.
if "WEFT_TEST_DEVICES" in os.environ:
    count = os.environ["WEFT_TEST_DEVICES"]
    flags += [f"--xla_force_host_platform_device_count={count}"]

os.environ["XLA_FLAGS"] = " ".join(flags).lower()

# A shell makes its background processes ignore Ctrl-C, which tests send to processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiled programs are shared by all tests and workers, and kept from run to run.
os.environ.setdefault("WEFT_CACHE_DIR", str(CHECKOUT / ".cache" / "weft"))
