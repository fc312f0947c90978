"""Programs for the tests of this folder, in a process of their own: `python programs.py NAME`."""

import os
import random
import resource
import signal
import sys
import threading
import time

import numpy as np

import weft
import weft.numpy as jnp
from weft.xla.diskcache import DiskCache

X = jnp.ones((8, 8))


def long_program(i, steps=300):
    def f(x):
        for _ in range(steps):
            x = jnp.sin(x) * x + jnp.cos(x @ x)
        return x + i

    return f


def interrupt_soon(most):
    """Send this process SIGINT within `most` seconds, from a thread."""
    wait = random.uniform(0, most)
    timer = threading.Timer(wait, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    return timer


def count_interrupts(times, most, do):
    """Interrupt `do(i)` this often, at random times."""
    caught = 0
    for i in range(times):
        try:
            timer = interrupt_soon(most)
            do(i)
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            caught += 1
    print(caught, float(weft.jit(jnp.sum)(jnp.ones(3))))


def compiles(times):
    lowered = [weft.jit(long_program(i, 100)).lower(X) for i in range(8)]
    count_interrupts(int(times), 0.1, lambda i: lowered[i % 8].compile())


def loads(times):
    """Executables from the disk cache."""
    lowered = weft.jit(long_program(0)).lower(X)
    lowered.compile()
    count_interrupts(int(times), 0.05, lambda i: lowered.compile())


def runs(times):
    """Run a loop of a tenth of a second, and read its result."""
    loop = weft.jit(lambda x: weft.lax.fori_loop(0, 20000, lambda i, c: jnp.cos(c @ c), x))
    loop(X).block_until_ready()
    count_interrupts(int(times), 0.1, lambda i: np.asarray(loop(X + i)))


def callbacks(times):
    """A program that calls Python again and again."""

    def call(x):
        time.sleep(0.0005)
        return x

    shape = weft.ShapeDtypeStruct((), jnp.float32)
    step = lambda i, c: weft.pure_callback(call, shape, c) + 1
    loop = weft.jit(lambda x: weft.lax.fori_loop(0, 100, step, x))
    loop(1.0)
    count_interrupts(int(times), 0.06, lambda i: loop(1.0))


def threads(times):
    """Others trace and compile while the main thread is interrupted."""
    over, failures = threading.Event(), []

    def work(n):
        while not over.is_set():
            x = float(weft.grad(weft.jit(lambda x: jnp.sin(x) * n))(0.0))
            if x != n:
                failures.append(x)

    workers = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(2)]
    for worker in workers:
        worker.start()
    count_interrupts(int(times), 0.05, lambda i: weft.make_jaxpr(long_program(i))(X))
    over.set()
    for worker in workers:
        worker.join()
    print(failures)


def ends_in_a_compile():
    """Leave an interrupted compile behind, and end."""
    lowered = weft.jit(long_program(0)).lower(X)
    try:
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
        lowered.compile()
    except KeyboardInterrupt:
        print("left")


def told_to_end():
    """Compile one program after another until killed."""
    for i in range(1000):
        weft.jit(long_program(i, 20)).lower(X).compile()
        print("one more", flush=True)


def no_more_files():
    weft.jit(lambda x: jnp.cos(x) * 3)(X)  # imports the modules that are loaded late
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    kept = []
    try:
        while True:
            kept.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    disk = DiskCache(os.environ["WEFT_CACHE_DIR"], 1 << 30)
    disk.put("a", b"x")
    print(disk.get("a"))
    try:
        weft.jit(lambda x: jnp.sin(x) * 3)(X)
    except weft.errors.JaxRuntimeError as error:
        print(str(error).split(";")[0])
    os.close(kept.pop())
    print(float(weft.jit(jnp.sum)(jnp.ones(3))))


def small_files_alone():
    """Simulate a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    print(float(weft.jit(lambda x: jnp.sin(x).sum())(jnp.zeros(3))))
    print(os.listdir(os.environ["WEFT_CACHE_DIR"]))


def fails_at_exit():
    """Exceptions where Python is about to end, and where objects do."""

    class Loud:
        def __del__(self):
            raise ValueError("in __del__")

    loud = Loud()
    f = weft.jit(lambda x: (x + 1, loud)[0])
    f(X)
    weft.debug.callback(lambda x: None, X)


def fork():
    import warnings

    warnings.simplefilter("always")
    f = weft.jit(lambda x: x + 1)
    x = f(f(X))
    pid = os.fork()
    if pid == 0:
        print(np.asarray(x).sum(), flush=True)
        for call in (lambda: f(x), lambda: jnp.sin(x), lambda: weft.jit(lambda x: x * 5)(x)):
            try:
                call()
            except RuntimeError as error:
                print(str(error).split(",")[0], flush=True)
        sys.exit(3)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), float(f(x)[0, 0]))


def too_large(how):
    """A result without memory, of an operand that is still being computed."""
    wide = weft.jit(lambda x: jnp.broadcast_to(x, (1 << 40,)))
    slow = weft.jit(lambda x: jnp.sort(jnp.broadcast_to(x, (1000, 1000)), 0).sum() * 0)
    try:
        x = wide(slow(1.0))
        {"repr": repr, "asarray": np.asarray, "device_get": weft.device_get}[how](x)
    except weft.errors.JaxRuntimeError as error:
        print(str(error).split(":")[0], float(slow(1.0)))


def deep():
    """A function that calls itself for ever."""

    def f(x):
        return f(x + 1)

    for transform in (weft.jit, weft.grad, weft.vmap, weft.make_jaxpr):
        try:
            transform(f)(jnp.ones(3) if transform is weft.vmap else 1.0)
        except RecursionError:
            print("RecursionError", float(weft.jit(jnp.sum)(jnp.ones(3))))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    globals()[sys.argv[1]](*sys.argv[2:])
