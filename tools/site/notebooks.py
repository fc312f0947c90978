"""Notebooks made of pages of docs/ and of programs of examples/.

A page becomes a cell for each piece of text and for each example, which loses its prompts and
outputs. A cell whose example raises has the tag that lets a run of the whole notebook go on. A
program becomes a cell for each of its functions, after cells that write the files it needs.

usage: python tools/site/notebooks.py NOTEBOOK... runs notebooks, and fails where a cell raises
"""

import ast
import doctest
import json
import re
import sys
import tempfile
import textwrap
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def split_examples(block: str) -> list[tuple[str, bool]]:
    """Return the code of cells, and True for those that raise: a cell ends where output follows."""
    cells: list[tuple[str, bool]] = []
    lines = ""
    for example in doctest.DocTestParser().get_examples(block):
        lines += re.sub(r"\s*# doctest:.*", "", example.source.rstrip("\n")) + "\n"
        if example.want:
            cells.append((lines.rstrip("\n"), example.exc_msg is not None))
            lines = ""
    return [*cells, (lines.rstrip("\n"), False)] if lines else cells


def make_cell(kind: str, text: str, number: int, raises: bool = False) -> dict:
    """Return a cell of the format of notebooks."""
    metadata = {"tags": ["raises-exception"]} if raises else {}
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": metadata, "source": text}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def write_cells(pieces: list[tuple[str, str, bool]]) -> str:
    """Return the text of a notebook of cells, each given as its kind, its text and if it raises."""
    cells = [
        make_cell(kind, text.strip("\n"), i, raises)
        for i, (kind, text, raises) in enumerate(pieces)
        if text.strip()
    ]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def make_notebook(page: str) -> str:
    """Return the text of a notebook that holds a page of Markdown with examples."""
    pieces: list[tuple[str, str, bool]] = []
    end = 0
    for fence in FENCE.finditer(page):
        if fence[1] == "python" and ">>>" in fence[2]:
            pieces.append(("markdown", page[end : fence.start()], False))
            pieces += [("code", code, raises) for code, raises in split_examples(fence[2])]
            end = fence.end()
    pieces.append(("markdown", page[end:], False))
    return write_cells(pieces)


def find_files(program: Path) -> list[Path]:
    """Return the files beside a program that it imports or names, those they need before them."""
    text = program.read_text()
    names = [f"{name}.py" for name in re.findall(r"^from (\w+) import", text, re.M)]
    names += re.findall(r"""\.with_name\("(.+?)"\)""", text)
    found: list[Path] = []
    for file in map(program.with_name, names):
        if file.exists():
            needed = find_files(file) if file.suffix == ".py" else []
            found += [f for f in [*needed, file] if f not in found]
    return found


def make_program_notebook(program: Path, title: str) -> str:
    """Return the text of a notebook that runs a program of examples/ and shows its pictures."""
    text = program.read_text()
    doc = ast.get_docstring(ast.parse(text))
    code = text[text.index('"""', 3) + 3 :]
    code, last = code.split('\nif __name__ == "__main__":\n')
    call = re.sub(r"^sys\.exit\((.*)\)$", r"\1", textwrap.dedent(last).strip())
    files = [
        ("code", f"%%writefile {file.name}\n{file.read_text()}", False)
        for file in find_files(program)
    ]
    run = f'import sys\n\nsys.argv = ["{program.name}", "--out", "out"]\n{call}'
    show = (
        "from pathlib import Path\n\nfrom IPython.display import Image, display\n\n"
        'for picture in sorted(Path("out").glob("*.png")):\n    display(Image(picture))'
    )
    said = f"# {title}\n\n{doc}\n\nIt needs `weft[examples]`, and writes these files beside it:"
    first = f'__doc__, __file__ = "{title}", "{program.name}"'
    return write_cells(
        [
            ("markdown", said, False),
            *files,
            ("markdown", "## The program", False),
            ("code", first, False),
            *(("code", part, False) for part in code.split("\n\n\n")),
            ("markdown", "## A run", False),
            ("code", run, False),
            ("code", show, False),
        ]
    )


def run_notebook(path: Path) -> None:
    """Run a notebook in a kernel of its own, in an empty folder."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run_notebook(Path(argument))
        print(f"{argument}: ran")
