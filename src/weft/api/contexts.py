"""Options for a while: `with enable_x64(True): ...`, in this thread, until the block ends.

Each is `config.scope` of one option; what the options mean is in options/.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from jaxlib import _jax

from weft.options import DIRECTIONS, HELD, config, make_cell, read_level, say_once, surroundings
from weft.util import Scope, name_function


def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, 64-bit types stay as they are and are the default.

    >>> with enable_x64():
    ...     print(jnp.arange(3).dtype)
    int64
    """
    return config.scope(enable_x64=new_val)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `disable`, jitted functions run operation by operation."""
    return config.scope(disable_jit=disable)


def numpy_dtype_promotion(new_val: str) -> AbstractContextManager[None]:
    """Within the block, dtypes mix as `new_val` says: 'standard', or 'strict' for not at all."""
    return config.scope(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> AbstractContextManager[None]:
    """Within the block, broadcasting across ranks does `new_val`: 'allow', 'warn' or 'raise'."""
    return config.scope(numpy_rank_promotion=new_val)


def default_matmul_precision(new_val: Any) -> AbstractContextManager[None]:
    """Within the block, dot and conv have the precision `new_val` where their call gives none."""
    return config.scope(default_matmul_precision=new_val)


def default_device(new_val: Any) -> AbstractContextManager[None]:
    """Within the block, new arrays are put on the device `new_val`."""
    return config.scope(default_device=new_val)


def default_prng_impl(new_val: str) -> AbstractContextManager[None]:
    """Within the block, keys are for `new_val`: 'threefry2x32', 'rbg' or 'unsafe_rbg'."""
    return config.scope(default_prng_impl=new_val)


def legacy_prng_key(new_val: str) -> AbstractContextManager[None]:
    """Within the block, raw words given for keys are as `new_val`: 'allow', 'warn' or 'error'."""
    return config.scope(legacy_prng_key=new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, `random.PRNGKey` makes keys of a key dtype, as `key` does."""
    return config.scope(enable_custom_prng=new_val)


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, each random number is made from its place alone, as in JAX.

    >>> with threefry_partitionable():
    ...     print(random.normal(random.PRNGKey(0), (3,)))
    [ 1.6226422   2.0252647  -0.43359444]
    """
    return config.scope(threefry_partitionable=new_val)


def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, every trace and compile is logged with its time."""
    return config.scope(log_compiles=new_val)


def enable_checks(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, every jaxpr is checked after every pass."""
    return config.scope(enable_checks=new_val)


def debug_nans(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, an operation that gives NaN raises FloatingPointError.

    So does a jitted function. The error names the operation that made the first one and your line.
    It costs a look at every result, and a second run, operation by operation, of a program with
    one.

    >>> with debug_nans():
    ...     jnp.log(-1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: log: results must hold no NaN under debug_nans; got nan of type f32[],
    made by `jnp.log(-1.0)` at ...
    """
    return config.scope(debug_nans=new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """As `debug_nans`, for infinities, if `new_val`."""
    return config.scope(debug_infs=new_val)


def debug_key_reuse(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, a random key that is used twice raises KeyReuseError.

    The error names both uses. Functions are traced anew, and each call is looked through before it
    runs; docs/random.md says what is seen.

    >>> with debug_key_reuse():
    ...     key = random.key(0)
    ...     x = random.normal(key)
    ...     y = random.uniform(key)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    weft.errors.KeyReuseError: random: a key must be used once; got one used by
    `random.normal(key)` at ... and again by `random.uniform(key)` at ...
    """
    return config.scope(debug_key_reuse=new_val)


def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, a tracer that outlives its function raises LeakedTracerError.

    The error says where the value comes from and what holds it. Functions are traced anew.
    """
    return config.scope(check_tracer_leaks=new_val)


def checking_leaks() -> AbstractContextManager[None]:
    """As `check_tracer_leaks()`."""
    return check_tracer_leaks(True)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, the log says why a call traces a jitted function.

    The lines are warnings of the logger `weft.trace`.
    """
    return config.scope(explain_cache_misses=new_val)


def no_tracing(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, to trace a function raises RuntimeError.

    What was traced before runs: so a loop is shown to trace nothing anew.

    >>> square = weft.jit(lambda x: x * x)
    >>> _ = square(2.0)
    >>> with weft.no_tracing():
    ...     print(square(3.0))
    ...     square(3)
    Traceback (most recent call last):
    RuntimeError: <lambda>: must not be traced under no_tracing; got new types or a new function.
    """
    return config.scope(no_tracing=new_val)


def no_execution(new_val: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `new_val`, to run a program or operation raises RuntimeError."""
    cells = config._cells["no_execution"], surroundings  # the latter is in the key of calls in C++

    def list_changes() -> list:
        before = [c.get_local() for c in cells]
        within = (True, "no execution") if new_val else (False, before[1])
        return [(c.set_local, b, w) for c, b, w in zip(cells, before, within, strict=True)]

    return Scope(list_changes)


# --- what has no meaning here -----------------------------------------------------------------


def _make_scope(name: str) -> Any:
    def scope(new_val: Any = None) -> Scope:
        say_once(name)
        return Scope(list)

    doc = f"A context manager for JAX's option {name}, which changes nothing here."
    return name_function(scope, name, doc)


allow_f16_reductions = _make_scope("allow_f16_reductions")
auto_pcast = _make_scope("auto_pcast")
jax2tf_associative_scan_reductions = _make_scope("jax2tf_associative_scan_reductions")
remove_size_one_mesh_axis_from_type = _make_scope("remove_size_one_mesh_axis_from_type")
softmax_custom_jvp = _make_scope("softmax_custom_jvp")
thread_guard = _make_scope("thread_guard")

# --- transfers --------------------------------------------------------------------------------

_TRANSFERS = _jax.guard_lib.TransferGuardLevel
_COLLECTIONS = _jax.guard_lib.GarbageCollectionGuardLevel


def _guard(op: str, kind: Any, level: str, fields: tuple[str, ...]) -> Scope:
    value = read_level(kind, op, "new_val", level)

    def list_changes() -> list:
        state = _jax.guard_lib.thread_local_state()
        for kept in HELD:
            kept.clear()
        return [(partial(setattr, state, f), getattr(state, f), value) for f in fields]

    return Scope(list_changes)


def transfer_guard(new_val: str) -> AbstractContextManager[None]:
    """Within the block, transfers between host and devices, and among devices, do `new_val`.

    'allow'; 'log' each; 'disallow', which raises JaxRuntimeError. These are about transfers that
    happen by themselves, as where a NumPy array or a Python number meets an array. They are not
    about `device_put` and `device_get`, nor about what weft itself makes: the constants of a
    formula or of a program, results that are found on the host, arrays such as `jnp.arange(5)`.
    'log_explicit' and 'disallow_explicit' are about all. What is on the CPU is on the host too, and
    read without a transfer.

    >>> x = jnp.ones(2)
    >>> with transfer_guard("disallow"):
    ...     x + np.ones(2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jaxlib._jax.JaxRuntimeError: INVALID_ARGUMENT: Disallowed host-to-device transfer: ...
    """
    return _guard("transfer_guard", _TRANSFERS, new_val, DIRECTIONS)


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[None]:
    """As `transfer_guard`, for transfers to devices alone, which do `new_val`."""
    return _guard("transfer_guard_host_to_device", _TRANSFERS, new_val, DIRECTIONS[:1])


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[None]:
    """As `transfer_guard`, for transfers among devices alone, which do `new_val`."""
    return _guard("transfer_guard_device_to_device", _TRANSFERS, new_val, DIRECTIONS[1:2])


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[None]:
    """As `transfer_guard`, for transfers from devices alone, which do `new_val`."""
    return _guard("transfer_guard_device_to_host", _TRANSFERS, new_val, DIRECTIONS[2:])


def array_garbage_collection_guard(new_val: str) -> AbstractContextManager[None]:
    """Within the block, an array that only the collector of cycles frees does `new_val`.

    'allow'; 'log' each with where it was made; 'fatal', which ends the process. Arrays in cycles
    keep their memory until the collector runs.
    """
    name = "array_garbage_collection_guard"
    return _guard(name, _COLLECTIONS, new_val, ("garbage_collect_array",))


# --- contexts of the user's own ---------------------------------------------------------------


class UserContext:
    """What `make_user_context` gives: call it with a value for a `with` block; `.value` reads it.

    A value must be hashable.
    """

    def __init__(self, default_value: Any):
        self._cell = make_cell("user_context", self._checked(default_value), True)

    @staticmethod
    def _checked(value: Any) -> Any:
        """A value that can be part of the key of each program."""
        try:
            hash(value)
        except TypeError:
            text = f"make_user_context: a value must be hashable; got {value!r}."
            raise TypeError(text) from None
        return value

    @property
    def value(self) -> Any:
        """The value here, in this thread."""
        return self._cell.value

    def set_global(self, value: Any) -> None:
        """Set the value of all threads, outside of blocks."""
        self._cell.set_global(self._checked(value))

    def get_global(self) -> Any:
        """The value of all threads, outside of blocks."""
        return self._cell.get_global()

    def __call__(self, value: Any) -> Scope:
        """Within the block, the value is `value`."""
        cell, value = self._cell, self._checked(value)
        return Scope(lambda: [(cell.set_local, cell.get_local(), value)])


def make_user_context(default_value: Any = None) -> UserContext:
    """A value of the user's that programs depend on: where it is another, functions trace anew.

    Make it before functions are jitted, once: each is looked at in every call of a jitted function.

    >>> mode = weft.make_user_context("train")
    >>> @weft.jit
    ... def scale(x):
    ...     return x * 2 if mode.value == "train" else x
    >>> with mode("test"):
    ...     print(scale(1.0))
    1.0
    >>> print(scale(1.0))
    2.0
    """
    return UserContext(default_value)
