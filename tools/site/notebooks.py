"""Notebooks made of pages of docs/: a cell for each piece of text and for each example.

Examples lose their prompts and outputs. A cell whose example raises has the tag that lets a run of
the whole notebook go on.
"""

import doctest
import json
import re

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
    cells = [
        make_cell(kind, text.strip("\n"), i, raises)
        for i, (kind, text, raises) in enumerate(pieces)
        if text.strip()
    ]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
