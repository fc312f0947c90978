"""Names of `jax` itself that `weft` has otherwise, or has no use for."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft import __version__ as weft_version
from weft.api.devices import devices, process_count, process_index, process_indices
from weft.compat.lib import __version__ as jaxlib_version
from weft.compat.version import __version__, __version_info__
from weft.util import Logger, name_function

__all__ = [
    "__version__", "__version_info__", "allow_f16_reductions",
    "array_garbage_collection_guard", "auto_pcast", "host_count", "host_id", "host_ids",
    "no_execution", "no_tracing", "print_environment_info", "softmax_custom_jvp", "thread_guard",
]  # fmt: skip

logger = Logger("weft.compat")


def _make_scope(name: str) -> Any:
    """A context manager, also a decorator, for an option that changes nothing here."""

    @contextlib.contextmanager
    def scope(value: Any = None) -> Iterator[None]:
        logger.debug("weft: the option %s of JAX changes nothing here.", name)
        yield

    return name_function(scope, name, f"The option {name} of JAX, which changes nothing here.")


allow_f16_reductions = _make_scope("allow_f16_reductions")
array_garbage_collection_guard = _make_scope("array_garbage_collection_guard")
auto_pcast = _make_scope("auto_pcast")
host_count, host_id, host_ids = process_count, process_index, process_indices
no_execution = _make_scope("no_execution")
no_tracing = _make_scope("no_tracing")
softmax_custom_jvp = _make_scope("softmax_custom_jvp")
thread_guard = _make_scope("thread_guard")


def print_environment_info(return_string: bool = False) -> str | None:
    """Print which versions and devices there are, or return the text."""
    rows = {
        "jax": f"{__version__} (weft {weft_version})",
        "jaxlib": jaxlib_version,
        "numpy": np.__version__,
        "python": sys.version,
        "device info": ", ".join(map(str, devices())),
    }
    text = "\n".join(f"{name}: {value}" for name, value in rows.items())
    return text if return_string else print(text)
