"""The bytes of exported programs: the checks before any of them is used."""

import contextlib
import dataclasses
import functools
import re
import struct

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests import settings
from tests.damages import damage_data
from weft import export, lax, nn, scipy
from weft.errors import ShapeError
from weft.experimental import custom_partitioning
from weft.export import container
from weft.export.modules import write_artefact

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


def with_module(old: str, new: str, target: str) -> bytes:
    """A file whose program has another text, and says that it may call `target`."""
    found = export.export(weft.jit(lambda x: x.T @ x))(np.eye(3, dtype=np.float32))
    text = found.mlir_module()
    assert old in text
    found = dataclasses.replace(
        found,
        mlir_module_serialized=write_artefact(text.replace(old, new)),
        disabled_safety_checks=(export.DisabledSafetyCheck.custom_call(target),),
    )
    return bytes(found.serialize())


PRIVATE = ["weft_scatter", "xla_ffi_python_cpu_callback", "xla_buffer_python_cpu_callback"]
PRIVATE += ["xla_ffi_partitioned_python_cpu_callback", "xla_python_gpu_callback"]
PRIVATE += ["InspectSharding", "CustomSPMDPartitioning", custom_partitioning.TARGET]


@pytest.mark.parametrize("target", PRIVATE)
def test_what_is_of_this_process_is_not_called_by_files(target):
    """The engine would call it with what the file says: a number, an address, sizes."""
    given = "{api_version = 4 : i32, backend_config = {index = 7 : ui64}}"
    custom = f"stablehlo.custom_call @{target}(%arg0) {given}"
    data = with_module("stablehlo.transpose %arg0, dims = [1, 0]", custom, target)
    with pytest.raises(ValueError, match=rf"^deserialize: a program must not call .*'{target}'\.$"):
        export.deserialize(data)


def test_custom_calls_of_files_are_declared():
    custom = "stablehlo.custom_call @memcpy(%arg0)"
    old = "stablehlo.transpose %arg0, dims = [1, 0]"
    with pytest.raises(ValueError, match=r"^deserialize: .* must call what later .* 'memcpy'"):
        export.deserialize(with_module(old, custom, "another"))
    found = export.deserialize(with_module(old, custom, "memcpy"))
    with pytest.raises(NotImplementedError, match="must be registered for the platform; .*memcpy"):
        found.call(np.eye(3, dtype=np.float32))


def test_no_export_calls_a_kernel_of_weft():
    """Each of the programs would call kernels if it were compiled here."""
    programs = [
        (jnp.sort, X), (jnp.cumsum, X), (lambda x: jnp.zeros(9).at[x].add(1.0), np.arange(3)),
        (lambda x: lax.top_k(x, 2), X), (jnp.linalg.det, np.eye(3, dtype=np.float32)),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"), X),
        (lambda x: nn.dot_product_attention(x, x, x), np.ones((1, 4, 2, 8), np.float32)),
        (jnp.sum, np.ones((40, 40), np.float32)), (scipy.special.gammaln, X),
    ]  # fmt: skip
    for f, x in programs:
        text = export.export(weft.jit(f))(x).mlir_module()
        assert not re.search(r"@(weft_|xla_\w*python)", text), f


def test_damages_of_the_header_are_errors_of_ours():
    """With checksums that are right: an error, or a program that is called or refuses to be."""
    (b,) = export.symbolic_shape("b", constraints=["b >= 2"])
    f = weft.jit(lambda p, x, k: {"y": p["w"] @ x, "z": (x.sum(), x[:2] * k)})
    args = {"w": np.ones((2, 3), np.float32)}, np.ones((3, 4), np.float32), np.int32(3)
    found = export.export(f)(args[0], weft.ShapeDtypeStruct((3, b), np.float32), args[2])
    data = found.serialize(vjp_order=1)
    header, modules = container.unpack_container("deserialize", "", container.MAGIC, data)
    refused = (ValueError, TypeError, weft.errors.JaxRuntimeError)
    for seed in range(3000 if settings.ALL else 100):
        damaged = damage_data(header, seed)
        data = container.pack_container(container.MAGIC, damaged, [modules])
        try:
            again = export.deserialize(data)
        except ValueError:
            continue
        with contextlib.suppress(*refused):
            again.call(*args)


def test_headers_that_describe_no_program():
    spec = weft.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32)
    data = export.export(weft.jit(jnp.sin))(spec).serialize()
    (fields,), modules = container.unpack_container("deserialize", "", container.MAGIC, data)
    headers = [[], {}, None, 0, "x", fields, [fields | {"uses_global_constants": []}], [[]]]
    for header in headers:
        with pytest.raises(ValueError, match="^deserialize: "):
            export.deserialize(container.pack_container(container.MAGIC, header, [modules]))


def test_expressions_of_sizes_are_bounded():
    bad = ["a^1000000000", "(a+b)^9999", "9^9^9^9", "((a^64)^64)^64", "a^b", "2^-1", "9" * 9999]
    bad += ["*".join(f"(a{i} + 1)" for i in range(40)), "+".join(["a"] * 9999), "a*" * 70 + "a"]
    bad += ["-" * 9999 + "a", "(" * 300 + "a" + ")" * 300]
    for text in bad:
        with pytest.raises(ValueError, match="^symbolic"):
            export.symbolic_shape(text)
        with pytest.raises(ValueError, match="^symbolic|^SymbolicScope"):
            export.SymbolicScope([f"{text} >= 1"])
    with pytest.raises(ShapeError, match="must have at most 500 factors"):
        export.symbolic_shape("mod(" * 20 + "a" + "".join(f", b{i})" for i in range(20)))
    with pytest.raises(ShapeError, match=r"a power must be a number from 0 to 64; got a\^65"):
        export.symbolic_shape("a")[0] ** 65
