"""weft.cache: the directory, statistics and clearing of the disk cache, and its command line."""

import os
import subprocess
import sys

import pytest

import weft.cache
from weft.cache.__main__ import main, readable
from weft.xla.diskcache import DiskCache


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WEFT_CACHE_MAX_BYTES", str(1 << 20))
    return str(tmp_path / "cache")


@pytest.fixture
def filled(place):
    cache = DiskCache(place, 1 << 20)
    cache.put("a", b"x" * 1000)
    cache.put("b", b"x" * 2000)
    return place


def test_statistics_and_clearing(filled):
    assert weft.cache.directory() == filled
    assert weft.cache.stats()[:5] == (filled, None, 2, 3040, 1 << 20)
    assert weft.cache.clear() == 2
    assert weft.cache.stats().entries == 0


def test_show(filled, capsys):
    assert main([]) == 0
    assert capsys.readouterr().out == (
        f"path    {filled}\n"
        "state   on\n"
        "entries 2\n"
        "bytes   3040 (2.969 KiB)\n"
        "limit   1048576 (1 MiB)\n"
    )


def test_show_makes_nothing(place, capsys):
    assert main(["show"]) == 0
    assert "entries 0\n" in capsys.readouterr().out
    assert not os.path.exists(place)


def test_clear(filled, capsys):
    assert main(["clear"]) == 0
    assert capsys.readouterr().out == "removed 2 entries, 2.969 KiB\n"
    assert os.listdir(filled) == []


def test_path(place, capsys):
    assert main(["--path"]) == 0
    assert capsys.readouterr().out == f"{place}\n"


def test_off(monkeypatch, capsys):
    monkeypatch.setenv("WEFT_CACHE_DIR", "off")
    assert weft.cache.directory() is None
    assert main([]) == 0
    assert "path    none\nstate   off: turned off\n" in capsys.readouterr().out
    assert main(["clear"]) == 0
    assert main(["--path"]) == 1


def test_refused(place, capsys):
    os.mkdir(place)
    os.chmod(place, 0o777)
    assert main([]) == 0
    assert "state   off: others can write there (mode 777)\n" in capsys.readouterr().out


def test_as_a_program(filled):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "weft.cache", "--path"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == (f"{filled}\n", "")


def test_readable():
    sizes = [0, 1023, 1024, 1536, 1 << 30, 1 << 50]
    assert [readable(size) for size in sizes] == [
        "0 bytes",
        "1023 bytes",
        "1 KiB",
        "1.5 KiB",
        "1 GiB",
        "1024 TiB",
    ]


def test_the_module_is_there_after_import_weft_alone():
    program = "import weft; print(weft.cache.stats().problem)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WEFT_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("turned off\n", "")


def test_statistics_are_those_of_the_cache_in_use(place, tmp_path):
    """Programs find what this process keeps, in the directory that `config` says."""
    with weft.config.scope(compilation_cache_dir=str(tmp_path / "other")):
        before = weft.cache.stats()
        for _ in range(2):
            weft.clear_caches()
            weft.jit(lambda x: x * 3.25).lower(1.0).compile()
        after = weft.cache.stats()
        assert weft.cache.directory() == after.directory == str(tmp_path / "other")
        assert (after.misses - before.misses, after.hits - before.hits) == (1, 1)
    assert weft.cache.directory() == place
