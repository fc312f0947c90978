"""Memory of dead arrays that is kept for new results: reused, bounded, and returned.

The tests count page faults and bytes, not times. Each test that counts runs in a new process, where
nothing else allocates memory.
"""

import functools
import subprocess
import sys

import pytest

import weft
from weft.mesh import blocks

pytestmark = pytest.mark.skipif(not blocks.keep_blocks(), reason="no blocks are kept here")

PRELUDE = """
import gc, os, resource, sys, threading, time, warnings
import numpy as np
import weft, weft.numpy as jnp
from weft.mesh import blocks

def count_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

MB = 1 << 20
weft.devices()
blocks.keep_blocks(1000.0)  # seconds: a slow machine is no idle one
host = np.ones(4 * MB, np.float32)
a = jnp.array(host)
grid = jnp.ones((1024, 1024))
"""


def run(script):
    """Run a script in a process of its own."""
    made = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[-3000:]


def test_a_steady_loop_has_no_page_faults():
    """Eager and compiled programs, copies from the host, temporaries, loops and sorts."""
    run("""
def step(i, u):
    return u.at[1:-1, 1:-1].set(u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1]))

programs = {
    "fused": weft.jit(lambda: a * a + a * 2.0),
    "several results": weft.jit(lambda: (a + 1.5, a * 2, a - 3)),
    "from the host": lambda: jnp.array(host),
    "eager": lambda: jnp.sqrt(jnp.abs(a) * 2 + 1) - a,
    "softmax": weft.jit(lambda: weft.nn.softmax(a.reshape(2048, -1))),
    "sort": weft.jit(lambda: jnp.sort(a.reshape(-1, 256))),
    "loop": weft.jit(lambda: weft.lax.fori_loop(0, 5, step, grid)),
}
for name, program in programs.items():
    # A thread may free a result after the next call has begun, which then needs one more block.
    # So the first calls need new blocks, some of them late; calls that always do never settle.
    calls = []
    while len(calls) < 100 and (len(calls) < 5 or max(calls[-5:]) >= 20):
        before = count_faults()
        weft.block_until_ready(program())
        calls.append(count_faults() - before)
    assert max(calls[-5:]) < 20, (name, calls)
""")


VIEWS_AND_DONATION = """
view, capsule = np.asarray(a * 2), np.from_dlpack(a * 3)
for _ in range(5):
    (a * 7).block_until_ready()
assert (view == 2).all() and (capsule == 3).all()
donate = weft.jit(lambda x: x + 1, donate_argnums=0)
x = jnp.array(host)
for _ in range(5):
    x = donate(x)
assert (np.asarray(x) == 6).all()
"""

THREADS = """
add = weft.jit(lambda x, y: x * y)

def work(factor):
    for _ in range(20):
        assert (np.asarray(add(grid, factor)) == factor).all()

failed = []
threading.excepthook = failed.append
threads = [threading.Thread(target=work, args=(float(i + 1),)) for i in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not failed, failed[0]
"""

# A child process must not run programs, but may free arrays and keep their blocks.
FORK = """
warnings.simplefilter("ignore")
kept = blocks.count_kept_bytes()
assert kept
pid = os.fork()
if pid == 0:
    del view, capsule, x
    blocks.free_kept_blocks()
    os._exit(blocks.count_kept_bytes() > 0)
assert os.waitpid(pid, 0)[1] == 0
assert blocks.count_kept_bytes() >= kept and (np.asarray(x) == 6).all()
"""

GIVEN_BACK = """
assert weft.config.kept_memory == -1
blocks.free_kept_blocks()
y = jnp.array(host)
before = resident()
del y
gc.collect()
kept = blocks.count_kept_bytes()
assert 16 * MB <= kept < 18 * MB, kept
weft.clear_caches()
assert blocks.count_kept_bytes() == 0 and before - resident() > 14 * MB
"""

# A refused request frees all kept blocks, and is repeated. The blocks are larger than 32 MB:
# smaller ones may be in glibc's heap, which keeps their addresses, and the limit counts addresses.
REFUSED = """
made = weft.jit(lambda: jnp.arange(40 * MB, dtype=np.float32))
made.lower().compile()
wide = np.ones(10 * MB, np.float32)
many = [jnp.array(wide) for _ in range(6)]
weft.block_until_ready(many)
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
del many
gc.collect()
assert blocks.count_kept_bytes() >= 240 * MB
resource.setrlimit(resource.RLIMIT_AS, (size + 64 * MB, resource.RLIM_INFINITY))
assert blocks.choose_limit() <= (size + 64 * MB) // 8
large = made().block_until_ready()
assert large.size == 40 * MB and blocks.count_kept_bytes() < 64 * MB
del large
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""

# Arrays of many sizes, which no block fits twice: the bound holds, and the process does not grow.
VARYING = """
with weft.config.scope(kept_memory=20 * MB):
    blocks.keep_blocks(1000.0)
random = np.random.default_rng(0)
sizes = random.integers(1, MB, 800)
for i, size in enumerate(sizes):
    jnp.array(host[:size])
    assert blocks.count_kept_bytes() <= 20 * MB
    if i == 200:
        before = resident()
assert resident() - before < 30 * MB
"""

IDLE = """
blocks.keep_blocks(0.2)
jnp.array(host).block_until_ready()
for _ in range(100):
    if not blocks.count_kept_bytes():
        break
    time.sleep(0.1)
else:
    raise AssertionError("an idle block stays")
with weft.config.scope(kept_memory=0):
    assert not blocks.keep_blocks()
jnp.array(host).block_until_ready()
assert blocks.count_kept_bytes() == 0
"""


def test_what_is_kept_is_sound_and_bounded_and_given_back():
    """All in one process, since importing takes most of the time."""
    parts = VIEWS_AND_DONATION, THREADS, FORK, GIVEN_BACK, REFUSED, VARYING, IDLE
    run("".join(parts))


def test_without_the_library_nothing_is_kept(tmp_path, monkeypatch):
    """This is the case on other systems, and with an unexpected processor or jaxlib."""
    monkeypatch.setattr(blocks, "load_library", functools.cache(lambda: None))
    assert not blocks.keep_blocks() and blocks.count_kept_bytes() == 0
    blocks.free_kept_blocks()
    assert blocks.find_library(tmp_path) is None
    assert blocks.find_library(blocks.FOLDER) is not None


def test_the_limit_follows_the_option_and_the_group(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "list_group_folders", lambda kind: [tmp_path])
    (tmp_path / "memory.max").write_text("max\n")
    free = blocks.choose_limit()
    (tmp_path / "memory.max").write_text(f"{80 << 20}\n")
    assert blocks.choose_limit() == 10 << 20 < free
    with weft.config.scope(kept_memory=5):
        assert blocks.choose_limit() == 5
