"""Damages of files: what a disk, a network or a stranger may make of bytes and of plain data."""

import copy
import random
from collections.abc import Iterator
from typing import Any

# Values of wrong types, and values that are too large for a machine.
STRANGE = (
    None, True, -1, 2**63, 10**30, 1e308, "", "f32", "9" * 5000, "a^1000000000", [], [[]], {},
    {"a": 1}, [None] * 3, "\x00", "../../x", [0, [0, [0]]],
)  # fmt: skip


def damage_bytes(data: bytes, seed: int) -> bytes:
    """Return bytes with one damage: bits, runs of bytes, a part cut off, doubled or repeated."""
    rng = random.Random(seed)
    at = rng.randrange(len(data))
    length = min(rng.choice((1, 2, 4, 8, 100)), len(data) - at)
    kind = seed % 6
    middle = {
        0: bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 : at + length],
        1: rng.randbytes(length),
        2: b"",
        3: data[at : at + length] * 3,
        4: b"\xff" * length,
        5: bytes(length),
    }[kind]
    return data[:at] + middle + (b"" if seed % 11 == 0 else data[at + length :])


def damage_data(data: Any, seed: int) -> Any:
    """Return plain data with one of its values missing, doubled or replaced by a strange one."""
    rng = random.Random(seed)
    data = copy.deepcopy(data)
    places = list(walk_places(data))
    holder, key = rng.choice(places)
    kind = seed % 8
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif kind == 2:
        other, place = rng.choice(places)
        holder[key] = copy.deepcopy(other[place])
    elif kind == 3 and isinstance(holder[key], str) and holder[key]:
        text = holder[key]
        holder[key] = text[: rng.randrange(len(text))] + rng.choice("[](){}*^,\n\x00é9a")
    else:
        holder[key] = copy.deepcopy(rng.choice(STRANGE))
    return data


def walk_places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place in plain data that holds a value: its container, and its key there."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], dict | list):
            yield from walk_places(data[key])
