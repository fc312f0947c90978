"""The client: made on first use, with the number of devices that the options say."""

import os
import subprocess
import sys

import pytest

import weft
from weft.mesh import client
from weft.mesh.client import default_device


def output(program, **environment):
    """Return the output of a program in a new process."""
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


@pytest.mark.parametrize("value", ["0", "1"])
def test_calls_return_before_results_are_there_unless_told_not_to(value):
    program = """
import weft
import weft.numpy as jnp
f = weft.jit(lambda x: weft.lax.fori_loop(0, 20000, lambda i, x: jnp.sin(x) + i, x))
f(jnp.zeros(2000)).block_until_ready()
print(f(jnp.ones(2000)).is_ready())
"""
    want = "True" if value == "0" else "False"
    assert output(program, JAX_CPU_ENABLE_ASYNC_DISPATCH=value) == want


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


def test_too_few_threads_for_collectives(monkeypatch):
    monkeypatch.setenv("NPROC", "4")
    assert [client.has_few_threads(n) for n in (1, 2, 3)] == [False, False, True]
    monkeypatch.setenv("NPROC", "many")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(0 if pid else 6))
    assert [client.has_few_threads(n) for n in (3, 4)] == [False, True]


def test_devices_by_number_and_memory_by_name():
    (device,) = weft.devices()
    assert client.has_clients() and client.restore_device("cpu", 0) is device
    assert client.find_devices("pickle", "cpu", [0, 0]) == [device, device]
    with pytest.raises(ValueError) as info:
        client.find_devices("pickle", "cpu", [5, 0, 2])
    assert str(info.value) == (
        "pickle: pickled devices must exist here; got ids [2, 5], and 1 devices. Hint: on CPU, ask "
        "for more before the first use of weft: WEFT_NUM_CPU_DEVICES=6 or "
        "XLA_FLAGS=--xla_force_host_platform_device_count=6."
    )
    kinds = [memory.kind for memory in device.addressable_memories()]
    assert client.resolve_memory_kind("f", device, None) == device.default_memory().kind
    assert [client.resolve_memory_kind("f", device, k) for k in kinds] == kinds
    with pytest.raises(ValueError) as info:
        client.resolve_memory_kind("f", device, "tape")
    assert str(info.value) == f"f: memory_kind must be one of {', '.join(kinds)}; got 'tape'."


def test_importing_makes_no_client():
    program = "from weft.mesh.client import client, has_clients; print(has_clients());"
    assert output(program + "client(); print(has_clients())") == "False\nTrue"
