"""`parse`: the jaxpr for a text, from the names in it and the type rules of primitives.

syntax.py makes the tree, values.py the parameters. Types in a text are checked against the type
rules. If there are no types (the classic notation), the type rules derive them from the types of
the operands.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, UnreadVar, Var
from weft.core.pretty import Typed, param_text
from weft.core.primitive import Axis, Body, Primitive
from weft.display.show import SHAPES
from weft.errors import HoleError, ParseError
from weft.jaxpr import older, syntax
from weft.jaxpr.values import (
    Values,
    find_primitives,
    index_primitives,
    read_index,
    read_literal,
    read_type,
)
from weft.passes.holes import Hole
from weft.primitives.elementwise import Elementwise
from weft.primitives.layout import broadcast_in_dim_p
from weft.transforms.batch import in_scope

_BLANK = Var(ShapedArray((), bool))
_RULES = ("abstract_eval", "lower", "jvp", "transpose", "batch", "impl")


def parse(
    text: str,
    *,
    consts: Sequence[Any] = (),
    in_avals: Sequence[Any] | None = None,
    names: dict[str, Any] | None = None,
) -> ClosedJaxpr:
    """Read a program from its text, as `str`, `pretty_print` or `unparse` print it.

    Both notations are read. The classic one has no types: types of arguments come from
    `in_avals`, or from the arguments of the first call of the result. The text of `str` does not
    say which types are weak; `in_avals` does. Without it, an argument is weak if it is converted to
    the dtype that it has, or to a weak type.

    Text cannot hold some things, such as the rules of a custom_jvp function. They are holes: the
    program prints and runs, and HoleError is raised where one of them is needed.

    Args:
      text: the text.
      consts: the values of the constvars, a sequence of arrays. The default is none.
      in_avals: the types of the arguments, as values or as types. None takes them from the text.
      names: a dict from names in the text that weft does not define to their values: primitives,
        functions, enumerations, named tuples. A mesh among the values replaces a printed one with
        the same axes. None by default.

    Returns:
      A `ClosedJaxpr`.

    Raises:
      ParseError: the text cannot be read. Its attributes `line` and `column` say where.

    >>> program = weft.jaxpr.parse("{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0 in (b,) }")
    >>> program(jnp.ones(3))
    [Array([2., 2., 2.], dtype=float32)]
    """
    if not isinstance(text, str):
        raise TypeError(
            f"parse: needs the text of a jaxpr; got a {type(text).__name__}. Hint: parse(str(j))."
        )
    return parse_document(syntax.Text(text), consts, in_avals, names or {})


def parse_document(
    text: syntax.Text,
    consts: Sequence[Any],
    in_avals: Sequence[Any] | None,
    names: dict[str, Any],
    arrays: list | None = None,
) -> ClosedJaxpr:
    """Do as `parse` does; `arrays` are those that the text refers to by number."""
    with check_rules(text):
        tree = text.document()
        reader = Reader(text, names, arrays)
        for name, program in tree.shared.items():
            reader.shared[name] = reader.program(program, name=name)
    top = tree.program

    def make(given: list[Any], consts: Sequence[Any]) -> ClosedJaxpr:
        with check_rules(text):
            return close(reader.program(top, given), consts)

    untyped = [b for b in (*top.consts, *top.params) if b.type is None]
    if not untyped or len(untyped) < len(top.consts) + len(top.params):
        given = [*(map(type_of, consts) if consts else [None] * len(top.consts))]
        given += [None] * len(top.params) if in_avals is None else map(type_of, in_avals)
        return make(given, consts)
    values = list(consts)

    def read(avals: Sequence[Any]) -> ClosedJaxpr:
        if len(values) != len(top.consts):
            raise HoleError(
                "parse: a text without types must be given a value for each constvar; got "
                f"{len(values)} for {len(top.consts)}. Hint: weft.jaxpr.parse(text, consts=[...])."
            )
        return make([type_of(x) for x in (*values, *avals)], values)

    return Untyped(len(top.params), read) if in_avals is None else read(in_avals)


@contextlib.contextmanager
def check_rules(text: syntax.Text) -> Iterator[None]:
    """Raise ParseError for an error of a rule that was given what no program prints."""
    try:
        yield
    except (ParseError, HoleError):
        raise
    except Exception as error:
        must = f"a text must say a program that can be; got {name_error(error)}"
        raise text.error(must) from error


def type_of(x: Any) -> ShapedArray:
    """The type of a value, or a type itself."""
    return x if isinstance(x, ShapedArray) else typeof(x, "parse")


def close(jaxpr: Jaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    """The program with the values of its constvars, or with holes for them if none are given."""
    if consts or not jaxpr.constvars:
        return ClosedJaxpr(jaxpr, consts)
    return Open(jaxpr, [Hole("const", "", v.aval) for v in jaxpr.constvars])


class Open(ClosedJaxpr):
    """A program whose constvars have no values: it prints, and cannot be called."""

    __slots__ = ()

    def __call__(self, *args: Any) -> list:
        return self.consts[0]()


class Untyped(ClosedJaxpr):
    """A program without types, as in the classic notation; it has them once it is called.

    `with_types(*avals)` gives the program for arguments of those types.
    """

    __slots__ = ("arity", "made", "read")

    def __init__(self, arity: int, read: Callable):
        self.arity, self.read = arity, read
        self.made: dict[tuple, ClosedJaxpr] = {}

    def with_types(self, *avals: Any) -> ClosedJaxpr:
        """Return the program for arguments of these types, or of the types of these values."""
        key = tuple([type_of(a).strong() for a in avals])
        if len(key) != self.arity:
            raise HoleError(
                f"parse: there must be a type for each of {self.arity} parameters; got {len(key)}."
            )
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self.read(key)
        return found

    def __call__(self, *args: Any) -> list:
        return self.with_types(*args)(*args)

    def __getattr__(self, name: str) -> Any:
        if name in ("jaxpr", "consts"):
            raise HoleError(
                "parse: the types of a text without types must be given before it is looked into; "
                "got none. Hint: weft.jaxpr.parse(text, in_avals=[...]), or .with_types(...)."
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<a jaxpr without types, of {self.arity} parameters>"


def broadcast_ones(atoms: Sequence[Atom], shape: tuple) -> tuple[list[Eqn], list[Atom]]:
    """Operands with axes of size 1, which JAX's elementwise operations take, in a full shape."""
    eqns, operands = [], list(atoms)
    for i, x in enumerate(atoms):
        ones = x.aval.shape != shape and x.aval.ndim == len(shape) and 1 in x.aval.shape
        if ones and all(n in (1, m) for n, m in zip(x.aval.shape, shape, strict=True)):
            operands[i] = made = Var(x.aval.update(shape=shape))
            dims = tuple(range(len(shape)))
            params = {"shape": shape, "broadcast_dimensions": dims, "sharding": None}
            eqns.append(Eqn(broadcast_in_dim_p, [x], params, [made]))
    return eqns, operands


class Reader:
    """Makes jaxprs of trees, within one text."""

    def __init__(self, text: syntax.Text, names: dict[str, Any], arrays: list | None):
        self.text = text
        self.names = names
        self.values = Values(text, names, arrays)
        self.shared: dict[str, Jaxpr] = {}
        self.weak_unsaid = "~" not in text.text  # the text does not say which types are weak
        self.draws_samples = "random_bits[" in text.text

    def program(
        self, tree: syntax.Program, avals: Sequence[ShapedArray] | None = None, name: str = ""
    ) -> Jaxpr:
        """A program; `avals` are the types of its consts and parameters where it says none."""
        binders = [*tree.consts, *tree.params]
        if avals is not None and len(avals) != len(binders):
            raise self.text.error(
                f"a program must have a parameter for each operand; got {len(binders)} for "
                f"{len(avals)}", tree.pos,
            )  # fmt: skip
        env: dict[str, Var] = {}
        weak = self.find_weak(tree) if avals is None or None in avals else {}
        given = [
            weak.get(b.name) if a is None else a
            for b, a in zip(binders, avals or [None] * len(binders), strict=True)
        ]
        inputs = [self.define(env, b, a) for b, a in zip(binders, given, strict=True)]
        own = [e.primitive in self.names for e in tree.eqns]
        trees = [[e] if o else older.modernize(e) for e, o in zip(tree.eqns, own, strict=True)]
        eqns = [eqn for group in trees for e in group for eqn in self.equation(e, env)]
        outs = [self.operand(a, env) for a in tree.outs]
        n = len(tree.consts)
        return Jaxpr(inputs[:n], inputs[n:], outs, eqns, name=name)

    def find_weak(self, tree: syntax.Program) -> dict[str, ShapedArray]:
        """The types of parameters that must be weak, as only such are converted so, by name."""
        types = {b.name: b.type for b in (*tree.consts, *tree.params) if b.type is not None}
        found = {}
        for e in tree.eqns:
            if e.primitive != "convert_element_type" or "weak_type" not in e.params:
                continue
            if len(e.args) != 1 or len(e.outs) != 1 or type(e.args[0].value) is not syntax.Word:
                continue
            name, made = e.args[0].value.text, e.outs[0].type
            if made is None or name not in types or name in found:
                continue
            if e.params["weak_type"][0] is True or made.dtype == types[name].dtype:
                found[name] = read_type(types[name], self.text).update(weak_type=True)
        return found

    def define(self, env: dict[str, Var], binder: syntax.Binder, aval: Any) -> Var:
        """The variable that a binder makes, of the type that it says, or else of `aval`."""
        if binder.type is not None:
            said = read_type(binder.type, self.text)
            if aval is not None and (aval.shape, aval.dtype) != (said.shape, said.dtype):
                raise self.text.error(
                    f"a result must have the type of its type rule, {aval}; got {said}", binder.pos
                )
            weak = aval is not None and aval.weak_type and self.weak_unsaid
            aval = said.update(weak_type=True) if weak else said
        if aval is None:
            raise self.text.error(
                "variables must have types, or in_avals be given", binder.pos,
                "weft.jaxpr.parse(text, in_avals=[...])",
            )  # fmt: skip
        var = (UnreadVar if binder.name[1:].endswith("_") else Var)(aval)
        if binder.name in env:
            raise self.text.error(
                f"a variable must be defined once; got {binder.name!r} again", binder.pos
            )
        if binder.name not in ("_", "*"):
            env[binder.name] = var
        return var

    def operand(self, atom: syntax.Atom, env: dict[str, Var]) -> Atom:
        if type(atom.value) is syntax.Word:
            name = atom.value.text
            if name not in env:
                raise self.text.error(
                    f"a variable must be defined before it is used; got {name!r}", atom.pos
                )
            return env[name]
        aval = atom.type and read_type(atom.type, self.text)
        return Literal(*read_literal(atom.value, aval))

    # --- equations ---

    def equation(self, tree: syntax.Equation, env: dict[str, Var]) -> list[Eqn]:
        """The equation, after those that broadcast its operands."""
        invars = [self.operand(a, env) for a in tree.args]
        said = [b.type and read_type(b.type, self.text) for b in tree.outs]
        candidates = self.find_primitives(tree)
        before: list[Eqn] = []
        if isinstance(candidates[0], Elementwise):
            if len(invars) != (arity := len(candidates[0].derivs)):
                raise self.text.error(
                    f"{candidates[0]} must have {arity} operands; got {len(invars)}", tree.pos
                )
            if said[0]:
                before, invars = broadcast_ones(invars, said[0].shape)
        avals = [a.aval for a in invars]
        read = functools.partial(self.params, tree, avals, said)
        found = [(prim, read(prim)) for prim in candidates[:1]]
        if len(candidates) > 1:
            every = [(prim, read(prim)) for prim in candidates]
            found = [pair for pair in every if self.prints_as(tree, *pair)] or found
        prim, params = found[0]
        types = self.result_types(tree, prim, avals, params, said)
        if len(types) != len(tree.outs):
            raise self.text.error(
                f"{prim} must have {len(types)} results; got {len(tree.outs)}", tree.pos
            )
        outs = [self.define(env, b, a) for b, a in zip(tree.outs, types, strict=True)]
        return [*before, Eqn(prim, invars, params, outs)]

    def find_primitives(self, tree: syntax.Equation) -> list[Primitive]:
        given = self.names.get(tree.primitive)
        if isinstance(given, Primitive):
            return [given]
        found = find_primitives(tree.primitive, self.draws_samples)
        if not found:
            close = difflib.get_close_matches(tree.primitive, list(index_primitives()), 1)
            raise self.text.error(
                f"an equation must have the name of a primitive; got {tree.primitive!r}", tree.pos,
                f"{close[0]}." if close else f"names={{{tree.primitive!r}: primitive}}.",
            )  # fmt: skip
        return found

    def params(
        self, tree: syntax.Equation, avals: list, said: list, prim: Primitive
    ) -> dict[str, Any]:
        """Return a primitive's parameters: those in the text, derived ones, and None for others."""
        if type(tree.params.get("index", [None])[0]) is syntax.Index:
            index = tree.params["index"][0]
            count = len(index.arrays)
            return {"index": read_index(index, avals[len(avals) - count :])}
        with in_scope(self.read_axes(tree)):
            shown = {k: self.param(x, k) for k, (x, _) in tree.params.items()}
        self.type_programs(tree, prim, avals, shown)
        typed = all(s is not None for s in said)
        params = shown
        if prim.read_params:
            try:
                params = prim.read_params(shown, avals, said if typed else [])
            except Exception as error:
                raise self.text.error(
                    f"parameters of {prim} must be such as it prints; got {name_error(error)}",
                    tree.pos,
                ) from error
        known, taken = find_param_names(type(prim))
        for k in set(params) - taken if taken is not None else ():
            if params[k] is None:
                del params[k]  # of another version, and not set
            else:
                pos = tree.params[k][1] if k in tree.params else tree.pos
                raise self.text.error(f"{prim} must be given what it takes; got {k}", pos)
        return {**{k: fill_param(k, said) for k in known - set(params)}, **params}

    def read_axes(self, tree: syntax.Equation) -> list[Axis]:
        """The named axes that are in scope in the programs of an equation."""
        given = {k: tree.params[k][0] for k in ("manual_axes", "mesh") if k in tree.params}
        if len(given) < 2:
            return []
        names, mesh = (self.param(x, k) for k, x in given.items())
        tracked = tree.params.get("check_vma", (False, 0))[0]
        return [Axis(size, n, tracked) for n, size in mesh.shape_tuple if n in names]

    def param(self, x: Any, key: str) -> Any:
        """The value of a parameter. A program without types stays a tree."""
        if type(x) is syntax.Program:
            untyped = any(b.type is None for b in x.params)
            return x if untyped or x.consts else self.program(x)
        if type(x) is syntax.Word and x.text in self.shared:
            return self.shared[x.text]
        if type(x) is tuple:
            return tuple([self.param(i, key) for i in x])
        return self.values.read(x, key)

    def prints_as(self, tree: syntax.Equation, prim: Primitive, params: dict) -> bool:
        """Return True if an equation with these parameters would print those that the text has."""
        printed = Typed().shown_params(Eqn(prim, [], params, []))
        shown = {k: self.values.read(x, k) for k, (x, _) in tree.params.items()}
        return all(param_text(shown[k]) == param_text(v) for k, v in printed.items() if k in shown)

    def result_types(
        self, tree: syntax.Equation, prim: Primitive, avals: list, params: dict, said: list
    ) -> list[ShapedArray]:
        try:
            return prim.type_of(tuple(avals), params)
        except NameError:  # a named axis, which is in scope where the program runs
            return said
        except ParseError:
            raise
        except Exception as error:
            missing = sorted(k for k, v in params.items() if v is None and k not in tree.params)
            more = f" without {', '.join(missing)}" if missing else ""
            raise self.text.error(
                f"operands and parameters must pass the type rule of {prim}; "
                f"got {name_error(error)}{more}", tree.pos,
            ) from error  # fmt: skip

    # --- programs without types ---

    def type_programs(
        self, tree: syntax.Equation, prim: Primitive, avals: list, shown: dict
    ) -> None:
        """Type the programs among parameters that have no types, from the types of the operands."""
        values = [x for v in shown.values() for x in (v if type(v) is tuple else (v,))]
        trees = [x for x in values if type(x) is syntax.Program]
        if not trees:
            return
        blank = {id(t): Jaxpr([], [_BLANK] * len(t.params), [_BLANK], []) for t in trees}
        known, _ = find_param_names(type(prim))
        params = dict.fromkeys(known) | replace_programs(shown, lambda t: blank[id(t)])
        typed = {}
        for body in prim.bodies(params):
            for t in trees:
                if body.jaxpr is blank[id(t)]:
                    if not body.operands and t.params:
                        raise self.text.error(f"{prim} must be written with types", tree.pos)
                    typed[id(t)] = self.program(t, [a.strong() for a in input_types(body, avals)])
        shown.update(replace_programs(shown, lambda t: typed[id(t)]))


def name_error(error: Exception) -> str:
    """Return an error of a rule as part of the text of another."""
    return f"{type(error).__name__}: {str(error).rstrip('.')}"


def fill_param(key: str, said: Sequence[Any]) -> Any:
    """A parameter that the text does not have: as the type of the result says, or None."""
    if said and said[0] is not None:
        if key in SHAPES:
            return said[0].shape
        if key in ("dtype", "new_dtype"):
            return said[0].dtype
    return {"broadcast_dimensions": (), "weak_type": False}.get(key)


def input_types(body: Body, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Return the types of the inputs of a held program, given those of the primitive's operands."""
    types = [avals[i] for i in body.operands]
    if body.runs is not Runs.LOOP:
        return types
    n = body.carry.stop
    return [*types[:n], *[a.update(shape=a.shape[1:]) for a in types[n:]]]


def replace_programs(params: dict[str, Any], make: Callable) -> dict[str, Any]:
    """Return parameters with `make(tree)` in place of each tree of a program."""

    def replace(x: Any) -> Any:
        if type(x) is tuple and any(type(i) is syntax.Program for i in x):
            return tuple(map(replace, x))
        return make(x) if type(x) is syntax.Program else x

    return {k: replace(v) for k, v in params.items()}


@functools.cache
def find_param_names(cls: type) -> tuple[frozenset[str], frozenset[str] | None]:
    """The parameters of a primitive without a default, by its rules, and all, or None for any."""
    known, others, takes_any = set(), set(), True
    for name in _RULES:
        rule = getattr(cls, name, None)
        if rule is None or rule is getattr(Primitive, name, None):
            continue
        parameters = inspect.signature(rule).parameters.values()
        for p in parameters:
            if p.kind is p.KEYWORD_ONLY:
                (known if p.default is p.empty else others).add(p.name)
        if name == "abstract_eval":
            takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return frozenset(known), None if takes_any else frozenset(known | others)
