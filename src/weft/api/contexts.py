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
    """Allow 64-bit types within the block of a `with` statement.

    By default weft has 32-bit types only: 64-bit arrays of NumPy become 32-bit ones. Within the
    block 64-bit types are kept, and Python numbers make int64 and float64 arrays.

    Args:
      new_val: True, the default, to allow 64-bit types; False to forbid them.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> with enable_x64():
    ...     print(jnp.arange(3).dtype)
    int64
    """
    return config.scope(enable_x64=new_val)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Run jitted functions operation by operation within the block of a `with` statement.

    It is for debugging: a `print`, a debugger or a Python condition within a jitted function then
    sees the values. Loops such as `lax.scan` run in Python too.

    Args:
      disable: True, the default, to run without `jit`; False to use it.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> absolute = weft.jit(lambda x: x if x > 0 else -x)
    >>> with weft.disable_jit():
    ...     print(absolute(-1.0))
    1.0
    """
    return config.scope(disable_jit=disable)


def numpy_dtype_promotion(new_val: str) -> AbstractContextManager[None]:
    """Set within a block how operands of different dtypes are combined.

    Args:
      new_val: "standard" promotes operands to a common dtype. "strict" raises an error unless
        their dtypes are equal; Python numbers may still be mixed with arrays.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not one of the two.
      TypePromotionError: within the block, if dtypes are mixed under "strict".

    >>> with weft.numpy_dtype_promotion("strict"):
    ...     print(jnp.ones(2) + 1)
    ...     jnp.ones(2) + jnp.arange(2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    weft.errors.TypePromotionError: add: dtypes must be equal under ...
    """
    return config.scope(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> AbstractContextManager[None]:
    """Set within a block if operands of different ranks may be broadcast.

    Broadcasting to a higher rank is the cause of some hard errors, such as a loss of shape (n, n)
    from operands of shapes (n,) and (n, 1).

    Args:
      new_val: "allow" broadcasts as NumPy does; "warn" broadcasts with a warning; "raise" raises an
        error. Scalars may always be broadcast.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not one of the three.
      ShapeError: within the block, if ranks differ under "raise".

    >>> with weft.numpy_rank_promotion("raise"):
    ...     jnp.ones(2) + jnp.ones((2, 2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    weft.errors.ShapeError: add: operands must have equal ranks under ...
    """
    return config.scope(numpy_rank_promotion=new_val)


def default_matmul_precision(new_val: Any) -> AbstractContextManager[None]:
    """Set within a block the precision of products and convolutions whose call names none.

    On CPUs products of float32 arrays are exact to float32 anyway. On GPUs and TPUs, lower
    precisions are faster.

    Args:
      new_val: a precision, such as "default", "high" or "highest", "bfloat16", "tensorfloat32" or
        "float32"; or the name of a `lax.DotAlgorithmPreset`. None is the default of the platform.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not a precision.

    >>> with weft.default_matmul_precision("highest"):
    ...     jaxpr = weft.make_jaxpr(jnp.dot)(jnp.ones(2), jnp.ones(2))
    >>> print(jaxpr.eqns[0].params["precision"][0])
    HIGHEST
    """
    return config.scope(default_matmul_precision=new_val)


def default_device(new_val: Any) -> AbstractContextManager[None]:
    """Set within a block the device that new arrays are put on.

    Arrays that are bound to a device stay there, as those that `device_put` makes.

    Args:
      new_val: a device, such as `weft.devices("cpu")[0]`, or None for the first device.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> with weft.default_device(weft.devices("cpu")[0]):
    ...     print(jnp.ones(2).devices())
    {CpuDevice(id=0)}
    """
    return config.scope(default_device=new_val)


def default_prng_impl(new_val: str) -> AbstractContextManager[None]:
    """Set within a block the generator of new random keys.

    Args:
      new_val: "threefry2x32", "rbg" or "unsafe_rbg", as for `random.key(seed, impl=...)`.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not the name of a generator.

    >>> with weft.default_prng_impl("rbg"):
    ...     print(random.key(0).dtype)
    key<rbg>
    """
    return config.scope(default_prng_impl=new_val)


def legacy_prng_key(new_val: str) -> AbstractContextManager[None]:
    """Set within a block if functions of `random` accept raw words for a key.

    `random.PRNGKey` makes such words, `random.key` makes keys of a key dtype.

    Args:
      new_val: "allow" accepts words; "warn" also warns; "error" raises an error.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: within the block, if words are given for a key under "error".

    >>> with weft.legacy_prng_key("error"):
    ...     random.normal(random.PRNGKey(0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: normal: key must be of a key dtype under legacy_prng_key='error'; got ...
    """
    return config.scope(legacy_prng_key=new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[None]:
    """Make `random.PRNGKey` return keys of a key dtype within a block, as `random.key` does.

    Args:
      new_val: True, the default, for keys of a key dtype; False for raw words.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> with weft.enable_custom_prng():
    ...     print(random.PRNGKey(0).dtype)
    key<fry>
    """
    return config.scope(enable_custom_prng=new_val)


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[None]:
    """Make random numbers within a block by the algorithm that JAX uses, which can be sharded.

    Each number then depends on the key and on its position in the array only, so that devices can
    make their parts of an array independently. JAX makes the same numbers from the same key.

    Args:
      new_val: True, the default, for the algorithm of JAX; False for the algorithm of weft.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> with threefry_partitionable():
    ...     print(random.normal(random.PRNGKey(0), (3,)))
    [ 1.6226422   2.0252647  -0.43359444]
    """
    return config.scope(threefry_partitionable=new_val)


def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """Log each trace and each compilation within a block, with its time.

    Args:
      new_val: True, the default, to log; False not to.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> with weft.log_compiles():
    ...     y = weft.jit(lambda x: x + 1)(2)
    """
    return config.scope(log_compiles=new_val)


def enable_checks(new_val: bool = True) -> AbstractContextManager[None]:
    """Check every jaxpr after every pass within a block.

    It is for the development of passes and primitives: a pass that makes an ill-typed program is
    then found where it is made. Compilation is slower.

    Args:
      new_val: True, the default, to check; False not to.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> with weft.enable_checks():
    ...     print(weft.jit(lambda x: x + 1)(2))
    3
    """
    return config.scope(enable_checks=new_val)


def debug_nans(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise an error within a block as soon as an operation returns NaN.

    The check includes jitted functions. If a program returns NaN, it is run again operation by
    operation, so the error names the operation that made the first NaN, and your line. Every result
    is checked, which costs time.

    Args:
      new_val: True, the default, to check; False not to.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      FloatingPointError: within the block, if an operation returns NaN.

    >>> with debug_nans():
    ...     jnp.log(-1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: log: results must hold no NaN under debug_nans; got nan of type f32[],
    made by `jnp.log(-1.0)` at ...
    """
    return config.scope(debug_nans=new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise an error within a block as soon as an operation returns an infinity.

    It does for infinities what `debug_nans` does for NaN.

    Args:
      new_val: True, the default, to check; False not to.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      FloatingPointError: within the block, if an operation returns an infinity.

    >>> with weft.debug_infs():
    ...     jnp.exp(1000.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: exp: results must hold no infinity under debug_infs; got inf of ...
    """
    return config.scope(debug_infs=new_val)


def debug_key_reuse(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise an error within a block if a random key is used twice.

    Two draws with one key are not independent. The error names both uses. Functions are traced
    again, and each call is checked before it runs.

    Args:
      new_val: True, the default, to check; False not to.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      KeyReuseError: within the block, if a key is used twice.

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
    """Raise an error within a block if a traced value outlives the function that is traced.

    A tracer that is stored in a global variable or in an object fails later, where it is used. The
    error of this option says where the value comes from and what holds it. Functions are traced
    again.

    Args:
      new_val: True, the default, to check; False not to.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      LeakedTracerError: within the block, if a tracer outlives its function.

    >>> held = []
    >>> with weft.check_tracer_leaks():
    ...     weft.jit(lambda x: held.append(x))(1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    weft.errors.LeakedTracerError: <lambda>: traced values must not outlive their function; got ...
    """
    return config.scope(check_tracer_leaks=new_val)


def checking_leaks() -> AbstractContextManager[None]:
    """Raise an error within a block if a traced value outlives the function that is traced.

    It is `check_tracer_leaks(True)`, and takes no parameters.

    Returns:
      A context manager.

    Raises:
      LeakedTracerError: within the block, if a tracer outlives its function.

    >>> with weft.checking_leaks():
    ...     print(weft.jit(lambda x: x + 1)(2))
    3
    """
    return check_tracer_leaks(True)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Log within a block why a call traces a jitted function again.

    The lines are warnings of the logger `weft.trace`. They name the argument that differs from
    earlier calls.

    Args:
      new_val: True, the default, to log; False not to.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    >>> f = weft.jit(lambda x: x + 1)
    >>> _ = f(2)
    >>> with weft.explain_cache_misses():
    ...     print(f(2.0))
    3.0
    """
    return config.scope(explain_cache_misses=new_val)


def no_tracing(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise an error within a block if a function is traced.

    Programs that were traced before still run. Use it to show that a loop never compiles again.

    Args:
      new_val: True, the default, to forbid tracing; False to allow it.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      RuntimeError: within the block, if a function is traced.

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
    """Raise an error within a block if a program or an operation runs.

    Functions may be traced and lowered. Use it to show that a piece of code only stages programs.

    Args:
      new_val: True, the default, to forbid execution; False to allow it.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      RuntimeError: within the block, if a program or an operation runs.

    >>> with weft.no_execution():
    ...     lowered = weft.jit(jnp.sin).lower(1.0)
    ...     jnp.sin(1.0)
    Traceback (most recent call last):
    RuntimeError: sin: must not be run under no_execution; got a call.
    """
    cells = config._cells["no_execution"], surroundings  # the latter is in the key of calls in C++

    def list_changes() -> list:
        before = [c.get_local() for c in cells]
        within = (True, "no execution") if new_val else (False, before[1])
        return [(c.set_local, b, w) for c, b, w in zip(cells, before, within, strict=True)]

    return Scope(list_changes)


# --- accepted without effect ------------------------------------------------------------------


def _make_scope(name: str) -> Any:
    def scope(new_val: Any = None) -> Scope:
        say_once(name)
        return Scope(list)

    doc = f"""Accept JAX's option {name}, which has no effect in weft.

    A message says so once. Programs that were written for JAX run unchanged.

    Args:
      new_val: the value of the option, which is ignored.

    Returns:
      A context manager that changes nothing.

    >>> with weft.{name}(True):
    ...     x = jnp.ones(2)
    """
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
    """Set within a block what happens at transfers between host and devices, and among devices.

    Implicit transfers are those that happen by themselves, where a NumPy array or a Python number
    meets an array. Transfers by `device_put` and `device_get` are explicit. Arrays that weft itself
    makes are not transfers: the constants of a formula or a program, results that are found on the
    host, arrays such as `jnp.arange(5)`. Memory of the CPU is read without a transfer.

    Args:
      new_val: "allow" lets transfers happen; "log" logs implicit transfers; "disallow" makes them
        errors. "log_explicit" and "disallow_explicit" do so for all transfers.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not one of the five.
      JaxRuntimeError: within the block, at a transfer that is not allowed.

    >>> x = jnp.ones(2)
    >>> with transfer_guard("disallow"):
    ...     x + np.ones(2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jaxlib._jax.JaxRuntimeError: INVALID_ARGUMENT: Disallowed host-to-device transfer: ...
    """
    return _guard("transfer_guard", _TRANSFERS, new_val, DIRECTIONS)


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[None]:
    """Set within a block what happens at transfers from the host to devices.

    Args:
      new_val: "allow", "log", "disallow", "log_explicit" or "disallow_explicit", as for
        `transfer_guard`.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not one of the five.
      JaxRuntimeError: within the block, at a transfer that is not allowed.

    >>> x = jnp.ones(2)
    >>> with weft.transfer_guard_host_to_device("disallow"):
    ...     x + np.ones(2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jaxlib._jax.JaxRuntimeError: INVALID_ARGUMENT: Disallowed host-to-device transfer: ...
    """
    return _guard("transfer_guard_host_to_device", _TRANSFERS, new_val, DIRECTIONS[:1])


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[None]:
    """Set within a block what happens at transfers from one device to another.

    Args:
      new_val: "allow", "log", "disallow", "log_explicit" or "disallow_explicit", as for
        `transfer_guard`.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not one of the five.

    >>> with weft.transfer_guard_device_to_device("disallow"):
    ...     print(jnp.ones(2) + 1)
    [2. 2.]
    """
    return _guard("transfer_guard_device_to_device", _TRANSFERS, new_val, DIRECTIONS[1:2])


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[None]:
    """Set within a block what happens at transfers from devices to the host.

    On the CPU nothing is transferred.

    Args:
      new_val: "allow", "log", "disallow", "log_explicit" or "disallow_explicit", as for
        `transfer_guard`.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not one of the five.

    >>> with weft.transfer_guard_device_to_host("disallow"):
    ...     print(weft.device_get(jnp.ones(2)))
    [1. 1.]
    """
    return _guard("transfer_guard_device_to_host", _TRANSFERS, new_val, DIRECTIONS[2:])


def array_garbage_collection_guard(new_val: str) -> AbstractContextManager[None]:
    """Set within a block what happens if the garbage collector of Python frees an array.

    An array that is part of a reference cycle keeps its memory until the collector runs. Arrays
    that are not part of a cycle are freed at once.

    Args:
      new_val: "allow" does nothing; "log" logs each such array and where it was made; "fatal" ends
        the process.

    Returns:
      A context manager. The option has its value in this thread, until the block ends.

    Raises:
      ValueError: `new_val` is not one of the three.

    >>> with weft.array_garbage_collection_guard("log"):
    ...     print(jnp.ones(2))
    [1. 1.]
    """
    name = "array_garbage_collection_guard"
    return _guard(name, _COLLECTIONS, new_val, ("garbage_collect_array",))


# --- contexts of the user's own ---------------------------------------------------------------


class UserContext:
    """A value of the user that programs depend on: the object that `make_user_context` returns.

    Call it with a hashable value to set the value within a block; read `.value` for the value in
    this thread.

    Args:
      default_value: the value outside of blocks, hashable.

    >>> mode = weft.make_user_context("train")
    >>> with mode("test"):
    ...     print(mode.value)
    test
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
        """Set the value to `value` within the block."""
        cell, value = self._cell, self._checked(value)
        return Scope(lambda: [(cell.set_local, cell.get_local(), value)])


def make_user_context(default_value: Any = None) -> UserContext:
    """Make a value that programs depend on: a change of it makes jitted functions trace again.

    It is for settings that functions read while they are traced, such as a mode of training. Make
    it once, before functions are jitted: every call of a jitted function compares its value.

    Args:
      default_value: the value outside of blocks, hashable. The default is None.

    Returns:
      A `UserContext`: `context(value)` sets the value within a block, `context.value` reads it.

    Raises:
      TypeError: a value cannot be hashed.

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
