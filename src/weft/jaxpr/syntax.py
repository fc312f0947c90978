"""The text of a jaxpr as a tree: the grammar of docs/jaxpr.md, by recursive descent.

Names are not looked up here, and types not compared: reader.py does that. Every node says where in
the text it begins, so that any later error can point there.
"""

from __future__ import annotations

import ast
import bisect
import re
from typing import Any, NamedTuple

from weft.errors import ParseError

# Parameters that are strings, which are printed without quotation marks.
_STRINGS = frozenset(("axis_name", "fmt", "impl", "name", "vmap_method"))

_SPACE = re.compile(r"(?:\s|(?:(?<=\s)|^)#[^\n]*)*", re.MULTILINE)
_COLOR = re.compile(r"\x1b\[[\d;]*m")
# `8@x`, `8@(x,y)`: a size, and the axes of a mesh that it is split over
_AXIS = r"\d+(?:@(?:\w+|\([\w,]+\)))?"
_SIZES = rf"(?:{_AXIS}(?:,{_AXIS})*,?)?"
_KINDS = r"(?:\{[URV]:[^}\s]*(?:, [URV]:[^}\s]*)*\})?"
_ARRAY = rf"[a-z]\w*(?:<\w+>)?\[{_SIZES}\]{_KINDS}"
_TYPE = rf"~?(?:Ref\{{{_ARRAY}\}}|{_ARRAY})"
_TYPE_PARTS = re.compile(rf"(~?)(Ref\{{)?([a-z]\w*(?:<\w+>)?)\[({_SIZES})\]({_KINDS})(?(2)\}})")
_SIZE = re.compile(r"(\d+)(?:@(?:(\w+)|\(([\w,]+)\)))?")
_KIND = re.compile(r"([URV]):(?:\(([^)]*)\)|([^,}]+))")
_BINDER = re.compile(rf"(\w+|\*)(?::(?={_TYPE}))?")
_NAME = r"(?!(?:inf|nan|True|False)\b)[A-Za-z_]\w*"
_TYPED_RUN = re.compile(rf"(?:{_NAME}:{_TYPE}\s+)+")
_EQUALS = re.compile(r"=\s")
_OUTS = re.compile(rf"(?:(?:{_NAME}|\*)[ ]+)+=\s")
# A read or a write of a reference: `a:f32[] <- r[i]`, `r[i] <- a`, `r[i] += a`, and a swap.
_PLACE = rf"{_NAME}(?:\[[^\]=]*\])+"
_ACCESS = re.compile(rf"(?:(?:{_NAME}|\*)(?::{_TYPE})?(?:,\s+{_PLACE})?|{_PLACE})\s+(?:<-|\+=)\s")
_PRIMITIVE = re.compile(r"[A-Za-z_][\w.\-]*(?:@\w+)?")
_KEY = re.compile(r"([A-Za-z_]\w*)=")
_FIRST_KEY = re.compile(r"\s*[A-Za-z_]\w*=")
_BRACKET = re.compile(r"[\[\]]")
_FOLLOWS = re.compile(r"\s*\]|\s+[A-Za-z_]\w*=|\s*\n")
_DIGITS = r"(?:inf|nan|\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
_NUMBER = re.compile(
    rf"\([+-]?{_DIGITS}[+-]{_DIGITS}j\)|[+-]?{_DIGITS}j(?!\w)|[+-]?{_DIGITS}(?![\w.])"
)
_STRING = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_DOTTED = re.compile(r"[A-Za-z_][\w.]*")
_HOLE = re.compile(r"<(\w+) ([^<>\n]*(?:<[^<>\n]*>[^<>\n]*)*)>")
_CONSTANTS = {"True": True, "False": False, "None": None}


class Word(NamedTuple):
    """A bare name among parameters: a dtype, a program defined before, an enumeration's member."""

    text: str
    pos: int


class FreeText(NamedTuple):
    """A parameter that is not an expression: all up to the next parameter."""

    text: str
    pos: int


class HoleText(NamedTuple):
    """`<kind name>`: what the text cannot hold."""

    kind: str
    name: str
    pos: int


class Call(NamedTuple):
    """`Name(a, key=b)`: a value by what makes it."""

    name: str
    args: tuple
    kwargs: dict[Any, Any]
    pos: int


class Type(NamedTuple):
    """`f32[3,4]`; with a tilde in front, a weak one."""

    dtype: str
    shape: tuple[int, ...]
    entries: tuple[tuple[str, ...], ...]  # the axes of a mesh that each axis is split over
    kinds: dict[str, tuple[str, ...]]  # those along which it is unreduced, reduced, or varies
    weak: bool
    reference: bool
    pos: int


class Binder(NamedTuple):
    """A variable where it is defined. The type is None in the classic notation."""

    name: str
    type: Type | None
    pos: int


class Atom(NamedTuple):
    """An operand: the name of a variable, or a number, which may have a type."""

    value: Any
    type: Type | None
    pos: int


class Equation(NamedTuple):
    """`outs = primitive[params] args`; of each parameter, the value and its place."""

    outs: list[Binder]
    primitive: str
    params: dict[str, tuple[Any, int]]
    args: list[Atom]
    pos: int


class Window(NamedTuple):
    """An entry of an index, `i:i+5:2`: this many elements from an atom on, `step` apart."""

    start: Atom
    count: int
    step: int


class Index(NamedTuple):
    """The part of a reference that is read or written: `r[1:3][0]` has two steps, of entries.

    Slices are triples, arrays are atoms or windows.
    """

    steps: list[tuple]

    @property
    def arrays(self) -> list[Atom]:
        """The arrays among the entries."""
        found = [e.start if type(e) is Window else e for step in self.steps for e in step]
        return [e for e in found if type(e) is Atom]


class Program(NamedTuple):
    """`{ lambda consts ; params. let eqns in (outs,) }`."""

    consts: list[Binder]
    params: list[Binder]
    eqns: list[Equation]
    outs: list[Atom]
    pos: int


class Document(NamedTuple):
    """A program, and those that it holds in several places, by name."""

    shared: dict[str, Program]
    program: Program


class _NotAnExpression(Exception):
    """A parameter is not an expression, and so is read as free text."""


class Text:
    """A text and a position in it."""

    def __init__(self, text: str):
        self.text = _COLOR.sub("", text)
        self.pos = 0
        self.lines = [0, *[found.end() for found in re.finditer("\n", self.text)]]
        self.closing: dict[int, bool] = {}  # by where a line begins: whether it ends parameters
        self.run_end = 0  # up to here there are typed names, and no "=" after them

    def error(self, must: str, pos: int | None = None, hint: str = "") -> ParseError:
        """The error at a position, by default here."""
        return ParseError.at(must, self.text, self.pos if pos is None else pos, hint)

    # --- pieces ---

    def skip(self) -> int:
        """Pass over white space and comments; the position after it."""
        self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]
        return self.pos

    def take(self, pattern: re.Pattern) -> re.Match | None:
        found = pattern.match(self.text, self.pos)
        if found:
            self.pos = found.end()
        return found

    def accept(self, token: str) -> bool:
        """Return True if the token is next, which is then passed over."""
        self.skip()
        found = self.text.startswith(token, self.pos)
        if found and token[-1].isalnum():
            rest = self.text[self.pos + len(token) : self.pos + len(token) + 1]
            found = not (rest.isalnum() or rest == "_")
        if found:
            self.pos += len(token)
        return found

    def expect(self, token: str, where: str) -> None:
        if not self.accept(token):
            raise self.error(f"{where} must have {token!r} here")

    def line_start(self, pos: int) -> int:
        """Return where the line of a position begins."""
        return self.lines[bisect.bisect_right(self.lines, pos) - 1]

    def column(self, pos: int) -> int:
        return pos - self.line_start(pos)

    def has_typed_outs(self, pos: int) -> bool:
        """Return True where names with types and an equals sign are next.

        Each run of names is read once, although every operand asks.
        """
        if pos < self.run_end:
            return False
        found = _TYPED_RUN.match(self.text, pos)
        if found is None or _EQUALS.match(self.text, found.end()):
            return found is not None
        self.run_end = found.end()
        return False

    # --- programs ---

    def document(self) -> Document:
        """All of the text."""
        shared = {}
        while self.accept("let"):
            self.skip()
            name, pos = self.take(_DOTTED), self.pos
            if not name or name[0] in shared:
                raise self.error("a program defined with let must have a name of its own", pos)
            self.expect("=", "let")
            shared[name[0]] = self.program()
            self.expect("in", "let")
        program = self.program()
        if self.skip() != len(self.text):
            raise self.error("nothing must follow the program")
        return Document(shared, program)

    def program(self) -> Program:
        pos = self.skip()
        self.expect("{", "a program")
        self.expect("lambda", "a program")
        first, params, consts = self.binders(), [], []
        if self.accept(";"):
            consts, params = first, self.binders()
        else:
            params = first  # as before 2020-02
        self.expect(".", "a program, after its parameters,")
        self.expect("let", "a program, after its parameters,")
        eqns = []
        while not self.accept("in"):
            if self.skip() >= len(self.text) or self.text[self.pos] == "}":
                raise self.error("a program must have 'in' and its results")
            eqns.append(self.equation())
        outs = self.results()
        if self.accept(":"):
            self.effects()
        self.expect("}", "a program, after its results,")
        return Program(consts, params, eqns, outs, pos)

    def binders(self) -> list[Binder]:
        found = []
        while self.skip() < len(self.text) and self.text[self.pos] not in ";.":
            found.append(self.binder())
        return found

    def binder(self) -> Binder:
        pos = self.skip()
        name = self.take(_BINDER)
        if not name or name[0][0].isdigit():
            raise self.error("a variable must have a name", pos)
        typed = name[0].endswith(":")
        if not typed and self.text.startswith(":", self.pos):
            self.pos += 1
            raise self.error(
                "a variable must have a type of known sizes, such as f32[3], after the colon"
            )
        return Binder(name[1], self.type() if typed else None, pos)

    def type(self) -> Type | None:
        """The type that is next, if one is."""
        pos = self.pos
        found = self.take(_TYPE_PARTS)
        if not found:
            return None
        weak, ref, dtype, shape, kinds = found.groups()
        listed = _SIZE.findall(shape)
        sizes = tuple(int(size) for size, *_ in listed)
        entries = tuple(
            (one,) if one else tuple(more.split(",")) if more else () for _, one, more in listed
        )
        of_kind = {kind: tuple((a or b).split(",")) for kind, a, b in _KIND.findall(kinds)}
        return Type(dtype, sizes, entries, of_kind, bool(weak), bool(ref), pos)

    def results(self) -> list[Atom]:
        closing = ")" if self.accept("(") else "]" if self.accept("[") else ""
        outs: list[Atom] = []
        while self.skip() < len(self.text) and self.text[self.pos] not in f"}}:{closing}":
            outs.append(self.atom())
            self.accept(",")
        if closing:
            self.expect(closing, "the results")
        return outs

    def effects(self) -> None:
        """`{ Debug }`, which follow from the equations."""
        self.expect("{", "effects")
        while not self.accept("}"):
            if not self.take(_DOTTED) and not self.accept(","):
                raise self.error("effects must be names")
            self.skip()

    def equation(self) -> Equation:
        pos = self.skip()
        if _ACCESS.match(self.text, pos):
            return self.access(pos)
        outs: list[Binder] = []
        if self.has_typed_outs(pos) or _OUTS.match(self.text, pos):
            while not self.accept("="):
                outs.append(self.binder())
            self.skip()
        start = self.pos
        name = self.take(_PRIMITIVE)
        if not name:
            raise self.error("an equation must have the name of a primitive")
        params = self.params() if self.text.startswith("[", self.pos) else {}
        args = []
        while not self.ends_equation(pos):
            args.append(self.atom())
        self.accept(";")
        return Equation(outs, name[0], params, args, start)

    def access(self, pos: int) -> Equation:
        """A read or a write of a reference, as the equation of get, swap or addupdate."""
        outs: list[Binder] = []
        if not re.compile(_PLACE).match(self.text, pos):
            outs.append(self.binder())
        swaps = bool(outs) and self.accept(",")
        ref, index = self.place() if swaps or not outs else (None, None)
        adds = self.accept("+=")
        if not adds:
            self.expect("<-", "an access of a reference")
        if ref is None or swaps:
            ref, index = self.place()
        values = []
        if ref is not None and (swaps or not outs):
            self.accept(",")
            values.append(self.atom())
        self.accept(";")
        name = "addupdate" if adds else "swap" if values else "get"
        if name == "swap" and not outs:
            outs = [Binder("_", None, pos)]
        operands = [ref, *values, *Index(index).arrays]
        return Equation(outs, name, {"index": (Index(index), pos)}, operands, pos)

    def place(self) -> tuple[Atom, list[tuple]]:
        """`r[0,a,1:3,...]`: a reference, and the entries of an index in it, and of one in that."""
        ref = self.atom()
        self.expect("[", "a reference")
        steps = [self.entries()]
        while self.accept("["):
            steps.append(self.entries())
        return ref, steps

    def entries(self) -> tuple:
        """The entries of an index, up to the bracket that closes it."""
        entries: list[Any] = []
        while not self.accept("]"):
            self.skip()
            part = self.take(re.compile(r"(-?\d*):(-?\d*)(?::(-?\d+))?"))
            if part:
                entries.append(tuple(int(b) if b else None for b in part.groups()))
            elif self.accept("..."):
                entries.append(Ellipsis)
            else:
                atom = self.atom()
                window = self.take(re.compile(r":\w+\+(\d+)(?::(\d+))?"))
                if window:
                    step = int(window[2] or 1)
                    entries.append(Window(atom, -(-int(window[1]) // step), step))
                else:
                    entries.append(atom if type(atom.value) is Word else atom.value)
            self.accept(",")
        return tuple(entries)

    def ends_equation(self, begin: int) -> bool:
        """Return True if no further operand of the equation that begins at `begin` follows."""
        before, pos = self.pos, self.skip()
        if pos >= len(self.text) or self.text[pos] in ";}":
            return True
        if re.compile(r"in\b").match(self.text, pos):
            return True
        if self.line_start(pos) > before and self.column(pos) <= self.column(begin):
            return True
        if self.has_typed_outs(pos):
            return True
        name = _PRIMITIVE.match(self.text, pos)
        return bool(name and self.text.startswith("[", name.end()))

    def atom(self) -> Atom:
        pos = self.skip()
        word = self.take(re.compile(r"(?!(?:inf|nan)\b)[A-Za-z_]\w*"))
        if word:
            value: Any = _CONSTANTS.get(word[0], Word(word[0], pos))
        elif self.text.startswith("*", pos):
            self.pos, value = pos + 1, Word("*", pos)
        else:
            number = self.take(_NUMBER)
            if not number:
                raise self.error("an operand must be a variable or a number")
            value = read_number(number[0])
        kind = None
        if self.text.startswith(":", self.pos) and re.compile(_TYPE).match(self.text, self.pos + 1):
            self.pos += 1
            kind = self.type()
        return Atom(value, kind, pos)

    # --- parameters ---

    def params(self) -> dict[str, tuple[Any, int]]:
        """`[key=value ...]`, in the order of the text."""
        self.pos += 1
        found: dict[str, tuple[Any, int]] = {}
        while not self.accept("]"):
            key = self.take(_KEY)
            if not key:
                raise self.error("a parameter must be written key=value")
            if key[1] in found:
                raise self.error(
                    f"a parameter must be given once; got {key[1]!r} again", key.start()
                )
            pos = self.pos
            found[key[1]] = self.parameter(key[1]), pos
        return found

    def parameter(self, key: str) -> Any:
        """Read an expression, or free text if no expression follows."""
        start = self.pos
        plain = key in _STRINGS and not self.text.startswith(("'", '"', "None"), start)
        if not plain or (key == "axis_name" and self.text.startswith("(", start)):
            try:
                value = self.value()
                if _FOLLOWS.match(self.text, self.pos):
                    return value
            except _NotAnExpression:
                pass
        self.pos = self.end_of_free_text(start)
        return FreeText(self.text[start : self.pos], start)

    def end_of_free_text(self, start: int) -> int:
        """Find the end of a parameter that is not an expression: of its line, or the next one."""
        opening = self.line_start(start)
        line = self.text.find("\n", start)
        line = len(self.text) if line == -1 else line
        if _FIRST_KEY.match(self.text, opening, start) and not self.closes(opening, line):
            return line  # on a line of its own
        depth = 0
        for i in range(start, line):
            c = self.text[i]
            if depth <= 0 and (c == "]" or (c == " " and _KEY.match(self.text, i + 1))):
                return start + len(self.text[start:i].rstrip())
            depth += (c in "([{") - (c in ")]}")
        if self.closes(start, line):
            raise self.error("a parameter must end with its line, or before ']'", start)
        return line

    def closes(self, start: int, end: int) -> bool:
        """Return True if the list of parameters ends on a line: with a bracket not opened on it."""
        if start not in self.closing:
            depth, least = 0, 0
            for bracket in _BRACKET.findall(self.text, start, end):
                depth += 1 if bracket == "[" else -1
                least = min(least, depth)
            self.closing[start] = least < 0
        return self.closing[start]

    def value(self) -> Any:
        """An expression."""
        pos = self.skip()
        c = self.text[pos : pos + 1]
        if c == "{" and re.compile(r"\{\s*lambda\b").match(self.text, pos):
            return self.program()
        if c == "<":
            hole = self.take(_HOLE)
            if hole:
                return HoleText(hole[1], hole[2], pos)
        if c in "'\"":
            string = self.take(_STRING)
            if string:
                return ast.literal_eval(string[0])
        number = self.take(_NUMBER)
        if number:
            value = read_number(number[0])
            if not self.text.startswith(":", self.pos):
                return value
            self.pos += 1
            return Atom(value, self.type(), pos)
        if c and c in "([{":
            return self.items({"(": ")", "[": "]", "{": "}"}[c])
        kind = self.type()
        if kind:
            return kind
        return self.name(pos)

    def name(self, pos: int) -> Any:
        word = self.take(_DOTTED)
        if not word:
            raise _NotAnExpression
        if word[0] in _CONSTANTS:
            return _CONSTANTS[word[0]]
        if not self.text.startswith("(", self.pos):
            return Word(word[0], pos)
        self.pos += 1
        args, kwargs = [], {}
        while not self.accept(")"):
            if key := self.take(_KEY):
                kwargs[key[1]] = self.value()
            else:
                x = self.value()
                if isinstance(x, str) and self.accept(":"):  # an axis of a mesh, and its size
                    kwargs[x] = self.value()
                else:
                    args.append(x)
            self.separate(")")
        return Call(word[0], tuple(args), kwargs, pos)

    def items(self, closing: str) -> Any:
        """A tuple, also where a list is printed; in braces, a set."""
        self.pos += 1
        found = []
        while not self.accept(closing):
            found.append(self.value())
            self.separate(closing)
        return frozenset(found) if closing == "}" else tuple(found)

    def separate(self, closing: str) -> None:
        """Items end with a comma, or with white space after a program."""
        before = self.pos
        if self.accept(",") or self.skip() > before or self.text.startswith(closing, self.pos):
            return
        raise _NotAnExpression


def read_number(text: str) -> int | float | complex:
    """The number that is written so."""
    if text.endswith(("j", "j)")):
        return complex(text)
    return int(text) if text.lstrip("+-").isdigit() else float(text)
