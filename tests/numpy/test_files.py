"""Arrays in files, buffers and texts."""

import contextlib
import io
import itertools
import zipfile

import ml_dtypes
import numpy as np
import pytest

import weft.numpy as jnp
from tests import settings
from tests.damages import damage_bytes
from tests.docstrings import check_examples
from weft import dtypes
from weft.numpy import files

# The dtypes of arrays without enable_x64; XLA:CPU has no arrays of six bits.
KINDS = [
    kind.__name__
    for kind in {x for x in vars(jnp).values() if type(x) is type(jnp.int8)}
    if "float6_" not in kind.__name__ and kind.dtype not in dtypes.WIDE
]


def test_doctests():
    check_examples(files)


def reopen(save, *args, **kwargs):
    file = io.BytesIO()
    save(file, *args, **kwargs)
    file.seek(0)
    return file


@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_arrays_of_every_dtype_are_read_as_they_were_saved(shape):
    for name in KINDS:
        x = jnp.ones(shape, getattr(jnp, name))
        for given in (x, np.asarray(x)):
            got = jnp.load(reopen(jnp.save, given))
            assert got.dtype == x.dtype and got.shape == shape, name
            np.testing.assert_array_equal(np.asarray(got), np.asarray(x))
        archive = jnp.load(reopen(jnp.savez, x, named=x))
        assert sorted(archive) == ["arr_0", "named"]
        for key in archive:
            assert isinstance(archive[key], np.ndarray) and archive[key].dtype == x.dtype, name


def test_files_are_those_of_numpy():
    """Dtypes of NumPy and bfloat16 are written as NumPy writes them, others as a record."""
    for dtype in (np.float32, bool, np.complex64, ml_dtypes.bfloat16):
        x = np.ones(3, dtype)
        assert reopen(jnp.save, x).read() == reopen(np.save, x).read()
    record = np.load(reopen(jnp.save, jnp.ones(3, jnp.float8_e5m2)))
    assert record.dtype.names == ("float8_e5m2",)
    with zipfile.ZipFile(reopen(jnp.savez, np.ones(3), allow_pickle=False)) as file:
        assert [n for n in file.namelist() if "arr" in n] == ["arr_0.npy"]


def test_buffers_and_texts():
    np.testing.assert_array_equal(jnp.frombuffer(b"\x01\x02", dtype="uint8"), [1, 2])
    np.testing.assert_array_equal(jnp.fromstring("1 2", dtype=int, sep=" "), [1, 2])
    for f in (jnp.fromfile, jnp.fromiter):
        with pytest.raises(NotImplementedError, match="Hint: jnp.asarray"):
            f(range(3), int)


@pytest.mark.parametrize("make", [jnp.array, jnp.asarray])
def test_texts_of_numbers_are_read_where_a_dtype_is_given(make):
    for dtype in (bool, "int8", "uint32", "float16", "bfloat16", "float32", "complex64"):
        for given in ("1", b"1", np.array("1"), ["1", "0"], [["1"]], np.array(["1", "2"])):
            got = make(given, dtype=dtype)
            want = np.array(given).astype(bool if dtype is bool else complex)
            assert got.dtype == jnp.dtype(dtype)
            np.testing.assert_array_equal(np.asarray(got).astype(want.dtype), want)
    assert jnp.int32("7") == 7 and jnp.bfloat16("1.5") == 1.5
    for given in ("a", ["a"], np.array(["1", "a"])):
        with pytest.raises(ValueError, match="array: texts must be numbers of int32; got"):
            make(given, dtype=int)
    with pytest.raises(TypeError, match="got a str"):
        make("7")


def test_damages_are_errors_of_ours():
    files = [io.BytesIO() for _ in range(6)]
    jnp.save(files[0], jnp.ones((3, 4), jnp.bfloat16))
    jnp.save(files[1], np.arange(5))
    jnp.savez(files[2], a=jnp.ones((3, 4), jnp.int4), b=np.arange(5))
    np.savez_compressed(files[3], a=np.arange(50))
    for file, method in ((files[4], zipfile.ZIP_BZIP2), (files[5], zipfile.ZIP_LZMA)):
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("a.npy", reopen(jnp.save, np.arange(50)).getvalue())
    for file, seed in itertools.product(files, range(2000 if settings.ALL else 120)):
        with contextlib.suppress(ValueError):  # nothing else
            found = jnp.load(io.BytesIO(damage_bytes(file.getvalue(), seed)))
            for name in getattr(found, "files", ()):
                found[name]


def test_errors_of_the_system_stay():
    with pytest.raises(FileNotFoundError):
        jnp.load("no such file.npy")
    with pytest.raises(IsADirectoryError):
        jnp.load(".")
