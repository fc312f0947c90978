"""The files in on8/, some of them in each of a few processes with eight CPU devices.

To run one file: `WEFT_TEST_DEVICES=8 pytest tests/parallel/on8/test_mesh.py`.
"""

from pathlib import Path

import pytest

from tests.parallel.devices import run_with_devices

FILES = sorted((Path(__file__).parent / "on8").glob("test_*.py"))

# Starting a process costs as much as a file of tests; each gets an equal number of lines of them.
GROUPS: list[list[Path]] = [[] for _ in range(4)]
for file in sorted(FILES, key=lambda file: -len(file.read_text())):
    min(GROUPS, key=lambda group: sum(len(f.read_text()) for f in group)).append(file)


@pytest.mark.parametrize("files", GROUPS, ids=["_".join(f.stem[5:] for f in g) for g in GROUPS])
def test_on_eight_devices(files):
    run_with_devices(8, *sorted(files))
