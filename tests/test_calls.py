"""The programs that public functions make from arguments, as text; or the errors.

A function is staged on operands of a few kinds until two calls work. Then these calls are repeated
with one option changed: the other of two flags, another number. The expressions of
tests/golden/expressions.txt are staged too. Nothing is run, so the test is cheap; other tests check
that the programs are right. tests/golden/calls.txt has a line for each call: the operations of the
program, its result types and a digest of its text; or the error. `python -m tests.test_calls`
writes it anew, and `git diff` shows the changes. If only a digest changed, `python -m
tests.test_calls NAME`, with names such as `numpy.pad` or expressions, prints the texts, to compare
with older ones (`git stash`).
"""

import collections
import contextlib
import difflib
import functools
import importlib
import inspect
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.core.jaxpr import Jaxpr, Literal, held_jaxprs
from weft.core.pretty import Typed, number_text, param_text
from weft.core.primitive import programs_in
from weft.experimental.sparse import BCOO, BCSR, COO, CSC, CSR, JAXSparse
from weft.scipy.spatial.transform import Rotation
from weft.scipy.stats import gaussian_kde

TREES = Rotation | gaussian_kde | JAXSparse
CLASSES = (Rotation, gaussian_kde, BCOO, BCSR, COO, CSR, CSC)
OPERATORS = "__add__ __mul__ __matmul__ __truediv__ __getitem__ __neg__ __sub__ __rmul__ __len__"
FILE = Path(__file__).parent / "golden" / "calls.txt"
MODULES = """
numpy numpy.linalg numpy.fft lax.linalg nn image ops random
scipy.fft scipy.linalg scipy.signal scipy.special scipy.ndimage scipy.interpolate scipy.stats
scipy.integrate scipy.cluster.vq experimental.sparse
""".split()  # noqa: SIM905
LAWS = """
bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r
laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform
vonmises wrapcauchy
""".split()  # noqa: SIM905

# ruff: noqa: E741
V, M, S, C = jnp.ones(4), jnp.ones((2, 3)), jnp.eye(3) * 2, jnp.ones((2, 3, 3))
I, B, F = jnp.arange(4), jnp.array([True, False, True, False]), jnp.ones((2, 3, 2, 4))
Z = M.astype(np.complex64)
KEY = weft.random.PRNGKey(3)
X, Y, D = BCOO.fromdense(S), BCOO.fromdense(C, n_batch=1), BCOO.fromdense(C, n_dense=1)
Q, P, O = BCSR.fromdense(S), CSR.fromdense(S), CSC.fromdense(S)
R, K = Rotation.from_quat(jnp.ones((2, 4))), gaussian_kde(jnp.arange(4.0))
# What expressions name beside these.
USED = """
image nn ops random scipy experimental.sparse example_libraries.optimizers example_libraries.stax
experimental.ode experimental.rnn scipy.spatial.transform
""".split()  # noqa: SIM905
USED = {n.rpartition(".")[2]: importlib.import_module(f"weft.{n}") for n in USED}
PLACES = r" at 0x[0-9a-f]+|(?<=got a traced ).*"
OPERANDS = {n: globals()[n] for n in "V M S C I B F Z X Y D Q P O R KEY".split()}  # noqa: SIM905
# Operands: arrays are traced, anything else is as a program has it.
KINDS = [
    (V,), (C,), (S,), (M,), (I,), (Z,), (B,), (V, V), (I, I), (M, V[:3]), (C, C), (S, S),
    (S, V[:3]), (V, I), (V, 2), (2, V), (M, (0, 1)), (M, (3, 2)), (M, 1, 0), (M, (1, 2)),
    ([V, V + 1],), ((2, 3),), (5,), (1, 5), (V, np.int32), (V, V, V), (B, V, V), (I, I, I),
    (S, 1, V[:3]), (2, 3, V), (C, (1, 2), (2, 2)), ("ij,jk", M, S), (V, 3, 2), (F, F, F),
    (I, I, V, V), (KEY,), (KEY, (3,)), (KEY, V), (KEY, V, V), (KEY, 3), (KEY, V, (4,)),
    (KEY, V[:3], S), (KEY, (3,), 0, 9), (KEY, 0.0, 1.0, 2.0), (V, "abs"), (M, M, 2.0), (V, V, V, V),
    (I, 2.0, 1.0, V), (M, (4, 5), "linear"), (M, [V[:2], V[:2]], 1), (abs, V), (V, V, abs),
    (abs, 0, M), (abs, M, 0), ((S, I[:3]), V[:3]), (S, S, S), (V, V[:3]), (V[:3], V[:3], V),
    (jnp.sin, V), (0.1,),
]  # fmt: skip
OF_SPARSE = [
    (X,), (Y,), (D,), (X, X), (X, S), (Y, C), (S,), (C,), (X, (1, 0)), (X, 2), (X, V[:3]),
    (X, S, S), (Q,), (Q, S), (Q, V[:3]), (COO.fromdense(S),), (COO.fromdense(S), V[:3]),
    (COO.fromdense(S), S), (P,), (P, V[:3]), (P, S), (O,), (O, V[:3]), (O, S), ((3, 4),), (3, 4),
    (KEY, (3, 4)),
]  # fmt: skip
OF_ROTATIONS = [
    (R,),
    (R, R),
    (R, M),
    (R, 2),
    (R, "xyz"),
    (jnp.ones((2, 4)),),
    (M,),
    (C,),
    ("xyz", M),
]
OF_DENSITIES = [(K,), (K, V), (K, K), (K, 0.5, 1.5), (K, V[:1], S[:1, :1]), (K, KEY, (3,))]
GIVEN = {"size": 3, "length": 5, "num_segments": 4, "total_repeat_length": 6}


MAX_WIDTH = 160  # characters of the equations of a program, above which they are only counted


class Made(NamedTuple):
    """A text that a call made: of a program or an error, and in short."""

    text: str
    summary: str
    failed: bool = False


def stage(fun: Callable, args: tuple, options: dict, lowered: bool = False) -> Made:
    """Return the program that a call makes, or its error."""
    moved = [i for i, a in enumerate(args) if isinstance(a, weft.Array | TREES)]

    def call(*xs: object) -> object:
        every = list(args)
        for i, x in zip(moved, xs, strict=True):
            every[i] = x
        out = fun(*every, **options)
        plain = callable(out) and not isinstance(out, TREES)
        return out(KEY, (2, 3, 4)) if plain else out  # an initializer

    given = [args[i] for i in moved]
    try:
        if lowered:
            text = weft.jit(call).lower(*given).as_text()
            return Made(text, count_words(re.findall(r"\b(?:stable|c)hlo\.\w+", text)))
        program, shape = weft.make_jaxpr(call, return_shape=True)(*given)
    except Exception as error:
        own = type(error).__module__.startswith("weft") or ": " in str(error)[:40]
        text = f"{type(error).__name__}: {error if own else ''}"
        return Made(text, " ".join(text.split()), True)
    consts = [np.asarray(c) for c in program.consts if getattr(c, "dtype", V.dtype).kind in "iufc"]
    sums = [f"{c.shape} {np.abs(c).sum():.3g}" for c in consts]
    text = f"{program} {shape} {weft.tree.structure(shape)} {sums}"
    return Made(text, f"{summarize(program.jaxpr)} -> {' '.join(map(str, program.out_avals))}")


def summarize(jaxpr: Jaxpr) -> str:
    """Return the operations of a program in order, with their parameters, or how many of each."""
    text = list_equations(jaxpr)
    return text if len(text) <= MAX_WIDTH else count_words(list_operations(jaxpr))


def list_equations(jaxpr: Jaxpr) -> str:
    """Return the operations of a program in order: `neg; scan[length=3]{add; mul(2.0)}`.

    Each with the numbers among its operands, its parameters and the programs that it holds.
    """
    texts = []
    for eqn in jaxpr.eqns:
        shown = Typed().shown_params(eqn)
        programs = {key for key, _ in programs_in(shown)}
        params = [
            f"{k}={param_text(x)}" for k, x in shown.items() if k not in programs and x is not None
        ]
        inner = "".join(f"{{{list_equations(held)}}}" for held in held_jaxprs(eqn))
        chosen = f"[{' '.join(params)}]" if params else ""
        numbers = [number_text(a.val, a.aval.dtype) for a in eqn.invars if type(a) is Literal]
        taken = f"({' '.join(numbers)})" if numbers else ""
        texts.append(f"{eqn.primitive.name}{taken}{chosen}{inner}")
    return "; ".join(texts)


def list_operations(jaxpr: Jaxpr) -> Iterator[str]:
    """Yield the names of the operations of a program, and of those that it holds."""
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for held in held_jaxprs(eqn):
            yield from list_operations(held)


def count_words(words: Iterable[str]) -> str:
    """Return words in the order of first appearance, with how often each is there: `mul*3 add`."""
    counts = collections.Counter(words)
    return " ".join(f"{word}*{n}" if n > 1 else word for word, n in counts.items())


def change_options(fun: Callable) -> Iterator[dict]:
    """Yield each option on its own, with another value than its default."""
    others = {None: [1, 0, (0,)], 0: [1], 1: [2, 0], -1: [0], (): [1]}
    for name, p in inspect.signature(fun).parameters.items():
        if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY and name not in GIVEN:
            if isinstance(p.default, bool):
                yield {name: not p.default}
            elif isinstance(p.default, float):
                yield {name: p.default + 0.5}
            elif isinstance(p.default, int | tuple | None):
                yield from ({name: v} for v in others.get(p.default, [3]))


def show(x: object) -> str:
    """Return arguments on one line, with types in place of arrays."""
    if isinstance(x, tuple | list) and not hasattr(x, "_fields"):
        texts = ", ".join(map(show, x))
        return f"({texts})" if isinstance(x, tuple) else f"[{texts}]"
    text = x.aval if isinstance(x, weft.Array) else getattr(x, "__name__", x)
    return " ".join(str(text).split())


def differentiate(fun: Callable) -> Callable:
    return lambda *args, **options: weft.jvp(
        lambda *xs: fun(*xs, **options), args, tuple(map(jnp.ones_like, args))
    )


def texts_of(name: str, fun: Callable) -> Iterator[tuple[str, Made]]:
    """Yield each call of a function with what comes of it."""
    worked, options, least, most, given = [], [], 0, 9, {}
    with contextlib.suppress(TypeError, ValueError):
        parameters = inspect.signature(fun).parameters
        given = {n: v for n, v in GIVEN.items() if n in parameters}
        options = [*change_options(fun)]
        every = [p.default is p.empty for p in parameters.values() if p.kind < p.VAR_POSITIONAL]
        least = sum(every)
        if not any(p.kind == p.VAR_POSITIONAL for p in parameters.values()):
            most = len(every)
    special = name.startswith("scipy.special")
    own = ("sparse", OF_SPARSE), ("Rotation", OF_ROTATIONS), ("gaussian_kde", OF_DENSITIES)
    kinds = next((kinds for word, kinds in own if word in name), KINDS)
    if inspect.isfunction(fun):
        for cls in (c for c in CLASSES if f".{c.__name__}." in name):
            kinds = [args for args in kinds if isinstance(args[0], cls)]
    for args in kinds:
        if least <= len(args) <= most and len(worked) < (2 if kinds is KINDS else len(kinds)):
            made = stage(fun, args, given)
            yield show(args), made
            if not made.failed:
                worked.append(args)
    for args in worked[:1]:
        if all(isinstance(a, weft.Array) and a.dtype == np.float32 for a in args):
            if name.startswith(("scipy.s", "nn.", "numpy.")):
                yield f"{show(args)} moves", stage(differentiate(fun), args, given)
            if special:
                yield f"{show(args)} lowered", stage(fun, args, given, True)
                with weft.enable_x64(True):
                    wide = tuple(np.asarray(a, np.float64) for a in args)
                    made = stage(fun, tuple(map(jnp.asarray, wide)), given, True)
                yield f"{show(wide)} lowered", made
    for changed in options:
        for args in worked[:2]:
            if not set(changed) & set(list(parameters)[: len(args)]):
                yield f"{show(args)} {changed}", stage(fun, args, {**given, **changed})


def functions() -> Iterator[tuple[str, Callable]]:
    modules = [(home, importlib.import_module(f"weft.{home}")) for home in MODULES]
    modules += [
        (f"scipy.stats.{law}", getattr(importlib.import_module("weft.scipy.stats"), law))
        for law in LAWS
    ]
    for home, module in modules:
        for name in sorted(getattr(module, "__all__", None) or vars(module)):
            fun = getattr(module, name)
            theirs = (getattr(fun, "__module__", None) or "").startswith("numpy")
            if callable(fun) and not isinstance(fun, type) and name[0] != "_" and not theirs:
                yield f"{home}.{name}", fun
    for cls in CLASSES:
        for name in sorted(vars(cls)):
            fun = getattr(cls, name)
            if callable(fun) and (name[0] != "_" or name in OPERATORS) and "flatten" not in name:
                yield f"{cls.__module__.removeprefix('weft.')}.{cls.__name__}.{name}", fun


def expressions() -> Iterator[tuple[str, Callable]]:
    """Yield the lines of tests/golden/expressions.txt as functions."""
    for line in FILE.with_name("expressions.txt").read_text().splitlines():
        code = compile(line, "expression", "eval")
        used = [n for n in OPERANDS if n in code.co_names]

        def call(*xs: object, code: CodeType = code, used: list = used) -> object:
            return eval(code, {**globals(), **USED, **dict(zip(used, xs, strict=True))})

        yield line, functools.partial(call_once, call, tuple(OPERANDS[n] for n in used))


def call_once(call: Callable, args: tuple) -> Iterator[tuple[str, Made]]:
    yield "", stage(call, args, {})


def crc_text(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def describe(texts: Iterable[tuple[str, Made]]) -> list[str]:
    """Return a line for each call: the arguments, the summary of the text, and its digest.

    The line says `same` if the text is the text of the call before.
    """
    unread = mock.patch(
        "weft.errors.find_expression", lambda: None
    )  # it parses this file for hints
    lines, before = [], None
    with warnings.catch_warnings(), weft.config.scope(hints=False, native=False), unread:
        warnings.simplefilter("ignore")
        for what, made in texts:
            text = re.sub(PLACES, "", made.text)
            short = re.sub(PLACES, "", made.summary)
            if not made.failed or len(short) > MAX_WIDTH:
                short = f"{short if not made.failed else short[:MAX_WIDTH]}  {crc_text(text)}"
            lines.append(f"  {what}: {'same' if text == before else short}".rstrip())
            before = text
    return lines


@functools.cache
def kept_lines() -> dict[str, list[str]]:
    """Return the lines of the file, by the names that they are under."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in FILE.read_text().splitlines():
        if line.startswith("  "):
            lines.append(line)
        else:
            lines = found[line] = []
    return found


def groups() -> dict[str, list[tuple[str, Callable]]]:
    """Return the names with the functions that make their texts, by the files that define them."""
    found: dict[str, list] = collections.defaultdict(list)
    for name, fun in functions():
        home = getattr(fun, "__module__", None) or name.rpartition(".")[0]
        found[home.removeprefix("weft.")].append((name, functools.partial(texts_of, name, fun)))
    for line, texts in expressions():
        found[f"expressions of {line.partition('(')[0].partition('.')[0][:9]}"].append(
            (line, texts)
        )
    return found


GROUPS = groups()


@pytest.mark.parametrize("group", GROUPS)
def test_what_calls_make(group):
    wrong = []
    for name, texts in GROUPS[group]:
        kept, now = kept_lines().get(name, []), describe(texts())
        changed = [x for x in difflib.ndiff(kept, now) if x[0] in "-+"] if kept != now else []
        wrong += [name] * bool(changed) + changed
    assert not wrong, "\n".join([*wrong, "If meant: python -m tests.test_calls"])


def test_the_file_has_what_there_is():
    assert {*kept_lines()} == {name for rows in GROUPS.values() for name, _ in rows}


if __name__ == "__main__":
    every = [row for rows in GROUPS.values() for row in rows]
    if len(sys.argv) > 1:
        shown = [
            f"{name} {what}\n{made.text}"
            for name, f in every
            if name in sys.argv
            for what, made in f()
        ]
        print(*shown, sep="\n")
    else:
        FILE.write_text(
            "".join(f"{line}\n" for name, texts in every for line in (name, *describe(texts())))
        )
