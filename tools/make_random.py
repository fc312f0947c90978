"""Write tests/golden/random.json: results of JAX's generators, in both layouts.

JAX is only run, not read: `python tools/make_random.py` with JAX 0.10.2. A row is a call, as
Python, with a digest and the first values of the result's bytes; tests/random/compare.py makes the
same calls.
"""

import hashlib
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

SHAPES = ["(", "(1,", "(2,", "(3,", "(5,", "(0,", "(2, 3", "(7, 1, 3", "(1001,", "(4, 0)"]
SHAPES = [s if s.endswith(")") else s + ")" for s in SHAPES]
FLOATS = ("float32", "float16", "bfloat16")


def calls() -> list[str]:
    """Every call, of `key`."""
    out = []
    for shape in SHAPES:
        out += [f"bits(key, {shape}, jnp.{d})" for d in ("uint8", "uint16", "uint32")]
        out += [f"uniform(key, {shape}, jnp.{d})" for d in FLOATS]
        out += [f"normal(key, {shape}, jnp.{d})" for d in (*FLOATS, "complex64")]
    for num in ("1", "2", "3", "7", "0", "(2, 3)", "()"):
        out.append(f"split(key, {num})")
    out += [f"fold_in(key, {n})" for n in (0, 1, 7, 2**31, 2**32 - 1)]
    out += [f"PRNGKey({n})" for n in (0, 1, -1, 2**31, 2**32 + 5)]
    out += ["fold_in(split(key)[1], 3)", "split(fold_in(key, 3), 5)"]
    for name in ("exponential", "laplace", "gumbel", "logistic", "cauchy"):
        out += [f"{name}(key, (2, 3), jnp.{d})" for d in FLOATS]
        out.append(f"{name}(key, (1001,))")
    out += [
        "gumbel(key, (101,), mode='high')",
        "uniform(key, (5,), minval=-1.5, maxval=2.0)",
        "uniform(key, (2, 3), minval=jnp.arange(3.0), maxval=jnp.arange(3.0) + 2)",
        "normal(key, (2, 3))",
        "truncated_normal(key, -1.0, 1.0, (101,))",
        "truncated_normal(key, 2.0, jnp.inf, (101,))",
        "truncated_normal(key, jnp.zeros(3), 1.0)",
        "truncated_normal(key, -1.0, 1.0, (5,), jnp.bfloat16)",
        "bernoulli(key)",
        "bernoulli(key, 0.3, (101,))",
        "bernoulli(key, jnp.linspace(0, 1, 5), (3, 5))",
        "bernoulli(key, 0.3, (101,), mode='high')",
        "rademacher(key, (101,))",
        "lognormal(key, 0.5, (7,))",
        "maxwell(key, (7,))",
        "randint(key, (101,), 0, 10)",
        "randint(key, (101,), -(2**31), 2**31 - 1)",
        "randint(key, (101,), 0, 256, jnp.uint8)",
        "randint(key, (101,), -128, 128, jnp.int8)",
        "randint(key, (7,), 5, 5)",
        "randint(key, (7,), 5, 0)",
        "randint(key, (7,), 0, 7, jnp.int16)",
        "randint(key, (7,), 0, 7, jnp.uint32)",
        "randint(key, (3, 4), jnp.arange(4), jnp.arange(4) + 3)",
        "randint(key, (), 0, 1000)",
        "permutation(key, 10)",
        "permutation(key, 0)",
        "permutation(key, 1)",
        "permutation(key, 2001)",
        "permutation(key, jnp.arange(7.0))",
        "permutation(key, jnp.arange(12).reshape(3, 4))",
        "permutation(key, jnp.arange(12).reshape(3, 4), axis=1)",
        "permutation(key, jnp.arange(12).reshape(3, 4), axis=-1, independent=True)",
        "permutation(key, jnp.arange(12).reshape(3, 4), independent=True)",
        "choice(key, 10)",
        "choice(key, 10, (3, 5))",
        "choice(key, 10, (4,), replace=False)",
        "choice(key, jnp.arange(10.0), (2, 2), replace=False)",
        "choice(key, jnp.arange(12).reshape(3, 4), (5,), axis=1)",
        "choice(key, jnp.arange(12).reshape(3, 4), (2,), replace=False, axis=1)",
        "choice(key, 5, (101,), p=jnp.arange(5) / 10.0)",
        "choice(key, 5, (4,), replace=False, p=jnp.arange(1, 6) / 15.0)",
        "choice(key, jnp.arange(12).reshape(3, 4), (5,), p=jnp.array([0.2, 0.3, 0.5]))",
        "categorical(key, jnp.arange(4.0))",
        "categorical(key, jnp.arange(4.0), shape=(101,))",
        "categorical(key, jnp.arange(12.0).reshape(3, 4))",
        "categorical(key, jnp.arange(12.0).reshape(3, 4), axis=0)",
        "categorical(key, jnp.arange(12.0).reshape(3, 4) / 5, shape=(6, 3))",
        "categorical(key, jnp.arange(12.0).reshape(3, 4) / 5, axis=0, shape=(6, 4))",
        "categorical(key, jnp.zeros(7), shape=(3,), replace=False)",
        "categorical(key, jnp.zeros((4, 5)), shape=(2, 4), replace=False)",
        "categorical(key, jnp.zeros((4, 5)), axis=0, shape=(2, 5), replace=False)",
        "categorical(key, jnp.zeros(7), shape=(11,), mode='high')",
    ]
    return out


WIDE = [
    "bits(key, (5,), jnp.uint64)",
    "bits(key, (2, 3))",
    "uniform(key, (7,))",
    "normal(key, (7,))",
    "exponential(key, (7,))",
    "laplace(key, (7,))",
    "gumbel(key, (7,))",
    "truncated_normal(key, -1.0, 1.0, (7,))",
    "randint(key, (7,), 0, 2**40)",
    "randint(key, (7,), 0, 10)",
    "randint(key, (7,), 0, 2**31, jnp.int32)",
    "randint(key, (7,), 0, 2**32, jnp.uint32)",
    "permutation(key, 7)",
    "PRNGKey(2**40 + 5)",
    "PRNGKey(-1)",
    "normal(key, (3,), jnp.complex128)",
]
OTHERS = [
    "bits(key, (5,), jnp.uint8)",
    "bits(key, (2, 3))",
    "uniform(key, (7,))",
    "normal(key, (7,))",
    "key_data(split(key, 3))",
    "key_data(split(key, (2, 2)))",
    "key_data(fold_in(key, 3))",
    "permutation(key, 9)",
    "randint(key, (5,), 0, 100)",
    "key_data(key)",
]


def row(call: str, key) -> list:
    """Return a call, the dtype and shape of its result, a digest of its bytes, and first values."""
    found = np.asarray(
        eval(
            "random."
            + call.replace("(split(", "(random.split(").replace("(fold_in(", "(random.fold_in("),
            {"random": random, "jnp": jnp, "key": key},
        )
    )
    digest = hashlib.sha256(found.tobytes()).hexdigest()[:16]
    first = [str(x) for x in found.ravel()[:3]]
    return [call, str(found.dtype), list(found.shape), digest, first]


def main() -> None:
    out = {}
    for partitionable in (False, True):
        jax.config.update("jax_threefry_partitionable", partitionable)
        name = "partitionable" if partitionable else "original"
        out[name] = [row(c, random.PRNGKey(17)) for c in calls()]
        with jax.enable_x64(True):
            out[name + "_x64"] = [row(c, random.PRNGKey(17)) for c in WIDE]
        for impl in ("rbg", "unsafe_rbg"):
            out[f"{name}_{impl}"] = [row(c, random.key(17, impl=impl)) for c in OTHERS]
    lines = ",\n".join(
        f' "{k}": [\n' + ",\n".join("  " + json.dumps(r) for r in v) + "\n ]"
        for k, v in out.items()
    )
    pathlib.Path(__file__).parents[1].joinpath("tests/golden/random.json").write_text(
        "{\n" + lines + "\n}\n"
    )


main()
