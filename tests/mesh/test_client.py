"""The client: made on first use, with as many devices as the options say."""

import os
import subprocess
import sys

import pytest

import weft
from weft.mesh.client import default_device


def output(program, **environment):
    """What a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COUNT = "import weft; print(weft.device_count())"


@pytest.mark.parametrize(
    "environment",
    [
        {"WEFT_NUM_CPU_DEVICES": "3"},
        {"JAX_NUM_CPU_DEVICES": "3"},
        {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"},
    ],
)
def test_the_number_of_devices(environment):
    assert output(COUNT, **environment) == "3"


def test_the_number_of_devices_as_an_option():
    assert output("import weft; weft.config.update('jax_num_cpu_devices', 2);" + COUNT) == "2"
    assert output(COUNT) == "1"


def test_importing_makes_no_client():
    program = "from weft.mesh.client import make_clients; print(make_clients.cache_info().misses)"
    assert output(program) == "0"


def test_jax_in_the_process_is_refused():
    program = """
import sys, types
sys.modules["jax"] = types.ModuleType("jax")
try:
    import weft
except ImportError as error:
    print(error)
"""
    assert output(program) == (
        "weft: jaxlib must belong to one library in a process; got jax imported before weft. "
        "Hint: import only one of them, each in a process of its own."
    )


def test_the_default_device_may_be_a_platform():
    with weft.default_device("cpu"):
        assert default_device() is weft.devices()[0]
    with (
        weft.default_device("abacus"),
        pytest.raises(
            RuntimeError, match=r"^device: the platform must be one of cpu; got 'abacus'"
        ),
    ):
        default_device()
