"""Compile StableHLO to machine code, keep executables in memory and on disk, run them.

The disk is diskcache.py's; what text to compile is lower.py's; the C++ call path is fastpath.py's.
"""

from __future__ import annotations

import _thread
import atexit
import functools
import importlib
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from weft.core.aval import words_of
from weft.core.jaxpr import Jaxpr
from weft.errors import DtypeError, JaxRuntimeError
from weft.mesh.client import (
    device_list,
    has_clients,
    has_few_threads,
    name_lost_processes,
    platform_of,
)
from weft.mesh.mesh import missing_devices_error
from weft.mesh.plugins import find_cuda_tools
from weft.mesh.typed import typed_for
from weft.options import config
from weft.pytrees import call_tree
from weft.util import Logger, share_result
from weft.watch import events
from weft.watch.progress import run_reporting
from weft.xla import shards
from weft.xla.array import array_of_type, put
from weft.xla.callbacks import execute_with_callbacks, make_entry, parse_module
from weft.xla.diskcache import KEY_SIZE, cache_key, disk_cache, fingerprint
from weft.xla.memory import describe_memory, needs_much_memory
from weft.xla.placement import Placement

logger = Logger("weft.compile")

FOREIGN_TARGET = r'call_target_name = "(?!weft_)'  # compiled at its first use
MAX_KEPT_TEXT = 1 << 16  # of programs whose executables are kept in memory
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")


class Flags(NamedTuple):
    """Flags of XLA for one program.

    Attributes:
      overrides: names and values of flags.
      extra: names and values of the options of a backend, as texts.
    """

    overrides: tuple[tuple[str, Any], ...] = ()
    extra: tuple[tuple[str, str], ...] = ()


NO_FLAGS = Flags()


def compile_text(
    text: str,
    placement: Placement,
    settings: Sequence[tuple[str, Any]] = (),
    host_calls: int = 0,
    chosen: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
    flags: Flags = NO_FLAGS,
    described: str | None = None,
) -> tuple[Any, str]:
    """Return the loaded executable of a module, and its origin: compiled, or a cache.

    `settings` are the user's XLA flags, which override `flags`. `host_calls` is the number of
    Python functions that the program calls; the executable knows them by index only. Over a mesh,
    `chosen` says for each parameter and each result if the compiler may choose its sharding.
    `described` is what `load_described` finds the executable by from now on.
    """
    if vars(Executable)["__call__"] is refuse_in_child:
        refuse_in_child()
    start, name = time.perf_counter(), module_name(text)
    if placement.devices[0] is None:
        raise missing_devices_error(name, placement.whole.mesh)
    if placement.platform:
        here = platform_of(placement.devices[0])
        raise ValueError(
            f"{name}: must be compiled for {here}, the platform of its devices; got a program for "
            f"{placement.platform}. Hint: weft.export saves it."
        )
    options = compile_options(placement, settings, *chosen, flags)
    given = text, placement.devices, options, host_calls, described
    if config.progress:
        what = f"compiling {name} ({text.count(chr(10)):,} lines of StableHLO)"
        loaded, how = run_reporting(what, compile_once, *given)
    else:
        loaded, how = compile_once(*given)
    report_compiled(name, how, start)
    return loaded, how


def report_compiled(name: str, how: str, start: float) -> None:
    """Tell listeners, and the log if it is wanted, that there is an executable."""
    seconds = time.perf_counter() - start
    events.record_work(events.COMPILE, seconds, fun_name=f"jit({name})")
    if config.log_compiles:
        logger.warning("%s %s in %.1f ms", how, name, seconds * 1e3)


def compile_options(
    placement: Placement,
    settings: Sequence[tuple[str, Any]],
    parameters: Sequence[bool],
    results: Sequence[bool],
    flags: Flags = NO_FLAGS,
) -> Any:
    """XLA's options: the flags set, and the devices of the program."""
    defaults, overrides = default_options(platform_of(placement.devices[0]), flags.extra)
    overrides = (*overrides, *flags.overrides)
    options = _jax.CompileOptions.ParseFromString(defaults)
    if config.disable_most_optimizations:
        overrides = (*overrides, *UNOPTIMIZED)
    options.env_option_overrides = [*overrides, *settings]
    ids = np.array([[d.id for d in placement.devices]], np.int32)
    assignment = options.device_assignment = _jax.DeviceAssignment.create(ids)
    if placement.partitioned:
        built = options.executable_build_options
        options.num_partitions = built.num_partitions = len(placement.devices)
        built.device_assignment = assignment
        built.use_spmd_partitioning = built.use_shardy_partitioner = True
        built.allow_spmd_sharding_propagation_to_parameters = list(parameters)
        built.allow_spmd_sharding_propagation_to_output = list(results)
    return options


_COMPILING: dict[Any, Any] = {}  # what threads compile now, by inputs


def compile_once(
    text: str, devices: tuple, options: Any, host_calls: int, described: str | None
) -> tuple[Any, str]:
    """Return the loaded executable and its origin; wait for a thread that compiles it already."""
    made_of = text, devices, options.SerializeAsString(), config.compilation_cache_dir
    shared = config.enable_compilation_cache and not host_calls
    key = made_of if shared else object()
    (loaded, how), mine = share_result(
        _COMPILING, key, load_or_compile, made_of, options, host_calls
    )
    if described is not None and is_found_by_description(text):
        keep_described(described, made_of, loaded)
    return loaded, how if mine else "found in memory"


def load_or_compile(made_of: tuple, options: Any, host_calls: int) -> tuple[Any, str]:
    """Return the loaded executable, and its origin."""
    make_room()
    text, devices = made_of[:2]
    listed = device_list(*devices)
    entries = [[make_entry(i) for i in range(host_calls)]] if host_calls else []
    if not config.enable_compilation_cache:
        return compile_now(text, listed, options, *entries), "compiled"
    events.record_event(events.CACHE_REQUEST)
    start = time.perf_counter()
    if (loaded := _LOADED.pop(made_of, None)) is not None:
        events.record_event(events.CACHE_HIT)
        return keep_loaded(made_of, loaded), "found in memory"
    disk = disk_cache(config.compilation_cache_dir)
    key = disk_key(text, made_of[2], devices)
    # Callbacks belong to one executable.
    keep: Callable = (lambda _, x: x) if host_calls else keep_loaded
    if (loaded := load_entry(disk, key, devices, options, *entries)) is not None:
        events.record_event(events.CACHE_HIT)
        events.record_work(events.CACHE_RETRIEVAL, time.perf_counter() - start)
        return keep(made_of, loaded), "loaded from the disk cache"
    events.record_event(events.CACHE_MISS)
    loaded = compile_now(text, listed, options, *entries)
    try:
        disk.put(key, loaded.serialize())
    except Exception as e:  # a platform without serialization
        logger.debug("compile cache: an executable was not kept (%s)", e)
    return keep(made_of, loaded), "compiled"


def make_room() -> None:
    """Have room for one more executable; what room.py does is needed with the first one."""
    importlib.import_module("weft.xla.room").ROOM.make()


def load_entry(disk: Any, key: str, devices: tuple, options: Any, *entries: Any) -> Any | None:
    """Return the executable of an entry on disk; None if there is none, or it does not load."""
    if (blob := disk.get(key)) is None:
        return None
    try:
        listed = device_list(*devices)
        return devices[0].client.deserialize_executable(blob, listed, options, *entries)
    except Exception as e:  # whatever is odd about an entry is a recompile
        logger.info("compile cache: an entry did not load (%s); compiling again", e)
        return None


def disk_key(text: str, options: bytes, devices: tuple) -> str:
    """Return the key of an executable on disk."""
    places = f"{describe_machine(devices[0])} {' '.join([str(d.id) for d in devices])}"
    return cache_key(text, options, fingerprint(), places)


def description_key(described: str, devices: tuple) -> str:
    """Return the key of a description on disk, where its value is the key of the executable."""
    return disk_key(described, repr(default_options("cpu")).encode(), devices)


def is_found_by_description(text: str) -> bool:
    """Return True if a module can be loaded without being lowered again.

    What lowering does besides writing must not be needed: registering kernels of others, passing
    Python functions, or a warning about donated buffers.
    """
    return "jax.buffer_donor" not in text and not re.search(FOREIGN_TARGET, text)


def keep_described(described: str, made_of: tuple, loaded: Any) -> None:
    """Note in memory and on disk which executable a description stands for."""
    text, devices, options, directory = made_of
    key = description_key(described, devices)
    if len(text) < MAX_KEPT_TEXT:
        keep_loaded((key, directory), loaded)
    note = disk_key(text, options, devices).encode() + options
    disk_cache(directory).put(key, note)


def load_described(described: str, devices: tuple, name: str) -> Any | None:
    """Return the executable of a program by its description; None if the disk does not have it.

    `compile_text` has noted it there, in this process or another one.
    """
    if vars(Executable)["__call__"] is refuse_in_child:
        refuse_in_child()
    start, key = time.perf_counter(), description_key(described, devices)
    made_of = key, config.compilation_cache_dir
    (loaded, how), _ = share_result(_COMPILING, made_of, find_described, made_of, devices)
    if loaded is not None:
        report_compiled(name, how, start)
    return loaded


def find_described(made_of: tuple, devices: tuple) -> tuple[Any, str]:
    """Return the executable that a key of a description leads to, or None; and its origin."""
    start, disk = time.perf_counter(), disk_cache(made_of[1])
    loaded, how = _LOADED.pop(made_of, None), "found in memory"
    if loaded is None and (found := disk.get(made_of[0])) is not None:
        make_room()
        how, key = "loaded from the disk cache", found[:KEY_SIZE].decode()
        options = _jax.CompileOptions.ParseFromString(found[KEY_SIZE:])
        loaded = load_entry(disk, key, devices, options)
    if loaded is not None:
        keep_loaded(made_of, loaded)
        events.record_event(events.CACHE_REQUEST)
        events.record_event(events.CACHE_HIT)
        if how != "found in memory":
            events.record_work(events.CACHE_RETRIEVAL, time.perf_counter() - start)
    return loaded, how


_LOADED: dict[tuple, Any] = {}  # executables by their inputs; the last used comes last


def keep_loaded(made_of: tuple, loaded: Any) -> Any:
    """Give an executable, kept for equal programs: 256 at most, of texts that are not long."""
    if len(made_of[0]) < MAX_KEPT_TEXT:
        _LOADED[made_of] = loaded
        if len(_LOADED) > 256:
            _LOADED.pop(next(iter([*_LOADED])), None)  # a list, as other threads add to it
    return loaded


def forget_loaded() -> None:
    """Empty the memory of executables."""
    _LOADED.clear()


# what jax_disable_most_optimizations asks for: a program that compiles fast and runs slowly
UNOPTIMIZED = ("xla_backend_optimization_level", 0), ("xla_llvm_disable_expensive_passes", True)


# The platforms and sets of extra options are few. The result is used for each program.
@functools.cache
def default_options(platform: str, extra: tuple[tuple[str, str], ...] = ()) -> tuple[bytes, tuple]:
    """Return XLA's defaults for a platform, as a CompileOptionsProto, and flags to set beside.

    Source: xla/pjrt/proto/compile_options.proto. Its field 3 is ExecutableBuildOptionsProto; field
    3 of that is DebugOptions; and field 500 of that maps names of options to values.
    """
    defaults = _jax.CompileOptions().SerializeAsString()
    for name, value in extra:
        given = write_field(1, name.encode()) + write_field(2, value.encode())
        for number in (500, 3, 3):
            given = write_field(number, given)
        defaults += given  # protobuf merges repeated fields
    tools = find_cuda_tools() if platform == "cuda" else None
    return defaults, (("xla_gpu_cuda_data_dir", tools),) if tools else ()


@functools.cache
def describe_machine(device: Any) -> str:
    """The kind of a device, and the version of what compiles for it where jaxlib does not."""
    if device.platform == "cpu":
        return "cpu"
    return f"{platform_of(device)} {device.device_kind} {device.client.platform_version}"


def write_field(number: int, payload: bytes) -> bytes:
    """A field of a protocol buffer that holds bytes; number and length below 2**14."""
    tag, size = ((x & 127 | 128, x >> 7) for x in (number << 3 | 2, len(payload)))
    return bytes([*tag, *size]) + payload


def module_name(text: str) -> str:
    """The name of the function that a module was made of."""
    return text[8 : text.index(" ", 8)].removeprefix("jit_")


def compile_now(text: str, devices: Any, options: Any, *entries: list) -> Any:
    """Compile a module."""
    if found := re.search(r"(f6E\w+|[su]i1)(?=>)", text):  # XLA ends the process for some of these
        rule = "must be of dtypes that XLA has arrays of"
        raise DtypeError(f"{module_name(text)}: {rule}; got {found[0]}.")
    try:
        module = parse_module(text) if entries else text
        compile_it = devices[0].client.compile_and_load
        return run_to_end(lambda: compile_it(module, devices, options, *entries))
    except (RuntimeError, ValueError) as error:
        said, *more = str(error).strip().split("\n")
        if said.endswith("(most recent call last):"):  # a function of the user's that XLA calls
            error_line = next((line for line in more if line and line[0] not in " \t"), "")
            said = f"{said.partition(' Traceback')[0]} {error_line}"
        rule = f"must be a program that XLA compiles for {devices[0].platform}"
        raise JaxRuntimeError(f"{module_name(text)}: {rule}; got {said}") from error


_UNFINISHED: set = set()  # locks of the calls that run in a thread of their own


def run_to_end(call: Callable[[], Any]) -> Any:
    """Return the result of a call of XLA, which Ctrl-C does not interrupt.

    In the main thread, a signal makes XLA stop waiting for its own threads and free memory that
    they still read. So the call runs in another thread, and only the wait for it ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()  # Python handles signals in the main thread only
    results: list = []
    done = threading.Lock()

    def run() -> None:
        try:
            results.append((call(), None))
        except BaseException as error:
            results.append((None, error))
        finally:
            _UNFINISHED.discard(done)
            done.release()

    done.acquire()
    _UNFINISHED.add(done)
    _thread.start_new_thread(run, ())
    done.acquire()
    result, error = results.pop()
    if error is not None:
        raise error
    return result


@atexit.register
def wait_for_engine() -> None:
    """At exit, wait for calls of XLA that were left to finish; Ctrl-C ends the process.

    They run in threads of this file, or are compilations in daemon threads. Python ends a thread
    that returns from C++ after the exit began, and XLA then aborts the process.
    """
    try:
        for done in (*_UNFINISHED.copy(), *[lock for lock, _ in _COMPILING.copy().values()]):
            done.acquire()
    except KeyboardInterrupt:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signal.SIGINT)


# --- after a fork XLA's threads are not there, and what waits for one waits for ever -------

START_ANOTHER_WAY = (
    "Hint: multiprocessing.set_start_method('spawn') or 'forkserver', or fork before the first use "
    "of weft."
)


def warn_of_fork() -> None:
    """Before a fork of a process that has used devices, say what will not run in the child."""
    if has_clients():
        warnings.warn(
            "os.fork: a process that has used weft must not be forked, for its threads are not in "
            f"the child, where programs raise an error; NumPy works. {START_ANOTHER_WAY}",
            RuntimeWarning,
            stacklevel=2,
        )


def leave_engine() -> None:
    """In the child of a fork: wait for nothing at exit, and run no program."""
    _UNFINISHED.clear()
    _COMPILING.clear()
    if has_clients():
        Executable.__call__ = refuse_in_child  # type: ignore


def refuse_in_child(*args: Any) -> list:
    """Raise the error for a program that is run or compiled in the child of a fork."""
    raise RuntimeError(
        "weft: must not compute in a process forked from one that used weft, for the engine's "
        f"threads are not there; got process {os.getpid()}, forked. {START_ANOTHER_WAY}"
    )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=warn_of_fork, after_in_child=leave_engine)


# Before 0.11, jaxlib's handler calls a hook of JAX's array class unless told to skip the checks.
_SKIP_CHECKS = (True,) if "_skip_checks" in (_jax.array_result_handler.__doc__ or "") else ()


class FastPath(NamedTuple):
    """The data that the C++ call path needs to run an executable; fields are jaxlib's."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Any
    out_shardings: Any
    out_avals: Any
    out_committed: Any
    kept_var_bitvec: Any
    in_device_local_layouts: Any
    const_args: Any


class Executable:
    """A compiled program: call it with values, get a list of Arrays.

    `kept` says which arguments the program takes; `consts` are passed before them. `host_calls` are
    the Python functions that it calls while it runs.
    """

    __slots__ = (
        "buffer_avals", "consts", "handlers", "host_calls", "in_shardings", "kept", "large",
        "loaded", "makes_keys", "out_avals", "out_shardings", "placement", "takes_keys", "waits",
    )  # fmt: skip

    def __init__(
        self,
        loaded: Any,
        jaxpr: Jaxpr,
        placement: Placement,
        consts: Sequence[Any] = (),
        kept: list[bool] | None = None,
        host_calls: Sequence[Callable] = (),
        shardings: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ):
        """`shardings`: of the parameters and the results of a program over a mesh, in order."""
        self.loaded = loaded
        self.out_avals = jaxpr.out_avals
        if shardings is not None:
            self.out_avals = list(map(typed_for, self.out_avals, shardings[1]))
        self.buffer_avals = [a.physical for a in self.out_avals]
        self.placement = placement
        self.kept = kept
        self.host_calls = host_calls
        whole = placement.whole
        self.in_shardings = shardings and shardings[0]
        self.out_shardings = shardings[1] if shardings else [whole] * len(self.out_avals)
        places = self.in_shardings or [whole] * len(consts)
        self.consts = [put(words_of(c), s) for c, s in zip(consts, places, strict=False)]
        self.handlers = [
            _jax.array_result_handler(a, s, placement.committed, *_SKIP_CHECKS)
            for a, s in zip(self.buffer_avals, self.out_shardings, strict=True)
        ]
        self.makes_keys = self.buffer_avals != self.out_avals
        self.takes_keys = any(a.physical is not a for a in jaxpr.in_avals)
        # A program that needs much memory is kept, for the error that names its largest values.
        self.large = jaxpr if needs_much_memory(loaded, jaxpr, self.buffer_avals) else None
        self.waits = self.large is not None or (
            shardings is not None and must_wait(loaded, len(placement.devices))
        )

    def __call__(self, *args: Any) -> list:
        if self.kept is not None:
            args = tuple(compress(args, self.kept))
        if self.takes_keys:
            args = tuple(map(words_of, args))
        every = (*self.consts, *args)
        places = self.in_shardings or [self.placement.whole] * len(every)
        buffers = [put(x, s) for x, s in zip(every, places, strict=True)]
        try:
            if self.host_calls:
                outs = self.run_with_callbacks(buffers)
            elif self.waits:
                outs = self.run_to_end(buffers)
            else:
                outs = self.loaded.execute_sharded(buffers).consume_with_handlers(self.handlers)
        except (JaxRuntimeError, ValueError) as error:
            lost = name_lost_processes(error)
            if lost is None:
                if "RESOURCE_EXHAUSTED" in str(error):
                    error.add_note(describe_memory(self.out_avals, args, self.large))
                raise
            raise lost from error
        return [*map(array_of_type, self.out_avals, outs)] if self.makes_keys else outs

    def run_with_callbacks(self, buffers: list) -> list:
        """Run a program that calls Python."""
        given = self.host_calls, buffers, self.handlers, self.placement.whole
        outs = execute_with_callbacks(self.loaded, *given)
        return [shards.share_result(y, self.placement.whole) for y in outs]

    def run_to_end(self, buffers: list) -> list:
        """Run a program, and return when it has ended."""
        _jax.batched_block_until_ready(buffers)
        results = self.loaded.execute_sharded(buffers, with_tokens=True)
        done = results.consume_token()
        outs = results.consume_with_handlers(self.handlers)
        done.block_until_ready()
        return outs

    def argument_shardings(self, count: int) -> list:
        """Return where the program takes each of `count` arguments; None for unused ones."""
        kept = self.kept or [True] * count
        if self.in_shardings is None:
            return [self.placement.whole if k else None for k in kept]
        places = iter(self.in_shardings[len(self.consts) :])
        return [next(places) if k else None for k in kept]

    def fastpath(self, out_tree: Any, count: int) -> FastPath | None:
        """For a C++ call of `count` arguments whose results form `out_tree`.

        None where the program calls Python, since an error in there is this class's to raise, and
        where a call waits.
        """
        if self.host_calls or self.waits:
            return None
        if self.makes_keys:
            out_tree = call_tree(out_tree, [array_of_type(a, 0) for a in self.out_avals])
        whole = self.placement.whole
        places = [whole] * count
        if self.in_shardings is not None:
            places = [s or whole for s in self.argument_shardings(count)]
        given, total = len(self.consts), len(self.consts) + count
        return FastPath(
            self.loaded,
            out_tree,
            [*[c._sharding for c in self.consts], *places] if given else places,
            self.out_shardings,
            self.buffer_avals,
            [self.placement.committed] * len(self.out_avals),
            [True] * given + (self.kept or [True] * count),
            [None] * total,
            self.consts,
        )


def must_wait(loaded: Any, count: int) -> bool:
    """Return True if a call over `count` devices has to end before the next one begins.

    On CPUs, a device that waits for others in a collective occupies a thread of XLA's, as does a
    device that waits to begin a call while 32 calls run. If there are too few threads for both, a
    loop of calls that nobody waits for deadlocks. Between processes, waiting shows which process is
    lost when a call fails.
    """
    devices = loaded.local_devices()
    if devices[0].platform != "cpu" or (len(devices) == count and not has_few_threads(count)):
        return False
    text = "".join(module.to_string() for module in loaded.hlo_modules())
    return any(f" {kind}(" in text or f" {kind}-start(" in text for kind in COLLECTIVES)


def write_hlo(text: str) -> Any:
    """The module that a text is, as XLA's computation, which has `as_hlo_text()`."""
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
