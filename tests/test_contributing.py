"""The kernel in C++ that CONTRIBUTING.md prints, compiled and called as printed."""

import ctypes
import functools
import pathlib
import re
import shutil
import subprocess

import jaxlib
import numpy as np
import pytest
from jaxlib import _jax

import weft
from weft.core.primitive import Primitive

TEXT = (pathlib.Path(__file__).parent.parent / "CONTRIBUTING.md").read_text()
SECTION = TEXT.split("## A kernel for the CPU")[1].split("\n## ")[0]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_the_kernel_that_is_printed(tmp_path):
    source, register, lower = re.findall(r"```(?:cpp|python)\n(.*?)```", SECTION, re.DOTALL)
    command = re.search(r"`(g\+\+ .*?)`", SECTION)[1]
    (tmp_path / "halve.cc").write_text(source)
    home = str(pathlib.Path(jaxlib.__file__).parent)
    command = command.replace(".../jaxlib", home)
    subprocess.run(command.split(), cwd=tmp_path, check=True)

    names = {"functools": functools, "ctypes": ctypes, "_jax": _jax}
    names.update(path=str(tmp_path / "halve.so"), Primitive=Primitive)
    head = "class Halve(Primitive):\n    name = 'halve'\n"
    type_rule = "    def abstract_eval(self, x):\n        return [x]\n"
    exec(register + head + type_rule + lower, names)
    (half,) = weft.jit(names["Halve"]().apply)(weft.numpy.arange(3.0))
    np.testing.assert_array_equal(half, [0, 0.5, 1])
