"""Every file in on8/, each in a process with eight CPU devices.

One alone: `WEFT_TEST_DEVICES=8 pytest tests/parallel/on8/test_mesh.py`.
"""

from pathlib import Path

import pytest

from tests.parallel.devices import run_with_devices

FILES = sorted((Path(__file__).parent / "on8").glob("test_*.py"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_on_eight_devices(file):
    run_with_devices(8, file)
