"""Options for a while: each holds in its block, in its thread, and is restored after a failure."""

import logging
import threading

import numpy as np
import pytest

import weft
import weft.numpy as jnp


@pytest.mark.parametrize(
    "context, name, value",
    [
        (weft.enable_x64, "enable_x64", True),
        (weft.disable_jit, "disable_jit", True),
        (weft.log_compiles, "log_compiles", True),
        (weft.enable_checks, "enable_checks", True),
        (weft.numpy_dtype_promotion, "numpy_dtype_promotion", "strict"),
        (weft.numpy_rank_promotion, "numpy_rank_promotion", "raise"),
        (weft.default_matmul_precision, "default_matmul_precision", "highest"),
    ],
)
def test_each_sets_its_option_and_puts_it_back(context, name, value):
    before = weft.config.read(name)
    with pytest.raises(ZeroDivisionError), context(value):
        assert weft.config.read(name) == value
        assert 1 / 0
    assert weft.config.read(name) == before


def test_enable_x64_holds_in_its_thread_alone():
    seen = {}
    inside, done = threading.Event(), threading.Event()

    def wide():
        with weft.enable_x64():
            inside.set()
            done.wait(10)
            seen["wide"] = jnp.add(1.0, 1.0).dtype

    def narrow():
        inside.wait(10)
        seen["narrow"] = jnp.add(1.0, 1.0).dtype
        done.set()

    threads = [threading.Thread(target=f) for f in (wide, narrow)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert seen == {"wide": np.float64, "narrow": np.float32}


def test_enable_x64_may_be_turned_off_inside():
    with weft.enable_x64(True), weft.enable_x64(False):
        assert jnp.add(1, 1).dtype == np.int32


def test_strict_promotion():
    with weft.numpy_dtype_promotion("strict"), pytest.raises(weft.errors.TypePromotionError):
        jnp.add(np.float32(1), np.int32(1))
    assert jnp.add(np.float32(1), np.int32(1)).dtype == np.float32
    with pytest.raises(ValueError, match="must be one of"), weft.numpy_dtype_promotion("loose"):
        pass


def test_rank_promotion():
    x, y = np.ones(3, np.float32), np.ones((2, 3), np.float32)
    with weft.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="add"):
        jnp.add(x, y)
    assert jnp.add(x, y).shape == (2, 3)


def test_log_compiles(caplog):
    def squared(x):
        return x * x

    with weft.log_compiles(), caplog.at_level(logging.WARNING, "weft"):
        weft.jit(squared)(3.0)
    assert any("traced squared" in r.message for r in caplog.records)


def test_matmul_precision():
    x = np.ones((2, 2), np.float32)
    with weft.default_matmul_precision("highest"):
        text = weft.jit(lambda x: weft.lax.dot(x, x)).lower(x).as_text()
    assert "HIGHEST" in text
