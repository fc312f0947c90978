"""The disk cache: stored blobs are returned; anything else that happens is a miss."""

import errno
import logging
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from weft.xla import diskcache
from weft.xla.diskcache import DiskCache, cache_key, default_directory, default_max_bytes

BIG = 1 << 30
LOGGER = "weft.xla.diskcache"


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "cache", BIG)


def path_of(cache, key):
    return os.path.join(cache.directory, key + ".weft")


def rewrite(cache, key, change):
    """Replace the bytes of an entry by the result of `change`."""
    with open(path_of(cache, key), "rb") as file:
        data = file.read()
    with open(path_of(cache, key), "wb") as file:
        file.write(change(data))


def used(cache, key, seconds_ago):
    then = time.time() - seconds_ago
    os.utime(path_of(cache, key), (then, then))


def kept(cache):
    return [entry.key for entry in cache.entries()]


# What it keeps


def test_a_blob_comes_back_in_this_and_another_cache(cache):
    assert cache.get("k1") is None
    for blob in (b"program", b"", bytes(range(256)) * 4096):
        cache.put("k1", blob)
        assert cache.get("k1") == blob
        assert DiskCache(cache.directory, BIG).get("k1") == blob
    assert kept(cache) == ["k1"]


def test_stats_count_entries_bytes_hits_and_misses(cache):
    cache.put("a", b"x" * 100)
    cache.put("b", b"x" * 200)
    cache.get("a"), cache.get("a"), cache.get("c")
    header = diskcache.HEADER.size
    assert cache.stats() == (cache.directory, None, 2, 300 + 2 * header, BIG, 2, 1)


def test_nothing_is_made_before_the_first_put(cache):
    assert cache.get("a") is None
    assert cache.entries() == []
    assert cache.clear() == 0
    assert not os.path.exists(cache.directory)
    assert cache.stats().problem is None


def test_directory_and_entries_are_private(cache):
    before = os.umask(0)
    try:
        cache.put("a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(cache.directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(path_of(cache, "a")).st_mode) == 0o600


def test_a_directory_removed_meanwhile_is_made_again(cache):
    cache.put("a", b"x")
    os.unlink(path_of(cache, "a"))
    os.rmdir(cache.directory)
    assert cache.get("a") is None
    cache.put("a", b"x")
    cache.put("a", b"x")
    assert cache.get("a") == b"x"


def test_clear_removes_what_is_ours_and_nothing_else(cache):
    cache.put("a", b"x")
    cache.put("b", b"x")
    others = ["notes.txt", "my-file.weft", "c.weft"]
    for name in [*others[:2], "a0123.weft-tmp"]:
        open(os.path.join(cache.directory, name), "w").close()
    os.mkdir(os.path.join(cache.directory, others[2]))
    assert cache.clear() == 2
    assert sorted(os.listdir(cache.directory)) == sorted(others)


@pytest.mark.parametrize("key", ["", "../a", "a/b", "a.b", "a\0"])
def test_a_key_is_a_plain_name(cache, key):
    for use in (cache.get, lambda key: cache.put(key, b"x")):
        with pytest.raises(ValueError, match="DiskCache: a key must be letters and digits; got "):
            use(key)


def test_a_key_too_long_for_a_file_is_a_miss(cache):
    cache.put("k" * 1000, b"x")
    assert cache.get("k" * 1000) is None


# Damage


DAMAGE = {
    "empty": lambda data: b"",
    "header cut": lambda data: data[:10],
    "blob cut": lambda data: data[:-1],
    "blob missing": lambda data: data[: diskcache.HEADER.size],
    "longer": lambda data: data + b"x",
    "garbage": lambda data: os.urandom(len(data)),
    "zeros": lambda data: bytes(len(data)),
    "one bit of the blob": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "magic": lambda data: b"WEFF" + data[4:],
    "version": lambda data: data[:4] + b"\x02" + data[5:],
    "huge length": lambda data: data[:8] + b"\xff" * 8 + data[16:],
    "checksum": lambda data: data[:16] + bytes([data[16] ^ 1]) + data[17:],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_entry_is_a_miss_and_goes(cache, name):
    cache.put("a", b"program")
    rewrite(cache, "a", DAMAGE[name])
    assert cache.get("a") is None
    assert not os.path.exists(path_of(cache, "a"))
    cache.put("a", b"program")
    assert cache.get("a") == b"program"


def test_every_single_byte_is_checked(cache):
    for place in range(diskcache.HEADER.size + 7):
        cache.put("a", b"program")
        rewrite(cache, "a", lambda data, i=place: data[:i] + bytes([data[i] ^ 64]) + data[i + 1 :])
        assert cache.get("a") is None, place


def test_an_entry_with_holes_that_claims_a_terabyte_is_a_miss(cache):
    length = 1 << 40
    cache.put("a", b"program")
    with open(path_of(cache, "a"), "r+b") as file:
        file.write(diskcache.HEADER.pack(diskcache.MAGIC, diskcache.FORMAT, length, 0))
        file.truncate(length + diskcache.HEADER.size)
    assert cache.get("a") is None
    cache.put("a", b"program")
    assert cache.get("a") == b"program"


def test_an_entry_under_the_name_of_another_is_a_miss(cache):
    cache.put("a", b"program")
    os.rename(path_of(cache, "a"), path_of(cache, "b"))
    assert cache.get("b") is None


def test_an_entry_that_others_can_write_is_a_miss(cache):
    cache.put("a", b"program")
    os.chmod(path_of(cache, "a"), 0o666)
    assert cache.get("a") is None


def test_a_fifo_in_place_of_an_entry_does_not_block(cache):
    cache.put("b", b"x")
    os.mkfifo(path_of(cache, "a"), 0o600)
    assert cache.get("a") is None
    cache.put("a", b"x")
    assert cache.get("a") == b"x"


def test_a_directory_in_place_of_an_entry_is_a_miss(cache):
    cache.put("b", b"x")
    os.mkdir(path_of(cache, "a"))
    assert cache.get("a") is None
    cache.put("a", b"x")
    assert cache.get("a") is None
    assert sorted(os.listdir(cache.directory)) == ["a.weft", "b.weft"]


def test_a_link_in_place_of_an_entry_is_not_followed(cache, tmp_path):
    cache.put("a", b"x")
    os.rename(path_of(cache, "a"), tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path_of(cache, "a"))
    assert cache.get("a") is None
    assert kept(cache) == []
    cache.put("a", b"y")
    assert cache.get("a") == b"y"


# Whom it trusts


def refused(cache, caplog, why):
    """Assert that `cache` is off, having said so once."""
    with caplog.at_level(logging.WARNING, LOGGER):
        cache.put("a", b"x")
        assert cache.get("a") is None
        cache.put("a", b"x")
    (record,) = caplog.records
    assert record.getMessage() == (
        "DiskCache: needs a directory that only this user can write; "
        f"got {cache.directory}: {why}. Nothing is kept on disk. "
        "Hint: set WEFT_CACHE_DIR to a directory of yours of mode 700, or to off."
    )
    assert cache.stats().problem == why
    assert cache.entries() == [] and cache.clear() == 0
    return True


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_directory_that_others_can_write_is_refused(cache, caplog, mode):
    os.mkdir(cache.directory)
    os.chmod(cache.directory, mode)
    assert refused(cache, caplog, f"others can write there (mode {mode:o})")
    assert os.listdir(cache.directory) == []


def test_a_directory_made_open_to_others_while_in_use_is_refused(cache, caplog):
    cache.put("b", b"x")
    os.chmod(cache.directory, 0o777)
    assert cache.get("b") is None
    assert refused(cache, caplog, "others can write there (mode 777)")
    os.chmod(cache.directory, 0o700)
    assert cache.get("b") == b"x" and cache.stats().problem is None


def test_a_link_to_such_a_directory_is_refused(cache, caplog, tmp_path):
    os.mkdir(tmp_path / "open")
    os.chmod(tmp_path / "open", 0o777)
    os.symlink(tmp_path / "open", cache.directory)
    assert refused(cache, caplog, "others can write there (mode 777)")


def test_a_link_to_a_good_directory_is_good(cache, tmp_path):
    os.mkdir(tmp_path / "good", 0o755)
    os.symlink(tmp_path / "good", cache.directory)
    cache.put("a", b"x")
    assert cache.get("a") == b"x"


def test_a_directory_of_somebody_else_is_refused(cache, caplog, monkeypatch):
    os.mkdir(cache.directory)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert refused(cache, caplog, f"it belongs to user {os.getuid()}")


def test_a_file_in_place_of_the_directory_is_off(cache):
    open(cache.directory, "w").close()
    cache.put("a", b"x")
    assert cache.get("a") is None
    assert cache.stats().problem == "it is not a directory"


def test_no_directory_is_off():
    cache = DiskCache(None, BIG)
    cache.put("a", b"x")
    assert cache.get("a") is None
    assert cache.stats() == (None, "turned off", 0, 0, BIG, 0, 1)
    assert cache.clear() == 0


def test_a_directory_that_cannot_be_made_is_off(tmp_path, caplog):
    open(tmp_path / "file", "w").close()
    cache = DiskCache(tmp_path / "file" / "cache", BIG)
    cache.put("a", b"x")
    assert cache.get("a") is None
    assert "Not a directory" in cache.stats().problem
    assert not caplog.records


# The system fails


def failing(code):
    def fail(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    return fail


def test_an_unwritable_directory_still_gives_what_it_has(cache, monkeypatch):
    cache.put("a", b"x")
    monkeypatch.setattr(os, "utime", failing(errno.EROFS))
    monkeypatch.setattr(os, "unlink", failing(errno.EROFS))
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda p, f, *m: failing(errno.EROFS)() if f & os.O_CREAT else real(p, f, *m)
    )
    cache.put("b", b"x")
    assert cache.get("a") == b"x"
    assert cache.get("b") is None
    assert cache.clear() == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_write_permission(cache):
    cache.put("a", b"x")
    os.chmod(cache.directory, 0o500)
    cache.put("b", b"x")
    assert (cache.get("a"), cache.get("b")) == (b"x", None)
    os.chmod(cache.directory, 0o700)


@pytest.mark.parametrize("name", ["open", "write", "close", "replace", "makedirs"])
def test_a_full_disk_while_writing_leaves_nothing(cache, monkeypatch, name):
    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing(errno.ENOSPC))
        cache.put("a", b"program")
    assert cache.get("a") is None
    if name != "makedirs":
        assert os.listdir(cache.directory) == []
        cache.put("a", b"program")
        assert cache.get("a") == b"program"


def test_a_disk_that_fills_up_halfway(cache, monkeypatch):
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, data[: len(data) // 2]))
        cache.put("a", b"program")
    assert os.listdir(cache.directory) == []


@pytest.mark.parametrize("name", ["open", "fstat", "read", "close", "stat"])
def test_a_failing_read_is_a_miss(cache, monkeypatch, name):
    cache.put("a", b"program")
    again = DiskCache(cache.directory, BIG)
    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing(errno.EIO))
        found = again.get("a")
    assert found is None


@pytest.mark.parametrize("name", ["listdir", "lstat"])
def test_a_failing_scan_finds_nothing(tmp_path, monkeypatch, name):
    cache = DiskCache(tmp_path, 1000)
    monkeypatch.setattr(os, name, failing(errno.EIO))
    for i in range(10):
        cache.put(f"k{i}", b"x" * 300)
    assert cache.stats().entries == 0
    assert cache.get("k9") == b"x" * 300


def test_a_scan_passes_over_an_entry_that_goes_meanwhile(cache, monkeypatch):
    for key in "abc":
        cache.put(key, b"x")
    real = os.lstat
    monkeypatch.setattr(
        os, "lstat", lambda p: failing(errno.ENOENT)() if p.endswith("b.weft") else real(p)
    )
    assert sorted(kept(cache)) == ["a", "c"]


def test_an_interrupted_write_leaves_nothing(cache, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cache.put("a", b"program")
    assert os.listdir(cache.directory) == []


# Bounds


def test_the_least_recently_used_go_first(tmp_path):
    cache = DiskCache(tmp_path, 10_000)
    for age, key in enumerate("dcba"):
        cache.put(key, b"x" * 2000)
        used(cache, key, seconds_ago=100 + age)
    assert kept(cache) == ["a", "b", "c", "d"]
    assert cache.get("a") is not None  # the oldest, but used now
    cache.put("e", b"x" * 2000)
    assert sorted(kept(cache)) == ["a", "c", "d", "e"]


def test_an_overwritten_entry_is_recent(tmp_path):
    cache = DiskCache(tmp_path, 10_000)
    for age, key in enumerate("dcba"):
        cache.put(key, b"x" * 2000)
        used(cache, key, seconds_ago=100 + age)
    cache.put("a", b"y" * 2000)
    cache.put("e", b"x" * 2000)
    assert sorted(kept(cache)) == ["a", "c", "d", "e"]


def test_it_stays_bounded_and_keeps_the_latest(tmp_path):
    cache = DiskCache(tmp_path, 100_000)
    for i in range(400):
        cache.put(f"k{i}", b"x" * 1000)
        assert cache.stats().bytes <= 102_000
        assert cache.get(f"k{i}") is not None
    assert cache.stats().bytes > 80_000


def test_many_short_processes_stay_bounded(tmp_path):
    for i in range(3000):
        DiskCache(tmp_path, 1_000_000).put(f"k{i}", b"x" * 3000)
    assert DiskCache(tmp_path, 0).stats().bytes < 1_100_000


def test_a_put_rarely_scans(cache, monkeypatch):
    cache.put("a", b"x")
    cache._written = 0
    monkeypatch.setattr(os, "listdir", failing(errno.EIO))
    monkeypatch.setattr(DiskCache, "_evict", lambda self: pytest.fail("a scan"))
    for i in range(100):
        cache.put(f"k{i}", b"x" * 1000)


@pytest.mark.parametrize("max_bytes", [0, -1, 100])
def test_a_blob_beyond_the_bound_is_not_kept(tmp_path, max_bytes):
    cache = DiskCache(tmp_path, max_bytes)
    cache.put("a", b"x" * 100)
    assert os.listdir(tmp_path) == []


def test_a_blob_beyond_the_bound_drives_nothing_out(tmp_path):
    cache = DiskCache(tmp_path, 10_000)
    cache.put("a", b"x" * 100)
    used(cache, "a", seconds_ago=100)
    cache.put("b", b"x" * 9000)
    assert kept(cache) == ["a"]


def test_unfinished_files_of_the_dead_are_swept(tmp_path):
    cache = DiskCache(tmp_path, 10_000)
    for name, age in (("dead", 7200), ("alive", 10)):
        file = tmp_path / f"{name}.weft-tmp"
        file.touch()
        os.utime(file, (time.time() - age,) * 2)
    for key in "ab":
        cache.put(key, b"x" * 1000)
    assert sorted(os.listdir(tmp_path)) == ["a.weft", "alive.weft-tmp", "b.weft"]


# Many at once


def blob_of(key, size):
    return (key.encode() * size)[:size]


def work(directory, seed):
    """Read and write shared keys, with evictions and damage; return how many answers were wrong."""
    cache = DiskCache(directory, 60_000)
    wrong = 0
    for i in range(300):
        key = f"k{(i * 7 + seed) % 40}"
        found = cache.get(key)
        wrong += found not in (None, blob_of(key, 3000))
        if found is None:
            cache.put(key, blob_of(key, 3000))
        if i % 50 == seed % 50:
            cache.clear()
        if i % 30 == 0:
            try:
                with open(path_of(cache, key), "r+b") as file:
                    file.truncate(100)
            except OSError:
                pass
    return wrong


def test_many_processes_at_once(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        wrong = pool.starmap(work, [(str(tmp_path), seed) for seed in range(8)])
    assert wrong == [0] * 8
    assert all(name.endswith(".weft") for name in os.listdir(tmp_path))


def test_many_threads_on_one_cache(tmp_path):
    cache, wrong = DiskCache(tmp_path, 60_000), []

    def run(seed):
        for i in range(200):
            key = f"k{(i * 7 + seed) % 40}"
            if cache.get(key) not in (None, blob_of(key, 3000)):
                wrong.append(key)
            cache.put(key, blob_of(key, 3000))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.stats().bytes < 100_000


# Names


def test_keys_tell_their_parts_apart():
    keys = [
        cache_key("ab", "c"),
        cache_key("a", "bc"),
        cache_key("abc"),
        cache_key("abc", ""),
        cache_key("c", "ab"),
        cache_key("", "abc"),
    ]
    assert len(set(keys)) == len(keys)
    assert all(key.isalnum() and len(key) == 40 for key in keys)


def test_keys_take_any_text_and_stay_the_same():
    assert cache_key("module", b"options") == cache_key(b"module", "options")
    assert cache_key("module", "options") == "086246ffc5e2eec9a9ae888fb7950d7e8a87540a"
    assert cache_key("\udc80") != cache_key("é")


def test_fingerprint_names_jaxlib_the_cpu_and_the_environment(monkeypatch):
    import jaxlib.version

    diskcache.fingerprint.cache_clear()
    plain = diskcache.fingerprint()
    assert plain.startswith(jaxlib.version.__version__ + "\n")
    assert diskcache.cpu_features() in plain
    assert diskcache.fingerprint() is plain
    for name, value in (("XLA_FLAGS", "--xla_cpu_max_isa=AVX2"), ("NPROC", "1")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            diskcache.fingerprint.cache_clear()
            assert diskcache.fingerprint() != plain
    diskcache.fingerprint.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cpu_features_are_those_of_proc_and_stand_still():
    with open("/proc/cpuinfo") as file:
        lines = file.read().split("\n")
    flags = next(line for line in lines if line.startswith(("flags", "Features")))
    assert flags in diskcache.cpu_features().split("\n")
    assert "MHz" not in diskcache.cpu_features()


def test_cpu_features_without_proc(monkeypatch):
    monkeypatch.setattr("builtins.open", failing(errno.ENOENT))
    assert os.uname().machine in diskcache.cpu_features()


# Defaults


@pytest.mark.parametrize("value", ["off", "OFF", "0", "", " "])
def test_the_environment_turns_it_off(monkeypatch, value):
    monkeypatch.setenv("WEFT_CACHE_DIR", value)
    assert default_directory() is None


def test_the_environment_moves_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    for value, expected in (("/x/y", "/x/y"), ("~/z", "/home/me/z"), ("rel", f"{tmp_path}/rel")):
        monkeypatch.setenv("WEFT_CACHE_DIR", value)
        assert default_directory() == expected


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache/weft"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": "/x"}, "/x/weft"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": "x"}, "/home/me/.cache/weft"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache/weft"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/weft"),
        ("linux", {}, None),
        ("linux", {"HOME": ""}, None),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Caches/weft"),
        ("darwin", {}, None),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/weft"),
        ("win32", {}, None),
    ],
)
def test_the_place_by_default(monkeypatch, platform, environment, expected):
    for name in ("WEFT_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert default_directory() == expected


def test_the_environment_sets_the_limit(monkeypatch, caplog):
    monkeypatch.delenv("WEFT_CACHE_MAX_BYTES", raising=False)
    assert default_max_bytes() == BIG
    monkeypatch.setenv("WEFT_CACHE_MAX_BYTES", "1000")
    assert default_max_bytes() == 1000
    assert not caplog.records
    monkeypatch.setenv("WEFT_CACHE_MAX_BYTES", "much")
    assert default_max_bytes() == BIG
    assert caplog.messages == [
        "WEFT_CACHE_MAX_BYTES: must be a number of bytes; got 'much'. 1 GiB it is."
    ]


def test_importing_it_loads_nothing_heavy():
    code = (
        "import numpy, jaxlib, sys; before = set(sys.modules); import weft.xla.diskcache; "
        "print(*sorted(set(sys.modules) - before))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert not {"hashlib", "tempfile", "shutil", "argparse", "random"} & set(output.split())
