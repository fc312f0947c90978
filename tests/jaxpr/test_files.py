"""`save` and `load`: arrays bit for bit, checks of files, and no execution of content."""

import contextlib
import hashlib
import io
import json
import zipfile

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests import settings
from tests.damages import damage_bytes, damage_data
from weft import lax
from weft.core.jaxpr import ClosedJaxpr
from weft.errors import HoleError
from weft.jaxpr import load, parse, save, structural_hash, structurally_equal

NAN = np.array([np.nan, -0.0, np.inf], np.float32)
NAN.view(np.uint32)[0] |= 5  # a payload
ARRAYS = {
    "f32": NAN,
    "bf16": np.array([0.1, -2], ml_dtypes.bfloat16),
    "int4": np.array([-8, 7], ml_dtypes.int4),
    "bool": np.array([True, False]),
    "c64": np.array([1 + 2j, complex(-0.0, 3)], np.complex64),
    "empty": np.zeros((0, 3), np.int8),
    "scalar": np.array(7, np.uint16),
}


def written(program):
    file = io.BytesIO()
    save(file, program)
    return file


@pytest.mark.parametrize("name", ARRAYS)
def test_consts_bit_for_bit(name):
    array = ARRAYS[name]
    closed = weft.make_jaxpr(lambda: jnp.asarray(array)[None])()
    again = load(written(closed))
    assert structurally_equal(again, closed)
    assert np.asarray(again()[0]).tobytes() == array.tobytes()


def test_keys_weak_arrays_and_arrays_in_equations():
    key, weak = weft.random.key(3), jnp.asarray(2.0)
    closed = weft.make_jaxpr(lambda x: weft.random.bits(key) + x * weak)(1.0)
    assert structurally_equal(load(written(closed)), closed)
    held = parse("{ lambda ; . let a:f32[3] = constant[held=f32[3]]  in (a,) }")
    whole = parse(str(held), names={})
    assert str(whole) == str(held)


def test_wide_arrays_without_x64():
    with weft.config.scope(enable_x64=True):
        closed = weft.make_jaxpr(lambda: jnp.asarray([1 / 3])[None])()
        file = written(closed)
    again = load(file)
    assert again.consts[0].dtype == np.float64
    assert structurally_equal(again, closed)


def test_a_file_on_disk_is_text_and_npz(tmp_path):
    path = tmp_path / "program.weft"
    closed = weft.make_jaxpr(lambda x: x + np.arange(3.0))(1.0)
    save(path, closed)
    assert structural_hash(load(path)) == structural_hash(closed)
    assert structural_hash(load(str(path))) == structural_hash(closed)
    assert b"{ lambda a:f32[3]; b:~f32[]. let" in path.read_bytes()
    np.testing.assert_array_equal(np.load(path)["arrays/0"], np.arange(3.0, dtype=np.float32))
    before = path.read_bytes()
    save(path, closed)
    assert path.read_bytes() == before


def rewrite(file, **changes):
    """The archive with other entries."""
    with zipfile.ZipFile(file) as old:
        entries = {n: old.read(n) for n in old.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for name, data in {**entries, **changes}.items():
            new.writestr(name, data)
    return out


def test_files_are_checked():
    file = written(weft.make_jaxpr(lambda x: x + np.arange(3.0))(1.0))
    with pytest.raises(ValueError, match="load: must be a file that weft.jaxpr.save wrote"):
        load(io.BytesIO(b"nothing"))
    with pytest.raises(ValueError, match=r"load: program.txt must be as it was written"):
        load(rewrite(file, **{"program.txt": b"{ lambda ; . let  in () }"}))
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    later = json.dumps({**manifest, "version": 99})
    with pytest.raises(ValueError, match="version of the format must be at most 1; got 99"):
        load(rewrite(file, **{"manifest.json": later}))
    pickled = io.BytesIO()
    np.save(pickled, np.array([print], object), allow_pickle=True)
    evil = {"arrays/0.npy": pickled.getvalue()}
    with pytest.raises(ValueError, match="arrays/0.npy must be as it was written"):
        load(rewrite(file, **evil))
    digest = hashlib.sha256(evil["arrays/0.npy"]).hexdigest()
    manifest["sha256"]["arrays/0.npy"] = digest
    with pytest.raises(ValueError, match=r"an array must have its type, f32\[3\]; got .* object"):
        load(rewrite(file, **evil, **{"manifest.json": json.dumps(manifest)}))
    half = io.BytesIO(file.getvalue()[: len(file.getvalue()) // 2])
    with pytest.raises(ValueError, match="must be a file that"):
        load(half)


def test_every_entry_has_a_digest_and_none_is_inflated():
    """Nothing is read that the manifest does not list; no entry is longer than the file."""
    file = written(weft.make_jaxpr(lambda x: x + np.arange(3.0))(1.0))
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    for bad in ({}, {"program.txt": manifest["sha256"]["program.txt"]}):
        changed = json.dumps({**manifest, "sha256": bad})
        with pytest.raises(ValueError, match="^load: the manifest must have a digest of each"):
            load(rewrite(file, **{"manifest.json": changed}))
    with pytest.raises(ValueError, match="a digest of each entry .* got 2 digests for 3 ent"):
        load(rewrite(file, more=b"1"))
    bomb = io.BytesIO(file.getvalue())
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 20))
    with pytest.raises(ValueError, match=r"^load: entries must be stored .* got 10\d+ bytes in"):
        load(bomb)
    data = file.getvalue()  # one entry under two names
    twice = io.BytesIO(data)
    with zipfile.ZipFile(twice, "a") as archive:
        info = archive.getinfo("program.txt")
        copied = zipfile.ZipInfo("again")
        for name in ("CRC", "compress_size", "file_size", "header_offset"):
            setattr(copied, name, getattr(info, name))
        archive.filelist += [copied] * 20
        archive.NameToInfo["again"] = copied
        archive._didModify = True
    with pytest.raises(ValueError, match="^load: "):
        load(twice)


def test_damages_are_errors_of_ours():
    """Damaged bytes of a file, manifests with valid digests, and texts."""
    program = weft.make_jaxpr(compute)(np.ones(3, np.float32))
    file = written(program)
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        text = archive.read("program.txt")
    for seed in range(1000 if settings.ALL else 40):
        changed = damage_bytes(text, seed)
        digest = {"program.txt": hashlib.sha256(changed).hexdigest()}
        whole = {**manifest, "sha256": {**manifest["sha256"], **digest}}
        damages = [
            io.BytesIO(damage_bytes(file.getvalue(), seed)),
            rewrite(file, **{"manifest.json": json.dumps(damage_data(manifest, seed))}),
            rewrite(file, **{"program.txt": changed, "manifest.json": json.dumps(whole)}),
        ]
        for damaged in damages:
            with contextlib.suppress(ValueError):  # nothing else, and it comes to an end
                assert isinstance(load(damaged), ClosedJaxpr)
        for words in (str(program), weft.jaxpr.unparse(program)):
            with contextlib.suppress(ValueError, HoleError):
                parse(damage_bytes(words.encode(), seed).decode(errors="replace"))


def compute(x):
    step = lambda c, y: (jnp.sin(c * y), lax.cond(c.sum() > 0, lambda: 1.0, lambda: 2.0))
    f = lambda x: lax.scan(step, x, np.arange(12, dtype=np.float32).reshape(4, 3))[0].sum()
    return weft.grad(f)(x) + lax.sort(x) @ np.ones((3, 3), np.float32)


def test_a_program_without_its_consts_is_not_saved():
    with pytest.raises(weft.errors.HoleError, match="consts must be given"):
        written(parse("{ lambda a:f32[3]; . let  in (a,) }"))
