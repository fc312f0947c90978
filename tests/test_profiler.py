"""Profiles: the files are there and hold our names and the scopes' paths; memory; errors."""

import contextlib
import gzip
import json
import socket
import time
import urllib.request
from threading import Thread

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import profiler

X = np.ones((200, 200), np.float32)


@weft.jit
def model(x):
    with weft.named_scope("attention"):
        return jnp.tanh(x @ x)


@profiler.annotate_function
def load():
    return 3


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """The folder of a trace, with a step, an annotation and a function in it."""
    where = tmp_path_factory.mktemp("profile")
    model(X).block_until_ready()
    with profiler.trace(where, create_perfetto_trace=True):
        load()
        with profiler.TraceAnnotation("my batch", size=7):
            model(X).block_until_ready()
        with profiler.StepTraceAnnotation("train", step_num=3):
            model(X).block_until_ready()
    (folder,) = (where / "plugins" / "profile").iterdir()
    return folder


def test_files(taken):
    names = sorted(f.name.partition(".")[2] or f.name for f in taken.iterdir())
    assert "xplane.pb" in names and "trace.json.gz" in names
    assert (taken / "perfetto_trace.json.gz").stat().st_size > 0


def test_profile_data_reads_a_profile(taken):
    (file,) = taken.glob("*.xplane.pb")
    planes = list(profiler.ProfileData.from_file(str(file)).planes)
    assert all(isinstance(plane, profiler.ProfilePlane) for plane in planes)
    events = [e for plane in planes for line in plane.lines for e in line.events]
    assert "my batch" in {e.name for e in events}
    assert all(isinstance(e, profiler.ProfileEvent) for e in events[:3])


def test_annotations_are_in_the_trace(taken):
    events = json.loads(gzip.decompress((taken / "perfetto_trace.json.gz").read_bytes()))
    found = {e["name"]: e.get("args", {}) for e in events["traceEvents"] if "name" in e}
    assert {"load", "my batch", "train"} <= found.keys()
    assert found["my batch"]["size"] == "7" and found["train"]["step_num"] == "3"


def test_paths_of_operations_are_in_the_trace(taken):
    (plane,) = taken.glob("*.xplane.pb")
    assert b"jit(model)/attention/tanh" in plane.read_bytes()


def test_annotate_function():
    named = profiler.annotate_function(name="mine", note=1)(lambda x: x + 1)
    assert named(2) == 3 and load() == 3 and load.__name__ == "load"
    with pytest.raises(TypeError, match="annotate_function: needs a function; got 3"):
        profiler.annotate_function(3)


def test_device_memory_profile(tmp_path):
    kept = jnp.ones((100, 100))
    profile = profiler.device_memory_profile()
    assert len(gzip.decompress(profile)) > 0
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").stat().st_size > 0
    assert kept.shape == (100, 100)


def test_one_trace_at_a_time(tmp_path):
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="start_trace: one trace can be taken at a time"):
            profiler.start_trace(tmp_path)
    finally:
        profiler.stop_trace()
    with pytest.raises(RuntimeError, match="stop_trace: a trace must have been started; got none"):
        profiler.stop_trace()


def test_a_trace_ends_with_an_error(tmp_path):
    with contextlib.suppress(ZeroDivisionError), profiler.trace(tmp_path):
        assert 1 / 0
    profiler.start_trace(tmp_path)
    profiler.stop_trace()


def test_a_trace_with_a_link_waits_to_be_fetched(tmp_path, monkeypatch, capsys):
    file = tmp_path / "perfetto_trace.json.gz"
    file.write_bytes(b"events")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(profiler, "PERFETTO_PORT", port)
    waiting = Thread(target=profiler.serve_perfetto_trace, args=(file,))
    waiting.start()
    for _ in range(500):
        time.sleep(0.01)  # until it listens
        with contextlib.suppress(OSError):
            reply = urllib.request.urlopen(f"http://127.0.0.1:{port}/{file.name}", timeout=5)
            break
    with reply:
        assert reply.read() == b"events"
        assert reply.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    waiting.join(10)
    assert not waiting.is_alive()
    assert "https://ui.perfetto.dev/#!/?url=http://127.0.0.1" in capsys.readouterr().out


def test_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profiler.start_server(port)
    try:
        with pytest.raises(RuntimeError, match="start_server: one server can run at a time"):
            profiler.start_server(port)
    finally:
        profiler.stop_server()
    with pytest.raises(RuntimeError, match="stop_server: a server must have been started"):
        profiler.stop_server()
