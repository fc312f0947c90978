"""A cyclic redundancy check of 16 bits, bit by bit (W. Peterson and D. Brown, Proc. IRE, 1961).

The polynomial is CCITT's, 0x8408 with the bits reversed, from 0xFFFF, and the result is inverted.
"""

import numpy as np

sizes = {"small": 200, "medium": 4000, "large": 200_000}

POLYNOMIAL = 0x8408


def make(size, rng):
    return (rng.randint(0, 256, sizes[size]).astype(np.uint32),)


def numpy_form(data):
    crc = 0xFFFF
    for byte in data.tolist():
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ POLYNOMIAL if crc & 1 else crc >> 1
    return np.uint32(crc ^ 0xFFFF)


def jax_form(jax, data):
    jnp, lax = jax.numpy, jax.lax

    def step(crc, byte):
        crc = crc ^ byte
        for _ in range(8):
            crc = jnp.where(crc & 1, (crc >> 1) ^ POLYNOMIAL, crc >> 1)
        return crc, None

    return lax.scan(step, jnp.uint32(0xFFFF), data)[0] ^ 0xFFFF


def loops(data):
    crc = np.uint32(0xFFFF)
    for i in range(len(data)):
        crc ^= data[i]
        for _ in range(8):
            odd = crc & np.uint32(1)
            crc >>= np.uint32(1)
            if odd:
                crc ^= np.uint32(POLYNOMIAL)
    return crc ^ np.uint32(0xFFFF)
