"""Sums on the CPU; the kernel's are in tests/xla/test_native.py."""

import numpy as np

import weft


def test_the_sum_of_a_few_long_rows():
    x = np.random.RandomState(0).randn(6, 10_000).astype(np.float32)
    x[:, :2] = [[0.0, -0.0]] * 6
    found = weft.jit(lambda x: (2 * x).sum(0))(x)
    np.testing.assert_allclose(found, 2 * x.astype(np.float64).sum(0), atol=1e-5)
    assert not np.signbit(found[:2]).any()


def test_log_sum_exp_of_a_few_long_rows():
    x = np.random.RandomState(0).randn(6, 10_000).astype(np.float32)
    found = weft.jit(lambda x: weft.nn.logsumexp(x, 0))(x)
    np.testing.assert_allclose(found, np.log(np.exp(x.astype(np.float64)).sum(0)), atol=1e-5)


def test_programs_lowered_before_do_not_decide_what_calls_the_kernel():
    x = weft.ShapeDtypeStruct((500, 128), np.float32)
    count = lambda f: weft.jit(f).lower(x).as_text().count("weft_sum")
    given, computed = lambda x: x.sum(0), lambda x: (2 * x).sum(0)
    first = count(given)
    for _ in range(3):  # each time, patterns are kept of what is written again
        assert [count(given), count(computed)] == [first, 0]
