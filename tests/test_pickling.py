"""Every public object pickles and is copied, or says why not: pickle, copy and cloudpickle."""

import copy
import functools
import pickle
import types

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax

try:
    import cloudpickle
except ImportError:  # not needed, so perhaps not there
    cloudpickle = pickle

WAYS = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "cloudpickle": lambda x: pickle.loads(cloudpickle.dumps(x)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def double_sin(x):
    return jnp.sin(x) * 2


@weft.jit
def jitted(x):
    return double_sin(x)


@functools.partial(weft.jit, static_argnums=1)
def jitted_static(x, n=2):
    return jnp.sin(x) * n


@weft.custom_jvp
def ruled(x):
    return double_sin(x)


@ruled.defjvp
def ruled_jvp(primals, tangents):
    return ruled(*primals), jnp.cos(primals[0]) * 2 * tangents[0]


@weft.custom_vjp
def pulled(x):
    return double_sin(x)


def pulled_fwd(x):
    return pulled(x), x


def pulled_bwd(x, ct):
    return (jnp.cos(x) * 2 * ct,)


pulled.defvjp(pulled_fwd, pulled_bwd)

FUNCTIONS = {
    "jit": jitted,
    "static": jitted_static,
    "plain": weft.jit(double_sin),
    "partial": weft.jit(functools.partial(double_sin)),
    "jvp": ruled,
    "vjp": pulled,
}
BY_VALUE = {  # closures, which Python's own pickle does not take
    "donated": weft.jit(double_sin, donate_argnums=0),
    "lambda": weft.jit(lambda x: jnp.sin(x) * 2),
    "checkpoint": weft.checkpoint(double_sin),
}
DERIVATIVES = {
    "linearize": lambda: weft.linearize(double_sin, 1.0)[1],
    "vjp": lambda: lambda_of(weft.vjp(double_sin, 1.0)[1]),
}


def lambda_of(pull):
    return lambda ct: pull(ct)[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, way):
    assert float(WAYS[way](FUNCTIONS[name])(1.0)) == pytest.approx(2 * np.sin(1), rel=1e-6)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "pickle"])
@pytest.mark.parametrize("name", BY_VALUE)
def test_closures(name, way):
    if cloudpickle is pickle and way == "cloudpickle":
        pytest.skip("cloudpickle is not installed")
    assert float(WAYS[way](BY_VALUE[name])(jnp.ones(()))) == pytest.approx(2 * np.sin(1), 1e-6)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "pickle"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, way):
    if cloudpickle is pickle and way == "cloudpickle":
        pytest.skip("cloudpickle is not installed")
    for calls in (0, 1, 20):  # then programs are compiled for it in this process
        fun = DERIVATIVES[name]()
        for _ in range(calls):
            fun(1.0)
        assert float(WAYS[way](fun)(1.0)) == pytest.approx(2 * np.cos(1), rel=1e-6)


MESH = weft.make_mesh((1,), ("a",))
SHARDING = weft.NamedSharding(MESH, weft.P("a"))
OBJECTS = {
    "array": lambda: jnp.arange(3.0),
    "bfloat16": lambda: jnp.ones(2, jnp.bfloat16),
    "weak": lambda: jnp.asarray(2.0),
    "key": lambda: weft.random.key(0),
    "key dtype": lambda: weft.random.key(0).dtype,
    "mesh": lambda: MESH,
    "abstract mesh": lambda: MESH.abstract_mesh,
    "sharding": lambda: SHARDING,
    "spec": lambda: weft.P("a", None),
    "device": lambda: weft.devices()[0],
    "shard": lambda: jnp.ones(2).addressable_shards[0],
    "aval": lambda: weft.typeof(1.0),
    "struct": lambda: weft.ShapeDtypeStruct((2,), jnp.float32, sharding=SHARDING),
    "treedef": lambda: weft.tree.structure({"a": (1, [2, None])}),
    "partial": lambda: weft.tree_util.Partial(double_sin, 1.0),
    "config": lambda: weft.config,
    "precision": lambda: lax.Precision.HIGH,
    "at": lambda: jnp.arange(3.0).at[0],
    "ufunc": lambda: jnp.add,
    "lowered": lambda: weft.jit(double_sin).lower(1.0),
    "error": lambda: weft.errors.KeyReuseError("x"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name, way):
    x = OBJECTS[name]()
    assert str(WAYS[way](x)) == str(x) or name == "lowered"


@pytest.mark.parametrize("way", WAYS)
def test_a_program_is_applied_and_printed_as_before(way):
    closed = weft.make_jaxpr(lambda x: weft.jit(jnp.sin)(x) * np.arange(3.0, dtype="f4"))(1.0)
    again = WAYS[way](closed)
    assert str(again) == str(closed)
    want = closed(np.float32(2))[0].tolist()
    assert again(np.float32(2))[0].tolist() == want
    assert WAYS[way](closed.eqns[-1].primitive) is lax.mul_p


def walk(module, seen):
    for name in dir(module):
        x = getattr(module, name)
        if name.startswith("_") or id(x) in seen:
            continue
        seen[id(x)] = (f"{module.__name__}.{name}", x)
        if isinstance(x, types.ModuleType) and x.__name__.startswith("weft"):
            walk(x, seen)


def test_every_public_function_is_pickled_by_its_name():
    seen: dict = {}
    walk(weft, seen)
    lost = []
    for name, x in seen.values():
        if isinstance(x, types.ModuleType) or "stax" in name or name.endswith("glorot"):
            continue  # layers are pairs of closures
        if type(x).__module__.startswith(("jaxlib", "nanobind")) or type(x).__name__ == "nb_func":
            continue  # jaxlib's own
        try:
            for way in ("pickle", "copy", "deepcopy"):
                WAYS[way](x)
        except Exception as error:
            lost.append(f"{name}: {error!r:.80}")
    assert not lost, "\n".join(lost)


def test_what_cannot_be_pickled_says_why():
    with pytest.raises(weft.errors.ConcretizationTypeError, match="pickle: needs a concrete value"):
        weft.jit(pickle.dumps)(1.0)
    with pytest.raises(weft.errors.ConcretizationTypeError, match="and pickle the result"):
        weft.grad(lambda x: pickle.dumps(x) and x)(1.0)
    compiled = weft.jit(double_sin).lower(1.0).compile()
    assert copy.deepcopy(compiled) is compiled
    with pytest.raises(TypeError, match="pickle: a compiled program is of this process alone"):
        pickle.dumps(compiled)
