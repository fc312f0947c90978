"""`save` and `load`: a program and its arrays in one file, with nothing in it that is executed.

The file is a zip archive without compression: `program.txt`, the text that `unparse` gives; for
each array `arrays/N.npy`, so that `numpy.load` reads them too; `manifest.json`, the version of the
format, the types of the arrays, and a digest of each entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import zipfile
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import typeof, words_of
from weft.core.jaxpr import ClosedJaxpr, Jaxpr
from weft.display.show import require_program
from weft.errors import ParseError
from weft.jaxpr import syntax
from weft.jaxpr.reader import parse_document
from weft.jaxpr.values import read_type, type_text
from weft.jaxpr.writer import write_program
from weft.options import config
from weft.passes.holes import Hole
from weft.primitives.layout import convert
from weft.xla.array import array_of_type, put

VERSION = 1
_NAME = "weft.jaxpr"
_TIME = (1980, 1, 1, 0, 0, 0)  # equal programs give equal files


def save(path: Any, program: Jaxpr | ClosedJaxpr) -> None:
    """Write a program with its constants to a file.

    The file holds the text of `unparse`, and the arrays bit for bit. Python functions, such as
    rules of custom derivatives and callbacks, are not in it: `load` puts holes in their place.

    Args:
      path: the path of the file, or a binary file object.
      program: a `Jaxpr` or a `ClosedJaxpr`.

    Returns:
      None.

    >>> import io
    >>> file = io.BytesIO()
    >>> weft.jaxpr.save(file, weft.make_jaxpr(lambda x: x + np.arange(3.0))(1.0))
    >>> weft.jaxpr.load(file)(1.0)
    [Array([1., 2., 3.], dtype=float32)]
    """
    require_program("save", program)
    for x in program.consts:
        if type(x) is Hole:
            x()
    held: list[Any] = []
    text = write_program(program, held)
    arrays = [*program.consts, *held]
    entries = {"program.txt": text.encode()}
    entries |= {f"arrays/{i}.npy": npy_bytes(x) for i, x in enumerate(arrays)}
    manifest = {
        "format": _NAME,
        "version": VERSION,
        "arrays": [type_text(typeof(x)) for x in arrays],
        "consts": len(program.consts),
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in entries.items()},
    }
    entries["manifest.json"] = json.dumps(manifest, indent=1).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), data)


def load(path: Any, *, names: dict[str, Any] | None = None) -> ClosedJaxpr:
    """Read a program that `save` wrote.

    Nothing in the file is executed, and all of it is checked.

    Args:
      path: the path of the file, or a binary file object.
      names: the values of names in the text, as in `parse`. None by default.

    Returns:
      A `ClosedJaxpr`.

    Raises:
      ValueError: the file is damaged, of another format, or of a later version.
      ParseError: the text in it was changed and cannot be read.

    >>> import io
    >>> file = io.BytesIO()
    >>> weft.jaxpr.save(file, weft.make_jaxpr(jnp.sin)(1.0))
    >>> print(weft.jaxpr.load(file))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    with contextlib.ExitStack() as stack:
        file = path
        if isinstance(path, str | os.PathLike):
            file = stack.enter_context(open(path, "rb"))
        try:
            return read_program(file, names or {})
        except ValueError:
            raise
        except Exception as error:  # of zipfile, json and others, where a file is damaged
            raise ValueError(
                f"load: must be a file that weft.jaxpr.save wrote; got {path} "
                f"({type(error).__name__}: {error})."
            ) from error


def read_program(file: Any, names: dict[str, Any]) -> ClosedJaxpr:
    """Read the program in a binary file."""
    manifest, entries = read_archive(file)
    arrays = [
        read_array(entries[f"arrays/{i}.npy"], kind) for i, kind in enumerate(manifest["arrays"])
    ]
    n = manifest["consts"]
    text = syntax.Text(entries["program.txt"].decode())
    return parse_document(text, arrays[:n], None, names, arrays[n:])


def read_archive(file: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read the manifest of a file, and the entries that it lists, all checked.

    Nothing is decompressed: entries are stored uncompressed, so they are not longer than the file.
    """
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        stored = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
        if not stored or sum(info.file_size for info in infos) > archive.start_dir:
            raise ValueError(
                "load: entries must be stored one after another, without compression; got "
                f"{sum(info.file_size for info in infos)} bytes in {archive.start_dir}."
            )
        manifest = json.loads(archive.read("manifest.json"))
        if manifest["format"] != _NAME:
            raise ValueError(f"load: the format must be {_NAME!r}; got {manifest['format']!r}.")
        if manifest["version"] > VERSION:
            raise ValueError(
                f"load: the version of the format must be at most {VERSION}; got "
                f"{manifest['version']}. Hint: a later version of weft."
            )
        digests = manifest["sha256"]
        needed = ["program.txt", *[f"arrays/{i}.npy" for i in range(len(manifest["arrays"]))]]
        names = sorted([info.filename for info in infos])
        if sorted(digests) != sorted(needed) or names != sorted([*needed, "manifest.json"]):
            raise ValueError(
                "load: the manifest must have a digest of each entry that the file has; got "
                f"{len(digests)} digests for {len(names) - 1} entries, of {len(needed)} needed."
            )
        entries = {name: archive.read(name) for name in needed}
    for name, data in entries.items():
        if hashlib.sha256(data).hexdigest() != digests[name]:
            raise ValueError(f"load: {name} must be as it was written; got other bytes.")
    return manifest, entries


def npy_bytes(x: Any) -> bytes:
    """An array as an .npy file; of dtypes that those lack, the bits as unsigned integers."""
    values = np.asarray(words_of(x), typeof(x).physical.dtype)
    if values.dtype.kind not in "biufc":
        values = values.view(f"u{values.dtype.itemsize}")
    file = io.BytesIO()
    np.lib.format.write_array(
        file, np.ascontiguousarray(values).reshape(values.shape), allow_pickle=False
    )
    return file.getvalue()


def read_array(data: bytes, kind: str) -> Any:
    """The array of an .npy file, of the type that is written so."""
    text = syntax.Text(kind)
    found = text.type()
    if found is None:
        raise ParseError(f"load: the type of an array must be such as f32[3]; got {kind!r}.")
    aval = read_type(found, text)
    held = aval.physical
    file = io.BytesIO(data)
    np.lib.format.read_magic(file)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    width, rest = held.dtype.itemsize, data[file.tell() :]
    fits = shape == held.shape and (dtype == held.dtype or dtype == np.dtype(f"u{width}"))
    if not fits or by_columns or len(rest) != width * math.prod(shape):
        raise ValueError(
            f"load: an array must have its type, {aval}; got {len(rest)} bytes of "
            f"{dtype}{[*shape]}."
        )
    values = np.frombuffer(rest, held.dtype).reshape(shape)
    with config.scope(enable_x64=config.enable_x64 or held.dtype in dtypes.WIDE):
        array = array_of_type(aval, put(values))
        return convert(array, aval.dtype, True) if aval.weak_type else array
