"""`Layout` and `Format`: the order of an array's elements in memory, and its sharding.

Arrays between programs are stored row by row; a request for another order is refused. Within a
program, the order is jaxlib's choice.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.util import Record


class AutoLayout:
    """The layout that leaves the order of the axes to XLA: `Layout.AUTO`."""

    def __repr__(self) -> str:
        return "AUTO"


class Layout(Record):
    """The order of an array's axes in memory, the axis with the largest stride first.

    `Layout.AUTO` leaves the order to XLA.

    Args:
      major_to_minor: the numbers of the axes, a tuple of ints.
      tiling: the shapes of tiles in memory, the outermost first; None if it is not known.
      sub_byte_element_size_in_bits: the size of elements that are packed into bytes, or 0.

    >>> jnp.ones((2, 3)).format.layout.major_to_minor
    (0, 1)
    """

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")

    AUTO: ClassVar[AutoLayout] = AutoLayout()

    def __init__(
        self,
        major_to_minor: tuple[int, ...],
        tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ):
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = tiling
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    @classmethod
    def from_pjrt_layout(cls, layout: Any) -> Layout:
        """The layout that jaxlib's object describes."""
        found = layout._xla_layout()
        tiling = tuple(tuple(tile) for tile in found.tiling())
        return cls(tuple(reversed(found.minor_to_major())), tiling, found.element_size_in_bits())


class Format(Record):
    """A layout and a sharding, which together say how an array is stored.

    Args:
      layout: the order of the axes in memory, a `Layout`; None if it is not known.
      sharding: the sharding of the array; None if it is not known.

    >>> jnp.ones((2, 3)).format.sharding.num_devices
    1
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | None = None, sharding: Any = None):
        self.layout = layout
        self.sharding = sharding


def sharding_of_format(op: str, what: str, given: Format, ndim: int | None = None) -> Any:
    """Return the sharding of a format.

    Raise if the format asks for an array that is not stored row by row, or that has not `ndim`
    axes.
    """
    order = getattr(given.layout, "major_to_minor", None)
    if order is not None and sorted(order) != list(range(len(order) if ndim is None else ndim)):
        raise ValueError(
            f"{op}: the layout in {what} must name each axis of the array once; got {order}"
            f"{'' if ndim is None else f' for {ndim} axes'}."
        )
    if order is not None and order != tuple(range(len(order))):
        raise NotImplementedError(
            f"{op}: the layout in {what} must be row by row; got {order}. Hint: transpose the "
            "array, or with_layout_constraint within a program."
        )
    return given.sharding
