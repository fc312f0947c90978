"""Several processes as one program: joining, leaving, and the report of one that is lost.

Who a process is among others is clusters.py's to find; the devices of all are client.py's. What
passes values between processes is in experimental/multihost_utils.py.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from jaxlib import _jax

from weft.errors import JaxRuntimeError, ProcessFailureError
from weft.mesh.client import ProcessGroup, all_devices, has_clients, set_process_group
from weft.parallel import coordinator
from weft.parallel.clusters import Place, detect_cluster, read_secret, read_variables
from weft.util import Logger

logger = Logger("weft.distributed")

# Where the coordinator listens if its address is one that no other machine can call.
LOOPBACK = {"localhost": "127.0.0.1", "127.0.0.1": "127.0.0.1", "[::1]": "[::1]"}

ALIVE, GONE, LEFT = "weft/alive/", "weft/gone/", "weft/left/"


class Member:
    """This process's part in the whole: its connection, and the coordinator if it is the first."""

    def __init__(self, client: Any, rank: int, size: int, leave: int, watch: Watch):
        self.client = client
        self.serving: Any = None  # the coordinator's process
        self.rank = rank
        self.size = size
        self.leave_timeout = leave
        self.watch = watch
        self.preemption: Any = None  # made on first use


_member: list[Member] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_member.clear)  # a child is not a process of its own there


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join this process with others: `weft.devices()` then returns the devices of all processes.

    Call it in each process, before devices are used. Arguments that are None are read from the
    environment: WEFT_COORDINATOR_ADDRESS, WEFT_NUM_PROCESSES, WEFT_PROCESS_ID and
    WEFT_LOCAL_DEVICE_IDS (or the same names with JAX_), or the variables of the launcher: Slurm,
    Open MPI, MPICH, a TPU pod. WEFT_COORDINATOR_SECRET, or a file of mode 600 that
    WEFT_COORDINATOR_SECRET_FILE names, holds a secret that all processes must have to join.

    A process that dies, or is silent for `heartbeat_timeout_seconds`, is reported by the others
    with its number: `ProcessFailureError` is raised in the main thread. If the main thread is stuck
    in a computation with the lost process, the process ends with status 1.

    Args:
      coordinator_address: the address of process 0, as `host:port`.
      num_processes: the number of processes.
      process_id: the number of this process, from 0 on.
      local_device_ids: the numbers of the accelerators that this process uses. By default all.
      cluster_detection_method: the name of the launcher, or "deactivate".
      initialization_timeout: the seconds in which all processes must join.
      heartbeat_timeout_seconds: the seconds after which a silent process counts as lost.
      shutdown_timeout_seconds: the seconds in which all processes must leave.
      coordinator_bind_address: the address where process 0 listens. By default all its addresses,
        or the loopback address if the host is "localhost".
      slice_index: the part of the machine that the GPUs of this process are in.
      partition_index: another name of `slice_index`.

    >>> initialize("localhost:1234", num_processes=1, process_id=0)
    >>> is_initialized()
    True
    >>> shutdown()
    """
    op = "distributed.initialize"
    if _member:
        raise RuntimeError(f"{op}: must be called once; got a second call.")
    given = (local_device_ids,) if isinstance(local_device_ids, int) else local_device_ids
    devices = None if given is None else tuple(given)
    times = (initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds)
    check_numbers(num_processes, process_id, times)
    place = Place(coordinator_address, num_processes, process_id, devices)
    place = place.fill(read_variables(os.environ))
    if None in place[:3]:
        place = place.fill(detect_cluster(cluster_detection_method, os.environ))
    address, size, rank = check_place(place)
    partition = slice_index if partition_index is None else partition_index
    watch = Watch(None, rank, size, heartbeat_timeout_seconds, address)
    member = Member(None, rank, size, shutdown_timeout_seconds, watch)
    if size > 1:
        join_processes(member, coordinator_bind_address, times)
        group = (member.client, rank, size, place.local_devices, partition, watch.name_lost)
        set_process_group(ProcessGroup(*group))
        atexit.register(leave_at_exit)
    _member.append(member)


def join_processes(member: Member, bind: str | None, times: tuple[int, int, int]) -> None:
    """Connect to the coordinator, which process 0 starts first, and begin to watch."""
    if has_clients():
        raise RuntimeError(
            "distributed.initialize: must be called before devices are used; got a call after they "
            "were. Hint: call it first thing after `import weft`."
        )
    watch, size, secret = member.watch, member.size, read_secret(os.environ)
    if member.rank == 0:
        bind = bind or os.environ.get("WEFT_COORDINATOR_BIND_ADDRESS", "")
        member.serving = start_coordinator(watch.address, bind, size, *times, secret)
    try:
        member.client = watch.client = connect(watch.address, member.rank, size, *times, secret)
        watch.begin(times[0])
    except RuntimeError:
        if member.serving is not None:
            member.serving.communicate(b"done\n")  # it has nothing to wait for
        raise


def is_initialized() -> bool:
    """Return True if this process has joined others by `initialize`.

    Returns:
      A bool.

    >>> is_initialized()
    False
    """
    return bool(_member)


def shutdown() -> None:
    """Leave the other processes, once they leave too; called at exit where nobody called it.

    >>> shutdown()
    """
    if not _member:
        return
    member = _member[-1]
    try:
        if member.size > 1:
            member.watch.leave(member.leave_timeout)
            member.client.shutdown()
            if member.watch.gone.keys() - {member.rank}:
                raise member.watch.error()
    except (JaxRuntimeError, TimeoutError) as error:
        raise JaxRuntimeError(
            f"distributed.shutdown: all {member.size} processes must leave within "
            f"{member.leave_timeout} s; got {first_line(error)}"
        ) from error
    finally:
        _member.clear()
        set_process_group(None)
        atexit.unregister(leave_at_exit)
        if member.serving is not None and not member.watch.gone:
            with contextlib.suppress(OSError):  # it has ended already
                member.serving.stdin.write(b"done\n")
                member.serving.stdin.close()


def check_numbers(size: Any, rank: Any, times: Sequence[Any]) -> None:
    """Raise where the count of processes or the rank is not an integer, or a time not positive."""
    for name, n in (("num_processes", size), ("process_id", rank)):
        if n is not None and (isinstance(n, bool) or not hasattr(n, "__index__")):
            raise TypeError(f"distributed.initialize: {name} must be an integer; got {n!r}.")
    for t in times:
        if not (isinstance(t, int | float) and t > 0):
            raise ValueError(f"distributed.initialize: a timeout must be above 0 s; got {t!r}.")


def check_place(place: Place) -> tuple[str, int, int]:
    """The address, number of processes and rank; an error that says which of them are unknown."""
    address, size, rank, _ = place
    names = ("coordinator_address", "num_processes", "process_id")
    missing = [n for n, x in zip(names, place, strict=False) if x is None]
    if size is not None and size < 1:
        raise ValueError(f"distributed.initialize: num_processes must be 1 or more; got {size}.")
    if size is not None and rank is not None and not 0 <= rank < size:
        raise ValueError(
            f"distributed.initialize: process_id must be from 0 to {size - 1}, for num_processes "
            f"is {size}; got {rank}."
        )
    if size == 1:
        return address or "", 1, 0
    if address is None or size is None or rank is None:
        known = [f"{n}={x!r}" for n, x in zip(names, place, strict=False) if x is not None]
        raise ValueError(
            f"distributed.initialize: {', '.join(missing)} must be given where no cluster is "
            f"found that says it; got {', '.join(known) or 'no arguments'}. Hint: "
            'initialize("host:port", num_processes, process_id), or WEFT_COORDINATOR_ADDRESS, '
            "WEFT_NUM_PROCESSES and WEFT_PROCESS_ID in the environment."
        )
    host, _, port = str(address).rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
        raise ValueError(
            "distributed.initialize: coordinator_address must be host:port, with a port from 1 to "
            f"65535; got {address!r}."
        )
    return address, size, rank


def start_coordinator(
    address: str, bind: str, size: int, start: int, heartbeat: int, leave: int, secret: bytes = b""
) -> subprocess.Popen:
    """The process that keeps the list of processes, which process 0 starts."""
    host, _, port = address.rpartition(":")
    if not bind and host in LOOPBACK:
        bind = f"{LOOPBACK[host]}:{port}"
    times = [str(int(t)) for t in (engine_timeout(heartbeat), start, leave)]
    serving = subprocess.Popen(
        [sys.executable, "-P", coordinator.__file__, port, bind, str(size), *times],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # or who waits for the end of our output waits for it
    )
    assert serving.stdin is not None and serving.stdout is not None
    with contextlib.suppress(OSError):  # it ended, as is said below
        serving.stdin.write(f"{secret.hex()}\n".encode())  # arguments are seen by all who look
        serving.stdin.flush()
    said = serving.stdout.readline().decode().strip()
    if said != "listening":
        serving.wait()
        with contextlib.suppress(OSError):
            serving.stdin.close()
        serving.stdout.close()
        raise RuntimeError(
            f"distributed.initialize: the coordinator must be able to listen on "
            f"{bind or f'port {port}'}; got {said.removeprefix('refused ') or 'no answer of it'}. "
            "Hint: another port, the same for all processes."
        )
    return serving


def engine_timeout(heartbeat: float) -> int:
    """When jaxlib itself ends the processes, because one is lost; Watch should come before."""
    return int(2 * heartbeat + 30)


def connect(
    address: str, rank: int, size: int, start: int, heartbeat: int, leave: int, secret: bytes
) -> Any:
    """jaxlib's connection to the coordinator, made when all processes are there."""
    wrong = call_coordinator(address, rank, size, start, secret)
    try:
        if wrong:
            raise JaxRuntimeError(wrong)
        client = _jax.get_distributed_runtime_client(
            address, rank, init_timeout=int(start), heartbeat_timeout=engine_timeout(heartbeat),
            shutdown_timeout=int(leave), shutdown_on_destruction=False, use_compression=True,
        )  # fmt: skip
        client.connect()
    except JaxRuntimeError as error:
        raise RuntimeError(
            f"distributed.initialize: {size} processes must reach the coordinator at {address} "
            f"within {start} s; got {first_line(error)}. Hint: each process is to be started, with "
            "one address and a process_id of its own."
        ) from error
    return client


def call_coordinator(
    address: str, rank: int, size: int, seconds: float, secret: bytes = b""
) -> str:
    """Call the coordinator, and wait until all have; what went wrong, else nothing."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as call:
                return coordinator.exchange_lines(call, rank, size, secret, seconds + 5)
        except ValueError as error:
            why = str(error)
        except OSError as error:
            why = f"{type(error).__name__}: {error}"
        if time.monotonic() > end:
            return f"no answer of it to process {rank} in {seconds:g} s ({why})"
        time.sleep(0.1)


def first_line(error: Exception) -> str:
    """Return jaxlib's message, without its details."""
    return str(error).strip().split("\n")[0]


# --- the watch ------------------------------------------------------------------------------


class Watch(threading.Thread):
    """Tells others that this process lives, watches the next one, and reports one that is lost.

    A sign of life is a counter under ALIVE and the rank; who finds a process lost writes why under
    GONE and its rank, where all look. jaxlib has such a watch, which ends the process.
    """

    def __init__(self, client: Any, rank: int, size: int, timeout: float, address: str):
        super().__init__(name="weft.distributed", daemon=True)
        self.client = client
        self.rank = rank
        self.size = size
        self.timeout = timeout
        self.period = timeout / 10
        self.patience = 1.5 * timeout + 2  # after that, a broken computation has another reason
        self.address = address
        self.over = threading.Event()
        self.failed = threading.Event()
        self.raised = threading.Event()
        self.leaving = False  # at the exit of the interpreter: nothing can be raised any more
        self.gone: dict[int, str] = {}
        self.count = 0
        self.next = (rank + 1) % size
        self.seen = ("", 0.0)  # the last sign of the next process, and when it came

    def begin(self, timeout: float) -> None:
        """Start, when each process has given a sign."""
        try:
            self.sign()
            self.client.wait_at_barrier("weft/joined", int(timeout * 1000))
        except JaxRuntimeError as error:
            raise RuntimeError(
                f"distributed.initialize: all {self.size} processes must begin within {timeout} s; "
                f"got {first_line(error).rstrip('.')}."
            ) from error
        self.start()

    def sign(self) -> None:
        """Give a sign of life."""
        self.count += 1
        self.client.key_value_set(f"{ALIVE}{self.rank}", str(self.count), True)

    def leave(self, timeout: float) -> None:
        """Wait until all processes are ready to leave, or one is lost; end the watch."""
        self.leaving = True
        if self.rank in self.gone:  # the others have been told
            self.over.set()
        end = time.monotonic() + timeout
        self.client.key_value_set(f"{LEFT}{self.rank}", "", True)
        while not (self.over.is_set() or self.failed.wait(min(self.period / 5, 0.2))):
            left = read_ranks(self.client.key_value_dir_get(LEFT)).keys()
            if len(left) == self.size:
                break
            if time.monotonic() > end:
                self.tell(self.rank, "left, and others did not")
                others = sorted({*range(self.size)} - left)
                raise TimeoutError(f"process {', '.join(map(str, others))} going on.")
        self.over.set()
        self.join()

    def run(self) -> None:
        """Until the end, or until a process is lost."""
        self.seen = ("", time.monotonic())
        while not self.over.wait(self.period):
            try:
                self.sign()
                found = self.client.key_value_dir_get(GONE)
                self.gone = read_ranks(found)
                if not self.gone:
                    self.look()
            except JaxRuntimeError as error:
                self.gone = {0: f"the coordinator at {self.address}: {first_line(error)}"}
            if self.gone and not self.over.is_set():
                self.report()
                return

    def look(self) -> None:
        """See whether the next process gives signs; tell all if it does not."""
        now = time.monotonic()
        sign = self.client.key_value_try_get(f"{ALIVE}{self.next}")
        if sign != self.seen[0]:
            self.seen = (sign, now)
        elif now - self.seen[1] > self.timeout - 2 * self.period:
            self.tell(self.next, f"no sign of life for {now - self.seen[1]:.1f} s")

    def tell(self, rank: int, why: str) -> None:
        """Write down that a process is lost."""
        self.client.key_value_set(f"{GONE}{rank}", why, True)
        self.gone = {rank: why}

    def message(self) -> str:
        """Return the message of the error."""
        said = "; ".join(f"process {rank}: {why}" for rank, why in sorted(self.gone.items()))
        return (
            f"distributed: all {self.size} processes must stay alive; got {said}. Hint: the output "
            "of that process says why."
        )

    def error(self) -> ProcessFailureError:
        """The error for the processes lost."""
        lost = {d for d in all_devices() if d.process_index in self.gone} if has_clients() else ()
        return ProcessFailureError(self.message(), lost)

    def name_lost(self, error: Exception) -> ProcessFailureError | None:
        """The error for the processes lost, if `error` is what that looks like at first."""
        if not is_engine_error(error):
            return None
        here = threading.current_thread() is threading.main_thread()
        if here:
            self.raised.set()  # by who asks, so that it does not come a second time
        if self.failed.wait(self.patience):
            return self.error()
        if here:
            self.raised.clear()
        return None

    def report(self) -> None:
        """Say it, raise it in the main thread, and end the process if that is stuck."""
        self.failed.set()
        if self.leaving:
            logger.error("%s", self.message())
            return
        logger.error("process %d: %s", self.rank, self.message())
        if self.raised.is_set():
            return
        raise_in_main_thread(self.error(), self.raised)
        if self.raised.wait(max(1.0, 2 * self.period)) or self.over.is_set() or self.leaving:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(1)


def read_ranks(found: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Return the texts under keys that end in a rank; other keys belong to others."""
    ranks = [(key.rpartition("/")[2], text) for key, text in found]
    return {int(rank): text for rank, text in ranks if re.fullmatch("[0-9]{1,9}", rank)}


def raise_in_main_thread(error: Exception, raised: threading.Event) -> None:
    """Raise an error in the main thread at its next step; set `raised` when it is raised."""

    class RaisedError(type(error)):  # type: ignore[misc]
        """The error: Python makes it where it is raised."""

        def __init__(self) -> None:
            super().__init__(*error.args)
            self.__dict__.update(vars(error))
            raised.set()

    RaisedError.__name__, RaisedError.__qualname__ = type(error).__name__, type(error).__qualname__
    RaisedError.__module__ = type(error).__module__
    thread = threading.main_thread().ident
    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(thread or 0), ctypes.py_object(RaisedError))


def leave_at_exit() -> None:
    """Leave when the interpreter ends; with an error, tell the others why this process ends."""
    if not _member:
        return
    member = _member[-1]
    watch, failure = member.watch, getattr(sys, "last_value", None)
    watch.leaving = True
    if failure is not None and is_engine_error(failure):
        # a broken computation is what the loss of another process looks like at first
        watch.failed.wait(watch.patience)
    if failure is not None and not watch.gone:
        with contextlib.suppress(JaxRuntimeError):  # who cannot be reached is not told
            watch.tell(member.rank, f"ended by {type(failure).__name__}: {first_line(failure)}")
    try:
        with contextlib.suppress(ProcessFailureError):  # it is reported by now
            shutdown()
    except JaxRuntimeError as error:
        logger.error("%s", error)


# Of jaxlib's status codes, those that say nothing of the program.
BROKEN = "UNKNOWN|INTERNAL|UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED"


def is_engine_error(error: BaseException) -> bool:
    """Return True if a computation broke for reasons outside of it; some come as ValueError."""
    coded = re.match(f"({BROKEN}): ", str(error)) is not None
    return coded and (isinstance(error, JaxRuntimeError) or type(error) is ValueError)


def reached_sync_point(step: int) -> bool:
    """Return True if jaxlib says that all processes, told to stop, have come to this step."""
    if not _member or _member[-1].client is None:
        return False
    member = _member[-1]
    if member.preemption is None:
        member.preemption = _jax.create_preemption_sync_manager()
        member.preemption.initialize(member.client)
    return member.preemption.reached_sync_point(step)
