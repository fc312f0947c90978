"""The coordinator of several processes. Process 0 runs it as a script, in a separate process.

So when a process dies, even process 0, the others survive and can report it; a broken connection to
jaxlib's service would end them at once without a message. The coordinator first waits until all
processes have called, since jaxlib ends the others if one does not come. It imports jaxlib only.

A call has three lines of ASCII. The coordinator greets with a number that it has not used before.
The process sends its rank, the number of processes, and a number of its own. The coordinator
answers with an error message, or an empty one. The last two lines end with a digest (HMAC with
SHA-256) of both numbers and the line, with the secret that all processes share: so a stranger can
be neither caller nor coordinator. Without a secret the key is empty, and only accidental callers
are kept out.
"""

import contextlib
import hashlib
import hmac
import re
import secrets
import selectors
import socket
import struct
import sys
import time
from typing import Any

from jaxlib import _jax


def listen(bind: str, port: str) -> tuple[socket.socket, str]:
    """Return a socket that all processes call, and its address; `bind` empty: all addresses."""
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


GREETING = re.compile("weft 1 ([0-9a-f]{32})\n")
CALL = re.compile("([0-9]{1,9}) ([0-9]{1,9}) ([0-9a-f]{32}) ([0-9a-f]{64})\n")
BEGINNING = re.compile(b"[0-9a-f ]+")  # of a call whose end is on its way
LONGEST_CALL = 256  # bytes
ANSWER = re.compile("([0-9a-f]{64}) ([ -~]*)\n")
OTHER_SECRET = "the secret of this process must be that of process 0"


def sign_line(secret: bytes, *parts: object) -> str:
    """Return the digest of two processes' messages, which requires the secret."""
    return hmac.new(secret, " ".join(map(str, parts)).encode(), hashlib.sha256).hexdigest()


def exchange_lines(call: socket.socket, rank: int, size: int, secret: bytes, seconds: float) -> str:
    """Call the coordinator over a connection, and return its error message; "" if all is well.

    The greeting comes at once, the answer when all have called, within `seconds`. Raises ValueError
    if the other side is not a coordinator.
    """
    greeting = GREETING.fullmatch(receive_line(call, 64, 5))
    if greeting is None:
        raise ValueError("it does not greet as the coordinator of weft does")
    mine = secrets.token_hex(16)
    said = sign_line(secret, "call", greeting[1], mine, rank, size)
    call.sendall(f"{rank} {size} {mine} {said}\n".encode())
    answer = ANSWER.fullmatch(receive_line(call, 1024, seconds))
    if answer is None:
        raise ValueError("it hung up")
    wanted = sign_line(secret, "answer", greeting[1], mine, answer[2])
    return answer[2] if hmac.compare_digest(answer[1], wanted) else OTHER_SECRET


def receive_line(call: socket.socket, length: int, seconds: float) -> str:
    """Return the next line, or what comes before the other side hangs up.

    At most `length` bytes are read. Raises TimeoutError if the line has not ended in `seconds`,
    however many bytes have come.
    """
    end = time.monotonic() + seconds
    line = b""
    while len(line) < length and not line.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        call.settimeout(left)
        part = call.recv(length - len(line))
        if not part:
            break
        line += part
    return line.decode("ascii", "replace")


class Call:
    """A connection to the coordinator, which may be a stranger's until it has been read."""

    def __init__(self, server: socket.socket, secret: bytes):
        self.secret = secret
        self.socket = server.accept()[0]
        self.socket.settimeout(5)
        self.mine, self.theirs, self.heard = secrets.token_hex(16), "", b""
        with contextlib.suppress(OSError):  # it is gone
            self.socket.sendall(f"weft 1 {self.mine}\n".encode())

    def read(self) -> tuple[int, int] | None:
        """Return the rank and the number of processes; None if the message has not ended yet.

        Raises ValueError if the message is not a call.
        """
        part = self.socket.recv(LONGEST_CALL - len(self.heard))
        self.heard += part
        if part and len(self.heard) < LONGEST_CALL and BEGINNING.fullmatch(self.heard):
            return None
        found = CALL.fullmatch(self.heard.decode("ascii"))
        if found is None:
            raise ValueError("no call")
        rank, size, self.theirs, said = int(found[1]), int(found[2]), found[3], found[4]
        wanted = sign_line(self.secret, "call", self.mine, self.theirs, rank, size)
        if not hmac.compare_digest(said, wanted):
            self.answer(OTHER_SECRET)
            raise ValueError("another secret")
        return rank, size

    def answer(self, wrong: str) -> None:
        """Send an error message, or an empty one."""
        said = sign_line(self.secret, "answer", self.mine, self.theirs, wrong)
        with contextlib.suppress(OSError):  # the caller is gone, which is reported elsewhere
            self.socket.sendall(f"{said} {wrong}\n".encode())


def await_calls(server: socket.socket, size: int, seconds: float, secret: bytes = b"") -> str:
    """Wait for the calls of all processes, and answer with an error message or an empty one.

    Strangers, such as port scans, and silent callers do not end the wait. If another process
    reports an error before process 0 calls, process 0 gets the error too, since it reports for all.
    """
    end = time.monotonic() + seconds
    over = False
    calls: dict[int, Call] = {}
    others: list[Call] = []  # callers that have not sent their call yet, the earliest first
    wrong, refused = "", 0
    selector = selectors.DefaultSelector()
    selector.register(server, selectors.EVENT_READ)
    while (len(calls) < size and not wrong) or (0 not in calls and not over):
        ready = selector.select(max(end - time.monotonic(), 0.001))
        over = time.monotonic() > end
        if over and not wrong:
            missing = ", ".join(str(r) for r in range(size) if r not in calls)
            wrong = f"no call from process {missing} in {seconds:g} s"
            if refused:
                wrong += f", and {refused} calls with another secret"
        for found, _ in ready:
            if found.fileobj is server:
                try:
                    stranger = Call(server, secret)
                    selector.register(stranger.socket, selectors.EVENT_READ, stranger)
                    others.append(stranger)
                except OSError:  # too many that say nothing, perhaps
                    if others:
                        hang_up(others.pop(0), selector)
                continue
            call: Any = found.data
            if call not in others:  # hung up on, in this round
                continue
            try:
                said = call.read()
                if said is None:
                    continue
                rank, its_size = said
                if its_size == size and not 0 <= rank < size:
                    raise ValueError("no such process")
            except (OSError, ValueError):  # none of ours
                others.remove(call)
                refused += bool(call.theirs)
                hang_up(call, selector)
                continue
            others.remove(call)
            selector.unregister(call.socket)
            if its_size != size and not wrong:
                wrong = f"num_processes={its_size} in process {rank}, {size} in process 0"
            if rank in calls:
                wrong = wrong or f"two processes with process_id={rank}"
                call.answer(wrong)
            calls.setdefault(rank, call)
    for call in others:
        hang_up(call, selector)
    selector.close()
    for call in calls.values():
        call.answer(wrong)
        with contextlib.suppress(OSError):
            call.socket.recv(1)  # it hangs up first: so the port is free at once
            call.socket.close()
    return wrong


def hang_up(call: Call, selector: selectors.BaseSelector) -> None:
    """End the call of a stranger, at once if it has no answer, so that the port is free."""
    selector.unregister(call.socket)
    if not call.theirs:  # otherwise the caller must be able to read the answer
        call.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    call.socket.close()


def serve(port: str, bind: str, size: int, heartbeat: int, register: int, leave: int) -> None:
    """Serve until the standard input closes: process 0 has ended, or says that all have left.

    Times are in seconds. The first line of the standard input is the secret, in hexadecimal digits.
    What is printed is for process 0.
    """
    secret = bytes.fromhex(sys.stdin.readline().strip())
    try:
        server, address = listen(bind, port)
    except OSError as error:
        print(f"refused {error}", flush=True)
        return
    print("listening", flush=True)
    with server:
        if await_calls(server, size, register, secret):
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
