"""examples/onnx_import.py on models that `to_onnx` writes, and on onnx's own node tests."""

import sys
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import export, lax, nn

onnx = pytest.importorskip("onnx")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def read_model():
    sys.path.insert(0, str(EXAMPLES))
    try:
        from onnx_import import read_model
    finally:
        sys.path.remove(str(EXAMPLES))
    return read_model


def make_data(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def network(x, k, w):
    y = nn.relu(lax.conv(x, k, (1, 1), "SAME"))
    y = lax.reduce_window(y, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return nn.softmax(y.reshape(y.shape[0], -1) @ w)


def recurrent(x, w):
    step = lambda h, x: (jnp.tanh(x + h @ w), h.sum())
    return lax.scan(step, jnp.zeros(3), x)


def places(x, i):
    return jnp.sort(x, 1), x[i], x.at[i].add(1), lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)


def test_round_trips(read_model):
    """Models that `to_onnx` writes are the same functions after reading and compiling."""
    cases = [
        (network, make_data((2, 1, 8, 8), (3, 1, 3, 3), (48, 10))),
        (recurrent, make_data((5, 3), (3, 3))),
        (places, [*make_data((4, 3)), np.int32([2, 0])]),
        (lambda n: lax.while_loop(lambda n: n < 50, lambda n: n * 2, n), [np.int32(3)]),
    ]
    for fun, args in cases:
        again = weft.jit(read_model(export.to_onnx(fun)(*args).model))
        for a, b in zip(again(*args), weft.tree.leaves(weft.jit(fun)(*args)), strict=True):
            np.testing.assert_allclose(a, b, 1e-5, 1e-6)


def test_a_model_is_differentiated(read_model):
    args = make_data((2, 1, 8, 8), (3, 1, 3, 3), (48, 10))
    again = read_model(export.to_onnx(network)(*args).model)
    found = weft.jit(weft.grad(lambda *xs: again(*xs)[0][:, 0].sum(), (1, 2)))(*args)
    want = weft.grad(lambda *xs: network(*xs)[:, 0].sum(), (1, 2))(*args)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # by onnx, as it makes its tests
def test_node_tests_of_onnx(read_model):
    """Nine in ten of onnx's node tests pass, of those whose operators are written."""
    from onnx.backend.test.case.node import collect_testcases

    names = read_model.__globals__["OPERATORS"].keys() | read_model.__globals__["CONTROL"].keys()
    assert len(names) >= 120
    array = lambda x: onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x
    passed = wrong = 0
    with weft.enable_x64(True):
        for case in collect_testcases():
            graph = case.model.graph if case.model else None
            if (
                not graph
                or "_expanded" in case.name
                or not {n.op_type for n in graph.node} <= names
            ):
                continue
            try:
                for given, want in case.data_sets:
                    outs = read_model(case.model)(*map(array, given))
                    for a, b in zip(outs, map(array, want), strict=True):
                        assert np.asarray(a).dtype == b.dtype
                        floats = [np.asarray(v).astype(np.float64) for v in (a, b)]
                        np.testing.assert_allclose(*floats, case.rtol, max(case.atol, 1e-6))
                passed += 1
            except Exception:  # whatever an operator raises
                wrong += 1
    assert passed >= 9 * wrong, (passed, wrong)
