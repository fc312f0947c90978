"""Public functions as operations: an eager call runs as one compiled program.

Functions of the package run eagerly as their own programs only by `operation`. It says which
arguments are arrays and which are static. The C++ call cache finds the executable by the types of
the arrays and the static values. A call runs as the function is written only after the exception
`NotForKernel`; any other error is the caller's, and the call ends with it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import copysign
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, Literal, Var
from weft.core.primitive import Primitive
from weft.core.source import SourceInfo, trim_traceback
from weft.core.stage import stage_closed
from weft.core.trace import Trace, Tracer, current, eval_context
from weft.errors import DtypeError, ShapeError, TracerError
from weft.mesh.transfers import is_own_transfer, move_explicitly
from weft.options import bounds_cell, config, trace_context, x64_cell
from weft.primitives.elementwise import bind_spread, match_numbers
from weft.pytrees import PyTreeDef, flatten, unflatten
from weft.run.eager import EVAL
from weft.run.fastpath import compiled_call, is_unhashable_static
from weft.run.hot import is_hot
from weft.run.pipeline import JitSpec
from weft.run.programs import run_program
from weft.run.scalars import NUMBERS
from weft.util import LiveObjects, Warned, add_keyword_hint, keep_cache, name_parameters
from weft.xla.array import ARRAYS, SMALL, ArrayImpl, KeyArray, require_alive

KEPT_CALLS = 4096  # calls of one operation: those given back, constants, programs on tracers
ONE_ARRAY = frozenset((ArrayImpl,))
LISTS = frozenset((list, ndarray, ArrayImpl))
SEQUENCES = frozenset((list, tuple))
PYTHON = frozenset(dtypes.NUMBERS)
PLAIN = frozenset(
    (type(None), bool, int, str)
)  # the types of settings, which equal themselves alone
DTYPES = type, np.dtype
# The operands that the program of an operator takes. A number may have an array that is cached.
OPERANDS = dict.fromkeys((ArrayImpl, KeyArray, bool, complex, ndarray), ()) | NUMBERS


ABSENT = object()


class NotForKernel(Exception):
    """A compiled kernel does not take a call, which then runs as the function is written.

    `__cause__` is the error that says why.
    """


class Steps(NamedTuple):
    """The operations that a call applies to its operands.

    Attributes:
      eqns: for each operation the primitive, the places of its operands, and its parameters. Places
        count the operands of the call, then `numbers`, then the results of operations.
      numbers: the numbers among the operands of operations.
      results: the places of the results.
      tree: the structure of the results; None for one array.
    """

    eqns: Sequence[tuple[Primitive, Sequence[int], dict]]
    numbers: Sequence[Any]
    results: Sequence[int]
    tree: PyTreeDef | None


class _Operations:
    """The caches of all operations, as one cache. Each operation holds its part."""

    def __init__(self) -> None:
        self.every = LiveObjects()

    def __len__(self) -> int:
        return sum([op.count_kept() for op in self.every.list_all()])

    def clear(self) -> None:
        """Empty the caches of all operations."""
        for op in self.every.list_all():
            op.forget()


OPERATIONS = keep_cache("operations", _Operations())


class Operation:
    """A function that runs as one program for each set of types and static arguments.

    Arguments at the positions and names of `static` are Python values; the others are pytrees of
    arrays and numbers. The kernel raises NotForKernel if a leaf is not an array or number, or if
    the function asks for the value of one.

    Leaves that `donated` counts must be arrays that nobody else holds. A result that is an operand
    is the same array if it has more than `copied` bytes, and a copy otherwise.
    """

    __slots__ = (
        "__weakref__", "copied", "fun", "name", "names", "nums", "programs", "same", "spec",
        "traced", "written",
    )  # fmt: skip

    def __init__(
        self,
        fun: Callable,
        name: str,
        static: Sequence[str] = (),
        donated: tuple[int, ...] = (),
        copied: int = SMALL,
    ):
        code = inspect.unwrap(fun).__code__
        parameters = code.co_varnames[: code.co_argcount]
        self.nums = tuple([i for i, n in enumerate(parameters) if n in static])
        self.names = tuple(static)
        self.fun, self.name, self.copied = fun, name, copied
        self.spec = JitSpec(name, donated)
        self.programs: dict[tuple, tuple] = {}  # those that C++ cannot run
        self.traced: dict[tuple, tuple] = {}  # by call: the primitive that a transformation applies
        self.written: dict[tuple, Any] = {}  # by call: what it writes; None if it was met once
        self.same: set[tuple] = set()  # calls whose result is their first operand
        OPERATIONS.every.add(self)

    def make_kernel(self) -> Callable:
        """Return the C++ callable. It holds this object, which must not hold it: a cycle."""
        return compiled_call(self.name, self.miss, self.fun, self.nums, self.names)

    def miss(self, *args: Any, **kwargs: Any) -> tuple:
        """Build the program of a call that C++ has no executable for, and run it."""
        if config.disable_jit:
            return self.fun(*args, **kwargs), None, False
        key, leaves = self.read_call(args, kwargs)
        program = self.programs.get(key) or self.stage_call(key[0], key[1], args, kwargs)
        jaxpr, consts, out_tree = program
        given = dict(zip(jaxpr.invars, (*consts, *leaves))) if not jaxpr.eqns else {}
        outs: list[Any] = [None if type(v) is Literal else given.get(v) for v in jaxpr.outvars]
        if outs and all([type(x) in ARRAYS and x.nbytes > self.copied for x in outs]):
            self.programs[key] = program  # copies of large arrays would cost more than coming here
            outs = [*map(require_alive, outs)]
            out = unflatten(out_tree, outs)
            if args and out is args[0] and not kwargs and len(self.same) < KEPT_CALLS:
                self.same.add((out.aval, args[1:], x64_cell.value))
            return out, None, False
        outs, fast = run_program(jaxpr, consts, leaves, self.spec, out_tree, inner=False)
        if fast is None:
            self.programs[key] = program
        return unflatten(out_tree, outs), fast, False

    def read_call(self, args: tuple, kwargs: dict) -> tuple:
        """Return the key of a call and its leaves; the key starts with their tree and types."""
        fixed = [(i, type(args[i]), args[i]) for i in self.nums if i < len(args)]
        fixed += [(k, type(x), x) for k, x in sorted(kwargs.items()) if k in self.names]
        # C++ flattens the call in the same order: by position, then by name.
        leaves, tree = flatten(self.split_call(args, kwargs))
        try:
            avals = tuple([typeof(x) for x in leaves])
        except DtypeError as error:
            raise NotForKernel(str(error)) from error
        if not all(map(fits, leaves, avals)):
            raise NotForKernel(f"{self.name}: integers must fit their type.")
        return (tree, avals, tuple(fixed), trace_context()), leaves

    def split_call(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the arguments that are not static."""
        if not self.names:
            return args, kwargs
        nums, names = self.nums, self.names
        given = tuple([x for i, x in enumerate(args) if i not in nums])
        return given, {k: x for k, x in kwargs.items() if k not in names}

    def stage_call(
        self, tree: PyTreeDef, avals: Sequence[ShapedArray], args: tuple, kwargs: dict
    ) -> tuple:
        """Return the program of a call: a closed jaxpr, its consts, the tree of the results."""
        trees = []

        def flat(*leaves: Any) -> list:
            given, named = unflatten(tree, leaves)
            rest = iter(given)
            every = [x if i in self.nums else next(rest) for i, x in enumerate(args)]
            outs, out_tree = flatten(self.fun(*every, **{**kwargs, **named}))
            trees.append(out_tree)
            return outs

        try:
            jaxpr, consts = stage_closed(flat, avals, self.name)
        except (DtypeError, TracerError) as error:
            raise NotForKernel(str(error)) from error
        return jaxpr, consts, trees[-1]

    def call_traced(self, kernel: Callable, args: tuple, kwargs: dict) -> Any:
        """Apply the program of a call to tracers, as one operation of a transformation.

        A call without tracers computes, by the kernel.
        """
        key, given = [trace_context()], []
        for where, x in (*enumerate(args), *sorted(kwargs.items())):
            if where in self.nums or where in self.names:
                key += where, type(x), x
            else:
                key += where, describe_argument(x)
                given.append(x)
        traced = self.traced
        try:
            program = traced.get(tuple(key))
        except TypeError as error:  # an argument without a hash
            raise NotForKernel(str(error)) from error
        if program is None:
            program = () if config.disable_jit else self.stage_traced(args, kwargs)
            if len(traced) >= KEPT_CALLS:
                del traced[next(iter(traced))]
            traced[tuple(key)] = program
        if not program:
            raise NotForKernel(self.name)
        leaves = flatten(given)[0]
        if not any([isinstance(x, Tracer) for x in leaves]):
            with eval_context():
                return kernel(*args, **kwargs)
        prim, params, consts, tree = program
        return unflatten(tree, current.trace.process(prim, [*consts, *leaves], params))

    def stage_traced(self, args: tuple, kwargs: dict) -> tuple:
        """Return the operation of a call, its parameters, its consts and the tree of its results.

        Return () for a call that runs as written: it has no equations, or effects, or asks for
        values.
        """
        key, _ = self.read_call(args, kwargs)
        try:
            jaxpr, consts, tree = self.stage_call(key[0], key[1], args, kwargs)
        except NotForKernel:
            return ()
        if not is_pure(jaxpr):
            return ()
        return (*current.trace.as_operation(jaxpr, self.name), consts, tree)

    def write_again(self, trace: Trace, args: tuple, kwargs: dict) -> Any:
        """Apply what a call with operands of these types applies, without the Python function.

        Return None if that is not known, as for a call that is met for the first time.
        """
        key: list[Any] = [trace_context(), *kwargs]
        given = []
        for x in (*args, *kwargs.values()) if kwargs else args:
            kind = type(x)
            if isinstance(x, Tracer):
                key.append(x.aval)
                given.append(x)
            elif kind in PLAIN or isinstance(x, DTYPES):
                key += kind, x
            elif kind is tuple and {int}.issuperset(map(type, x)):
                key.append(x)
            elif kind is float:
                key.append(repr(x))  # as -0.0 equals 0.0
            else:
                return None
        kept = self.written
        call = tuple(key)
        steps = kept.get(call, ABSENT)
        if steps is ABSENT:
            if len(kept) >= KEPT_CALLS:
                kept.pop(next(iter(kept)), None)
            kept[call] = None
            return None
        if steps is None:
            warned = Warned.count
            steps = self.find_steps(args, kwargs, given)
            kept[call] = steps if Warned.count == warned else ()  # each call has to warn
        if not steps:
            return None
        values = [*given, *steps.numbers]
        process = trace.process
        for prim, places, params in steps.eqns:
            values += process(prim, [values[i] for i in places], params)
        if steps.tree is None:
            return values[steps.results[0]]
        return unflatten(steps.tree, [values[i] for i in steps.results])

    def find_steps(self, args: tuple, kwargs: dict, given: list) -> Steps | tuple:
        """Return the operations that a call applies to its operands `given`, () if not just these.

        A call runs as written if it opens a scope, has effects, holds programs, reads arrays that
        are no operands, asks for values, or has operands of unknown sizes or with a layout.
        """
        trees: list[PyTreeDef] = []
        avals = [x.aval for x in given]
        if not all([type(a.size) is int and a.sharded is None for a in avals]):
            return ()

        def flat(*leaves: Any) -> list:
            rest = iter(leaves)
            every = [next(rest) if isinstance(x, Tracer) else x for x in args]
            named = {k: next(rest) if isinstance(x, Tracer) else x for k, x in kwargs.items()}
            outs, tree = flatten(self.fun(*every, **named))
            trees.append(tree)
            return outs

        try:
            with eval_context():
                jaxpr, consts = stage_closed(flat, avals, self.name)
        except (DtypeError, TracerError):
            return ()
        plain = all(
            e.primitive.memoize_type
            and e.primitive.effect is None
            and type(e.source) is not SourceInfo
            for e in jaxpr.eqns
        )
        if consts or not plain or Literal in map(type, jaxpr.outvars):
            return ()
        places: dict[Any, int] = {v: i for i, v in enumerate(jaxpr.invars)}
        atoms = [a for e in jaxpr.eqns for a in e.invars]
        numbers = [a for a in atoms if type(a) is Literal]
        where = {id(a): len(places) + i for i, a in enumerate(numbers)}
        count = len(places) + len(numbers)
        eqns = []
        for e in jaxpr.eqns:
            ins = [where[id(a)] if type(a) is Literal else places[a] for a in e.invars]
            eqns.append((e.primitive, ins, e.params))
            for v in e.outvars:
                places[v] = count
                count += 1
        tree = None if trees[-1].num_leaves == 1 == trees[-1].num_nodes else trees[-1]
        return Steps(eqns, [a.read() for a in numbers], [places[v] for v in jaxpr.outvars], tree)

    def read_static(self, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """Return the arguments with numbers in place of integer arrays that are static.

        Return None if no argument is such an array. Each array is read once; the Python function
        would read its elements one by one.
        """
        given = [read_numbers(x) if i in self.nums else x for i, x in enumerate(args)]
        named = {k: read_numbers(x) if k in self.names else x for k, x in kwargs.items()}
        found, before = [*given, *named.values()], [*args, *kwargs.values()]
        if all([x is y for x, y in zip(found, before, strict=True)]):
            return None
        return tuple(given), named

    def is_same(self, args: tuple) -> bool:
        """Return True if the result of a call is known to be its first operand."""
        try:
            key = args[0].aval, args[1:], x64_cell.value
            return key in self.same and not args[0].is_deleted()
        except (AttributeError, IndexError, TypeError):  # no array; an argument without a hash
            return False

    def forget(self) -> None:
        """Drop the programs, except for those that C++ runs."""
        for kept in (self.programs, self.traced, self.written, self.same):
            kept.clear()

    def count_kept(self) -> int:
        """Return the number of programs and calls that are kept."""
        return len(self.programs) + len(self.traced) + len(self.written) + len(self.same)


def is_pure(jaxpr: Jaxpr) -> bool:
    """Return True if a program computes something and has no effects."""
    return bool(jaxpr.eqns) and not jaxpr.effects


def fits(x: Any, aval: ShapedArray) -> bool:
    """Return True if a value can be passed with this type, as Python's large integers cannot."""
    return type(x) is not int or x.bit_length() < 8 * aval.dtype.itemsize


def describe_argument(x: Any) -> Any:
    """Return the part of an argument that a program depends on: types of arrays and numbers."""
    kind = type(x)
    if kind is ArrayImpl or isinstance(x, Tracer):
        return x.aval
    if kind in (float, complex, bool) or (kind is int and x.bit_length() < 32):
        return kind
    if kind is list or kind is tuple:
        return (kind, *map(describe_argument, x))
    return (x.dtype, x.shape) if kind is ndarray else (kind, x)


# --- constants ----------------------------------------------------------------------------------


class Constants:
    """The results of a function of numbers, shapes and dtypes, by call."""

    def __init__(self) -> None:
        self.find = functools.lru_cache(KEPT_CALLS, typed=True)(Constant)
        OPERATIONS.every.add(self)

    def forget(self) -> None:
        """Drop the results."""
        self.find.cache_clear()

    def count_kept(self) -> int:
        """Return the number of calls that are kept."""
        return self.find.cache_info().currsize


def wrap_constant(fun: Callable) -> Callable:
    """Return the public function of numbers, shapes and dtypes: a hot call copies its result."""
    kept = Constants()
    find = kept.find

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if current.trace is not EVAL:
                return fun(*args, **kwargs)
            try:
                found = find(*args, **kwargs)
            except TypeError:  # an argument without a hash, as arrays are
                return fun(*args, **kwargs)
            if found.signs and found.signs != find_signs((*args, *kwargs.values())):
                return fun(*args, **kwargs)
            if found.program is not None:
                # the types as well, since (2.0,) equals (2,)
                if found.sizes is None or [*map(type, args[0])] == found.sizes:
                    return found.program()
                return fun(*args, **kwargs)
            out = fun(*args, **kwargs)
            if found.is_plain and is_hot(("constant", fun), found):
                found.is_plain = False
                if all(map(is_copyable, flatten(out)[0])):
                    copy = functools.partial(copy_results, fun, args, kwargs)
                    found.program = compiled_call(fun.__name__, copy)
            return out
        except Exception as error:
            trim_traceback(add_keyword_hint(error, fun))
            raise

    call.kept = kept  # type: ignore[attr-defined]
    return call


class Constant:
    """One call. `program` copies its result once the call is hot."""

    __slots__ = ("is_plain", "program", "signs", "sizes")

    def __init__(self, *args: Any, **kwargs: Any):
        every = (*args, *kwargs.values())
        self.signs = find_signs(every)
        self.sizes = [*map(type, args[0])] if args and type(args[0]) is tuple else None
        others = every if self.sizes is None else (*args[0], *every[1:])
        self.is_plain = all(map(is_setting, others))
        self.program: Callable | None = None


def find_signs(args: Sequence) -> list[float]:
    """Return the signs of Python's floats if one of them is zero, as -0.0 equals 0.0."""
    floats = [x for x in args if isinstance(x, float)]
    for x in args:
        if isinstance(x, complex):
            floats += x.real, x.imag
    return [copysign(1.0, x) for x in floats] if 0.0 in floats else []


def is_setting(x: Any) -> bool:
    """Return True for a Python number, a string, a dtype and a type of arrays."""
    return x is None or isinstance(x, int | float | str | type | np.dtype | ShapedArray)


def is_copyable(x: Any) -> bool:
    """Return True for an array that a program may copy, wherever it runs."""
    return type(x) in ARRAYS and x.nbytes <= SMALL and not x.committed


def copy_results(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """Return the result of a call, as a program's result, and how C++ may run the program."""
    out = fun(*args, **kwargs)
    leaves, tree = flatten(out)
    if not all(map(is_copyable, leaves)):  # over the mesh in scope
        return out, None, False
    names = [Var(typeof(x)) for x in leaves]
    spec = JitSpec(fun.__name__)
    outs, fast = run_program(Jaxpr((), names, names, []), leaves, (), spec, tree, inner=False)
    return unflatten(tree, outs), fast, False


# --- decorators ---------------------------------------------------------------------------------


class Listed(tuple):
    """A list or NumPy array as a static argument: a tuple that errors print as a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(list(self))


def read_numbers(x: Any) -> Any:
    """Return the values of an integer array, or of those in a list or tuple, as Python's."""
    kind = type(x)
    if kind is ArrayImpl or kind is ndarray or isinstance(x, np.integer):
        if dtypes.is_integer(x.dtype) and x.ndim < 2:
            values = np.asarray(x).tolist()
            return Listed(values) if type(values) is list else values
    elif kind is list or kind is tuple:
        values = [read_numbers(e) for e in x]
        changed = kind is list or any([y is not e for y, e in zip(values, x, strict=True)])
        if changed and set(map(type, values)) <= {int, Listed, tuple}:
            return Listed(values) if kind is list else tuple(values)
    return x


def operation(
    fun: Callable | None = None,
    *,
    arrays: int | None = None,
    static: Sequence[str] = (),
    numbers: Sequence[int] = (),
    known: int = 0,
    matched: bool = False,
    whole: bool = True,
    name: str = "",
) -> Any:
    """A decorator: an eager call of the function runs as one compiled program.

    Calls that a program cannot take (a shape given as an array, an object with `__jax_array__`, a
    value that decides the computation) run the Python function.

    Args:
      fun: the Python function. Without it, `operation(...)` is a decorator.
      arrays: the number of leading arguments that are arrays. The others are static, and a list
        or NumPy array as the last of them counts as a tuple. A result that is an operand is the
        same array. If `arrays` is 0, the result of a hot call is copied.
      static: the names of static arguments, if `arrays` is not given.
      whole: True if a function without `arrays` and `known` is one operation to a transformation
        whose rules are compiled programs. Otherwise such a transformation applies its operations.
      numbers: positions of operands. If one is a Python number, or a tuple of integers, that is
        hot, an array of it is cached.
      known: the number of leading arguments that have to be Arrays. The function reads the values
        of other operands, so calls with those run the Python function, as do calls with keywords
        other than the static ones.
      matched: True if a Python number among the first two operands gets the other's dtype.
      name: the name of the programs, by default the name of the function.
    """
    if fun is None:
        return functools.partial(operation, **{k: x for k, x in locals().items() if k != "fun"})
    if arrays == 0:
        return wrap_constant(fun)
    if arrays is not None:
        static = [*inspect.signature(fun).parameters][arrays:]
    copied = SMALL if arrays is None else -1
    op = Operation(fun, name or fun.__name__, static, copied=copied)
    if arrays is not None and not op.nums:  # C++ is faster without static arguments
        op = Operation(fun, name or fun.__name__, copied=copied)
    whole = whole and arrays is None and not known
    return wrap_call(fun, op, whole, tuple(numbers), known, matched)


def wrap_call(
    fun: Callable, op: Operation, whole: bool, numbers: tuple[int, ...], known: int, matched: bool
) -> Callable:
    """Return the public function that runs as one program where operations compute."""
    kernel, same, nums, names = op.make_kernel(), op.same, op.nums, frozenset(op.names)
    lists, first = bool(nums) and not (whole or known), nums[0] if nums else 0
    special, places = bool(known or numbers or lists), bool(known or (numbers and names))
    plain = not (whole or names)  # a call with keywords runs as written
    written = getattr(fun, "plain", fun) if plain else fun  # without a look at keywords
    prim = getattr(written, "primitive", None) if plain else None

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            again = None
            try:
                if (trace := current.trace) is EVAL:
                    given: Sequence = args
                    if special:
                        checks = places and bounds_cell.value == "all"  # which checks places
                        if checks or (known and not starts_with_arrays(args, kwargs, known, names)):
                            return fun(*args, **kwargs)
                        if lists and len(args) > first and type(args[-1]) in LISTS:
                            given = list_static(args, nums)
                        elif same and not kwargs and op.is_same(args):
                            return args[0]
                        for i in numbers:
                            x = given[i] if i < len(given) else None
                            if places and type(x) in SEQUENCES and x:
                                x = x[-1]
                            if type(x) in PYTHON:
                                given = keep_numbers(given, numbers, matched)
                                break
                    if not kwargs:
                        return kernel(*given)
                    if not plain:
                        return kernel(*given, **kwargs)
                elif trace.replays:
                    if prim is None and (found := op.write_again(trace, args, kwargs)) is not None:
                        return found
                elif whole and trace.as_operation:
                    return op.call_traced(kernel, args, kwargs)
            except NotForKernel:
                pass
            except ValueError as error:
                if not is_unhashable_static(error):
                    raise
                again = op.read_static(args, kwargs)
            if again is not None:
                return call(*again[0], **again[1])
            if prim is not None and len(args) == 1 and not kwargs:
                return trace.process(prim, args, {})[0]  # a trace is given the primitive at once
            return (fun if kwargs else written)(*args, **kwargs)
        except Exception as error:
            if is_own_transfer(error, (args, kwargs)):
                return move_explicitly(call, *args, **kwargs)
            trim_traceback(add_keyword_hint(error, fun))
            raise

    call.kernel = kernel  # type: ignore[attr-defined]
    return call


def starts_with_arrays(args: tuple, kwargs: dict, known: int, names: frozenset) -> bool:
    """Return True if the first `known` arguments are arrays, and the others are of `names`."""
    fits = known <= len(args) <= known + len(names)
    return fits and ONE_ARRAY.issuperset(map(type, args[:known])) and names.issuperset(kwargs)


def list_static(args: tuple, nums: tuple[int, ...]) -> tuple:
    """Return the arguments with lists and arrays at static positions as tuples and numbers."""
    every = []
    for i, x in enumerate(args):
        if i in nums and type(x) in LISTS:
            x = read_numbers(x)
            if type(x) is list or (type(x) is ndarray and x.ndim):
                x = Listed(x)
        every.append(x)
    return tuple(every)


def keep_numbers(args: Sequence, positions: Sequence[int], matched: bool) -> list:
    """Return the arguments with the arrays of hot Python numbers at some positions.

    With `matched`, a number among the first two gets the dtype of the other.
    """
    given = [*args]
    if matched and len(given) > 1 and (type(given[1]) in PYTHON or type(given[0]) in PYTHON):
        given[:2] = match_numbers(*given[:2])
    for i in positions:
        if i < len(given):
            x = given[i]
            if arrays := NUMBERS.get(type(x)):
                given[i] = arrays[x64_cell.value][x or str(x)]
            elif type(x) in SEQUENCES and x and type(x[-1]) is int:
                kept = NUMBERS[int][x64_cell.value]
                every = []
                for n in x:
                    every.append(kept[n or "0"] if type(n) is int else n)
                given[i] = tuple(every)
    return given


def compile_function(fun: Callable, name: str, donated: tuple[int, ...] = ()) -> Callable:
    """Return the kernel of a function of arrays, which may take over the memory of `donated`."""
    return Operation(fun, name, (), donated).make_kernel()


def number_operation(
    fun: Callable, name: str = "", matched: bool = False, whole: bool = False
) -> Callable:
    """Make an operation of a function of up to three operands that are often Python numbers.

    Calls with NumPy's keywords `out` and `where` run the Python function. With `matched`, a Python
    number gets the dtype of the other operand, operands may be keywords, and the function is one
    primitive, which a trace gets directly.
    """
    op = Operation(fun, name or fun.__name__)
    kernel, prim = op.make_kernel(), getattr(fun, "primitive", None)

    def call(
        x: Any, y: Any = ABSENT, z: Any = ABSENT, *, out: Any = None, where: Any = None
    ) -> Any:
        try:
            try:
                if out is where is None:
                    if matched and (type(y) in PYTHON or type(x) in PYTHON):
                        x, y = match_numbers(x, y)
                    if current.trace is EVAL:
                        if y is ABSENT:
                            return kernel(x)
                        if arrays := NUMBERS.get(type(y)):
                            y = arrays[x64_cell.value][y or str(y)]
                        elif arrays := NUMBERS.get(type(x)):
                            x = arrays[x64_cell.value][x or str(x)]
                        if z is ABSENT:
                            return kernel(x, y)
                        if arrays := NUMBERS.get(type(z)):
                            z = arrays[x64_cell.value][z or str(z)]
                        return kernel(x, y, z)
                    if matched and y is not ABSENT and z is ABSENT:
                        return current.trace.process(prim, (x, y), {})[0]
                    if not whole and z is ABSENT:
                        return fun(x) if y is ABSENT else fun(x, y)
                    if whole and current.trace.as_operation:
                        return op.call_traced(kernel, (x, y) if z is ABSENT else (x, y, z), {})
            except NotForKernel:
                pass
            except ShapeError:
                if matched and z is ABSENT:
                    return bind_spread(prim, x, y)  # type: ignore[arg-type]
                raise
            given = [v for v in (x, y, z) if v is not ABSENT]
            return fun(*given) if out is where is None else fun(*given, out=out, where=where)
        except Exception as error:
            if is_own_transfer(error, (x, y, z)):
                return move_explicitly(call, x, y, z, out=out, where=where)
            trim_traceback(error)
            raise

    if matched:
        name_parameters(call, fun.__code__.co_varnames[:2])
    else:
        call.__code__ = call.__code__.replace(co_posonlyargcount=3)
    public: Any = functools.update_wrapper(call, fun)
    public.kernel = kernel
    if not (matched or whole):
        public.traced = fun  # for callers that know that a trace is in force
    return public


def operator_operation(fun: Callable, foreign: Callable) -> Callable:
    """Return an operator: the function of an array and of an operand that it takes.

    `foreign` is called with any other operand than an array or a number.
    """
    public: Any = fun
    kernel, traced = public.kernel, getattr(fun, "traced", fun)

    @functools.wraps(foreign)
    def call(self: Any, other: Any) -> Any:
        try:
            if current.trace is EVAL:
                if (arrays := OPERANDS.get(type(other))) is not None:
                    if arrays:
                        other = arrays[x64_cell.value][other or str(other)]
                    return kernel(self, other)
            elif type(other) in OPERANDS or isinstance(other, Tracer):
                return traced(self, other)
        except NotForKernel:
            pass
        except Exception as error:
            if is_own_transfer(error, other):
                return move_explicitly(call, self, other)
            trim_traceback(error)
            raise
        if type(other) in OPERANDS or isinstance(other, Tracer):
            return fun(self, other)
        return foreign(self, other)

    return call
