"""Blobs kept on disk between processes: per user, bounded, checked, never a cause of failure.

Whatever is odd (a damaged entry, a full disk, a race with another process) is a miss. What the
blobs are is elsewhere: compile.py keeps executables here.
"""

import functools
import os
import platform
import stat
import struct
import sys
import time
import zlib
from typing import NamedTuple

from jaxlib.version import __version__ as jaxlib_version

from weft.util import Logger

try:
    from _blake2 import blake2b  # the `hashlib` around it loads OpenSSL: 2 ms of weft's import
except ImportError:
    from hashlib import blake2b

logger = Logger(__name__)


# Names: an entry is found by a digest of all that shaped it.


KEY_SIZE = 40  # characters of a name


def cache_key(text: str | bytes, *parts: str | bytes) -> str:
    """Return a name for `text` and `parts`; about 1 ms for a megabyte."""
    digest = blake2b(digest_size=KEY_SIZE // 2)
    for part in (text, *parts):
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(b"%d:" % len(data))  # or ("ab", "c") would be ("a", "bc")
        digest.update(data)
    return digest.hexdigest()


@functools.cache
def fingerprint() -> str:
    """Return the inputs of an executable besides its program: jaxlib, machine, environment.

    Code for one CPU crashes on another, and XLA splits loops by the number of CPUs that it finds.
    """
    cpus = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    environment = [os.environ.get(name, "") for name in ("NPROC", "XLA_FLAGS")]
    return "\n".join([jaxlib_version, str(cpus), *environment, cpu_features()])


def cpu_features() -> str:
    """Return the kind of this CPU and its instruction sets."""
    names = (b"vendor_id", b"cpu family", b"model", b"flags", b"CPU ", b"Features")
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            # one core: all of them take long on a big machine
            first, _, _ = file.read(1 << 14).partition(b"\n\n")
    except OSError:
        first = b""
    lines = [line for line in first.split(b"\n") if line.startswith(names)]
    if lines:
        return b"\n".join(lines).decode("utf-8", "replace")
    # Darwin's version names the chip, Windows has PROCESSOR_IDENTIFIER.
    named = os.environ.get("PROCESSOR_IDENTIFIER", "")
    return " ".join([platform.machine(), platform.version(), named])


# Defaults: where, and how much.


def default_directory() -> str | None:
    """Return `WEFT_CACHE_DIR`, else `weft` where the user's caches are; None if that is off."""
    chosen = os.environ.get("WEFT_CACHE_DIR")
    if chosen is None:
        base = user_cache_directory()
        return os.path.join(base, "weft") if os.path.isabs(base) else None
    if chosen.strip().lower() in ("", "0", "off"):
        return None
    return os.path.abspath(os.path.expanduser(chosen))


def user_cache_directory() -> str:
    """Return where this system keeps a user's caches; a relative path where it does not say."""
    home, chosen = os.environ.get("HOME", ""), os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):
        return chosen
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches")
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA", "")
    return os.path.join(home, ".cache")


def default_max_bytes() -> int:
    """Return `WEFT_CACHE_MAX_BYTES`, else 1 GiB."""
    given = os.environ.get("WEFT_CACHE_MAX_BYTES")
    try:
        return 1 << 30 if given is None else int(given)
    except ValueError:
        logger.warning(
            "WEFT_CACHE_MAX_BYTES: must be a number of bytes; got %r. 1 GiB it is.", given
        )
        return 1 << 30


# One entry is one file: a header, then the blob.

ENTRY, UNFINISHED = ".weft", ".weft-tmp"
HEADER = struct.Struct("<4sIQI")  # magic, format version, length of the blob, checksum
MAGIC, FORMAT = b"WEFT", 1
STALE_SECONDS = 3600  # an unfinished file as old as this was left by a process that died


def open_flags(*names: str) -> int:
    return sum(getattr(os, name, 0) for name in names)  # each system has its own few


READ = open_flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")  # a FIFO must not block us
CREATE = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_BINARY")


def compute_checksum(key: str, blob: bytes) -> int:
    return zlib.crc32(blob, zlib.crc32(key.encode()))  # with the key: a file renamed is damage too


def read_entry(path: str, key: str) -> bytes | None:
    """Return the blob in `path`, or None if it is not exactly what `write_entry` leaves there."""
    fd = os.open(path, READ)
    try:
        status = os.fstat(fd)
        if find_distrust(status):
            return None
        header = os.read(fd, HEADER.size)
        if len(header) < HEADER.size:
            return None
        magic, version, length, check = HEADER.unpack(header)
        if (magic, version, length) != (MAGIC, FORMAT, status.st_size - HEADER.size):
            return None
        blob = os.read(fd, length)  # MemoryError: a file with holes may claim any length
        return blob if compute_checksum(key, blob) == check else None
    finally:
        os.close(fd)


def write_entry(path: str, key: str, blob: bytes) -> None:
    """Put `blob` at `path`, whole or not at all."""
    unfinished = f"{path.removesuffix(ENTRY)}{os.urandom(8).hex()}{UNFINISHED}"
    try:
        fd = os.open(unfinished, CREATE, 0o600)
        try:
            data = HEADER.pack(MAGIC, FORMAT, len(blob), compute_checksum(key, blob)) + blob
            if os.write(fd, data) != len(data):
                raise OSError("disk full")
        finally:
            os.close(fd)
        os.replace(unfinished, path)
    except BaseException:  # Ctrl-C included
        remove_file(unfinished)
        raise


def remove_file(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


# Trust: code read from here runs in this process, so only this user may be able to write it.


def find_distrust(status: os.stat_result) -> str | None:
    """Return why somebody else may have written the file or directory, or None."""
    if sys.platform == "win32":
        return None  # modes and owners say nothing there
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & 0o022:
        return f"others can write there (mode {status.st_mode & 0o7777:o})"
    return None


class Entry(NamedTuple):
    """One blob on disk; `used` is when it was last written or read, in seconds since 1970."""

    key: str
    bytes: int
    used: float


class Stats(NamedTuple):
    """The contents of a cache and, of this object only, how often it had the answer."""

    directory: str | None
    problem: str | None
    entries: int
    bytes: int
    max_bytes: int
    hits: int
    misses: int


class DiskCache:
    """Blobs by key in `directory`, at most about `max_bytes`. The least recently used go first.

    Any number of processes and threads may share a directory without locks: files are complete when
    they appear, by a rename, and their modification time is the time of their last use. The cache
    is off if `directory` is None or writable by others. No method raises because of the state of
    the disk.
    """

    def __init__(self, directory: str | os.PathLike[str] | None, max_bytes: int) -> None:
        self.directory = "" if directory is None else os.fspath(directory)
        self.max_bytes = max_bytes
        self._target = max_bytes - max_bytes // 8  # size after eviction
        self.hits = self.misses = 0
        self._problem = None if self.directory else "turned off"
        # A scan every `_stride` bytes written keeps the bound. Each process starts at random along
        # its first stride, so that many short ones together scan as often as one long one.
        self._stride = max(max_bytes // 64, 1)
        self._written = self._stride * os.urandom(1)[0] // 256

    def get(self, key: str) -> bytes | None:
        """Return the blob of `key`, or None."""
        path, blob = self._path(key), None
        if self._usable():
            try:
                blob = read_entry(path, key)
                if blob is None:
                    os.unlink(path)
                else:
                    os.utime(path)
            except (OSError, MemoryError):
                pass  # absent, or gone meanwhile; a blob that was read is good all the same
        self.hits += blob is not None
        self.misses += blob is None
        return blob

    def put(self, key: str, blob: bytes) -> None:
        """Keep `blob` under `key`, unless something prevents it."""
        path, size = self._path(key), HEADER.size + len(blob)
        if size > self._target or not self._usable(create=True):
            return
        try:
            write_entry(path, key, blob)
        except (OSError, MemoryError) as error:
            logger.info("DiskCache: %s was not kept: %s", path, error)
        self._written += size
        if self._written >= self._stride:
            self._written = 0
            self._evict()

    def clear(self) -> int:
        """Remove every entry, whoever made it, and return how many there were."""
        for file in self._scan(UNFINISHED):
            self._remove(file, UNFINISHED)
        return sum(self._remove(entry, ENTRY) for entry in self.entries())

    def entries(self) -> list[Entry]:
        """Return the entries, the least recently used first."""
        return self._scan(ENTRY)

    def stats(self) -> Stats:
        """Return the size of the cache, and the hits and misses of this object."""
        sizes = [entry.bytes for entry in self.entries()]
        return Stats(
            self.directory or None, self._problem, len(sizes), sum(sizes), self.max_bytes,
            self.hits, self.misses,
        )  # fmt: skip

    def _path(self, key: str) -> str:
        if not key.isalnum():
            raise ValueError(
                f"DiskCache: a key must be letters and digits; got {key!r}. "
                f"Hint: cache_key({key!r})"
            )
        return os.path.join(self.directory, key + ENTRY)

    def _usable(self, create: bool = False) -> bool:
        """Say whether the directory is there and, now, ours; log it where that changes."""
        if not self.directory:
            return False
        refused = False
        try:
            if create and not os.path.exists(self.directory):
                os.makedirs(self.directory, 0o700, exist_ok=True)
            status = os.stat(self.directory)
            ours = stat.S_ISDIR(status.st_mode)
            problem = find_distrust(status) if ours else "it is not a directory"
            refused = problem is not None
        except FileNotFoundError:
            return False  # not made yet
        except OSError as error:
            problem = str(error)
        if problem != self._problem:
            self._problem = problem
            if refused:
                logger.warning(
                    "DiskCache: needs a directory that only this user can write; got %s: %s. "
                    "Nothing is kept on disk. Hint: set WEFT_CACHE_DIR to a directory of yours of "
                    "mode 700, or to off.",
                    self.directory,
                    problem,
                )
            elif problem:
                logger.info("DiskCache: nothing is kept on disk: %s", problem)
        return problem is None

    def _scan(self, suffix: str) -> list[Entry]:
        found: list[Entry] = []
        if not self._usable():
            return found
        try:
            names = os.listdir(self.directory)
        except OSError:
            return found
        for name in names:
            key = name.removesuffix(suffix)
            if key != name and key.isalnum():
                try:
                    status = os.lstat(os.path.join(self.directory, name))
                except OSError:
                    continue  # another process evicted it meanwhile
                if stat.S_ISREG(status.st_mode):
                    found.append(Entry(key, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    def _evict(self) -> None:
        """Remove the least recently used entries down to a little below the limit."""
        for file in self._scan(UNFINISHED):
            if file.used < time.time() - STALE_SECONDS:
                self._remove(file, UNFINISHED)
        entries = self.entries()
        excess = sum(entry.bytes for entry in entries) - self._target
        for entry in entries:
            if excess <= 0:
                return
            self._remove(entry, ENTRY)  # where another process was faster it is gone all the same
            excess -= entry.bytes

    def _remove(self, entry: Entry, suffix: str) -> bool:
        return remove_file(os.path.join(self.directory, entry.key + suffix))


open_cache = functools.lru_cache(maxsize=4)(DiskCache)  # one of each kind in a process, to count


def disk_cache(directory: str | None) -> DiskCache:
    """Return the cache in `directory`, by default the one that the environment asks for."""
    return open_cache(directory or default_directory(), default_max_bytes())
