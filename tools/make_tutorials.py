"""Make the outputs and pictures of the tutorials in docs/ again, from real runs.

In a page, a block of Python whose first line is `# name.py` is a program; written to a folder.
A block of text whose first line is `$ command` has the command's output below, which is replaced. A
comment in front says what is left of it: `<!-- shown: Lines 6, Kernels 3 -->` are tables and the
number of rows in each; `...` stands for the others. Examples with `>>>` run as doctests do, in the
same folder. Pictures are listed below; pages in HTML are photographed with Chromium.

usage: python tools/make_tutorials.py [page ...]
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?:<!-- shown: (.*?) -->\n)?```(python|text)\n(.*?)```\n", re.S)
# page: {picture: (what a run leaves in the folder, or a variable of the page;
#                  top and height of a screenshot)}
PAGES = {
    "reading-a-program": {"reading-a-program.svg": ("drawing", None)},
    "slow-step": {"slow-step.png": ("step.html", (0, 1100))},
    "large-step": {"large-step.png": ("step.html", (0, 580))},
}


def make_page(name: str) -> None:
    """Run the programs of a page, and write their outputs and pictures."""
    path = DOCS / f"{name}.md"
    text = path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        text = BLOCK.sub(lambda found: run_block(found, Path(folder)), text)
        path.write_text(text)
        names = run_examples(text, path, folder)
        for picture, (made, part) in PAGES[name].items():
            if part is None:
                (DOCS / picture).write_text(names[made])
            else:
                photograph(Path(folder) / made, DOCS / picture, *part)
            print(f"{picture}: {(DOCS / picture).stat().st_size / 1000:.0f} kB")


def run_block(found: re.Match, folder: Path) -> str:
    """Write a program to the folder; or give a command's block with the output of a run."""
    shown, kind, body = found.groups()
    head = body.partition("\n")[0]
    if kind == "python" and (name := re.fullmatch(r"# (\w+\.py)", head)):
        (folder / name[1]).write_text(body)
    if kind == "python" or not head.startswith("$ "):
        return found[0]
    print(head)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WEFT_CACHE_DIR": str(folder / "cache")}
    command = head[2:].replace("python ", f"{sys.executable} ", 1)
    done = subprocess.run(command, shell=True, cwd=folder, env=env, text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    output = shorten(done.stdout, shown) if shown else done.stdout
    comment = f"<!-- shown: {shown} -->\n" if shown else ""
    return f"{comment}```text\n{head}\n{output.strip()}\n```\n"


def shorten(output: str, shown: str) -> str:
    """Return the tables of a report with the shown titles, with the shown numbers of rows."""
    wanted = {name: int(rows) for name, rows in re.findall(r"([A-Z][\w ]*?) (\d+)", shown)}
    kept = []
    for table in re.split(r"\n\n", output.strip()):
        title, *lines = table.split("\n")
        name = next((name for name in wanted if title.startswith(name)), None)
        if name is not None:
            heads = next(
                i
                for i, line in enumerate(lines)
                if re.match(r" +(time|share|bytes|running) ", line)
            )
            last = heads + 1 + wanted[name]
            rest = [line for line in lines[last:] if "(not attributed)" in line]
            more = ["  ..."] if len(lines) - len(rest) > last else []
            kept.append("\n".join([title, *lines[:last], *more, *rest]))
    return "\n\n".join(kept)


def run_examples(text: str, path: Path, folder: str) -> dict:
    """Run the examples with `>>>`; the names they leave."""
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    before = os.getcwd()
    os.chdir(folder)
    failed, _ = doctest.DocTestRunner().run(test, clear_globs=False)
    os.chdir(before)
    if failed:
        sys.exit(f"{path.name}: {failed} examples print something else")
    return test.globs


def photograph(page: Path, picture: Path, top: int, height: int) -> None:
    """Write a screenshot of rows of pixels of an HTML page."""
    chromium = shutil.which("chromium") or sys.exit("there is no chromium on this machine")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    shot = page.with_suffix(".png")
    size = f"--window-size=1100,{top + height}"
    command = [chromium, *options, size, f"--screenshot={shot}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with Image.open(shot) as image:
        part = image.convert("RGB").crop((0, top, image.width, top + height))
        part.quantize(64).save(picture, optimize=True)


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        make_page(page)
