"""The coordinator of several processes: run as a script, by process 0, in a process of its own.

So the death of any of them, the first too, is seen by those that live: a connection that breaks
would end them at once, without a word of which. It first waits until all processes have called, as
the engine, where one does not come, ends the others. It imports jaxlib alone.
"""

import contextlib
import selectors
import socket
import struct
import sys
import time
from typing import Any

from jaxlib import _jax


def listen(bind: str, port: str) -> tuple[socket.socket, str]:
    """A socket that all processes are to call, and its address; `bind` empty: all addresses."""
    error: Exception | None = None
    for address in [bind] if bind else [f"[::]:{port}", f"0.0.0.0:{port}"]:  # no IPv6, perhaps
        host, _, number = address.rpartition(":")
        try:
            server = socket.create_server(
                (host.strip("[]"), int(number)),
                family=socket.AF_INET6 if "[" in host else socket.AF_INET,
                backlog=1024,
                dualstack_ipv6=host == "[::]",
            )
            return server, address
        except (OSError, ValueError) as refused:
            error = refused
    raise error or OSError("no address")


def await_calls(server: socket.socket, size: int, seconds: float) -> str:
    """Wait for the calls of all processes, and answer them: with nothing, or with what is wrong.

    Who else calls, or says nothing, is left waiting: it may be a scan of ports.
    """
    end = time.monotonic() + seconds
    calls: dict[int, socket.socket] = {}
    others: list[socket.socket] = []  # who has not said yet who it is, the first that called first
    wrong = ""
    selector = selectors.DefaultSelector()
    selector.register(server, selectors.EVENT_READ)
    while len(calls) < size and not wrong:
        ready = selector.select(max(end - time.monotonic(), 0.001))
        if time.monotonic() > end:
            missing = ", ".join(str(r) for r in range(size) if r not in calls)
            wrong = f"no call from process {missing} in {seconds:g} s"
        for found, _ in ready:
            call: Any = found.fileobj
            if call is server:
                try:
                    others.append(server.accept()[0])
                    others[-1].settimeout(5)
                    selector.register(others[-1], selectors.EVENT_READ)
                except OSError:  # too many that say nothing, perhaps
                    if others:
                        hang_up(others.pop(0), selector)
                continue
            others.remove(call)
            try:  # what is sent at once comes at once
                rank, its_size = map(int, call.recv(64).split())
                if its_size == size and not 0 <= rank < size:
                    raise ValueError
            except (OSError, ValueError):  # none of ours
                hang_up(call, selector)
                continue
            selector.unregister(call)
            if its_size != size:
                wrong = f"num_processes={its_size} in process {rank}, {size} in process 0"
            if rank in calls:
                wrong = f"two processes with process_id={rank}"
                call.sendall(f"{wrong}\n".encode())
            calls.setdefault(rank, call)
    for call in others:
        hang_up(call, selector)
    selector.close()
    for call in calls.values():
        with contextlib.suppress(OSError):  # it is gone, as will be told
            call.sendall(f"{wrong}\n".encode())
            call.recv(1)  # it hangs up first: so the port is free at once
            call.close()
    return wrong


def hang_up(call: socket.socket, selector: selectors.BaseSelector) -> None:
    """End the call of a stranger at once, so that the port is free."""
    selector.unregister(call)
    call.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    call.close()


def serve(port: str, bind: str, size: int, heartbeat: int, register: int, leave: int) -> None:
    """Serve until the standard input closes: process 0 has ended, or says that all have left.

    Times are in seconds. What is printed is for process 0.
    """
    try:
        server, address = listen(bind, port)
    except OSError as error:
        print(f"refused {error}", flush=True)
        return
    print("listening", flush=True)
    with server:
        if await_calls(server, size, register):
            return
    service = _jax.get_distributed_runtime_service(
        address,
        size,
        heartbeat_timeout=heartbeat,
        cluster_register_timeout=register,
        shutdown_timeout=leave,
    )
    done = sys.stdin.readline() == "done\n"
    # the others are about to part, or process 0 died and they have yet to hear of it
    time.sleep(2 if done else heartbeat)
    service.shutdown()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
