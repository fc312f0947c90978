"""Arrays, keys, meshes and shardings as HTML: what they say, and pictures read back."""

import binascii
import re
import zlib
from html.parser import HTMLParser

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
    assert told in text_of(make())


def test_many_values_are_folded_and_large_arrays_are_not_read(monkeypatch):
    x = jnp.zeros((20, 20))
    assert "<details><summary>values" in x._repr_html_()
    monkeypatch.setattr(values, "MOST_READ", 399)
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
        (2 * 10**15, "2000.0 TB"),
    ],
)
def test_bytes_are_told_in_units(count, text):
    assert values.bytes_text(count) == text
