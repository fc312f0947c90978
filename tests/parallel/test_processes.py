"""Several processes on this machine: common computations, and reports of a lost process.

Each test starts real processes that run member.py; they meet over the loopback interface.
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest

import weft
from tests.damages import damage_bytes
from tests.parallel.member import model, model_loss
from weft.errors import JaxRuntimeError
from weft.mesh import client
from weft.parallel import clusters, coordinator, distributed
from weft.parallel.coordinator import await_calls
from weft.parallel.distributed import call_coordinator

CHECKOUT = Path(__file__).resolve().parents[2]
MEMBER = Path(__file__).with_name("member.py")
LIMIT = 50  # seconds; what takes longer hangs
SILENCE = 3  # as in member.py


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    paths = os.pathsep.join([str(CHECKOUT / "src"), str(CHECKOUT)])
    return {**kept, "PYTHONPATH": paths, "WEFT_PLATFORMS": "cpu", **more}


class Running:
    """Processes that run one body of member.py; at the end none is left."""

    def __init__(self, size, *args, devices=2, **more):
        self.address = f"127.0.0.1:{free_port()}"
        self.start = time.monotonic()
        self.all = [
            subprocess.Popen(
                [sys.executable, str(MEMBER), *args],
                env=environment(
                    WEFT_NUM_CPU_DEVICES=str(devices),
                    WEFT_COORDINATOR_ADDRESS=self.address,
                    WEFT_NUM_PROCESSES=str(size),
                    WEFT_PROCESS_ID=str(rank),
                    **more,
                ),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        for process in self.all:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def finish(self, rank):
        """Return (results, exit status, standard error) of a process when it has ended."""
        process = self.all[rank]
        try:
            out, err = process.communicate(timeout=LIMIT - (time.monotonic() - self.start))
        except subprocess.TimeoutExpired:
            for other in self.all:
                other.kill()
            said = "\n".join(
                f"--- {i}:\n{p.communicate()[0]}{p.stderr}" for i, p in enumerate(self.all)
            )
            pytest.fail(f"process {rank} did not end in {LIMIT} s:\n{said}")
        found = {}
        for line in out.splitlines():
            if line.startswith("{"):
                found.update(json.loads(line))
        return found, process.returncode, err

    def results(self):
        """Return the results of each process; all must end well."""
        ends = [self.finish(rank) for rank in range(len(self.all))]
        for rank, (_, status, err) in enumerate(ends):
            assert status == 0, f"process {rank} ended with {status}:\n{err}"
        return [found for found, _, _ in ends]


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("size", [2, 4])
def test_processes_compute_together(size):
    devices = 4 // size
    with Running(size, "everything", devices=devices) as running:
        results = running.results()
    x = np.arange(8.0)
    batch, up, down = model()
    loss, grads = weft.jit(weft.value_and_grad(model_loss, (0, 1)))(up, down, batch)
    for rank, found in enumerate(results):
        assert found["types"] == [
            "f32[4@data,3]", "f32[3,6@model]", "f32[6@model,3]", "f32[3]{U:data}",
        ]  # fmt: skip
        assert found["new"] == "P(None,)"
        for name, want in (("loss", loss), ("up", grads[0]), ("down", grads[1])):
            np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found["column"], batch.sum(0), rtol=1e-5)
        assert found["devices"] == 4 and found["local"] == devices
        assert found["rank"] == found["default"] == rank and found["size"] == size
        assert found["ranks"] == list(range(size)) and found["mine"]
        assert found["sum"] == x.sum() and found["eager"] == 2 * x.sum()
        assert found["psum"] == x.reshape(4, 2).sum(0).tolist()
        assert found["grad"] == 2 * (x**2).sum()
        assert found["whole"] == found["content"] == x.tolist()
        assert found["shards"] == np.split(x.reshape(4, 2), size)[rank].tolist()
        assert found["text"]
        assert found["allgather"] == [[10 * r, 10 * r + 1] for r in range(size)]
        assert found["sign"] == [True] * size
        assert found["tiled"] == [r == 1 for r in range(size)]
        assert found["broadcast"] == 5 and found["chosen"] == size - 1
        assert found["shape"] == [2 * size] and found["back"] == [rank + 1.0] * 2
        assert found["total"] == size * (size + 1)
        check_errors(found["errors"], rank, size)
        rows = np.arange(8.0).reshape(4, 2)
        first = rows.sum(0)[:, None] + np.full((2, devices), 3.0)
        assert found["first"] == first.tolist() and found["local_mesh"]
        assert found["most"] == rows[-1].tolist()
        assert found["second"] == (4 * first + 3).tolist()


def check_errors(errors, rank, size):
    other = 0 if rank else 1
    read, gather, sync, equal, put, again, local = errors
    assert read.startswith(
        "RuntimeError: array: must lie on this process's devices to be read; got f32[8] with parts"
    )
    assert gather == (
        "ValueError: process_allgather: an array over several processes must be gathered with "
        "tiled=True; got f32[8]. Hint: process_allgather(x, tiled=True)."
    )
    assert sync == (
        "AssertionError: sync_global_devices: name must be the same in every process; got "
        f"'step {rank}' in process {rank}, 'step {other}' in process {other}."
    )
    assert equal == (
        "AssertionError: ranks: assert_equal: every process must have the values of process 0; "
        "got 1 in process 1, 0 in process 0, at in_tree."
    )
    assert put.startswith("ValueError: device_put: device must be this process's, or a")
    assert put.endswith(f", of process {(rank + 1) % size}. Hint: weft.local_devices().")
    assert again == (
        "RuntimeError: distributed.initialize: must be called once; got a second call."
    )
    assert local.startswith("ValueError: local_devices: process_index must be one of [0, 1")


def test_training_over_processes_is_training_in_one():
    alone = subprocess.run(
        [sys.executable, str(MEMBER), "alone"],
        env=environment(WEFT_NUM_CPU_DEVICES="1"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert alone.returncode == 0, alone.stderr
    want = json.loads(alone.stdout)
    with Running(2, "train", WEFT_COORDINATOR_SECRET="ours") as running:
        results = running.results()
    for found in results:
        np.testing.assert_allclose(found["loss"], want["loss"], rtol=1e-5)
        np.testing.assert_allclose(found["weights"], want["weights"], rtol=1e-4, atol=1e-6)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("how", "victim", "stuck"),
    [("killed", 1, True), ("killed", 0, False), ("stopped", 1, True), ("error", 1, False)],
)
def test_a_lost_process_is_reported(how, victim, stuck):
    others = sorted({0, 1, 2} - {victim})
    with Running(3, how, *["stuck"] * stuck, devices=1, VICTIM=str(victim)) as running:
        if how == "killed":
            running.finish(victim)
            lost = time.monotonic()
        ends = [running.finish(rank) for rank in others]
        if how == "killed":
            # the time set, and what a process takes to end
            assert time.monotonic() - lost < SILENCE + 7
        if how == "stopped":
            running.all[victim].send_signal(signal.SIGKILL)
    why = {"error": "ended by ValueError: no more"}.get(how, "no sign of life for ")
    for found, status, err in ends:
        assert found["sum"] == 3.0
        assert status == 1
        assert f"distributed: all 3 processes must stay alive; got process {victim}: {why}" in err
        if how != "stopped":  # where a call broke, or else where the process was
            assert found["failed"] == [2048 * victim], err  # its device


def begun(*places, seconds=1):
    """Return the errors of processes at (rank, number of processes) that start together."""
    address = f"127.0.0.1:{free_port()}"
    program = "from weft import distributed\ndistributed.initialize(%r, %d, %d, "
    program += f"initialization_timeout={seconds})"
    every = [
        subprocess.Popen(
            [sys.executable, "-c", program % (address, size, rank)],
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, size in places
    ]
    said = [p.communicate(timeout=LIMIT)[1].strip().splitlines()[-1] for p in every]
    assert [p.returncode for p in every] == [1] * len(every)
    return said


def test_who_is_missing_at_the_start():
    for said in begun((0, 3), (2, 3), seconds=4):
        assert "distributed.initialize: 3 processes must reach the coordinator at 127.0" in said
        assert "; got no call from process 1 in 4 s. Hint: each process is to be started" in said
    (said,) = begun((1, 2))
    assert "; got no answer of it to process 1 in 1 s (ConnectionRefusedError: " in said


def test_processes_that_disagree():
    one, other = begun((0, 2), (1, 3), seconds=20)
    assert "; got num_processes=3 in process 1, 2 in process 0. Hint: " in one
    assert one.endswith(other[-60:])
    one, *_ = begun((0, 3), (1, 3), (1, 3), seconds=20)
    assert "; got two processes with process_id=1. Hint: " in one


def test_a_port_that_is_taken():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        with pytest.raises(RuntimeError, match=rf"must be able to listen on 127.0.0.1:{port}; got"):
            distributed.start_coordinator(
                f"127.0.0.1:{port}", f"127.0.0.1:{port}", 2, start=5, heartbeat=5, leave=5
            )


# --- in this process ------------------------------------------------------------------------


def test_one_process_needs_nobody():
    assert not weft.distributed.is_initialized()
    weft.distributed.initialize(num_processes=1)
    assert weft.distributed.is_initialized() and weft.process_count() == 1
    with pytest.raises(RuntimeError, match=r"must be called once; got a second call"):
        weft.distributed.initialize("localhost:1234", 2, 0)
    weft.distributed.shutdown()
    weft.distributed.shutdown()
    assert not weft.distributed.is_initialized()


def test_too_late():
    assert weft.devices()
    with pytest.raises(RuntimeError, match=r"must be called before devices are used; .* Hint: "):
        weft.distributed.initialize("localhost:1234", 2, 0)
    assert not weft.distributed.is_initialized()


def test_a_process_that_is_lost_as_they_join_leaves_nothing(monkeypatch):
    class Client:
        def key_value_set(self, *args):
            pass

        def wait_at_barrier(self, *args):
            raise JaxRuntimeError("DEADLINE_EXCEEDED: Barrier timed out.\n\nmore")

    monkeypatch.setattr(distributed, "connect", lambda *args: Client())
    monkeypatch.setattr(distributed, "has_clients", lambda: False)
    text = r"all 2 processes must begin within 4 s; got DEADLINE_EXCEEDED: Barrier timed out\.$"
    with pytest.raises(RuntimeError, match=r"^distributed\.initialize: " + text):
        weft.distributed.initialize("localhost:1234", 2, 1, initialization_timeout=4)
    assert not weft.distributed.is_initialized() and not client._process_group


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), r"coordinator_address, num_processes, process_id must be given .* got no arguments\."),
        (("a:1", 2), r"process_id must be given .* got coordinator_address='a:1', num_processes=2"),
        (("a:1", 2, 2), r"process_id must be from 0 to 1, for num_processes is 2; got 2\."),
        (("a:1", 1, 3), r"process_id must be from 0 to 0, for num_processes is 1; got 3\."),
        (("a:1", 0, 0), r"num_processes must be 1 or more; got 0\."),
        (("a:1", "2", 0), r"num_processes must be an integer; got '2'\."),
        (("a:1", 2, 0.0), r"process_id must be an integer; got 0\.0\."),
        (("a:1", 2, 0, None, None, 0), r"a timeout must be above 0 s; got 0\."),
        *[
            ((name, 2, 0), rf"coordinator_address must be host:port, with .* 65535; got '{name}'\.")
            for name in ("a", "a:b", "a:99999", "a:0", "a:\u00b2")
        ],
    ],
)
def test_what_is_missing_or_wrong(arguments, message):
    with pytest.raises((ValueError, TypeError), match=r"^distributed\.initialize: " + message):
        weft.distributed.initialize(*arguments)


def test_strangers_on_the_port_stop_nobody():
    """A scan of ports says nothing, or something else, and may stay for as long as it likes."""
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as strangers:
        address = server.getsockname()
        for said in (b"", b"GET / HTTP/1.1\r\n", b"7 2\n", b"1 2\n", b"\xff\xfe 2\n", b""):
            stranger = strangers.enter_context(socket.create_connection(address))
            stranger.sendall(said)
        answers = [""] * 2

        def call(rank):
            answers[rank] = call_coordinator("{}:{}".format(*address), rank, 2, 20)

        threads = [threading.Thread(target=call, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        start = time.monotonic()
        assert await_calls(server, 2, 20) == ""
        for thread in threads:
            thread.join()
        assert time.monotonic() - start < 4
    socket.create_server(address).close()  # the port is free at once


def call_with(secrets, size=2, seconds=20, server_secret=b"one"):
    """Return the coordinator's answer, and the processes that call it, each with a secret."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "{}:{}".format(*server.getsockname())
        answers = [""] * len(secrets)

        def call(rank):
            answers[rank] = call_coordinator(address, rank, size, seconds, secrets[rank])

        threads = [threading.Thread(target=call, args=(rank,)) for rank in range(len(secrets))]
        for thread in threads:
            thread.start()
        said = await_calls(server, size, seconds, server_secret)
        for thread in threads:
            thread.join()
    return said, answers


def test_process_0_is_told_though_it_calls_last():
    """Another process may show an error first, if its interpreter started faster."""
    answers = {}
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "{}:{}".format(*server.getsockname())

        def call(rank, size, after):
            time.sleep(after)
            answers[rank] = call_coordinator(address, rank, size, 20)

        threads = [
            threading.Thread(target=call, args=given) for given in [(1, 3, 0.0), (0, 2, 0.5)]
        ]
        for thread in threads:
            thread.start()
        said = await_calls(server, 2, 20)
        for thread in threads:
            thread.join()
    assert said == "num_processes=3 in process 1, 2 in process 0"
    assert answers == {0: said, 1: said}


def test_a_secret_is_needed_to_join():
    assert call_with([b"one", b"one"]) == ("", ["", ""])
    for other in (b"", b"two"):
        said, answers = call_with([b"one", other], seconds=1)
        assert said == "no call from process 1 in 1 s, and 1 calls with another secret"
        assert answers == [said, coordinator.OTHER_SECRET]
        said, answers = call_with([other], size=1, seconds=1, server_secret=b"one")
        assert answers == [coordinator.OTHER_SECRET]


@pytest.mark.parametrize("greeting", [b"", b"\xff\xfe\n", b"weft 1 x\n", b"\0" * 5000])
def test_a_stranger_in_the_coordinators_place(greeting):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def pretend():
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as call:
                        call.sendall(greeting)

        thread = threading.Thread(target=pretend, daemon=True)
        thread.start()
        said = call_coordinator("{}:{}".format(*server.getsockname()), 1, 2, 0.1)
        server.shutdown(socket.SHUT_RDWR)
    assert said.startswith("no answer of it to process 1 in 0.1 s (")


def test_a_call_is_for_one_greeting():
    """A stranger who heard it cannot send it again."""
    heard = []
    for _ in range(2):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            call = coordinator.Call(types.SimpleNamespace(accept=lambda end=ours: (end,)), b"one")
            if heard:
                theirs.sendall(heard[0])
                with pytest.raises(ValueError, match="another secret"):
                    call.read()
                continue
            given = theirs, 1, 2, b"one", 5
            thread = threading.Thread(target=coordinator.exchange_lines, args=given)
            thread.start()
            heard.append(ours.recv(256, socket.MSG_PEEK))
            assert call.read() == (1, 2)
            call.answer("")
            thread.join()


def test_where_the_secret_is(tmp_path):
    file = tmp_path / "secret"
    file.write_text("a b\n")
    file.chmod(0o600)
    assert clusters.read_secret({}) == b""
    assert clusters.read_secret({"WEFT_COORDINATOR_SECRET": "a b"}) == b"a b"
    by_file = {"WEFT_COORDINATOR_SECRET_FILE": str(file)}
    assert clusters.read_secret(by_file) == b"a b"
    with pytest.raises(ValueError, match="the secret must be given once; got "):
        clusters.read_secret({**by_file, "WEFT_COORDINATOR_SECRET": "a"})
    with pytest.raises(ValueError, match="the secret must not be empty"):
        clusters.read_secret({"WEFT_COORDINATOR_SECRET": " "})
    file.chmod(0o640)
    with pytest.raises(ValueError, match=r"must be its owner's alone; got mode 640 of .*chmod 600"):
        clusters.read_secret(by_file)


def test_a_local_coordinator_is_not_called_from_outside():
    port = free_port()
    serving = distributed.start_coordinator(f"localhost:{port}", "", 2, 5, 5, 5)
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        other = socket.gethostbyname(socket.gethostname())
        if not other.startswith("127."):
            with pytest.raises(OSError, match=""):
                socket.create_connection((other, port), timeout=1)
    finally:
        serving.kill()
        serving.communicate()


def test_the_wait_for_calls_ends():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        assert await_calls(server, 2, 0.1) == "no call from process 0, 1 in 0.1 s"


def test_a_call_that_comes_in_pieces():
    """A slow network cuts a message where it likes, and a stranger sends a byte at a time."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        call = coordinator.Call(types.SimpleNamespace(accept=lambda: (ours,)), b"one")
        given = theirs, 1, 2, b"one", 5
        thread = threading.Thread(target=coordinator.exchange_lines, args=given)
        thread.start()
        whole = ours.recv(256)
        other_end, from_network = socket.socketpair()
        with other_end, from_network:
            call.socket = from_network
            for k in range(len(whole) - 1):
                other_end.sendall(whole[k : k + 1])
                assert call.read() is None
            other_end.sendall(whole[-1:])
            assert call.read() == (1, 2)
        call.socket = ours
        call.answer("")
        thread.join()


@pytest.mark.parametrize("end", [b"", b"\n", b"x" * 300])
def test_messages_that_do_not_end(end):
    """They are read up to a length, and end a wait no later than silence does."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        call = coordinator.Call(types.SimpleNamespace(accept=lambda: (ours,)), b"")
        theirs.sendall(b"1 2 " + b"0" * 20)
        assert call.read() is None
        theirs.sendall(b"0" * 300 + end)
        with pytest.raises(ValueError, match="no call"):
            call.read()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stop = threading.Event()

        def dribble():
            with contextlib.suppress(OSError):
                while not stop.wait(0.01):
                    theirs.sendall(b"w")

        thread = threading.Thread(target=dribble)
        thread.start()
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            coordinator.receive_line(ours, 10**6, 0.2)
        assert time.monotonic() - start < 5
        stop.set()
        thread.join()


def test_hundreds_of_strangers_stop_nobody():
    """Each says something else: noise, parts of calls, and true calls with one byte changed."""
    rng = random.Random(0)
    true = f"1 2 {'a' * 32} {'b' * 64}\n".encode()
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server:
        address = server.getsockname()
        answers = [""] * 2

        def call(rank):
            answers[rank] = call_coordinator("{}:{}".format(*address), rank, 2, 60, b"one")

        def disturb():
            held = []
            for seed in range(300):
                if over.is_set():
                    break
                stranger = socket.create_connection(address)
                with contextlib.suppress(OSError):
                    said = rng.randbytes(seed % 300) if seed % 2 else damage_bytes(true, seed)
                    stranger.sendall(said)
                held.append(stranger)
                if rng.random() < 0.5:
                    held.pop(rng.randrange(len(held))).close()
            for stranger in held:
                stranger.close()

        stranger = threading.Thread(target=disturb)
        stranger.start()
        threads = [threading.Thread(target=call, args=(rank,)) for rank in range(2)]
        threads[0].start()
        threading.Timer(0.3, threads[1].start).start()
        assert await_calls(server, 2, 60, b"one") == ""
        over.set()
        stranger.join()
        for thread in threads:
            thread.join()
    assert answers == ["", ""]
