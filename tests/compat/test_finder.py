"""The switch: `import jax` means weft, in this process and its children, and JAX is never loaded.

Each test is a program in a process of its own, with a package `jax` on its path that must not load.
"""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def run(tmp_path):
    """Run Python with arguments next to a JAX that complains; return the output."""
    real = tmp_path / "site" / "jax"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("raise SystemExit('JAX itself was loaded')")

    def run(*args, status=0, **variables):
        path = os.pathsep.join([str(real.parent), *filter(None, sys.path)])
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", *map(str, args)],
            env={**os.environ, "PYTHONPATH": path, **variables},
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran.stdout + (ran.stderr if status else "")

    return run


MODULES = """
import importlib.metadata, sys, threading
assert "jax.version" in sys.modules and "jax" not in sys.modules  # lab asks if there is jaxlib
import jax, weft
assert {"jax.core", "jax.version"} <= sys.modules.keys()
import jax.numpy as jnp
import jax.experimental.pallas.tpu as pltpu
import jax.extend as jex, jax.extend.linear_util, jax.lib.xla_bridge
from jax import core, grad, lax, random
from jax.experimental import colocated_python, pjit, shard_map
from jax.scipy.stats import norm
from jax._src import dtypes, tree_util
from jax._src.core import JaxprEqnContext, is_constant_dim, trace_ctx
from jax._src.interpreters.batching import make_iota, to_elt
from jax._src.lax.control_flow import scan
from jax._src.lib import xla_client
from jax._src.numpy.util import promote_dtypes_complex, promote_dtypes_inexact
from jax._src.scipy.special import gammaln
from jax._src.sharding_impls import UNSPECIFIED
from jax.extend.core import CallPrimitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo
import jax._src.lib.mlir.dialects.arith, jax.extend.mlir.ir
assert jnp is jax.numpy is sys.modules["jax.numpy"] is weft.numpy and jax.Array is weft.Array
assert (weft.numpy.__spec__.name, weft.numpy.__name__) == ("weft.numpy", "jax.numpy")
assert grad is weft.grad and jax.jit is weft.jit and norm is weft.scipy.stats.norm
assert core is weft.core and core.DropVar is jex.core.DropVar is weft.extend.core.DropVar
assert not jax.lib.xla_bridge._backends and "weft.explain.script" not in sys.modules
assert jax.lib.xla_bridge.get_backend().platform == jax.default_backend()
assert dtypes.float0 is jax.dtypes.float0
names = {n: m for m in (jax, jnp, lax, random, jax.tree) for n in m.__all__ if n not in vars(m)}
assert not names, names  # libraries copy `vars(jax.numpy)`, whose names are imported lazily
assert func.func and stablehlo.AddOp and ir.Context is jax.extend.mlir.ir.Context
assert scan is lax.scan and trace_ctx.trace is not None and is_constant_dim(3)
known = []
jax.jit(jax.grad(lambda x: known.append(core.is_concrete(x)) or x))(1.0)
assert core.is_concrete(1.0) and known == [False]
assert jax.jit(lambda x: x, in_shardings=UNSPECIFIED)(1) == 1
assert promote_dtypes_inexact(1)[0].dtype == jnp.float32
assert f"{jax.typeof(jnp.ones(2))} {jax.typeof(1.0)}" == "float32[2] ~float32[]"
assert "a:f32[]. let b:f32[] = sin a" in str(jax.make_jaxpr(jnp.sin)(1.0))
(make_error,) = tree_util.prefix_errors((1, [2]), (1, 2))
assert "at in_axes[1]" in str(make_error("in_axes")) and not tree_util.prefix_errors(1, [2])
assert importlib.metadata.version("jax") == jax.__version__ == jax.version.__version__
assert importlib.metadata.version("jaxlib") == jax.lib.__version__
assert jax.__version_info__ >= (0, 10, 2) and "vmap" in dir(jax) and "__version__" in dir(jax)
print(*random.key_data(random.split(random.key(0)))[0], jnp.arange(3)[7])
thread = threading.Thread(target=exec, args=("import jax.nn, weft; assert jax.nn is weft.nn",))
thread.start(), thread.join()
for text in '''
from jax import nonsense
import jax.nonsense
from jax.numpy import asmatrix
jax.tree_map
jax.util
jax.experimental.enable_x64
import jax.experimental.maps
from jax._src import nonsense
pltpu.PrefetchScalarGridSpec(1)
colocated_python.colocated_python(abs)
'''.strip().splitlines():
    try:
        exec(text)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
class Spec(pltpu.PrefetchScalarGridSpec): pass
assert not hasattr(jax, "nonsense") and not hasattr(jax, "util") and not hasattr(jax, "pytrees")
(z,) = promote_dtypes_complex(jnp.arange(2))
assert z.dtype == "complex64" and not isinstance(1, pltpu.PrefetchScalarGridSpec)
"""

SAYS = """
1797259609 2579123966 2
ImportError: jax.nonsense: must be a name that weft has; got one that it has not. Hint: see
ModuleNotFoundError: jax.nonsense: must be a name that weft has
ImportError: jax.numpy.asmatrix: must be a name that weft has; got one that it has not. Hint: use t
AttributeError: jax.tree_map: is no longer part of JAX. Hint: use jax.tree.map.
AttributeError: jax.util: is no longer part of JAX.
AttributeError: jax.experimental.enable_x64: is no longer part of JAX. Hint: use jax.enable_x64.
ModuleNotFoundError: jax.experimental.maps: is no longer part of JAX. Hint: use jax.shard_map.
ImportError: jax._src.nonsense: is private to JAX. Hint: use the public name.
NotImplementedError: jax.experimental.pallas.tpu.PrefetchScalarGridSpec: is out of scope of weft.
NotImplementedError: jax.experimental.colocated_python.colocated_python: is out of scope of weft.
"""


def test_modules_of_jax_are_those_of_weft(run):
    """Numbers are as today's JAX draws them, and an index out of bounds reads the last element."""
    lines = run("-m", "weft", "-c", MODULES).splitlines()
    for line, start in zip(lines, SAYS.strip().splitlines(), strict=True):
        assert line.startswith(start)


PROGRAM = """
import multiprocessing, os, subprocess, sys

def square(x):
    import jax, jax.numpy as jnp, weft
    assert jnp is weft.numpy
    return int(jax.jit(lambda x: x * x)(x))

if __name__ == "__main__":
    if sys.argv[1:] == ["install"]:
        import weft.compat
        weft.compat.install()
        weft.compat.load_ipython_extension(None)  # once more does nothing
    os.environ["JAX_ENABLE_X64"] = "1"
    import jax
    print(sys.argv[1:], jax.numpy.ones(2).dtype, jax.config.jax_enable_x64)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, [3]))
    code = "import jax, weft; print(jax.numpy is weft.numpy)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize("way", [["-m", "weft"], ["install"], []])
def test_programs_and_their_children_run_on_weft(run, tmp_path, way):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    if way == ["install"]:
        out, args = run(file, "install"), ["install"]
    else:
        variables = {} if way else {"WEFT_AS_JAX": "1"}
        out, args = run(*way, file, "-x", "1", **variables), ["-x", "1"]
    assert out.split("\n")[:3] == [f"{args} float64 True", "[9]", "True"]


TESTS = """
import jax, weft

def test_one():
    assert jax.numpy is weft.numpy

def test_other():
    x = jax.numpy.ones(())
    assert x == 2
"""


@pytest.mark.parametrize("way", [["-m", "weft", "-m", "pytest"], ["-m", "pytest"]])
def test_pytest_runs_on_weft(run, tmp_path, way):
    """Assertions show the compared values; pytest-xdist's workers inherit the switch too."""
    (tmp_path / "test_it.py").write_text(TESTS)
    args = ["-p", "weft.compat.pytest", "-n", "1"] if way == ["-m", "pytest"] else []
    out = run(*way, "-q", "-p", "no:cacheprovider", *args, "test_it.py", status=1)
    assert "1 failed, 1 passed" in out and "assert Array(1., dtype=float32) == 2" in out


def test_switch_says_when_it_is_too_late(run):
    code = "import weft.compat, sys; sys.modules['jax'] = sys; weft.compat.install()"
    assert "must be called before the first `import jax`" in run("-c", code, status=1)
