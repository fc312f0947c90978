"""Arrays over the devices of two processes, as each of the two sees them."""

import socket
import subprocess
import sys
from pathlib import Path

from tests.parallel.devices import CHECKOUT, environment

PROGRAM = Path(__file__).with_name("pieces.py")


def test_arrays_of_two_processes():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    both = [
        subprocess.Popen(
            [sys.executable, "-W", "error", str(PROGRAM), address, str(rank)],
            env=environment(2),
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [process.communicate(timeout=120)[0] for process in both]
    finally:
        for process in both:
            process.kill()
    for rank, (process, text) in enumerate(zip(both, said, strict=True)):
        assert process.returncode == 0 and f"well {rank}" in text, f"process {rank}:\n{text}"
