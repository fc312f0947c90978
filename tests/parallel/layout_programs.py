"""Small programs over a mesh of eight devices, and the shardings of their results.

The module imports neither weft nor JAX: `programs(jax)` takes either. With JAX 0.10.2,

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python tests/parallel/layout_programs.py

writes JAX's answers to tests/golden/layouts.json, with which on8/test_layouts.py compares.
"""

import contextlib
import itertools
import json
import sys
import warnings
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent.parent / "golden" / "layouts.json"
ROWS = np.arange(64, dtype=np.float32).reshape(8, 8) / 64


def describe(jax, value):
    """The types, shardings and checksums of arrays."""
    leaves = jax.tree_util.tree_leaves(value)
    return "; ".join(describe_array(jax, y) if hasattr(y, "sharding") else repr(y) for y in leaves)


def describe_array(jax, y):
    aval = jax.typeof(y)
    weak = "~" if aval.weak_type else ""
    text = f"{weak}{aval.dtype}{[*aval.shape]}"
    if any(aval.sharding.spec) or aval.sharding.spec.unreduced or aval.sharding.spec.reduced:
        text += f" as {aval.sharding.spec}"
    if hasattr(y.sharding, "mesh"):
        mesh = y.sharding.mesh
        text += f", {y.sharding.spec} over {mesh.axis_names} {mesh.axis_types}"
    else:
        text += f", on {sorted(d.id for d in y.sharding.device_set)}"
    text += "" if y.committed else ", free"
    if y.sharding.memory_kind and "key" not in str(y.dtype) and not aval.sharding.spec.unreduced:
        host = np.asarray(y, np.float64)
        weights = np.cos(np.arange(host.size)).reshape(host.shape)
        text += f" = {(host * weights).sum():.3f}"
    return text


def answer(jax, program):
    """Return a program's result as text; "error" for any error."""
    try:
        return describe(jax, program())
    except Exception:
        return "error"


def meshes(jax):
    """Meshes of the same devices: explicit, automatic, both, of other axes, of some devices."""
    kind = jax.sharding.AxisType
    make = lambda shape, names, *types: jax.make_mesh(shape, names, types)
    return {
        "explicit": make((4, 2), ("x", "y"), kind.Explicit, kind.Explicit),
        "auto": make((4, 2), ("x", "y"), kind.Auto, kind.Auto),
        "mixed": make((4, 2), ("x", "y"), kind.Explicit, kind.Auto),
        "other": make((2, 4), ("a", "b"), kind.Auto, kind.Auto),
        "half": make((4,), ("x",), kind.Auto),
    }


def programs(jax):
    """The programs by name: functions of no arguments."""
    found = {}
    for group in (creation, likes, views, slices, kinds, retyped, several, objects, entered):
        found |= {f"{group.__name__}: {name}": run for name, run in group(jax, meshes(jax)).items()}
    return found


def within(scope, run):
    """`run`, in the scope that `scope()` makes."""

    def program():
        with scope():
            return run()

    return program


def put(jax, mesh, *spec, x=ROWS, **kinds):
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P(*spec, **kinds)))


def creation(jax, mesh):
    """New arrays with the default placement, a device, a sharding or a spec."""
    jnp, lax, random = jax.numpy, jax.lax, jax.random
    key = lambda: random.key(0)
    makers = {
        "zeros": lambda **k: jnp.zeros((8, 4), **k),
        "ones": lambda **k: jnp.ones((8, 4), **k),
        "full": lambda **k: jnp.full((8, 4), 2.0, **k),
        "full of array": lambda **k: jnp.full((8, 4), np.arange(4.0), **k),
        "asarray": lambda **k: jnp.asarray(ROWS, **k),
        "arange": lambda **k: jnp.arange(8, **k),
        "arange by halves": lambda **k: jnp.arange(0, 4, 0.5, **k),
        "eye": lambda **k: jnp.eye(8, **k),
        "linspace": lambda **k: jnp.linspace(0, 1, 8, **k),
        "tri": lambda **k: jnp.tri(8, **k),
        "number": lambda **k: jnp.array(3.0, **k),
        "key": lambda **k: random.key(0, **k),
        "raw key": lambda **k: random.PRNGKey(0, **k),
        "uniform": lambda **k: random.uniform(key(), (8, 4), **k),
        "bits": lambda **k: random.bits(key(), (8, 4), **k),
        "astype": lambda **k: jnp.astype(jnp.ones(8), np.int32, **k),
        "lax.full": lambda **k: lax.full((8, 4), 2.0, **k),
    }
    given = {
        "": {},
        "device": {"device": jax.devices()[3]},
        "device over explicit": {"device": jax.NamedSharding(mesh["explicit"], jax.P("x"))},
        "device over auto": {"device": jax.NamedSharding(mesh["auto"], jax.P("x"))},
        "spec": {"out_sharding": jax.P("x")},
        "whole": {"out_sharding": jax.P()},
        "sharding over auto": {"sharding": jax.NamedSharding(mesh["auto"], jax.P("x"))},
        "sharding over explicit": {"sharding": jax.NamedSharding(mesh["explicit"], jax.P("x"))},
    }
    scopes = {"": contextlib.nullcontext}
    scopes |= {n: lambda n=n: jax.set_mesh(mesh[n]) for n in ("explicit", "auto")}
    found = {}
    for (name, make), (how, says), (scope, enter) in itertools.product(
        makers.items(), given.items(), scopes.items()
    ):
        run = lambda make=make, says=says: make(**says)
        found[f"{name}({how}) in {scope or 'none'}"] = within(enter, run)
    return found


def likes(jax, mesh):
    """Arrays like others: of their shape, of another shape or dtype, or put elsewhere."""
    jnp = jax.numpy
    makers = {
        "zeros_like": jnp.zeros_like,
        "full_like": lambda x, **k: jnp.full_like(x, 2, **k),
        "lax.full_like": lambda x, **k: jax.lax.full_like(x, 2, **k),
    }
    old = {
        "host": lambda: ROWS,
        "free": lambda: jnp.asarray(ROWS),
        "device": lambda: jax.device_put(ROWS, jax.devices()[3]),
        "explicit": lambda: put(jax, mesh["explicit"], "x"),
        "auto": lambda: put(jax, mesh["auto"], "x"),
    }
    given = {
        "": {},
        "shape": {"shape": (16,)},
        "dtype": {"dtype": np.int32},
        "device": {"device": jax.devices()[5]},
        "sharding": {"sharding": jax.NamedSharding(mesh["auto"], jax.P(None, "y"))},
    }
    return {
        f"{name}({like}, {how})": lambda make=make, x=x, says=says: make(x(), **says)
        for (name, make), (like, x), (how, says) in itertools.product(
            makers.items(), old.items(), given.items()
        )
    }


def views(jax, mesh):
    """Types of reshapes, and layouts that keep the entries they were given."""
    found = {}
    of = lambda *spec, name="explicit": put(jax, mesh[name], *spec)
    for sizes, spec in itertools.product(
        ((4, 2, 8), (8, 4, 2), (64,), (4, 16), (2, 4, 8)),
        ((("x", "y"),), (None, ("x", "y")), ("x", "y"), (("y", "x"),), ("y",)),
    ):
        run = lambda sizes=sizes, spec=spec: jax.numpy.reshape(of(*spec), sizes)
        found[f"reshape {spec} to {sizes}"] = within(lambda: jax.set_mesh(mesh["explicit"]), run)
    for name, spec in itertools.product(
        ("auto", "mixed", "explicit"), ((), ("x",), ("x", None), (None, "x"), ("y", "x"), (None,))
    ):
        for how, fun in {
            "put": lambda x: x,
            "double": lambda x: x * 2,
            "jit": jax.jit(lambda x: x * 2),
            "same": jax.jit(lambda x: x),
            "sum": lambda x: x.sum(1),
        }.items():
            run = lambda fun=fun, spec=spec, name=name: fun(of(*spec, name=name))
            found[f"{how} of {spec} over {name}"] = run
    return found


def slices(jax, mesh):
    """`smap` within `smap`, and with `shard_map`."""
    lax, smap, P = jax.lax, jax.smap, jax.P
    rows = lambda f, out=0: smap(f, in_axes=0, out_axes=out, axis_name="x")
    columns = lambda f, out=1: smap(f, in_axes=1, out_axes=out, axis_name="y")
    total = lambda names: lambda x: lax.psum(x, names)
    both = {
        "double": columns(rows(lambda x: x * 2)),
        "sums": columns(rows(lambda x: x * lax.psum(x, "x"))),
        "whole": columns(lambda x: lax.psum(rows(total("x"), None)(x), "y"), None),
        "places": columns(rows(lambda x: x + lax.axis_index("x") + 10 * lax.axis_index("y"))),
        "shard_map in smap": columns(
            jax.shard_map(total("x"), in_specs=P("x"), out_specs=P(), axis_names={"x"})
        ),
        "smap in shard_map": jax.shard_map(
            rows(total("x"), None), in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
        ),
        "types": columns(rows(lambda x: x * len(jax.typeof(x).str_short()))),
        "same axis": columns(columns(lambda x: x)),
    }
    found = {}
    for name, scope in itertools.product(both, ("explicit", "auto")):
        run = lambda name=name, scope=scope: both[name](put(jax, mesh[scope], "x", "y"))
        found[f"{name} over {scope}"] = within(lambda scope=scope: jax.set_mesh(mesh[scope]), run)
    return found


def kinds(jax, mesh):
    """Terms of sums and reduced values through `shard_map`, and gradients of them."""
    lax, P = jax.lax, jax.P
    w = lambda: put(jax, mesh["explicit"], x=ROWS[0], reduced={"x"})
    x = lambda: put(jax, mesh["explicit"], "x")
    over = lambda f, ins, outs: jax.shard_map(f, in_specs=ins, out_specs=outs)
    given = (P(reduced={"x"}), P("x"))
    product = over(lambda w, x: lax.psum((x * w).sum(), "x"), given, P())
    terms = over(lambda x: x.sum(0), P("x"), P(unreduced={"x"}))
    add = over(lambda u: lax.psum(u, "x"), P(unreduced={"x"}), P())
    scatter = over(lambda u: lax.psum_scatter(u, "x", tiled=True), P(unreduced={"x"}), P("x"))
    to = lambda y, *spec, **kinds: jax.reshard(y, P(*spec, **kinds))
    plain = {
        "product": lambda: product(w(), x()),
        "terms added": lambda: add(terms(x())),
        "terms scattered": lambda: scatter(terms(x())),
        "terms resharded": lambda: to(terms(x())),
        "gradient of terms": lambda: jax.grad(lambda x: to(terms(x)).sum())(x()),
        "gradient of sum": lambda: jax.grad(lambda x: add(terms(x)).sum())(x()),
        "gradient of whole": lambda: jax.grad(lambda w: product(to(w, reduced={"x"}), x()).sum())(
            to(w())
        ),
        "gradient of reduced": lambda: to(jax.grad(lambda w: product(w, x()))(w())),
        "gradient of pieces": lambda: to(jax.grad(lambda w: (x() @ w).sum())(w())),
    }
    found = {}
    for (name, run), compiled in itertools.product(plain.items(), (False, True)):
        run = jax.jit(run) if compiled else run
        scoped = within(lambda: jax.set_mesh(mesh["explicit"]), run)
        found[name + " in jit" * compiled] = scoped
    return found


def retyped(jax, mesh):
    """`auto_axes` and `explicit_axes`, at once, compiled and differentiated."""
    jnp, P = jax.numpy, jax.P
    auto = lambda f, *out, **k: jax.sharding.auto_axes(f, out_sharding=P(*out), **k)
    explicit = lambda f, *ins, **k: jax.sharding.explicit_axes(f, in_sharding=P(*ins), **k)
    every = {
        "product": (auto(lambda x: jnp.sin(x) @ x, "x", "y"), "explicit"),
        "one axis": (auto(lambda x: x @ x, "x", axes="x"), "explicit"),
        "reshape": (auto(lambda x: x.reshape(2, 32), None, "x"), "explicit"),
        "concatenate": (auto(lambda x: jnp.concatenate([x, x]), "x"), "explicit"),
        "of auto": (explicit(lambda x: jnp.sin(x).sum(0), "x", "y"), "auto"),
        "of one auto": (explicit(lambda x: x.sum(0), "x", axes="x"), "auto"),
    }
    found = {}
    for name, (f, scope) in every.items():
        forms = {"": f, " in jit": jax.jit(f), " gradient": jax.grad(lambda x, f=f: f(x).sum())}
        for form, fun in forms.items():
            run = lambda fun=fun, scope=scope: fun(put(jax, mesh[scope], "x"))
            scoped = within(lambda scope=scope: jax.set_mesh(mesh[scope]), run)
            found[name + form] = scoped
    return found


def several(jax, mesh):
    """Two meshes in one program, in one operation, and around one."""
    lax, P = jax.lax, jax.P
    numbers = lambda m, n: jax.shard_map(
        lambda y: y * (1 + lax.axis_index(n)), mesh=m, in_specs=P(n), out_specs=P(n)
    )
    found = {}
    for name in ("explicit", "auto", "other", "half"):
        m = mesh[name]
        n = m.axis_names[0]
        there = jax.NamedSharding(m, P(n))
        forms = {
            "shard_map": lambda x, m=m, n=n: numbers(m, n)(x),
            "shard_map in jit": lambda x, m=m, n=n: jax.jit(numbers(m, n))(x).sum(0),
            "sum": lambda x, there=there: (x + jax.device_put(ROWS, there)).sum(0),
            "put": lambda x, there=there: jax.device_put(x, there),
            "out_shardings": lambda x, there=there: jax.jit(lambda x: x * 2, out_shardings=there)(
                x
            ),
            "in_shardings": lambda x, there=there: jax.jit(lambda x: x * 2, in_shardings=there)(x),
            "scope": lambda x, m=m: within(lambda: jax.set_mesh(m), lambda: (x * 2).sum(0))(),
        }
        for form, fun in forms.items():
            found[f"{form} over {name}"] = lambda fun=fun: fun(put(jax, mesh["auto"], "x"))
    return found


def objects(jax, mesh):
    """None in place of a spec passes an argument unchanged."""
    P = jax.P
    x = np.arange(8, dtype=np.float32)
    over = lambda f, *ins: jax.shard_map(f, mesh=mesh["auto"], in_specs=ins, out_specs=P("x"))
    passed = (3, 3.0, "s", None, np.float32(2), object, (1, 2), {"a": "b"}, [None, 1], jax.jit)
    first = over(lambda x, o: x * 2 + (type(o) is type(o)), P("x"), None)
    found = {f"pass {i}": lambda o=o: first(x, o) for i, o in enumerate(passed)}
    times = over(lambda x, o: x * o, P("x"), None)
    inner = over(lambda x, o: x * o["a"] + o["b"](x), P("x"), {"a": P(), "b": None})
    return found | {
        "number": lambda: times(x, 2.0),
        "gradient": lambda: jax.grad(lambda o: times(x, o).sum())(2.0),
        "other gradient": lambda: jax.grad(lambda x: times(x, 2.0).sum())(x),
        "in jit": lambda: jax.jit(times)(x, 2.0),
        "part of a pytree": lambda: inner(x, {"a": 2.0, "b": jax.numpy.sin}),
        "mapped": lambda: jax.vmap(lambda x: times(x, 2.0))(np.stack([x, x])),
    }


def entered(jax, mesh):
    """`with mesh:` gives specs a mesh, and values none."""
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    x = np.arange(8, dtype=np.float32)
    forms = {
        "ones": lambda: jnp.ones(8),
        "asarray": lambda: jnp.asarray(x),
        "double": lambda: jnp.ones(8) * 2,
        "jit": lambda: jax.jit(lambda x: x * 2)(x),
        "on a device": lambda: jax.jit(lambda x: x * 2)(jax.device_put(x, jax.devices()[3])),
        "sum": lambda: jnp.ones(8) + put(jax, mesh["auto"], "x", x=x),
        "normal": lambda: jax.random.uniform(jax.random.key(0), (8,)),
        "constraint": lambda: lax.with_sharding_constraint(jnp.ones(8), P("x")),
        "constraint in jit": lambda: jax.jit(lambda x: lax.with_sharding_constraint(x, P("x")))(x),
        "scope": lambda: (
            jax.sharding.get_abstract_mesh().axis_names,
            jax.sharding.get_mesh().axis_names,
        ),
    }
    inner = lambda run: within(lambda: jax.set_mesh(mesh["explicit"]), run)
    found = {name: within(lambda: mesh["auto"], run) for name, run in forms.items()}
    return found | {
        f"set_mesh and {name}": within(lambda: mesh["auto"], inner(forms[name]))
        for name in ("ones", "double")
    }


def main():
    """Write the answers of the JAX that is installed."""
    import jax

    warnings.simplefilter("ignore")
    every = {name: answer(jax, run) for name, run in programs(jax).items()}
    GOLDEN.write_text(json.dumps(every, indent=0) + "\n")
    print(f"{len(every)} programs, {sum(a == 'error' for a in every.values())} errors")


if __name__ == "__main__":
    sys.exit(main())
