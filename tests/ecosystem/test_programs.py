"""Programs of programs/, one of each of many libraries, print the same numbers."""

import importlib.metadata
import re
from pathlib import Path

import jax  # noqa: F401 - `record` needs it
import numpy as np
import pytest
from test_examples import NUMBER, names_in, run

PROGRAMS = Path(__file__).parent / "programs"
LIBRARY = re.compile('"""([^ ,:]+)')  # a program's text begins with the library's name


@pytest.mark.parametrize("name", names_in(PROGRAMS))
def test_program(name, record):
    file = PROGRAMS / f"{name}.py"
    try:
        importlib.metadata.version(LIBRARY.match(file.read_text()).group(1))
    except importlib.metadata.PackageNotFoundError as error:
        pytest.skip(f"{error} is not installed")
    for line in run(file).splitlines():
        record(np.array(NUMBER.findall(line), float), 2e-3)
