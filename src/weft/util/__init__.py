"""Small helpers shared by every layer: lists, names that packages import later, checks of options.

Nothing here knows of arrays, programs or jaxlib; a helper with one user is in the file of that.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial, update_wrapper
from itertools import compress
from numbers import Number
from operator import call, index, not_
from types import CellType, FunctionType
from typing import Any, TypeVar

from jaxlib.version import __version__ as jaxlib_version

F = TypeVar("F", bound=Callable)
EMPTY_CELL = CellType()  # of a closed-over variable without a value; cells with one differ from it

IMPORTED = time.time()  # in seconds since 1970: files that change later are not what runs here

# The first two numbers of jaxlib's version. What JAX does differently with it, weft does too.
JAXLIB = tuple(map(int, jaxlib_version.split(".")[:2]))

# --- caches -------------------------------------------------------------------------------------

MEMOIZED = 4096  # results of one function that are remembered: those used last
# By name, everything with a method `clear` that `clear_caches` empties. docs/design/003 has a row
# for each, with its key.
CACHES: dict[str, Any] = {}
_MEMOIZED: list[Any] = []


def keep_cache(name: str, cache: Any) -> Any:
    """Enter a cache among those that `clear_caches` empties, and return it."""
    CACHES[name] = cache
    return cache


def memoize(fun: Callable) -> Any:
    """A decorator: remember the results of a pure function of shapes, types and layouts."""
    kept = lru_cache(MEMOIZED)(fun)
    _MEMOIZED.append(kept)
    return kept


class _Memoized:
    """The results of all memoized functions, as one cache."""

    def clear(self) -> None:
        """Forget the results."""
        for kept in _MEMOIZED:
            kept.cache_clear()

    def __len__(self) -> int:
        return sum([kept.cache_info().currsize for kept in _MEMOIZED])


keep_cache("memoized functions", _Memoized())


# --- lists --------------------------------------------------------------------------------------


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[list, list]:
    """Two lists from a sequence of pairs."""
    firsts, seconds = [], []
    for first, second in pairs:
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds


def partition(mask: Sequence[bool], xs: Sequence[Any]) -> tuple[list, list]:
    """The elements of `xs` where `mask` is False, and those where it is True."""
    return list(compress(xs, map(not_, mask))), list(compress(xs, mask))


def merge(mask: Sequence[bool], falses: Iterable[Any], trues: Iterable[Any]) -> list:
    """The inverse of `partition`."""
    sources = (iter(falses), iter(trues))
    return [next(sources[bool(m)]) for m in mask]


def select_masked(xs: Sequence[Any], mask: Sequence[bool]) -> list:
    """The elements of `xs` where `mask` is True."""
    return [x for x, m in zip(xs, mask, strict=True) if m]


def insert_at(xs: Iterable[Any], at: dict[int, Any]) -> list:
    """`xs` with each value of `at` put at its place in the result; places ascend."""
    out = list(xs)
    for i, x in at.items():
        out.insert(i, x)
    return out


def name_cell(file: str) -> str:
    """Return `Cell In[6]` for the file of a cell of a notebook; empty for other files.

    IPython maps the artificial name of the file to the number of the cell.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    find_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    return " ".join(find_name(file) or ()) if find_name is not None else ""


def name_line(file: str, line: int | None) -> str:
    """Return a line of a source file as people say it: `model.py:12`, or `Cell In[6], line 12`."""
    cell = name_cell(file)
    return f"{cell}, line {line}" if cell else f"{os.path.basename(file)}:{line}"


def keep_newest(store: dict, key: Any, value: Any, most: int) -> None:
    """Put a value into a store of at most this many entries: the oldest goes if it is full."""
    while len(store) >= most:
        # Another thread may add an entry while this one looks for the oldest, or remove that.
        with contextlib.suppress(RuntimeError, StopIteration):
            store.pop(next(iter(store)), None)
    store[key] = value


class LiveObjects:
    """Objects that are listed as long as they live. Threads may add some while others list them."""

    def __init__(self) -> None:
        self._objects: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.RLock()  # a collection of garbage in between may run code of users

    def add(self, x: Any) -> None:
        """Enter an object."""
        with self._lock:
            self._objects.add(x)

    def list_all(self) -> list[Any]:
        """Return the objects that live."""
        with self._lock:
            return [*self._objects]


def inverse_permutation(order: Sequence[int]) -> tuple[int, ...]:
    """The place of each of 0..n-1 in `order`, which holds each of them once."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def import_lazily(
    package: str, homes: dict[str, str], suggest: Callable[[str], str] = lambda name: ""
) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a package that imports modules when a name is first used.

    `homes` maps a module to the names that it gives the package, separated by spaces. No names, or
    the module's own among them, mean the module itself. The names are the package's `__all__`
    unless it has one. `suggest` gives a hint for a name that the package lacks.
    """
    places: dict[str, str] = {}
    modules: dict[str, str] = {}
    for home, names in homes.items():
        own = home.rpartition(".")[2]
        for name in names.split() or [own]:
            is_module = not names or home == f"{package}.{name}"
            (modules if is_module else places)[name] = home
    namespace = vars(sys.modules[package])
    namespace.setdefault("__all__", sorted({*places, *modules}))

    def get(name: str) -> Any:
        if name not in modules and name not in places:
            refuse_name(package, name, suggest)
        with importing():
            module = importlib.import_module(modules.get(name) or places[name])
        if name in modules:
            return module
        found = namespace[name] = getattr(module, name)
        return found

    return get, list_public(package)


HOMES = ("weft.lax", "weft.nn", "weft.numpy", "weft.random", "weft.tree", "weft.scipy.special")


def suggest_name(name: str, known: Iterable[str], owner: str = "") -> str:
    """Return a hint with the name that was probably meant by an unknown name, or ""."""
    if name.startswith("_"):
        return ""
    instead = importlib.import_module("weft.util.elsewhere").find_instead(name, owner == "x")
    if instead:
        return f" Hint: {instead}."
    for home in HOMES if owner else ():
        if name in importlib.import_module(home).__all__:
            return f" Hint: {home}.{name}."
    close = find_close(name, known)
    return f" Hint: {owner + '.' if owner else ''}{close}." if close else ""


def find_close(name: str, known: Iterable[str]) -> str:
    """The known name that is most like another one; empty where none is."""
    return next(
        iter(importlib.import_module("difflib").get_close_matches(name, known, 1, 0.75)), ""
    )


def add_keyword_hint(error: Exception, fun: Callable) -> Exception:
    """Return the error of a call of `fun`; an unknown keyword gets a hint with what was meant."""
    start, keyword, end = str(error).partition("() got an unexpected keyword argument '")
    code = getattr(fun, "__code__", None)
    if type(error) is TypeError and keyword and code and start == fun.__qualname__:
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        name = end.removesuffix("'")
        renamed = importlib.import_module("weft.util.elsewhere").KEYWORDS.get(name)
        if close := renamed if renamed in known else find_close(name, known):
            error.args = (f"{error}. Hint: {close}=...",)
    return error


class LazyText:
    """A message of an error, which is made when it is read.

    `hasattr`, `getattr` with a default, and `from package import submodule` discard the error, and
    finding a suggestion takes 1 ms, or 40 ms the first time.
    """

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], str]) -> None:
        self.make = make

    def __repr__(self) -> str:
        return self.make()

    def __reduce__(self) -> tuple:
        return str, (self.make(),)


def refuse_name(module: str, name: str, suggest: Callable[[str], str] = lambda name: "") -> Any:
    """`__getattr__` of a module: raise an error that suggests a name.

    `suggest` is asked for a hint first.
    """

    def write() -> str:
        hint = "" if name.startswith("_") else suggest(name)
        hint = hint or suggest_name(name, sys.modules[module].__all__, module)
        return f"module {module!r} has no attribute {name!r}{hint and '.'}{hint}"

    raise AttributeError(LazyText(write))


def list_public(module: str) -> Callable[[], list[str]]:
    """`__dir__` of a module: the names of its `__all__`, so that completion offers no helper.

    The module gets its `__getattr__` as well.
    """
    if module in sys.modules:
        vars(sys.modules[module]).setdefault("__getattr__", partial(refuse_name, module))
    return lambda: sorted(sys.modules[module].__all__)


class LazyMember:
    """A member of classes that is made when it is first read, and then takes its own place."""

    __slots__ = ("classes", "make", "name")

    def __init__(self, make: Callable[[], Any], name: str, classes: Sequence[Any]) -> None:
        self.make, self.name, self.classes = make, name, classes
        for cls in classes:
            setattr(cls, name, self)

    def __get__(self, x: Any, cls: Any = None) -> Any:
        member = self.make()
        for owner in self.classes:
            if vars(owner).get(self.name) is self:
                setattr(owner, self.name, member)
        return getattr(cls if x is None else x, self.name)


def hide_members(cls: Any, names: str) -> None:
    """Hide internal members from `dir()` of a class's instances."""
    hidden = frozenset(names.split())
    cls.__dir__ = lambda self: [n for n in object.__dir__(self) if n not in hidden]


def find_global_name(x: Any) -> str | None:
    """Return the name of an object that is a global of its module, for pickle.

    None for other objects, and under cloudpickle, which pickles objects of `__main__` by value.
    """
    found: Any = sys.modules.get(getattr(x, "__module__", ""))
    name = getattr(x, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not x:
        return None
    frame: Any = sys._getframe() if x.__module__ == "__main__" else None
    while frame is not None and "cloudpickle" not in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    return name if frame is None else None


def name_function(fun: Callable, name: str, doc: str) -> Any:
    """The function under another name, and documented: one of those that a function makes."""
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc
    return fun


def alias(fun: F, name: str) -> F:
    """Return a copy of a function under another name, a global of the module that asks for it.

    `alias_of` is the function.
    """
    of: Any = fun
    copy: Any = FunctionType(of.__code__, of.__globals__, name, of.__defaults__, of.__closure__)
    copy.__kwdefaults__, copy.__doc__ = of.__kwdefaults__, of.__doc__
    vars(copy).update(vars(fun), alias_of=getattr(fun, "alias_of", fun))
    copy.__annotations__, copy.__qualname__ = dict(of.__annotations__), name
    copy.__module__ = sys._getframe(1).f_globals["__name__"]
    return copy


def check_option(op: str, name: str, value: Any, *known: Any) -> None:
    """Raise ValueError unless an argument is one of the values that it may have.

    >>> check_option("qr", "mode", "f", "full", "r")
    Traceback (most recent call last):
    ValueError: qr: mode must be 'full' or 'r'; got 'f'.
    """
    try:
        found = value in known
    except (ValueError, TypeError):  # an array; one that is traced says itself what to do
        if hasattr(value, "aval"):
            raise
        found = False
    if not found:
        *most, last = map(repr, known)
        raise ValueError(f"{op}: {name} must be {', '.join(most)} or {last}; got {value!r}.")


def check_function(op: str, name: str, value: Any) -> None:
    """Raise unless an argument can be called."""
    if not callable(value):
        raise TypeError(f"{op}: {name} must be a function; got {value!r}.")


def list_items(op: str, name: str, value: Iterable[Any]) -> list[Any]:
    """The elements of an argument, which must have some."""
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{op}: {name} must be a sequence; got {value!r}.") from None


class SymbolicSize:
    """The base of sizes that are numbers only where an exported program is called (export/)."""

    __slots__ = ()

    def stage(self, trace: Any) -> Any:
        """The size as a value of a program that is being written."""
        raise NotImplementedError

    def choose(self, other: Any, kind: str) -> Any:
        """The larger ("max") or the smaller ("min") of this and another size."""
        raise NotImplementedError

    def is_below(self, limit: int) -> bool:
        """Return True if it is known to be less than a number."""
        raise NotImplementedError


Number.register(SymbolicSize)


def as_size(n: Any) -> Any:
    """A size as a Python int; a symbolic one unchanged."""
    return n if isinstance(n, SymbolicSize) else index(n)


def max_size(d1: Any, d2: Any) -> Any:
    """Return the larger of two sizes, which may be symbolic.

    Use it for shapes in functions that are exported for any size. If the order of the two sizes is
    not known, the result is a symbolic size. For two ints it is `max` of Python.

    Args:
      d1: an int or a symbolic size.
      d2: an int or a symbolic size.

    Returns:
      An int, or a symbolic size.

    >>> from weft.core import max_dim
    >>> max_dim(2, 3)
    3
    >>> (n,) = weft.export.symbolic_shape("n")
    >>> max_dim(n, 3)
    max(n, 3)
    """
    if isinstance(d2, SymbolicSize):
        d1, d2 = d2, d1
    return d1.choose(d2, "max") if isinstance(d1, SymbolicSize) else max(d1, d2)


def min_size(d1: Any, d2: Any) -> Any:
    """Return the smaller of two sizes, which may be symbolic.

    Use it for shapes in functions that are exported for any size. If the order of the two sizes is
    not known, the result is a symbolic size. For two ints it is `min` of Python.

    Args:
      d1: an int or a symbolic size.
      d2: an int or a symbolic size.

    Returns:
      An int, or a symbolic size.

    >>> from weft.core import min_dim
    >>> min_dim(2, 3)
    2
    >>> (n,) = weft.export.symbolic_shape("n")
    >>> min_dim(n, 3)
    min(n, 3)
    """
    if isinstance(d2, SymbolicSize):
        d1, d2 = d2, d1
    return d1.choose(d2, "min") if isinstance(d1, SymbolicSize) else min(d1, d2)


def is_below(n: Any, limit: int) -> bool:
    """Return True if a size is known to be less than a number."""
    return n < limit if type(n) is int else n.is_below(limit)


def has_symbolic_size(xs: Any) -> bool:
    """Return True if a sequence holds a symbolic size."""
    return isinstance(xs, list | tuple) and any(isinstance(n, SymbolicSize) for n in xs)


class Record:
    """A value made of the fields that `__slots__` names, equal by them; unlike a tuple, a leaf."""

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> tuple:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._fields() == self._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        fields = zip(self.__slots__, self._fields(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={x!r}' for name, x in fields)})"


DEEP = 40  # traced functions within one another


def allow_frames() -> None:
    """Raise Python's limit of 1000 frames, for 100 nested functions and their derivatives.

    Each takes 12 frames while it is traced. Passes over the program later need the same number, so
    the limit is not reset.
    """
    if sys.getrecursionlimit() < 2500:
        sys.setrecursionlimit(2500)


# Make an object of a class without a call of `__init__`, where a call counts: see the hot path.
allocate = object.__new__


class collecting_rarely:
    """In such a block the garbage collector runs after every 5,000 new objects, in place of 700.

    It is for tracing and lowering, whose objects stay alive: collection took a fifth of the time.
    """

    def __enter__(self) -> None:
        usual = self.usual = gc.get_threshold()
        if 0 < usual[0] < 5_000:
            gc.set_threshold(5_000, *usual[1:])

    def __exit__(self, *_: Any) -> None:
        if self.usual[0] < 5_000:  # another block, in this thread or another, puts back its own
            gc.set_threshold(*self.usual)


class importing:
    """In such a block modules are imported, and the garbage collector does not run.

    Their objects live as long as the process. So they go to the oldest generation at the end, and
    the collector visits them only when it visits every object. Otherwise it visits each of them
    twice, which took a tenth of the time from the start of a process to its first result.
    """

    def __enter__(self) -> None:
        self.enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: Any) -> None:
        if self.enabled:  # another block, in this thread or another, enables it otherwise
            gc.enable()
            if not gc.get_freeze_count():  # the user has frozen no objects
                gc.freeze()
                gc.unfreeze()  # which leaves the objects in the oldest generation


def share_result(running: dict, key: Any, compute: Callable, *args: Any) -> tuple[Any, bool]:
    """Return `compute(*args)` and True, or the result of a thread that computes it now and False.

    If the other thread raises an error, this one computes, so that the error is raised here too.

    Args:
      running: the computations that run, by key: a lock that is held meanwhile, and a list for
        the result. Entries are removed at the end.
    """
    mine: tuple[Any, list] = threading.Lock(), []
    lock, results = mine
    with lock:
        while (other := running.setdefault(key, mine)) is not mine:
            with other[0]:
                if running.get(key) is other:  # Ctrl-C came before it was removed
                    running.pop(key, None)
            if other[1]:
                return other[1][0], False
        try:
            results.append(compute(*args))
        finally:
            running.pop(key, None)
    return results[0], True


class Scope(io.IOBase, contextlib.ContextDecorator):
    """Settings that hold until a block ends, or in a function: `changes()` returns them.

    Each is a tuple (function that sets, value before, value within). A block ends with one C call,
    `IOBase.__exit__`, which calls `close`: Ctrl-C comes before it, or when all settings are reset.
    """

    closed = True  # no cleanup is needed when it is dropped

    def __init__(self, changes: Callable[[], list[tuple[Callable, Any, Any]]]):
        self.changes = changes

    def __enter__(self) -> None:  # type: ignore[override]
        changes = self.changes()
        undo = [partial(change, before) for change, before, _ in changes]
        if "close" in vars(self):  # it may be entered already
            undo.append(partial(setattr, self, "close", self.close))
        close = undo[0] if len(undo) == 1 else partial(deque, map(call, undo), 0)
        try:
            self.close = close  # type: ignore[method-assign]
            for change, _, within in changes:
                change(within)
        except BaseException:  # Ctrl-C: there will be no __exit__
            close()
            raise

    def _recreate_cm(self) -> Scope:
        return Scope(self.changes)  # a call of a function that it decorates


class Logger:
    """`logging.getLogger(name)`, fetched when something is logged: importing logging takes 2 ms."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, method: str) -> Any:
        try:
            import logging
        except OSError:  # no file can be opened any more
            return lambda *args: None
        return getattr(logging.getLogger(self.name), method)


def name_parameters(fun: Callable, names: Sequence[str]) -> Callable:
    """Rename the first parameters of a function, which callers may pass by name; return it."""
    code, renamed = fun.__code__, dict(zip(fun.__code__.co_varnames, names, strict=False))
    fun.__code__ = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
    fun.__annotations__ = {renamed.get(k, k): x for k, x in fun.__annotations__.items()}
    return fun


def fun_name(fun: Any) -> str:
    """The name a user knows a callable by."""
    while hasattr(fun, "func") and not hasattr(fun, "__name__"):  # functools.partial
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else type(fun).__name__


# What a jitted function offers: it says nothing of a function that calls the jitted one.
JITTED = ("trace", "lower", "eval_shape", "clear_cache", "_clear_cache")


def copy_names(wrapper: Any, fun: Any) -> Any:
    """Give a wrapper the names and attributes of `fun`, as `functools.update_wrapper` does.

    Methods of a universal function and of a jitted function are their own, so a wrapper does not
    have them. An object whose `__name__` is not a string has its documentation copied only.
    """
    updated = () if hasattr(fun, "reduceat") else ("__dict__",)
    try:
        update_wrapper(wrapper, fun, updated=updated)
    except TypeError:
        update_wrapper(wrapper, fun, ("__doc__",))
    held = getattr(wrapper, "__dict__", {})
    if "clear_cache" in held:
        for name in JITTED:
            held.pop(name, None)
    return wrapper


def wraps(fun: Any) -> Callable[[Any], Any]:
    """Return a decorator that gives a wrapper the names and attributes of `fun`."""
    return lambda wrapper: copy_names(wrapper, fun)


class Warned:
    """How many warnings users were given: a call that gives one is made as it is written."""

    count = 0


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's that called weft."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    Warned.count += 1
    warnings.warn(text, category, stacklevel=level)
