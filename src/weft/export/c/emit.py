"""Statements that compute elements: `Emitter` turns expressions of `element` rules into them.

A value of a program is an `Array` in memory, a `Scalar` in a variable of C, or `Lazy`: elements
that are computed where they are read, by the rule of the primitive that makes them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.element import (
    Apply,
    Expression,
    Integer,
    Number,
    Operator,
    Place,
    Read,
    Reduce,
    Select,
)
from weft.export.c.index import (
    COMPARISONS,
    Index,
    combine_indices,
    compare_indices,
    index_number,
    index_term,
)
from weft.export.c.kinds import KINDS, Kind, write_number
from weft.export.c.nodes import (
    Assign,
    Buffer,
    For,
    If,
    Let,
    Load,
    Pointer,
    Role,
    Statement,
    Store,
    walk_statements,
)
from weft.export.c.scalars import ScalarWriter, find_pattern
from weft.export.dims import Dim, Size
from weft.xla.hlo import Value

MAX_TERMS = 4  # of a sum that is written without a loop
MAX_INLINE = 4  # statements of a function of scalars that is written where it is called
WHOLE = re.compile(r"\(?(-?)(?:U?INT64_C\()?(\d+)u?\)*")  # an integer in the notation of C


class Array(NamedTuple):
    """Elements in memory, in row-major order."""

    buffer: Buffer
    offset: Index
    shape: tuple[Size, ...]

    @property
    def kind(self) -> Kind:
        """The kind of the elements."""
        return self.buffer.kind

    @property
    def size(self) -> Size:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def buffers(self) -> frozenset[Buffer]:
        """The buffers that elements are read from."""
        return frozenset((self.buffer,))

    @property
    def pointer(self) -> Pointer:
        """The address of the first element."""
        return Pointer(self.buffer, self.offset)


class Scalar(NamedTuple):
    """A variable of C, or a number."""

    name: str
    kind: Kind
    shape: tuple[int, ...] = ()
    buffers: frozenset[Buffer] = frozenset()


class Lazy(NamedTuple):
    """Elements that are computed where they are read.

    Attributes:
      places: the places of the axes in the expression.
      expression: the element there.
      operands: the values that it reads.
      shape: the sizes of the axes.
      kind: the kind of the elements.
      computes: whether it does more than read an element at another index.
      buffers: the buffers that elements are read from.
      depth: how many values that are computed where they are read are in a row here.
    """

    places: Sequence[Place]
    expression: Any
    operands: Sequence[Any]
    shape: tuple[int, ...]
    kind: Kind
    computes: bool
    buffers: frozenset[Buffer]
    depth: int = 1


class Function(NamedTuple):
    """A function of scalars: its parameters, statements and result."""

    name: str
    parameters: Sequence[tuple[str, str]]  # of a type, a name
    block: list[Statement]
    result: str
    ctype: str


def row_major(index: Sequence[Index], shape: Sequence[Size]) -> Index:
    """Return the flat index of an element of a row-major array."""
    total = Index()
    for k, i in enumerate(index):
        total = total.add(i, math.prod(shape[k + 1 :]))
    return total


class Emitter:
    """Writes statements into the current block, and knows the buffers and functions in use."""

    def __init__(self) -> None:
        self.count = 0
        self.block: list[Statement] = []
        # variables of the current block and of the enclosing blocks, by the expression they hold
        self.known: list[dict[Any, str]] = [{}]
        self.loads: dict[Any, str] = {}  # in the current block, since the last write to memory
        self.buffers: list[Buffer] = []
        self.functions: dict[Any, Function] = {}
        self.texts: dict[Any, tuple[str, str]] = {}  # functions that are text: a name, and the text
        self.constants: dict[Any, Buffer] = {}

    # --- names and blocks ---

    def new_name(self, letter: str = "t") -> str:
        """Return a name that no other variable has."""
        self.count += 1
        return f"{letter}{self.count}"

    @contextlib.contextmanager
    def within(self, block: list[Statement]) -> Iterator[None]:
        """Write into another block for a while."""
        around, self.block = self.block, block
        self.loads = {}
        self.known.append({})
        try:
            yield
        finally:
            self.known.pop()
            self.loads = {}
            self.block = around

    @contextlib.contextmanager
    def loop(self, count: Size | Index, reverse: bool = False) -> Iterator[Index]:
        """Write the body of a loop; gives its variable."""
        if count == 1:
            yield index_number(0)
            return
        name, body = self.new_name("i"), list[Statement]()
        count = count if isinstance(count, Index) else index_number(count)
        self.block.append(For(name, count, body, reverse))
        with self.within(body):
            yield index_term(name, 0, count.high - 1)

    @contextlib.contextmanager
    def loops(self, sizes: Sequence[Size]) -> Iterator[list[Index]]:
        """Write the body of nested loops over the places of an array; gives their variables."""
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self.loop(n)) for n in sizes]

    @contextlib.contextmanager
    def when(self, condition: bool | str) -> Iterator[None]:
        """Write statements that run only if a condition holds."""
        if condition is True:
            yield
            return
        body: list[Statement] = []
        if condition is not False:
            self.block.append(If(condition, body, []))
        with self.within(body):
            yield

    # --- variables ---

    def let(self, ctype: str, pattern: str, args: Sequence[Any] = (), mutable: bool = False) -> str:
        """Write a new variable, or return the immutable variable that already holds the value."""
        key = (ctype, pattern, tuple(args))
        is_pure = not mutable and not any(isinstance(a, Load) for a in args)
        if is_pure:
            for known in self.known:
                if key in known:
                    return known[key]
        name = self.new_name()
        self.block.append(Let(name, ctype, pattern, args, mutable))
        if is_pure:
            self.known[-1][key] = name
        return name

    def assign(self, name: str, atom: Any) -> None:
        """Assign to a mutable variable, and forget the values computed from its old value."""
        self.block.append(Assign(name, atom))
        for known in self.known:
            for key in [k for k in known if name in k[1] or name in k[2]]:
                del known[key]

    def new_buffer(self, kind: Kind, size: Size, role: Role = Role.WORK, name: str = "") -> Buffer:
        """Return new memory."""
        buffer = Buffer(name or self.new_name("b"), kind, size, role)
        self.buffers.append(buffer)
        return buffer

    def new_array(self, kind: Kind, shape: Sequence[Size]) -> Array:
        """Return a new array in the arena."""
        return Array(self.new_buffer(kind, math.prod(shape)), Index(), tuple(shape))

    def hold_constant(self, x: np.ndarray) -> Array:
        """Return an array that is part of the program; equal ones are one."""
        key = (x.dtype, x.shape, x.tobytes())
        buffer = self.constants.get(key)
        if buffer is None:
            buffer = self.new_buffer(KINDS[x.dtype], x.size, Role.CONSTANT, self.new_name("c"))
            buffer.value = x
            self.constants[key] = buffer
        return Array(buffer, Index(), x.shape)

    # --- elements ---

    def load(self, buffer: Buffer, index: Index) -> str:
        """Write a variable that holds an element of a buffer."""
        kind, at = buffer.kind, index.number
        if buffer.value is not None and at is not None and not kind.is_half:
            return write_number(buffer.value.reshape(-1)[at], kind)
        name = self.loads.get((buffer, index))
        if name is None:
            pattern = f"weft_load_{kind.name}({{0}})" if kind.is_half else "{0}"
            name = self.let(kind.computed, pattern, [Load(buffer, index)])
            self.loads[buffer, index] = name
        return name

    def store(self, buffer: Buffer, index: Index, name: str) -> None:
        """Write a value to an element of a buffer."""
        kind = buffer.kind
        if kind.is_half:
            name = self.let(kind.stored, f"weft_store_{kind.name}({{0}})", [name])
        self.write(Store(buffer, index, name))

    def write(self, statement: Statement) -> None:
        """Write a statement that changes memory."""
        self.loads = {}
        self.block.append(statement)

    def read(self, value: Any, index: Sequence[Index]) -> str:
        """Return a variable that holds an element of a value."""
        if isinstance(value, Scalar):
            return value.name
        if isinstance(value, Array):
            return self.load(value.buffer, value.offset.add(row_major(index, value.shape)))
        env = dict(zip(value.places, index, strict=True))
        return self.value(value.expression, value.operands, env, value.kind)

    def write_element(self, to: Array, index: Sequence[Index], name: str) -> None:
        """Write an element of an array."""
        self.store(to.buffer, to.offset.add(row_major(index, to.shape)), name)

    # --- expressions ---

    def index(self, e: Any, operands: Sequence[Any], env: Mapping[Place, Index]) -> Index:
        """Return an integer of an expression."""
        if isinstance(e, int | Dim):
            return index_number(e)
        if isinstance(e, Place):
            return env[e]
        if isinstance(e, Integer) and e.operator not in COMPARISONS:
            left, right = (self.index(x, operands, env) for x in (e.left, e.right))
            if e.operator is not Operator.AND:
                return combine_indices(e.operator, left, right)
        if isinstance(e, Number):
            if isinstance(e.value, Expression | Dim):
                return self.index(e.value, operands, env)
            return index_number(int(e.value))
        kind = kind_of(e, operands)
        name = self.value(e, operands, env, kind)
        return index_of(name, kind)

    def condition(self, e: Any, operands: Sequence[Any], env: Mapping[Place, Index]) -> bool | str:
        """Return a condition: True or False where it is known, else C."""
        if isinstance(e, bool):
            return e
        if isinstance(e, Integer):
            if e.operator is Operator.AND:
                left = self.condition(e.left, operands, env)
                right = self.condition(e.right, operands, env)
                if left is False or right is False:
                    return False
                if left is True or right is True:
                    return right if left is True else left
                return f"{left} && {right}"
            if e.operator in COMPARISONS:
                pair = (self.index(x, operands, env) for x in (e.left, e.right))
                return compare_indices(e.operator, *pair)
            return f"({self.index(e, operands, env)}) != 0"
        return self.value(e, operands, env, KINDS[np.dtype(bool)])

    def value(self, e: Any, operands: Sequence[Any], env: Mapping[Place, Index], kind: Kind) -> str:
        """Return a variable that holds the value of an expression, of a kind."""
        match e:
            case Read():
                at = [self.index(i, operands, env) for i in e.index]
                return self.read(operands[e.operand], at)
            case Number():
                if not isinstance(e.value, Expression | Dim):
                    return write_number(e.value, kind)
                at = self.index(e.value, operands, env)
                if at.number is not None:
                    return write_number(at.number, kind)
                if kind.letter == "c":
                    part = "float" if kind.name == "c64" else "double"
                    return self.let(kind.computed, f"weft_{kind.name}(({part})({at}), 0)")
                text = f"({kind.computed})({at})"
                return self.let(
                    kind.computed, f"weft_round_{kind.name}({text})" if kind.is_half else text
                )
            case Apply():
                kinds = [kind_of(x, operands) for x in e.args]
                args = [self.value(x, operands, env, k) for x, k in zip(e.args, kinds, strict=True)]
                return self.apply(e.primitive, kinds, args, e.params)
            case Select():
                return self.select(e, operands, env, kind)
            case Reduce():
                return self.reduce(e, operands, env, kind)
        found = self.condition(e, operands, env)
        if isinstance(found, bool):
            return write_number(found, kind)
        return self.let(kind.computed, found)

    def select(self, e: Any, operands: Any, env: Any, kind: Kind) -> str:
        """Return a variable that holds one of two values; only the selected value is computed."""
        test = self.condition(e.condition, operands, env)
        if isinstance(test, bool):
            return self.value(e.yes if test else e.no, operands, env, kind)
        names, blocks = [], []
        for part in (e.yes, e.no):
            block: list[Statement] = []
            with self.within(block):
                names.append(self.value(part, operands, env, kind))
            blocks.append(block)
        if not any(blocks):
            return self.let(kind.computed, f"{test} ? {{0}} : {{1}}", names)
        zero = write_number(0, kind)
        out = self.let(kind.computed, zero, mutable=True)
        for block, name in zip(blocks, names, strict=True):
            block.append(Assign(out, name))
        self.block.append(If(test, *blocks))
        return out

    def reduce(self, e: Any, operands: Any, env: Any, kind: Kind) -> str:
        """Return a variable that holds a reduction."""
        start = self.value(e.start, operands, env, kind)
        wide = KINDS[np.dtype(np.float32)] if kind.is_half else kind
        few = self.sum_few(e, operands, env, kind, wide)
        if few is not None:
            return (
                self.let(kind.computed, f"weft_round_{kind.name}({{0}})", [few])
                if wide is not kind
                else few
            )
        total = self.let(kind.computed, "{0}", [start], mutable=True)
        made = self.block[-1]
        assert isinstance(made, Let)
        made.is_sum = e.combine is None
        with contextlib.ExitStack() as stack:
            inner = dict(env)
            for place, size in zip(e.places, e.sizes, strict=True):
                count = self.index(size, operands, inner)
                inner[place] = stack.enter_context(
                    self.loop(count if count.size is None else count.size)
                )
            x = self.value(e.body, operands, inner, kind)
            if e.combine is None:
                out = self.add(wide, total, x)
            else:
                out = self.apply(e.combine, [kind, kind], [total, x], {})
            self.assign(total, out)
        if kind.is_half:
            return self.let(kind.computed, f"weft_round_{kind.name}({{0}})", [total])
        return total

    def sum_few(self, e: Any, operands: Any, env: Any, kind: Kind, wide: Kind) -> str | None:
        """Return a variable that holds a sum of a few terms, written without a loop; else None."""
        zero = isinstance(e.start, Number) and not isinstance(e.start.value, Expression | Dim)
        if e.combine is not None or not zero or e.start.value != 0:
            return None
        sizes = [self.index(n, operands, env).number for n in e.sizes if isinstance(n, int)]
        if len(sizes) < len(e.sizes) or not 1 <= math.prod(sizes) <= MAX_TERMS:
            return None
        total = ""
        for place in itertools.product(*map(range, sizes)):
            at = zip(e.places, map(index_number, place), strict=True)
            x = self.value(e.body, operands, {**env, **dict(at)}, kind)
            total = self.add(wide, total, x) if total else x
        return total

    def add(self, kind: Kind, x: str, y: str) -> str:
        """Write a sum."""
        return self.let(kind.computed, find_pattern("add", [kind, kind], kind), [x, y])

    def convert(self, name: str, kind: Kind, to: Kind) -> str:
        """Write a conversion."""
        if kind == to:
            return name
        return self.let(to.computed, find_pattern("convert", [kind], to), [name])

    # --- functions of scalars ---

    def apply(self, prim: Any, kinds: Sequence[Kind], args: Sequence[str], params: Any) -> str:
        """Return a variable that holds the result of a primitive on scalars."""
        function = self.find_function(prim, kinds, params)
        simple = all(isinstance(s, Let) and not s.mutable for s in function.block)
        if simple and len(function.block) <= MAX_INLINE:
            names: dict[Any, str] = dict(
                zip([name for _, name in function.parameters], args, strict=True)
            )
            for step in function.block:
                assert isinstance(step, Let)
                given = [names.get(a, a) for a in step.args]
                names[step.name] = self.let(step.ctype, step.pattern, given)
            return names.get(function.result, function.result)
        slots = ", ".join(f"{{{k}}}" for k in range(len(args)))
        return self.let(function.ctype, f"{function.name}({slots})", args)

    def find_function(self, prim: Any, kinds: Sequence[Kind], params: Any) -> Function:
        """Return the function of scalars that a primitive is, which is written once."""
        key = (prim, *kinds, *params.items())
        found = self.functions.get(key)
        if found is None:
            avals = [ShapedArray((), k.dtype) for k in kinds]
            values = [Value(f"x{n}", a) for n, a in enumerate(avals)]
            block: list[Statement] = []
            writer = ScalarWriter(block, self.new_name)
            (out,) = prim.lower(writer, *values, **params)
            parameters = [(k.computed, v.name) for k, v in zip(kinds, values, strict=True)]
            safe = "".join(c if c.isalnum() else "_" for c in prim.name)
            name = f"apply_{safe}_{kinds[0].name}" if kinds else f"apply_{safe}"
            taken = {f.name for f in self.functions.values()}
            while name in taken:
                name += "_"
            ctype = KINDS[out.aval.dtype].computed
            found = self.functions[key] = Function(name, parameters, block, out.name, ctype)
        return found

    def find_text(self, key: Any, name: str, write: Callable[[str], str]) -> str:
        """Return the name of a function whose text is written once."""
        if key not in self.texts:
            taken = {n for n, _ in self.texts.values()}
            while name in taken:
                name += "_"
            self.texts[key] = name, write(name)
        return self.texts[key][0]


def index_of(name: str, kind: Kind) -> Index:
    """Return a variable, or a number in C, of an integer kind as an Index."""
    number = WHOLE.fullmatch(name)
    if number:
        return index_number(int(number[1] + number[2]))
    if kind.letter == "b":
        return index_term(name, 0, 1)
    bound = 1 << kind.bits
    low = 0 if kind.letter == "u" else -bound // 2
    return index_term(f"(ptrdiff_t){name}", low, low + bound - 1)


def kind_of(e: Any, operands: Sequence[Any]) -> Kind:
    """Return the kind of the value of an expression."""
    match e:
        case Read():
            return operands[e.operand].kind
        case Number():
            return KINDS[np.dtype(e.dtype)]
        case Apply():
            kinds = [kind_of(x, operands) for x in e.args]
            avals = tuple([ShapedArray((), k.dtype) for k in kinds])
            return KINDS[e.primitive.type_of(avals, dict(e.params))[0].dtype]
        case Select():
            return kind_of(e.yes, operands)
        case Reduce():
            return kind_of(e.start, operands)
    return KINDS[np.dtype(bool)]


def reads_elsewhere(block: Sequence[Statement], buffer: Buffer, index: Index) -> bool:
    """Return True if statements read elements of a buffer other than the one at an index."""
    for statement in walk_statements(block):
        args = statement.args if isinstance(statement, Let) else ()
        for a in args:
            if isinstance(a, Load) and a.buffer is buffer and a.index != index:
                return True
    return False
