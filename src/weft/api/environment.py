"""`print_environment_info`: what to say of an installation when asking a question about it."""

from __future__ import annotations

import platform
import sys

import numpy as np
from jaxlib.version import __version__ as jaxlib_version

from weft.api.devices import devices, process_count
from weft.cpu.kernels import load_kernels
from weft.options import config


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions, the devices, and whether the kernels in C++ are used.

    With `return_string` the text is returned instead.

    >>> print(print_environment_info(return_string=True))  # doctest: +ELLIPSIS
    weft:    ...
    jaxlib:  ...
    """
    kinds: dict[str, int] = {}
    for device in devices():
        kinds[device.device_kind] = kinds.get(device.device_kind, 0) + 1
    native = "off (WEFT_NATIVE)" if not config.native else load_kernels() or "in use"
    lines = {
        "weft": sys.modules["weft"].__version__,
        "jaxlib": jaxlib_version,
        "numpy": np.__version__,
        "python": sys.version.replace("\n", " "),
        "devices": ", ".join(f"{n} x {kind}" for kind, n in kinds.items()),
        "processes": str(process_count()),
        "platform": platform.platform(),
        "kernels in C++": native,
    }
    text = "\n".join(f"{name + ': ':<9}{value}" for name, value in lines.items())
    if return_string:
        return text
    print(text)
    return None
