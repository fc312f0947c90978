"""Peers, and the processes they run in: a lasting one for peers.py, fresh ones for startup.py."""

import dataclasses
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
PATIENCE = 300  # seconds that one request may take


@dataclasses.dataclass(frozen=True)
class Peer:
    """An implementation: its name in the table, what to import, and the Python that has it."""

    label: str
    impl: str
    python: str

    @classmethod
    def parse(cls, text):
        """Parse `LABEL[=IMPL][@PYTHON]`; the default Python is `make bench`'s, or this one."""
        name, _, python = text.partition("@")
        label, _, impl = name.partition("=")
        impl = impl or label
        own = f".venv-bench-{impl}" if impl in ("weft", "torch", "numba") else ".venv-bench"
        made = CHECKOUT / own
        usual = made / "bin" / "python"
        return cls(label, impl, python or str(usual if usual.exists() else sys.executable))

    def serves(self, options):
        """Return True if the peer has cases in the suite that these options of peers.py name."""
        if self.impl == "numba":
            return "programs" in options
        return self.has_jax_api or "--devices" not in options

    @property
    def has_jax_api(self):
        """Return True if startup.py can measure it."""
        return self.impl not in ("numpy", "torch", "numba")


def environment(cache):
    """Return the variables of a peer's process: the checkout's weft, and the cache of this run.

    Bytecode is cached, whatever the caller's settings: pip compiles what it installs, but the
    checkout has not been compiled.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(CHECKOUT / "src"), "WEFT_CACHE_DIR": str(cache)}


def keep_programs(cache):
    """Return the variables that make JAX and Numba cache compiled code on disk, as weft does."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "NUMBA_CACHE_DIR": str(cache),
    }


def last_line(text):
    """The last line that says something, which for a traceback is the exception."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


def fresh(peer, kind, cache, *arguments, **variables):
    """The figures of one run of startup.py, or {"error": why there are none}."""
    done = subprocess.run(
        [peer.python, str(HERE / "startup.py"), kind, peer.impl, *arguments],
        env=environment(cache) | variables,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout) if done.returncode == 0 else {"error": last_line(done.stderr)}


class Worker:
    """A peer's lasting process: started when first asked, and again after a crash."""

    def __init__(self, peer, cache, *options):
        self.peer, self.cache = peer, cache
        self.served = [peer.impl, "--serve", *options]
        self.process = self.log = None

    def start(self):
        """Begin serving."""
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (stop closes it)
        self.process = subprocess.Popen(
            [self.peer.python, str(HERE / "peers.py"), *self.served],
            env=environment(self.cache),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    def ask(self, **request):
        """The reply to a request; a process that dies or hangs is an error like any other."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it died before; reading says so
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        error = self.stop()
        return {"error": f"process died: {error}" if ready else f"no answer in {PATIENCE} s"}

    def stop(self):
        """End the process; return its last output."""
        if self.process is None:
            return ""
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()
        self.process = None
        self.log.seek(0)
        error = last_line(self.log.read())
        self.log.close()
        return error
