"""The base of `Array` where a type checker finds what weft.numpy attaches: see members.pyi."""


class Members:
    """Operators and methods of arrays, by tools/make_stubs.py. At run time it has none."""

    __slots__ = ()
