"""The cost of a call of each function, eager and as `jit(f)`, on eight numbers, one in a line.

usage: eager.py [--only SUBSTRING ...] [--seconds SECONDS]
A line has the eager call as a multiple of the jitted one, both in microseconds, and the operands:
the first of a short list that the function takes. `jit(f)` is called with the operands that are
arrays; the others are part of its program. Both are timed as statements of a program, in
alternating batches; figures are the minimum for a call.
"""

import argparse
import importlib
import time
import timeit
import warnings

import numpy as np

import weft
import weft.numpy as jnp

MODULES = "numpy lax nn scipy.special random".split()  # noqa: SIM905
LIMIT = 1.3
# ruff: noqa: E741
V, I, B = jnp.arange(8.0) / 8, jnp.arange(8), jnp.arange(8) < 4
M, KEY, S = jnp.arange(8.0).reshape(2, 4), weft.random.key(3), jnp.float32(0.5)
W, J, P, Q = V[:4], I[2], I[:2], jnp.eye(2)
N, E, G = M.T, M[:1], M > 0
HOST = np.arange(8, dtype=np.float32)
DIMS = weft.lax.GatherDimensionNumbers((), (0,), (0,))
DROP = weft.lax.ScatterDimensionNumbers((), (0,), (0,))
# Operands of functions: the first that raises no error is used.
OPERANDS = [
    (V,), (V, V), (V, 2), (B, V, V), (V, V, V), (I,), (I, I), (I, 2), (B,), (M,), (M, M.T),
    ([V, V],), ([V, V], 0), (M, (1, 0)), (V, (2, 4)), (V, (2, 4), (1,)), (V, (2, 2), (0, 1)),
    (V, "float32"), (V, 2, 3), (V, 0, 2, 5), (V, (2,), (5,)), (V, (S,), (3,)), (V, (I[2],), (3,)),
    (V, I[2], 3), (V, V[:3], I[2]), (V, V[:3], (I[2],)), (V, V[2], I[2], 0), (M, (0, 1), (1, 1)),
    (M, 1, 0), (M, 0, 1), (V, S, [(1, 1, 0)]), (0.0, 1.0, V), (0.0, V, 1.0), (8,), ((8,),),
    ((8,), 2.0),
    ((2, 4),), ("float32", 8), ("int32", 8), ("float32", (2, 4), 0), (0.0, 1.0), (0, 8), (V, 0),
    (V, (0,)), (V, I, 2), (V, I, V), (V, V, I), (I, V), (V, I[:, None], DIMS, (1,)),
    (V, I[:, None], V, DROP), ("ij,jk", M, M.T), (M, M.T, (((1,), (0,)), ((), ()))),
    (M[None], M[None, :, :2], (1,), "VALID"), (V, 1, 0.5, 2.0),
    (V[None, None], V[None, None, :2], (1,), "SAME"), (KEY,), (KEY, (8,)), (KEY, V), (KEY, 3),
    (KEY, (8,), V), (KEY, V, (3,)), (KEY, (8,), 0, 9), (KEY, 4.0, 0.5, (8,)),
    (KEY, 1.0, 2.0, (8,)), (KEY, V[:2], jnp.eye(2)),
]  # fmt: skip
# What is called by an expression: methods, operators, indexing, keywords.
EXPRESSIONS = """
-V V+V V-V V*V V/V V//V V%V V**V V@V V<V V==V I&I I|I I^I ~I I<<I abs(V) divmod(V,V) V+1 V+1.0 1+V
V-1 2*V V/2 1/V V**2 V**0.5 V%2 V//2 V<1 V==0 I+1 I&1 I>>1 V+S V+I M+W V+HOST V[0] V[-1] V[1:4]
V[::2] V[::-1] V[None] V[I] M[0] M[:,1] M[0,1] M[...,None] M[P,P] V.at[0].set(1.0) V.at[J].set(1.0)
V.at[I].add(V) V.at[1:4].set(0.0) V.at[0].get() M.at[0].set(W) V.astype('int32')
V.astype(jnp.float32) V.sum() V.mean() V.max() M.sum(0) M.sum(axis=1) M.T V.std() V.prod()
V.argmax() V.reshape(2,4) V.reshape((2,4)) V.reshape(-1) M.ravel() M.flatten() M.transpose()
M.transpose(1,0) V.copy() V.clip(0,1) V.round() V.cumsum() V.sort() V.argsort() V.dot(V) V.take(I)
M.squeeze() M.swapaxes(0,1) V.any() V.all() V.repeat(2) V.searchsorted(V) V.view('int32') V.conj()
M.diagonal() M.trace() V.var() list(V) jnp.sum(M,axis=0) jnp.sum(M,axis=(0,1))
jnp.sum(M,axis=0,keepdims=True) jnp.mean(M,axis=-1) jnp.where(B,V,0.0) jnp.where(B,V,0)
jnp.where(B,V,V) jnp.clip(V,0.0,1.0) jnp.maximum(V,0) jnp.minimum(V,0.5) jnp.dot(M,W)
jnp.concatenate([V,V]) jnp.stack([V,V]) jnp.stack([V,V],axis=1) jnp.expand_dims(V,0) jnp.tile(V,2)
jnp.broadcast_to(V,(2,8)) jnp.array(V) jnp.array(HOST) jnp.asarray(HOST) jnp.array([1.0,2.0])
jnp.asarray(1.0) jnp.zeros((8,)) jnp.ones((8,)) jnp.full((8,),1.0) jnp.zeros(8,'int32')
jnp.zeros_like(V) jnp.ones_like(V) jnp.arange(8) jnp.arange(8.0) jnp.linspace(0,1,8) jnp.eye(8)
jnp.pad(V,1) jnp.roll(V,1) jnp.split(V,2) jnp.einsum('i,i->',V,V) jnp.tensordot(V,V,1)
jnp.linalg.norm(V) jnp.linalg.inv(Q) jnp.fft.fft(V) lax.dynamic_slice_in_dim(V,2,3)
lax.dynamic_slice_in_dim(V,J,3) lax.dynamic_index_in_dim(V,2)
lax.dynamic_index_in_dim(V,2,keepdims=False) lax.dynamic_update_index_in_dim(V,1.0,2,0)
lax.slice_in_dim(V,1,3) lax.dynamic_update_slice_in_dim(V,W,2,0) lax.dynamic_update_slice(V,W,(2,))
lax.dynamic_slice(V,(2,),(3,)) lax.index_in_dim(V,2) lax.index_take(V,(I,),(0,)) lax.add(V,1.0)
lax.max(V,0.0) lax.select(B,V,V) lax.broadcast_in_dim(V,(2,8),(1,)) lax.reshape(V,(2,4))
lax.transpose(M,(1,0)) lax.concatenate([V,V],0) lax.reduce_sum(V,axes=(0,)) lax.cumsum(V,axis=0)
lax.convert_element_type(V,jnp.int32) lax.top_k(V,2) lax.dot_general(M,N,(((1,),(0,)),((),())))
lax.iota(jnp.int32,8) lax.squeeze(E,(0,)) lax.expand_dims(V,(0,)) lax.stop_gradient(V)
lax.pad(V,S,[(1,1,0)]) lax.rev(V,(0,)) lax.sort(V,dimension=0) lax.clamp(0.0,V,1.0)
nn.softmax(M,axis=-1) nn.relu(V) nn.gelu(V,approximate=False) nn.one_hot(I,8)
nn.logsumexp(M,axis=1) nn.softmax(M,axis=-1,where=G) nn.standardize(M,axis=-1)
random.normal(KEY,(8,)) random.uniform(KEY,(8,),minval=0.0,maxval=2.0) random.split(KEY)
random.split(KEY,4) random.fold_in(KEY,3) random.randint(KEY,(8,),0,9)
random.bernoulli(KEY,0.5,(8,)) random.permutation(KEY,V) random.choice(KEY,V,(3,))
random.categorical(KEY,V) random.key(3) random.PRNGKey(3) random.key_data(KEY)
""".split()  # noqa: SIM905
NAMED = {**globals(), "lax": weft.lax, "nn": weft.nn, "random": weft.random}


def arrays_in(args):
    """The arguments that are arrays, and where they stand."""
    return {i: x for i, x in enumerate(args) if isinstance(x, weft.Array)}


def jit_call(fun, args):
    """`jit` of a call, and its operands; ValueError where it gives no array."""
    moved = arrays_in(args)

    def call(*xs):
        every = dict(enumerate(args)) | dict(zip(moved, xs, strict=True))
        return fun(*every.values())

    call.__name__ = getattr(fun, "__name__", "call")
    jitted = weft.jit(call)
    found = weft.tree.leaves((fun(*args), jitted(*moved.values())))
    if not found or not all(isinstance(x, weft.Array) for x in found):
        raise ValueError("no arrays")
    return jitted, tuple(moved.values())


def cases():
    """(name, the statement of a call, function, lists of its arguments): what may be measured."""
    for home in MODULES:
        module = importlib.import_module(f"weft.{home}")
        for name in module.__all__:
            fun = getattr(module, name)
            if callable(fun) and not isinstance(fun, type) and not name.startswith("save"):
                yield f"{home}.{name}", "", fun, OPERANDS
    for text in EXPRESSIONS:
        code = compile(text, text, "eval")
        used = [n for n in "V I B M S W J P Q N E G KEY".split() if n in code.co_names]  # noqa: SIM905
        fun = eval(f"lambda {', '.join(used)}: {text}", NAMED)
        yield text, text, fun, [[NAMED[n] for n in used]]


def first_call(fun, operands):
    """The first operands that a function takes, `jit` of the call, and its operands."""
    for args in operands:
        try:
            return args, *jit_call(fun, args)
        except Exception:  # these are not operands of the function
            continue
    return None


def statement(fun, args):
    """A call as a statement, and the names in it."""
    names = [f"x{i}" for i in range(len(args))]
    return f"fun({', '.join(names)})", {"fun": fun} | dict(zip(names, args, strict=True))


def least_times(calls, seconds):
    """The least microseconds of each statement, given with its names: of batches that alternate."""
    timers = [timeit.Timer(text, globals=names) for text, names in calls]
    best = [timer.timeit(20) / 20 for timer in timers]
    counts = [int(min(2000, max(1, 3e-4 / s))) for s in best]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, timer in enumerate(timers):
            best[i] = min(best[i], timer.timeit(counts[i]) / counts[i])
    return [1e6 * s for s in best]


def main():
    """Print a line for each function, and how many are above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="*", default=[""], help="names that contain any of these")
    parser.add_argument("--seconds", type=float, default=0.05, help="to spend on a function")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    weft.config.update("hints", False)
    found, over = 0, 0
    for name, text, fun, operands in cases():
        call = first_call(fun, operands) if any(part in name for part in args.only) else None
        if call is not None:
            given, jitted, arrays = call
            eagerly = (text, NAMED) if text else statement(fun, given)
            calls = [eagerly, statement(jitted, arrays)]
            eager, compiled = least_times(calls, args.seconds)
            found, over = found + 1, over + (eager > LIMIT * compiled)
            shown = weft.tree.map(lambda x: str(getattr(x, "aval", x)), (*given,))
            ratio = eager / compiled
            print(f"{ratio:6.2f} {eager:8.1f} {compiled:8.1f}  {name}  {shown}"[:99], flush=True)
    print(f"{over} of {found} take more than {LIMIT} times as long as a call of jit(f)")


if __name__ == "__main__":
    main()
