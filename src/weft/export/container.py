"""Exported programs as bytes: a container with a version and a checksum.

    12 bytes   b"weft.export\\n"
    4 bytes    the version of the format; all numbers here are little-endian
    8 bytes    the length of the part after the checksum
    32 bytes   the SHA-256 checksum of that part
    the rest   the length of the header in 8 bytes, the header in JSON, the modules

The header has an entry for each program: the exported one, and its derivatives, one after another.
It holds only names, numbers and texts. Nothing in it is executed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import struct
from collections.abc import Sequence
from typing import Any

from weft.core.aval import ShapedArray
from weft.dtypes import float0, short_name
from weft.export.dims import Dim
from weft.export.lapack_calls import check_lapack_calls
from weft.export.modules import DisabledSafetyCheck, check_custom_calls, main_types, read_artefact
from weft.export.solving import find_scope, plan_sizes
from weft.export.specs import SymbolicScope, read_sizes
from weft.export.trees import read_tree, write_tree
from weft.jaxpr.values import read_dtype
from weft.mesh.mesh import AbstractMesh, AxisType
from weft.mesh.plugins import PLATFORMS
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import typed_as
from weft.util import has_symbolic_size

# JAX's numbers for how the main function of a module is called: since 9 it takes the index of the
# platform first, since 10 shardings are in Shardy's notation.
minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

MAGIC = b"weft.export\n"
VERSION = 1
minimum_supported_serialization_version = maximum_supported_serialization_version = VERSION
_HEAD = struct.Struct("<12sIQ32s")


def serialize_program(exported: Any, vjp_order: int) -> bytearray:
    """A program and its first `vjp_order` derivatives."""
    if not isinstance(vjp_order, int) or isinstance(vjp_order, bool) or vjp_order < 0:
        raise ValueError(f"serialize: vjp_order must be an integer from 0 on; got {vjp_order!r}.")
    chain = [exported]
    for _ in range(vjp_order):
        chain.append(chain[-1].vjp())
    modules = [e.mlir_module_serialized for e in chain]
    return bytearray(pack_container(MAGIC, [*map(describe_program, chain)], modules))


def pack_container(magic: bytes, header: Any, blobs: Sequence[bytes]) -> bytes:
    """Plain data, and bytes that it describes, as a container."""
    text = json.dumps(header, separators=(",", ":")).encode()
    payload = b"".join([struct.pack("<Q", len(text)), text, *blobs])
    return _HEAD.pack(magic, VERSION, len(payload), hashlib.sha256(payload).digest()) + payload


def unpack_container(op: str, writer: str, magic: bytes, blob: Any) -> tuple[Any, bytes]:
    """The plain data of a container that `writer` gave, and the bytes after it, all checked."""
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"{op}: needs bytes; got {blob!r}.")
    data = bytes(blob)
    if not data.startswith(magic) or len(data) < _HEAD.size:
        raise ValueError(
            f"{op}: must be bytes that {writer} gave; got {len(data)} bytes that begin with "
            f"{data[:12]!r}."
        )
    _, version, length, digest = _HEAD.unpack_from(data)
    if version > VERSION:
        raise ValueError(
            f"{op}: the version of the format must be at most {VERSION}; got {version}. "
            "Hint: a later version of weft."
        )
    payload = data[_HEAD.size :]
    if len(payload) != length or hashlib.sha256(payload).digest() != digest:
        raise ValueError(
            f"{op}: must be {length} bytes as they were written; got {len(payload)} bytes"
            f"{'' if len(payload) != length else ', of which some are others'}."
        )
    try:
        (size,) = struct.unpack_from("<Q", payload)
        return json.loads(payload[8 : 8 + size]), payload[8 + size :]
    except (ValueError, struct.error, RecursionError) as error:
        raise ValueError(f"{op}: the header must describe programs; got {error!r}.") from error


def describe_program(exported: Any) -> dict[str, Any]:
    """All of a program but its module, as plain data."""
    scope = find_scope(exported.in_avals)
    return {
        "fun_name": exported.fun_name,
        "in_tree": write_tree(exported.in_tree),
        "out_tree": write_tree(exported.out_tree),
        "in_avals": [*map(write_aval, exported.in_avals)],
        "constraints": [c[0] for c in scope.constraints] if scope else [],
        "out_avals": [*map(write_aval, exported.out_avals)],
        "in_shardings": [*map(write_sharding, exported._in_named_shardings)],
        "out_shardings": [*map(write_sharding, exported._out_named_shardings)],
        "nr_devices": exported.nr_devices,
        "platforms": exported.platforms,
        "ordered_effects": exported.ordered_effects,
        "unordered_effects": exported.unordered_effects,
        "disabled_safety_checks": [*map(str, exported.disabled_safety_checks)],
        "calling_convention_version": exported.calling_convention_version,
        "module_kept_var_idx": exported.module_kept_var_idx,
        "uses_global_constants": exported.uses_global_constants,
        "module": len(exported.mlir_module_serialized),
    }


def write_aval(aval: ShapedArray) -> list:
    """A type as plain data."""
    name = "float0" if aval.dtype == float0 else short_name(aval.dtype)
    return [name, ", ".join(map(str, aval.shape)), aval.weak_type]


def read_aval(scope: SymbolicScope, data: Sequence[Any]) -> ShapedArray:
    """The type that `write_aval` wrote, with sizes of a scope."""
    name, shape, weak = data
    dtype = float0 if name == "float0" else read_dtype(name)
    if dtype is None:
        raise ValueError(f"deserialize: a dtype must be one that weft has; got {name!r}.")
    return ShapedArray(tuple(read_sizes(shape, scope)), dtype, bool(weak))


def write_sharding(sharding: Any) -> Any:
    """A sharding over a mesh as plain data; None for None."""
    if sharding is None:
        return None
    mesh, spec = (
        sharding.mesh,
        [e if e is None or isinstance(e, str) else [*e] for e in sharding.spec],
    )
    return [[*mesh.axis_names], [*mesh.axis_sizes], spec, [*mesh.explicit_axes]]


def read_sharding(data: Any) -> Any:
    """The sharding that `write_sharding` wrote, over a mesh without devices."""
    if data is None:
        return None
    names, sizes, spec, *more = data  # without explicit axes, as versions before had it
    entries = [tuple(e) if isinstance(e, list) else e for e in spec]
    types = [AxisType.Explicit if more and n in more[0] else AxisType.Auto for n in names]
    mesh = AbstractMesh(tuple(sizes), tuple(names), tuple(types))
    return NamedSharding(mesh, PartitionSpec(*entries))


def read_container(blob: bytes | bytearray) -> list[dict[str, Any]]:
    """The fields of each program of a container, all of whose bytes are checked first."""
    header, rest = unpack_container("deserialize", "Exported.serialize", MAGIC, blob)
    found, start = [], 0
    if not header or not isinstance(header, list):
        raise ValueError(f"deserialize: the header must describe a program; got {header!r:.80}.")
    try:
        for fields in header:
            module = rest[start : start + fields["module"]]
            start += fields["module"]
            read = read_fields(fields)
            allowed = {*map(DisabledSafetyCheck.is_custom_call, read["disabled_safety_checks"])}
            found_module = read_artefact(module)
            check_custom_calls("deserialize: a program", found_module, allowed)
            check_lapack_calls("deserialize: a program", found_module)
            check_main(found_module, read)
            found.append(read | {"mlir_module_serialized": module})
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(
            f"deserialize: the header must describe programs; got one that does not ({error!r})."
        ) from error
    return found


def read_fields(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a program except for its module, of what `describe_program` gave."""
    version = int(given["calling_convention_version"])
    least = minimum_supported_calling_convention_version
    most = maximum_supported_calling_convention_version
    if not least <= version <= most:
        raise ValueError(
            f"deserialize: the calling convention must be from {least} to {most}; got {version}."
        )
    read = functools.partial(read_aval, SymbolicScope(given["constraints"]))
    shardings = {k: tuple(map(read_sharding, given[f"{k}_shardings"])) for k in ("in", "out")}
    avals = {
        k: tuple([typed_as(read(a), s) for a, s in zip(given[f"{k}_avals"], found, strict=True)])
        for k, found in shardings.items()
    }
    fields = {
        "fun_name": str(given["fun_name"]),
        "in_tree": read_tree(given["in_tree"]),
        "out_tree": read_tree(given["out_tree"]),
        "in_avals": avals["in"],
        "out_avals": avals["out"],
        "_in_named_shardings": shardings["in"],
        "_out_named_shardings": shardings["out"],
        "nr_devices": int(given["nr_devices"]),
        "platforms": tuple(map(str, given["platforms"])),
        "ordered_effects": tuple(given["ordered_effects"]),
        "unordered_effects": tuple(given["unordered_effects"]),
        "disabled_safety_checks": tuple(
            [DisabledSafetyCheck(str(check)) for check in given["disabled_safety_checks"]]
        ),
        "calling_convention_version": version,
        "module_kept_var_idx": tuple(map(int, given["module_kept_var_idx"])),
        "uses_global_constants": bool(given["uses_global_constants"]),
    }
    check_fields(fields)
    check_variables(fields)
    return fields


def check_fields(fields: dict[str, Any]) -> None:
    """Raise if the fields of a program are inconsistent."""
    ins, outs, kept = (fields[k] for k in ("in_avals", "out_avals", "module_kept_var_idx"))
    leaves = fields["in_tree"].num_leaves, fields["out_tree"].num_leaves
    fits = leaves == (len(ins), len(outs)) and set(kept) <= set(range(len(ins)))
    fits = fits and fields["in_tree"].num_nodes > 2 and 0 < fields["nr_devices"] < 1 << 31
    refined = len(fields["platforms"]) > 1 or any(has_symbolic_size(a.shape) for a in (*ins, *outs))
    if refined and not fields["uses_global_constants"]:
        raise ValueError(
            "deserialize: uses_global_constants must be true for symbolic sizes and several "
            f"platforms; got {fields['uses_global_constants']}."
        )
    if not fits or not set(fields["platforms"]) <= set(PLATFORMS) or not fields["platforms"]:
        raise ValueError(
            "deserialize: the parts of a program must fit each other; got structures of "
            f"{leaves[0]} and {leaves[1]} leaves for {len(ins)} arguments and {len(outs)} results, "
            f"of which the module takes {[*kept]}, on {fields['nr_devices']} devices, for "
            f"{fields['platforms']}."
        )


def check_variables(fields: dict[str, Any]) -> None:
    """Raise if a size of a result does not follow from the sizes of the arguments."""
    known = {step.name for step in plan_sizes("deserialize", fields["in_avals"])}
    sizes = [n for a in fields["out_avals"] for n in a.shape if isinstance(n, Dim)]
    unknown = {name for n in sizes for name in n.variables()} - known
    if unknown:
        raise ValueError(
            "deserialize: the sizes of results must follow from those of arguments; got "
            f"{', '.join(sorted(unknown))}."
        )


def check_main(module: Any, fields: dict[str, Any]) -> None:
    """Raise if the main function of a module does not have the types in the header."""
    ins = [fields["in_avals"][i] for i in fields["module_kept_var_idx"]]
    held = [a.update(dtype=bool) if a.dtype == float0 else a for a in fields["out_avals"]]
    wanted = [a.hlo for a in ins], [a.hlo for a in held]
    if len(fields["platforms"]) > 1:
        wanted[0].insert(0, "tensor<i32>")
    got = main_types(module)
    if got != wanted:
        raise ValueError(
            "deserialize: the main function of a module must have the types of the program, "
            f"{wanted[0]} and {wanted[1]}; got {got and got[0]} and {got and got[1]}."
        )
