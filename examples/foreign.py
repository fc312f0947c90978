"""A layer in C++: compiled by the system's compiler, called by `ffi_call`, trained through.

foreign.cc normalizes rows by their root mean square, and has the derivative; here the two are
joined by `custom_vjp` into a function like any other, which `jit`, `grad` and `vmap` take. A
network with it learns the digits, and the same network in weft's own operations is trained beside
it. Exits with status 1 when the parameters of the two differ by more than 1e-4, or the accuracy on
held-out digits is 95% or less.

usage: python examples/foreign.py [--epochs 30] [--seed 0] [--out examples/out]
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import BLUE, ORANGE, arguments, axes, progress, save, verdict
from digits_data import split_digits

import weft
import weft.numpy as jnp
from weft import custom_vjp, ffi, jit, nn, random, tree, value_and_grad

EPS = np.float32(1e-5)
GOAL, CLOSE = 0.95, 1e-4


def build():
    """Compile foreign.cc into a folder that goes away, load it, make its functions known."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        sys.exit("foreign: needs a C++ compiler; got none. Hint: set CXX.")
    source = Path(__file__).with_name("foreign.cc")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "foreign.so"
        flags = ["-std=c++17", "-O2", "-w", "-shared", "-fPIC", f"-I{ffi.include_dir()}"]
        subprocess.run([compiler, *flags, str(source), "-o", str(path)], check=True)
        library = ctypes.CDLL(str(path))
    for name in ("rms_norm", "rms_norm_derivative"):
        ffi.register_ffi_target(name, ffi.pycapsule(getattr(library, name)))


def like(x, shape=None):
    return weft.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype)


def call_norm(x, w):
    """The normalized rows, and the factor of each."""
    call = ffi.ffi_call("rms_norm", (like(x), like(x, x.shape[:-1])), vmap_method="sequential")
    return call(x, w, eps=EPS)


@custom_vjp
def foreign_norm(x, w):
    """Rows x (..., n) of root mean square 1, times w (n,), by the code in C++."""
    return call_norm(x, w)[0]


def forward(x, w):
    y, inverse = call_norm(x, w)
    return y, (x, w, inverse)


def backward(kept, dy):
    x, w, _ = kept
    call = ffi.ffi_call("rms_norm_derivative", (like(x), like(w)), vmap_method="sequential")
    return call(*kept, dy)


foreign_norm.defvjp(forward, backward)


def own_norm(x, w):
    """The same in weft's operations."""
    return w * x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + EPS)


def init_params(key, sizes=(64, 128, 64, 10)):
    """Weights, biases and the scales of the normalization for each layer."""
    keys = random.split(key, len(sizes))
    return [
        (random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n), jnp.ones(n))
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def predict(params, x, norm):
    """Logits of the classes, (batch, 10)."""
    for weights, bias, scale in params[:-1]:
        x = nn.gelu(norm(x @ weights + bias, scale))
    weights, bias, _ = params[-1]
    return x @ weights + bias


def make_step(norm):
    """A jitted step of momentum: params, velocity, batch -> params, velocity, loss."""

    def loss(params, images, labels):
        scores = nn.log_softmax(predict(params, images, norm))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))

    @jit
    def step(params, velocity, images, labels):
        value, grads = value_and_grad(loss)(params, images, labels)
        velocity = tree.map(lambda v, g: 0.9 * v - 0.02 * g, velocity, grads)
        return tree.map(jnp.add, params, velocity), velocity, value

    return step


def train(norms, params, images, labels, epochs, batch=100):
    """Train one network for each norm, on the same batches; their params, losses and distances."""
    steps = [make_step(norm) for norm in norms]
    runs = [(params, tree.map(jnp.zeros_like, params)) for _ in norms]
    losses, apart = [], []
    bar = progress(epochs, unit="epoch")
    for _ in bar:
        for start in range(0, len(labels) - batch + 1, batch):
            rows = slice(start, start + batch)
            done = [step(*run, images[rows], labels[rows]) for step, run in zip(steps, runs)]
            runs = [(params, velocity) for params, velocity, _ in done]
        losses.append([float(value) for *_, value in done])
        apart.append(distance(*[params for params, _ in runs]))
        bar.set_postfix(loss=f"{losses[-1][0]:.4f}", apart=f"{apart[-1]:.1e}")
    return [params for params, _ in runs], np.array(losses), np.array(apart)


def distance(one, other):
    """The largest difference between two networks' parameters."""
    return max(float(jnp.abs(a - b).max()) for a, b in zip(tree.leaves(one), tree.leaves(other)))


def plot(losses, apart, file):
    figure, (left, right) = axes(1, 2)
    epochs = np.arange(1, len(losses) + 1)
    left.plot(epochs, losses[:, 0], color=BLUE, linewidth=4, alpha=0.4, label="layer in C++")
    left.plot(epochs, losses[:, 1], color=ORANGE, linewidth=1.2, label="weft's operations")
    left.set(yscale="log", xlabel="epoch", ylabel="training loss")
    left.set_title("One network, its layer written twice", loc="left", fontsize=11)
    left.legend(frameon=False)
    right.plot(epochs, apart, color=BLUE)
    right.set(yscale="log", xlabel="epoch", ylabel="largest difference of parameters")
    right.set_title("How far the two are apart", loc="left", fontsize=11)
    save(figure, file)


def main():
    args = arguments(__doc__, epochs=30)
    build()
    order, start = random.split(random.key(args.seed))
    train_set, (images, labels) = split_digits(
        lambda n: random.permutation(order, n), lambda x: jnp.asarray(x / 16), 300
    )
    (params, _), losses, apart = train(
        [foreign_norm, own_norm], init_params(start), *train_set, args.epochs
    )
    accuracy = float(jnp.mean(predict(params, images, foreign_norm).argmax(1) == labels))
    print(f"held-out accuracy {accuracy:.1%}, parameters within {apart.max():.1e}")
    plot(losses, apart, args.out / "foreign.png")
    reached = accuracy > GOAL and apart.max() < CLOSE
    bar = f"held-out accuracy above {GOAL:.0%}, parameters within {CLOSE:g} of weft's own"
    return verdict("foreign", reached, bar)


if __name__ == "__main__":
    sys.exit(main())
