"""`unparse`: a jaxpr as text that says all of it, and facts that follow from the text."""

from __future__ import annotations

import hashlib
from typing import Any

from weft.core.aval import typeof
from weft.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, memo_jaxpr, subjaxprs
from weft.core.pretty import Scope, Typed, number_text
from weft.display.show import require_program
from weft.jaxpr.values import PLAIN, Writer, primitive_text, type_text
from weft.passes.equal import const_bits
from weft.util.documents import render

NONE_WEAK = "# no type is weak, which would be written with a ~"


class Exact(Typed):
    """The typed notation with all parameters, in quotation marks where they are strings.

    A tilde marks weak types; a number without a type is Python's.
    """

    def __init__(self, arrays: list | None = None):
        super().__init__()
        self.writer = Writer(self.program_text, arrays)

    def program_text(self, x: Any) -> str:
        return self.shared.get(x.jaxpr) or render(self.program(x.jaxpr), 1 << 60)

    def shown_params(self, eqn: Eqn) -> dict[str, Any]:
        return {k: eqn.params[k] for k in sorted(eqn.params, key=lambda k: (k != "name", k))}

    def primitive(self, eqn: Eqn) -> str:
        return primitive_text(eqn.primitive)

    def type(self, aval: Any) -> str:
        return type_text(aval)

    def value(self, x: Any, inside: bool = False) -> str:
        return self.writer.text(x)

    def atom(self, atom: Atom, names: Scope) -> str:
        if type(atom) is not Literal:
            return names[atom]
        val, aval = atom.val, atom.aval
        if PLAIN.get(type(val)) is aval:
            return repr(val)
        number = repr(val) if type(val) in PLAIN else number_text(val, aval.dtype)
        return f"{number}:{type_text(aval)}"


def unparse(program: Jaxpr | ClosedJaxpr, width: int = 80) -> str:
    """Return the text of a program with everything that `parse` needs to read it back.

    It is like `str`, but every parameter is written, strings are in quotation marks, and weak types
    are `~f32[]`. A comment says that no type is weak where `parse` would take one for weak. The
    values of constvars are not in it (see `save`). Python functions are holes,
    `<function name>`.

    Args:
      program: a `Jaxpr` or a `ClosedJaxpr`.
      width: the number of characters of a line. The default is 80.

    Returns:
      A string.

    >>> print(weft.jaxpr.unparse(weft.make_jaxpr(lambda x: x * 2)(1.5)))
    { lambda ; a:~f32[]. let b:~f32[] = mul a 2.0 in (b,) }
    """
    require_program("unparse", program)
    return write_program(program, None, width)


def write_program(program: Jaxpr | ClosedJaxpr, arrays: list | None, width: int = 80) -> str:
    """Do as `unparse` does; the arrays in it are put into `arrays`."""
    text = render(Exact(arrays).document(program.jaxpr), width)
    says_weak = "~" in text or not seems_weak(program.jaxpr)
    return text if says_weak else f"{NONE_WEAK}\n{text}"


@memo_jaxpr
def seems_weak(jaxpr: Jaxpr) -> bool:
    """Return True if `parse` takes a parameter for weak that is converted to the dtype it has."""
    given = {*jaxpr.constvars, *jaxpr.invars}
    converted = [e for e in jaxpr.eqns if "weak_type" in e.params]
    kept = [e for e in converted if e.invars[0].aval.dtype == e.outvars[0].aval.dtype]
    return any(e.invars[0] in given for e in kept) or any(map(seems_weak, subjaxprs(jaxpr)))


def structural_hash(program: Jaxpr | ClosedJaxpr) -> str:
    """Return a hash of a program that is the same in all processes for structurally equal programs.

    Args:
      program: a `Jaxpr` or a `ClosedJaxpr`.

    Returns:
      A text of 64 hexadecimal digits.

    >>> len(weft.jaxpr.structural_hash(weft.make_jaxpr(jnp.sin)(1.0)))
    64
    """
    require_program("structural_hash", program)
    digest = hashlib.sha256(_hash_program(program.jaxpr))
    for x in program.consts:
        digest.update(type_text(typeof(x)).encode() + const_bits(x))
    return digest.hexdigest()


def _hash_program(jaxpr: Jaxpr) -> bytes:
    """Return the digest of a program. Shared inner programs count as separate copies."""
    found = jaxpr.memo.get("structural_hash")
    if found is None:
        arrays: list = []
        printer = Unshared(arrays)
        text = render(printer.program(jaxpr), 1 << 60)
        digest = hashlib.sha256(text.encode())
        for x in arrays:
            digest.update(const_bits(x))
        found = jaxpr.memo["structural_hash"] = digest.digest()
    return found


class Unshared(Exact):
    """The exact notation with the digest of each program in its place."""

    def program_text(self, x: Any) -> str:
        return _hash_program(x.jaxpr).hex()

    def held_program(self, x: Any, names: Scope | None = None) -> str:
        return self.value(x)
