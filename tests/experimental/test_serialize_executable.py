"""Executables as bytes: loading in this process and in another, and rejected bytes."""

import contextlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests import settings
from tests.damages import damage_bytes, damage_data
from weft.experimental import serialize_executable
from weft.export import container

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.ones((3, 2000), np.float32)  # not written into the program


def compile_program():
    w = jnp.asarray(W)
    f = lambda x, n: {"y": jnp.sort((x @ w)[:, :2], 0), "n": n + 1}
    return weft.jit(f).lower(X, 3).compile()


def test_a_program_in_another_process(tmp_path):
    compiled = compile_program()
    data = pickle.dumps((serialize_executable.serialize(compiled), compiled(X, 3)))
    (tmp_path / "f").write_bytes(data)
    code = (
        "import pickle, numpy as np, weft\n"
        "from weft.experimental import serialize_executable\n"
        "parts, want = pickle.load(open('f', 'rb'))\n"
        "f = serialize_executable.deserialize_and_load(*parts)\n"
        "got = f(np.arange(6, dtype=np.float32).reshape(2, 3), 3)\n"
        "weft.tree.map(np.testing.assert_array_equal, got, want)\n"
        "print('equal')"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "equal\n", done.stderr


def test_the_loaded_program_is_a_compiled_one():
    compiled = compile_program()
    found = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), execution_devices=weft.devices()[:1]
    )
    assert found.in_avals == compiled.in_avals and found.out_tree == compiled.out_tree
    assert found.as_text() == compiled.as_text()
    with weft.debug_nans(True):
        assert int(found(X, 3)["n"]) == 4
    with pytest.raises(weft.errors.ShapeError, match="must be called with the types it was comp"):
        found(X[:1], 3)


def test_what_is_refused():
    serialize, load = serialize_executable.serialize, serialize_executable.deserialize_and_load
    with pytest.raises(TypeError, match="^serialize: needs a compiled program; got 3"):
        serialize(3)
    called = weft.jit(lambda x: weft.pure_callback(np.sin, x, x)).lower(X).compile()
    with pytest.raises(ValueError, match="^serialize: <lambda> must be a program of arrays on one"):
        serialize(called)
    data, *trees = serialize(compile_program())
    with pytest.raises(ValueError, match=r"^deserialize_and_load: must be \d+ bytes as they were"):
        load(data[:-1], *trees)
    with pytest.raises(
        ValueError, match="^deserialize_and_load: must be bytes that serialize gave"
    ):
        load(b"abc", *trees)
    header, rest = container.unpack_container("", "", serialize_executable.MAGIC, data)
    header["machine"] = "another"
    other = container.pack_container(serialize_executable.MAGIC, header, [rest])
    with pytest.raises(ValueError, match="^deserialize_and_load: the machine must be as the one"):
        load(other, *trees)


def test_damages_are_errors_of_ours():
    """A changed byte, or a changed header with a valid checksum, is an error or a program.

    The machine code itself is not damaged: its author is trusted, as docs/security.md says.
    """
    data, *trees = serialize_executable.serialize(compile_program())
    header, rest = container.unpack_container("", "", serialize_executable.MAGIC, data)
    for seed in range(300 if settings.ALL else 40):
        packed = [damage_data(header, seed)]
        damaged = container.pack_container(serialize_executable.MAGIC, *packed, [rest])
        for blob in (damage_bytes(data, seed), damaged):
            with contextlib.suppress(ValueError):
                found = serialize_executable.deserialize_and_load(blob, *trees)
                with contextlib.suppress(weft.errors.JaxRuntimeError):
                    found(X, 3)
