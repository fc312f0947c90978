"""The parameters of equations as text that reads back, and the values that names in it stand for.

Names may stand for dtypes, the primitives, enumerations and named tuples of weft's modules, meshes,
shardings, checkpoint policies, and the values that the caller of `parse` names. Nothing else is
looked up, and only the constructors of these are called.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import math
import pkgutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft.control
import weft.parallel
import weft.primitives
import weft.scipy.special
from weft import checkpoint_policies, dtypes
from weft.core.aval import X32, ShapedArray, typeof
from weft.core.primitive import Effect, Primitive, Program
from weft.core.ref import AbstractRef
from weft.errors import DtypeError
from weft.jaxpr import syntax
from weft.mesh.client import all_devices
from weft.mesh.mesh import AbstractMesh, AxisType, BaseMesh, Mesh, get_abstract_mesh
from weft.mesh.sharding import NamedSharding, SingleDeviceSharding
from weft.mesh.spec import UNCONSTRAINED, PartitionSpec
from weft.mesh.typed import Sharded, kind_of_mesh
from weft.numpy.index_plans import Sliding
from weft.numpy.refs import Nested, Places
from weft.passes.budget import Budget
from weft.passes.holes import Hole
from weft.primitives.constant import Held
from weft.primitives.refs import WHOLE, Whole
from weft.primitives.varying import Varying
from weft.random.keys import IMPLS, KeyDtype
from weft.util import fun_name
from weft.xla.foreign import Attribute

# Parameters that hold Python functions: a bare name there is of one, and the text does not hold it.
_FUNCTIONS = frozenset(("bwd", "callback", "fun", "fwd", "jvp", "policy", "rule"))
# The types of numbers without one in print; Python's numbers, which are weak.
PLAIN = X32
_PACKAGES = (weft.primitives, weft.control, weft.parallel)
# Modules of further primitives, imported if a text names an unknown primitive, as are the modules
# of weft.scipy.special.
_OTHERS = ("weft.api.ffi_call", "weft.nn.attention")


@functools.cache
def import_primitives() -> None:
    """Import the modules that define the primitives of most programs."""
    for package in _PACKAGES:
        import_modules(package)


@functools.cache
def import_other_primitives() -> None:
    """Import the modules that define all other primitives."""
    for name in _OTHERS:
        importlib.import_module(name)
    import_modules(weft.scipy.special)


def import_modules(package: Any) -> None:
    """Import the modules of a package."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


@functools.cache
def index_primitives() -> dict[str, dict[str, Primitive]]:
    """Return weft's primitives by name; for each name, by the globals that hold them."""
    import_primitives()
    return collect_primitives("weft.")


def collect_primitives(prefix: str) -> dict[str, dict[str, Primitive]]:
    """The primitives that are globals of modules whose names begin so."""
    found: dict[str, dict[str, Primitive]] = {}
    for module, x in list(sys.modules.items()):
        if x is not None and module.startswith(prefix):
            for key, value in list(getattr(x, "__dict__", {}).items()):
                if isinstance(value, Primitive):
                    found.setdefault(value.name, {}).setdefault(key, value)
    return found


def find_primitives(name: str, samples: bool = False) -> list[Primitive]:
    """Return the primitives of a name: weft's or, if weft has none, any module's.

    `name@key` is the primitive in the global `key`. `samples`: the text draws random numbers, so
    that it has the erf_inv and log1p with which weft.random computes samples.
    """
    name, _, key = name.partition("@")
    found = index_primitives().get(name) or collect_primitives("").get(name, {})
    if not found:
        import_other_primitives()
        found = collect_primitives("").get(name, {})
    keys = sorted(found, key=lambda k: k.startswith("fast_") != samples)
    distinct = {id(found[k]): found[k] for k in keys if not key or k == key}
    return list(distinct.values())


def primitive_text(prim: Primitive) -> str:
    """Return the name of a primitive, with its global if another primitive has the same name.

    weft.random computes samples with an erf_inv of its own, and an ordered callback is an instance
    of its own.
    """
    found = index_primitives().get(prim.name, {})
    if len({id(p) for p in found.values()}) < 2:
        return prim.name
    return next((f"{prim.name}@{k}" for k, p in found.items() if p is prim), prim.name)


@functools.cache
def list_classes() -> dict[str, type]:
    """The enumerations, named tuples and effects of the modules that define primitives."""
    import_primitives()
    found: dict[str, type] = {"AxisType": AxisType}
    for name, module in list(sys.modules.items()):
        if name.startswith(tuple(p.__name__ for p in _PACKAGES)):
            for x in list(vars(module).values()):
                if isinstance(x, type) and (issubclass(x, enum.Enum | Effect) or is_record(x)):
                    found[x.__name__] = x
    return found


def is_record(cls: type) -> bool:
    """Return True if a class is made of its fields: a named tuple or a dataclass."""
    return (issubclass(cls, tuple) and hasattr(cls, "_fields")) or dataclasses.is_dataclass(cls)


def read_dtype(name: str) -> Any:
    """The dtype that types call `name`, as f32 or key<fry>; None where none is called so."""
    for impl in IMPLS.values():
        if impl.name == name:
            return impl
    try:
        return dtypes.from_short_name(name)
    except DtypeError:
        return None


def read_type(kind: syntax.Type, text: syntax.Text) -> Any:
    """The type that is written so."""
    dtype = read_dtype(kind.dtype)
    if dtype is None:
        raise text.error("a type must begin with a dtype, such as f32 or bf16", kind.pos)
    lies, varying = None, Varying.of(kind.kinds.get("V", ()))
    of_sums = kind.kinds.get("U", ()), kind.kinds.get("R", ())
    if any((*kind.entries, *of_sums)):
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise text.error(
                "a type split over a mesh needs that in scope, with weft.sharding.use_mesh(mesh)",
                kind.pos,
            )
        lies = Sharded.of(kind_of_mesh(mesh), kind.entries, *of_sums)
    aval = ShapedArray(kind.shape, dtype, kind.weak, varying, lies)
    return AbstractRef(aval) if kind.reference else aval


def read_index(index: syntax.Index, arrays: Sequence[ShapedArray]) -> Whole:
    """The index of a reference, given the types of the arrays in it."""
    given = iter(arrays)
    found: list[Whole] = []
    for step in index.steps:
        key: list[Any] = []
        for e in step:
            aval = next(given) if type(e) in (syntax.Atom, syntax.Window) else None
            key.append(Sliding(e.count, e.step) if type(e) is syntax.Window else aval or e)
        while key and key[-1] == (None, None, None):
            key.pop()
        found.append(WHOLE if key == [Ellipsis] else Places(tuple(key)))
    if len(found) == 1:
        return found[0]
    counts = [len(syntax.Index([step]).arrays) for step in index.steps]
    return Nested(tuple(found), tuple(counts))


def read_literal(value: Any, aval: ShapedArray | None) -> tuple[Any, ShapedArray]:
    """The value and the type of a number; one with a type that is not weak is NumPy's."""
    if aval is None:
        return value, PLAIN[type(value)]
    if aval.dtype == dtypes.float0:
        return np.zeros((), aval.dtype)[()], aval
    return value if aval.weak_type else aval.dtype.type(value), aval


class Values:
    """Reads parameters. `names` defines names in the text; `arrays` are a file's arrays."""

    def __init__(self, text: syntax.Text, names: dict[str, Any], arrays: list | None = None):
        self.text = text
        self.names = names
        self.arrays = arrays

    def read(self, x: Any, key: str) -> Any:
        """The value of a parameter, or of a part of one; programs are read by the caller."""
        kind = type(x)
        if kind is syntax.Word:
            return self.word(x.text, key)
        if kind is syntax.FreeText:
            return self.function(x.text) if key in _FUNCTIONS else x.text
        if kind is syntax.HoleText:
            return self.hole(x)
        if kind is syntax.Type:
            return read_type(x, self.text)
        if kind is syntax.Atom:
            value, aval = read_literal(x.value, read_type(x.type, self.text))
            return aval.dtype.type(value)
        if kind is syntax.Call:
            return self.call(x, key)
        if kind is tuple:
            return tuple([self.read(i, key) for i in x])
        return x

    def word(self, name: str, key: str) -> Any:
        """Return the value of a bare name; the name itself if it has none."""
        if name in self.names:
            return self.names[name]
        if key == "policy" and name in checkpoint_policies.__all__:
            return getattr(checkpoint_policies, name)
        if key in _FUNCTIONS:
            return self.function(name)
        if key.endswith("prim") and name in index_primitives():
            return find_primitives(name)[0]
        first, _, member = name.partition(".")
        found = list_classes().get(first)
        if found is not None and issubclass(found, enum.Enum) and member in found.__members__:
            return found[member]
        if name in AxisType.__members__:
            return AxisType[name]
        if name == "UNCONSTRAINED":
            return UNCONSTRAINED
        try:
            found = dtypes.float0 if name == "float0" else np.dtype(name)
        except TypeError:
            return name
        return found if found.name == name or name == "float0" else name  # NumPy takes "i" too

    def function(self, name: str) -> Any:
        return self.names.get(name) or Hole("function", name)

    def hole(self, x: syntax.HoleText) -> Any:
        if x.kind == "array":
            number, _, kind = x.name.partition(":")
            if self.arrays is not None:
                return Held(self.arrays[int(number)])
            found = syntax.Text(kind).type()
            return Held(Hole("array", "", found and read_type(found, self.text)))
        return self.names.get(x.name) or Hole(x.kind, x.name)

    def call(self, x: syntax.Call, key: str) -> Any:
        """The value of `Name(...)`; a hole where that is not a value that text can hold."""
        args = [self.read(i, key) for i in x.args]
        kwargs = {k: self.read(v, k if isinstance(k, str) else key) for k, v in x.kwargs.items()}
        make = getattr(self, f"make_{x.name.lower()}", None)
        if x.name.startswith("np."):
            make, args = self.make_np, [x.name[3:], *args]
        found = list_classes().get(x.name) or self.names.get(x.name)
        try:
            if make is not None:
                return make(*args, **kwargs)
            if isinstance(found, type) and is_record(found):
                return found(*args, **kwargs)
            if key == "policy" and x.name in checkpoint_policies.__all__:
                return getattr(checkpoint_policies, x.name)(*args, **kwargs)
            if key == "policy" and x.name == "budget":
                return Budget(*args)
        except (TypeError, ValueError) as error:
            raise self.text.error(
                f"{x.name} must have the arguments that it takes; got {error}", x.pos
            ) from error
        return self.function(x.name)

    # What is printed as a call, by the name of it in small letters.

    def make_np(self, kind: str, value: Any) -> Any:
        """`np.int64(3)`, as NumPy's scalars are printed: the number."""
        return value if np.dtype(kind).kind in "iufb" else None

    def make_p(self, *entries: Any, unreduced: Any = (), reduced: Any = ()) -> PartitionSpec:
        sets = frozenset(unreduced), frozenset(reduced)
        return PartitionSpec(*entries, unreduced=sets[0], reduced=sets[1])

    def make_frozenset(self, items: Any = ()) -> frozenset:
        return frozenset(items)

    def make_shapedarray(self, aval: ShapedArray, weak_type: bool = False) -> ShapedArray:
        return aval.update(weak_type=weak_type)

    def make_namedsharding(self, mesh: Any, spec: Any, memory_kind: Any = None) -> NamedSharding:
        return NamedSharding(mesh, spec, memory_kind=memory_kind)

    def make_singledevicesharding(self, device: Any, memory_kind: Any = None) -> Any:
        return SingleDeviceSharding(device, memory_kind=memory_kind)

    def make_cpudevice(self, id: int) -> Any:
        return next(d for d in all_devices() if d.id == id)

    make_cudadevice = make_tpudevice = make_cpudevice

    def make_abstractmesh(self, axis_types: Any = (), **sizes: int) -> AbstractMesh:
        return AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=axis_types)

    def make_mesh(self, axis_types: Any = (), device_ids: Any = None, **sizes: int) -> BaseMesh:
        """The mesh among `names` that is printed so, else one of the first devices.

        Abstract where there are too few of them: such a program can be read, and not run.
        """
        abstract = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=axis_types)
        for given in self.names.values():
            if isinstance(given, Mesh) and given.abstract_mesh == abstract:
                return given
        here, count = all_devices(), math.prod(sizes.values())
        places = range(count) if device_ids is None else device_ids
        by_id = {d.id: d for d in here} if device_ids is not None else dict(enumerate(here))
        if not all(i in by_id for i in places):
            return abstract
        grid = np.empty(count, object)
        grid[:] = [by_id[i] for i in places]
        return Mesh(grid.reshape(tuple(sizes.values())), tuple(sizes), axis_types=axis_types)


# --- the same as text --------------------------------------------------------------------------


class Writer:
    """Writes parameters such that they read back; arrays are put into `arrays`, if that is a list.

    `print_program` gives the text of a program.
    """

    def __init__(self, print_program: Callable[[Any], str], arrays: list | None):
        self.print_program = print_program
        self.arrays = arrays

    def text(self, x: Any) -> str:
        """A parameter, or a part of one, on one line."""
        if isinstance(x, enum.Enum):
            return f"{type(x).__name__}.{x.name}"
        if isinstance(x, np.generic):
            return f"{x}:{ShapedArray((), x.dtype)}"
        if x is None or isinstance(x, bool | int | float | complex | str):
            return repr(x)
        if isinstance(x, ShapedArray | AbstractRef):
            return type_text(x)
        if isinstance(x, KeyDtype):
            return x.name
        if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
            return "float0" if x == dtypes.float0 else np.dtype(x).name
        if isinstance(x, Program):
            return self.print_program(x)
        if is_record(type(x)) and not callable(x):
            names = getattr(x, "_fields", None) or [f.name for f in dataclasses.fields(x)]
            fields = [f"{name}={self.text(getattr(x, name))}" for name in names]
            return f"{type(x).__name__}({', '.join(fields)})"
        if isinstance(x, tuple | list):
            items = ", ".join(map(self.text, x))
            return f"({items},)" if len(x) == 1 else f"({items})"
        if isinstance(x, frozenset):
            return f"{{{', '.join(sorted(map(self.text, x)))}}}"
        return self.object_text(x)

    def object_text(self, x: Any) -> str:
        """Write a value that is neither a number nor a container."""
        if isinstance(x, Held):
            return self.array_text(x.value)
        if isinstance(x, Attribute):
            return self.text(x.value)
        if isinstance(x, Mesh) and not x.empty:
            ids = tuple(int(i) for i in x.device_ids.ravel())
            return f"{str(x)[:-1]}, device_ids={ids})"
        if isinstance(x, NamedSharding):
            kind = f", memory_kind={x.memory_kind!r}" if x.memory_kind else ""
            return f"NamedSharding(mesh={self.text(x.mesh)}, spec={x.spec}{kind})"
        if isinstance(x, AbstractMesh | Budget | PartitionSpec | Hole | Primitive):
            return repr(x)
        if type(x).__module__ == "weft.checkpoint_policies":
            return repr(x)
        if hasattr(x, "frames"):  # where something was written, which only this process knows
            return "None"
        name = fun_name(x)
        if getattr(checkpoint_policies, name, None) is x:
            return name
        return f"<function {name}>" if callable(x) else repr(str(x))

    def array_text(self, x: Any) -> str:
        """An array that the text does not hold."""
        if type(x) is Hole:
            return f"<array {x.__name__ or '?'}:{type_text(x.aval)}>"
        number = "?" if self.arrays is None else len(self.arrays)
        if self.arrays is not None:
            self.arrays.append(x)
        return f"<array {number}:{type_text(typeof(x))}>"


def type_text(aval: ShapedArray) -> str:
    """A type with all that it says: a tilde in front of a weak one."""
    return f"{'~' if aval.weak_type else ''}{aval.str_short(True)}"
