"""Arrays, keys, meshes and shardings as HTML: their text, and pictures read back."""

import binascii
import re
import zlib
from collections import namedtuple
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, random
from weft.display import values


class Checker(HTMLParser):
    """Fails unless every element is closed in its turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open += [tag] if tag != "img" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += [data] if "style" not in self.open else []


def text_of(x):
    return " ".join("".join(Checker(x._repr_html_()).text).split())


def read_picture(html):
    """The pixels of the PNG in a page, by the format's description."""
    data = binascii.a2b_base64(re.search(r"base64,([^\"]+)", html)[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(
            data[at + 8 + size : at + 12 + size], "big"
        )
        chunks[kind], at = body, at + 12 + size
    columns, rows = (int.from_bytes(chunks[b"IHDR"][i : i + 4], "big") for i in (0, 4))
    assert chunks[b"IHDR"][8:] == bytes((8, 2, 0, 0, 0))  # eight bits, three colours
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(rows, columns, 3)


def test_a_matrix_has_a_picture():
    x = np.array([[-2.0, 0.0, 1.0], [np.nan, 2.0, np.inf]], np.float32)
    array = weft.device_put(x)
    assert "Array f32[2,3] 24 bytes on cpu:0" in text_of(array)
    assert "-2 to 2, mean 0.25, 1 NaN, 1 inf" in text_of(array)
    assert "valuesArray([[-2., 0., 1.]," in text_of(array)
    pixels = read_picture(array._repr_html_())
    assert pixels.tolist() == [
        [[33, 102, 172], [247, 247, 247], [212, 135, 145]],
        [[255, 0, 255], [178, 24, 43], [255, 0, 255]],
    ]
    assert 'width="48" height="32"' in array._repr_html_()


def test_blocks_are_averaged(rng):
    x = rng.normal(size=(200, 7))
    small = values.average_blocks(x)
    starts = np.arange(96) * 200 // 96
    blocks = zip(starts, [*starts[1:], 200], strict=True)
    np.testing.assert_allclose(small, [x[a:b].mean(0) for a, b in blocks])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: jnp.float32(3), "Array f32[] 4 bytes on cpu:0valuesArray(3., dtype=float32)"),
        (lambda: jnp.asarray(2.0), "Array f32[], weak type 4 bytes"),
        (lambda: jnp.zeros((0, 3)), "Array f32[0,3] 0 bytes"),
        (lambda: jnp.arange(5), "0 to 4, mean 2values"),
        (lambda: jnp.zeros((2, 2), "complex64"), "Array c64[2,2] 32 bytes on cpu:00 to 0"),
        (lambda: jnp.zeros((2, 2), bool), "0 to 0, mean 0"),
        (lambda: jnp.zeros((2, 2), "bfloat16"), "Array bf16[2,2] 8 bytes"),
        (lambda: jnp.zeros((2, 2), "int4"), "Array i4[2,2]"),
        (lambda: random.key(0), "Array key<fry>[] 8 bytes on cpu:0valuesArray((), dtype=key<fry>)"),
        (lambda: random.split(random.key(0)), "Array key<fry>[2] 16 bytes"),
        (lambda: jnp.full((2, 1), jnp.nan), "2 NaN"),
    ],
    ids=range(11),
)
def test_what_is_told_of_an_array(make, told):
    x = make()
    assert told in text_of(x)
    assert text_of(x).endswith(" ".join(f"values{x!r}".split()))  # and no list of its parts


def test_many_values_are_folded_and_large_arrays_are_not_read(monkeypatch):
    x = jnp.zeros((20, 20))
    assert "<details><summary>values" in x._repr_html_()
    monkeypatch.setattr(values, "MAX_READ", 399)
    assert "<img" not in x._repr_html_() and "mean" not in text_of(x)


def test_a_deleted_array_says_so():
    x = jnp.array([1.0, 2.0])
    x.delete()
    assert text_of(x) == "Array f32[2]: deleted or donated"


def test_traced_values_have_no_html():
    def f(x):
        assert not hasattr(x, "_repr_html_")
        return x

    weft.make_jaxpr(f)(1.0)


def test_meshes_and_shardings_are_tables():
    mesh = weft.make_mesh((1, 1), ("a<b", "y"))
    assert "axissizetypea<b1Explicity1Explicit" in text_of(mesh) and "cpu:0" in text_of(mesh)
    assert text_of(mesh.abstract_mesh).startswith("AbstractMesh")
    sharding = weft.NamedSharding(mesh, P(("a<b", "y"), None))
    assert "parts0a<b, y11-1" in text_of(sharding)
    assert text_of(jnp.ones(2).sharding) == "SingleDeviceSharding cpu:0"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (1_500_000, "1.5 MB"),
        (999_999_999, "1000.0 MB"),
        (10**9, "1.0 GB"),
        (2 * 10**15, "2000.0 TB"),
    ],
)
def test_bytes_are_told_in_units(count, text):
    assert values.bytes_text(count) == text


# Values are known by their attributes, so devices that are not there can be made up.
Device = namedtuple("Device", "platform id")
DEVICES = np.empty(12, object)
DEVICES[:] = [Device("gpu", i) for i in range(12)]


def make_mesh(*sizes):
    names, types = ("x", "y", "z")[: len(sizes)], [SimpleNamespace(name="Auto")] * len(sizes)
    shape = dict(zip(names, sizes, strict=True))
    devices = DEVICES[: np.prod(sizes, dtype=int)].reshape(sizes)
    return SimpleNamespace(
        devices=devices, axis_names=names, axis_sizes=sizes, axis_types=types, shape=shape
    )


def cells_of(html):
    """The rows of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]


def test_devices_are_rows_along_the_last_axis():
    assert cells_of(values.devices_html(make_mesh(2, 3))) == [
        ["", "y=0", "y=1", "y=2"],
        ["x=0", "gpu:0", "gpu:1", "gpu:2"],
        ["x=1", "gpu:3", "gpu:4", "gpu:5"],
    ]
    assert cells_of(values.devices_html(make_mesh(2))) == [
        ["", "x=0", "x=1"], ["", "gpu:0", "gpu:1"],
    ]  # fmt: skip
    assert cells_of(values.devices_html(make_mesh(2, 2, 2)))[-1] == ["x=1, y=1", "gpu:6", "gpu:7"]
    assert cells_of(values.devices_html(make_mesh())) == [["", "gpu:0"]]


def test_many_devices_are_left_out(monkeypatch):
    monkeypatch.setattr(values, "MAX_ROWS", 2)
    assert len(cells_of(values.devices_html(make_mesh(4)))) == 2
    assert not values.devices_html(make_mesh(5))
    assert len(cells_of(values.devices_html(make_mesh(4, 1)))) == 3


def test_a_sharding_says_what_is_split_over_what():
    mesh = make_mesh(2, 3)
    sharding = SimpleNamespace(mesh=mesh, spec=(("x", "y"), None, "y"), device_set=set(range(6)))
    html = values.sharding_html(sharding)
    assert "6 devices, (('x', 'y'), None, 'y')" in html
    rows = cells_of(html)
    assert rows[:4] == [
        ["axis of the array", "split over", "parts"],
        ["0", "x, y", "6"],
        ["1", "-", "1"],
        ["2", "y", "3"],
    ]
    assert rows[4:7] == [["axis", "size", "type"], ["x", "2", "Auto"], ["y", "3", "Auto"]]
    assert rows[7:] == cells_of(values.devices_html(mesh))
    assert values.place_text(SimpleNamespace(device_set={1, 2})) == "2 devices"


def test_parts_are_listed_by_device():
    parts = {
        DEVICES[1]: (slice(2, 4), slice(None), slice(0, 5)),
        DEVICES[0]: (slice(0, 2), slice(None), slice(0, 5)),
        DEVICES[2]: (slice(None, 2), slice(None), slice(1, None)),
    }
    sharding = SimpleNamespace(devices_indices_map=lambda shape: parts)
    html = values.parts_html(SimpleNamespace(sharding=sharding, shape=(4, 3, 5)))
    assert cells_of(html) == [
        ["device", "part"],
        ["gpu:0", "[0:2, :, :]"],
        ["gpu:1", "[2:4, :, :]"],
        ["gpu:2", "[0:2, :, 1:5]"],
    ]


@pytest.mark.parametrize(
    ("shape", "size"),
    [((300, 1000), (240, 72)), ((2, 2), (32, 32)), ((1, 500), (240, 8)), ((60, 1), (8, 240))],
)
def test_a_picture_has_the_shape_of_the_matrix(shape, size):
    html = values.picture_html(np.ones(shape))
    assert f'width="{size[0]}" height="{size[1]}"' in html
    pixels = read_picture(html)
    assert pixels.shape == (min(shape[0], 96), min(shape[1], 96), 3)
    assert (pixels == (178, 24, 43)).all()


def test_zeros_are_white():
    assert (read_picture(values.picture_html(np.zeros((2, 2)))) == 247).all()
