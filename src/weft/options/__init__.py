"""The options of weft: one object, `config`, which users know as `weft.config`.

Each option is a cell of jaxlib's: thread-local over a global default, read at C speed, and part of
the key of the C++ call cache if it affects traces or programs. Settings are stored nowhere else.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import operator
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jaxlib import _jax

from weft.options.flags import FLAGS, VARIABLES
from weft.util import Logger, Scope, find_close, suggest_name


def make_cell(name: str, value: Any, traced: bool) -> Any:
    """Return a cell of jaxlib's. If `traced`, its value is part of the keys of programs."""
    return _jax.config.Config(
        name, value, include_in_jit_key=traced, include_in_trace_context=traced
    )


trace_context = _jax.config.trace_context


class Option(NamedTuple):
    """One setting: its name, default, permitted values, and documentation."""

    name: str
    default: Any
    doc: str
    choices: tuple | None = None  # None: any value of the default's type
    kinds: tuple[type, ...] = ()  # the types of values, where the default is None
    traced: bool = False  # True: part of the keys of programs, since it changes them


_PRECISIONS = (
    *(None, "default", "fastest", "bfloat16", "high", "bfloat16_3x", "tensorfloat32", "highest"),
    *("float32", "DEFAULT", "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM"),
    *("ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32"),
    *("BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6"),
    *("BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
)
_PATH = (str, os.PathLike)
OPTIONS = (
    Option("enable_x64", False, "Use 64-bit types; off, they become 32-bit.", traced=True),
    Option("disable_jit", False, "Run jitted functions operation by operation.", traced=True),
    Option(
        "numpy_dtype_promotion",
        "standard",
        "'strict' refuses to mix dtypes implicitly.",
        ("standard", "strict"),
        traced=True,
    ),
    Option(
        "numpy_rank_promotion",
        "allow",
        "What to do when operands of different rank are broadcast.",
        ("allow", "warn", "raise"),
        traced=True,
    ),
    Option(
        "default_matmul_precision",
        None,
        "Precision of dot and conv where the call gives none, by name.",
        _PRECISIONS,
        traced=True,
    ),
    Option(
        "check_bounds",
        True,
        "True: a Python integer, a NumPy integer or a NumPy array without axes that is out of "
        "bounds raises, in x[i], x.at[i] without a mode, take and put without a mode, and r[i] of "
        "a reference. Elements of lists and arrays, and traced integers, do not raise: reads take "
        "the nearest element (`take` gives its fill value), and writes are dropped (`put` moves "
        "them inside). 'all': these raise too, and so do starts in lax.dynamic_slice and "
        "lax.dynamic_update_slice. False: integers are treated as elements of arrays are.",
        (False, True, "all"),
        traced=True,
    ),
    Option("debug_nans", False, "Raise where an operation makes NaN."),
    Option(
        "debug_infs",
        False,
        "Raise where a result has an infinity; 'made': where no operand has one.",
        (False, True, "made"),
    ),
    Option("debug_key_reuse", False, "Raise where a random key is used twice."),
    Option("debug_overflow", False, "Raise where a signed integer does not fit."),
    Option(
        "debug_globals",
        False,
        "Raise where a global, or an attribute of a static argument, changed after tracing.",
    ),
    Option(
        "debug",
        "off",
        "'all' sets each option that finds silent mistakes; 'some' where one of them is set.",
        ("off", "all", "some"),
        traced=True,  # for all of them
    ),
    Option("check_tracer_leaks", False, "Raise where a traced value is kept.", traced=True),
    Option("disable_most_optimizations", False, "Compile fast, to programs that run slowly."),
    Option("no_tracing", False, "Raise where a function of the user's is traced."),
    Option("no_execution", False, "Raise where a program is run; weft.no_execution sets it."),
    Option("enable_checks", False, "Check every jaxpr after every pass."),
    Option(
        "traceback_filtering",
        "auto",
        "What tracebacks have of weft's frames: 'auto' the last two, 'off' all, 'remove_frames' "
        "none (all are in the error's cause), 'quiet_remove_frames' a note in their place, "
        "'tracebackhide' all, which pytest and IPython leave out.",
        ("auto", "off", "remove_frames", "quiet_remove_frames", "tracebackhide"),
    ),
    Option(
        "locate_operations",
        False,
        "Name compiled operations by what wrote them, as weft.explain reads it.",
        traced=True,
    ),
    Option(
        "passes",
        None,
        "The passes that programs go through, by name, as 'cse_jaxpr,drop_dead_code', or 'all'.",
        kinds=(str,),
        traced=True,
    ),
    Option(
        "dump", None, "A folder to which each program is written after every pass.", kinds=_PATH
    ),
    Option("log_compiles", False, "Log every trace and compile with its time."),
    Option("progress", False, "Say what is traced or compiled, and since when, if it takes long."),
    Option(
        "hints", True, "Say, once a place, what runs but is hardly meant: see docs/debugging.md."
    ),
    Option("explain_cache_misses", False, "Log why a jitted function is traced again."),
    Option(
        "default_device",
        None,
        "Where new arrays are put: a device or a platform's name.",
        kinds=(_jax.Device, str),
        traced=True,
    ),
    Option(
        "threefry_partitionable",
        False,
        "Make each random number from its own place alone, as JAX does by default now.",
        traced=True,
    ),
    Option(
        "default_prng_impl",
        "threefry2x32",
        "The generator that keys are for where none is named.",
        ("threefry2x32", "rbg", "unsafe_rbg"),
        traced=True,
    ),
    Option(
        "legacy_prng_key",
        "allow",
        "What to do where a function of random is given raw words, not keys of a key dtype.",
        ("allow", "warn", "error"),
        traced=True,
    ),
    Option("random_seed_offset", 0, "What is added to seeds.", traced=True),
    Option("enable_custom_prng", False, "Have PRNGKey make keys of a key dtype.", traced=True),
    Option("native", True, "Use the kernels in C++ that weft has for CPUs, if built.", traced=True),
    Option(
        "platforms",
        None,
        "The platforms to use, as in 'cuda,cpu'; the first is the default.",
        kinds=(str,),
    ),
    Option("platform_name", "", "The default platform among those in use."),
    Option("cuda_visible_devices", "all", "The numbers of the GPUs to use, as in '0,1'."),
    Option(
        "cpu_collectives_implementation",
        "gloo",
        "What carries values between the CPUs of several processes.",
        ("gloo", "mpi", "none", None),
    ),
    Option(
        "num_threads",
        -1,
        "Number of threads of XLA's pool on CPUs, which the kernels use too, and of BLAS; -1: as "
        "many as the process may have processors, or their time. Set it before the first device is "
        "used.",
    ),
    Option(
        "kept_memory",
        -1,
        "Number of bytes of arrays on CPUs that died which are kept for the next results, on Linux "
        "with the kernels in C++; 0: none, -1: up to an eighth of the memory that the process may "
        "use. Memory without a use in 10 s goes back to the system, and so does all of it by "
        "weft.clear_caches(). Set it before the first device is used.",
    ),
    Option("num_cpu_devices", -1, "Number of CPU devices; -1 leaves it to XLA_FLAGS."),
    Option(
        "cpu_enable_async_dispatch", True, "Have calls on the CPU return before results are there."
    ),
    Option(
        "compilation_cache_dir", None, "Where executables are kept; see docs/cache.md.", kinds=_PATH
    ),
    Option(
        "wrap_callback_errors",
        False,
        "Raise JaxRuntimeError, as JAX does, where a Python function that a program calls fails.",
    ),
    Option("enable_compilation_cache", True, "Keep executables on disk."),
)

# What the option `debug` sets.
DEBUG_ALL = {
    "check_bounds": "all",
    "debug_nans": True,
    "debug_infs": "made",
    "debug_key_reuse": True,
    "debug_overflow": True,
    "debug_globals": True,
}
WATCHES = DEBUG_ALL.keys() - {"check_bounds"}  # the options that check results


def read_level(kind: Any, op: str, name: str, level: Any) -> Any:
    """Return jaxlib's level of a guard, by its name."""
    if not isinstance(level, str) or level.upper() not in kind.__members__:
        known = ", ".join(repr(name.lower()) for name in kind.__members__)
        raise ValueError(f"{op}: {name} must be one of {known}; got {level!r}.")
    return kind.__members__[level.upper()]


LEVELS = ("NOTSET", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL")
DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")
_guards = _jax.guard_lib
HELD: list[Any] = []  # dicts of internal arrays, such as the numbers of run/eager.py


def set_guard(flag: str, level: str | None) -> None:
    """Set a guard of jaxlib's in all threads."""
    kind, *fields = GUARDS[flag]
    value = None if level is None else read_level(kind, "config", flag, level)
    for field in fields:
        setattr(_guards.global_state(), field, value)
    for kept in HELD:  # a guard has to see each moved again
        kept.clear()


def set_logging_level(level: int | str) -> None:
    """Set the level of the logger `weft`."""
    check_logging_level("jax_logging_level", level)
    Logger("weft").setLevel(level)


def check_logging_level(said_by: str, level: int | str) -> None:
    """Raise ValueError unless a level is a number or a name of `logging`."""
    if not isinstance(level, int) and level not in LEVELS:
        raise ValueError(f"config: {said_by} must be one of {LEVELS}; got {level!r}.")


# The guards of jaxlib that flags of JAX set: the class of their levels, and jaxlib's names of them.
GUARDS: dict[str, tuple[Any, ...]] = {
    "jax_array_garbage_collection_guard": (
        _guards.GarbageCollectionGuardLevel,
        "garbage_collect_array",
    ),
    "jax_transfer_guard": (_guards.TransferGuardLevel, *DIRECTIONS),
    **{f"jax_transfer_guard_{d}": (_guards.TransferGuardLevel, d) for d in DIRECTIONS},
}
# The flags of JAX that do something here, and what.
ACTIONS: dict[str, Callable[[Any], None]] = {
    "jax_dump_ir_to": lambda folder: _cells["dump"].set_global(folder or None),
    "jax_logging_level": set_logging_level,
    "jax_thread_guard": _guards.update_thread_guard_global_state,
    **{flag: functools.partial(set_guard, flag) for flag in GUARDS},
}

logger = Logger("weft.config")
_cells: dict[str, Any] = {}


@functools.cache
def say_once(name: str) -> None:
    """Log that a setting changes nothing here."""
    logger.debug("weft: the setting %s changes nothing here.", name)


# What the environment and flags may say of a bool, in any case; an empty variable is False.
_BOOLS = {
    **dict.fromkeys(("1", "true", "on", "yes", "t", "y"), True),
    **dict.fromkeys(("0", "false", "off", "no", "f", "n", ""), False),
}


def read_variables(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what variables say of options and flags: WEFT_NAME, or else JAX_NAME.

    A variable WEFT_NAME that nothing reads gets a warning. Those with JAX_ may be JAX's own.

    Raises:
      ValueError: a variable has a value that its option does not take.
    """
    given = sorted(v for v in environ if v.startswith(("JAX_", "WEFT_")))  # the latter override
    if not given:
        return {}
    options = {option.name.upper(): option for option in OPTIONS}
    options |= {_bare(n).upper(): Option(n, default, "") for n, default in FLAGS.items()}
    values = {}
    for variable in given:
        prefix, _, name = variable.partition("_")
        if option := options.get(name):
            values[option.name] = read_text(option, environ[variable], variable)
        elif prefix == "WEFT" and not name.startswith("TEST_") and variable not in VARIABLES:
            close = find_close(variable, [*VARIABLES, *(f"WEFT_{name}" for name in options)])
            hint = f" Hint: {close}." if close else ""
            warnings.warn(
                f"config: variables WEFT_... must be of docs/options.md; got {variable}.{hint}",
                stacklevel=5,  # the line that imports weft
            )
    return values


def read_text(option: Option, text: str, said_by: str) -> Any:
    """Return the value of an option that a variable or a flag gives as text.

    Raises:
      ValueError: the option does not take the value.
    """
    if option.name in GUARDS:
        read_level(GUARDS[option.name][0], "config", said_by, text)
    elif option.name == "jax_logging_level":
        check_logging_level(said_by, text)
    if option.choices is not None and text in option.choices:
        return text
    if isinstance(option.default, bool):
        if text.lower() in _BOOLS:
            return _BOOLS[text.lower()]
        more = [repr(c) for c in option.choices or () if isinstance(c, str)]
        must = ", ".join(["1 or true", *more]) + ", or 0 or false"
    elif isinstance(option.default, int | float):
        kind = type(option.default)
        with contextlib.suppress(ValueError):
            return kind(text)
        must = "an integer" if kind is int else "a number"
    elif option.choices is None:
        return text
    else:
        must = f"one of {tuple(c for c in option.choices if c is not None)}"
    raise ValueError(f"config: {said_by} must be {must}; got {text!r}.")


def _bare(name: str) -> str:
    return str(name).removeprefix("jax_").removeprefix("weft_")


# --- options in the keys of programs --------------------------------------------------------------


class Settings:
    """The values of the traced options in all threads. Equal settings are one object.

    A call in C++ hashes and compares each cell that is part of keys, which takes 0.03 us. So the
    traced options have two such cells together: `_settings`, whose value is a `Settings`, and
    `_pins`, the options that a thread has set until a block ends. `enable_x64`, which C++ reads,
    has a cell of its own.
    """

    __slots__ = ("values",)
    _interned: dict[tuple, Settings] = {}

    values: dict[str, Any]

    @classmethod
    def of(cls, values: dict[str, Any]) -> Settings:
        """Return the settings with these values."""
        key = tuple(values.items())
        found = cls._interned.get(key)
        if found is None:
            new = object.__new__(cls)
            new.values = values
            found = cls._interned.setdefault(key, new)  # another thread's, if it was quicker
        return found


_TRACED = frozenset(o.name for o in OPTIONS if o.traced and o.name != "enable_x64")
x64_cell = make_cell("enable_x64", False, True)
_settings = make_cell("settings", None, True)
_pins = make_cell("pins", frozenset(), True)
_updates = threading.Lock()


def collect_settings() -> Settings:
    """Return the settings that hold in all threads."""
    return Settings.of({o.name: _cells[o.name].get_global() for o in OPTIONS if o.name in _TRACED})


def pin_options(changes: Mapping[str, Any]) -> tuple[Callable, Any, Any] | None:
    """Return the change of `_pins` for options that are set until a block ends, if any is traced.

    A pin is the name of an option, the number of pins of the option around, and its value. The
    pins are added and removed by calls of C alone, which Ctrl-C does not interrupt. They are only
    removed from those that are there, because blocks of generators may end in any order.
    """
    held = _pins.value
    added = frozenset(
        (name, sum(name == other for other, *_ in held), value)
        for name, value in changes.items()
        if name in _TRACED
    )
    if not added:
        return None
    now = operator.attrgetter("value")
    remove, add = (
        map(_pins.set_local, map(merge, map(now, (_pins,)), (added,)))
        for merge in (operator.sub, operator.or_)
    )
    return functools.partial(collections.deque, maxlen=0), remove, add


def read_context(context: tuple) -> dict[Any, Any]:
    """Return the parts of a result of `trace_context` by name: the options, and what is around."""
    wide, settings, pins, axes, mesh, *others = context
    pinned = {name: value for name, _, value in sorted(pins, key=operator.itemgetter(0, 1))}
    named = {"enable_x64": wide, **settings.values, **pinned}
    return {**named, "mapped axes": axes, "mesh in scope": mesh, **dict(enumerate(others))}


FOR_USERS = "config_with_absl parse_flags_with_absl read scope update values x64_enabled"


class Config:
    """Read an option as an attribute; set it with `update` or, for a while, with `scope`.

    Names may carry the prefix `jax_` or `weft_`. `config.update("enable_x64", True)` is global;
    `with config.scope(enable_x64=True):` holds for this thread until the block ends.
    """

    def __init__(self) -> None:
        self._accepted = {**FLAGS}
        self._options = {o.name: o for o in OPTIONS}
        self._cells = _cells
        for o in OPTIONS:
            wide = o.name == "enable_x64"
            self._cells[o.name] = x64_cell if wide else make_cell(o.name, o.default, False)
        _settings.set_global(collect_settings())
        for name, cell in self._cells.items():
            object.__setattr__(self, "_" + name, cell)

    def _find(self, name: str) -> str:
        name = _bare(name)
        if name not in self._options:
            hint = suggest_name(name, self._options)
            known = ", ".join(sorted(self._options)) if not hint else "those of dir(config)"
            raise AttributeError(f"config: an option must be one of {known}; got {name!r}.{hint}")
        return name

    def _find_accepted(self, name: str) -> str | None:
        return next((n for n in (name, f"jax_{name}") if n in self._accepted), None)

    def read_environment(self) -> None:
        """Set the options and flags that the environment names."""
        for name, value in read_variables(os.environ).items():
            if name not in FLAGS or value != self._accepted[name]:
                self.update(name, value)

    def _checked(self, name: str, value: Any) -> Any:
        option = self._options[name]
        if option.choices is not None and value not in option.choices:
            raise ValueError(f"config: {name} must be one of {option.choices}; got {value!r}.")
        default = option.default
        kinds = option.kinds or (type(default), *(int,) * isinstance(default, bool))
        known = isinstance(value, kinds) or (default is None and value is None)
        if option.choices is None and not known:
            names = " or ".join(kind.__name__ for kind in option.kinds or kinds[:1])
            raise TypeError(
                f"config: {name} must be a{'n' * (names == 'int')} {names}; got {value!r}."
            )
        return value if type(value) is str or not isinstance(default, bool) else bool(value)

    def __getattr__(self, name: str) -> Any:
        accepted = None if name[:1] == "_" else self._find_accepted(name)
        return self._accepted[accepted] if accepted else getattr(self, self._find(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self.update(name, value)

    def __dir__(self) -> list[str]:
        special = [name for name in super().__dir__() if name[:2] == "__"]
        return [*special, *self._options, *FOR_USERS.split()]

    def __reduce__(self) -> str:
        return "config"  # there is one in a process, with settings of its own

    def read(self, name: str) -> Any:
        """The value of an option in this thread."""
        return getattr(self, name)

    @property
    def x64_enabled(self) -> bool:
        """Return True if 64-bit types are in use, as `enable_x64` says."""
        return self.enable_x64

    @property
    def values(self) -> dict[str, Any]:
        """The options by the names that JAX gives them, `jax_enable_x64` and so on."""
        return {**self._accepted, **{f"jax_{name}": self.read(name) for name in self._options}}

    def parse_flags_with_absl(self) -> None:
        """Set options from command-line flags such as `--jax_enable_x64`, and remove these flags.

        absl is not needed: the other arguments stay in `sys.argv` for other parsers. If absl is
        installed, its flags count as parsed.
        """
        left = []
        for i, arg in enumerate(sys.argv):
            flag, given, text = arg.lstrip("-").partition("=")
            positive = flag.removeprefix("no") if flag.startswith("nojax_") else flag
            option = self._options.get(_bare(positive))
            if accepted := self._find_accepted(positive):
                option = Option(accepted, self._accepted[accepted], "")
            if not i or arg[:1] != "-" or positive[:4] != "jax_" or option is None:
                left.append(arg)
            else:
                value = read_text(option, text, f"--{flag}") if given else flag == positive
                self.update(option.name, value)
        sys.argv[:] = left
        if absl_flags := sys.modules.get("absl.flags"):
            absl_flags.FLAGS(left[:1])

    config_with_absl = parse_flags_with_absl

    def update(self, name: str, val: Any) -> None:
        """Set an option for all threads."""
        accepted = self._find_accepted(name)
        if accepted:
            ACTIONS.get(accepted, lambda val: say_once(accepted))(val)
            self._accepted[accepted] = val
            return
        changes = self._changes({name: val})
        with _updates:  # two threads may set two options
            for changed, checked in changes.items():
                self._cells[changed].set_global(checked)
            _settings.set_global(collect_settings())

    def _changes(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the options to set, checked; `debug` sets others, which may be set beside it."""
        named = {}
        for name, value in settings.items():
            named[self._find(name)] = value
        if "debug" in named:
            on = named["debug"] == "all"
            others = {n: v if on else self._options[n].default for n, v in DEBUG_ALL.items()}
            named = others | named
        elif not WATCHES.isdisjoint(named):
            watches = any(named[n] if n in named else self.read(n) for n in WATCHES)
            if watches or self.debug != "off":
                named["debug"] = "some" if watches else "off"
        return {n: self._checked(n, v) for n, v in named.items()}

    def scope(self, **settings: Any) -> Scope:
        """Set options in this thread until the block ends."""
        changes = self._changes(settings)

        def list_changes() -> list[tuple[Callable, Any, Any]]:
            cells = [(self._cells[name], value) for name, value in changes.items()]
            pinned = pin_options(changes)
            every = [(cell.set_local, cell.get_local(), value) for cell, value in cells]
            return [*every, pinned] if pinned else every

        return Scope(list_changes)

    def __repr__(self) -> str:
        rows = (f"  {o.name} = {getattr(self, o.name)!r}: {o.doc}" for o in OPTIONS)
        return "config:\n" + "\n".join(rows)


for _option in OPTIONS:  # a property reads its cell in 70 ns
    _read = property(operator.attrgetter(f"_{_option.name}.value"), doc=_option.doc)
    setattr(Config, _option.name, _read)

config = Config()
bounds_cell = config._cells["check_bounds"]
disable_jit_cell = config._cells["disable_jit"]
try:
    config.read_environment()
except ValueError as error:  # without our frames: the message names the variable
    raise error.with_traceback(None) from None

# Not options but kept like them. Under a trace that stages, a call must not run at once, so the C++
# cache has to miss; the named axes in scope change what a function means.
surroundings = _jax.config.Config(
    "surroundings", None, include_in_jit_key=True, include_in_trace_context=False
)
named_axes = make_cell("named_axes", (), True)
mesh_in_scope = make_cell("mesh_in_scope", None, True)  # see MeshScope; None for none


def x64_as(value: bool) -> contextlib.AbstractContextManager[None]:
    """Until the block ends, `enable_x64` unchanged: for rules of a call that run after it."""
    same = x64_cell.value is value
    return contextlib.nullcontext() if same else config.scope(enable_x64=value)


_jax.jax_jit.set_enable_x64_state(x64_cell)
# Calls see `disable_jit` in Python: jaxlib's own way fails on kernels, which have no function.
_jax.jax_jit.set_disable_jit_state(make_cell("engine_disable_jit", False, False))
_jax.jax_jit.set_post_hook_state(make_cell("post_hook", None, False))
