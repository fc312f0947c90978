"""Programs of small arrays by XLA and by C: `python bench/c_programs.py` prints a table.

Values and gradients of five programs; microseconds a call, the least of many calls taken in turn,
and seconds of the first call, without the disk cache. Two programs are also written in C by hand.
"""

import ctypes
import os
import pathlib
import subprocess
import tempfile
import time

os.environ["WEFT_CACHE_DIR"] = "off"

import numpy as np

import weft
import weft.numpy as jnp
from weft import export, lax, nn

ROUNDS, CALLS = 15, 40


def neuron(params):
    """FitzHugh and Nagumo's equations, 500 steps."""

    def step(state, _):
        v, w = state
        dv = v - v**3 / 3 - w + params[0]
        dw = params[1] * (v + params[2] - params[3] * w)
        return (v + 0.1 * dv, w + 0.1 * dw), v

    _, vs = lax.scan(step, (jnp.float32(0.1), jnp.float32(0.2)), None, length=500)
    return jnp.mean(vs**2)


def lorenz(state):
    """Lorenz's equations by Runge and Kutta's method, 200 steps."""

    def slope(s):
        x, y, z = s
        return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])

    def step(_, s):
        k1 = slope(s)
        k2 = slope(s + 0.005 * k1)
        k3 = slope(s + 0.005 * k2)
        k4 = slope(s + 0.01 * k3)
        return s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return jnp.sum(lax.fori_loop(0, 200, step, state))


def kalman(noise, ys):
    """The log-likelihood of 100 positions under a model of constant speed."""
    a, h = jnp.array([[1, 0.1], [0, 1]]), jnp.array([1.0, 0.0])

    def step(state, y):
        x, p = a @ state[0], a @ state[1] @ a.T + noise[0] * jnp.eye(2)
        s = h @ p @ h + noise[1]
        gain, error = p @ h / s, y - h @ x
        x, p = x + gain * error, p - jnp.outer(gain, h @ p)
        return (x, p), -0.5 * (error**2 / s + jnp.log(s))

    _, terms = lax.scan(step, (jnp.zeros(2), jnp.eye(2)), ys)
    return jnp.sum(terms)


def bundle(cameras, points, seen):
    """Squared residuals of 60 observations: 6 cameras with a rotation and a shift, 10 points."""

    def project(camera, point):
        axis, shift, focal = camera[:3], camera[3:6], camera[6]
        angle = jnp.sqrt(jnp.sum(axis**2) + 1e-12)
        unit = axis / angle
        turned = (
            point * jnp.cos(angle)
            + jnp.cross(unit, point) * jnp.sin(angle)
            + unit * jnp.dot(unit, point) * (1 - jnp.cos(angle))
        )
        x, y, z = turned + shift
        return focal * jnp.stack([x / z, y / z])

    places = weft.vmap(lambda c: weft.vmap(lambda p: project(c, p))(points))(cameras)
    return jnp.sum((places - seen) ** 2)


def lstm(params, xs):
    """The mean of the last state of an LSTM of 12 units after 30 steps of 4 inputs."""

    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ params["w"] + h @ params["u"] + params["b"], 4)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        return (nn.sigmoid(o) * jnp.tanh(c), c), None

    (h, _), _ = lax.scan(step, (jnp.zeros(12), jnp.zeros(12)), xs)
    return jnp.mean(h)


def make_programs():
    """The programs, by name: the function of its first argument, and the arguments."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape).astype(np.float32))
    cameras = 0.1 * draw(6, 7) + jnp.array([0, 0, 0, 0, 0, 5.0, 1.0])
    params = {"w": 0.3 * draw(4, 48), "u": 0.3 * draw(12, 48), "b": jnp.zeros(48)}
    return {
        "neuron": (neuron, (jnp.array([0.5, 0.08, 0.7, 0.8]),)),
        "lorenz": (lorenz, (jnp.array([1.0, 1.0, 1.0]),)),
        "kalman": (kalman, (jnp.array([0.01, 1.0]), draw(100))),
        "bundle": (bundle, (cameras, draw(10, 3), draw(6, 10, 2))),
        "lstm": (lstm, (params, draw(30, 4))),
    }


# Values and gradients as a person writes them in C, of two of the programs.
BY_HAND = r"""
#include <math.h>
#include <string.h>

void neuron(const float *p, float *grads, float *value) {
  static _Thread_local float vs[501], ws[501];
  float total = 0.0f, v = 0.1f, w = 0.2f;
  for (int k = 0; k < 500; ++k) {
    vs[k] = v;
    ws[k] = w;
    total += v * v;
    const float dv = v - v * v * v / 3.0f - w + p[0];
    const float dw = p[1] * (v + p[2] - p[3] * w);
    v += 0.1f * dv;
    w += 0.1f * dw;
  }
  *value = total / 500.0f;
  float vt = 0.0f, wt = 0.0f, g0 = 0.0f, g1 = 0.0f, g2 = 0.0f, g3 = 0.0f;
  for (int k = 499; k >= 0; --k) {
    const float x = vs[k], y = ws[k], dv = 0.1f * vt, dw = 0.1f * wt;
    g0 += dv;
    g1 += dw * (x + p[2] - p[3] * y);
    g2 += dw * p[1];
    g3 -= dw * p[1] * y;
    vt += dv * (1.0f - x * x) + dw * p[1] + 2.0f * x / 500.0f;
    wt += -dv - dw * p[1] * p[3];
  }
  grads[0] = g0;
  grads[1] = g1;
  grads[2] = g2;
  grads[3] = g3;
}

static void slope(const float *s, float *d) {
  d[0] = 10.0f * (s[1] - s[0]);
  d[1] = s[0] * (28.0f - s[2]) - s[1];
  d[2] = s[0] * s[1] - 8.0f / 3.0f * s[2];
}

/* t += J(s)^T c */
static void pull(const float *s, const float *c, float *t) {
  t[0] += -10.0f * c[0] + (28.0f - s[2]) * c[1] + s[1] * c[2];
  t[1] += 10.0f * c[0] - c[1] + s[0] * c[2];
  t[2] += -s[0] * c[1] - 8.0f / 3.0f * c[2];
}

static void stages(const float *s, float k[4][3], float at[4][3]) {
  const float shift[4] = {0.0f, 0.005f, 0.005f, 0.01f};
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 3; ++i) at[j][i] = j ? s[i] + shift[j] * k[j - 1][i] : s[i];
    slope(at[j], k[j]);
  }
}

void lorenz(const float *start, float *grads, float *value) {
  static _Thread_local float states[200][3];
  float s[3], k[4][3], at[4][3];
  memcpy(s, start, sizeof s);
  for (int n = 0; n < 200; ++n) {
    memcpy(states[n], s, sizeof s);
    stages(s, k, at);
    for (int i = 0; i < 3; ++i)
      s[i] += 0.01f / 6.0f * (k[0][i] + 2.0f * k[1][i] + 2.0f * k[2][i] + k[3][i]);
  }
  *value = s[0] + s[1] + s[2];
  float c[3] = {1.0f, 1.0f, 1.0f};
  const float weight[4] = {1.0f, 2.0f, 2.0f, 1.0f}, shift[4] = {0.0f, 0.005f, 0.005f, 0.01f};
  for (int n = 199; n >= 0; --n) {
    stages(states[n], k, at);
    float total[3], back[3] = {0.0f, 0.0f, 0.0f};
    memcpy(total, c, sizeof c);
    for (int j = 3; j >= 0; --j) {
      float ct[3], t[3] = {0.0f, 0.0f, 0.0f};
      for (int i = 0; i < 3; ++i) ct[i] = 0.01f / 6.0f * weight[j] * c[i] + back[i];
      pull(at[j], ct, t);
      for (int i = 0; i < 3; ++i) {
        total[i] += t[i];
        back[i] = shift[j] * t[i];
      }
    }
    memcpy(c, total, sizeof c);
  }
  memcpy(grads, c, sizeof c);
}
"""


def build_by_hand(folder):
    """Compile the programs written by hand; the library."""
    source, out = pathlib.Path(folder) / "hand.c", pathlib.Path(folder) / "hand.so"
    source.write_text(BY_HAND)
    flags = ["-std=c11", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=off"]
    subprocess.run(
        ["gcc", *flags, "-shared", "-fPIC", "-o", str(out), str(source), "-lm"], check=True
    )
    return ctypes.CDLL(str(out))


def time_hand(library, name, args, want):
    """The microseconds of a call in a loop by hand; checks the gradient."""
    x = np.asarray(args[0])
    grads, value = np.empty_like(x), np.empty((), np.float32)
    call = getattr(library, name)
    given = [ctypes.c_void_p(a.ctypes.data) for a in (x, grads, value)]
    call(*given)
    np.testing.assert_allclose(value, want[0], rtol=1e-3)
    np.testing.assert_allclose(grads, want[1], rtol=1e-2)
    held = x, grads, value
    return lambda held=held: call(*given)


def time_in_turn(calls):
    """The least microseconds of each of some functions, called in turn."""
    least = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            for _ in range(CALLS):
                start = time.perf_counter()
                call()
                least[name] = min(least[name], (time.perf_counter() - start) * 1e6)
    return least


def main():
    print(f"{'':8} {'us a call':>33}   {'first call, s':>14}")
    print(f"{'':8} {'XLA':>8} {'jit by C':>8} {'C alone':>8} {'by hand':>6}   {'XLA':>6} {'C':>6}")
    with tempfile.TemporaryDirectory() as folder:
        library = build_by_hand(folder)
        for name, (fun, args) in make_programs().items():
            graded, rows, first = weft.value_and_grad(fun), {}, {}
            want = weft.jit(graded)(*args)
            for way, passes in (("XLA", None), ("jit by C", [export.compile_in_c])):
                jitted = weft.jit(lambda *xs, f=graded: f(*xs), passes=passes)
                start = time.perf_counter()
                found = weft.block_until_ready(jitted(*args))
                first[way] = time.perf_counter() - start
                rows[way] = lambda j=jitted, xs=args: weft.block_until_ready(j(*xs))
                compare = lambda a, b: np.testing.assert_allclose(a, b, 1e-2, 1e-4)
                weft.tree.map(compare, found, want)
            rows["C alone"] = prepare_alone(graded, args)
            if hasattr(library, name):
                rows["by hand"] = time_hand(library, name, args, want)
            us = time_in_turn(rows)
            shown = [f"{us[w]:8.1f}" if w in us else f"{'':8}" for w in
                     ("XLA", "jit by C", "C alone", "by hand")]  # fmt: skip
            print(f"{name:8} {' '.join(shown)}   {first['XLA']:6.2f} {first['jit by C']:6.2f}")


def prepare_alone(graded, args):
    """A call of the function in C itself, on arrays that are there."""
    program = export.to_c(graded, name="alone")(*args)
    built = program.build(flags=["-march=native", "-fno-math-errno", "-ffp-contract=off"])
    leaves = [np.asarray(x) for x in weft.tree.leaves(args)]
    given = [x[()].item() if p.by_value else ctypes.c_void_p(x.ctypes.data)
             for x, p in zip(leaves, program._source.parameters, strict=True)]  # fmt: skip
    outs = [np.empty(r.aval.shape, r.aval.dtype) for r in program._source.results]
    work = np.empty(program.report().workspace_bytes + 64, np.uint8)
    start = work.ctypes.data + -work.ctypes.data % 64
    pointers = [ctypes.c_void_p(y.ctypes.data) for y in outs]
    held = leaves, outs, work
    return lambda held=held: built._call(*given, *pointers, start)


if __name__ == "__main__":
    main()
