"""Clients of platforms: those registered, and made again."""

import functools
import subprocess
import sys

import numpy as np
import pytest

import weft
from weft.extend import backend
from weft.mesh.client import FACTORIES, choose_platforms

ANEW = """
import functools, weft, weft.numpy as jnp
from weft.extend import backend
from weft.mesh.client import make_cpu_client
from weft.options import HELD
kept = functools.cache(lambda: object())
backend.register_backend_cache(kept, "test")
f, before, old = weft.jit(lambda x: x + 1), kept(), backend.get_backend()
assert f(1) == 2
add = lambda: {(jnp.ones(3) + 1.5).tolist()[0] for _ in range(40)}
assert add() == {2.5} and any(HELD)
backend.clear_backends()
assert not any(HELD) and add() == {2.5}
weft.config.update("num_cpu_devices", 2)
backend.register_backend_factory("mine", make_cpu_client, priority=10)
backend.register_backend_factory("broken", lambda: 1 / 0, priority=20)
backend.clear_backends()
assert f(1) == 2 and len(weft.devices()) == 2 and backend.get_backend() is not old
assert list(backend.backends()) == ["mine", "cpu"] and kept() is not before
old = backend.get_backend()
backend.get_backend.cache_clear()
assert backend.get_backend() is not old and f(1) == 2 and add() == {2.5}
"""


def test_clients_are_made_anew():
    done = subprocess.run([sys.executable, "-c", ANEW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "platform broken is not used" in done.stderr


def test_platforms_that_are_registered_come_first():
    try:
        for name, priority in (("b", 1), ("a", 2)):
            backend.register_backend_factory(name, functools.partial(int, 0), priority=priority)
        assert choose_platforms([])[:2] == ["a", "b"] and choose_platforms([])[-1] == "cpu"
    finally:
        FACTORIES.clear()


def test_options_for_compiling():
    first = weft.devices()[0]
    flags = {"xla_backend_optimization_level": 1}
    options = backend.get_compile_options(1, 1, np.array([[first]]), flags)
    assert ("xla_backend_optimization_level", 1) in options.env_option_overrides
    for n in (1, 2):
        built = backend.get_compile_options(1, n).executable_build_options
        assert built.use_spmd_partitioning == built.use_shardy_partitioner == (n > 1)
    text = weft.jit(lambda x: x + 1).lower(np.float32(1)).as_text()
    assert backend.get_backend("cpu").compile_and_load(text, [first], options)
    assert backend.backend_xla_version() is None and backend.get_default_device() is first
    with pytest.raises(RuntimeError, match="the platform must be one of cpu; got 'abc'"):
        backend.get_backend("abc")
