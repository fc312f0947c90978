"""Every class of error weft raises on purpose. Each has a section in docs/errors.md.

The grammar of a message is `op: what must hold; got what was given.`, then `Hint:` with the fix as
code if there is a fix. Classes that JAX's users catch have the same names and bases.

The hint of an error about a traced value quotes the user's own source. The expression that needs
the value is found by the position that the interpreter stores.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from jaxlib._jax import JaxRuntimeError

from weft.util import Logger, list_public, name_line

__all__ = [
    "CheckError", "ConcretizationTypeError", "DeletedError", "DtypeError", "HoleError",
    "InconclusiveDimensionOperation", "IndexingError", "JAXIndexError", "JAXTypeError",
    "JaxRuntimeError", "JaxprTypeError", "KeyReuseError", "LeakedTracerError", "MissingRule",
    "MutationError", "NonConcreteBooleanIndexError", "ParseError", "ProcessFailureError",
    "PytreeError", "RefError", "ShapeError", "ShardingTypeError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerError", "TracerIntegerConversionError",
    "TypePromotionError", "UnboundAxisError", "UnexpectedTracerError",
]  # fmt: skip
__dir__ = list_public(__name__)


MAX_MESSAGE = 4000  # characters of an error, which may print a tree of a million leaves


def shorten_text(text: Any) -> Any:
    """Return an argument of an error, without the middle of a long text."""
    if type(text) is not str or len(text) <= MAX_MESSAGE:
        return text
    part = MAX_MESSAGE // 2 - 20
    return f"{text[:part]} ... ({len(text) - 2 * part} characters) ... {text[-part:]}"


class HidingError(Exception):
    """An error of weft's, whose frames of weft pytest and IPython leave out."""

    def __init__(self, *args: Any):
        super().__init__(*map(shorten_text, args))
        frame: Any = sys._getframe(1)
        while frame is not None and is_own_file(frame.f_code.co_filename):
            frame.f_locals["__tracebackhide__"] = True
            frame = frame.f_back


class ShapeError(HidingError, TypeError, ValueError):
    """Shapes, axes or sizes of operands do not fit together. It is a TypeError and a ValueError.

    >>> jnp.ones(3) + jnp.ones(2)
    Traceback (most recent call last):
    weft.errors.ShapeError: add: shapes must broadcast together; got f32[3], f32[2].
    """


class ShardingTypeError(HidingError, TypeError, ValueError):
    """The splits of operands over the explicit axes of a mesh do not fit, or leave the result open.

    `reshard` gives an operand another split.

    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> rows, columns = (weft.NamedSharding(mesh, weft.P(*spec)) for spec in (["x"], [None, "x"]))
    >>> x = jnp.ones((2, 2))
    >>> y = weft.device_put(x, rows) + weft.reshard(weft.device_put(x, columns), rows)
    >>> weft.device_put(x, rows) + weft.device_put(x, columns)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.ShardingTypeError: add: operands must be split alike over the mesh.
    """


class DtypeError(HidingError, TypeError, ValueError):
    """The operation does not take the dtype of an operand, or a value is not an array or a number.

    Lists are not converted silently: `jnp.array` converts them. It is a TypeError and a ValueError.

    >>> jnp.sin([1.0, 2.0])
    Traceback (most recent call last):
    weft.errors.DtypeError: sin: operands must be arrays or numbers; got a list.
    Hint: jnp.array([1.0, 2.0]).
    """


class TypePromotionError(HidingError, TypeError, ValueError):
    """Two dtypes have no common dtype under the promotion rules in force.

    `x.astype(dtype)` converts an operand.

    >>> with weft.numpy_dtype_promotion("strict"):  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     jnp.ones(2, jnp.int32) + jnp.ones(2)
    Traceback (most recent call last):
    weft.errors.TypePromotionError: add: dtypes must be equal under numpy_dtype_promotion='strict'.
    """


class JAXTypeError(HidingError, TypeError):
    """The base of the errors about traced values, under the name that JAX gives it.

    >>> from weft.errors import JAXTypeError, TracerError
    >>> issubclass(TracerError, JAXTypeError)
    True
    """


class JAXIndexError(HidingError, IndexError):
    """The base of the errors about indices, under the name that JAX gives it. It is an IndexError.

    >>> from weft.errors import IndexingError, JAXIndexError
    >>> issubclass(IndexingError, JAXIndexError)
    True
    """


class IndexingError(JAXIndexError, TypeError):
    """An index is malformed, or known to be out of bounds.

    An index that is computed in a compiled function is not known while the function is traced; it
    is clipped or dropped, as `x.at[i].get(mode=...)` says.

    >>> jnp.ones(3)[1, 2]
    Traceback (most recent call last):
    weft.errors.IndexingError: x[...]: there must be at most one index for each axis;
    got 2 for f32[3].
    """


class TracerError(JAXTypeError):
    """A traced value was used where a known value is needed.

    While `jit`, `grad` or `vmap` trace a function, its arguments have a type and no value. The
    errors below this class say which Python operation needs the value, and what to write instead.

    >>> from weft.errors import ConcretizationTypeError, TracerError
    >>> issubclass(ConcretizationTypeError, TracerError)
    True
    """


class ConcretizationTypeError(TracerError):
    """Python asked for the value of a traced array, as in `float(x)`, `int(x)` or `x.item()`.

    Keep the value an array, or mark the argument as static in `jit`.

    >>> f = weft.jit(lambda x: float(x))
    >>> f(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.ConcretizationTypeError: float(): needs a concrete value; got a traced i32[].
    >>> weft.jit(lambda x: x.astype(float))(1)
    Array(1., dtype=float32)
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array decided a branch of Python: `if`, `while`, `and`, `or`, `not` or `assert`.

    `jnp.where` chooses between two values. `lax.cond` and `lax.while_loop` are branches and loops
    that depend on computed values. `jit(f, static_argnames=...)` is for arguments that are
    settings.

    >>> f = weft.jit(lambda x: x if x > 0 else 0)
    >>> f(-1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.TracerBoolConversionError: bool(): needs a concrete value; got a traced bool[].
    >>> print(weft.jit(lambda x: jnp.where(x > 0, x, 0))(-1.0))
    0.0
    """


class TracerIntegerConversionError(TracerError):
    """A traced array was used where Python needs an integer, as in `range(x)` or `list[x]`.

    `lax.fori_loop` counts to a computed number, and an array can be indexed by one.

    >>> f = weft.jit(lambda i: [1, 2, 3][i])
    >>> f(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.TracerIntegerConversionError: index(): needs a concrete value; got a traced i32[].
    >>> print(weft.jit(lambda i: jnp.array([1, 2, 3])[i])(1))
    2
    """


class TracerArrayConversionError(TracerError):
    """A function of NumPy was called on a traced array.

    `weft.numpy` has a function of the same name. `weft.pure_callback` calls NumPy from a compiled
    program.

    >>> f = weft.jit(lambda x: np.sin(x))
    >>> f(0.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.TracerArrayConversionError: numpy: needs a concrete value; got a traced f32[].
    >>> print(weft.jit(lambda x: jnp.sin(x))(0.0))
    0.0
    """


class NonConcreteBooleanIndexError(JAXIndexError, TracerError):
    """A traced mask was used as an index, so that the size of the result is unknown.

    `jnp.where(mask, x, 0)` keeps the shape, and `jnp.nonzero(mask, size=n)` has a static size.

    >>> f = weft.jit(lambda x: x[x > 0])
    >>> f(jnp.array([1.0, -1.0]))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.NonConcreteBooleanIndexError: x[mask]: needs a concrete value; got a traced bool[2].
    >>> print(weft.jit(lambda x: jnp.where(x > 0, x, 0))(jnp.array([1.0, -1.0])))
    [1. 0.]
    """


class UnexpectedTracerError(TracerError):
    """A traced value was used after the function that it belongs to returned.

    A function that is transformed must return its results. It must not store traced values in
    globals, attributes or lists.

    >>> seen = []
    >>> y = weft.jit(lambda x: seen.append(x))(1.0)
    >>> seen[0] + 1  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.UnexpectedTracerError: tracer: a traced value must not be used after its function.
    """


class LeakedTracerError(UnexpectedTracerError):
    """A traced value was stored outside of its function. `weft.checking_leaks` finds such values.

    >>> seen = []
    >>> with weft.checking_leaks():  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     weft.jit(lambda x: seen.append(x))(1.0)
    Traceback (most recent call last):
    weft.errors.LeakedTracerError: <lambda>: traced values must not outlive their function.
    """


class UnboundAxisError(HidingError, NameError):
    """A collective names an axis that is not in scope. It is a NameError.

    >>> lax.psum(1.0, "i")
    Traceback (most recent call last):
    weft.errors.UnboundAxisError: psum: axis_name must be an axis in scope; got 'i', in scope none.
    Hint: vmap(f, axis_name='i'), or shard_map over a mesh with this axis.
    >>> print(weft.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.ones(3)))
    [3. 3. 3.]
    """


class InconclusiveDimensionOperation(HidingError, TypeError):
    """An operation on symbolic sizes has an answer that depends on the sizes.

    Constraints of the sizes may decide it: `symbolic_shape("a, b", constraints=["a >= b"])`.

    >>> from weft import export
    >>> a, b = export.symbolic_shape("a, b")
    >>> a > b  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.InconclusiveDimensionOperation: comparison: must have the same answer for all sizes.
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice, found by the option `debug_key_reuse`.

    Two draws with one key are equal or dependent. `random.split` makes new keys.

    >>> key = random.key(0)
    >>> with weft.debug_key_reuse(True):  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     x, y = random.normal(key), random.normal(key)
    Traceback (most recent call last):
    weft.errors.KeyReuseError: random: a key must be used once.
    """


class MissingRule(NotImplementedError):
    """A primitive lacks a rule that a transformation needs, such as a derivative.

    `lax.stop_gradient` treats an operand as a constant, and `custom_jvp` defines a derivative.

    >>> f = lambda x: lax.linalg.hessenberg(x)[0].sum()
    >>> weft.grad(f)(jnp.eye(2))
    Traceback (most recent call last):
    weft.errors.MissingRule: hessenberg: has no derivative; got a tangent for an operand.
    Hint: lax.stop_gradient(x).
    """


class MutationError(HidingError, TypeError):
    """An array was assigned into. Arrays are immutable: `x.at[i].set(v)` returns a changed copy.

    >>> x = jnp.ones(2)
    >>> x[0] = 5.0
    Traceback (most recent call last):
    weft.errors.MutationError: array: an array must not be assigned into; got x[0] = ... on f32[2].
    Hint: x = x.at[0].set(value).
    >>> print(x.at[0].set(5.0))
    [5. 1.]
    """


class RefError(HidingError, TypeError, ValueError):
    """A reference was passed twice, returned, or written where it cannot be.

    >>> r = weft.new_ref(jnp.ones(2))
    >>> f = weft.jit(lambda r: r)
    >>> f(r)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.RefError: <lambda>: a reference must not be returned from a traced function.
    """


class DeletedError(HidingError, RuntimeError):
    """An array was used after it was deleted, or after its buffer was donated to a call.

    >>> x = jnp.ones(2)
    >>> x.delete()
    >>> x + 1
    Traceback (most recent call last):
    weft.errors.DeletedError: array: must not be used after it was deleted or donated; got f32[2].
    Hint: use the result of the call it was donated to, or drop donate_argnums there.
    """


class ProcessFailureError(RuntimeError):
    """Another process of the same program ended or stopped answering.

    Attributes:
      failed_devices: the set of the devices that the process had.

    >>> weft.errors.ProcessFailureError("process 1 is lost", [3]).failed_devices
    {3}
    """

    def __init__(self, message: str = "", failed_devices: Iterable[Any] = ()):
        super().__init__(message)
        self.failed_devices = set(failed_devices)


class PytreeError(HidingError, TypeError, ValueError):
    """The structure of a pytree is not the one that is needed.

    >>> weft.tree.map(lambda x, y: x + y, [1, 2], [3])
    Traceback (most recent call last):
    weft.errors.PytreeError: tree.map: tree must be a tree prefix of rest[0];
    got a list of length 2 at tree where rest[0] has a list of length 1.
    """


class CheckError(TypeError):
    """A jaxpr breaks a rule of the language, such as an equation that reads an undefined variable.

    >>> from weft.errors import CheckError
    >>> issubclass(CheckError, TypeError)
    True
    """


JaxprTypeError = CheckError


class ParseError(ValueError):
    """The text of a jaxpr cannot be read.

    Attributes:
      line, column: the position in the text, both counted from 1.

    >>> try:
    ...     weft.jaxpr.parse("{ lambda ; a:f32[]. let b:f32[] = foo a in (b,) }")
    ... except weft.errors.ParseError as error:
    ...     print(error.line, error.column)
    1 35
    """

    line: int = 0
    column: int = 0

    @classmethod
    def at(cls, must: str, text: str, pos: int, hint: str = "") -> ParseError:
        """The error that says what must hold at a position of a text, and shows the line."""
        before = text[:pos]
        line, start = before.count("\n") + 1, before.rfind("\n") + 1
        row = text[start:].split("\n", 1)[0]
        column = pos - start + 1
        got = "" if "; got" in must else f"; got {row[pos - start :].strip()[:24] or 'the end'!r}"
        around = max(0, column - 60)  # a long line is shown from nearby
        shown, mark = row[around : around + 100], " " * (column - 1 - around) + "^"
        error = cls(
            f"parse: {must}{got}.{' Hint: ' + hint if hint else ''}\n"
            f"At line {line}, column {column}:\n  {shown}\n  {mark}"
        )
        error.line, error.column = line, column
        return error


class HoleError(TypeError):
    """A part of a program was needed that its text cannot hold, such as a Python function.

    A program that was read from text prints and runs. It has no rules of custom derivatives, for
    example.

    >>> from weft.errors import HoleError
    >>> issubclass(HoleError, TypeError)
    True
    """


def unhashable_error(op: str, params: dict) -> TypeError:
    """The error for parameters that cannot be the key of a dict."""

    def is_hashable(x: Any) -> bool:
        try:
            hash(x)
        except TypeError:
            return False
        return True

    bad = [f"{k}={v!r}" for k, v in params.items() if not is_hashable(v)]
    return TypeError(f"{op}: parameters must be hashable; got {', '.join(bad)}.")


def check_hashable(op: str, **params: Any) -> None:
    """Raise unless parameters can be the key of a dict."""
    try:
        hash((*params.values(),))
    except TypeError:
        raise unhashable_error(op, params) from None


# --- hints made of the user's source ----------------------------------------------------------

OWN = __file__.removesuffix("errors.py")
MAKE_JAXPR = OWN + os.path.join("api", "make_jaxpr.py")  # where tracing is all that is asked for
HIDDEN_FILES: set[str] = set()
MAX_SOURCE = 72  # characters of source text in a hint

# Python's functions that compare, and weft's; with one argument, and with several.
CHOICES = {
    "max": ("jnp.max", "jnp.maximum"), "min": ("jnp.min", "jnp.minimum"),
    "any": ("jnp.any", ""), "all": ("jnp.all", ""), "sorted": ("jnp.sort", ""),
}  # fmt: skip


class Origin(str):
    """The origin of an argument of a traced function, as errors name it, and its `op`."""

    fun: str
    name: str
    op: str

    def __new__(cls, text: str, fun: str, name: str, op: str) -> Origin:
        self = super().__new__(cls, text)
        self.fun, self.name, self.op = fun, name, op
        return self


def describe_place(op: str) -> str:
    """Describe the place where a function runs that `op` traces."""
    if op in ("cond", "switch"):
        return f"in a branch of {op}"
    if op in ("scan", "while_loop", "fori_loop", "map"):
        return f"in the body of {op}"
    return f"under {op}"


def is_own_file(name: str) -> bool:
    """Return True if a file is one of weft's, or of a library that hides its frames too."""
    return name.startswith(OWN) or name in HIDDEN_FILES


class UnfilteredStackTrace(Exception):
    """The cause of an error of whose traceback frames were removed: it has them all."""

    shown = 0  # how many frames the error kept


def list_rows(traceback: TracebackType | None) -> list[TracebackType]:
    """The entries of a traceback, from the outermost."""
    rows = []
    while traceback is not None:
        rows.append(traceback)
        traceback = traceback.tb_next
    return rows


def is_own_row(row: TracebackType) -> bool:
    """Return True if an entry of a traceback is in weft's code."""
    return is_own_file(row.tb_frame.f_code.co_filename)


def chain_rows(rows: Sequence[TracebackType], inner: TracebackType | None) -> TracebackType | None:
    """A traceback of some entries, and below them of another traceback."""
    for row in reversed(rows):
        inner = TracebackType(inner, row.tb_frame, row.tb_lasti, row.tb_lineno)
    return inner


KEY_HINT = (
    "Hint: a traced value is no key, for its value is not known. Use what is known, as x.shape, or "
    "mark the argument static in jit (static_argnums, static_argnames)."
)


def add_key_hint(error: BaseException) -> None:
    """Add a note to Python's own error for a traced value as a key: `__hash__` can say nothing.

    It must be None, or `collections.abc.Hashable` would take arrays for keys.
    """
    if type(error) is TypeError and KEY_HINT not in getattr(error, "__notes__", ()):
        text = str(error)
        if text.startswith("unhashable type: '") and text.endswith("Tracer'"):
            error.add_note(KEY_HINT)


def filter_traceback(error: BaseException, how: str) -> None:
    """Do with weft's frames in a traceback as a value of `config.traceback_filtering` says.

    An error comes here once for each function of weft that it leaves, with more frames outside.
    """
    rows = list_rows(error.__traceback__)
    if how == "tracebackhide":
        for row in filter(is_own_row, rows):
            row.tb_frame.f_locals["__tracebackhide__"] = True
    if how not in ("remove_frames", "quiet_remove_frames"):
        return
    shown = [row for row in rows if not is_own_row(row)]
    error.__traceback__ = chain_rows(shown, None)
    if how == "quiet_remove_frames":
        note = "Frames of weft are left out. Hint: config.update('traceback_filtering', 'off')."
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return
    full = error.__cause__
    if not isinstance(full, UnfilteredStackTrace):
        full = UnfilteredStackTrace(f"{type(error).__name__}: {error}")
        full.__cause__, full.__context__ = error.__cause__, error.__context__
        full.__suppress_context__ = error.__suppress_context__
        error.__cause__ = full
    full.__traceback__ = chain_rows(rows[: len(rows) - full.shown], full.__traceback__)
    full.shown = len(shown)


def find_expression(frame: Any = None) -> tuple[list[ast.AST], Callable[[ast.AST], str]] | None:
    """Return the syntax node that the user's innermost frame executes, outermost ancestor last.

    Also return a function from a node to its text. Return None if the source cannot be read.
    """
    frame = frame or sys._getframe(1)
    while frame is not None and (
        is_own_file(frame.f_code.co_filename) or "site-packages" in frame.f_code.co_filename
    ):
        frame = frame.f_back
    if frame is None:
        return None
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    spans = frame.f_code.co_positions()
    start, end, left, right = next(itertools.islice(spans, frame.f_lasti // 2, None))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    found: list[ast.AST] = []

    def search(node: ast.AST, around: list[ast.AST]) -> None:
        begin: Any = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        finish: Any = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        if begin[0] is not None:
            if begin <= (start, left) and (end, right) <= finish:
                found[:] = around = [node, *around]
            elif not getattr(node, "decorator_list", ()):  # which stand before the node
                return
        for child in ast.iter_child_nodes(node):
            search(child, around)

    if start is None or left is None or end is None or right is None:
        return None
    search(tree, [])

    def text_of(node: ast.AST) -> str:
        return " ".join((ast.get_source_segment(source, node) or "").split())

    return (found, text_of) if found else None


def write_choice(node: ast.AST, inner: ast.AST, outer: Any, text: Callable) -> str:
    """Return the replacement for Python's choice by a traced condition; "" if there is none."""
    match node:
        case ast.BoolOp():
            sign = " & " if isinstance(node.op, ast.And) else " | "
            return sign.join(f"({text(v)})" for v in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return f"jnp.logical_not({text(node.operand)})"
        case ast.Compare(comparators=[_, _, *_]):
            parts = [node.left, *node.comparators]
            pairs = zip(itertools.pairwise(parts), node.ops, strict=True)
            return " & ".join(f"({text(a)} {SIGNS[type(op)]} {text(b)})" for (a, b), op in pairs)
        case ast.Call(func=ast.Name(id=name)) if name in CHOICES and inner is not node.func:
            one, several = CHOICES[name]
            listed = ", ".join(map(text, node.args))
            if len(node.args) == 2 and several:
                return f"{several}({listed})"
            return f"{one}({listed})" if len(node.args) == 1 else f"{one}(jnp.array([{listed}]))"
        case ast.IfExp():
            return f"jnp.where({text(node.test)}, {text(node.body)}, {text(node.orelse)})"
        case ast.Assert():
            said = f", {text(node.msg)}" if node.msg else ', "what must hold"'
            return f"checkify.check({text(node.test)}{said}), of weft.experimental"
        case ast.While():
            return f"lax.while_loop(lambda c: {text(node.test)}, body, init), c being what changes"
        case ast.If(body=[ast.Return(value=a)]) if a is not None:
            b = find_other(node, outer)
            return f"return jnp.where({text(node.test)}, {text(a)}, {text(b) if b else 'other'})"
        case ast.If(body=[ast.Assign(targets=[ast.Name(id=name)], value=a)]):
            rest = node.orelse
            b = rest[0].value if len(rest) == 1 and isinstance(rest[0], ast.Assign) else None
            return f"{name} = jnp.where({text(node.test)}, {text(a)}, {text(b) if b else name})"
        case ast.If():
            return f"lax.cond({text(node.test)}, if_true, if_false, x)"
    return ""


SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def find_other(node: ast.If, outer: Any) -> ast.AST | None:
    """Return the value of an `if` that returns where it does not hold: by `else`, or later."""
    following = node.orelse
    if not following and node in getattr(outer, "body", ()):
        following = outer.body[outer.body.index(node) + 1 :]
    match following:
        case [ast.Return(value=b)]:
            return b
    return None


def write_call(node: ast.AST, inner: ast.AST, outer: Any, text: Callable) -> str:
    """Return the replacement for a function or a container of Python's or NumPy's."""
    match node:
        case ast.Subscript() if inner is not node.value:
            return f"jnp.asarray({text(node.value)})[{text(node.slice)}]"
        case ast.Call(func=ast.Name(id="range"), args=args):
            low, high = (text(args[0]), text(args[1])) if len(args) > 1 else ("0", text(args[0]))
            return f"lax.fori_loop({low}, {high}, lambda i, c: ..., init)"
        case ast.Call(func=ast.Name(id="float" | "int" | "complex" | "bool" as kind), args=[x]):
            inside = text(x)
            plain = isinstance(x, ast.Name | ast.Call | ast.Subscript | ast.Attribute)
            return f"{inside if plain else f'({inside})'}.astype({kind})"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy" | "math"), attr=name)):
            return f"jnp.{name}({', '.join(map(text, node.args))})"
        case ast.Call(func=ast.Attribute()) if text(node).startswith("scipy."):
            return f"weft.{text(node)}"
        case ast.FormattedValue():
            spec = text(node).partition(":")[2] if node.format_spec else ""
            value = text(node.value)
            return f'weft.debug.print("{value} = {{}}", {value})' if spec is not None else ""
    return ""


def describe_need(op: str, aval: Any, origin: str, origins: Sequence[Origin], hint: str) -> str:
    """Return the hint where `op` needs the value of a tracer: how to do without it."""
    if origins:
        if not origin.startswith("from "):
            origin += f", which depends on {' and '.join(origins[:2])}"
        origin += f", {describe_place(origins[0].op)}"
    hint = hint_for(op, origins, hint)
    return f"{op}: needs a concrete value; got a traced {aval} {origin}. Hint: {hint}"


def hint_for(op: str, origins: Sequence[Origin], otherwise: str) -> str:
    """Return the code that replaces an expression which needed a traced value."""
    write = write_choice if op == "bool()" else write_call
    known = op in ("bool()", "index()", "int()", "float()", "complex()", "numpy", "format()")
    code = ""
    chain, text = (known and find_expression()) or ([], str)
    for inner, node, outer in zip([*chain[:1], *chain], chain, [*chain[1:], None], strict=False):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            break
        code = write(node, inner, outer, text)
        if code and len(code) > MAX_SOURCE:
            code = ""
        if code:
            otherwise = code + "."
            break
    if ": " in op or (known and (not code or op in ("bool()", "index()", "int()"))):
        for origin in origins:
            if origin.op == "jit" and origin.name.isidentifier():
                fun = origin.fun if origin.fun.isidentifier() else "f"
                static = f"jit({fun}, static_argnames={origin.name!r})"
                return f"{otherwise} Or, where it is a setting: {static}."
    return otherwise


# --- text made of a traced value --------------------------------------------------------------

logger = Logger("weft.trace")
FORMATTERS = {"dataclasses", "logging", "pprint", "reprlib"}  # who makes text for their callers
DEBUGGERS = {"IPython", "bdb", "pdb"}
INSTALLED = os.path.dirname(os.__file__), f"{os.sep}site-packages{os.sep}"
_printed: weakref.WeakKeyDictionary[Any, set[int]] = weakref.WeakKeyDictionary()


def hint_printing(x: Any) -> None:
    """Log, once for each place, that a line of the user's formats a tracer while it is traced.

    Nothing is logged if the text is for an error or a debugger, or if a library other than
    `logging` formats it.
    """
    frame = find_formatting(sys._getframe(2))
    if frame is None or frame.f_lineno in _printed.setdefault(frame.f_code, set()):
        return
    _printed[frame.f_code].add(frame.f_lineno)
    chain, _ = find_expression(frame) or ([], str)
    if any(itertools.starmap(serves_error, itertools.pairwise(chain))):
        return
    texts = [n for n in chain if isinstance(n, ast.Call | ast.JoinedStr)]
    node = next((n for n in texts if is_print(n)), next(iter([*texts, *chain]), None))
    logger.warning(
        "`%s` at %s runs while %s is traced, not in each call; got %s %s, which has no value "
        "then. Hint: %s; config.update('hints', False) silences this.",
        ast.unparse(node) if node else "text of a value",
        name_line(frame.f_code.co_filename, frame.f_lineno),
        frame.f_code.co_name,
        x.aval,
        x.origin(),
        write_print(node, next((n for n, v in frame.f_locals.items() if v is x), "x")),
    )


def serves_error(node: ast.AST, around: Any) -> bool:
    """Return True if a statement raises, ends a block that raises, or makes a raised name."""
    if isinstance(around, ast.FunctionDef) and isinstance(node, ast.Assign):
        names = {n.id for n in node.targets if isinstance(n, ast.Name)}
        raised = [n for r in ast.walk(around) if isinstance(r, ast.Raise) for n in ast.walk(r)]
        if any(isinstance(n, ast.Name) and n.id in names for n in raised):
            return True
    blocks = (b for _, b in ast.iter_fields(around) if isinstance(b, list) and node in b)
    return any(isinstance(b[-1], ast.Raise) for b in blocks) or isinstance(node, ast.Assert)


def find_formatting(frame: Any) -> Any:
    """The user's frame that makes text of a tracer, or None; `frame` asks the tracer for it."""
    logged = False
    while frame is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        logged |= module == "logging"
        file = frame.f_code.co_filename
        if module not in FORMATTERS and frame.f_code.co_name not in ("__repr__", "__str__"):
            if not (is_own_file(file) or file.startswith(INSTALLED[0]) or INSTALLED[1] in file):
                break
            if not logged and "__format__" not in frame.f_code.co_name:
                return None
        frame = frame.f_back
    outer, inside = frame, True  # the same function of the user's still
    while outer is not None:
        module, file = outer.f_globals.get("__name__", ""), outer.f_code.co_filename
        inside &= not is_own_file(file)
        if inside and (module.partition(".")[0] in DEBUGGERS or "pydev" in module):
            return None
        if file == MAKE_JAXPR:
            return None
        outer = outer.f_back
    return frame


def is_print(node: Any) -> bool:
    """Return True if a node of the source calls `print`."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"


def write_print(node: Any, name: str) -> str:
    """Return the code that shows the value each time that the program runs."""
    if not is_print(node):
        return f"weft.debug.print('{name} = {{}}', {name})"
    texts, values = [], []
    for arg in node.args:
        for part in arg.values if isinstance(arg, ast.JoinedStr) else [arg]:
            if isinstance(part, ast.Constant):
                texts.append(str(part.value).replace("{", "{{").replace("}", "}}"))
            else:
                texts.append("{}")
                values.append(part.value if isinstance(part, ast.FormattedValue) else part)
        texts.append(" ")
    return f"weft.debug.print({', '.join([repr(''.join(texts[:-1])), *map(ast.unparse, values)])})"
