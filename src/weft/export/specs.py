"""Symbolic shapes from text: scopes with their constraints, and what users write for sizes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

from weft.api.functions import struct_like
from weft.api.shape_struct import ShapeDtypeStruct
from weft.core.aval import is_valid_value, typeof
from weft.errors import ShapeError
from weft.export.dims import (
    OPERATIONS,
    Dim,
    Factor,
    Size,
    evaluate_size,
    find_bounds,
    make_size,
    raise_size,
)
from weft.pytrees import broadcast_prefix, flatten, is_none, unflatten
from weft.util import name_line

_BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: raise_size,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_SIGNS = {ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "=="}


_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def compare_sizes(comparison: tuple[Size, str, Size], values: Mapping[str, int]) -> bool:
    """Return the answer to a comparison of sizes, where variables have these values."""
    a, sign, b = comparison
    return _ORDERS[sign](evaluate_size(a, values), evaluate_size(b, values))


class SymbolicScope:
    """A scope of symbolic sizes, with constraints. Sizes of one program share a scope.

    Args:
      constraints_str: a sequence of texts such as "a >= 4", "b <= 2*a" or "mod(a, 2) == 0". A
        program can be called only with sizes that satisfy them. The default is none.

    >>> scope = weft.export.SymbolicScope(["a >= 4"])
    >>> weft.export.symbolic_shape("a, b", scope=scope)
    (a, b)
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str):
            raise ValueError(
                f"SymbolicScope: constraints must be texts in a sequence; got {constraints_str!r}. "
                f"Hint: [{constraints_str!r}]."
            )
        self.constraints: list[tuple[str, Size, str, Size]] = []
        self.explicit: list[Dim] = []  # expressions that are at least 0
        self.equal: dict[Factor, list[tuple[int, Size]]] = {}
        self.bounds: dict = {}  # the results of find_bounds, cached
        # Pairs of sizes that were taken to differ, if somebody wants to know.
        self.compared: list[tuple[Dim, Any, CodeType]] | None = None
        # If somebody has values for the variables: the answers to comparisons that depend on them.
        self.values: Mapping[str, int] | None = None
        self.decided: dict[tuple[Dim, str, Size], bool] = {}
        self.branches: list[str] = []  # such comparisons by users, and their lines
        for text in constraints_str:
            self._add(str(text))

    def decide(self, a: Dim, sign: str, b: Size, frame: FrameType) -> bool | None:
        """Answer a comparison by the values of the variables; None if they are not known.

        `frame` is the frame that compares.
        """
        key = a, sign, b
        if self.values is not None and key not in self.decided:
            self.decided[key] = compare_sizes(key, self.values)
            if not frame.f_globals.get("__name__", "").startswith("weft."):
                place = name_line(frame.f_code.co_filename, frame.f_lineno)
                self.branches.append(f"`{a} {sign} {b}` at {place}")
        return self.decided.get(key)

    def _add(self, text: str) -> None:
        """Take one more constraint."""
        node = parse_expression("SymbolicScope: a constraint", text)
        if not (
            isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SIGNS
        ):
            raise ValueError(
                f"SymbolicScope: a constraint must have one of >=, <=, ==; got {text!r}."
            )
        sign = _SIGNS[type(node.ops[0])]
        a, b = [read_size(n, self, text) for n in (node.left, node.comparators[0])]
        self.bounds.clear()
        self.constraints.append((text, a, sign, b))
        for x in (a - b, b - a):
            if isinstance(x, Dim) and sign in ("==", ">=" if x == a - b else "<="):
                self.explicit.append(x)
        if sign == "==" and isinstance(a - b, Dim):
            self._equate(a - b)

    def _equate(self, zero: Dim) -> None:
        """Replace a term of an expression that is 0 by the rest: an operation, else a variable."""
        alone = [(m[0][0], c) for m, c in zero.terms.items() if len(m) == 1 and m[0][1] == 1]
        operations = [t for t in alone if not isinstance(t[0], str)]
        for factor, count in operations or [t for t in alone if abs(t[1]) == 1]:
            sign = -1 if count > 0 else 1
            rest = sign * (zero - count * Dim({((factor, 1),): 1}, self))
            self.equal[factor] = [(abs(count), rest)]
            # Earlier constraints name the factor, and a variable is at least 1. Both must hold for
            # the size that replaces it.
            again = [make_size(x.terms, self) for x in self.explicit]
            again += [rest - 1] if isinstance(factor, str) else []
            self.explicit = [x for x in again if isinstance(x, Dim)]
            return

    def known(self, x: Dim) -> Iterator[Dim]:
        """Return expressions that are at least 0: constraints, and definitions of factors."""
        yield from self.explicit
        for factor in set(x.factors()):
            if isinstance(factor, str):
                yield Dim.variable(factor, self) - 1
            else:
                kind, a, b = factor
                value = Dim({((factor, 1),): 1}, self)
                found: list = []
                if kind == "floordiv" and find_bounds(b, 0)[0] > 0:
                    found = [a - b * value, b * value - a + (b - 1)]
                elif kind in ("max", "min"):
                    sign = 1 if kind == "max" else -1
                    found = [(value - a) * sign, (value - b) * sign]
                yield from (d for d in found if isinstance(d, Dim))

    def check_same(self, other: Dim) -> None:
        """Raise if a size belongs to another scope."""
        if other.scope is not self:
            raise ShapeError(
                f"symbolic sizes: must be of one scope; got {other} of another"
                f"{other.scope.describe()}. Hint: one call of symbolic_shape or "
                "symbolic_args_specs for all arguments, or scope=."
            )

    def describe(self) -> str:
        """The constraints, for errors."""
        texts = ", ".join(c[0] for c in self.constraints)
        return f" where {texts}" if texts else ""

    def __repr__(self) -> str:
        return f"SymbolicScope({[c[0] for c in self.constraints]})"

    __str__ = __repr__


def parse_expression(what: str, text: str) -> ast.expr:
    """The syntax tree of an expression, which is Python's except for `^`, a power."""
    try:
        return ast.parse(text.replace("^", "**").strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{what} must be sizes such as 'b, 2*n, floordiv(b, 4)'; got {text!r} ({error})."
        ) from None


def read_size(node: ast.AST, scope: SymbolicScope, text: str) -> Size:
    """The size that an expression stands for; nothing is looked up or called but operations."""
    try:
        return read_node(node, scope, text)
    except RecursionError:
        raise ValueError(
            f"symbolic_shape: a size must be of fewer operations; got {len(text)} characters."
        ) from None


def read_node(node: ast.AST, scope: SymbolicScope, text: str) -> Size:
    """The size of a part of an expression; see `read_size`."""
    read = lambda x: read_node(x, scope, text)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id != "_":
        return Dim.variable(node.id, scope)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -read(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](read(node.left), read(node.right))
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        operation = OPERATIONS.get(getattr(node.func, "id", ""))
        if operation is not None:
            return operation(*map(read, node.args))
    raise ValueError(
        "symbolic_shape: a size must be made of integers, names, +, -, *, ^, floordiv, mod, max "
        f"and min; got {ast.unparse(node)!r} in {text!r}."
    )


def read_sizes(text: str, scope: SymbolicScope) -> list[Size]:
    """The sizes in a text, which are separated by commas."""
    node = parse_expression("symbolic_shape: the shape", f"({text},)") if text.strip() else None
    return [] if node is None else [read_size(x, scope, text) for x in node.elts]  # type: ignore


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Size, ...]:
    """Return a shape whose sizes are names or expressions.

    A call of the program finds the values of the names from the shapes of its arguments. Names
    stand for sizes of at least 1.

    Args:
      shape_spec: sizes separated by commas, such as "b, 2*n, floordiv(b, 4)": integers, names, +,
        -, *, ^, floordiv, mod, max and min. `_` is the size that `like` has there, and `...` stands
        for the sizes of all remaining axes of `like`. None is "...".
      constraints: the constraints of a new scope, as in `SymbolicScope`.
      scope: a `SymbolicScope` for the names. None, the default, makes a new one.
      like: a shape for `_` and `...`. None by default.

    Returns:
      A tuple of sizes: ints, and symbolic sizes.

    >>> weft.export.symbolic_shape("b, 2*b, 3")
    (b, 2*b, 3)
    """
    op = "symbolic_shape"
    if scope is not None and constraints:
        raise ValueError(f"{op}: constraints must be the scope's own; got both. Hint: scope alone.")
    scope = scope or SymbolicScope(constraints)
    text = "..." if shape_spec is None else shape_spec.strip()
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        text = text[1:-1].strip()
    node = parse_expression(f"{op}: the shape", f"({text.rstrip(',')},)" if text else "()")
    entries = list(node.elts)  # type: ignore[attr-defined]
    dots = [i for i, n in enumerate(entries) if isinstance(n, ast.Constant) and n.value is ...]
    if dots:
        if like is None or len(dots) > 1 or len(entries) - 1 > len(like):
            raise ValueError(
                f"{op}: '...' must stand once, for axes of like; got {text!r}, {like}."
            )
        more = len(like) - len(entries) + 1
        entries[dots[0] : dots[0] + 1] = [ast.Name("_")] * more
    if like is not None and len(entries) != len(like):
        raise ValueError(
            f"{op}: there must be a size for each axis of like, {tuple(like)}; got {text!r}."
        )
    sizes = []
    for i, n in enumerate(entries):
        size = None if like is None else like[i]
        if isinstance(n, ast.Name) and n.id == "_":
            if size is None:
                raise ValueError(f"{op}: '_' must stand for a size of like; got {text!r}, {like}.")
            sizes.append(size)
            continue
        sizes.append(read_size(n, scope, text))
        if size is not None and isinstance(sizes[-1], int) and sizes[-1] != size:
            raise ValueError(
                f"{op}: a number must be the size that like has there, {size}; got {sizes[-1]} in "
                f"{text!r}."
            )
    return tuple(sizes)


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Return types of arguments with symbolic shapes.

    Args:
      args: a pytree of arrays or of `ShapeDtypeStruct`s, which give the dtypes, and the sizes for
        `_` and `...`.
      shapes_specs: a text as in `symbolic_shape` for all arguments, or a pytree of texts that is a
        prefix of `args`. None keeps the shape of an argument.
      constraints: the constraints of a new scope, as in `SymbolicScope`.
      scope: a `SymbolicScope` for the names. None, the default, makes a new one.

    Returns:
      A pytree of `ShapeDtypeStruct`s with the structure of `args`. All shapes share one scope.

    >>> weft.export.symbolic_args_specs((np.ones((2, 3)), np.ones(2)), "b, ...")
    (ShapeDtypeStruct(shape=(b, 3), dtype=float64), ShapeDtypeStruct(shape=(b,), dtype=float64))
    """
    scope = scope or SymbolicScope(constraints)
    leaves, tree = flatten(args)
    specs = broadcast_prefix(shapes_specs, args, is_leaf=is_none)
    structs = []
    for x, spec in zip(leaves, specs, strict=True):
        x = typeof(x) if is_valid_value(x) and not hasattr(x, "dtype") else struct_like(x)
        shape = symbolic_shape(spec, scope=scope, like=x.shape)
        structs.append(ShapeDtypeStruct(shape, x.dtype, weak_type=getattr(x, "weak_type", False)))
    return unflatten(tree, structs)


def is_symbolic_dim(p: Any) -> bool:
    """Return True if a size is symbolic, and False if it is a number.

    Args:
      p: a size.

    Returns:
      A bool.

    >>> (b,) = weft.export.symbolic_shape("b")
    >>> weft.export.is_symbolic_dim(2 * b), weft.export.is_symbolic_dim(3)
    (True, False)
    """
    return isinstance(p, Dim)


def symbolic_dim_bounds(p: Size) -> tuple[float, float]:
    """Return the bounds of a size that follow from its constraints.

    Args:
      p: a size, symbolic or a number.

    Returns:
      A pair: the lower and the upper bound. They are ints, or infinite floats.

    >>> (b,) = weft.export.symbolic_shape("b", constraints=["b <= 8"])
    >>> weft.export.symbolic_dim_bounds(2 * b + 1)
    (3, 17)
    """
    return tuple([int(e) if abs(e) < float("inf") else e for e in find_bounds(p)])  # type: ignore
