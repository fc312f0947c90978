"""Meshes: devices in a grid whose axes have names, and the mesh in scope.

A mesh and a `PartitionSpec` (spec.py) together make a sharding (sharding.py).
"""

from __future__ import annotations

import enum
import functools
import math
import operator
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from weft import display
from weft.core.trace import is_eager
from weft.errors import check_hashable
from weft.mesh.client import Device, all_devices, find_devices, local_devices_of, more_devices_hint
from weft.options import config, mesh_in_scope
from weft.util import JAXLIB, LazyMember, Record, Scope, hide_members, memoize


class AxisType(enum.Enum):
    """The decision about the split of values over a mesh axis.

    Attributes:
      Auto: the compiler decides, from the shardings of the inputs.
      Explicit: the types of values state it, and each operation derives the sharding of its result
        from its operands.
      Manual: the body of a `shard_map`, where each device computes on its own part.

    >>> weft.make_mesh((1,), ("x",), AxisType.Auto).axis_types
    (Auto,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class AbstractDevice(Record):
    """A kind of device, for a mesh that names no devices.

    Args:
      device_kind: the name of the kind, such as "NVIDIA H100".
      num_cores: the number of cores, or None.
      platform: the platform, such as "gpu".

    >>> AbstractDevice("NVIDIA H100", None, "gpu").platform
    'gpu'
    """

    __slots__ = ("device_kind", "num_cores", "platform")

    def __init__(self, device_kind: str, num_cores: int | None, platform: str):
        self.device_kind = device_kind
        self.num_cores = num_cores
        self.platform = platform

    def __str__(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)

    def __repr__(self) -> str:
        return f"AbstractDevice({self})"


@memoize  # asked for each array that is made; meshes are kept anyway
def list_axes(mesh: BaseMesh, kind: AxisType) -> tuple:
    """The names of the axes of a type."""
    return tuple(n for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True) if t is kind)


class BaseMesh:
    """The base of meshes with and without devices: axes with names, sizes and types."""

    axis_names: tuple
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    devices: Any

    @property
    def shape(self) -> OrderedDict:
        """The size of each axis, by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple:
        """Pairs of the name and the size of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return 0 if self.empty else math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Return True if this is the mesh without devices, which stands for the lack of a mesh."""
        return not self.axis_names

    def _are_all(self, kind: AxisType) -> bool:
        return {*self.axis_types} == {kind}

    auto_axes, explicit_axes, manual_axes = (
        property(functools.partial(list_axes, kind=kind), doc=f"The names of the {kind} axes.")
        for kind in AxisType
    )
    are_all_axes_auto, are_all_axes_explicit, are_all_axes_manual = (
        property(operator.methodcaller("_are_all", kind), doc=f"Whether every axis is {kind}.")
        for kind in AxisType
    )

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Return True if no axis is Auto."""
        return AxisType.Auto not in self.axis_types

    def sdy(self, symbol: str = "@mesh", devices: Sequence[Any] = ()) -> str:
        """Return the declaration of the mesh in a program for `devices`, by default its own.

        The number of a device is its place among the devices of the program.
        """
        axes = ", ".join(f"{axis_text(n)}={size}" for n, size in self.shape_tuple)
        own = getattr(self, "_device_assignment", devices)
        order = ""
        if devices and own != tuple(devices):
            place = {d: i for i, d in enumerate(devices)}
            order = f", device_ids=[{', '.join(str(place[d]) for d in own)}]"
        return f"sdy.mesh {symbol} = <[{axes}]{order}>"

    def _axes_text(self) -> str:
        axes = ", ".join(f"{n!r}: {size}" for n, size in self.shape_tuple)
        return f"{axes}, axis_types={self.axis_types}"


def axis_text(name: Any) -> str:
    """The name of an axis in StableHLO."""
    escaped = str(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def retype_axes(mesh: Any, names: Sequence[Any], kind: AxisType) -> Any:
    """The mesh with the axes of these names of another type."""
    every = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.update(axis_types=tuple(kind if n in names else t for n, t in every))


def has_same_grid(mesh: Any, other: Any) -> bool:
    """Return True if meshes differ only in the types of axes, or in that one has no devices."""
    if mesh is other or getattr(mesh, "shape_tuple", None) != getattr(other, "shape_tuple", ()):
        return mesh is other
    devices = [getattr(m, "_device_assignment", None) for m in (mesh, other)]
    return None in devices or devices[0] == devices[1]


_entered = threading.local()  # the scopes of `with mesh:` that a thread is in

# Equal meshes are one object: the C++ call path compares identities, and programs are few.
_MESHES: dict[tuple, Any] = {}


# The default type of the axes of an abstract mesh.
ABSTRACT_TYPE = AxisType.Explicit if JAXLIB >= (0, 12) else AxisType.Auto


class AbstractMesh(BaseMesh):
    """A mesh without devices: only the sizes, the names and the types of its axes.

    Types of values and programs for export refer to it where the devices are not known yet.

    Args:
      axis_sizes: the size of each axis, a tuple of ints.
      axis_names: the name of each axis.
      axis_types: the `AxisType` of all axes, or one for each. None, the default, is Auto, and
        Explicit under jaxlib 0.12, as in the JAX of that version.
      abstract_device: the kind of device that it is for, an `AbstractDevice`. None leaves it open.

    >>> AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    AbstractMesh('x': 4, 'y': 2, axis_types=(Explicit, Auto))
    """

    def __new__(
        cls,
        axis_sizes: tuple[int, ...],
        axis_names: tuple[str, ...],
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> AbstractMesh:
        try:
            sizes = tuple(map(operator.index, axis_sizes))
        except TypeError:
            said = f"must be integers in a sequence; got {axis_sizes!r}."
            raise TypeError(f"AbstractMesh: axis_sizes {said}") from None
        names = check_axis_names("AbstractMesh", axis_names, len(sizes), f"axis_sizes {sizes}")
        types = ABSTRACT_TYPE if axis_types is None else axis_types
        types = expand_axis_types("AbstractMesh", types, names)
        key = (cls, sizes, names, types, abstract_device)
        found = _MESHES.get(key)
        if found is None:
            found = object.__new__(cls)
            found.axis_sizes, found.axis_names, found.axis_types = sizes, names, types
            found.abstract_device = abstract_device
            found = _MESHES.setdefault(key, found)
        return found

    abstract_device: AbstractDevice | None

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **device: Any
    ) -> AbstractMesh:
        """Return the mesh with other fields, or another `abstract_device`; None keeps a field."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **device},
        )

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """Return the mesh with other types for the axes named."""
        every = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(n, t) for n, t in every))

    def _refused(self) -> Any:
        raise ValueError(
            "AbstractMesh: has no devices, so nothing of them can be asked; got "
            f"{self}. Hint: weft.make_mesh(axis_sizes, axis_names)."
        )

    devices = property(_refused)
    local_devices = device_ids = local_mesh = is_multi_process = devices

    def __reduce__(self) -> tuple:
        fields = (self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device)
        return _make_abstract_mesh, fields

    def __repr__(self) -> str:
        device = f", {self.abstract_device}" if self.abstract_device else ""
        return f"AbstractMesh({'' if self.axis_names else '()'}{self._axes_text()}{device})"


def _make_abstract_mesh(sizes: tuple, names: tuple, types: tuple, device: Any) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


def missing_devices_error(op: str, mesh: AbstractMesh) -> ValueError:
    """Return the error for compiling or running a program over a mesh without devices."""
    return ValueError(
        f"{op}: needs devices to be compiled for; got a program over {mesh}. Hint: with "
        f"weft.set_mesh(weft.make_mesh({mesh.axis_sizes}, {mesh.axis_names})): ..."
    )


class Mesh(BaseMesh):
    """A grid of devices whose axes have names. Shardings and `shard_map` refer to the names.

    Equal meshes are one object. `with mesh:` lets a `PartitionSpec` stand for a sharding over the
    mesh in the block. `set_mesh` also puts values on it. `make_mesh` is simpler where the order of
    the devices does not matter.

    Args:
      devices: an array of devices. `Mesh(numpy.empty((), object), ())` means that there is no mesh.
      axis_names: a name for each axis of the array.
      axis_types: the `AxisType` of all axes, or one for each. None, the default, is Auto, and
        Explicit under jaxlib 0.12.

    >>> first = make_mesh((1,), ("x",)).devices
    >>> Mesh(first, "x", AxisType.Auto)
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """

    def __new__(
        cls,
        devices: np.ndarray | Sequence[Any] | Any,
        axis_names: str | Sequence[Any],
        axis_types: tuple[AxisType, ...] | AxisType | None = None,
    ) -> Mesh:
        grid = make_grid(devices)
        if grid.ndim == 0 and grid[()] is None:
            return EMPTY
        names = (axis_names,) if isinstance(axis_names, str) else axis_names
        names = check_axis_names("Mesh", names, grid.ndim, f"devices of shape {grid.shape}")
        types = expand_axis_types("Mesh", axis_types, names)
        key = (cls, grid.shape, tuple(grid.flat), names, types)
        found = _MESHES.get(key)
        if found is None:
            check_distinct_devices(grid)
            found = _MESHES.setdefault(key, cls._make(grid, names, types))
        return found

    @classmethod
    def _make(cls, grid: np.ndarray, names: tuple, types: tuple) -> Mesh:
        self = object.__new__(cls)
        grid.flags.writeable = False
        self.devices = grid
        self.axis_sizes, self.axis_names, self.axis_types = grid.shape, names, types
        self._device_assignment = tuple(grid.flat)
        self._internal_device_list = _jax.DeviceList(self._device_assignment)
        return self

    devices: np.ndarray
    _device_assignment: tuple
    _internal_device_list: Any

    @property
    def device_ids(self) -> np.ndarray:
        """The number of each device."""
        ids = [d.id for d in self._device_assignment]
        return np.array(ids, int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        """Its devices that belong to this process."""
        return local_devices_of(self._device_assignment)

    @property
    def is_multi_process(self) -> bool:
        """Return True if it has devices of more than one process."""
        return len(self.local_devices) != len(self._device_assignment)

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that holds this process's devices, which form a block of it."""
        if not self.is_multi_process:
            return self
        mine = set(self.local_devices)
        places = np.argwhere(np.vectorize(mine.__contains__, otypes=[bool])(self.devices))
        low, high = places.min(axis=0), places.max(axis=0) + 1
        block = self.devices[tuple(map(slice, low, high))]
        if block.size != len(mine):
            raise ValueError(
                "local_mesh: this process's devices must form a block of the mesh; got "
                f"{len(mine)} devices in a block of {block.shape}. Hint: mesh.local_devices."
            )
        return Mesh(block, self.axis_names, self.axis_types)

    @property
    def empty(self) -> bool:
        """Return True if this is the mesh without devices, which stands for the lack of a mesh."""
        return not self.devices.size

    @property
    def is_scalar(self) -> bool:
        """Return True if it has no axes but a device."""
        return not self.axis_names and not self.empty

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The same axes, of no particular devices."""
        if not self._device_assignment:
            return EMPTY_ABSTRACT
        device = self._device_assignment[0]
        cores = getattr(device, "num_cores", None)
        kind = AbstractDevice(device.device_kind, cores, device.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """Return the mesh with other fields; None keeps a field."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Mesh:
        scope = MeshScope(get_mesh(), get_abstract_mesh(), self)
        scope.__enter__()
        _entered.__dict__.setdefault("scopes", []).append(scope)
        return self

    def __exit__(self, *error: Any) -> None:
        _entered.scopes.pop().__exit__(*error)

    def __reduce__(self) -> tuple:
        platform = "" if self.empty else self._device_assignment[0].platform
        return _unpickle_mesh, (platform, self.device_ids, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        sizes, names, types = self.axis_sizes, self.axis_names, self.axis_types
        return f"Mesh(axis_sizes={sizes}, axis_names={names}, axis_types={types})"

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._axes_text()})"


hide_members(BaseMesh, "sdy")
LazyMember(lambda: display.values.mesh_html, "_repr_html_", (BaseMesh,))


def _unpickle_mesh(platform: str, ids: np.ndarray, names: tuple, types: tuple) -> Mesh:
    """The mesh of the devices with these numbers, for unpickling."""
    if not ids.size:
        return EMPTY
    grid = np.empty(ids.size, object)
    grid[:] = find_devices("Mesh", platform, ids.ravel().tolist())
    return Mesh(grid.reshape(ids.shape), names, types)


def make_grid(devices: Any) -> np.ndarray:
    """The devices as an array of objects of its own."""
    if isinstance(devices, np.ndarray):
        return np.array(devices, object)
    if isinstance(devices, Device):
        grid = np.empty((), object)
        grid[()] = devices
        return grid
    return np.array(list(devices), object)


def check_axis_names(op: str, names: Any, ndim: int, what: str) -> tuple:
    if not isinstance(names, str | tuple | list):
        raise TypeError(f"{op}: axis_names must be a sequence of names; got {names!r}.")
    names = (names,) if isinstance(names, str) else tuple(names)
    if len(names) != ndim:
        raise ValueError(f"{op}: axis_names must name each axis once; got {names} for {what}.")
    if None in names:
        raise ValueError(f"{op}: axis_names must not be None; got {names}.")
    check_hashable(op, axis_names=names)
    if len(set(names)) != len(names):
        raise ValueError(f"{op}: axis_names must differ from each other; got {names}.")
    return names


def expand_axis_types(op: str, types: Any, names: tuple) -> tuple[AxisType, ...]:
    if types is None:
        return (AxisType.Auto,) * len(names)
    if isinstance(types, AxisType) or not isinstance(types, tuple | list):
        types = (types,) * len(names)
    types = tuple(types)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(f"{op}: axis_types must be AxisTypes; got {types}. Hint: AxisType.Auto.")
    if len(types) != len(names):
        raise ValueError(
            f"{op}: axis_types must have a type for each axis; got {types} for axes {names}. "
            "Hint: leave axis_types out, or give one type for all."
        )
    return types


def check_distinct_devices(grid: np.ndarray) -> None:
    seen = set()
    for d in grid.flat:
        if not isinstance(d, Device):
            raise TypeError(
                f"Mesh: devices must be devices; got {d!r} of type {type(d).__name__}. "
                "Hint: numpy.array(weft.devices()).reshape(...)."
            )
        if d in seen:
            raise ValueError(f"Mesh: each device must stand once in a mesh; got {d!r} twice.")
        seen.add(d)


def make_mesh(
    axis_shapes: Sequence[int] = (),
    axis_names: str | Sequence[Any] = (),
    axis_types: tuple[AxisType, ...] | AxisType | None = None,
    *,
    devices: Sequence[Any] | None = None,
    axis_sizes: Sequence[int] | None = None,
) -> Mesh:
    """Return a mesh of devices with named axes.

    Args:
      axis_shapes: the size of each axis, a sequence of ints. Their product is the number of
        devices.
      axis_names: the name of each axis.
      axis_types: the `AxisType` of all axes, or one for each. None, the default, is Explicit.
      devices: the devices to use. None, the default, takes the first devices that exist.
      axis_sizes: another name of `axis_shapes`.

    Returns:
      A `Mesh`.

    Raises:
      ValueError: there are fewer devices, or the names do not fit the sizes.

    >>> make_mesh((1,), ("x",))
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))
    """
    axis_shapes = axis_shapes if axis_sizes is None else axis_sizes
    if isinstance(axis_shapes, int):
        axis_shapes = (axis_shapes,)
    try:
        shape = tuple(map(operator.index, axis_shapes))
    except TypeError:
        raise TypeError(f"make_mesh: axis_shapes must be integers; got {axis_shapes!r}.") from None
    names = check_axis_names("make_mesh", axis_names, len(shape), f"axis_shapes {shape}")
    if any(n < 1 for n in shape):
        raise ValueError(f"make_mesh: axis_shapes must be positive; got {shape}.")
    if devices is not None and np.ndim(devices) == 0:
        raise TypeError(f"make_mesh: devices must be a sequence of devices; got {devices!r}.")
    given = all_devices() if devices is None else tuple(devices)
    need = math.prod(shape)
    if need > len(given):
        raise device_count_error("make_mesh", "axis_shapes", shape, devices)
    types = AxisType.Explicit if axis_types is None else axis_types
    return Mesh(make_grid(given[:need]).reshape(shape), names, types)


def device_count_error(op: str, what: str, shape: tuple, devices: Any) -> ValueError:
    """The error for a mesh of more devices than were given, or exist where none were."""
    need, count = math.prod(shape), len(all_devices() if devices is None else devices)
    exist = "device exists" if count == 1 else "devices exist"
    have = f"{count} {exist}" if devices is None else f"devices has {count}"
    hint = more_devices_hint(need) if devices is None else f"pass {need} devices."
    return ValueError(
        f"{op}: {what} must not need more devices than there are; got {shape}, which need {need}, "
        f"and {have}. Hint: {hint}"
    )


# --- the mesh in scope ----------------------------------------------------------------------


EMPTY_ABSTRACT = AbstractMesh((), ())
EMPTY = Mesh._make(np.empty((0,), object), (), ())
EMPTY.axis_sizes = ()


class MeshScope(Scope):
    """A context manager: a mesh is in scope for this thread until the block ends.

    `entered` is the mesh of `with mesh:`. By default it is inherited from the scope around.
    """

    def __init__(
        self,
        concrete: Mesh | AbstractMesh,
        abstract: AbstractMesh | None = None,
        entered: Mesh | None = None,
    ):
        is_abstract = isinstance(concrete, AbstractMesh)
        abstract = concrete.abstract_mesh if abstract is None else abstract
        value = EMPTY if is_abstract else concrete, abstract, entered or get_entered_mesh()
        cell = mesh_in_scope
        super().__init__(lambda: [(cell.set_local, cell.get_local(), value)])


class set_mesh(MeshScope):
    """Put a mesh into scope for this thread: for good, or for the block `with set_mesh(mesh): ...`.

    With a mesh in scope, a `PartitionSpec` is accepted where a sharding is expected. It must not be
    called in a traced function.

    Args:
      mesh: a `Mesh`, or None for no mesh.

    Raises:
      ValueError: the argument is not a mesh.

    >>> with set_mesh(make_mesh((1,), ("x",))):
    ...     get_abstract_mesh().shape
    OrderedDict([('x', 1)])
    """

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh: must be given a Mesh or None; got {mesh!r} of type "
                f"{type(mesh).__name__}. Hint: weft.make_mesh(axis_shapes, axis_names)."
            )
        if not is_eager() and not config.disable_jit:
            raise ValueError(
                "set_mesh: must be called outside of traced functions; got a call within one. "
                "Hint: with set_mesh(mesh): f(x)."
            )
        super().__init__(EMPTY if mesh is None else mesh)
        super().__enter__()

    def __enter__(self) -> None:  # type: ignore[override]
        pass  # it holds since the call


def use_mesh(mesh: Mesh) -> MeshScope:
    """Put a mesh into scope for a block: `with use_mesh(mesh): ...`.

    Args:
      mesh: a `Mesh`.

    Returns:
      A context manager.

    >>> with use_mesh(make_mesh((1,), ("x",))):
    ...     get_mesh().axis_names
    ('x',)
    """
    if not isinstance(mesh, Mesh):
        raise ValueError(
            f"use_mesh: must be given a Mesh; got {mesh!r}. "
            "Hint: weft.make_mesh(axis_shapes, axis_names)."
        )
    return MeshScope(mesh)


def use_abstract_mesh(mesh: AbstractMesh) -> MeshScope:
    """Put mesh axes without devices into scope for a block.

    Args:
      mesh: an `AbstractMesh`.

    Returns:
      A context manager.

    >>> with use_abstract_mesh(AbstractMesh((4,), ("x",))):
    ...     get_abstract_mesh()
    AbstractMesh('x': 4, axis_types=(Auto,))
    """
    if not isinstance(mesh, AbstractMesh):
        raise ValueError(
            f"use_abstract_mesh: must be given an AbstractMesh; got {mesh!r}. "
            "Hint: mesh.abstract_mesh."
        )
    return MeshScope(get_mesh(), mesh)


def get_mesh() -> Mesh:
    """Return the mesh that `set_mesh` put into scope.

    Returns:
      A `Mesh`. It has no axes if there is none in scope.

    >>> get_mesh().empty
    True
    """
    value = mesh_in_scope.value
    return EMPTY if value is None else value[0]


def get_abstract_mesh() -> AbstractMesh:
    """Return the mesh axes in scope, without devices.

    Returns:
      An `AbstractMesh`. It has no axes without a mesh in scope.

    >>> get_abstract_mesh().empty
    True
    """
    value = mesh_in_scope.value
    return EMPTY_ABSTRACT if value is None else value[1]


def get_entered_mesh() -> Mesh:
    """Return the mesh of the innermost `with mesh:`, which specs are over and values not."""
    value = mesh_in_scope.value
    return EMPTY if value is None else value[2]
