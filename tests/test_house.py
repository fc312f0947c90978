"""The house checks itself: layers, hidden imports, sizes, names, documentation, the short walk."""

import ast
import functools
import io
import pathlib
import sys
import tokenize
from collections.abc import Iterator

import numpy as np
import pytest

import weft

ROOT = pathlib.Path(weft.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# The layers, lowest first; a file imports only from files before it. A folder stands for all of its
# files that are not named. `weft.numpy` and the doors after it are one layer each.
ORDER = """
weft.util weft.monitoring weft.errors weft.options weft.pytrees weft.tree_util weft.tree
weft.dtypes weft.core.aval weft.core.trace weft.core.primitive weft.core.source weft.core.jaxpr
weft.core.leaks weft.core.pretty weft.core.passes weft.core.stage weft.core weft.xla.plugins
weft.xla.client weft.parallel.mesh weft.parallel.sharding weft.xla.shards weft.xla.array
weft.xla.placement weft.xla.callbacks weft.xla.diskcache weft.xla.compile weft.xla.hlo
weft.xla.lapack weft.xla.layouts weft.xla.lower weft.xla.building weft.xla.fastpath weft.xla.nans
weft.xla.key_reuse weft.xla.eager weft.xla weft.primitives.layout weft.primitives.constant
weft.primitives.sink weft.primitives.elementwise weft.primitives.transcendental
weft.primitives.slicing weft.primitives.indexing weft.primitives.dynamic_slicing
weft.primitives.reduction weft.primitives.window weft.primitives.dot weft.primitives.channelwise
weft.primitives.conv weft.primitives.cumulative weft.primitives.sort weft.primitives.fft
weft.primitives.bits weft.primitives.matrices weft.primitives.small weft.primitives.linalg
weft.primitives.factorizations weft.primitives.polar weft.primitives.eigen
weft.primitives.special_tables weft.primitives.formula weft.primitives.error_formulas
weft.primitives.gammas weft.primitives.bessel_formulas weft.primitives.special
weft.primitives.random weft.primitives.copies weft.primitives.collective weft.primitives
weft.transforms.jvp weft.transforms.batch weft.transforms.linearize weft.transforms.transpose
weft.transforms.check weft.transforms.jet weft.transforms weft.control.jit weft.control.checks
weft.control.cond weft.control.scan_bodies weft.control.scan weft.control.reversal
weft.control.loop_bodies weft.control.loop weft.control.hoist weft.control.custom
weft.control.mapped weft.control.linear weft.control.remat weft.control.effects
weft.control.composite weft.control weft.parallel.coordinator weft.parallel.clusters
weft.parallel.distributed weft.parallel.constraint weft.parallel.inspection weft.parallel.shard_map
weft.parallel weft.structs weft.flat weft.axes weft.places weft.collectives weft.stages
weft.retracing weft.jitting weft.bodies weft.custom_rules weft.custom_derivatives weft.sharded
weft.composites weft.conditionals weft.scans weft.loops weft.solves weft.custom_batching
weft.checkpoint_policies weft.ad_checkpoint weft.scopes weft.callbacks weft.memory weft.devices
weft.shardings weft.pmapping weft.contexts weft.derivatives weft.jacobians weft.api weft.sharding
weft.typing weft.test_util weft.lax weft.numpy weft.random weft.scipy weft.nn weft.ops weft.image
weft.flatten_util weft.distributed weft.dlpack weft.example_libraries weft.debug weft.profiler
weft.experimental weft.cache weft.interpreters weft.extend weft
""".split()  # noqa: SIM905

# The spine: all but the primitives and the doors users open.
DOORS = (
    "primitives", "numpy", "lax", "cache", "extend", "scipy", "random", "nn", "experimental",
    "debug", "interpreters", "tree.py", "tree_util.py", "profiler.py", "monitoring.py",
    "custom_batching.py", "checkpoint_policies.py", "ad_checkpoint.py", "ops.py", "image.py",
    "flatten_util.py", "distributed.py", "dlpack.py", "typing.py", "test_util.py",
    "example_libraries", "sharding.py", "memory.py",
)  # fmt: skip
SPINE = [f for f in FILES if f.relative_to(ROOT).parts[0] not in DOORS]

# Inside a function these may be imported: heavy, and needed by few programs.
HEAVY = {"scipy", "matplotlib", "opt_einsum", "jaxlib.xla_client", "jaxlib"}


def module_name(file: pathlib.Path) -> str:
    parts = ("weft", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(file: pathlib.Path) -> ast.Module:
    return ast.parse(file.read_text())


def place(name: str) -> int:
    while name not in ORDER:
        name = name.rpartition(".")[0]
        assert name, "a file that no layer holds"
    return ORDER.index(name)


def imported(node: ast.AST) -> Iterator[str]:
    """Modules of the package that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name.split(".")[0] == "weft")
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
        for a in node.names:
            deeper = f"{node.module}.{a.name}"
            is_module = (ROOT.parent / deeper.replace(".", "/")).with_suffix(".py").exists() or (
                ROOT.parent / deeper.replace(".", "/") / "__init__.py"
            ).exists()
            yield deeper if is_module else node.module


def functions(file: pathlib.Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_files_import_only_downward(file):
    mine = module_name(file)
    if file.name == "__init__.py" and mine != "weft":
        return  # a folder's own list of names
    for node in parsed(file).body:
        for name in imported(node):
            # within a folder that is one layer, the test of cycles below decides
            one_layer = place(name) == place(mine) and name not in ORDER[: place(mine)]
            assert place(name) < place(mine) or one_layer, (
                f"{mine} imports {name}, which comes later in the house"
            )


def test_folders_of_one_layer_have_no_cycles():
    edges = {module_name(f): {n for node in parsed(f).body for n in imported(node)} for f in FILES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, "a cycle: " + " -> ".join((*path, name))
        if name in done:
            return
        for other in edges.get(name, ()):
            if other != name and other.count(".") >= 1 and other in edges:
                visit(other, (*path, name))
        done.add(name)

    for name in edges:
        if not name.endswith("__init__"):
            visit(name, ())


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_no_import_is_hidden_in_a_function(file):
    for function in functions(file):
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
                )
                for name in names:
                    own = (name or "weft").split(".")[0] == "weft"
                    assert not own, f"{file.name}:{node.lineno} hides an import of {name}"


def code_lines(file: pathlib.Path) -> int:
    """Lines that hold code: documentation is not what a budget should make scarce."""
    docs = set()
    for node in ast.walk(parsed(file)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            text = body[0].value
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                docs |= set(range(text.lineno, text.end_lineno + 1))
    silent = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    }  # fmt: skip
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
        if token.type not in silent:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docs)


def test_sizes():
    over = []
    total = spine = 0
    for file in FILES:
        lines = len(file.read_text().splitlines())
        code = code_lines(file)
        total += code
        spine += code if file in SPINE else 0
        if lines > 800:
            over.append(f"{module_name(file)}: {lines} lines, budget 800")
        for f in functions(file):
            size = f.end_lineno - f.lineno + 1
            if size > 75:
                over.append(f"{module_name(file)}.{f.name}: {size} lines, budget 75")
    assert not over, "\n".join(over)
    assert spine <= 16000, f"the spine has {spine} lines of code, budget 16,000"
    assert total <= 52000, f"the package has {total} lines of code, budget 52,000"


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_every_file_says_what_it_is(file):
    text = file.read_text()
    if text.strip():
        assert ast.get_docstring(parsed(file)), f"{module_name(file)} has no docstring"
    for word in ("TODO", "FIXME", "XXX"):
        assert word not in text, f"{module_name(file)} holds a {word}"


def public_objects() -> Iterator[tuple[str, object]]:
    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] == "weft" and hasattr(module, "__all__"):
            for key in module.__all__:
                yield f"{name}.{key}", getattr(module, key)


def test_every_public_name_exists_and_is_documented():
    bare = [
        name
        for name, x in public_objects()
        if callable(x)
        and str(getattr(x, "__module__", "")).startswith("weft")
        and not (getattr(x, "__doc__", None) or "").strip()
    ]
    assert not bare, "without a docstring: " + ", ".join(bare)


def all_primitives() -> list:
    from weft.core.primitive import Primitive

    found, todo = [], [Primitive]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        if cls.__module__.startswith("weft."):
            found.append(cls)
    return found


def test_every_primitive_class_is_documented_and_has_few_rules():
    rules = {
        "abstract_eval", "lower", "jvp", "transpose", "batch", "impl", "staged", "partial_eval",
        "dce",
    }  # fmt: skip
    for cls in all_primitives():
        assert (cls.__doc__ or "").strip(), f"{cls.__name__} has no docstring"
        own = rules & set(vars(cls))
        assert len(own) <= 9, f"{cls.__name__} has {len(own)} rules"


def test_a_cold_jit_is_a_short_walk():
    seen = set()
    top = str(ROOT)

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(top):
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    x = weft.device_put(np.ones(3, np.float32))
    weft.jit(lambda x: x + x)(x)  # what a process does once is not part of the walk
    f = weft.jit(lambda x: weft.numpy.sin(x) * x)
    sys.setprofile(profile)
    try:
        f(x)
    finally:
        sys.setprofile(None)
    assert len(seen) <= 155, "\n".join(sorted(map(str, seen)))
