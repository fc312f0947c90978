"""The page of a report: source in colors, and numbers that no bar covers."""

import html
import re

import pytest

from weft.explain.page import STYLE, color_code, write_table
from weft.explain.tables import Table

CODE = '''@jit
def f(x):  # doubles <x>
    """A text
    of two lines."""
    return f"{x!r} & {2}" if x else 0x1F + 1.5e3
'''


def plain(line):
    """Return the text of a line of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", line))


@pytest.mark.parametrize(
    "text", [CODE, CODE + "%timeit f(3)\n", "x = (1,\n", "  y = 1\n z = 2\n", ""]
)
def test_colors_keep_the_text(text):
    lines = text.splitlines(keepends=True)
    assert list(map(plain, color_code(lines))) == [line.rstrip() for line in lines]


def test_kinds_of_tokens():
    head, start, text, more, result = color_code(CODE.splitlines(keepends=True))
    assert head == "@jit"
    assert start.startswith('<span class="keyword">def</span> f(x):')
    assert start.endswith('<span class="comment"># doubles &lt;x&gt;</span>')
    assert text.startswith('    <span class="string">') and more.startswith('<span class="string">')
    assert '<span class="digits">0x1F</span> + <span class="digits">1.5e3</span>' in result


def test_bars_are_below_numbers():
    table = Table("t", ["share"], [["52.5%"]], numbers=1, shares=[0.525])
    assert 'class="n bar" style="--w:52.5%">52.5%' in write_table(table)
    (rule,) = re.findall(r"td\.bar \{([^}]*)\}", STYLE)
    assert "bottom / 100% .25rem" in rule and "padding-bottom" in rule
