"""The outputs in the tutorials are of the programs that stand there (tools/make_tutorials.py)."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["slow-step", "large-step"])
def test_lines_in_outputs_are_those_of_the_programs(page):
    text = (DOCS / f"{page}.md").read_text()
    programs = {}
    for name, body in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.S):
        compile(body, name, "exec")
        programs[name] = ["", f"# {name}", *body.split("\n")]
    outputs = re.findall(r"```text\n\$ (?:python|weft explain) (\w+\.py)\n(.+?)```", text, re.S)
    assert len(outputs) >= 2 and all(program in programs for program, _ in outputs)
    rows = re.findall(r"(\w+\.py):(\d+)(?: {2,}(\S.*))?", "".join(body for _, body in outputs))
    assert len(rows) > 5
    for name, number, source in rows:
        line = programs[name][int(number)].strip()
        assert line
        if source and not re.match(r"\w+\.py:|[0-9]", source):
            assert line.startswith(source.removesuffix("..."))
