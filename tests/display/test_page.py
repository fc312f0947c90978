"""`_repr_html_`: well-formed, folding, with types and lines on hover."""

from html.parser import HTMLParser

import pytest

import weft
import weft.numpy as jnp
from weft import lax


class Tags(HTMLParser):
    """Checks that tags are closed in order; keeps titles and the text."""

    def __init__(self):
        super().__init__()
        self.open, self.titles, self.text, self.count = [], [], [], {}

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1
        self.titles += [v for k, v in attrs if k == "title"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    return tags


def nested(x):
    x = weft.jit(lambda y: y < 3.0)(x)
    return lax.cond(x, lambda y: y * 2, lambda y: jnp.sin(y) - 1, 2.0)


def test_a_page_folds_and_tells():
    tags = read(weft.make_jaxpr(nested)(1.0)._repr_html_())
    assert tags.count["details"] == 4
    text = "".join(tags.text)
    assert "lt" in text
    assert "branches" in text
    assert any(t.startswith("b: bool[]\nby jit at test_page.py:") for t in tags.titles)
    assert any("x = weft.jit(lambda y: y < 3.0)(x)" in t for t in tags.titles)


def test_programs_held_twice_are_shown_once():
    f = weft.jit(jnp.sin)
    text = "".join(read(weft.make_jaxpr(lambda x: f(f(x)))(1.0)._repr_html_()).text)
    assert text.count("let sin =") == 1
    assert text.count(" = sin") + text.count("jaxpr = sin") >= 2


@pytest.mark.parametrize("fun", [lambda: (), lambda x: x, lambda x: weft.debug.print("<&>{}", x)])
def test_small_programs(fun):
    read(weft.make_jaxpr(fun)(*[1.0] * fun.__code__.co_argcount)._repr_html_())
