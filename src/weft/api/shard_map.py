"""Programs over a mesh: `shard_map`, `with_sharding_constraint`, `reshard`.

The primitives are in parallel/shard_map.py and parallel/constraint.py; how `jit` runs over a mesh
is control/jit.py's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from operator import not_
from typing import Any

from weft.api.bodies import stage_body
from weft.api.functions import FlatFun, argument_origins, avals_of, check_callable, leaf_names
from weft.api.programs import programs_of
from weft.api.shardings import as_sharding, make_prefix
from weft.api.structures import broadcast_to_structure
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, Literal, Var
from weft.core.source import boundary, describe_maker
from weft.core.trace import Tracer
from weft.errors import ShapeError, ShardingTypeError
from weft.mesh.mesh import AbstractMesh, Mesh, get_abstract_mesh, get_entered_mesh, get_mesh
from weft.mesh.sharding import NamedSharding, sized_axes
from weft.mesh.spec import PartitionSpec, names_in_spec
from weft.mesh.typed import NO_NAMES
from weft.options import config, named_axes
from weft.parallel.constraint import constrain_values
from weft.parallel.parts import PartsLook, share_program, stage_looking, values_at_once
from weft.parallel.shard_map import count_parts, inner_aval, shard_map_p, sum_later
from weft.primitives.families import check_parameter, normalize_axis
from weft.primitives.varying import axes_of_varying
from weft.pytrees import PyTreeDef, broadcast_prefix, flatten, is_none, leaves, structure, unflatten
from weft.util import fun_name, merge, partition, select_masked, wraps
from weft.xla.array import ArrayImpl, put


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | None = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Run a function on every device of a mesh, each on its own part of the arguments.

    Within `f` the arrays are the parts, and the axes of the mesh are named axes: devices exchange
    values by `lax.psum(x, "data")` and the other collectives. It is compiled as one program, and
    differentiated and mapped as any function. Outside of `jit` and other transformations, `f` runs
    at each call: `print(x)` shows the values of all devices, a value that is the same on all
    devices may decide a branch in Python, and a debugger stops.

    Args:
      f: a function of pytrees of arrays. Without it, `shard_map(...)` is a decorator.
      in_specs: a pytree prefix of the arguments, of `PartitionSpec`s. `P("x", None)` gives each
        device its rows, and `P()` the whole array. A size must be a multiple of the axis that
        splits it. None in place of a spec passes an argument unchanged, which then need not be an
        array. Over explicit axes `in_specs` may be left out, since the types state it. If given, it
        must agree with them.
      out_specs: how the results of the devices form one array. `P("x")` joins them,
        and `P()` states that all devices have the same.
      mesh: the devices. By default it is the mesh that `set_mesh` put into scope, or the mesh of
        the arguments.
      axis_names: the axes that `f` is written for. The compiler splits over the others, which specs
        must not name. By default it is all axes. Axes of a `shard_map` around are left out.
      check_vma: if True, the default, the types state which values vary over which axes. Then
        results that `out_specs` declares equal are equal, and derivatives with respect to values
        that all devices share are summed over the devices. If False, a derivative that is taken
        within `f` is the one of the device's own part.

    Returns:
      A function of the arguments of `f`, in full, which returns the results in full.

    Raises:
      ValueError: a spec names an axis that the mesh does not have.

    >>> from weft import P
    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> total = weft.shard_map(
    ...     lambda x: lax.psum(jnp.sum(x), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    >>> print(total(jnp.arange(4.0)))
    6.0
    """
    settings = {"out_specs": out_specs, "in_specs": in_specs, "mesh": mesh}
    settings |= {"axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        return functools.partial(shard_map, **settings)
    check_callable("shard_map", f, wraps=True)

    @wraps(f)
    @boundary
    def on_devices(*args: Any) -> Any:
        used = mesh_for(mesh, args)
        manual = manual_axes(used, axis_names)
        params = {"mesh": used, "manual_axes": manual, "check_vma": bool(check_vma)}
        return bind_shard_map(f, args, in_specs, out_specs, params)

    return on_devices


class Infer:
    """The `in_axes` of `smap` that stands for what types say over explicit axes."""


def smap(
    f: Callable | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any
) -> Any:
    """Run a function on every device along one axis of the mesh in scope, each on its slice.

    It is `shard_map` with axes in place of specs.

    Args:
      f: a function of pytrees of arrays. Without it, `smap(...)` is a decorator.
      in_axes: the axis of each array that is split, or None for an array that every device has in
        full: one for all arguments, or a tuple with a pytree prefix for each. Over an explicit axis
        it may be left out, since the types state it.
      out_axes: the axis along which the results of the devices are joined, in the same form.
      axis_name: the axis of the mesh. The compiler splits over the others, or another `smap` within
        `f`.

    Returns:
      A function of the arguments of `f`, in full, which returns the results in full.

    >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
    ...     double = weft.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="x")
    ...     print(double(jnp.arange(3.0)))
    [0. 2. 4.]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    check_callable("smap", f, wraps=True)
    if isinstance(axis_name, tuple | list | set | frozenset):
        raise TypeError(f"smap: axis_name must be the name of one axis; got {axis_name!r}.")
    if in_axes is not Infer and not isinstance(in_axes, int | tuple | None):
        raise TypeError(
            "smap: in_axes must be an integer, None, or a tuple with an entry for each argument; "
            f"got {in_axes!r}. Hint: in_axes=0."
        )

    def make_specs(what: str, axes: Any, full: PyTreeDef, avals: Sequence[ShapedArray]) -> Any:
        names = (what, "the arguments" if what == "in_axes" else "the result")
        found = broadcast_to_structure(axes, full, is_none, op="smap", names=names)
        pairs = zip(found, avals, strict=True)
        specs = [
            PartitionSpec()
            if a is None
            else PartitionSpec(*[None] * normalize_axis("smap", a, aval.ndim), axis_name)
            for a, aval in pairs
        ]
        return unflatten(full, specs)

    @wraps(f)
    @boundary
    def on_slices(*args: Any) -> Any:
        mesh = mesh_for(None, args)
        params = {"mesh": mesh, "manual_axes": manual_axes(mesh, [axis_name]), "check_vma": True}
        flat, tree = flatten((args, {}))
        specs = None
        if in_axes is not Infer:
            specs = make_specs("in_axes", in_axes, structure(args), avals_of("smap", flat, tree, f))
        of_results = functools.partial(make_specs, "out_axes", out_axes)
        return bind_shard_map(f, args, specs, of_results, params)

    return on_slices


def bind_shard_map(f: Callable, args: tuple, in_specs: Any, out_specs: Any, params: dict) -> Any:
    """Stage a function at the types of the parts of its arguments, and bind the primitive.

    `out_specs` may be a function that gives them, of the result's structure and types.
    """
    flat, tree = flatten((args, {}))
    programs = programs_of(f)
    if in_specs is not None:
        specs = broadcast_specs("in_specs", in_specs, structure(args), params)
        if None in specs:
            passed = [s is None for s in specs]
            specs = select_masked(specs, list(map(not_, passed)))
            f, flat, tree = close_over(f, flat, tree, passed)
    avals = avals_of("shard_map", flat, tree, f)
    names = functools.partial(argument_origins, f, tree)
    if in_specs is None:
        specs = infer_specs(f, avals, params)
    else:
        check_in_specs(f, avals, specs, params)
    inner = part_avals(avals, specs, names, params)
    if not config.no_tracing and (values := values_at_once(flat)) is not None:
        fun = FlatFun(f, tree, "shard_map")
        look = PartsLook(values, specs, params, programs)
        with shard_map_p.scope(params):
            jaxpr, consts = stage_looking(fun, inner, fun_name(f), names, look)
        jaxpr, out_tree = share_program(programs, jaxpr), fun.out_tree
    else:
        with shard_map_p.scope(params):
            args_tree = tree.children()[0]
            jaxpr, consts, out_tree, _ = stage_body("shard_map", f, args_tree, inner)
    if callable(out_specs):
        out_specs = out_specs(out_tree, jaxpr.out_avals)
    of_results = broadcast_specs("out_specs", out_specs, out_tree, params)
    if params["check_vma"] and any(s.unreduced for s in of_results):
        with shard_map_p.scope(params):
            jaxpr = sum_later(jaxpr, tuple(tuple(sorted(s.unreduced)) for s in of_results))
    check_out_specs(f, jaxpr, of_results, out_tree, len(consts), names, params)
    given = (*[PartitionSpec()] * len(consts), *specs)
    outs = shard_map_p.apply(
        *consts, *flat, jaxpr=jaxpr, in_specs=given, out_specs=tuple(of_results), **params
    )
    if set(params["manual_axes"]) == set(params["mesh"].axis_names):
        outs = [show_spec(x, params["mesh"], s) for x, s in zip(outs, of_results, strict=True)]
    return unflatten(out_tree, outs)


def close_over(
    f: Callable, flat: Sequence[Any], tree: PyTreeDef, passed: Sequence[bool]
) -> tuple[Callable, list, PyTreeDef]:
    """Return a function of the leaves that are not `passed` unchanged, those leaves, their tree.

    `flat` and `tree` are the arguments of `f` and no keywords.
    """
    split, objects = partition(passed, flat)

    @wraps(f)
    def closed(*split: Any) -> Any:
        args, _ = unflatten(tree, merge(passed, split, objects))
        return f(*args)

    closed.__dict__.pop("__wrapped__")  # its parameters are others
    return closed, split, flatten((tuple(split), {}))[1]


def show_spec(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """Return an eager result with the spec as the user wrote it: XLA drops Nones at the end.

    A program over several meshes may have returned it with another sharding.
    """
    if type(x) is not ArrayImpl or getattr(x.sharding, "spec", None) == spec:
        return x
    sharding = NamedSharding(mesh, spec)
    if not spec.unreduced and not x.sharding.is_equivalent_to(sharding, x.ndim):
        return put(x, sharding, committed=True)
    return x._rewrap_with_aval_and_sharding(x.aval, sharding)


def mesh_for(mesh: Any, args: Any) -> Any:
    """Return the given mesh, or else the mesh in scope, or else the mesh of the arguments."""
    found = next((m for m in meshes_around(args) if mesh is None or fits_mesh(m, mesh)), mesh)
    if isinstance(found, AbstractMesh) and not found.empty:
        return found
    mesh = found
    if not isinstance(mesh, Mesh) or mesh.empty:
        raise ValueError(
            f"shard_map: needs a mesh of devices; got {mesh!r}, and "
            f"{'none' if get_mesh().empty else get_mesh()} in scope. "
            "Hint: shard_map(f, mesh=weft.make_mesh((4,), ('x',)), ...), or weft.set_mesh(mesh)."
        )
    return mesh


def meshes_around(args: Any) -> Iterator[Any]:
    """Return the meshes in scope, and the meshes of the arguments."""
    yield from (m for m in (get_mesh(), get_abstract_mesh(), get_entered_mesh()) if not m.empty)
    for x in leaves(args):
        of_type = getattr(getattr(x, "aval", None), "sharded", None)
        found = (getattr(s, "mesh", None) for s in (getattr(x, "sharding", None), of_type))
        yield from filter(None, found)


def fits_mesh(found: Any, given: Any) -> bool:
    """Return True if a mesh in scope replaces the given one: the same axes, of these types."""
    if isinstance(given, AbstractMesh):
        return found.shape == given.shape
    here = found.manual_axes and isinstance(given, Mesh) and found.shape == given.shape
    return bool(here and getattr(found, "_device_assignment", None) == given._device_assignment)


def manual_axes(mesh: Mesh, axis_names: Any) -> tuple:
    """The axes of the mesh that a function is written for."""
    read = lambda x: dict.fromkeys((x,) if isinstance(x, str) else x)
    names = check_parameter("shard_map", "axis_names", axis_names, "names of mesh axes", read)
    unknown = [n for n in names if n not in mesh.axis_names]
    if unknown:
        raise ValueError(
            f"shard_map: axis_names must be axes of the mesh; got {unknown[0]!r}, and "
            f"{mesh.axis_names} are in it."
        )
    taken = {axis.name for axis in named_axes.value if axis.tracked}.union(mesh.manual_axes)
    return tuple(n for n in mesh.axis_names if n not in taken and (not names or n in names))


def broadcast_specs(what: str, specs: Any, full: PyTreeDef, params: dict) -> list:
    """Return the spec of each leaf of a pytree; `specs` is a prefix of the pytree."""
    if isinstance(specs, list) and full.node_data() == (tuple, None):
        specs = tuple(specs)
    mesh, manual = params["mesh"], params["manual_axes"]
    is_spec = lambda x: x is None or isinstance(x, PartitionSpec)
    whole = "the arguments" if what == "in_specs" else "the result"
    found = broadcast_to_structure(specs, full, is_spec, op="shard_map", names=(what, whole))
    for spec in found:
        if spec is None and what == "in_specs":
            continue
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map: {what} must hold a PartitionSpec for each array; got {spec!r} of type "
                f"{type(spec).__name__}. Hint: P() where all devices have all of it."
            )
        bad = [n for n in names_in_spec(spec) if n not in manual]
        if bad:
            known = ", ".join(f"{n!r}" for n in mesh.axis_names if n in manual)
            known = known or "none, since a shard_map around is for them"
            raise ValueError(
                f"shard_map: {what} must name axes of the mesh that the function is for; got "
                f"{bad[0]!r} in {spec} where those are {known}."
            )
    return found


def spec_of_type(aval: ShapedArray, names: Sequence) -> PartitionSpec:
    """Return the layout over the axes `names` that the type of an argument states."""
    lies = aval.sharded
    if lies is None:
        return PartitionSpec()
    entries = [tuple(n for n in entry if n in names) or None for entry in lies.entries]
    kinds = {k: frozenset(names) & getattr(lies, k) for k in ("unreduced", "reduced")}
    return PartitionSpec(*entries, **kinds)


def infer_specs(f: Callable, avals: Sequence[ShapedArray], params: dict) -> list[PartitionSpec]:
    """The specs of arguments that their types say, over explicit axes."""
    mesh, manual = params["mesh"], params["manual_axes"]
    open_axes = [n for n in manual if n not in mesh.explicit_axes]
    if open_axes and avals:
        raise TypeError(
            "shard_map: in_specs must be given where types do not say how arguments lie, along "
            f"axes that are not explicit; got none for {fun_name(f)} over {open_axes[0]!r} of "
            f"{mesh}. Hint: in_specs=P({open_axes[0]!r}), or P() where all devices have all of it."
        )
    return [spec_of_type(a, manual) for a in avals]


def check_in_specs(
    f: Callable, avals: Sequence[ShapedArray], specs: Sequence[PartitionSpec], params: dict
) -> None:
    """Raise if an argument is split in another way than its spec says.

    An argument that is not split may be split, since that takes no communication.
    """
    explicit = [n for n in params["manual_axes"] if n in params["mesh"].explicit_axes]
    for aval, spec in zip(avals, specs, strict=True):
        for n in (*spec.unreduced, *spec.reduced):
            if n not in explicit:
                raise ShardingTypeError(
                    "shard_map: in_specs must name explicit axes of the mesh in unreduced and "
                    f"reduced; got {n!r} in {spec} over {params['mesh']}."
                )
        if aval.sharded is None and not (spec.unreduced or spec.reduced):
            continue
        have, only = spec_of_type(aval, explicit), lambda names: [n for n in names if n in explicit]
        pairs: list[tuple] = [(have.axes(i), tuple(only(spec.axes(i)))) for i in range(aval.ndim)]
        pairs += [(have.unreduced, spec.unreduced), (have.reduced, spec.reduced)]
        if any(a != b for a, b in pairs):
            raise ShardingTypeError(
                f"shard_map: in_specs must be how arguments lie over explicit axes; got {spec} for "
                f"{aval} in the call of {fun_name(f)}. Hint: leave in_specs out, or call it with "
                f"weft.reshard(x, {spec})."
            )


def part_avals(
    avals: Sequence[ShapedArray], specs: Sequence[PartitionSpec], names: Any, params: dict
) -> list[ShapedArray]:
    """The types of the parts of arguments that a device has, or an error which names one."""
    mesh, manual, tracked = params["mesh"], params["manual_axes"], params["check_vma"]
    for i, (aval, spec) in enumerate(zip(avals, specs, strict=True)):
        if len(spec) > aval.ndim:
            raise ShapeError(
                f"shard_map: a spec must not have more entries than the array has axes; got {spec} "
                f"for {aval} {names()[i]}."
            )
        for d, size in enumerate(aval.shape):
            count = count_parts(mesh, spec, d, manual)
            if size % count:
                raise ShapeError(
                    f"shard_map: sizes must be multiples of the mesh axes that split them; got "
                    f"{size} in axis {d} of {aval}, split over "
                    f"{sized_axes(mesh, spec.axes(d))} by {spec}, {names()[i]}. Hint: pad it to "
                    f"{-(-size // count) * count}."
                )
        for entry in () if aval.sharded is None else aval.sharded.entries:
            kinds = [n in manual for n in entry]
            if kinds != sorted(kinds, reverse=True):
                raise ShardingTypeError(
                    "shard_map: axes that the function is for must split an array's axis before "
                    f"others; got {aval} {names()[i]} for a function over {manual}. Hint: "
                    "weft.reshard(x, ...) with these in front, or axis_names with all of them."
                )
    with shard_map_p.scope(params):
        return [inner_aval(a, mesh, s, manual, tracked) for a, s in zip(avals, specs, strict=True)]


# --- what out_specs promise -----------------------------------------------------------------


def check_out_specs(
    f: Callable,
    jaxpr: Jaxpr,
    specs: Sequence[PartitionSpec],
    out_tree: PyTreeDef,
    n_consts: int,
    names: Any,
    params: dict,
) -> None:
    """Raise where a result has too few axes for its spec, or differs where it must not."""
    manual = params["manual_axes"]
    for i, (aval, spec) in enumerate(zip(jaxpr.out_avals, specs, strict=True)):
        where = f"{leaf_names('result', out_tree)[i]} of {fun_name(f)}"
        if len(spec) > aval.ndim:
            raise ShapeError(
                f"shard_map: a spec must not have more entries than the array has axes; got {spec} "
                f"for {aval}, {where}. Hint: return x[None] to give it an axis, or P() where all "
                "devices have the same."
            )
        if params["check_vma"]:
            check_out_kinds(aval, spec, where, params)
        over = [
            n for n in axes_of_varying(aval.varying) if n in manual and n not in names_in_spec(spec)
        ]
        if over:
            listed = ", ".join(map(repr, over))
            raise ValueError(
                f"shard_map: out_specs must name the axes along which a result differs between "
                f"devices; got {spec} for {aval}, {where}, which differs along {listed}: "
                f"{explain_varying(jaxpr, jaxpr.outvars[i], over[0], n_consts, names)}. Hint: "
                f"P({over[0]!r}) to have all of them, lax.psum(x, {over[0]!r}) to add them up, or "
                "check_vma=False if they are the same."
            )


def check_out_kinds(aval: ShapedArray, spec: PartitionSpec, where: str, params: dict) -> None:
    """Raise where a result is not unreduced or reduced as its spec says."""
    manual, mesh = params["manual_axes"], params["mesh"]
    for kind in ("unreduced", "reduced"):
        said = frozenset(getattr(spec, kind))
        found = getattr(aval.sharded, kind, NO_NAMES) & {*manual}
        if said == found and all(n in mesh.explicit_axes for n in said):
            continue
        over = next(iter((said ^ found) or said))
        fix = f"lax.pcast(x, {over!r}, to={kind!r})" if said else f"P({kind}={{{over!r}}})"
        if kind == "unreduced" and not said:
            fix = f"lax.psum(x, {over!r}), or {fix}"
        raise ShardingTypeError(
            f"shard_map: out_specs must say along which explicit axes a result is {kind}; got "
            f"{spec} for {aval}, {where}, over {mesh}. Hint: {fix}."
        )


def explain_varying(jaxpr: Jaxpr, atom: Any, name: Any, n_consts: int, names: Any) -> str:
    """Explain why a value differs along an axis: the result, and the first such value."""
    if isinstance(atom, Literal):
        return "it is a constant"
    makers = {v: e for e in jaxpr.eqns for v in e.outvars}
    eqn = makers.get(atom)
    made = "" if eqn is None else f"{describe_maker(eqn.source, eqn.primitive.name)} of "
    first = next((v for v in iter_sources(atom, makers, name) if v not in makers), None)
    if first is None:
        return f"{made}what `axis_index` gave"
    place = next(i for i, v in enumerate(jaxpr.invars) if v is first) - n_consts
    if place < 0:
        return f"{made}a value that it closes over"
    return f"{made}{names()[place]}, which in_specs split over {name!r}"


def iter_sources(atom: Var, makers: dict, name: Any) -> Iterator[Var]:
    """A variable and those that it is made of, as far as they differ along an axis."""
    seen, todo = {atom}, [atom]
    while todo:
        var = todo.pop()
        yield var
        eqn = makers.get(var)
        for a in () if eqn is None else eqn.invars:
            if isinstance(a, Var) and a not in seen and name in axes_of_varying(a.aval.varying):
                seen.add(a)
                todo.append(a)


# --- constraints ----------------------------------------------------------------------------


@boundary
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Give arrays within a compiled program the shardings that are wanted.

    Along automatic axes of a mesh the compiler plans the rest of the program, and the
    communication, around the constraint. Along explicit axes the arrays must have these shardings
    already; `reshard` changes them. The cotangents get the same shardings.

    Args:
      x: a pytree of arrays.
      shardings: a pytree of shardings that is a prefix of `x`. A `PartitionSpec` stands for a
        sharding over the mesh in scope.

    Returns:
      The same arrays, with the shardings.

    >>> mesh = weft.make_mesh((1,), ("x",), weft.sharding.AxisType.Auto)
    >>> s = weft.NamedSharding(mesh, weft.P("x"))
    >>> twice = weft.jit(lambda x: with_sharding_constraint(x * 2, s))
    >>> twice(jnp.arange(3.0)).sharding.mesh is mesh
    True
    """
    return constrain_tree("with_sharding_constraint", "shardings", x, shardings)


@boundary
def reshard(xs: Any, out_shardings: Any) -> Any:
    """Return arrays with other shardings.

    Over explicit axes of a mesh, the types of the results state the shardings.

    Args:
      xs: a pytree of arrays.
      out_shardings: a pytree prefix of shardings, or of specs over the mesh in scope.

    Returns:
      A pytree of arrays of the same values.

    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> reshard(jnp.arange(3.0), weft.NamedSharding(mesh, weft.P("x"))).sharding.spec
    P('x',)
    """
    return constrain_tree("reshard", "out_shardings", xs, out_shardings)


def constrain_tree(op: str, what: str, x: Any, shardings: Any) -> Any:
    """A pytree of values with the shardings that the argument `what` of `op` says."""
    flat, tree = flatten(x)
    avals_of(op, flat, flatten(((x,), {}))[1], lambda x: x)
    make_prefix(op, what, shardings)
    targets = broadcast_prefix(shardings, x, is_none, op=op, names=(what, "x"))
    places = [as_sharding(op, what, s, x) for s, x in zip(targets, flat, strict=True)]
    made = constrain_values(flat, places)
    if op == "with_sharding_constraint":
        for x, y, s in zip(flat, made, places, strict=True):
            explicit = isinstance(s, NamedSharding) and s.mesh.explicit_axes
            if explicit and isinstance(x, Tracer) and typeof(x).sharded is not typeof(y).sharded:
                raise ShardingTypeError(
                    f"{op}: along explicit axes of a mesh a value must lie so already; got "
                    f"{typeof(x)} for {s.spec}. Hint: weft.reshard(x, {s.spec})."
                )
    return unflatten(tree, made)
