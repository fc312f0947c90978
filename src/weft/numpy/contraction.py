"""Einstein summation: the subscripts, the order of contractions, and each contraction.

Two operands are contracted by one dot_general; for more, opt_einsum finds the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import ShapeError
from weft.mesh.sharding import NamedSharding
from weft.mesh.typed import resolve_sharding
from weft.numpy.products import contract, permute_spec
from weft.numpy.promotion import as_array, call_numpy, refuse_out
from weft.primitives import elementwise as ops
from weft.primitives import layout
from weft.primitives.dot import PrecisionLike
from weft.primitives.families import check_parameter
from weft.primitives.layout import literal, reduce_sum, squeeze, transpose
from weft.primitives.reduction import reduce_or
from weft.primitives.reshard import lay_out
from weft.run.operation import operation
from weft.util import memoize
from weft.xla.typing import DTypeLike, ShardingLike

SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TYPICAL = 128  # the size that a symbolic axis counts for where an order is looked for


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable | None = None,
    out_sharding: ShardingLike = None,
) -> Any:
    """Compute Einstein sums: sums of products of elements, with axes that are named by letters.

    Most products of arrays can be written this way: products of matrices, traces, transposes,
    batched and outer products. An axis that the result does not name is summed over. A letter that
    one operand names twice takes a diagonal. Two operands are contracted by one product of
    matrices; more than two are contracted in pairs, in the order that opt_einsum finds.

    Args:
      subscripts: a string such as "ij,jk->ik": the letters of each operand's axes, and the letters
        of the result after "->". "..." stands for any number of leading axes, which broadcast.
        Without "->", the result has the letters that occur once, in alphabetical order.
        Alternatively, the operands and lists of axis numbers from 0 to 51 in turn: `einsum(x, [0,
        1], y, [1, 2], [0, 2])`. Static under `jit`.
      operands: arrays of any numeric dtype. Axes with the same letter must have the same size, or
        size 1.
      out: must be None.
      optimize: the order of contraction of three or more operands: "auto", another name of
        opt_einsum's optimizers ("optimal", "greedy", ...), True or False, or a list of pairs of
        positions, as `einsum_path` returns it. Static under `jit`.
      precision: the precision of the products, as in `dot`; None is the default precision.
      preferred_element_type: the dtype to accumulate in, and of the result. None stands for the
        promoted dtype of the operands.
      out_sharding: the sharding of the result over explicit axes of a mesh, as in `dot`. None
        derives it from the operands.
      _dot_general: has no effect; it is accepted for programs that were written for JAX.

    Returns:
      An array with the axes that the result names.

    Raises:
      ValueError: if the subscripts do not fit the number or the ranks of the operands, or if the
        result names an axis that no operand has.
      ShapeError: if axes with the same letter differ in size.
      TypeError: if a list of axis numbers is missing or wrong.

    >>> x, y = jnp.ones((2, 3)), jnp.ones((3, 4))
    >>> jnp.einsum("ij,jk->ik", x, y).shape, jnp.einsum(x, [0, 1], y, [1, 2], [2, 0]).shape
    ((2, 4), (4, 2))
    >>> a = jnp.arange(9).reshape(3, 3)
    >>> print(jnp.einsum("ii", a), jnp.einsum("ii->i", a), jnp.einsum("ij->j", a))
    12 [0 4 8] [ 9 12 15]
    >>> jnp.einsum("...ij,...j->...i", jnp.ones((5, 2, 3)), jnp.ones(3)).shape
    (5, 2)
    """
    refuse_out("einsum", out)
    text, xs = normalize_subscripts("einsum", subscripts, operands)
    if not isinstance(optimize, str | bool):
        what = "a name, a bool or a list of pairs of places"
        optimize = check_parameter(
            "einsum", "optimize", optimize, what, lambda path: tuple(map(tuple, path))
        )
    return contract_operands(text, xs, optimize, precision, preferred_element_type, out_sharding)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | Sequence[Any] = "auto"
) -> tuple[list, Any]:
    """Find the order of the contractions of `einsum`, and describe its cost.

    Nothing is computed; only the shapes of the operands are used. The order serves as the argument
    `optimize` of `einsum`.

    Args:
      subscripts: the subscripts, as in `einsum`.
      operands: arrays, as in `einsum`.
      optimize: the optimizer of opt_einsum, as in `einsum`; "auto" finds the best order for few
        operands.

    Returns:
      A pair (path, information). path is a list of tuples: the positions of the operands to
      contract at each step, where the result of a step is put at the end. information prints as a
      table of the cost. NumPy's path begins with the string "einsum_path"; this one does not.

    Raises:
      ValueError: if the subscripts do not fit the operands.

    >>> a, b, c = jnp.ones((2, 300)), jnp.ones((300, 4)), jnp.ones((4, 5))
    >>> path, information = jnp.einsum_path("ij,jk,kl->il", a, b, c)
    >>> path
    [(0, 1), (0, 1)]
    >>> jnp.einsum("ij,jk,kl->il", a, b, c, optimize=path).shape
    (2, 5)
    """
    from opt_einsum import contract_path

    text, xs = normalize_subscripts("einsum_path", subscripts, operands)
    shapes = [as_array(x, "einsum_path").shape for x in xs]
    return call_numpy("einsum_path", contract_path, text, *shapes, shapes=True, optimize=optimize)


def normalize_subscripts(op: str, subscripts: Any, operands: Sequence[Any]) -> tuple[str, list]:
    """Return subscripts as a string, from a string or from lists of axes between the operands."""
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), list(operands)
    parts = [subscripts, *operands]
    xs, lists = parts[: len(parts) // 2 * 2 : 2], parts[1::2]
    for axes in parts[1 : len(parts) // 2 * 2 : 2] + parts[len(parts) // 2 * 2 :]:
        if not isinstance(axes, list | tuple) or not all(
            a is Ellipsis or isinstance(a, int | np.integer) and 0 <= a < len(SYMBOLS) for a in axes
        ):
            raise TypeError(
                f"{op}: axes must be a list of numbers in [0, {len(SYMBOLS)}) after each operand; "
                f"got {axes!r}. Hint: {op}('ij,jk', x, y)."
            )
    text = ",".join(map(spell_axes, lists))
    return (text + "->" + spell_axes(parts[-1]) if len(parts) % 2 else text), xs


def spell_axes(axes: Sequence[Any]) -> str:
    """Spell a list of axis numbers as letters."""
    return "".join("..." if a is Ellipsis else SYMBOLS[a] for a in axes)


@memoize
def parse_subscripts(text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, ...], str]:
    """Return the names of each operand's axes and of the result's; an ellipsis is written out."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"einsum: subscripts must name each operand's axes; got {len(terms)} terms "
            f"in {text!r} for {len(shapes)} operands."
        )
    free = [s for s in SYMBOLS if s not in text]
    hidden = 0
    for term, shape in zip(terms, shapes, strict=True):
        if "..." in term:
            hidden = max(hidden, len(shape) - len(term) + 3)
    if hidden > len(free):
        raise ValueError(f"einsum: too many axes for one letter each; got {text!r}.")
    rest = "".join(free[:hidden])
    names = []
    for term, shape in zip(terms, shapes, strict=True):
        count = len(shape) - len(term) + 3
        name = term.replace("...", rest[hidden - count :] if count > 0 else "")
        if len(name) != len(shape) or not set(name).isdisjoint(".->"):
            raise ValueError(
                f"einsum: each operand must have a letter for each axis; got {term!r} for "
                f"shape {shape}."
            )
        names.append(name)
    if arrow:
        result = right.replace("...", rest)
    else:
        seen = "".join(names)
        once = sorted(s for s in set(seen) if seen.count(s) == 1 and s not in rest)
        result = rest + "".join(once)
    check_result(result, names, text)
    return tuple(names), result


def check_result(result: str, names: Sequence[str], text: str) -> None:
    """Raise unless each axis of the result is an operand's, and is named once."""
    for s in result:
        if result.count(s) > 1 or not any(s in n for n in names):
            raise ValueError(
                f"einsum: the result must name axes of operands, each once; got {s!r} in {text!r}."
            )


def check_sizes(names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> None:
    """Raise unless axes with the same name have the same size, or size 1."""
    sizes: dict[str, int] = {}
    for name, shape in zip(names, shapes, strict=True):
        for s, n in zip(name, shape, strict=True):
            if sizes.setdefault(s, n) == 1:
                sizes[s] = n
            if n not in (1, sizes[s]):
                raise ShapeError(
                    f"einsum: axes of one name must be equal in size; got {sizes[s]} and {n} for "
                    f"{s!r} in {','.join(names)} of {', '.join(map(str, shapes))}."
                )


@operation(static=("text", "optimize", "precision", "preferred", "out_sharding"), name="einsum")
def contract_operands(
    text: str, xs: list, optimize: Any, precision: Any, preferred: Any, out_sharding: Any = None
) -> Any:
    """Compute `einsum` of arguments in one form."""
    xs = [as_array(x, "einsum") for x in xs]
    shapes = tuple([x.shape for x in xs])
    names, result = parse_subscripts(text, shapes)
    check_sizes(names, shapes)
    sharding = resolve_sharding("einsum", out_sharding, len(result), *xs)
    path = choose_order(names, result, shapes, optimize)
    terms = list(zip(names, xs, strict=True))
    for step in path:
        chosen = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        wanted = set(result).union(*[n for n, _ in terms])
        last = None if terms else sharding
        terms.append(contract_terms(chosen, result, wanted, precision, preferred, last))
    ((name, x),) = terms
    x = lay_out("einsum", transpose(x, [name.index(s) for s in result]), sharding)
    return x if preferred is None else ops.convert(x, dtypes.check_user_dtype(preferred, "einsum"))


def choose_order(
    names: tuple[str, ...], result: str, shapes: tuple[tuple[int, ...], ...], optimize: Any
) -> Sequence[tuple[int, ...]]:
    """Choose the terms to contract, step by step; the result of each step goes to the end."""
    if len(names) <= 2:
        return [tuple(range(len(names)))]
    if isinstance(optimize, tuple):
        path = [p for p in optimize if p != ("einsum_path",)]
    else:
        known = tuple([tuple([n if type(n) is int else TYPICAL for n in s]) for s in shapes])
        path = find_order(f"{','.join(names)}->{result}", known, optimize)
    out = []
    for step in path:  # a step of more than two, two at a time
        while len(step) > 2:
            out.append(tuple(step[:2]))
            step = (*[i - sum(j < i for j in step[:2]) for i in step[2:]],)
            size = len(names) - len(out)
            step = (*step, size - 1)
        out.append(tuple(step))
    return out


@memoize
def find_order(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list:
    """Return the order that opt_einsum finds. "auto" is optimal for few operands, else greedy."""
    from opt_einsum import contract_path

    try:
        return contract_path(text, *shapes, shapes=True, optimize=optimize)[0]
    except KeyError:
        raise ValueError(
            "einsum: optimize must be a bool, a list of pairs of places, or the name of an "
            f"optimizer of opt_einsum, such as 'optimal' or 'greedy'; got {optimize!r}."
        ) from None


def contract_terms(
    terms: Sequence[tuple[str, Any]],
    result: str,
    wanted: set,
    precision: Any,
    preferred: Any,
    sharding: NamedSharding | None,
) -> tuple[str, Any]:
    """Contract one or two named operands to a term with the axes that are wanted afterwards.

    `sharding` is the sharding of the result. If it is None, the operands determine the sharding.
    """
    terms = [take_diagonals(n, x) for n, x in terms]
    if len(terms) == 1:
        return sum_unwanted(*terms[0], wanted)
    (a, x), (b, y) = terms
    (a, x), (b, y) = drop_repeated(a, x, b, y), drop_repeated(b, y, a, x)
    a, x = sum_unwanted(a, x, {*wanted, *b})
    b, y = sum_unwanted(b, y, {*wanted, *a})
    both = [s for s in a if s in b]
    batch = [s for s in both if s in wanted]
    summed = [s for s in both if s not in wanted]
    only_a = [s for s in a if s not in both]
    only_b = [s for s in b if s not in both]
    name = "".join((*batch, *only_a, *only_b))
    swapped = "".join((*batch, *only_b, *only_a))
    if swapped == result != name:  # the other order needs no transpose
        a, x, b, y, name = b, y, a, x, swapped
    axes = [[n.index(s) for s in summed] for n in (a, b)]
    places = [[n.index(s) for s in batch] for n in (a, b)]
    if sharding is not None:
        sharding = permute_spec(sharding, [result.index(s) for s in name])
    out = contract("einsum", x, y, tuple(axes), tuple(places), precision, preferred, sharding)
    return name, out


def drop_repeated(a: str, x: Any, b: str, y: Any) -> tuple[str, Any]:
    """Drop the axes of x of size 1 that are longer in y, as they would only be repeated."""
    axes = [i for i, s in enumerate(a) if s in b and x.shape[i] == 1 and y.shape[b.index(s)] != 1]
    return "".join(s for i, s in enumerate(a) if i not in axes), squeeze(x, axes)


def sum_unwanted(name: str, x: Any, wanted: set) -> tuple[str, Any]:
    """Sum x over the axes that are not wanted."""
    axes = [i for i, s in enumerate(name) if s not in wanted]
    return "".join(s for s in name if s in wanted), sum_axes(x, axes)


def sum_axes(x: Any, axes: Sequence[int]) -> Any:
    """Sum x over axes; a sum of truth values is True if any is true."""
    return (reduce_or if dtypes.is_bool(x.dtype) else reduce_sum)(x, axes)


def take_diagonals(name: str, x: Any) -> tuple[str, Any]:
    """Take a diagonal of x for each name that it has twice."""
    for s in name:
        while name.count(s) > 1:
            i, j = name.index(s), name.rindex(s)
            dtype = dtypes.default_int()
            on = ops.eq(*(layout.broadcasted_iota(dtype, x.shape, k) for k in (i, j)))
            x = sum_axes(ops.select(on, x, literal(False, x.dtype)), (i,))
            name = name[:i] + name[i + 1 :]
    return name, x
