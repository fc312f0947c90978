"""Compiled programs as bytes, for another process on a machine like this one.

    data, in_tree, out_tree = serialize(weft.jit(f).lower(x).compile())
    y = deserialize_and_load(data, in_tree, out_tree)(x)

`weft.export` has programs that other machines compile. The cache on disk keeps executables too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from weft.api.programs import StagedProgram
from weft.api.stages import Compiled
from weft.control.compiler_options import BACKEND
from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, Var
from weft.cpu.kernels import load_kernels
from weft.export.container import pack_container, read_aval, unpack_container, write_aval
from weft.export.specs import SymbolicScope
from weft.jaxpr.files import npy_bytes, read_array
from weft.jaxpr.values import type_text
from weft.mesh.client import default_device, device_list, devices_of, platform_of
from weft.options import config
from weft.primitives.lapack import register_kernels
from weft.primitives.layout import zeros
from weft.pytrees import PyTreeDef
from weft.run.pipeline import JitSpec, lower_program
from weft.util import list_public
from weft.xla.compile import Executable, compile_options, describe_machine
from weft.xla.diskcache import fingerprint
from weft.xla.placement import Placement, on_device

__all__ = ["deserialize_and_load", "serialize"]
__dir__ = list_public(__name__)

MAGIC = b"weft.binary\n"


class LoadedProgram(StagedProgram):
    """A program that has an executable, `fun`, but no jaxpr."""

    __slots__ = ()

    def run(self, leaves: Sequence[Any], placement: Any = None) -> tuple:
        return self.fun()(*leaves), None


def machine_digest(device: Any) -> str:
    """Return a digest of what an executable depends on besides its program."""
    return hashlib.sha256(f"{describe_machine(device)}\n{fingerprint()}".encode()).hexdigest()


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """Return a compiled program as bytes, for another process on a machine of the same kind.

    The program must be for one device, and must not call Python functions. It is compiled again,
    without the cache on disk. `weft.export` writes programs for other machines and for a mesh.

    Args:
      compiled: the compiled program, as from `weft.jit(f).lower(x).compile()`.

    Returns:
      A tuple `(data, in_tree, out_tree)`: the bytes, and the structures of the arguments and of the
      result. Structures can be pickled. `deserialize_and_load` takes all three.

    Raises:
      TypeError: `compiled` is not a compiled program.
      ValueError: the program has a callback or references, is for a mesh, or was compiled as C.

    >>> compiled = weft.jit(lambda x: x + 1).lower(np.float32(1)).compile()
    >>> data, in_tree, out_tree = serialize(compiled)
    >>> print(deserialize_and_load(data, in_tree, out_tree)(np.float32(2)))
    3.0
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize: needs a compiled program; got {compiled!r}. Hint: "
            "weft.jit(f).lower(x).compile()."
        )
    program, run = compiled._program, compiled._run
    name = program.spec.name
    in_c = BACKEND in dict(program.spec.compiler_options)
    if run.host_calls or program.stateful or run.placement.partitioned or in_c:
        found = "a callback" if run.host_calls else "references" if program.stateful else "a mesh"
        found = "a program of the backend 'c'" if in_c else found
        raise ValueError(
            f"serialize: {name} must be a program of arrays on one device; got {found}. "
            "Hint: weft.export, for programs over a mesh."
        )
    # Compile once more: an executable from the disk cache does not serialize completely.
    with config.scope(enable_compilation_cache=False):
        lowered = lower_program(program.jaxpr, program.consts, program.spec, run.placement)
        run = lowered.compile(program.spec.compiler_options)
    device = run.placement.devices[0]
    consts = [npy_bytes(c) for c in run.consts]
    blobs = [run.loaded.serialize(), *consts]
    header = {
        "machine": machine_digest(device),
        "platform": platform_of(device),
        "name": name,
        "in_avals": [*map(write_aval, program.in_avals)],
        "out_avals": [*map(write_aval, run.out_avals)],
        "hidden": [*program.hidden],
        "hidden_results": [[i, write_aval(typeof(x))] for i, x in program.hidden_results.items()],
        "donated": program.donated,
        "kept": run.kept,
        "consts": [type_text(typeof(c)) for c in run.consts],
        "options": program.spec.compiler_options,
        "sizes": [*map(len, blobs)],
    }
    return pack_container(MAGIC, header, blobs), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """Return the compiled program that `serialize` wrote, ready to be called.

    The bytes are machine code: only load bytes that you trust. They are rejected if they were
    written on another kind of machine, or by another jaxlib.

    Args:
      serialized: the bytes that `serialize` returned.
      in_tree: the structure of the arguments, as `serialize` returned it.
      out_tree: the structure of the results, as `serialize` returned it.
      backend: the name of a platform. None is the platform of the default device.
      execution_devices: the one device to run on. None is the first device.

    Returns:
      A `Compiled`, a function of the arguments of the program.

    Raises:
      ValueError: the bytes were not written by `serialize`, or were written for another kind of
        machine or by another jaxlib.

    >>> compiled = weft.jit(lambda x: x + 1).lower(np.float32(1)).compile()
    >>> deserialize_and_load(*serialize(compiled))(np.float32(2))
    Array(3., dtype=float32)
    """
    op = "deserialize_and_load"
    given, rest = unpack_container(op, "serialize", MAGIC, serialized)
    platform = backend if isinstance(backend, str) else None
    device = devices_of(platform, f"{op}: backend")[0] if platform else default_device()
    if execution_devices is not None:
        (device,) = execution_devices
    try:
        check_machine(op, given, device)
        placement = on_device(device, execution_devices is not None)
        return load_compiled(given, rest, (in_tree, out_tree), placement)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(
            f"{op}: must be bytes that serialize gave; got a header that does not describe what "
            f"follows it ({error!r})."
        ) from error


def check_machine(op: str, given: dict[str, Any], device: Any) -> None:
    """Raise where a program was compiled for another kind of machine."""
    if platform_of(device) != given["platform"] or machine_digest(device) != given["machine"]:
        raise ValueError(
            f"{op}: the machine must be as the one that {given['name']} was compiled on "
            f"({given['platform']}), with the same jaxlib; got {device}. Hint: weft.export."
        )


def load_compiled(
    given: dict[str, Any], rest: bytes, trees: tuple, placement: Placement
) -> Compiled:
    """Return the compiled program that a header and the bytes after it describe."""
    if given["platform"] == "cpu":  # an executable may call them
        register_kernels()
        load_kernels()
    pieces, start = [], 0
    for size in given["sizes"]:
        pieces.append(rest[start : start + size])
        start += size
    (device,) = placement.devices
    settings = [(key, value) for key, value in given["options"]]
    options = compile_options(placement, settings, (), ())
    loaded = device.client.deserialize_executable(pieces[0], device_list(device), options)
    scope = SymbolicScope()
    in_avals, out_avals = (
        [read_aval(scope, a) for a in given[k]] for k in ("in_avals", "out_avals")
    )
    consts = [
        read_array(data, kind) for data, kind in zip(pieces[1:], given["consts"], strict=True)
    ]
    hidden = dict.fromkeys(given["hidden"])
    hidden_results = {i: zeros(read_aval(scope, a)) for i, a in given["hidden_results"]}
    taken = [a for i, a in enumerate(in_avals) if i not in hidden]
    kept, donated = given["kept"], tuple(given["donated"])
    passed = range(len(taken))
    counts = len(consts) + len(passed if kept is None else kept), len(out_avals)
    compiled = len(loaded.get_parameter_layouts()), len(loaded.get_output_layouts())
    leaves = len(in_avals), len(out_avals) + len(hidden_results)
    inside = {*(kept or ()), *donated} <= {*passed} and {*hidden} <= {*range(len(in_avals))}
    if counts != compiled or leaves != tuple([tree.num_leaves for tree in trees]) or not inside:
        raise ValueError(
            "deserialize_and_load: the parts of a program must fit each other; got "
            f"{counts[0]} operands and {counts[1]} results for a program of {compiled[0]} and "
            f"{compiled[1]}, in structures of {leaves[0]} and {leaves[1]} leaves."
        )
    jaxpr = Jaxpr((), [*map(Var, taken)], [*map(Var, out_avals)], ())
    run = Executable(loaded, jaxpr, placement, consts, kept)
    program = LoadedProgram(
        lambda: run, trees[0], in_avals, donated, hidden, jaxpr, jaxpr, (), trees[1],
        hidden_results, JitSpec(str(given["name"])),
    )  # fmt: skip
    return Compiled(program, run)
