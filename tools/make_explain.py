"""Make the pictures and the report of docs/explain.md, and docs/costs.svg, of this machine.

The machine must be quiet. The first program of docs/explain.md runs three times in a process of its
own; the last run writes the page, of which Chromium takes the picture. The report that it prints
replaces the one in docs/explain.md, with tables cut to their first rows.

usage: python tools/make_explain.py
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from make_tutorials import photograph

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explain.md"
# Lines of each table in the page; other tables have 6.
ROWS = {"Stages": 8, "Lines": 9, "Kernels": 9}


def cut_tables(text: str) -> str:
    """Return a report whose tables have only their first rows."""
    blocks = []
    for block in text.strip().split("\n\n"):
        rows = block.split("\n")
        most = ROWS.get(rows[0], 6)
        blocks.append("\n".join(rows[:most] + ["  ..."] * (len(rows) > most)))
    return "\n\n".join(blocks)


def main() -> None:
    """Run the program, and write the report and the pictures."""
    page = PAGE.read_text()
    program = re.search(r"```python\n(.*?)```", page, re.S)[1]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "loss.py").write_text(program)
        for _ in range(3):  # the first runs compile, and measure the peaks of the machine
            ran = subprocess.run(
                [sys.executable, "loss.py"], cwd=path, check=True, capture_output=True, text=True
            )
        photograph(path / "loss.html", ROOT / "docs" / "explain.png", 0, 1178)
    report = f"```text\n{cut_tables(ran.stdout)}\n```"
    PAGE.write_text(re.sub(r"```text\n.*?```", lambda _: report, page, count=1, flags=re.S))
    subprocess.run([sys.executable, "tools/site/costs.py"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
