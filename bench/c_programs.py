"""Programs of small arrays by XLA and by C: `python bench/c_programs.py` prints a table.

Values and gradients of five programs, which are also written in C by hand. "C, finite" is with
`to_c(f, finite_math=True)`, the promise that the programs by hand make. CPU microseconds of a
call, the least of many rounds taken in turn, and CPU seconds of the first call, with compilation
and without the disk cache. The process is kept on one core, so XLA's thread pool has one thread.
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["WEFT_CACHE_DIR"] = "off"
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads of one core wait for each other

import numpy as np

import weft
import weft.numpy as jnp
from weft import export, lax, nn

ROUNDS, CALLS = 200, 100
# `python bench/c_programs.py -ffinite-math-only -fno-signed-zeros` compiles C with more flags.
FLAGS = ["-march=native", "-fno-math-errno", "-ffp-contract=off", *sys.argv[1:]]


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


# Values and gradients as a person writes them in C: arguments, gradients, value.
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

/* The covariance is symmetric: (a b; b c). */
void kalman(const float *noise, const float *ys, float *grads, float *value) {
  static _Thread_local float as[100], bs[100], errors[100], inverses[100];
  float x0 = 0.0f, x1 = 0.0f, a = 1.0f, b = 0.0f, c = 1.0f, total = 0.0f;
  for (int k = 0; k < 100; ++k) {
    x0 += 0.1f * x1;
    a += 0.2f * b + 0.01f * c + noise[0];
    b += 0.1f * c;
    c += noise[0];
    const float s = a + noise[1], inverse = 1.0f / s, e = ys[k] - x0;
    as[k] = a;
    bs[k] = b;
    errors[k] = e;
    inverses[k] = inverse;
    const float g0 = a * inverse, g1 = b * inverse;
    x0 += g0 * e;
    x1 += g1 * e;
    c -= g1 * b;
    b -= g0 * b;
    a -= g0 * a;
    total += e * e * inverse + logf(s);
  }
  *value = -0.5f * total;
  float x0t = 0.0f, x1t = 0.0f, at = 0.0f, bt = 0.0f, ct = 0.0f, q = 0.0f, r = 0.0f;
  for (int k = 99; k >= 0; --k) {
    const float inverse = inverses[k], e = errors[k] * inverse;
    const float g0 = as[k] * inverse, g1 = bs[k] * inverse;
    const float et = x0t * g0 + x1t * g1 - e;
    const float st = g0 * (at * g0 + bt * g1 - x0t * e) + g1 * (ct * g1 - x1t * e) +
                     0.5f * (e * e - inverse);
    const float at1 = x0t * e + at * (1.0f - 2.0f * g0) - bt * g1 + st;
    const float bt1 = x1t * e + bt * (1.0f - g0) - 2.0f * ct * g1;
    x0t -= et;
    x1t += 0.1f * x0t;
    r += st;
    q += at1 + ct;
    ct += 0.01f * at1 + 0.1f * bt1;
    bt = 0.2f * at1 + bt1;
    at = at1;
  }
  grads[0] = q;
  grads[1] = r;
}

static float dot(const float *a, const float *b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const float *a, const float *b, float *c) {
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}

void bundle(const float *cameras, const float *points, const float *seen, float *grads,
            float *value) {
  float total = 0.0f;
  for (int i = 0; i < 6; ++i) {
    const float *const axis = cameras + 7 * i, *const shift = axis + 3, focal = axis[6];
    const float angle = sqrtf(dot(axis, axis) + 1e-12f), co = cosf(angle), si = sinf(angle);
    const float u[3] = {axis[0] / angle, axis[1] / angle, axis[2] / angle};
    float ut[3] = {0.0f}, shiftt[3] = {0.0f}, focalt = 0.0f, cot = 0.0f, sit = 0.0f;
    for (int j = 0; j < 10; ++j) {
      const float *const p = points + 3 * j, *const s = seen + 2 * (10 * i + j);
      const float along = dot(u, p);
      float turn[3], at[3], back[3];
      cross(u, p, turn);
      for (int k = 0; k < 3; ++k)
        at[k] = p[k] * co + turn[k] * si + u[k] * along * (1.0f - co) + shift[k];
      const float inverse = 1.0f / at[2], x = at[0] * inverse, y = at[1] * inverse;
      const float dx = focal * x - s[0], dy = focal * y - s[1];
      total += dx * dx + dy * dy;
      const float scale = 2.0f * focal * inverse;
      const float t[3] = {scale * dx, scale * dy, -scale * (dx * x + dy * y)};
      focalt += 2.0f * (dx * x + dy * y);
      const float tu = dot(t, u);
      cot += dot(t, p) - tu * along;
      sit += dot(t, turn);
      cross(p, t, back);
      for (int k = 0; k < 3; ++k) {
        shiftt[k] += t[k];
        ut[k] += si * back[k] + (1.0f - co) * (t[k] * along + p[k] * tu);
      }
    }
    float *const g = grads + 7 * i;
    const float anglet = co * sit - si * cot - dot(ut, u) / angle;
    for (int k = 0; k < 3; ++k) {
      g[k] = ut[k] / angle + anglet * u[k];
      g[3 + k] = shiftt[k];
    }
    g[6] = focalt;
  }
  *value = total;
}

/* Calls of a function with pointers, as a caller in C makes them. */
void repeat(int times, int count, void *f, void **a) {
  for (int n = 0; n < times; ++n) {
    if (count == 4) ((void (*)(void *, void *, void *, void *))f)(a[0], a[1], a[2], a[3]);
    if (count == 5)
      ((void (*)(void *, void *, void *, void *, void *))f)(a[0], a[1], a[2], a[3], a[4]);
    if (count == 3) ((void (*)(void *, void *, void *))f)(a[0], a[1], a[2]);
    if (count == 6)
      ((void (*)(void *, void *, void *, void *, void *, void *))f)(a[0], a[1], a[2], a[3], a[4],
                                                                    a[5]);
    if (count == 8)
      ((void (*)(void *, void *, void *, void *, void *, void *, void *, void *))f)(
          a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    if (count == 9)
      ((void (*)(void *, void *, void *, void *, void *, void *, void *, void *, void *))f)(
          a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
  }
}

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

void lstm(const float *b, const float *u, const float *w, const float *xs, float *bt, float *ut,
          float *wt, float *value) {
  static _Thread_local float hs[31][12], cs[31][12], gates[30][48], tanhs[30][12];
  float turned[48][12];
  for (int k = 0; k < 12; ++k)
    for (int j = 0; j < 48; ++j) turned[j][k] = u[48 * k + j];
  memset(hs[0], 0, sizeof hs[0]);
  memset(cs[0], 0, sizeof cs[0]);
  for (int n = 0; n < 30; ++n) {
    float z[48];
    memcpy(z, b, sizeof z);
    for (int k = 0; k < 4; ++k)
      for (int j = 0; j < 48; ++j) z[j] += xs[4 * n + k] * w[48 * k + j];
    for (int k = 0; k < 12; ++k)
      for (int j = 0; j < 48; ++j) z[j] += hs[n][k] * u[48 * k + j];
    for (int j = 0; j < 12; ++j) {
      const float i = sigmoid(z[j]), f = sigmoid(z[12 + j]), g = tanhf(z[24 + j]);
      const float o = sigmoid(z[36 + j]), c = f * cs[n][j] + i * g, t = tanhf(c);
      gates[n][j] = i;
      gates[n][12 + j] = f;
      gates[n][24 + j] = g;
      gates[n][36 + j] = o;
      tanhs[n][j] = t;
      cs[n + 1][j] = c;
      hs[n + 1][j] = o * t;
    }
  }
  float total = 0.0f, ht[12], ct[12] = {0.0f};
  for (int j = 0; j < 12; ++j) {
    total += hs[30][j];
    ht[j] = 1.0f / 12.0f;
  }
  *value = total / 12.0f;
  memset(bt, 0, 48 * sizeof *bt);
  memset(ut, 0, 12 * 48 * sizeof *ut);
  memset(wt, 0, 4 * 48 * sizeof *wt);
  for (int n = 29; n >= 0; --n) {
    float zt[48];
    for (int j = 0; j < 12; ++j) {
      const float i = gates[n][j], f = gates[n][12 + j], g = gates[n][24 + j];
      const float o = gates[n][36 + j], t = tanhs[n][j];
      const float c = ct[j] + ht[j] * o * (1.0f - t * t);
      zt[j] = c * g * i * (1.0f - i);
      zt[12 + j] = c * cs[n][j] * f * (1.0f - f);
      zt[24 + j] = c * i * (1.0f - g * g);
      zt[36 + j] = ht[j] * t * o * (1.0f - o);
      ct[j] = c * f;
    }
    for (int j = 0; j < 48; ++j) bt[j] += zt[j];
    for (int k = 0; k < 4; ++k)
      for (int j = 0; j < 48; ++j) wt[48 * k + j] += xs[4 * n + k] * zt[j];
    for (int k = 0; k < 12; ++k)
      for (int j = 0; j < 48; ++j) ut[48 * k + j] += hs[n][k] * zt[j];
    memset(ht, 0, sizeof ht);
    for (int j = 0; j < 48; ++j)
      for (int k = 0; k < 12; ++k) ht[k] += zt[j] * turned[j][k];
  }
}
"""


def build_by_hand(folder):
    """Compile the programs written by hand; the library."""
    source, out = pathlib.Path(folder) / "hand.c", pathlib.Path(folder) / "hand.so"
    source.write_text(BY_HAND)
    subprocess.run(
        ["gcc", "-std=c11", "-O3", *FLAGS, "-shared", "-fPIC", "-o", str(out), str(source), "-lm"],
        check=True,
    )
    return ctypes.CDLL(str(out))


def prepare_hand(library, name, args, want):
    """A call of the program by hand on arrays that are there; checks its value and gradient."""
    arrays = [np.asarray(x) for x in weft.tree.leaves(args)]
    value, *found = [np.empty(x.shape, x.dtype) for x in weft.tree.leaves(want)]
    call = repeat_in_c(library, getattr(library, name), [*arrays, *found, value])
    call(1)
    for got, x in zip([value, *found], weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(got, x, 1e-3, 1e-4 * np.abs(x).max())
    return call


def repeat_in_c(library, function, arrays):
    """Calls of a function in C on arrays, without the cost of a call from Python."""
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    address = ctypes.cast(function, ctypes.c_void_p)
    assert len(arrays) in (3, 4, 5, 6, 8, 9)
    return lambda times, held=arrays: library.repeat(times, len(arrays), address, pointers)


def repeat(fun):
    """Calls of a function in Python."""

    def calls(times):
        for _ in range(times):
            fun()

    return calls


def time_in_turn(calls):
    """The least CPU microseconds of a call, of each of some functions repeated in turn."""
    least = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            call(10)  # what came before has emptied the caches
            start = time.process_time()
            call(CALLS)
            least[name] = min(least[name], (time.process_time() - start) / CALLS * 1e6)
    return least


def count_cpu():
    """Seconds of this process and of the compilers that it has run."""
    return sum(os.times()[:4])


WAYS = ("XLA", "jit by C", "C alone", "C, finite", "by hand")


def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    names = [f"{way} (us)" for way in WAYS]
    names += ["C alone / by hand", "C, finite / by hand"]
    names += ["first call, XLA (s)", "first call, C (s)"]
    print(f"| program | {' | '.join(names)} |\n|{'---|' * 10}")
    with tempfile.TemporaryDirectory() as folder:
        library = build_by_hand(folder)
        for name, (fun, args) in make_programs().items():
            graded, rows, first = weft.value_and_grad(fun), {}, {}
            want = weft.jit(graded)(*args)
            for way, backend in (("XLA", "xla"), ("jit by C", "c")):
                options = {"backend": backend}
                jitted = weft.jit(lambda *xs, f=graded: f(*xs), compiler_options=options)
                before = count_cpu()
                found = weft.block_until_ready(jitted(*args))
                first[way] = count_cpu() - before
                rows[way] = repeat(lambda j=jitted, xs=args: weft.block_until_ready(j(*xs)))
                compare = lambda a, b: np.testing.assert_allclose(a, b, 1e-2, 1e-4)
                weft.tree.map(compare, found, want)
            rows["C alone"] = prepare_alone(library, graded, args)
            rows["C, finite"] = prepare_alone(library, graded, args, finite_math=True)
            rows["by hand"] = prepare_hand(library, name, args, want)
            us = time_in_turn(rows)
            shown = [f"{us[way]:.1f}" for way in WAYS]
            shown += [f"{us[way] / us['by hand']:.2f}" for way in ("C alone", "C, finite")]
            shown += [f"{first['XLA']:.2f}", f"{first['jit by C']:.2f}"]
            print(f"| {name} | {' | '.join(shown)} |", flush=True)


def prepare_alone(library, graded, args, **options):
    """Calls of the function in C itself, on arrays that are there."""
    program = export.to_c(graded, name="alone", **options)(*args)
    built = program.build(flags=FLAGS)
    leaves = [np.asarray(x) for x in weft.tree.leaves(args)]
    outs = [np.empty(r.aval.shape, r.aval.dtype) for r in program._source.results]
    memory = np.empty(program.report().workspace_bytes + 64, np.uint8)
    work = memory[-memory.ctypes.data % 64 :]
    return repeat_in_c(library, built._call, [*leaves, *outs, work])


if __name__ == "__main__":
    main()
