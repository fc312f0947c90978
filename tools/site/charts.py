"""Charts of docs/benchmarks.md: the figures of weft as shares of the reference's.

usage: python tools/site/charts.py writes docs/headline.svg, the chart of the README
"""

import re
from html import escape
from pathlib import Path

import words

DOCS = Path(__file__).resolve().parents[2] / "docs"
# The cases that the README shows, and their meaning for readers who do not know the benchmarks.
HEADLINES = {
    "start/import": "import the package",
    "start/first_mlp3_grad": "first gradient in a new process",
    "eager/index0": "x[0], not compiled",
    "trace/transformer12_grad": "trace a transformer's gradient",
    "lower/mlp3_grad": "lower a network's gradient",
    "compile/transformer12_scan_grad": "compile a transformer's gradient",
    "residual/transformer12_scan_grad": "its temporary memory",
}
STYLE = """
text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.faint{fill:#59636e;font-size:12px}.fast{fill:#1f7a8c}.slow{fill:#d9730d}
.line{stroke:#8a8f98;stroke-width:1}.goal{stroke:#1f2328;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#9198a1}.fast{fill:#4fb3c6}
.goal{stroke:#e6edf3}}
"""
WIDTH, RIGHT, ROW = 440, 8, 36
ROWS = re.compile(r"^\| (\S+/\S+) \| (.+?) \|$", re.M)


def read_rows(text: str) -> dict[str, dict]:
    """The cases of tables that have a ratio: what each peer took, the ratio, and the goal."""
    rows = {}
    for case, cells in ROWS.findall(text):
        reference, judged, ratio, goal, *_ = [cell.strip() for cell in f"{cells} |".split("|")]
        if found := re.fullmatch(r"([\d.]+)x", ratio):
            wanted = re.fullmatch(r"≤ ([\d.]+)x", goal)
            rows[case] = dict(
                took=(reference, judged),
                ratio=float(found[1]),
                goal=float(wanted[1]) if wanted else None,
            )
    return rows


def draw_bars(rows: dict[str, dict], labels: dict[str, str] | None = None, style: str = "") -> str:
    """An SVG: a bar for each case, as long as its ratio; the reference's ends at the line."""
    most = max(1.25, min(2.0, max(row["ratio"] for row in rows.values())))
    scale = (WIDTH - RIGHT) / most
    height = ROW * len(rows) + 24
    parts = [
        f'<svg class="bars" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="times as shares of those of JAX">',
        f"<style>{style}</style>" if style else "",
        f'<line class="line" x1="{scale:.1f}" y1="4" x2="{scale:.1f}" y2="{height - 18}"/>',
        f'<text class="faint" x="{scale:.1f}" y="{height - 4}" text-anchor="middle">JAX</text>',
    ]
    for i, (case, row) in enumerate(rows.items()):
        y, ratio = i * ROW + 2, row["ratio"]
        kind = "fast" if ratio <= 1.05 else "slow"
        label = (labels or {}).get(case) or words.label(case)
        took = f"{row['took'][0]} to {row['took'][1]}"
        parts += [
            f'<text x="0" y="{y + 15}">{escape(label)} <tspan class="faint">{took}</tspan></text>',
            f'<rect class="{kind}" x="0" y="{y + 20}" rx="2" height="9" '
            f'width="{min(ratio, most) * scale:.1f}"/>',
            f'<text x="{WIDTH}" y="{y + 15}" text-anchor="end">{ratio:.2f}x</text>',
        ]
        if row["goal"] is not None and row["goal"] < most:
            x = row["goal"] * scale
            parts.append(
                f'<line class="goal" x1="{x:.1f}" y1="{y + 18}" x2="{x:.1f}" y2="{y + 31}"/>'
            )
    return "".join([*parts, "</svg>"])


def headline() -> str:
    """The chart of the README."""
    rows = read_rows((DOCS / "benchmarks.md").read_text())
    return draw_bars({case: rows[case] | {"goal": None} for case in HEADLINES}, HEADLINES, STYLE)


def draw_page(text: str) -> str:
    """docs/benchmarks.md with a chart for each of its tables, which can be unfolded."""
    sections = re.split(r"(?m)^(?=## )", text)
    for i, section in enumerate(sections):
        rows = read_rows(section)
        table = re.search(r"(?m)^\|.*(?:\n\|.*)+", section)
        if rows and table:
            folded = f"::::{{dropdown}} The figures\n{table[0]}\n::::"
            chart = f'<div class="chart">{draw_bars(rows)}</div>'
            section = section.replace(table[0], f"{chart}\n\n{folded}", 1)
        sections[i] = re.sub(
            r"^## (\w+)", lambda m: f"## {words.GROUPS.get(m[1], m[1])}", section, count=1
        )
    said = (
        "A bar is weft's time, or memory, as a share of JAX's, whose own would end at the line: "
        "shorter is better. A mark on a bar is a goal. JAX's figure is the first.\n\n"
    )
    return sections[0] + said + "".join(sections[1:])


if __name__ == "__main__":
    (DOCS / "headline.svg").write_text(headline() + "\n")
