"""`parse`: programs read back, the documents' and every primitive's; holes; errors that point."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.primitives import cases
from weft import lax
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr, Literal
from weft.errors import HoleError, ParseError, ShapeError
from weft.experimental import checkify
from weft.jaxpr import parse, structurally_equal, unparse

X, ONE = np.arange(16, dtype=np.float32), np.ones(1, np.float32)
DOCUMENTS = (Path(__file__).parent / "documents.txt").read_text().split("\n\n")


def assert_reads_back(closed, names=None):
    """`str` reads back to the same text and types, `unparse` to the same program."""
    text = str(closed)
    again = parse(text, consts=closed.consts, names=names)
    assert str(again) == text
    for ours, theirs in ((again.in_avals, closed.in_avals), (again.out_avals, closed.out_avals)):
        assert [a.strong() for a in ours] == [a.strong() for a in theirs]
    exact = unparse(closed)
    same = parse(exact, consts=closed.consts, names=names)
    assert unparse(same) == exact
    if "<" not in exact.replace("key<", ""):
        assert structurally_equal(same, closed)
        if not re.search(r"~|@|[\de]:(f32|i32|c64|bool)\[\]", exact):  # what str does not say
            assert structurally_equal(again, closed)
    return again


def assert_computes_the_same(f, *args):
    closed = weft.make_jaxpr(f)(*args)
    again = assert_reads_back(closed)
    bits = lambda outs: [np.asarray(x).tobytes() for x in outs]
    once, twice = weft.jit(lambda *args: (closed(*args), again(*args)))(*args)
    assert bits(once) == bits(twice)


# --- the documents ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_documents_are_read(text):
    program = parse(text)
    if ":f32" in text:
        now = text.replace("pjit[", "jit[")  # its present name
        assert "".join(str(program).split()) == "".join(now.split())


def find_document(*words):
    return next(t for t in DOCUMENTS if all(w in t for w in words))


@pytest.mark.parametrize(
    ("words", "consts", "args", "expected"),
    [
        (("input_shape",), (), (X, X), X + np.sin(X) * 3),
        (("branches=( {", "clamp"), (), (1, 5.0), 3.0),
        (("true_jaxpr", "a a\n"), (), (np.float32(5.0),), 8.0),
        (("true_jaxpr", "a a\n"), (), (np.float32(-5.0),), -8.0),
        (("true_jaxpr", "d b c e b c"), (ONE,), (np.float32(-1), 2 * ONE, np.float32(4)), 5 * ONE),
        (("body_nconsts", "a a\n"[:1], "c d ; a b"), (3 * X, X), (X, 5), 5 * (3 * X + X) + 2 * X),
        (("forward=True",), (np.ones_like(X),), (X, np.float32(2.0)), 16 * 2 + X.sum()),
        (("xla_call",), (ONE,), (np.float32(5.0),), 5 + (3 + 5 * ONE)),
    ],
)
def test_classic_documents_compute_what_they_say(words, consts, args, expected):
    out = parse(find_document(*words), consts=consts)(*args)[0]
    expected = expected.sum() if "reduce_sum" in find_document(*words) else expected
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-6)


def test_a_text_without_types_gets_them():
    text = find_document("branches=( {", "clamp")
    typed = parse(text, in_avals=[1, 5.0])
    assert str(typed) == str(parse(text).with_types(1, 5.0))
    with pytest.raises(HoleError, match=r"in_avals=\[\.\.\.\]"):
        parse(text).eqns
    with pytest.raises(ParseError, match="line 1"):
        parse("{ lambda ; a:f32[] b. let  in (a,) }")


# --- programs -----------------------------------------------------------------------------------


def relu_loss(x):
    return jnp.sum(weft.nn.relu(x @ x) + weft.nn.logsumexp(x))


def shard_loop(x):
    mesh = weft.make_mesh((1,), ("i",))
    turn = lambda x: lax.psum_scatter(lax.fori_loop(0, lax.axis_index("i") + 2, add_one, x), "i")
    add_one = lambda i, x: x + 1
    specs = {"in_specs": weft.P("i"), "out_specs": weft.P()}
    return weft.shard_map(lambda x: lax.psum(turn(x[None]), "i"), mesh=mesh, **specs)(x)


def in_place(i, v):
    r = weft.new_ref(jnp.zeros((4, 3)))
    r[...] = r[...] + 1
    r[0] = v
    r[i, ::2] += 1.0
    r[weft.ds(i, 2), weft.ds(i, 2, 2)] += 1.0
    weft.ref.addupdate(r, (slice(None), jnp.array([0, 1])), jnp.ones((4, 2)))
    weft.ref.addupdate(r, i, v)
    return weft.ref.swap(r, (-1, slice(1, 3)), v[:2]), r[jnp.array([0, 1]), i], weft.freeze(r)


PROGRAMS = {
    "references": (in_place, 1, jnp.arange(3.0)),
    "scan": (lambda x: lax.scan(lambda c, y: (c * y + x, c), 0.0, jnp.arange(3.0)), 2.0),
    "while": (lambda x: lax.while_loop(lambda c: c < x, lambda c: c * 2 + 1, 0.5), 9.0),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x], x), 1, 2.0),
    "gradients": (weft.value_and_grad(relu_loss), jnp.eye(3)),
    "hessian": (weft.hessian(lambda x: jnp.prod(jnp.tanh(x))), jnp.arange(3.0)),
    "checkpoint": (weft.grad(weft.checkpoint(lambda x: jnp.sin(jnp.sin(x)))), 1.0),
    "keys": (lambda x: weft.random.normal(weft.random.key(0), (3,)) * x, 2.0),
    "one program twice": (lambda x: (weft.jit(jnp.sin)(x), weft.jit(jnp.sin)(x + 1)), 2.0),
    "no equations": (lambda x: (x, 1.0, True), 2.0),
    "consts": (lambda x: x + np.arange(3.0), 2.0),
    "indexing": (lambda x: x[1:, jnp.array([0, 2])].at[0].add(2.0), jnp.ones((3, 4))),
    "numbers": (lambda x: x + complex(-0.0, 0.1) - float("inf") + float("nan"), 2.0),
    "no numbers": (lambda x: lax.pad(jnp.where(x < jnp.inf, x, jnp.nan), -jnp.inf, [(1, 0, 0)]), X),
    "truth": (lambda x: jnp.where(jnp.isnan(x), np.bool_(False), np.bool_(True)), X),
    "loops over a mesh": (shard_loop, jnp.ones(2)),
    "pmap": (weft.pmap(lambda x: x * 2), X[None]),
    "half": (
        lambda x: (jnp.bfloat16(0.1) * x, x < np.inf, x + jnp.bfloat16(np.nan)),
        jnp.ones(2, jnp.bfloat16),
    ),
    "collectives": (weft.vmap(lambda x: lax.psum(x, "i") + lax.axis_index("i"), axis_name="i"), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same(name):
    assert_computes_the_same(*PROGRAMS[name])


def test_shard_map_and_shardings():
    mesh = weft.make_mesh((1, 1), ("i", "j"), weft.sharding.AxisType.Auto)
    spec = weft.P("i", None)

    def f(x):
        x = lax.with_sharding_constraint(x, weft.NamedSharding(mesh, spec))
        add_up = lambda x: lax.psum(x, "i") + lax.axis_index("j")
        return weft.shard_map(add_up, mesh=mesh, in_specs=spec, out_specs=weft.P(None, "j"))(x)

    again = assert_reads_back(weft.make_jaxpr(f)(jnp.ones((2, 2))))
    (found,) = [e for e in again.eqns if e.primitive.name == "shard_map"]
    assert found.params["mesh"] is mesh


def test_types_split_over_a_mesh():
    mesh = weft.sharding.AbstractMesh((4, 2), ("i", "j"), weft.sharding.AxisType.Explicit)
    struct = lambda *spec, **kinds: weft.ShapeDtypeStruct(
        (8, 4), np.float32, sharding=weft.NamedSharding(mesh, weft.P(*spec, **kinds))
    )

    def f(x, y, r):
        total = (jnp.tanh(weft.reshard(x, weft.P("i")) @ y.T) * r[0, 0]).sum()
        return total + lax.reshape(y, (32,), out_sharding=weft.P("i"))

    with weft.sharding.use_abstract_mesh(mesh):
        x, whole, reduced = struct("i", "j"), struct(), struct(reduced={"i"})
        inside = lambda a, b: a * 2 + b.sum()
        part = weft.shard_map(
            inside, in_specs=(weft.P("i"), weft.P()), out_specs=weft.P("i"), axis_names={"i"}
        )
        both = lambda x, _, r: (
            part(weft.reshard(x, weft.P("i")), weft.reshard(r, weft.P(reduced={"j"}))),
            r,
        )
        gradients = weft.grad(lambda *a: f(*a).sum())
        cases = (f, whole), (gradients, whole), (lambda *a: a, reduced), (both, whole)
        for fun, r in cases:
            jaxpr = weft.make_jaxpr(fun)(x, whole, r)
            for text in (str(jaxpr), weft.jaxpr.unparse(jaxpr)):
                again = weft.jaxpr.parse(text)
                assert list(map(str, again.out_avals)) == list(map(str, jaxpr.out_avals))
            assert weft.jaxpr.unparse(again) == weft.jaxpr.unparse(jaxpr)
    with pytest.raises(ParseError, match="needs that in scope"):
        weft.jaxpr.parse(str(jaxpr))


# --- every primitive ----------------------------------------------------------------------------


CASES = cases.all_cases()


def check_case(case):
    """The program of a row of the conformance suite, in the first of its dtypes."""
    dtype = np.dtype(cases.SHORT[case.dtypes.split()[0]])
    assert_reads_back(weft.make_jaxpr(case.apply)(*case.arrays(dtype)))


def test_every_primitive_reads_back():
    """The first row for each primitive."""
    first = {}
    for case in CASES:
        first.setdefault(case.prim.name, case)
    for case in first.values():
        check_case(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_every_case_reads_back(case):
    check_case(case)


DTYPES = (
    "float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn int4 uint8 int64 uint64"
)


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_literals_are_exact(dtype, rng):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = rng.integers(0, 256, (60, dtype.itemsize), np.uint8)
    values = bits.view(dtype).ravel() if dtype != ml_dtypes.int4 else np.arange(-8, 8).astype(dtype)
    with np.errstate(invalid="ignore"):
        values = values[values == values]  # no NaN, which has many forms
    outs = [Literal(x, ShapedArray((), dtype)) for x in values]
    program = Jaxpr([], [], outs, [])
    for text in (str(program), unparse(program)):
        read = [a.val for a in parse(text).jaxpr.outvars]
        assert np.array(read, dtype).tobytes() == values.tobytes()


def test_checks_are_read():
    def f(x):
        checkify.check(x < 1.0, "too large: {}", x)
        return x * 2

    program = weft.make_jaxpr(f)(0.5)
    again = parse(unparse(program))
    assert unparse(again) == unparse(program)
    assert parse(str(program)).eqns[-2].params["debug"] is False


def test_weak_arguments():
    f = lambda x, y, z: (lax.convert_element_type(x, np.float32), jnp.sin(y), z * 1.5)
    j = weft.make_jaxpr(f)(1.0, 2.0, 3)
    again = parse(str(j))  # y is weak too, which nothing tells
    assert [a.weak_type for a in again.in_avals] == [True, False, True]
    given = parse(str(j), in_avals=j.in_avals)
    assert (given.in_avals, given.out_avals) == (j.in_avals, j.out_avals)
    assert parse(str(j), in_avals=[1.0, 2.0, 3]).out_avals == j.out_avals
    with pytest.raises(ParseError, match=r"a result must have the type of its type rule"):
        parse(str(j), in_avals=[1, 2.0, 3])


def test_axes_of_size_one_are_broadcast_as_in_jax():
    text = """{ lambda ; a:f32[2,3]. let
    b:f32[2] = reduce_max[axes=(1,) out_sharding=None] a
    c:f32[2,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(2, 1) sharding=None] b
    d:f32[2,3] = sub a c
    e:bool[2,3] = eq c a
  in (d, e) }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    got, same = parse(text)(x)
    np.testing.assert_array_equal(got, x - x.max(1, keepdims=True))
    np.testing.assert_array_equal(same, x == x.max(1, keepdims=True))
    with pytest.raises(ParseError, match="operands must have equal shapes"):
        parse("{ lambda ; a:f32[2,3] b:f32[2,2]. let c:f32[2,3] = sub a b in (c,) }")


def test_shard_map_as_jax_prints_it():
    text = """{ lambda ; a:f32[4]. let
    b:f32[1,4] = shard_map[
      check_vma=True
      in_specs=(P('i',),)
      jaxpr={ lambda ; c:f32[4]{V:i}. let
          d:f32[1,4]{V:i} = broadcast_in_dim[
            broadcast_dimensions=(1,)
            shape=(1, 4)
            sharding=None
          ] c
        in (d,) }
      mesh=Mesh('i': 1, axis_types=(Auto,))
      newly_manual_axes=frozenset({'i'})
      out_specs=(P(None, 'i'),)
    ] a
  in (b,) }"""
    np.testing.assert_array_equal(parse(text)(X[:4])[0], X[None, :4])


def test_the_value_of_float0():
    """A result of no tangent, as jvp of an integer gives it."""
    f = lambda n: weft.jvp(lambda n: n * 2, (n,), (np.zeros((), weft.float0),))[1]
    program = weft.make_jaxpr(f)(3)
    text = "{ lambda ; a:i32[]. let b:i32[] = mul a 2 in (False:float0[],) }"
    assert "False:float0[]" in str(program)
    assert str(parse(str(program))) == str(program)
    assert parse(text)(3)[0].dtype == weft.float0


# --- holes --------------------------------------------------------------------------------------


def test_functions_are_holes():
    f = weft.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct * 3,))
    f.__name__ = "f"
    again = assert_reads_back(weft.make_jaxpr(lambda x: jnp.sin(f(x)))(1.0))
    np.testing.assert_allclose(again(1.0)[0], np.sin(2.0), rtol=1e-6)
    with pytest.raises(HoleError, match="got a use of the function"):
        weft.grad(lambda x: again(x)[0])(1.0)
    given = {"<lambda>": lambda xs, moved: ([2 * xs[0]], list(xs), lambda xs, cts: [cts[0] * 3])}
    filled = parse(str(again), names=given)
    np.testing.assert_allclose(weft.grad(lambda x: filled(x)[0])(1.0), 3 * np.cos(2.0), rtol=1e-6)


def test_callbacks_are_holes(capsys):
    def f(x):
        weft.debug.print("x = {x}", x=x, ordered=True)
        return weft.pure_callback(np.sin, x, x)

    again = assert_reads_back(weft.make_jaxpr(f)(1.0))
    with pytest.raises(HoleError, match="parse"):
        again(1.0)
    given = parse(str(again), names={"sin": lambda avals, x: [np.sin(x)], "callback": print})
    assert given.effects == weft.make_jaxpr(f)(1.0).effects


def test_arrays_and_consts_are_holes():
    text = "{ lambda ; . let a:f32[3] = constant[held=f32[3]]  in (a,) }"
    assert str(parse(text)) == text
    exact = unparse(parse(text))
    assert unparse(parse(exact)) == exact
    with pytest.raises(HoleError, match=r"the array f32\[3\]"):
        parse(text)()
    with pytest.raises(HoleError, match=r"consts=\[\.\.\.\]"):
        parse("{ lambda a:f32[3]; . let  in (a,) }")()


def test_sizes_of_axes_follow_from_the_mesh():
    """The size of an axis is not printed, and may not follow from the types."""
    text = """{ lambda ; a:f32[8,2]. let
        b:f32[8,2] = shard_map[
          check_vma=True
          in_specs=(P('i', None),)
          jaxpr={ lambda ; c:f32[4,2]{V:i}. let
              d:f32[4,2]{V:i} = all_to_all[
                axis_index_groups=None
                axis_name=i
                concat_axis=0
                split_axis=0
                tiled=True
              ] c
            in (d,) }
          manual_axes=('i',)
          mesh=Mesh('i': 2, axis_types=(Auto,))
          out_specs=(P('i', None),)
        ] a
      in (b,) }"""
    program = parse(text)  # over two devices, which need not be there
    assert program.eqns[0].params["jaxpr"].eqns[0].params["axis_size"] == 2
    assert unparse(parse(unparse(program))) == unparse(program)


def test_words_that_look_like_something_else():
    """Axes called i and f, which NumPy takes for dtypes, and tuples of axes."""
    for name in ("i", "f", "int", "float32", "x y"):
        axes = [(name, 2)]
        assert_reads_back(weft.make_jaxpr(lambda x, n=name: lax.psum(x, n), axis_env=axes)(1.0))
    env = [("i", 2), ("j", 2)]
    f = lambda x: lax.all_gather(x, ("i", "j")) + lax.axis_index("i")
    assert_reads_back(weft.make_jaxpr(f, axis_env=env)(1.0))


def test_names_say_what_others_defined():
    toy = weft.extend.core.Primitive("toy")
    toy.def_abstract_eval(lambda x, *, words: x)
    toy.def_impl(lambda x, *, words: x)
    text = "{ lambda ; a:f32[3]. let b:f32[3] = toy[words=one two] a in (b,) }"
    program = parse(text, names={"toy": toy})
    assert str(program) == text
    assert program.eqns[0].params == {"words": "one two"}


def test_checkpoint_policies_are_known():
    from weft import checkpoint_policies as policies

    for policy in (policies.dots_saveable, policies.save_only_these_names("a")):
        closed = weft.make_jaxpr(weft.checkpoint(lambda x: jnp.sin(x), policy=policy))(1.0)
        assert parse(unparse(closed)).eqns[0].params["policy"] == policy


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eqn", "message", "column"),
    [
        ("b:f32[3] = sine a", "the name of a primitive; got 'sine'. Hint: sin.", 16),
        ("b:f32[4] = sin a", r"the type of its type rule, f32\[3\]; got f32\[4\]", 5),
        ("b:f32[3] = sin c", "defined before it is used; got 'c'", 20),
        ("a:f32[3] = sin a", "defined once; got 'a' again", 5),
        ("b:f32[] = reduce_sum[axes=(5,)] a", "pass the type rule of reduce_sum; got", 15),
        ("b:f32[] = reduce_sum[axes=(0,) x=1] a", "pass the type rule|what it takes; got x", 0),
        ("b:q32[3] = sin a", "begin with a dtype", 7),
        ("b:f32[3] c:f32[3] = sin a", "sin must have 1 results; got 2", 25),
        ("b:f32[3] = sin[=2] a", "must be written key=value", 20),
        ("b:f32[3] = sin a ? ", "an operand must be a variable or a number", 22),
    ],
)
def test_errors_point_into_the_text(eqn, message, column):
    with pytest.raises(ParseError, match=message) as caught:
        parse(f"{{ lambda ; a:f32[3]. let\n    {eqn}\n  in (b,) }}")
    error = caught.value
    assert error.line == 2
    assert column in (0, error.column)
    shown, mark = str(error).split("\n")[-2:]
    assert shown == f"      {eqn}"
    assert mark.index("^") == error.column + 1


@pytest.mark.parametrize("name", ["show", "draw", "diff", "unparse", "structural_hash"])
def test_what_is_no_program(name):
    args = (jnp.sin, jnp.sin) if name == "diff" else (jnp.sin,)
    with pytest.raises(
        TypeError, match=rf"{name}: needs a jaxpr; got a \w+. Hint: weft.make_jaxpr"
    ):
        getattr(weft.jaxpr, name)(*args)
    with pytest.raises(TypeError, match="parse: needs the text of a jaxpr; got a ClosedJaxpr"):
        parse(weft.make_jaxpr(jnp.sin)(1.0))


def test_a_text_that_ends_too_soon():
    whole = str(weft.make_jaxpr(PROGRAMS["scan"][0])(2.0))
    for n in range(0, len(whole), 7):
        with pytest.raises(ParseError, match="At line"):
            parse(whole[:n])


def test_mistakes_are_told_in_full():
    text = Path(__file__).with_name("mistakes.txt").read_text()
    lines = text.splitlines()[2:]
    for wrong, told in zip(lines[::2], lines[1::2], strict=True):
        with pytest.raises(ParseError) as info:
            parse(wrong)
        error = info.value
        assert f"    {str(error).splitlines()[0]} {error.line}:{error.column}" == told, wrong


def test_far_places_are_shown_from_nearby():
    """The text of an error of a long line: the 100 characters around it, and a mark below."""
    row = "{ lambda ; a:f32[3]. let " + "".join(f"{b}:f32[3] = sin a " for b in "defghijkl")
    with pytest.raises(ParseError) as info:
        parse("\n" + row + "c:f32[3] = sine a in (c,) }")
    place = len(row) + 12
    shown, mark = str(info.value).splitlines()[2:]
    assert shown == "  " + (row + "c:f32[3] = sine a in (c,) }")[place - 60 : place + 40]
    assert (info.value.line, info.value.column, mark) == (2, place, " " * 61 + "^")


@pytest.mark.parametrize("target", ["weft_scatter", "xla_buffer_python_cpu_callback", "dce_sink"])
def test_what_is_of_this_process_is_not_called_by_texts(target):
    given = "attributes=(('kind', 'x'),) custom_call_api_version=4 input_layouts=((0,),) "
    given += "output_layouts=((0,),) input_output_aliases=() legacy_backend_config=None "
    line = "{{ lambda ; a:f32[4]. let b:f32[1] = {} a in (b,) }}"
    call = line.format(f"ffi_call[{given} result_avals=(f32[1],) target_name='{target}']")
    with pytest.raises(ParseError, match=f"ffi_call: a text must not call .* call of '{target}'"):
        parse(call)
    kernel = f"cpu_call[kernel='{target}' outs=(f32[1],) attributes=() aliases=()]"
    with pytest.raises(ParseError, match="cpu_call: must stand in programs of this process only"):
        parse(line.format(kernel))


def test_foreign_calls_read_back():
    struct = weft.ShapeDtypeStruct
    results = struct((2, 2), np.float32), struct((), np.int32)
    call = weft.ffi.ffi_call("lapack_spotrf_ffi", results)
    program = weft.make_jaxpr(lambda x: call(x, uplo=np.uint8(76)))(np.eye(2, dtype=np.float32))
    again = parse(unparse(program))
    assert structurally_equal(again, program)
    np.testing.assert_array_equal(again(np.eye(2, dtype=np.float32))[0], np.eye(2))


def test_calls_of_lapack_in_texts_must_fit():
    """jaxlib's kernels write results of any size: here one of 1 x 1 was given 400 x 400 numbers."""
    given = "attributes=(('uplo', 76:u8[]),) custom_call_api_version=4 vmap_method='expand_dims' "
    given += "legacy_backend_config=None target_name='lapack_spotrf_ffi' "
    text = (
        "{{ lambda ; a:f32[400,400]. let b:f32[{n},{n}] c:i32[] = ffi_call[{given}"
        "result_avals=(f32[{n},{n}], i32[]) input_layouts=({order},) output_layouts=({order}, ()) "
        "input_output_aliases=({alias})] a in (b, c) }}"
    )
    make = functools.partial(text.format, given=given, order=(0, 1), alias="")
    x = np.eye(400, dtype=np.float32)
    np.testing.assert_array_equal(parse(make(n=400))(x)[0], x)
    with pytest.raises(ShapeError, match="^ffi_call: LAPACK must be called with shapes that fit; "):
        parse(make(n=1))(x)
    for wrong in ({"n": 1, "alias": "(0, 0),"}, {"n": 400, "order": (0, 7)}):
        with pytest.raises(ParseError, match="parameters of ffi_call must be such as it prints"):
            parse(make(**wrong))


def test_a_process_that_has_imported_little_reads_every_primitive():
    code = "import weft.jaxpr.values as values\n"
    code += "for name in ('ffi_call', 'attention', 'log_ndtr'):\n"
    code += "    assert values.find_primitives(name), name"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_texts_do_not_write_operations_of_their_own():
    """Text that is copied into programs must be attributes, with nothing after them."""
    attack = "}>} : () -> ()\\n stablehlo.custom_call @weft_scatter() {a = {"
    body = "jaxpr={ lambda ; c:f32[4]. let d:f32[4] = sin c in (d,) } version=0"
    for call in (
        f"composite[attributes=(('\"k\"', '{attack}'),) name='f' {body}]",
        f"composite[attributes=(('{attack}', '1'),) name='f' {body}]",
        f"xla_metadata_value[attributes='{attack}']",
    ):
        with pytest.raises(ParseError, match="attributes must be a dictionary of MLIR; got "):
            parse(f"{{ lambda ; a:f32[4]. let b:f32[4] = {call} a in (b,) }}")
    name = 'q\\"\\n x'
    call = f"composite[attributes=(('\"k\"', '3 : i64'),) name='{name}' {body}]"
    named = parse(f"{{ lambda ; a:f32[4]. let b:f32[4] = {call} a in (b,) }}")
    text = weft.jit(lambda x: named(x)).lower(np.ones(4, np.float32)).as_text()
    assert 'name = "q\\22\\0A x", composite_attributes = {"k" = 3 : i64}' in text


@pytest.mark.parametrize(
    "text",
    [
        "{ lambda ; a:f32[" + "1" * 40 + "x]. let in (a,) }",
        "{ lambda ; a:f32[" + "1@x," * 40 + "x]. let in (a,) }",
        "{ lambda ; . let " + "a:f32[1] " * 3000 + " in () }",
        "{ lambda ; . let a = sin[" + "x=(b " * 3000 + "] in () }",
        "{ lambda ; . let a = sin[" + "x=b-c " * 3000 + "] in () }",
        "{ lambda ; a:f32[" + "9" * 5000 + "]. let in (a,) }",
        "{ lambda ; . let in (" + "9" * 5000 + ",) }",
        "{ lambda ; . let a = f[x=" + "(" * 9999 + ")" * 9999 + "] in () }",
        "{ lambda ; . let a = f[x=" + "{ lambda ; . let a = f[x=" * 999,
        "{ lambda ; . let a:f32[] = sin[x={(1, {lambda})}] 1.0 in () }",
    ],
)  # fmt: skip
def test_no_text_takes_long_to_be_refused(text):
    with pytest.raises(ParseError, match="^parse: "):
        parse(text)
