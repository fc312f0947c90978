"""Detection of keys that are used twice: which elements of arrays were used as keys, and where.

While `debug_key_reuse` is on, each eager operation and compiled program is walked before it runs.
`Primitive.elements` gives the effect of a primitive on keys, and `bodies` how it runs
the programs that it holds. Keys of a dtype are tracked as their words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray, words_of
from weft.core.facts import Elements, Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, bodies_of, held_jaxprs, memo_jaxpr
from weft.core.primitive import Body, split_inputs
from weft.core.source import source_line, source_text, user_code
from weft.core.trace import current, eval_context, get_traceback
from weft.errors import KeyReuseError
from weft.options import config
from weft.passes.physical import has_extended, physical_jaxpr
from weft.util import Logger

INTEGERS = (int, np.integer)
logger = Logger("weft.trace")
_told: set[str] = set()  # messages that were logged

WORD = np.dtype(np.uint32)  # the dtype of the words of keys
BITS = 40  # bits of a code for the element; the upper bits are for the root
TURNS = 3  # iterations of a loop that are walked: each finds the keys that the last one used


class Use(NamedTuple):
    """The use of a key: an operation, and the places that lead to it, outermost first."""

    op: str
    places: tuple

    @property
    def codes(self) -> tuple:
        """The instructions of the user's on the way to it, innermost first."""
        return (self.op, *filter(None, map(user_code, reversed(self.places))))

    def texts(self) -> list[str]:
        """The user's expressions on the way to it, innermost first, without repeats."""
        found: list[str] = []
        for place in reversed(self.places):
            line = source_line(place)
            text = f"`{source_text(place) or self.op}` at {line}"
            if line and text not in found:
                found.append(text)
        return found or [self.op]


class Root:
    """Elements made in one place; `uses[when[i] - 1]` is what used element i as a key's."""

    __slots__ = ("uses", "when")

    def __init__(self, size: int):
        self.when = np.zeros(size, np.int32)
        self.uses: list[Use] = []


class ElementOrigins(NamedTuple):
    """The origin of each element of an array: as a code, number of the root and place in it.

    -1 is for what comes from no root. `repeated`: broadcast, so that elements may be equal.
    """

    roots: tuple[Root, ...]
    codes: np.ndarray
    repeated: bool = False

    def used(self) -> np.ndarray:
        """For each element the number, from 1, of its use in `uses`; 0 for none."""
        out = np.zeros(self.codes.shape, np.int32)
        start = 0
        for n, root in enumerate(self.roots):
            mine = self.codes >> BITS == n
            when = root.when[self.codes[mine] & (1 << BITS) - 1]
            out[mine] = np.where(when > 0, when + start, 0)
            start += len(root.uses)
        return out

    def uses(self) -> list[Use]:
        """The uses of all its roots."""
        return [use for root in self.roots for use in root.uses]


def new_elements(shape: Sequence[int]) -> ElementOrigins:
    """The elements of an array that nothing has used yet."""
    size = int(np.prod(shape))
    return ElementOrigins((Root(size),), np.arange(size, dtype=np.int64).reshape(shape))


def mark_elements(shape: Sequence[int], when: np.ndarray, uses: list[Use]) -> ElementOrigins:
    """Return the elements of a new array, with the given uses."""
    made = new_elements(shape)
    made.roots[0].when[:] = np.broadcast_to(when, shape).ravel()
    made.roots[0].uses = list(uses)
    return made


class Origin:
    """The elements of a value, found when they are first needed. `new`: they are unused.

    For an index, `value` is its known value.
    """

    __slots__ = ("made", "make", "new", "value")

    def __init__(self, make: Callable[[], ElementOrigins], new: bool = False, value: Any = None):
        self.make, self.new, self.value = make, new, value
        self.made: ElementOrigins | None = None

    def get(self) -> ElementOrigins:
        """The elements."""
        if self.made is None:
            self.made = self.make()
            self.new = False
        return self.made


NOWHERE = ElementOrigins((), np.full((), -1, np.int64))


def new_origin(aval: ShapedArray) -> Origin:
    """Return the origin of a new value; a cheap constant if the value cannot be a key."""
    make = (lambda: new_elements(aval.shape)) if aval.dtype == WORD else (lambda: NOWHERE)
    return Origin(make, new=True)


class Walk:
    """One walk through a program, over the origins of its values. `log` has its marks."""

    def __init__(self, places: Sequence[Any], inner: bool = True):
        self.places = tuple(places)
        self.inner = inner  # True if the lines of equations are the user's
        self.log: list[tuple[Root, np.ndarray]] = []
        self.again = False  # inside of a program that repeats an earlier computation

    def run(self, jaxpr: Jaxpr, args: Sequence[Origin]) -> list[Origin]:
        """Use up the keys that a closed jaxpr uses; the origins of its results."""
        if not concerns_keys(jaxpr):
            return list(map(new_origin, jaxpr.out_avals))
        env = dict(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Origin:
            return origin_of(atom.read()) if type(atom) is Literal else env[atom]

        for eqn in jaxpr.eqns:
            env.update(zip(eqn.outvars, self.step(eqn, [*map(read, eqn.invars)]), strict=True))
        return [*map(read, jaxpr.outvars)]

    def step(self, eqn: Eqn, args: list[Origin]) -> list[Origin]:
        """Use up the keys that an equation uses; the origins of its results."""
        prim = eqn.primitive
        here = (*self.places, eqn.source) if self.inner else self.places
        if prim.elements is Elements.RANDOM:
            self.consume(args[0].get(), Use(prim.name, here))
        if not prim.memoize_type:
            outer, self.places = self.places, here
            try:
                found = self.inside(eqn, args)
            finally:
                self.places = outer
            if found is not None:
                return found
        elif prim.elements is Elements.MOVED and any(v.aval.dtype == WORD for v in eqn.outvars):
            found = move_origins(eqn, args)
            if found is not None:
                return found
        return [new_origin(v.aval) for v in eqn.outvars]

    def inside(self, eqn: Eqn, args: list[Origin]) -> list[Origin] | None:
        """Walk through the programs of an equation; None if it does not declare how they run."""
        bodies = bodies_of(eqn)
        if not bodies:
            return None
        body = bodies[0]
        given = [args[i] for i in body.operands]
        if body.runs is Runs.ONCE:
            return self.run(body.jaxpr, given)
        if body.runs is Runs.AGAIN:
            return self.repeated(body.jaxpr, given)
        if body.runs is Runs.BRANCH:
            return self.either([b.jaxpr for b in bodies], given)
        if body.runs is Runs.LOOP:
            return self.loop(bodies, args)
        if len(bodies) == 1 and body.jaxpr is not None and len(body.jaxpr.invars) == len(args):
            self.parts(body.jaxpr, args)
        return None

    def parts(self, jaxpr: Jaxpr, args: Sequence[Origin]) -> None:
        """Walk through what runs on parts of its operands: who uses some of one uses it all."""
        parts = list(map(new_origin, jaxpr.in_avals))
        self.run(jaxpr, parts)
        for x, part in zip(args, parts, strict=True):
            used = [] if part.new else part.get().uses()
            if used:
                self.consume(x.get(), used[0])

    def consume(self, elements: ElementOrigins, use: Use) -> None:
        """Mark elements as used, which must not be used yet; the last axis is of words of a key."""
        keys = elements.codes.reshape(-1, elements.codes.shape[-1])
        if not elements.repeated and len(keys) > 1:
            known = keys[(keys >= 0).all(1)]
            if len(np.unique(known, axis=0)) < len(known):
                raise reuse_error(use, use, "twice among the keys of")
        for n, root in enumerate(elements.roots):
            at = elements.codes[elements.codes >> BITS == n] & (1 << BITS) - 1
            when = root.when[at]
            if when.any():
                first = root.uses[when[when > 0][0] - 1]
                if not (self.again and first.codes[:2] == use.codes[:2]):
                    raise reuse_error(first, use)
                at = at[when == 0]
            root.uses.append(use)
            root.when[at] = len(root.uses)
            self.log.append((root, at))

    def undo(self, count: int = 0) -> list[tuple[Root, np.ndarray, np.ndarray]]:
        """Take back all marks except for the first `count`; return their old values."""
        gone = [(root, at, root.when[at]) for root, at in self.log[count:]]
        for root, at in self.log[count:]:
            root.when[at] = 0
        del self.log[count:]
        return gone

    # -- for programs that primitives hold -------------------------------------------------------

    def repeated(self, jaxpr: Jaxpr, args: Sequence[Origin]) -> list[Origin]:
        """Walk through a repeated computation, which does not count as a second use of keys."""
        before, self.again = self.again, True
        try:
            return self.run(jaxpr, args)
        finally:
            self.again = before

    def either(self, jaxprs: Sequence[Jaxpr], args: Sequence[Origin]) -> list[Origin]:
        """Walk through programs, one of which will run: a key that any of them uses is used.

        A result of a program counts as used only if that program used it: one branch may return a
        key that another branch splits.
        """
        count = len(self.log)
        marks, outs, used = [], [], []
        for jaxpr in jaxprs:
            outs.append(self.run(jaxpr, args))
            used.append([(0, []) if x.new else (x.get().used(), x.get().uses()) for x in outs[-1]])
            marks += self.undo(count)
        for root, at, when in marks:
            root.when[at] = np.where(root.when[at] > 0, root.when[at], when)
            self.log.append((root, at))
        return [*map(join_origins, zip(*outs, strict=True), zip(*used, strict=True))]

    def loop(self, bodies: Sequence[Body], args: Sequence[Origin]) -> list[Origin]:
        """Walk through some iterations of a loop; return the final carry and the stacked results.

        The loop condition is walked before each iteration.
        """
        body, *tests = bodies
        jaxpr, length = body.jaxpr, TURNS if body.turns is None else len(body.turns)
        consts, carry, xs = split_inputs(body, [args[i] for i in body.operands])
        row_avals = jaxpr.in_avals[body.carry.stop :]
        ys: list[Origin] = []

        def look() -> None:
            for test in tests:
                held = [args[i] for i in test.operands[: len(test.operands) - len(carry)]]
                self.run(test.jaxpr, [*held, *carry])

        for turn in range(min(length, TURNS)):
            look()
            rows = list(map(new_origin, row_avals))
            outs = self.run(jaxpr, [*consts, *carry, *rows])
            carry, ys = outs[: len(carry)], outs[len(carry) :] if turn == 0 else ys
            for x, row in zip(xs, rows if turn == 0 else (), strict=False):
                if not row.new:
                    self.consume_rows(x.get(), row.get())
        look()
        stacked = [
            Origin(functools.partial(stack_elements, y, (length, *a.shape)), new=y.new)
            for y, a in zip(ys, jaxpr.out_avals[len(carry) :], strict=True)
        ]
        return [*carry, *stacked]

    def consume_rows(self, x: ElementOrigins, row: ElementOrigins) -> None:
        """Use in all rows of `x` what the body of a loop used of one."""
        when = row.used()
        for n, use in enumerate(row.uses()):
            codes = x.codes[:, when == n + 1]
            if codes.size:
                self.consume(x._replace(codes=codes), use)


def move_origins(eqn: Eqn, args: Sequence[Origin]) -> list[Origin] | None:
    """Return the origins of results that move operands' elements; None if that is not known.

    Operands that are not words are numbers that decide the moves. A single word is never a key, so
    results made of single words are new. The moves are found by applying the primitive to indices.
    """
    words = [a.aval.dtype == WORD for a in eqn.invars]
    single = any(w and not a.aval.shape for a, w in zip(eqn.invars, words, strict=True))
    if single or any(not w and x.value is None for w, x in zip(words, args, strict=True)):
        return None

    def place() -> list[ElementOrigins]:
        roots: list[Root] = []
        codes: list[np.ndarray] = []
        operands: list[Any] = []
        given = []
        for arg, word, atom in zip(args, words, eqn.invars, strict=True):
            if not word:
                operands.append(np.asarray(arg.value, atom.aval.dtype))
                continue
            x = arg.get()
            given.append(x)
            start = sum(c.size for c in codes)
            codes.append(np.where(x.codes < 0, -1, x.codes + (len(roots) << BITS)).ravel())
            operands.append(
                np.arange(start, start + x.codes.size, dtype=WORD).reshape(x.codes.shape)
            )
            roots += x.roots
        with eval_context(), config.scope(debug_key_reuse=False):
            places = eqn.primitive.apply(*operands, **eqn.params)
        outs = [np.concatenate(codes)[np.asarray(p)] for p in places]
        more = len(given) == 1 and sum(y.size for y in outs) > given[0].codes.size
        repeated = more or any(x.repeated for x in given)
        return [ElementOrigins(*merge_roots(roots, y), repeated) for y in outs]

    made: list[ElementOrigins] = []

    def result(i: int) -> ElementOrigins:
        made[:] = made or place()
        return made[i]

    return [Origin(functools.partial(result, i)) for i in range(len(eqn.outvars))]


def merge_roots(roots: list[Root], codes: np.ndarray) -> tuple[tuple[Root, ...], np.ndarray]:
    """Roots without repeats, and codes to go with them."""
    if len({id(r) for r in roots}) == len(roots):
        return tuple(roots), codes
    different = list({id(r): r for r in roots}.values())
    number = np.array([next(i for i, d in enumerate(different) if d is r) for r in roots])
    again = number[np.maximum(codes, 0) >> BITS] << BITS | codes & (1 << BITS) - 1
    return tuple(different), np.where(codes < 0, -1, again)


def join_origins(origins: Sequence[Origin], used: Sequence[tuple[Any, list[Use]]]) -> Origin:
    """Return the origin of a value that is one of several; `used` has the uses of each."""

    def join() -> ElementOrigins:
        first, *others = [x.get() for x in origins]
        if all(x.roots == first.roots and (x.codes == first.codes).all() for x in others):
            return first
        when = np.zeros(first.codes.shape, np.int32)
        uses: list[Use] = []
        for then, of_one in used:
            when = np.where(when > 0, when, np.where(then > 0, then + len(uses), 0))
            uses += of_one
        return mark_elements(first.codes.shape, when, uses)

    return Origin(join, new=all(x.new for x in origins))


def stack_elements(y: Origin, shape: tuple[int, ...]) -> ElementOrigins:
    """The elements of a stack whose rows are used as this one is."""
    row = y.get()
    return mark_elements(shape, row.used(), row.uses())


@memo_jaxpr
def concerns_keys(jaxpr: Jaxpr) -> bool:
    """Return True if a program uses up keys, or may hand some on."""
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        if prim.elements is Elements.RANDOM:
            return True
        if not prim.memoize_type and any(map(concerns_keys, held_jaxprs(eqn))):
            return True
    return any(a.dtype == WORD for a in jaxpr.out_avals)


def reuse_error(first: Use, again: Use, how: str = "") -> KeyReuseError:
    """The error for a key that is used again."""
    before, now = first.texts(), again.texts()
    if how or first.codes == again.codes:
        where = " from ".join(now[:2])
        got = f"one used {how or 'in each turn of a loop by'} {where}"
    else:
        depth = next((i for i, (a, b) in enumerate(zip(before, now)) if a != b), 0)
        got = " and again by ".join(" from ".join(x[: depth + 1]) for x in (before, now))
        got = f"one used by {got}"
    return KeyReuseError(
        f"random: a key must be used once; got {got}. "
        "Hint: key, subkey = random.split(key), and use the subkey."
    )


# -- concrete arrays ---------------------------------------------------------------------------


def is_key_words(x: Any) -> bool:
    """Return True if a value is an array that keys may be made of."""
    return hasattr(x, "aval") and x.dtype == WORD


def origin_of(x: Any) -> Origin:
    """The origin of a value that is passed to a program; an array remembers its elements."""
    if not is_key_words(x):
        return Origin(lambda: NOWHERE, new=True, value=x if isinstance(x, INTEGERS) else None)

    def find() -> ElementOrigins:
        found = x.__dict__.get("_key_elements")
        if found is None:
            found = x._key_elements = new_elements(x.shape)
        return found

    return Origin(find)


def follow_keys(
    jaxpr: Jaxpr, args: Sequence[Any], run: Callable[[], list], inner: bool = True
) -> list:
    """Call `run`, which applies `jaxpr` to `args`, and keep which keys that used up.

    Where not `inner`, the program is a function of weft's, and uses are on the line that calls it.
    """
    if has_extended(jaxpr):
        jaxpr = physical_jaxpr(jaxpr)
    if not concerns_keys(jaxpr):
        return run()
    walk = Walk((get_traceback(), current.source), inner)
    try:
        origins = walk.run(jaxpr, [origin_of(words_of(x)) for x in args])
    except KeyReuseError:
        walk.undo()
        raise
    outs = run()
    for x, origin in zip(map(words_of, outs), origins, strict=True):
        if is_key_words(x) and not origin.new:
            x._key_elements = origin.get()
    return outs


def check_keys(jaxpr: Jaxpr) -> None:
    """Raise where a program uses a key twice whatever it is called with."""
    if has_extended(jaxpr):
        jaxpr = physical_jaxpr(jaxpr)
    Walk(()).run(jaxpr, list(map(new_origin, jaxpr.in_avals)))


def hint_reuse(jaxpr: Jaxpr) -> None:
    """Log, once a place, where a program that was compiled uses a key twice."""
    try:
        if concerns_keys(jaxpr):
            check_keys(jaxpr)
    except KeyReuseError as error:
        if str(error) not in _told:
            _told.add(str(error))
            logger.warning("%s config.update('hints', False) silences this.", error)
    except Exception as error:  # a hint must not make a correct program fail
        logger.debug("keys were not followed: %r", error)
