"""Objects whose state programs may read and write: values of a mutable type of hijax.

A staged function that is passed one gets an object of its own, made of traced values, and what that
holds at the end is written to the one passed: its structure may change. One that a staged function
closes over is held in references from then on, which loops and branches take; the operations of
its class, which all go through `apply_on_objects`, then run on an object made of what those hold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import typeof as type_of_array
from weft.core.stage import is_staged_within
from weft.core.trace import Trace, Tracer, current, is_eager, pin_type, use, walk_up
from weft.errors import RefError
from weft.primitives.refs import free_ref_p, load_ref, new_ref_p, store_ref
from weft.pytrees import flatten, register_pytree_node, unflatten
from weft.run.eager import EVAL
from weft.xla.array import put

# By class, the function that returns the type of a user-defined value. MUTABLE has the classes with
# mutable values: their types have `has_qdd`.
TYPES: dict[type, Callable[[Any], Any]] = {}
MUTABLE: dict[type, Callable[[Any], Any]] = {}


def typeof(x: Any) -> Any:
    """Return the type of a value: its shape, its dtype, and its sharding over explicit axes.

    Args:
      x: an array, a number, a traced value or a reference, or a value of a class that
        `experimental.hijax` registers.

    Returns:
      A `ShapedArray`, an `AbstractRef`, or the type that the class has.

    Raises:
      DtypeError: the value is of another class.

    >>> typeof(jnp.ones((2, 3)))
    ShapedArray(float32[2,3])
    >>> print(typeof(1), typeof(weft.new_ref(jnp.zeros(3))))
    i32[] Ref{f32[3]}
    """
    find = TYPES.get(type(x))
    return type_of_array(x) if find is None else find(x)


def mutable_type(x: Any) -> Any:
    """The type of a mutable object; None for any other value."""
    find = MUTABLE.get(type(x))
    kind = None if find is None else find(x)
    return kind if getattr(kind, "has_qdd", False) else None


def cur_qdd(x: Any) -> Any:
    """Return the known facts about the state of a mutable object, such as types and structure.

    The facts are known while functions are traced, unlike the values in the state.

    Args:
      x: an object of a class that is registered with a `MutableHiType`.

    Returns:
      The result of `x.cur_qdd()`, a hashable value.

    Raises:
      AttributeError: the class of `x` has no method `cur_qdd`.

    >>> class Counter:
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def cur_qdd(self):
    ...         return weft.typeof(self.n)
    >>> print(cur_qdd(Counter(jnp.zeros(3))))
    f32[3]
    """
    return x.cur_qdd()


# --- where objects live ---------------------------------------------------------------------------


class State:
    """The place where an object was made, and the references that hold its arrays, if any."""

    __slots__ = ("home", "kind", "known", "refs", "x")

    def __init__(self, x: Any, kind: Any, home: Trace):
        self.x = x
        self.kind = kind
        self.home = home
        self.known: Any = None  # its structure while references hold its arrays
        self.refs: list | None = None

    def share(self) -> None:
        """Have references hold its arrays."""
        with use(self.home):
            self.known = cur_qdd(self.x)
            arrays = self.kind.read_loval(self.known, self.x)
            self.refs = [make_ref(x) for x in arrays]

    def open(self) -> tuple[Any, list]:
        """An object for the current trace, of the arrays that the references hold, and those."""
        arrays = list(map(load_ref, self.refs or ()))
        local = self.kind.new_from_loval(self.known, *arrays)
        keep_home(local, self.kind)
        return local, arrays

    def close(self, local: Any, before: list) -> None:
        """Write what the object that `open` gave holds now."""
        known = cur_qdd(local)
        after = self.kind.read_loval(known, local)
        _states.pop(id(local), None)
        refs = self.refs or []
        if find_structure(known) == find_structure(self.known):
            for ref, x, y in zip(refs, before, after, strict=True):
                if x is not y:
                    store_ref(ref, y)
        elif is_staged_within(self.home):
            raise RefError(
                f"{type(self.x).__name__}: an object that a traced function closes over must keep "
                f"its structure; got {known} for {self.known}. Hint: pass it as an argument."
            )
        else:
            for ref in refs:
                free_ref_p.apply(ref)  # programs that closed over it are staged anew
            self.refs = None
            self.kind.update_from_loval(known, self.x, *after)


def make_ref(x: Any) -> Any:
    """A reference that holds a value, under the current trace."""
    x = put(x) if isinstance(x, np.ndarray) else pin_type(x)
    return new_ref_p.apply(x, kind=None, memory_space=None)[0]


def find_structure(known: Any) -> Any:
    """Return the types of a state, except for weak types."""
    return known.normalize() if hasattr(known, "normalize") else known


# Of objects made while functions are traced, or held in references. The rest live at the bottom.
_states: dict[int, State] = {}
_most = [64]


def find_state(x: Any, kind: Any) -> State:
    """Find the state of an object; it is in references if a function is staged in between."""
    state = _states.get(id(x)) or State(x, kind, EVAL)
    if state.refs is None and state.home.live and is_staged_within(state.home):
        state.share()
        keep_state(state)
    return state


def keep_home(x: Any, kind: Any) -> None:
    """Remember that an object was made here."""
    if not is_eager():
        keep_state(State(x, kind, current.trace))


def keep_state(state: State) -> None:
    """Remember the trace that an object was made in; forget the traces that have ended."""
    if len(_states) >= _most[0]:
        for key, old in list(_states.items()):
            if not old.home.live:
                _states.pop(key, None)  # another thread may have removed it
            elif old.home is EVAL and is_unshared(old.refs or ()):
                arrays = list(map(load_ref, old.refs or ()))
                old.refs = None
                old.kind.update_from_loval(old.known, old.x, *arrays)
                _states.pop(key, None)  # another thread may have removed it
        _most[0] = max(64, 2 * len(_states))
    _states[id(state.x)] = state


def is_unshared(refs: Sequence[Any]) -> bool:
    """Return True if no program closes over an object's references: only its list holds them."""
    return all(sys.getrefcount(refs[i]) <= 2 for i in range(len(refs)))


# --- operations -----------------------------------------------------------------------------------


def apply_on_objects(fun: Callable, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """`fun(*args, **params)`, of mutable objects that may live elsewhere than here."""
    given = list(args)
    opened = []
    foreign = []
    for i, x in enumerate(args):
        kind = mutable_type(x)
        state = None if kind is None else find_state(x, kind)
        if state is not None and state.refs is not None:
            given[i], before = state.open()
            opened.append((state, given[i], before))
        elif state is not None and any(is_foreign(y, state.home) for y in args):
            known = cur_qdd(x)
            foreign.append((state, known, state.kind.read_loval(known, x)))
    out = fun(*given, **params)
    for state, local, before in opened:
        state.close(local, before)
    for state, known, before in foreign:
        check_state(state, known, before)
    for y in out if isinstance(out, list | tuple) else (out,):
        if (kind := mutable_type(y)) is not None:
            keep_home(y, kind)
    return out


def is_foreign(x: Any, home: Trace) -> bool:
    """Return True if a traced value has no meaning where an object lives."""
    return isinstance(x, Tracer) and x.owner not in walk_up(home)


def check_state(state: State, known: Any, before: list) -> None:
    """Raise where an object was given values of a trace that it does not live in, and undo it."""
    after = state.kind.read_loval(cur_qdd(state.x), state.x)
    if wrong := [y for y in after if is_foreign(y, state.home)]:
        state.kind.update_from_loval(known, state.x, *before)
        axis = hasattr(wrong[0].owner, "axis")
        raise RefError(
            f"{type(state.x).__name__}: an object from outside must not be given a value that is "
            f"{'mapped' if axis else 'differentiated'}; got {wrong[0].aval}. "
            + f"Hint: {'return it' if axis else 'lax.stop_gradient(x)'}, or make the object inside."
        )


# --- calls ----------------------------------------------------------------------------------------


class Change:
    """Return the structure and the arrays of an object at the end of a function."""

    def __init__(self, known: Any, arrays: Sequence[Any]):
        self.known = known
        self.arrays = arrays


register_pytree_node(Change, lambda c: (tuple(c.arrays), c.known), Change)


class OpenCall(NamedTuple):
    """A call with mutable objects, as one of arrays.

    `fun(*args)` gives the result, and for each object a `Change` or None. `key` is all that `fun`
    depends on besides the function that it was made of.
    """

    fun: Callable
    args: tuple[list, list]
    objects: list
    key: tuple

    def finish(self, found: tuple[Any, Sequence]) -> Any:
        """The result of the call; what changed is written to the objects."""
        out, changes = found
        for x, change in zip(self.objects, changes, strict=True):
            if change is not None:
                mutable_type(x).update_from_loval(change.known, x, *change.arrays)
        return out


def open_call(fun: Callable, args: tuple, kwargs: dict) -> OpenCall | None:
    """The call `fun(*args, **kwargs)` where objects are among the arguments; else None."""
    leaves, tree = flatten((args, kwargs))
    kinds = {id(x): kind for x in leaves if (kind := mutable_type(x)) is not None}
    if not kinds:
        return None
    objects = list({id(x): x for x in leaves if id(x) in kinds}.values())
    numbers = {id(x): i for i, x in enumerate(objects)}
    places = tuple([numbers.get(id(x), -1) for x in leaves])
    types = tuple([(kinds[id(x)], cur_qdd(x)) for x in objects])
    arrays = [kind.read_loval(known, x) for x, (kind, known) in zip(objects, types, strict=True)]

    def opened(arrays: list, rest: list) -> tuple:
        made = [kind.new_from_loval(q, *xs) for (kind, q), xs in zip(types, arrays, strict=True)]
        for x, (kind, _) in zip(made, types, strict=True):
            keep_home(x, kind)
        others = iter(rest)
        args, kwargs = unflatten(tree, [made[p] if p >= 0 else next(others) for p in places])
        out = fun(*args, **kwargs)
        return out, [find_change(*given) for given in zip(made, types, arrays, strict=True)]

    opened.__name__ = getattr(fun, "__name__", "opened")
    rest = [x for x, p in zip(leaves, places, strict=True) if p < 0]
    return OpenCall(opened, (arrays, rest), objects, (tree, places, types))


def find_change(x: Any, types: tuple[Any, Any], before: Sequence[Any]) -> Change | None:
    """Return the state of an object at the end of a function, if it changed."""
    kind, was = types
    known = cur_qdd(x)
    after = kind.read_loval(known, x)
    same = known == was and all(a is b for a, b in zip(before, after, strict=True))
    return None if same else Change(known, after)
