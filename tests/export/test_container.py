"""The bytes of exported programs: what is checked before any of them is used."""

import functools
import struct

import numpy as np
import pytest

import weft
from weft import export
from weft.export import container

X = np.ones(2, np.float32)


@functools.cache
def written() -> bytes:
    return bytes(export.export(weft.jit(lambda x: (x * 2, 1)))(X).serialize())


def with_payload(payload: bytes, version: int = container.VERSION) -> bytes:
    """A container whose checksum is right."""
    digest = container.hashlib.sha256(payload).digest()
    return container._HEAD.pack(container.MAGIC, version, len(payload), digest) + payload


def with_header(old: bytes, new: bytes) -> bytes:
    """The container with a part of its header replaced."""
    payload = written()[container._HEAD.size :]
    (size,) = struct.unpack_from("<Q", payload)
    header = payload[8 : 8 + size]
    assert old in header
    header = header.replace(old, new)
    return with_payload(struct.pack("<Q", len(header)) + header + payload[8 + size :])


def test_equal_programs_give_equal_bytes():
    again = export.export(weft.jit(lambda x: (x * 2, 1)))(X).serialize()
    assert bytes(again) == written()
    assert bytes(export.deserialize(again).serialize()) == written()


@pytest.mark.parametrize("place", [60, 200, -1])
def test_a_changed_byte_is_noticed(place):
    data = bytearray(written())
    data[place] ^= 1
    with pytest.raises(ValueError, match=r"^deserialize: must be .* of which some are others\.$"):
        export.deserialize(data)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: written()[:200], r"must be \d+ bytes as they were written; got 144 bytes"),
        (lambda: written() + b"x", "bytes as they were written"),
        (lambda: b"PK\3\4", "must be bytes that Exported.serialize gave; got 4 bytes that begin"),
        (lambda: with_payload(b"", 2), "the version of the format must be at most 1; got 2. Hint"),
        (lambda: with_payload(b"abc"), "the header must describe programs"),
        (lambda: with_header(b'"fun_name"', b'"fun_mane"'), "the header must describe programs"),
        (lambda: with_header(b'"f32"', b'"f33"'), "a dtype must be one that weft has; got 'f33'"),
        (
            lambda: with_header(b'convention_version":10', b'convention_version":11'),
            "the calling convention must be from 9 to 10; got 11",
        ),
        (
            lambda: written()[: container._HEAD.size] and with_payload(
                written()[container._HEAD.size :].replace(b"StableHLO_v1", b"StableHLO_v9")
            ),
            "the version of StableHLO must be at most .* this jaxlib",
        ),
        (
            lambda: with_payload(
                written()[container._HEAD.size :].replace(b"ML\xefR\rStable", b"ML\xefR\rstable")
            ),
            "the module must be a portable artefact of StableHLO",
        ),
    ],
)  # fmt: skip
def test_what_is_not_such_a_container(make, text):
    with pytest.raises(ValueError, match=f"^deserialize: .*{text}"):
        export.deserialize(make())


def test_arguments():
    with pytest.raises(TypeError, match="^deserialize: needs bytes; got 'text'"):
        export.deserialize("text")
    with pytest.raises(ValueError, match="^serialize: vjp_order must be an integer from 0 on"):
        export.export(weft.jit(lambda x: x))(X).serialize(vjp_order=-1)


def test_weak_types_and_every_dtype_come_back():
    dtypes = ["bool", "int8", "uint16", "bfloat16", "float16", "complex64", "float8_e4m3fn", "int4"]
    args = [weft.ShapeDtypeStruct((2,), d) for d in dtypes]
    found = export.export(weft.jit(lambda *xs: xs))(*args, 1.0)
    again = export.deserialize(found.serialize())
    assert again.in_avals == found.in_avals and again.in_avals[-1].weak_type
