"""What is said of an installation."""

import numpy as np

import weft
from weft.cpu import kernels


def test_the_text_names_versions_devices_and_kernels(capsys):
    text = weft.print_environment_info(return_string=True)
    assert f"numpy:   {np.__version__}\n" in text
    assert f"weft:    {weft.__version__}\n" in text
    assert f"{weft.device_count()} x cpu" in text
    assert text.endswith("kernels in C++: " + (kernels.load_kernels() or "in use"))
    assert weft.print_environment_info() is None
    assert capsys.readouterr().out == text + "\n"
    with weft.config.scope(native=False):
        assert weft.print_environment_info(return_string=True).endswith("off (WEFT_NATIVE)")
