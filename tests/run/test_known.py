"""Programs that are found on disk by descriptions: what must change a description, and what not."""

import functools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.primitive import Primitive
from weft.interpreters import mlir
from weft.run import known, pipeline
from weft.util import IMPORTED
from weft.xla import compile as compiling

describe_sources = known.describe_sources.__wrapped__  # which tests/conftest.py replaces
X = np.array([1.0, 4.0, 9.0], np.float32)


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A disk cache of the test's own, used by programs that are described as for users."""
    monkeypatch.setattr(known, "describe_sources", lambda: "sources")
    with weft.config.scope(compilation_cache_dir=str(tmp_path / "cache")):
        weft.clear_caches()
        yield tmp_path / "cache"
    weft.clear_caches()


@pytest.fixture
def lowered(directory, monkeypatch):
    """The names of the programs that are lowered, in order."""
    names = []

    def lower(jaxpr, name, *args):
        names.append(name)
        return write(jaxpr, name, *args)

    write = pipeline.lower_module
    monkeypatch.setattr(pipeline, "lower_module", lower)
    return names


def describe(fun, *args, **options):
    """The descriptions by which `jit(fun)(*args)` looks for executables."""
    found = []

    def note(*given):
        found.append(write(*given))
        return found[-1]

    weft.clear_caches()
    write = known.describe_program
    args = [np.asarray(x) if not isinstance(x, float | int | complex) else x for x in args]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "describe_program", note)
        weft.jit(fun, **options)(*args)
    return found


def scale(c):
    def f(x):
        return x * c

    return f


def call_twice(x, first, second):
    return first(x) + second(x)


def scoped(name):
    def f(x):
        with weft.named_scope(name):
            return jnp.sin(x)

    return f


def tagged(value):
    def f(x):
        with weft.experimental.xla_metadata.set_xla_metadata(kind=value):
            return jnp.sin(x)

    return f


def with_rule(rule):
    f = weft.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(rule)
    return lambda x: f(x) * 2.0


NAN, OTHER_NAN = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
INNER = weft.jit(lambda x: jnp.cos(x) + 1.0)
EQUAL = weft.jit(lambda x: jnp.cos(x) + 1.0)

# Two programs, each (function, arguments): their texts differ, or may.
DIFFERENT = {
    "number": [(scale(2.0), X), (scale(3.0), X)],
    "sign of zero": [(scale(0.0), X), (scale(-0.0), X)],
    "last bit": [(scale(0.1), X), (scale(0.1 + 2**-27), X)],
    "const": [(scale(X), X), (scale(X + 1), X)],
    "bits of a const": [(scale(X * NAN), X), (scale(np.full(3, OTHER_NAN, "f")), X)],
    "dtype of a const": [(scale(X), X), (scale(X.astype("f2")), X)],
    "shape of a const": [(scale(np.ones(3, "f")), X), (scale(np.ones((1, 3), "f")), X)],
    "shape": [(scale(2.0), X), (scale(2.0), X[:2])],
    "dtype": [(scale(2.0), X), (scale(2.0), X.astype(np.float16))],
    "sign of a dtype": [(jnp.abs, X.astype("i4")), (jnp.abs, X.astype("u4"))],
    "weak type": [(lambda x: x + 1, 2.0), (lambda x: x + 1, np.float32(2.0))],
    "operation": [(lambda x: jnp.sin(x), X), (lambda x: jnp.cos(x), X)],
    "order of operands": [(lambda x, y: x - y, X, X), (lambda x, y: y - x, X, X)],
    "order of results": [(lambda x: (x + 1, x * 2), X), (lambda x: (x * 2, x + 1), X)],
    "which operand": [(lambda x, y: (x + y) * x, X, X), (lambda x, y: (x + y) * y, X, X)],
    "parameter": [(lambda x: jnp.flip(x, 0), np.eye(3)), (lambda x: jnp.flip(x, 1), np.eye(3))],
    "branch": [
        (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X),
        (lambda x: lax.cond(x[0] > 0, jnp.cos, jnp.sin, x), X),
    ],
    "body of a loop": [
        (lambda x: lax.fori_loop(0, 9, lambda i, v: v * 2.0, x), X),
        (lambda x: lax.fori_loop(0, 9, lambda i, v: v * 3.0, x), X),
    ],
    "number of steps": [
        (lambda x: lax.fori_loop(0, 9, lambda i, v: v * 2.0, x), X),
        (lambda x: lax.fori_loop(0, 8, lambda i, v: v * 2.0, x), X),
    ],
    "sharing": [
        (functools.partial(call_twice, first=INNER, second=INNER), X),
        (functools.partial(call_twice, first=INNER, second=EQUAL), X),
    ],
    "scope": [(scoped("a"), X), (scoped("b"), X)],
    "attribute": [(tagged("a"), X), (tagged("b"), X)],
    "unused argument": [(lambda x, y: x * 2.0, X, X), (lambda x, y: y * 2.0, X, X[:2])],
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_other_programs_have_other_descriptions(directory, case):
    ((f, *xs), (g, *ys)) = DIFFERENT[case]
    f, g = [lambda *args, h=h: h(*args) for h in (f, g)]  # of one name
    (one,), (other,) = describe(f, *xs), describe(g, *ys)
    assert one and other and one != other


def rule(p, t):
    return jnp.sin(p[0]), jnp.cos(p[0]) * t[0]


# Pairs that differ in what no text is made of.
SAME = {
    "traced again": [scale(2.0), scale(2.0)],
    "another line": [lambda x: jnp.sin(x), lambda x: jnp.sin(x)],
    "another derivative": [with_rule(rule), with_rule(lambda p, t: rule(p, t))],
}


@pytest.mark.parametrize("case", SAME)
def test_equal_programs_have_one_description(directory, case):
    f, g = [lambda x, h=h: h(x) for h in SAME[case]]
    (one,), (other,) = describe(f, X), describe(g, X)
    assert one == other is not None


OPTIONS = {
    "enable_x64": True,
    "default_matmul_precision": "highest",
    "debug_nans": True,
    "debug_infs": True,
    "disable_most_optimizations": True,
    "native": False,
    "numpy_rank_promotion": "raise",
    "threefry_partitionable": True,
    "random_seed_offset": 3,
    "num_threads": 7,
    "check_bounds": False,
    "hints": False,
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_change_the_description(directory, name):
    f = lambda x: x @ x
    (one,) = describe(f, X)
    with weft.config.scope(**{name: OPTIONS[name]}):
        (other,) = describe(f, X)
    assert one and other and one != other


SETTINGS = {
    "donated": {"donate_argnums": 0},
    "compiler_options": {"compiler_options": {"xla_cpu_enable_fast_math": True}},
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_jit_change_the_description(directory, case):
    f = lambda x: x * 2.0
    (one,), (other,) = describe(f, X), describe(f, X, **SETTINGS[case])
    assert one and other and one != other


def test_the_name_of_the_function_changes_the_description(directory):
    def f(x):
        return x * 2.0

    def g(x):
        return x * 2.0

    assert describe(f, X) != describe(g, X)


# --- what the description of the sources is made of --------------------------------------------


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small package in place of weft, older than this process, and its kernels."""
    for name in known.FOLDERS:
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "a.py").write_text("1")
        (tmp_path / name / "below" / "b.py").write_text("1")
    (tmp_path / "errors.py").write_text("1")
    (tmp_path / "kernels.so").write_text("1")
    monkeypatch.setattr(known, "ROOT", tmp_path)
    monkeypatch.setattr(known, "FOLDER", tmp_path)
    monkeypatch.setattr(known, "IMPORTED", IMPORTED + 1e9)
    return tmp_path


def write_again(path):
    """Write other text of the same length, and set the time of the file back."""
    times = path.stat()
    path.write_text("2")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


CHANGES = {
    "a file": lambda tree: (tree / "cpu" / "a.py").write_text("22"),
    "a file, with its time set back": lambda tree: write_again(tree / "cpu" / "a.py"),
    "a file in a folder below": lambda tree: write_again(tree / "primitives" / "below" / "b.py"),
    "a file of the package": lambda tree: write_again(tree / "errors.py"),
    "the kernels": lambda tree: write_again(tree / "kernels.so"),
    "a new file": lambda tree: (tree / "xla" / "c.py").write_text(""),
    "a file less": lambda tree: (tree / "xla" / "a.py").unlink(),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_of_the_sources_changes_their_description(tree, case):
    before = describe_sources()
    assert before and before == describe_sources()
    CHANGES[case](tree)
    assert describe_sources() not in (before, None)


@pytest.mark.parametrize("where", [(sys, "version"), (np, "__version__")])
def test_versions_are_part_of_it(tree, monkeypatch, where):
    before = describe_sources()
    monkeypatch.setattr(*where, "0.0")
    assert describe_sources() != before


def test_sources_that_changed_since_the_import_have_no_description(tree, monkeypatch):
    monkeypatch.setattr(known, "IMPORTED", IMPORTED)
    assert describe_sources() is None


def test_sources_that_are_no_files_have_no_description(tree, monkeypatch):
    monkeypatch.setattr(known, "ROOT", tree / "package.zip")
    assert describe_sources() is None


def test_every_folder_that_programs_are_compiled_by_is_watched():
    layers = [p.name for p in pathlib.Path(known.ROOT).iterdir() if (p / "__init__.py").exists()]
    below = set(layers) & {*known.FOLDERS}
    assert below == {*known.FOLDERS} - {"native"}


# --- programs without a description ------------------------------------------------------------


class Doubled(Primitive):
    name = "doubled"

    def abstract_eval(self, x):
        return [x]

    def lower(self, hlo, x):
        return [hlo.op("stablehlo.add", [x, x], [x.aval])[0]]


doubled_p = Doubled()


def call_back(x):
    return weft.pure_callback(lambda v: v, x, x)


NOT_DATA = {
    "a function of the user's": call_back,
    "a primitive of the user's": lambda x: doubled_p.bind(x)[0],
    "a print": lambda x: (weft.debug.print("{}", x), x)[1],
}


@pytest.mark.parametrize("case", NOT_DATA)
def test_programs_that_are_not_data_have_no_description(directory, case):
    assert set(describe(NOT_DATA[case], X)) == {None}


def test_a_primitive_with_a_lowering_of_the_users_has_no_description(directory):
    assert describe(lambda x: jnp.sinh(x), X) != [None]
    mlir.register_lowering(lax.sinh_p, lambda ctx, x: ctx.hlo.op("stablehlo.sine", [x], [x.aval]))
    try:
        assert describe(lambda x: jnp.sinh(x), X) == [None]
    finally:
        vars(lax.sinh_p).pop("lower", None)


@pytest.mark.parametrize("name", ["enable_checks", "locate_operations"])
def test_options_that_look_at_passes_and_texts_have_programs_lowered(directory, name):
    with weft.config.scope(**{name: True}):
        assert describe(scale(2.0), X) == [None]


# --- finding -----------------------------------------------------------------------------------


def test_a_program_that_is_known_is_not_lowered_again(lowered):
    f = weft.jit(scale(2.0))
    expected = f(X)
    assert lowered == ["f"]
    for forget in (f.clear_cache, weft.clear_caches):
        forget()
        assert np.array_equal(f(X), expected) and lowered == ["f"]


def test_an_entry_that_is_gone_or_odd_is_written_anew(lowered, directory):
    f = weft.jit(scale(2.0))
    expected = f(X)
    for damage in (pathlib.Path.unlink, lambda path: path.write_bytes(b"odd")):
        for path in sorted(directory.glob("*.weft")):
            damage(path)
            weft.clear_caches()
            assert np.array_equal(f(X), expected)
    weft.clear_caches()
    count = len(lowered)
    assert np.array_equal(f(X), expected) and len(lowered) == count


def test_donated_buffers_are_donated_and_the_warning_stays(lowered):
    good, bad = scale(2.0), lambda x: x.sum()
    for _ in range(2):
        weft.clear_caches()
        x = jnp.asarray(X) + 0
        assert np.array_equal(weft.jit(good, donate_argnums=0)(x), X * 2)
        assert x.is_deleted()
        with pytest.warns(UserWarning, match="donated buffers were not usable"):
            weft.jit(bad, donate_argnums=0)(jnp.asarray(X) + 0)
    assert lowered.count("f") == 1


PROGRAM = """
import sys
import numpy as np, weft, weft.numpy as jnp
from weft import lax
import weft.run.pipeline as pipeline

count, write = [], pipeline.lower_module
pipeline.lower_module = lambda *args: count.append(args[1]) or write(*args)
key = weft.random.key(0)
a = weft.random.normal(key, (8, 8))
s = a @ a.T + 8 * jnp.eye(8)
x = weft.random.normal(key, (100,))
outs = [
    jnp.sort(x), jnp.fft.fft(x), jnp.linalg.cholesky(s), jnp.linalg.eigh(s)[0], jnp.cumsum(x),
    jnp.linalg.solve(s, a), jnp.argmax(x), jnp.median(x),
    weft.jit(weft.grad(lambda a: jnp.tanh(a @ s).sum()))(a),
    weft.jit(lambda x: lax.scan(lambda c, v: (c + v, c * v), 0.0, x))(x)[1],
    weft.jit(lambda x: weft.pure_callback(lambda v: v * 2, x, x))(x),
]
print(len(count), [np.asarray(y).tolist() for y in outs])
"""


def test_a_new_process_computes_the_same_with_hardly_any_lowering(tmp_path):
    environ = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    rows = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True
        )
        count, _, values = run.stdout.partition(" ")
        rows.append((int(count), values))
    assert rows[0][1] == rows[1][1]
    assert rows[1][0] <= rows[0][0] / 4


def test_the_memory_of_executables_is_emptied(lowered, directory):
    f = weft.jit(scale(2.0))
    f(X)
    compiling.forget_loaded()
    for path in directory.glob("*.weft"):
        path.unlink()
    f.clear_cache()
    f(X)
    assert lowered == ["f", "f"]
