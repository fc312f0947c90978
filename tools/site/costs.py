"""Draw docs/costs.svg, the picture of the README: the time that each line of a program takes.

It runs costs_program.py, whose report is what `weft.explain` says of this machine, and so wants a
quiet one. The forward and the backward pass of a line are the two parts of its bar.

usage: python tools/site/costs.py
"""

from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "costs_program.py"
PICTURE = HERE.parents[1] / "docs" / "costs.svg"
STYLE = """
text{font:13px ui-monospace,SFMono-Regular,Menlo,monospace;fill:#1f2328;white-space:pre}
.faint{fill:#59636e}.forward{fill:#1f7a8c}.backward{fill:#d9730d}.row{fill:#d9730d;opacity:.12}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#9198a1}
.forward{fill:#4fb3c6}.backward{fill:#f0883e}.row{opacity:.2}}
"""
WIDTH, ROW, BAR, CODE = 480, 19, 70, 152  # the longest bar; where the code begins


def measure() -> dict[int, tuple[float, float]]:
    """Run the program; return the seconds of the forward and the backward pass by line."""
    names: dict = {"__name__": "costs_program", "__file__": str(PROGRAM)}
    exec(compile(PROGRAM.read_text(), str(PROGRAM), "exec"), names)
    report = names["report"]
    return {
        place.line: (work.forward, work.backward)
        for place, work in report.lines
        if place is not None and place.file == str(PROGRAM)
    }


def write_time(seconds: float) -> str:
    """A time in three digits at most, such as `7.3 ms`."""
    scaled, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "us")
    return f"{scaled:.3g} {unit}"


def draw(lines: list[str], costs: dict[int, tuple[float, float]]) -> str:
    """The program as SVG, a bar and a time before each line that costs something.

    It is drawn from its first import on, and of two empty lines one.
    """
    longest = max(map(sum, costs.values()))
    first = lines.index("import weft")
    kept = [i + 1 for i in range(first, len(lines)) if lines[i] or lines[i - 1]]
    height = ROW * (len(kept) + 1) + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="the time that each line of a program takes"><style>{STYLE}</style>',
        '<rect class="forward" x="2" y="5" width="9" height="9"/><text class="faint" x="16" '
        'y="14">forward</text><rect class="backward" x="84" y="5" width="9" height="9"/>'
        '<text class="faint" x="98" y="14">backward</text>',
    ]
    for row, i in enumerate(kept, 1):
        top = ROW * row + 2
        if i in costs:
            forward, backward = (BAR * part / longest for part in costs[i])
            parts.append(
                f'<rect class="row" x="0" y="{top}" width="{WIDTH}" height="{ROW - 1}"/>'
                f'<rect class="forward" x="2" y="{top + 5}" width="{forward:.1f}" height="9"/>'
                f'<rect class="backward" x="{2 + forward:.1f}" y="{top + 5}" '
                f'width="{backward:.1f}" height="9"/>'
                f'<text class="faint" x="{CODE - 14}" y="{top + 14}" text-anchor="end">'
                f"{write_time(sum(costs[i]))}</text>"
            )
        parts.append(f'<text x="{CODE}" y="{top + 14}">{escape(lines[i - 1])}</text>')
    return "".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(draw(PROGRAM.read_text().rstrip().split("\n"), measure()))
