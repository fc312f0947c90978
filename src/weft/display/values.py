"""Arrays, keys, meshes and shardings as HTML, for notebooks: `_repr_html_` of their classes.

This file uses only attributes of values, since their classes are defined later. A picture of a
matrix is a PNG of a few kilobytes, written here, since libraries for it take long to import.
"""

from __future__ import annotations

import binascii
import itertools
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from weft.display.show import escape_html

STYLE = """
.weft-value{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:inherit}
.weft-value pre{margin:.3em 0;font:inherit;overflow-x:auto}.weft-value img{border:1px solid #8886;
 image-rendering:pixelated;display:block;margin:.4em 0}.weft-value .k{opacity:.65}
.weft-value summary{cursor:pointer}.weft-value table{border-collapse:collapse;margin:.4em 0;
 font:inherit}.weft-value td,.weft-value th{border:1px solid #8884;padding:.1em .7em;
 text-align:right;background:none}.weft-value td:first-child,.weft-value th:first-child
 {text-align:left}.weft-value th{font-weight:600}
"""
MAX_READ = 4_000_000  # elements; nothing of a larger array is copied to the host
MAX_PIXELS = 96  # on a side of a picture; more elements are averaged
MAX_SHOWN = 200  # elements of an array that is shown unfolded
MAX_ROWS = 64  # in a table of devices


def wrap_html(*parts: str) -> str:
    """Parts as a piece of a page, with the style that it needs."""
    return f'<div class="weft-value"><style>{STYLE}</style>{"".join(parts)}</div>'


def table_html(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts."""
    cells = lambda row, tag: "".join(f"<{tag}>{escape_html(str(x))}</{tag}>" for x in row)
    lines = [cells(head, "th")] * bool(head) + [cells(row, "td") for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def bytes_text(count: int) -> str:
    """A number of bytes as people read it: 1.5 MB."""
    if count < 1000:
        return f"{count} bytes"
    power = min(4, (len(str(count)) - 1) // 3)
    return f"{count / 1000**power:.1f} {' kMGT'[power]}B"


# --- arrays -------------------------------------------------------------------------------------


def array_html(x: Any) -> str:
    """An array for a notebook: type, size, place; range and picture of a matrix; its values."""
    head = f"<b>Array</b> {escape_html(str(x.aval))}{', weak type' * x.weak_type}"
    if x.is_deleted():
        return wrap_html(f"{head}: deleted or donated")
    place = escape_html(place_text(x.sharding))
    parts = [f'<div>{head} <span class="k">{bytes_text(x.nbytes)} on {place}</span></div>']
    terms = getattr(getattr(x.sharding, "spec", None), "unreduced", None)
    if x.is_fully_addressable and 0 < x.size <= MAX_READ and not terms:
        values = read_numbers(x)
        if values is not None and values.size > 1:
            parts.append(f"<div>{range_text(values)}</div>")
            parts.append(picture_html(values) if values.ndim == 2 else "")
    shown = " open" if x.size <= MAX_SHOWN else ""
    text = escape_html(repr(x))
    parts.append(f"<details{shown}><summary>values</summary><pre>{text}</pre></details>")
    if len(x.sharding.device_set) > 1:
        parts.append(parts_html(x))
    return wrap_html(*parts)


def place_text(sharding: Any) -> str:
    """Return the location of an array in a few words."""
    mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
    if hasattr(mesh, "abstract_device"):
        return f"{mesh.size} devices, {spec}"
    devices = sharding.device_set
    if len(devices) == 1:
        (device,) = devices
        return f"{device.platform}:{device.id}"
    return f"{len(devices)} devices" + (f", {spec}" if spec is not None else "")


def parts_html(x: Any) -> str:
    """Return which device holds which part of an array."""
    places = sorted(x.sharding.devices_indices_map(x.shape).items(), key=lambda item: item[0].id)
    rows = []
    for device, index in places[:MAX_ROWS]:
        bounds = [
            ":" if s.start in (0, None) and s.stop in (n, None) else f"{s.start or 0}:{s.stop or n}"
            for s, n in zip(index, x.shape, strict=True)
        ]
        rows.append((f"{device.platform}:{device.id}", f"[{', '.join(bounds)}]"))
    table = table_html(("device", "part"), rows)
    return f"<details><summary>parts</summary>{table}</details>"


def read_numbers(x: Any) -> np.ndarray | None:
    """Return the values of an array as float64, complex ones as magnitudes; None for keys."""
    if not isinstance(x.dtype, np.dtype):
        return None
    values = np.asarray(x)
    values = np.abs(values) if values.dtype.kind == "c" else values
    return values.astype(np.float64)


def range_text(values: np.ndarray) -> str:
    """Least and greatest value, the mean, and how many are not finite."""
    finite = values[np.isfinite(values)]
    nans, infinities = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    told = []
    if finite.size:
        told.append(f"{finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}")
    told += [f"<b>{nans} NaN</b>"] * bool(nans) + [f"<b>{infinities} inf</b>"] * bool(infinities)
    return ", ".join(told)


# Ends of the colours: from white for one sign, and through white where there are both.
LOW, MIDDLE, HIGH, ODD = np.array(
    [(33, 102, 172), (247, 247, 247), (178, 24, 43), (255, 0, 255)], np.float64
)


def picture_html(values: np.ndarray) -> str:
    """A matrix as a picture: blue below 0, red above, magenta where it is not finite."""
    with np.errstate(invalid="ignore"):  # infinities of both signs in one block
        small = average_blocks(values)
    finite = np.isfinite(small)
    most = np.abs(small[finite]).max(initial=0) or 1.0
    part = np.where(finite, small, 0)[..., None] / most  # -1 to 1
    colors = MIDDLE + np.abs(part) * (np.where(part < 0, LOW, HIGH) - MIDDLE)
    pixels = np.where(finite[..., None], colors, ODD).astype(np.uint8)
    scale = min(16, 240 / max(values.shape))  # of an element, in pixels of the page
    height, width = (max(8, round(n * scale)) for n in values.shape)
    data = binascii.b2a_base64(write_png(pixels), newline=False).decode()
    return (
        f'<img alt="heat map" width="{width}" height="{height}" src="data:image/png;base64,{data}">'
    )


def average_blocks(values: np.ndarray) -> np.ndarray:
    """A matrix of at most MAX_PIXELS rows and columns, by averages of blocks."""
    for axis in (0, 1):
        n = values.shape[axis]
        starts = np.arange(min(n, MAX_PIXELS)) * n // min(n, MAX_PIXELS)
        sizes = np.diff([*starts, n])
        values = np.add.reduceat(values, starts, axis) / np.expand_dims(sizes, 1 - axis)
    return values


def write_png(pixels: np.ndarray) -> bytes:
    """Colours (rows, columns, 3), uint8, as a PNG (RFC 2083, sections 3.2 and 4.1)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + check

    rows, columns = (n.to_bytes(4, "big") for n in pixels.shape[:2])
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)  # 0: a row that no filter changes
    header = columns + rows + bytes((8, 2, 0, 0, 0))  # eight bits of red, green and blue
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


# --- where values are stored --------------------------------------------------------------------


def mesh_html(mesh: Any) -> str:
    """Return HTML for a mesh: its axes, and the place of each device."""
    return wrap_html(f"<b>{type(mesh).__name__}</b>", axes_html(mesh), devices_html(mesh))


def axes_html(mesh: Any) -> str:
    """The axes of a mesh as a table."""
    types = [kind.name for kind in mesh.axis_types]
    rows = zip(mesh.axis_names, mesh.axis_sizes, types, strict=True)
    return table_html(("axis", "size", "type"), rows)


def devices_html(mesh: Any) -> str:
    """The devices of a mesh as rows along its last axis; "" of an abstract one."""
    try:
        devices, names = mesh.devices, mesh.axis_names
    except ValueError:  # what an abstract mesh says
        return ""
    if not 0 < devices.size <= MAX_ROWS**2:
        return ""
    devices, rows = devices.reshape(devices.shape or (1,)), []  # a mesh may have no axes
    for index in itertools.islice(np.ndindex(devices.shape[:-1]), MAX_ROWS):
        label = ", ".join(f"{n}={i}" for n, i in zip(names, index, strict=False))
        rows.append((label, *(f"{d.platform}:{d.id}" for d in devices[index])))
    head = [f"{n}={i}" for n in names[-1:] for i in range(devices.shape[-1])]
    return table_html(["", *head] if head else (), rows)


def sharding_html(sharding: Any) -> str:
    """A sharding for a notebook: over which axes of the mesh each axis of an array is split."""
    parts = [f"<b>{type(sharding).__name__}</b> {escape_html(place_text(sharding))}"]
    if hasattr(sharding, "spec"):
        mesh = sharding.mesh
        rows = []
        for i, entry in enumerate(sharding.spec):
            over = [a for a in (entry if isinstance(entry, tuple) else (entry,)) if a in mesh.shape]
            count = int(np.prod([mesh.shape[a] for a in over]))
            rows.append((i, ", ".join(map(str, over)) or "-", count))
        kinds = ("unreduced", "reduced")
        rows += [
            (k, ", ".join(sorted(getattr(sharding.spec, k, ()))), "-")
            for k in kinds
            if getattr(sharding.spec, k, ())
        ]
        parts.append(table_html(("axis of the array", "split over", "parts"), rows))
        parts += [axes_html(mesh), devices_html(mesh)]
    return wrap_html(*parts)
