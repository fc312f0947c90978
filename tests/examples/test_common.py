"""The common parts of the examples, the device of their computation, and errors for options."""

import contextlib
import io
import sys

import numpy as np
import pytest

import weft
from tests.examples.running import load_example


def test_tiles_are_rows_of_pictures_with_gaps():
    pictures = np.arange(30.0).reshape(5, 2, 3)
    shown = load_example("common").tiles(pictures, columns=2)
    assert shown.shape == (8, 7)  # three rows of two, and the gaps between them
    np.testing.assert_array_equal(shown[:2, :3], pictures[0])
    np.testing.assert_array_equal(shown[:2, 4:], pictures[1])
    np.testing.assert_array_equal(shown[6:, :3], pictures[4])
    assert (
        np.isnan(shown[2]).all() and np.isnan(shown[:, 3]).all() and np.isnan(shown[6:, 4:]).all()
    )


REFUSED = {
    "advi --steps 0": "--steps must be at least 1; got 0",
    "convnet --epochs -1": "--epochs must be at least 1; got -1",
    "data_parallel --devices 3 --batch 64": "--batch must be a multiple of --devices; got 64, 3",
    "digits --epochs 0": "--epochs must be at least 1; got 0",
    "foreign --epochs 0": "--epochs must be at least 1; got 0",
    "gp --points 1000000": "--points must be at most 135632; got 1000000",
    "hmc --chains 0": "--chains must be at least 1; got 0",
    "kernel_lsq --points 0": "--points must be at least 1; got 0",
    "logistic --penalty 0": "--penalty must be above 0; got 0.0",
    "maml --steps 0": "--steps must be at least 1; got 0",
    "mnist_stax --epochs 0": "--epochs must be at least 1; got 0",
    "ode_fit --starts 0": "--starts must be at least 1; got 0",
    "private --sample-rate 1.5": "--sample-rate must be at most 1; got 1.5",
    "recursion --formulas 0": "--formulas must be at least 1; got 0",
    "resnet --epochs 0": "--epochs must be at least 1; got 0",
    "score --samples 0": "--samples must be at least 1; got 0",
    "tensor_parallel --batch 3": "--batch must be a multiple of 2; got 3",
    "tensor_parallel --heads 1": "--heads must be a multiple of 2; got 1",
    "tensor_parallel --processes 3": "--processes must divide the 4 devices; got 3",
    "transformer --width 30 --heads 4": "--width must be a multiple of twice --heads; got 30, 4",
    "vae --epochs 0": "--epochs must be at least 1; got 0",
}


@pytest.fixture
def single():
    """Examples that compute in double precision say so for the whole process."""
    yield
    weft.config.update("enable_x64", False)


@pytest.mark.usefixtures("single")
@pytest.mark.parametrize("command", REFUSED)
def test_options_are_checked(command, monkeypatch, tmp_path):
    name, *options = command.split()
    example = load_example(name)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *options, "--out", str(tmp_path)])
    with contextlib.redirect_stderr(io.StringIO()) as said, pytest.raises(SystemExit) as ended:
        sys.exit(example.main())
    # a message, which Python prints, or what argparse has printed and ends with
    assert REFUSED[command] in (said.getvalue() if ended.value.code == 2 else ended.value.code)
