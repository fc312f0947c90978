"""`to_onnx` on programs as users write them, run by onnxruntime."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax, nn, random

pytest.importorskip("onnxruntime")
from tests.export.onnx.rows import run_model


def check(fun, *args, rtol=2e-5, atol=1e-5, dynamic=None, **given):
    """Compare a model with what `fun` gives; at the shapes of `args`, or `given` others."""
    program = export.to_onnx(fun)(*args, dynamic=dynamic)
    for xs in (args, *given.values()):
        want = weft.tree.leaves(weft.jit(fun)(*xs))
        found = run_model(program, *weft.tree.leaves(xs))
        for a, b in zip(found, want, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, np.asarray(b), rtol, atol)
    return program


def make_data(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def operators(program):
    return program.report().operators


def test_what_it_says_of_itself(tmp_path):
    import onnx

    def predict(params, x):
        return {"y": jnp.tanh(x @ params["w"] + params["b"])}

    x, w, b = make_data((5, 3), (3, 2), (2,))
    program = export.to_onnx(predict)(
        {"w": w, "b": b}, x, dynamic=(None, "batch, _"), names={"x": "pixels", "result_y": "y"}
    )
    text = "OnnxProgram(predict: (params_b: f32[2], params_w: f32[3,2], pixels: f32[batch,3]) -> "
    assert repr(program) == text + "(y: f32[batch,2]))"
    assert (program.inputs, program.outputs) == (["params_b", "params_w", "pixels"], ["y"])
    report = program.report()
    assert str(report).startswith("opset 21, ")
    assert dict(report.operators) == dict(Add=1, Identity=1, MatMul=1, Tanh=1, Unsqueeze=1)
    assert onnx.load(program.save(tmp_path / "f.onnx")) == program.model
    (found,) = run_model(program, b, w, x[:2])
    np.testing.assert_allclose(found, np.tanh(x[:2] @ w + b), rtol=1e-5)


def test_a_convolutional_network_and_its_gradient():
    images, k1, k2, w = make_data((2, 8, 8, 1), (3, 3, 1, 4), (3, 3, 4, 6), (24, 10))

    def forward(images, k1, k2, w):
        names, x = ("NHWC", "HWIO", "NHWC"), images
        for k in (k1, k2):
            x = nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=names))
            x = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return nn.softmax(x.reshape(x.shape[0], -1) @ w)

    (more,) = make_data((5, 8, 8, 1), seed=1)
    program = check(
        forward, images, k1, k2, w, rtol=1e-4, dynamic=("b, ...", None, None, None),
        more=(more, k1, k2, w),
    )  # fmt: skip
    assert {"Conv": 2, "MaxPool": 2, "MatMul": 1}.items() <= operators(program).items()
    check(
        weft.grad(lambda *xs: forward(*xs)[:, 0].sum(), argnums=(1, 2)),
        images,
        k1,
        k2,
        w,
        rtol=1e-3,
    )


def test_a_residual_block():
    x, k1, k2, k3, scale = make_data((2, 4, 8, 8), (8, 4, 3, 3), (8, 8, 3, 3), (8, 4, 1, 1), (8,))

    def normalize(x, scale):
        mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * scale[:, None, None]

    def block(x, k1, k2, k3, scale):
        y = nn.relu(normalize(lax.conv(x, k1, (2, 2), "SAME"), scale))
        y = normalize(lax.conv(y, k2, (1, 1), "SAME"), scale)
        return nn.relu(y + lax.conv(x, k3, (2, 2), "SAME"))

    assert operators(check(block, x, k1, k2, k3, scale, rtol=1e-3))["Conv"] == 3


def test_a_transformer_with_symbolic_batch_and_length():
    tokens = np.arange(12).reshape(2, 6).astype(np.int32) % 11
    sizes = [(11, 8), (3, 2, 8, 4), (2, 4, 8), (8, 16), (16, 8)]
    params = dict(zip(["embed", "qkv", "out", "up", "down"], make_data(*sizes), strict=True))

    def normalize(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def block(params, tokens):
        x = params["embed"][tokens]
        n = tokens.shape[1]
        q, k, v = jnp.einsum("btd,ahdk->abhtk", normalize(x), params["qkv"])
        scores = jnp.einsum("bhtk,bhsk->bhts", q, k) / 2
        mask = jnp.arange(n)[:, None] >= jnp.arange(n)
        weights = nn.softmax(jnp.where(mask, scores, -jnp.inf))
        x = x + jnp.einsum("bhts,bhsk,hkd->btd", weights, v, params["out"])
        x = x + nn.gelu(normalize(x) @ params["up"]) @ params["down"]
        return x @ params["embed"].T

    others = [(params, tokens[:1, :k]) for k in (1, 4)]
    program = check(
        block, params, tokens, dynamic=(None, "batch, length"), rtol=1e-3, atol=1e-4,
        one=others[0], four=others[1],
    )  # fmt: skip
    assert "tokens: i32[batch,length]" in repr(program)
    assert {"Gather", "Einsum", "MatMul", "Where"} <= set(operators(program))


def test_loops_and_branches():
    x, w, u = make_data((7, 2, 3), (3, 16), (4, 16))

    def lstm(x, w, u, reverse=False):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ w + h @ u, 4, axis=1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return lax.scan(step, (jnp.zeros((2, 4)), jnp.zeros((2, 4))), x, reverse=reverse)

    assert operators(check(lstm, x, w, u))["Scan"] == 1
    check(lambda *xs: lstm(*xs, reverse=True), x, w, u)
    loss = lambda *xs: lstm(*xs)[1].sum()
    check(weft.grad(loss, argnums=(0, 1, 2)), x, w, u, rtol=1e-4)

    def collatz(n):
        step = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
        return lax.while_loop(lambda s: s[0] > 1, step, (n, 0))

    assert operators(check(collatz, np.int32(27)))["Loop"] == 1
    count = lambda n: lax.scan(lambda c, _: (c + n, c * 2), n, None, length=4, reverse=True)
    assert operators(check(count, np.float32(3)))["Loop"] == 1
    check(lambda x: lax.fori_loop(0, 3, lambda i, x: x.at[i].mul(2), x), x[:, 0, 0])

    def choose(k, x):
        y = lax.switch(k, [jnp.sin, jnp.cos, lambda x: x * w[0, 0]], x)
        return lax.cond(x.sum() > 0, lambda y: -y, lambda y: y + 1, y)

    program = check(choose, np.int32(0), x, two=(np.int32(2), -x), high=(np.int32(5), x))
    assert operators(program)["If"] == 3


def test_indices_and_sorts():
    x, y = make_data((5, 6), (3,))
    i, j = np.array([4, -1, 0, 9], np.int32), np.array([1, 5, 5, 0], np.int32)

    def pick(x, i, j):
        return (
            x[i], x[:, j], x[i, j], jnp.take_along_axis(x, j[None, :3].repeat(5, 0), 1),
            x.at[i, j].set(9), x.at[j[:3]].add(1), x.at[1, j].max(0.5), x.at[2:4].mul(2),
            lax.dynamic_slice(x, (i[0], j[0]), (2, 2)),
            lax.dynamic_update_slice(x, x[:2, :2] * 0, (i[0], j[1])),
        )  # fmt: skip

    program = check(pick, x, i, j, other=(x, i[::-1].copy(), j[::-1].copy()))
    assert {"Gather", "ScatterElements", "Slice"} <= set(operators(program))
    check(weft.grad(lambda x: (x[i] * x[:, :4].T[:, :1]).sum()), x)
    odd = np.array([3, np.nan, -0.0, 0, np.inf, -np.inf, 3, 1], np.float32)

    def order(x, y):
        return (
            jnp.sort(x), jnp.argsort(x), jnp.argsort(-x), lax.top_k(x, 3), jnp.argmax(x),
            jnp.argmin(y), lax.sort((x, y), num_keys=2), jnp.cumsum(y), jnp.median(y),
        )  # fmt: skip

    check(order, odd, np.float32([5, 1, 2, 1, 3, 4, 2, 2]))


def test_random_numbers_are_the_same():
    def sample(key):
        a, b, c, d, e = random.split(key, 5)
        return (
            random.normal(a, (5,)), random.uniform(b, (3, 2)), random.randint(c, (4,), 0, 10),
            random.bits(d, (3,)), random.key_data(a), random.permutation(e, 5),
        )  # fmt: skip

    program = check(sample, random.key(3), other=(random.key(4),))
    assert program.report().opset == 26  # for BitCast


def test_dtypes_that_operators_lack():
    x = np.array([1.5, -2, 0.25], np.float16)
    check(lambda x: (x * 3 + jnp.exp(x), jnp.where(x > 0, x, 1), x.sum(), jnp.max(x)), x, rtol=2e-3)
    k = np.array([7, -3, 0, 100], np.int8)
    ints = lambda k: (k // 3, k % 3, k << 2, k >> 1, k & 6, ~k, abs(k), jnp.maximum(k, 1), k**2)
    check(ints, k)
    check(lambda k: (k // 3, k % 3, k << 2, k >> 1, k**2, k.sum(), k > 3), k.astype(np.uint32))
    check(lambda m: (m & ~m, m | m, m.any(), m.all(), jnp.where(m, ~m, m), m.sum()), k > 0)


def test_transformed_programs():
    x, w = make_data((4, 3), (3, 3))

    @weft.custom_vjp
    def square(x):
        return x**2

    square.defvjp(lambda x: (x**2, x), lambda x, ct: (3 * x * ct,))
    loss = lambda x, w: square(weft.checkpoint(lambda x: jnp.tanh(x @ w))(x)).sum()
    check(weft.value_and_grad(loss), x, w, rtol=1e-4)
    check(weft.vmap(weft.jit(lambda x: jnp.cumsum(x)[::-1])), x)
    check(weft.jacobian(lambda x: jnp.sin(x) @ w), x[0])
    check(lambda x: (jnp.expm1(x), jnp.log1p(abs(x)), lax.erf(x), jnp.arctan2(x, x.T[:1, :3])), x)


def test_transposed_and_grouped_convolutions():
    x, k, d = make_data((2, 6, 7), (4, 6, 3), (6, 1, 3))
    conv = lambda x, k, **params: lax.conv_general_dilated(x, k, **params)
    check(lambda x, k: conv(x, k, window_strides=(2,), padding=[(2, 1)], rhs_dilation=(2,)), x, k)
    spread = lambda x, k: conv(x, k, window_strides=(1,), padding=[(2, 2)], lhs_dilation=(2,))
    assert operators(check(spread, x, k, rtol=1e-4))["ConvTranspose"] == 1
    check(lambda x, d: conv(x, d, window_strides=(1,), padding="SAME", feature_group_count=6), x, d)
    grads = weft.grad(
        lambda x, d: (
            conv(x, d, window_strides=(2,), padding="SAME", feature_group_count=6) ** 2
        ).sum(),
        (0, 1),
    )
    check(grads, x, d, rtol=1e-4)
    with weft.enable_x64(True):
        y, e = x.astype(np.float64), k.astype(np.float64)
        check(lambda x, k: conv(x, k, window_strides=(2,), padding=[(2, 1)]), y, e)


def test_errors():
    def refused(fun, *args):
        with pytest.raises(NotImplementedError) as error:
            export.to_onnx(fun)(*args)
        return str(error.value)

    x = np.ones((3, 3), np.float32)
    text = refused(lambda x: jnp.linalg.svd(x)[1], x)
    assert text.startswith(
        "to_onnx: a program must be of operations that ONNX can compute; got svd ("
    )
    assert f" at {__file__.rpartition('/')[2]}:" in text and "Hint: compute it outside" in text
    assert "got fft (c64[3,2])" in refused(lambda x: abs(jnp.fft.rfft(x)), x)
    call = lambda x: weft.pure_callback(np.sin, weft.ShapeDtypeStruct(x.shape, x.dtype), x)
    assert "got pure_callback" in refused(call, x)
    with pytest.raises(
        ValueError, match="results of .* must be arrays of numbers; got random keys"
    ):
        export.to_onnx(random.key)(0)


def test_without_the_package(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "onnx.numpy_helper", None)
    with pytest.raises(ImportError, match=r"onnx must be installed.*pip install weft\[onnx\]"):
        export.to_onnx(jnp.sin)(np.float32(1))
