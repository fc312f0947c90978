"""Bad input: the class and the text of every error, which must change no state.

One row for each mistake: a user's code, the class to catch, and the message. Operations that reject
their operands are in tests/primitives/test_errors.py.
"""
# ruff: noqa: E501  (a mistake is one row)

import copy
import dataclasses
import functools
import gc
import pathlib
import re
import signal
import subprocess
import sys
import traceback
from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import errors, grad, jit, lax, vmap
from weft.core.jaxpr import Jaxpr
from weft.core.trace import current
from weft.options import named_axes, surroundings
from weft.passes.check import check_jaxpr
from weft.run.eager import EVAL

PACKAGE = str(pathlib.Path(weft.__file__).parent)
HERE = r"test_errors\.py:\d+"


def V3():
    return jnp.ones(3)


def V2():
    return jnp.ones(2)


class Pair(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object


class Thing:
    """No type that weft knows."""

    def __repr__(self):
        return "Thing()"


def assert_clean():
    """A failed call leaves no state behind: calls that worked before it work after it."""
    assert current.trace is EVAL
    assert current.source is None
    assert surroundings.value is None
    assert named_axes.value == ()
    assert float(jnp.sum(jnp.arange(4.0) + 1.0)) == 10.0
    assert float(RUNS_BEFORE(2.0)) == 12.0
    assert float(jit(vmap(grad(lambda x: x * x)))(V3())[0]) == 2.0


@pytest.fixture(scope="module", autouse=True)
def collect_quickly():
    """Each check collects garbage: what other tests left is not looked through each time."""
    gc.collect()
    gc.freeze()


RUNS_BEFORE = jit(grad(lambda x: x**3))


def check(code, error, text):
    """`code()` raises `error`, whose message has the grammar of errors and matches `text`."""
    with pytest.raises(error) as info:
        code()
    message = str(info.value)
    assert re.search(text, message), message
    assert re.match(r"^\S.{0,40}?: \S", message), f"no operation in front: {message}"
    assert re.search(r"; got |must|needs", message), f"neither rule nor what was given: {message}"
    assert message.endswith((".", ")", "`")), message
    assert own_frames(info.value) <= 4
    gc.collect()
    assert_clean()


def own_frames(error):
    """Return the number of weft's frames in a traceback."""
    return sum(f.filename.startswith(PACKAGE) for f in traceback.extract_tb(error.__traceback__))


def table(rows):
    return pytest.mark.parametrize(
        ("code", "error", "text"), [row[1:] for row in rows], ids=[row[0] for row in rows]
    )


# --- Python's needs of a value ----------------------------------------------------------------


def assign(x):
    x[0] = 1.0


def assign_slice(x):
    x[1:, ...] = 1.0


def absolute(x):
    if x > 0:
        return x
    return -x


@table([
    ("array", lambda: assign(V3()), TypeError, r"array: .* got x\[0\] = \.\.\. on f32\[3\]\. Hint: x = x\.at\[0\]\.set\(value\)"),
    ("slice", lambda: assign_slice(V3()), errors.MutationError, r"got x\[1:, \.\.\.\] = "),
    ("traced", lambda: jit(assign)(V3()), errors.MutationError, r"got x\[0\] = \.\.\. on f32\[3\]"),
    ("mapped", lambda: vmap(assign)(jnp.ones((2, 3))), errors.MutationError, r"on f32\[3\]\."),
])  # fmt: skip
def test_assignment_into_an_array(code, error, text):
    check(code, error, text)


@table([
    ("if", lambda: jit(absolute)(1.0), errors.TracerBoolConversionError, rf"^bool\(\): needs a concrete value; got a traced bool\[\] made by `x > 0` at {HERE}, which depends on argument `x` of absolute at {HERE}, under jit\. Hint: return jnp\.where\(x > 0, x, -x\)\. Or, where it is a setting: jit\(absolute, static_argnames=\'x\'\)\."),
    ("if, of a grad", lambda: jit(grad(absolute))(1.0), errors.TracerBoolConversionError, rf"made by `x > 0` at {HERE}, which depends on argument `x` of absolute at {HERE}, under jit\."),
    ("if, mapped", lambda: vmap(absolute)(V3()), errors.TracerBoolConversionError, rf"made by `x > 0` at {HERE}, mapped by vmap along axis 0 of bool\[3\]"),
    ("if, on an argument", lambda: jit(lambda flag: 1 if flag else 2)(True), errors.TracerBoolConversionError, rf"got a traced bool\[\] from argument `flag` of <lambda> at {HERE}, under jit\. Hint: jnp.where\(flag, 1, 2\)\. Or, .*: jit\(f, static_argnames=\'flag\'\)"),
    ("and", lambda: jit(lambda x: x > 0 and x < 1)(0.5), errors.ConcretizationTypeError, r"^bool\(\)"),
    ("int", lambda: jit(lambda x: int(x))(1.0), errors.ConcretizationTypeError, r"^int\(\): .* argument `x` of <lambda>"),
    ("float", lambda: jit(lambda x: float(x * 2))(1.0), errors.ConcretizationTypeError, r"^float\(\): .* made by `x \* 2`"),
    ("complex", lambda: jit(lambda x: complex(x))(1.0), errors.ConcretizationTypeError, r"^complex\(\)"),
    ("range", lambda: jit(lambda n: list(range(n)))(3), errors.TracerIntegerConversionError, r"^index\(\): .* lax\.fori_loop"),
    ("list[i]", lambda: jit(lambda i: [1, 2][i])(1), errors.TracerIntegerConversionError, r"^index\(\): .* Hint: jnp.asarray\(\[1, 2\]\)\[i\]\."),
    ("np.sin", lambda: jit(lambda x: np.sin(x))(1.0), errors.TracerArrayConversionError, r"^numpy: .* Hint: jnp\.sin\(x\)\.$"),
    ("np.asarray", lambda: vmap(np.asarray)(V3()), errors.TracerArrayConversionError, r"mapped by vmap along axis 0 of f32\[3\]"),
    ("item", lambda: jit(lambda x: x.item())(1.0), errors.ConcretizationTypeError, r"^item\(\): .* Hint: return the array"),
    *((name, lambda name=name: jit(lambda x: getattr(x, name)())(1.0), errors.ConcretizationTypeError, rf"^{name}\(\): needs a concrete value") for name in ("devices", "tobytes", "is_deleted", "delete")),
    ("tolist", lambda: jit(lambda x: x.tolist())(V3()), errors.ConcretizationTypeError, r"^tolist\(\)"),
    ("format", lambda: jit(lambda x: f"{x:.3f}")(1.0), errors.ConcretizationTypeError, r"^format\(\)"),
    ("iter", lambda: jit(lambda x: list(x))(1.0), TypeError, r"^iter\(\): needs an array with an axis; got f32\[\]"),
    ("len", lambda: jit(lambda x: len(x))(1.0), TypeError, r"^len\(\): needs an array with an axis; got f32\[\]"),
    ("in", lambda: jit(lambda x: 1.0 in x)(V3()), errors.TracerBoolConversionError, r"made by `1\.0 in x`"),
    ("hash", lambda: jit(hash)(1.0), TypeError, ""),
    ("dlpack", lambda: jit(lambda x: np.from_dlpack(x))(V3()), TypeError, r""),
])  # fmt: skip
def test_a_value_that_is_not_known_yet(code, error, text):
    if text:
        check(code, error, text)
    else:
        with pytest.raises((error, AttributeError)):
            code()
        assert_clean()


@pytest.mark.parametrize("code", [lambda x: {x: 1}, lambda x: {x}, lambda x: x in {1: 2}])
@pytest.mark.parametrize("wrap", [jit, weft.vmap, weft.grad])
def test_a_traced_value_is_no_key(code, wrap):
    with pytest.raises(TypeError, match=r"^unhashable type: '\w+Tracer'") as caught:
        wrap(code)(np.ones(3, np.float32) if wrap is weft.vmap else 1.0)
    assert caught.value.__notes__ == [errors.KEY_HINT]


def test_a_shaped_tracer_can_be_walked():
    assert jit(lambda x: sum(y for y in x) + len(x))(V3()) == 6.0


@table([
    ("bool", lambda: bool(V3()), ValueError, r"^bool\(\): needs an array of one element; got f32\[3\]\. Hint: x\.any\(\)"),
    ("float", lambda: float(V3()), TypeError, r"^float\(\): .* got f32\[3\]"),
    ("index", lambda: range(jnp.ones(())), TypeError, r"^index\(\): needs an integer array without axes; got f32\[\]"),
    ("iter", lambda: list(jnp.ones(())), TypeError, r"^iter\(\)"),
    ("len", lambda: len(jnp.ones(())), TypeError, r"^len\(\)"),
    ("Array", lambda: weft.Array([1.0]), TypeError, r"^Array: must be made by a function; .* jnp\.array"),
])  # fmt: skip
def test_what_python_asks_of_an_array(code, error, text):
    check(code, error, text)


# --- leaks --------------------------------------------------------------------------------------

STORE = {}


class Model:
    last = None


def leaked(transform, x, kept=lambda x: jnp.sin(x)):
    """A traced value that has left its function through a list."""
    box = []

    def f(x):
        box.append(kept(x))
        return x

    transform(f)(x)
    return box[0]


def through_a_global():
    jit(lambda x: STORE.update(x=jnp.cos(x)))(1.0)
    return STORE["x"]


def through_an_attribute():
    jit(lambda x: setattr(Model, "last", x * 3.0))(1.0)
    return Model.last


def through_a_closure():
    inner = None

    @jit
    def f(x):
        nonlocal inner
        inner = -x
        return x

    f(1.0)
    return jit(lambda y: inner + y)(1.0)


def returned_by_jit():
    y = leaked(jit, 1.0)
    return jit(lambda: y)()


@table([
    ("jit", lambda: leaked(jit, 1.0) + 1, errors.UnexpectedTracerError, rf"^tracer: .* got a leaked f32\[\] made by `jnp\.sin\(x\)` at {HERE}\. Hint: return the value"),
    ("jit, an argument", lambda: leaked(jit, 1.0, lambda x: x) + 1, errors.UnexpectedTracerError, rf"leaked f32\[\] from argument `x` of f at {HERE}\."),
    ("grad", lambda: leaked(grad, 1.0) + 1, errors.UnexpectedTracerError, rf"leaked f32\[\] made by `jnp\.sin\(x\)` at {HERE}\."),
    ("grad, an argument", lambda: leaked(grad, 1.0, lambda x: x) + 1, errors.UnexpectedTracerError, r"from an argument of a differentiated function"),
    ("jvp", lambda: leaked(lambda f: lambda x: weft.jvp(f, (x,), (x,)), 1.0) * 2, errors.UnexpectedTracerError, rf"made by `jnp\.sin\(x\)` at {HERE}\."),
    ("vmap", lambda: leaked(vmap, V3()) + 1, errors.UnexpectedTracerError, rf"made by `jnp\.sin\(x\)` at {HERE}, mapped by vmap along axis 0 of f32\[3\]"),
    ("vmap, an argument", lambda: leaked(vmap, V3(), lambda x: x) + 1, errors.UnexpectedTracerError, r"leaked f32\[\] mapped by vmap along axis 0"),
    ("jit(vmap(grad))", lambda: leaked(lambda f: jit(vmap(grad(f))), V3()) + 1, errors.UnexpectedTracerError, rf"made by `jnp\.sin\(x\)` at {HERE}\."),
    ("make_jaxpr", lambda: leaked(weft.make_jaxpr, 1.0) + 1, errors.UnexpectedTracerError, r"made by `jnp\.sin\(x\)`"),
    ("global", lambda: through_a_global() + 1, errors.UnexpectedTracerError, r"made by `jnp\.cos\(x\)`"),
    ("attribute", lambda: through_an_attribute() + 1, errors.UnexpectedTracerError, r"made by `x \* 3\.0`"),
    ("closure", through_a_closure, errors.UnexpectedTracerError, r"made by `-x`"),
    ("passed to jit", lambda: jit(lambda x: x)(leaked(jit, 1.0)), errors.UnexpectedTracerError, r"made by `jnp\.sin"),
    ("of grad, passed to jit", lambda: jit(lambda x: x)(leaked(grad, 1.0)), errors.UnexpectedTracerError, r"made by `jnp\.sin"),
    ("passed to grad", lambda: grad(jnp.sin)(leaked(jit, 1.0)), errors.UnexpectedTracerError, r"made by `jnp\.sin"),
    ("returned by jit", returned_by_jit, errors.UnexpectedTracerError, r"made by `jnp\.sin"),
    ("float", lambda: float(leaked(jit, 1.0)), errors.UnexpectedTracerError, r"made by `jnp\.sin"),
    ("np.asarray", lambda: np.asarray(leaked(vmap, V3())), errors.UnexpectedTracerError, r"made by `jnp\.sin"),
])  # fmt: skip
def test_a_value_that_left_its_function(code, error, text):
    check(code, error, text)


def test_the_text_of_a_long_expression_is_cut():
    def f(x):
        y = jnp.where(
            x > 0,  # a comment
            1.0 * x + 2.0 * x + 3.0 * x + 4.0 * x + 5.0 * x + 6.0 * x,
            0.0,
        )
        return bool(y)

    with pytest.raises(TypeError, match=r"made by `jnp\.where\( x > 0, .*\.\.\.` at test_errors"):
        jit(f)(1.0)


def test_without_source_text_the_operation_is_named():
    scope = {"jnp": jnp}
    exec(compile("def f(x):\n    return bool(jnp.sin(x))", "nowhere.py", "exec"), scope)
    with pytest.raises(
        TypeError,
        match=r"made by sin at nowhere\.py:2, which depends on argument `x` of f at nowhere\.py:1, under jit\. Hint: jnp.where",
    ):
        jit(scope["f"])(1.0)


# --- operands of functions ----------------------------------------------------------------------


@table([
    ("shapes", lambda: V3() + V2(), TypeError, r"^add: shapes must broadcast together; got f32\[3\], f32\[2\]"),
    ("shapes, traced", lambda: jit(jnp.multiply)(V3(), V2()), ValueError, r"^multiply: .* got f32\[3\], f32\[2\]"),
    ("matmul", lambda: V3() @ V2(), errors.ShapeError, r"^matmul: .* got f32\[3\], f32\[2\]"),
    ("reshape", lambda: V3().reshape(2, 2), errors.ShapeError, r"^reshape: .*"),
    ("concatenate", lambda: jnp.concatenate([V3(), jnp.ones((2, 2))]), errors.ShapeError, r"^concatenate: "),
    ("axis", lambda: jnp.sum(V3(), axis=1), ValueError, r"^sum: axis must name an axis of an array of rank 1; got 1"),
    ("traced axis", lambda: jit(lambda x, i: jnp.sum(x, axis=i))(V3(), 0), errors.TracerIntegerConversionError, r"argument `i`"),
    ("traced size", lambda: jit(lambda n: jnp.zeros(n))(3), errors.TracerIntegerConversionError, r"argument `n`"),
    ("traced reshape", lambda: jit(lambda x, n: x.reshape(n))(V3(), 3), TypeError, r"^reshape.* argument `n`"),
    ("traced arange", lambda: jit(lambda n: jnp.arange(n))(3), errors.ConcretizationTypeError, r"^arange.* argument `n`"),
    ("dtypes", lambda: lax.add(V3(), jnp.arange(3)), TypeError, r"^add: operands must have equal dtypes; got f32\[3\], i32\[3\]"),
    ("list", lambda: jnp.sin([1.0, 2.0]), TypeError, r"^sin: operands must be arrays or numbers; got a list\. Hint: jnp\.array\(\[1\.0, 2\.0\]\)"),
    ("list, lax", lambda: lax.sin([1.0]), errors.DtypeError, r"^sin: .* got a list"),
    ("list, traced lax", lambda: jit(lambda x: lax.add(x, [1.0]))(1.0), errors.DtypeError, r"^add: .* got a list"),
    ("x + list", lambda: V3() + [1, 2, 3], TypeError, r"^add: .* Hint: jnp\.array\(\[1, 2, 3\]\)"),
    ("list + x", lambda: [1, 2, 3] + V3(), TypeError, r"^add: .* got a list"),
    ("tuple of traced", lambda: jit(lambda x: jnp.sin((x, x)))(1.0), TypeError, r"^sin: .* got a tuple"),
    ("string", lambda: jnp.sin("x"), TypeError, r"^sin: .* got a str \('x'\)"),
    ("None", lambda: jnp.sin(None), TypeError, r"^sin: .* got a NoneType"),
    ("object array", lambda: jnp.asarray(np.array([Thing()])), TypeError, r"got NumPy dtype object"),
    ("out", lambda: jnp.sum(V3(), out=V2()), NotImplementedError, r"^sum: out must be None"),
])  # fmt: skip
def test_operands_that_do_not_fit(code, error, text):
    check(code, error, text)


def test_an_operator_leaves_other_types_to_python():
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        V3() + None
    assert (V3() == "a") is False
    assert_clean()


# --- indexing -----------------------------------------------------------------------------------


@table([
    ("too large", lambda: V3()[5], IndexError, r"index must be in \[-3, 3\) on axis 0 of f32\[3\]; got 5"),
    ("too small", lambda: V3()[-4], IndexError, r"got -4"),
    ("second axis", lambda: jnp.ones((2, 3))[0, 3], IndexError, r"on axis 1 of f32\[2,3\]; got 3"),
    ("in jit", lambda: jit(lambda x: x[5])(V3()), IndexError, r"got 5\. Hint: .*check_bounds"),
    ("beside an array", lambda: V3()[None][jnp.array([0]), 7], IndexError, r"axis 1 of .*; got 7"),
    ("NumPy's number in jit", lambda: jit(lambda x: x[np.int8(7)])(V3()), IndexError, r"got 7"),
    ("no place to look up", lambda: jnp.zeros(0)[jnp.array([0])], IndexError, r"an axis looked up must not be empty; got axis 0 of f32\[0\]"),
    ("put", lambda: jnp.put(V3(), 7, 1.0, inplace=False), IndexError, r"got 7"),
    ("set", lambda: V3().at[7].set(1.0), IndexError, r"got 7"),
    ("take", lambda: jnp.take(V3(), 7), IndexError, r"got 7"),
    ("too many", lambda: V3()[0, 0], IndexError, r"at most one index for each axis; got 2 for f32\[3\]"),
    ("float", lambda: V3()[1.5], TypeError, r"an index must be an integer.* got 1\.5 of type float"),
    ("str", lambda: V3()["a"], TypeError, r"got 'a' of type str"),
    ("list", lambda: V3()[[0, 1]], TypeError, r"must not be a list; got \[0, 1\]\. Hint: x\[jnp\.array"),
    ("array of floats", lambda: V3()[V3()], TypeError, r"integers or bools; got f32\[3\]"),
    ("mask of another shape", lambda: V3()[jnp.array([True])], IndexError, r"^x\[mask\]: .* got bool\[1\]"),
    ("traced mask", lambda: jit(lambda x: x[x > 0])(V3()), errors.NonConcreteBooleanIndexError, r"^x\[mask\]: .* made by `x > 0` .* Hint: jnp\.where"),
    ("mapped mask", lambda: vmap(lambda x: x[x > 0])(jnp.ones((2, 3))), IndexError, r"^x\[mask\]"),
    ("traced slice", lambda: jit(lambda x, i: x[i : i + 2])(V3(), 1), errors.IndexingError, r"^x\[start:stop\]: .* argument `i` .* Hint: lax\.dynamic_slice"),
    ("nonzero", lambda: jit(jnp.nonzero)(V3()), errors.ConcretizationTypeError, r"^nonzero: .* size=n"),
])  # fmt: skip
def test_indices(code, error, text):
    check(code, error, text)


def test_an_option_restores_silent_clamping():
    weft.config.update("check_bounds", False)
    try:
        x = jnp.arange(3.0)
        assert float(x[5]) == float(jit(lambda x: x[5])(x)) == 2.0
        assert [float(v) for v in x.at[7].set(9.0)] == [0.0, 1.0, 2.0]
    finally:
        weft.config.update("check_bounds", True)
    with pytest.raises(IndexError):
        jnp.arange(3.0)[5]


def test_a_traced_mask_may_be_written_through():
    assert float(jit(lambda x: x.at[x > 0].set(5.0))(V3())[0]) == 5.0


# --- transformations ----------------------------------------------------------------------------


@table([
    ("vector", lambda: grad(lambda x: x * 2)(V3()), TypeError, r"^grad: the function must return a scalar; got f32\[3\] from <lambda>\. Hint: sum or mean the result, or jacrev"),
    ("integer", lambda: grad(lambda x: x * 2.0)(3), TypeError, r"^grad: inputs must be floating-point or complex; got i32\[\] as argument 0 of <lambda>\. Hint: x\.astype"),
    ("integer in a dict", lambda: grad(lambda p: p["a"])({"a": 1.0, "b": 2}), TypeError, r"as argument 0\['b'\]"),
    ("tuple", lambda: grad(lambda x: (x, x))(1.0), TypeError, r"^grad: the function must return one scalar; .* Hint: has_aux"),
    ("None", lambda: grad(lambda x: None)(1.0), TypeError, r"^grad: the function must return one scalar"),
    ("complex result", lambda: grad(lambda x: x * 1j)(1.0), TypeError, r"^grad: .* got c64\[\] .* Hint: holomorphic=True"),
    ("integer result", lambda: grad(lambda x: 3)(1.0), TypeError, r"^grad: .* got i32\[\]"),
    ("argnums", lambda: grad(lambda x: x, argnums=1)(1.0), TypeError, r"^grad: argnums must name positional arguments; got 1"),
    ("keyword", lambda: grad(lambda x: x)(x=1.0), TypeError, r"Hint: keyword arguments cannot"),
    ("argnums type", lambda: grad(lambda x: x, argnums="x"), TypeError, r"^grad: argnums must be an int"),
    ("no function", lambda: grad(3.0), TypeError, r"^grad: needs a function; got 3\.0 .* Hint: grad\(f\)\(x\)"),
    ("no pair", lambda: grad(lambda x: x, has_aux=True)(1.0), TypeError, r"^grad: with has_aux=True"),
    ("value_and_grad", lambda: weft.value_and_grad(lambda x: x)(V3()), TypeError, r"^value_and_grad: "),
    ("jacrev", lambda: weft.jacrev(lambda x: 3)(1.0), TypeError, r"^jacrev: .* got i32\[\]"),
    ("jacfwd", lambda: weft.jacfwd(lambda x: x)(1), TypeError, r"^jacfwd: .* got i32\[\]"),
    ("tangent shape", lambda: weft.jvp(jnp.sin, (V3(),), (V2(),)), TypeError, r"^jvp: tangents must have the types of the primals; got f32\[2\] for f32\[3\]"),
    ("tangent tree", lambda: weft.jvp(jnp.sin, (1.0,), ((1.0,),)), TypeError, r"^jvp: tangents must have the structure"),
    ("integer tangent", lambda: weft.jvp(lambda x: x, (1,), (1,)), TypeError, r"^jvp: .* float0"),
    ("bare primals", lambda: weft.jvp(jnp.sin, 1.0, 1.0), TypeError, r"^jvp: primals must be a tuple.* Hint: jvp\(f, \(x,\), \(t,\)\)"),
    ("cotangent shape", lambda: weft.vjp(jnp.sin, V3())[1](V2()), TypeError, r"^vjp: cotangents must have the types .* got f32\[2\] for f32\[3\]"),
    ("cotangent tree", lambda: weft.vjp(lambda x: (x, x), V3())[1](V3()), TypeError, r"^vjp: cotangents must have the structure"),
    ("two cotangents", lambda: weft.vjp(jnp.sin, 1.0)[1](1.0, 2.0), TypeError, r"^vjp: the pullback takes one argument"),
])  # fmt: skip
def test_derivatives(code, error, text):
    check(code, error, text)


@table([
    ("type", lambda: vmap(jnp.sin, in_axes="a"), TypeError, r"^vmap: in_axes must hold ints and None; got 'a'"),
    ("float", lambda: vmap(jnp.sin, out_axes=1.5), TypeError, r"^vmap: out_axes must hold ints"),
    ("count", lambda: vmap(jnp.sin, in_axes=(0, 0))(V3()), ValueError, r"^vmap: in_axes must have one entry for each positional argument; got 2 for the 1 of sin"),
    ("range", lambda: vmap(lambda x: x, in_axes=2)(V3()), ValueError, r"got axis 2 for f32\[3\] as x of <lambda>"),
    ("scalar", lambda: vmap(lambda x, y: x)(V3(), 1.0), ValueError, r"got axis 0 for f32\[\] as y of <lambda>\. Hint: in_axes=None"),
    ("prefix", lambda: vmap(lambda p: p, in_axes=({"a": 0},))({"b": V3()}), ValueError, r"^vmap: in_axes must be a tree prefix of args; got a dict with keys 'a' at in_axes\[0\]"),
    ("nothing mapped", lambda: vmap(lambda x: x, in_axes=None)(V3()), ValueError, r"^vmap: at least one argument must be mapped; .* Hint: .*axis_size"),
    ("sizes", lambda: vmap(lambda x, y: x)(V3(), V2()), ValueError, r"^vmap: mapped axes must have one size; got 3 \(axis 0 of x, f32\[3\]\), 2 \(axis 0 of y, f32\[2\]\)"),
    ("sizes in a tree", lambda: vmap(lambda p: p["a"])({"a": V3(), "b": [V2()]}), ValueError, r"2 \(axis 0 of p\['b'\]\[0\], f32\[2\]\)"),
    ("sizes of two axes", lambda: vmap(lambda x, y: x, in_axes=(1, 0))(jnp.ones((3, 2)), V3()), ValueError, r"2 \(axis 1 of x, f32\[3,2\]\), 3 \(axis 0 of y"),
    ("axis_size", lambda: vmap(lambda x: x, axis_size=4)(V3()), ValueError, r"4 \(axis_size\)"),
    ("out range", lambda: vmap(lambda x: x, out_axes=3)(V3()), ValueError, r"^vmap: out_axes must name an axis of the result; got 3"),
    ("out None", lambda: vmap(lambda x: x, out_axes=None)(V3()), ValueError, r"^vmap: out_axes may be None only for results that are not mapped"),
    ("out prefix", lambda: vmap(lambda x: x, out_axes=(0, 0))(V3()), ValueError, r"^vmap: out_axes must be a tree prefix of result"),
])  # fmt: skip
def test_axes_of_vmap(code, error, text):
    check(code, error, text)


@table([
    ("positional", lambda: jit(lambda x, y: x, static_argnums=1)(1.0, [1]), ValueError, r"^jit: static arguments must be hashable; got list as argument 1 of <lambda>\. Hint: pass a tuple"),
    ("named", lambda: jit(lambda x, y: x, static_argnames="y")(1.0, y={}), ValueError, r"got dict as argument `y`"),
    ("array", lambda: jit(lambda x, y: x, static_argnums=1)(1.0, V3()), ValueError, r"as argument 1 of <lambda>\. Hint: pass an array as an argument that is not static"),
    ("in a tuple", lambda: jit(lambda x, y: x, static_argnums=1)(1.0, (2, ({3},))), ValueError, r"got tuple as argument 1 of <lambda>, where \[1\]\[0\] is of type set\. Hint: pass a frozenset"),
    ("in a named tuple", lambda: jit(lambda x, y: x, static_argnums=1)(1.0, Pair(2, {})), ValueError, r"got Pair as argument 1 of <lambda>, where \.y is of type dict\. Hint: pass tuple\(sorted"),
    ("in a dataclass", lambda: jit(lambda x, y: x, static_argnames="y")(1.0, y=Frozen((V3(),))), ValueError, r"got Frozen as argument `y` of <lambda>, where \.x\[0\] is of type \w+\. Hint: pass an array as"),
    ("range", lambda: jit(lambda x: x, static_argnums=5), ValueError, r"^jit: static_argnums must be positions .* takes 1; got \(5,\)"),
    ("name", lambda: jit(lambda x: x, static_argnames="q"), ValueError, r"^jit: static_argnames must name arguments .* got q"),
    ("both", lambda: jit(lambda x: x, static_argnums=0, donate_argnums=0), ValueError, r"^jit: an argument must not be both static and donated"),
    ("no function", lambda: jit(jnp.sin(1.0)), TypeError, r"^jit: needs a function; .* Hint: jit\(f\)\(x\), not jit\(f\(x\)\)"),
    ("string", lambda: jit(lambda **k: 1)(p={"q": "s"}), TypeError, r"^jit: arguments must be arrays or numbers; got 's' of type str at p\['q'\] of <lambda>\. Hint: mark the argument static"),
    ("object", lambda: jit(lambda x: x)({"a": [1, Thing()]}), TypeError, r"got Thing\(\) of type Thing at x\['a'\]\[1\]"),
    ("text array", lambda: jit(lambda x: x)(np.array(["a"])), TypeError, r"of type ndarray at x of <lambda>\. Hint: convert dtype <U1"),
    ("result", lambda: jit(lambda x: {"a": [1, Thing()]})(1.0), TypeError, r"^jit: results must be arrays or numbers; got Thing\(\) of type Thing at result\['a'\]\[1\]"),
    ("grad", lambda: grad(lambda x: 1.0)([1.0, "s"]), TypeError, r"^grad: arguments .* got 's' of type str at x\[1\] of <lambda>\. Hint: close over it"),
    ("grad, result", lambda: grad(lambda x: "s")(1.0), TypeError, r"^grad: results .* at result of"),
    ("vmap", lambda: vmap(lambda x: x)([V3(), "s"]), TypeError, r"^vmap: arguments .* at x\[1\]"),
    ("vmap, result", lambda: vmap(lambda x: (x, "s"))(V3()), TypeError, r"^vmap: results .* at result\[1\]"),
    ("jvp", lambda: weft.jvp(lambda x: x, ("a",), (1.0,)), TypeError, r"^jvp: arguments"),
    ("make_jaxpr", lambda: weft.make_jaxpr(lambda x: x)("a"), TypeError, r"^make_jaxpr: arguments"),
])  # fmt: skip
def test_arguments_and_results(code, error, text):
    check(code, error, text)


# --- donated arrays -----------------------------------------------------------------------------


def donated():
    x = jnp.ones(3)
    jit(lambda x: x + 1, donate_argnums=0)(x)
    return x


warm = jit(lambda x: x * 2.0)


@table([
    (name, lambda use=use: use(donated()), errors.DeletedError, r"^array: must not be used after it was deleted or donated; got f32\[3\]\. Hint: use the result")
    for name, use in {
        "eager": lambda x: x + 1,
        "method": lambda x: x.sum(),
        "index": lambda x: x[0],
        "iter": lambda x: list(x),
        "jit": lambda x: jit(lambda x: x * 2)(x),
        "warm jit": lambda x: [warm(V3()), warm(x)],
        "closed over": lambda x: jit(lambda y: x + y)(1.0),
        "keyword": lambda x: jit(lambda *, x: x)(x=x),
        "grad": lambda x: grad(lambda x: (x * x).sum())(x),
        "vmap": lambda x: vmap(lambda x: x * x)(x),
        "np.asarray": np.asarray,
        "tolist": lambda x: x.tolist(),
        "donated again": lambda x: jit(lambda x: x + 1, donate_argnums=0)(x),
    }.items()
])  # fmt: skip
def test_a_donated_array_used_again(code, error, text):
    check(code, error, text)


def test_a_donated_array_can_be_shown():
    assert repr(donated()) == "Array(deleted, f32[3])"


def test_an_array_donated_and_passed_once_more():
    x = V3()
    both = jit(lambda x, y: x + y, donate_argnums=0)
    check(
        lambda: both(x, x),
        errors.DeletedError,
        r"^jit: a donated array must be passed once .* Hint: pass x\.copy\(\)",
    )
    both(V3(), V3())
    y = V3()
    check(lambda: both(y, y), errors.DeletedError, r"^jit: a donated array must be passed once")


def die(shape=(2, 2)):
    x = jnp.ones(shape)
    x.delete()
    return x


UNCHANGED = {  # calls with nothing to compute, which might return the deleted array
    "reshape": lambda: die(3).reshape(-1), "reshape2": lambda: die().reshape(2, 2), "T": lambda: die(3).T,
    "asarray": lambda: jnp.asarray(die()), "asarray2": lambda: jnp.asarray(die(), jnp.float32),
    "array": lambda: jnp.array(die(), copy=False), "astype": lambda: die().astype(jnp.float32),
    "ravel": lambda: die(3).ravel(), "squeeze": lambda: die().squeeze(), "view": lambda: die().view(),
    "atleast": lambda: jnp.atleast_1d(die()), "broadcast_to": lambda: jnp.broadcast_to(die(), (2, 2)),
    "moveaxis": lambda: jnp.moveaxis(die(), 0, 0), "positive": lambda: +die(), "rot90": lambda: jnp.rot90(die(), 0),
    "lax.reshape": lambda: lax.reshape(die(), (2, 2)), "lax.rev": lambda: lax.rev(die(), ()),
    "convert": lambda: lax.convert_element_type(die(), np.float32), "device_put": lambda: weft.device_put(die()),
    "index": lambda: die()[...], "jit": lambda: jit(lambda x: x)(die()), "vmap": lambda: vmap(lambda x: x)(die()),
    "jvp": lambda: weft.jvp(lambda x: x, (die(),), (jnp.ones((2, 2)),)),
    "vjp": lambda: weft.vjp(lambda x: x, jnp.ones((2, 2)))[1](die()),
    "copy": lambda: copy.copy(die()), "str": lambda: str(die()), "iter": lambda: iter(die()).__next__(),
}  # fmt: skip


@pytest.mark.parametrize("use", UNCHANGED)
def test_a_deleted_array_cannot_be_used_where_nothing_is_to_be_done(use):
    with pytest.raises(errors.DeletedError, match="must not be used after it was deleted"):
        UNCHANGED[use]()


def test_deleted_keys_cannot_be_read_or_cloned():
    for use in (weft.random.key_data, weft.random.clone, weft.random.split):
        key = weft.random.key(0)
        key.delete()
        with pytest.raises(errors.DeletedError):
            use(key)


# --- arguments of no sensible type ----------------------------------------------------------------

F0, MASKED = np.zeros(2, weft.float0), np.ma.masked_array([1.0, 2.0], [0, 1])
NOT_MASKED = (
    r"must not be a masked array, whose mask would be lost; got float64\[2\]. Hint: x.filled"
)
NO_FLOAT0 = r"must not be given float0, the dtype of tangents of integers, .* Hint: jnp.zeros"
INTEGERS = r"^\w+: \w+ must be integers in a sequence; got "


def generate(x):
    yield x


async def wait(x):
    return x


@table([
    *((f"masked {i}", lambda f=f: f(MASKED), errors.DtypeError, NOT_MASKED) for i, f in enumerate((
        jnp.asarray, jnp.sin, weft.jit(abs), lax.neg, lambda x: jnp.ones(2) + x, weft.typeof,
        weft.nn.relu, lambda x: weft.jit(lambda: jnp.sin(x))(),
    ))),
    *((f"masked {f.__name__}", lambda f=f: f(abs)(MASKED), errors.DtypeError, r"x of abs. Hint: x.filled") for f in (
        weft.grad, weft.vmap,
    )),
    *((f"float0 {i}", lambda f=f: f(F0), TypeError, NO_FLOAT0) for i, f in enumerate((
        lambda x: jnp.ones(2) + x, lambda x: x + jnp.ones(2), lambda x: jnp.add(x, x), lax.neg, jnp.sum,
        lambda x: jnp.where(True, x, 1.0),
    ))),
    *((f"generator {i}", lambda f=f: weft.jit(f), TypeError, r"^jit: needs a function that returns its") for i, f in enumerate((
        generate, wait, functools.partial(generate, 1),
    ))),
    ("vmap", lambda: weft.vmap(generate)(1), TypeError, r"^vmap: .* got generate, whose calls give a gen"),
    *((f"shape {s!r:.9}", lambda s=s: jnp.empty(s), TypeError, r"^empty: shape must be integers; got") for s in (
        b"ab", "ab", {2}, {2: 3}, iter([2]), (2.0,), None,
    )),
    ("invert", lambda: jnp.bitwise_invert(jnp.nan), errors.DtypeError, r"^bitwise_not: operands must be bool"),
    ("trim", lambda: jnp.trim_zeros(jnp.ones(3), iter([1])), ValueError, r"^trim_zeros: trim must be 'f'"),
    ("einsum", lambda: jnp.einsum(jnp.ones(3), bytearray(b"a")), TypeError, r"^einsum: axes must be a list"),
    ("diag_indices", lambda: jnp.diag_indices(3, 2.0), TypeError, r"^diag_indices: ndim must be an integer"),
    ("integer", lambda: jnp.asarray(10**19), OverflowError, r"^array: a number must fit int32; got 100"),
    *((f"randint {b}", lambda b=b: weft.random.randint(weft.random.key(0), (3,), *b), OverflowError,
       r"^randint: minval and maxval must fit int32; got -?1099511627776") for b in ((0, 2**40), (-(2**40), 1))),
    ("broadcast", lambda: lax.broadcast(1.0, (2.0,)), TypeError, INTEGERS + r"\(2.0,\)"),
    ("full", lambda: lax.full((2.0,), 1.0), TypeError, INTEGERS),
    ("iota", lambda: lax.broadcasted_iota(np.int32, (2.0,), 0), TypeError, INTEGERS),
    ("reshape", lambda: lax.reshape(jnp.ones(6), (1.5, 4)), TypeError, INTEGERS),
    ("rev", lambda: lax.rev(jnp.ones(7), (0.0,)), TypeError, INTEGERS),
    ("concatenate", lambda: lax.concatenate([jnp.ones(2)], 0.0), TypeError, r"^concatenate: dimension must be an integer; got 0.0"),
    ("axis", lambda: lax.squeeze(jnp.ones((1, 2)), (0.0,)), TypeError, r"^squeeze: dimensions must be integers in a sequence; got"),
])  # fmt: skip
def test_arguments_of_no_sensible_type(code, error, text):
    check(code, error, text)


def test_masked_arrays_in_lists():
    with pytest.raises(errors.DtypeError, match=NOT_MASKED):
        jnp.array([MASKED, MASKED])


def test_float0_zeros_may_be_made_in_a_derivative_rule():
    f = weft.custom_jvp(lambda x, n: (x * n, n))
    f.defjvp(lambda xs, ts: (f(*xs), (ts[0] * xs[1], jnp.zeros_like(ts[1]))))
    zero = np.zeros((), weft.float0)
    _, (slope, none) = weft.jvp(f, (2.0, 3), (1.0, zero))
    assert slope == 3 and none.dtype == jnp.zeros(2, weft.float0).dtype == weft.float0
    assert weft.jit(weft.grad(lambda x: f(x, 3)[0]))(2.0) == 3


# --- programs, options, the process ---------------------------------------------------------------


def test_a_jaxpr_that_does_not_check():
    jaxpr = weft.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0).jaxpr
    broken = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, jaxpr.eqns[1:])
    check(lambda: check_jaxpr(broken), errors.CheckError, r"jaxpr: .*`.* = mul .*`")


@table([
    ("update", lambda: weft.config.update("jax_enable_x6", True), AttributeError, r"^config: an option must be one of those of dir\(config\); got 'enable_x6'. Hint: enable_x64\."),
    ("read", lambda: weft.config.colour, AttributeError, r"got 'colour'"),
    ("set", lambda: setattr(weft.config, "colour", 1), AttributeError, r"got 'colour'"),
    ("scope", lambda: weft.config.scope(colour=1).__enter__(), AttributeError, r"got 'colour'"),
    ("choice", lambda: weft.config.update("numpy_rank_promotion", "x"), ValueError, r"^config: numpy_rank_promotion must be one of"),
    ("bool", lambda: weft.config.update("enable_x64", "yes"), TypeError, r"^config: enable_x64 must be a bool; got 'yes'"),
])  # fmt: skip
def test_options(code, error, text):
    check(code, error, text)


def run(script, tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("")
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(pathlib.Path(PACKAGE).parent)!r}]"
    return subprocess.run(
        [sys.executable, "-c", f"{path}\n{script}"], capture_output=True, text=True, check=False
    )


def test_another_library_on_the_same_engine(tmp_path):
    result = run("import jax, weft", tmp_path)
    assert result.returncode != 0
    assert (
        "ImportError: weft: jaxlib must belong to one library in a process; got jax imported "
        "before weft. Hint: import only one of them" in result.stderr
    )


def test_another_library_imported_later(tmp_path):
    program = """
import importlib.util, weft
try:
    import jax
except ImportError as error:
    print(error)
print(importlib.util.find_spec("jax").name, weft.numpy.ones(2).sum())
import weft.compat
weft.compat.install()
import jax.core
print(jax.numpy is weft.numpy, jax.core.Tracer is not None)
"""
    result = run(program, tmp_path)
    assert result.stdout.splitlines() == [
        "weft: jaxlib must belong to one library in a process; got jax imported after weft. "
        "Hint: import only one of them, each in a process of its own.",
        "jax 2.0",
        "True True",
    ], result.stderr


# --- tracebacks -----------------------------------------------------------------------------------


def fails(x):
    return model_code(x)


def model_code(x):
    return jnp.concatenate([x, x]) + V3()


def own_error(x):
    raise KeyError("mine")


@pytest.mark.parametrize("fun", [fails, own_error], ids=["weft's", "the user's"])
@pytest.mark.parametrize(
    "transform",
    [
        jit,
        grad,
        vmap,
        lambda f: jit(grad(vmap(f))),
        lambda f: jit(jit(jit(f))),
        lambda f: weft.hessian(f),
        weft.make_jaxpr,
        lambda f: lambda x: weft.jvp(f, (x,), (x,)),
        lambda f: lambda x: weft.vjp(f, x),
        lambda f: lambda x: weft.linearize(f, x),
        lambda f: lambda x: weft.eval_shape(f, x),
        weft.custom_vjp,
        lambda f: jit(f).lower,
    ],
)
def test_a_traceback_has_the_users_lines_and_few_of_ours(transform, fun):
    made = transform(fun)
    if transform is weft.custom_vjp:
        made.defvjp(lambda x: (fun(x), None), lambda res, ct: (ct,))
    with pytest.raises((errors.ShapeError, KeyError)) as info:
        made(jnp.ones((2, 2)))
    frames = traceback.extract_tb(info.value.__traceback__)
    own = [f for f in frames if f.filename.startswith(PACKAGE)]
    users = [f.name for f in frames if not f.filename.startswith(PACKAGE)]
    assert len(own) <= 4, own
    assert users[-1] == ("own_error" if fun is own_error else "model_code")
    assert fun.__name__ in users
    assert info.value.__context__ is None or info.value.__suppress_context__
    assert_clean()


def test_an_option_shows_every_frame():
    with weft.config.scope(jax_traceback_filtering="off"), pytest.raises(errors.ShapeError) as info:
        jit(grad(vmap(fails)))(jnp.ones((2, 2)))
    assert own_frames(info.value) > 10
    with pytest.raises(ValueError, match="config: traceback_filtering must be one of"):
        weft.config.update("traceback_filtering", "some")


def raise_filtered(how):
    with weft.config.scope(traceback_filtering=how), pytest.raises(errors.ShapeError) as info:
        jit(grad(vmap(fails)))(jnp.ones((2, 2)))
    return info.value, errors.list_rows(info.value.__traceback__)


def test_what_tracebacks_have_of_our_frames():
    _, full = raise_filtered("off")
    assert len(full) > 10
    users = [row.tb_frame.f_code for row in full if not errors.is_own_row(row)]
    error, rows = raise_filtered("tracebackhide")
    seen = [row for row in rows if "__tracebackhide__" not in row.tb_frame.f_locals]
    assert len(rows) == len(full) and [row.tb_frame.f_code for row in seen] == users
    for how in ("remove_frames", "quiet_remove_frames"):
        error, rows = raise_filtered(how)
        assert [row.tb_frame.f_code for row in rows] == users
        take = full[1].tb_frame.f_code  # of XLA's call
        assert ("left out" in str(getattr(error, "__notes__", ""))) is (how[0] == "q")
        if how == "quiet_remove_frames":
            assert len(error.__notes__) == 1 and error.__cause__ is None
            continue
        cause = error.__cause__
        assert isinstance(cause, errors.UnfilteredStackTrace) and str(error) in str(cause)
        names = [row.tb_frame.f_code.co_name for row in errors.list_rows(cause.__traceback__)]
        every = [row.tb_frame.f_code.co_name for row in full if row.tb_frame.f_code != take]
        assert names == every[1:]  # what called weft is not on the way there


# --- interrupts -----------------------------------------------------------------------------------


def interrupted(x):
    jnp.sin(x)
    signal.raise_signal(signal.SIGINT)
    return x


@weft.custom_jvp
def with_jvp(x):
    return x


with_jvp.defjvp(lambda primals, tangents: interrupted(primals[0]))


@weft.custom_vjp
def with_vjp(x):
    return x


with_vjp.defvjp(lambda x: (x, None), lambda res, ct: (interrupted(ct),))


@pytest.mark.parametrize(
    "run",
    [
        lambda: jit(interrupted)(1.0),
        lambda: grad(interrupted)(1.0),
        lambda: vmap(interrupted, axis_name="i")(V3()),
        lambda: weft.make_jaxpr(interrupted, axis_env=[("i", 2)])(1.0),
        lambda: weft.jvp(interrupted, (1.0,), (1.0,)),
        lambda: weft.linearize(interrupted, 1.0),
        lambda: weft.jacfwd(interrupted)(V3()),
        lambda: jit(grad(vmap(interrupted)))(V3()),
        lambda: jit(vmap(jit(interrupted), axis_name="i"))(V3()),
        lambda: grad(with_jvp)(1.0),
        lambda: jit(grad(with_jvp))(1.0),
        lambda: grad(with_vjp)(1.0),
        lambda: jit(vmap(grad(with_vjp)))(V3()),
        lambda: lax.reduce(V3(), 0.0, lambda x, y: interrupted(x), (0,)),
    ],
)
def test_an_interrupt_leaves_things_clean(run):
    with pytest.raises(KeyboardInterrupt):
        run()
    assert_clean()


# --- the classes, and their text ------------------------------------------------------------------


def test_the_classes_stand_where_users_of_jax_catch_them():
    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)
    assert issubclass(errors.NonConcreteBooleanIndexError, IndexError)
    assert issubclass(errors.DeletedError, RuntimeError)
    for name in errors.__all__:
        cls = getattr(errors, name)
        assert cls.__doc__, name
        if name.startswith("Tracer") or name.endswith("TracerError"):
            assert issubclass(cls, errors.JAXTypeError)


def test_every_class_has_a_section_in_the_documentation():
    text = (pathlib.Path(__file__).parent.parent / "docs" / "errors.md").read_text()
    sections = set(re.findall(r"^## (\w+)", text, re.MULTILINE))
    aliases, of_python = {"JaxprTypeError"}, {"FloatingPointError"}
    assert sections == set(errors.__all__) - aliases | of_python


def test_things_show_what_they_are(capsys):
    x = jnp.ones(2)
    vmap(lambda v: print(repr(v)))(x)
    grad(lambda v: print(repr(v)) or v)(1.0)
    jit(lambda v: print(repr(v)))(x)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("Traced<f32[]>with<BatchTrace> along axis 0 of Array([1., 1.]")
    assert shown[1] == "Traced<f32[]>with<TapeTrace> of 1.0"
    assert shown[2] == "Traced<f32[2]>with<StageTrace>"
    assert "fails" in repr(jit(fails))
    assert "enable_x64 = False: " in repr(weft.config)


def test_help_says_what_a_thing_does():
    for thing in (weft.jit, weft.grad, weft.vjp, weft.custom_jvp, jnp.sum, jnp.sin, weft.Array):
        assert thing.__doc__.strip()
    assert jit(fails).__name__ == grad(fails).__name__ == vmap(fails).__name__ == "fails"
    assert weft.Array.sum.__doc__ == jnp.sum.__doc__
    assert {"sum", "at", "shape"} <= set(dir(weft.Array))
    assert not {"api", "util", "options", "pytrees", "xla"} & set(dir(weft))


@pytest.mark.parametrize("transform", [weft.make_jaxpr, lambda f: lambda x: weft.eval_shape(f, x)])
def test_a_masked_array_is_refused_where_types_are_enough(transform):
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(weft.errors.DtypeError, match=r"Hint: x\.filled\(0\)"):
        transform(lambda x: x)(masked)


@pytest.mark.parametrize("jitted", [False, True])
def test_frames_of_weft_are_hidden_from_pytest_and_ipython(jitted):
    fun = lambda x: jnp.reshape(x, 2)
    with pytest.raises(errors.ShapeError) as info:
        (jit(fun) if jitted else fun)(jnp.ones(3))
    assert not [e for e in info.traceback.filter(info) if errors.is_own_file(str(e.path))]
    own = [f for f, _ in traceback.walk_tb(info.tb) if errors.is_own_file(f.f_code.co_filename)]
    assert own and all(f.f_locals.get("__tracebackhide__") for f in own)
    assert not [f for f in own if "/xla/" in f.f_code.co_filename]


def test_messages_of_large_trees_are_bounded():
    """This holds for all errors of weft; the start and the hint are complete."""
    big, text = [1.0] * 20_000, "f" * 20_000
    mistakes = [
        lambda: weft.tree.unflatten(weft.tree.structure(big), [1]),
        lambda: weft.vjp(jnp.sin, 1.0)[1](big),
        lambda: weft.jvp(jnp.sin, (1.0,), (big,)),
        lambda: weft.vmap(jnp.sin, in_axes=(big,))(1.0),
        lambda: jnp.reshape(jnp.ones(3), [1] * 20_000 + [2]),
        lambda: weft.checkpoint(jnp.sin)(text),
        lambda: jnp.ones(3, text),
        lambda: jnp.einsum("i" * 20_000, jnp.ones(3)),
    ]
    for mistake in mistakes:
        with pytest.raises(
            (TypeError, ValueError), match=r" \.\.\. \(\d+ characters\) \.\.\. "
        ) as e:
            mistake()
        assert len(str(e.value)) < 4100
    with pytest.raises(RuntimeError, match=f"^{text}$"):  # of the user's own
        jit(lambda: raise_error(text))()


def raise_error(text):
    raise RuntimeError(text)
