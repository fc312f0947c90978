"""Flags of `jax.config` under the switch."""

from tests.compat.test_finder import run  # noqa: F401

FLAGS = """
import logging, sys
said = []
class Handler(logging.Handler):
    def emit(self, record):
        said.append(record)
logging.getLogger("weft.config").setLevel(logging.DEBUG)
logging.getLogger("weft.config").addHandler(Handler())
import jax, numpy as np
config = jax.config
for value in (True, False):
    config.update("jax_softmax_custom_jvp", value)
    assert config.jax_softmax_custom_jvp is config.values["jax_softmax_custom_jvp"] is value
said = [r for r in said if "jax_softmax_custom_jvp" in r.getMessage()]
assert [r.levelno for r in said] == [logging.DEBUG], said
config.jax_persistent_cache_min_compile_time_secs = 0.5
assert config.jax_persistent_cache_min_compile_time_secs == 0.5
assert config.jax_pgle_profiling_runs == 7 and config.jax_optimization_level == "UNKNOWN"
config.parse_flags_with_absl()
assert (config.jax_dump_ir_modes, config.jax_remat3, config.x64_enabled) == ("hlo", False, True)
assert sys.argv[1:] == ["rest"]
config.update("jax_transfer_guard", "disallow")
try:
    jax.numpy.ones(3) + np.ones(3)
except jax.errors.JaxRuntimeError as error:
    print("Disallowed" in str(error))
for read in (lambda: config.jax_nonsense, lambda: config.update("jax_nonsense", 1)):
    try:
        read()
    except AttributeError:
        print("AttributeError")
"""


def test_flags_of_jax_are_taken(run):  # noqa: F811
    """Flags without effect are accepted, and a message at debug level is logged once."""
    flags = ["--jax_dump_ir_modes=hlo", "--nojax_remat3", "--jax_enable_x64", "rest"]
    out = run("-m", "weft", "-c", FLAGS, *flags, JAX_PGLE_PROFILING_RUNS="7")
    assert out.split() == ["True", "AttributeError", "AttributeError"]
