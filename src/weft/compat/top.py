"""Names of `jax` itself that `weft` has otherwise, or has no use for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from weft.compat.absent import make_absent
from weft.compat.version import __version__, __version_info__
from weft.util import Logger, name_function

__all__ = [
    "Ref", "__version__", "__version_info__", "array_garbage_collection_guard", "auto_pcast",
    "new_ref", "no_execution", "no_tracing", "softmax_custom_jvp", "thread_guard",
]  # fmt: skip

Ref, new_ref = map(make_absent, ("jax.Ref", "jax.new_ref"))  # what libraries test for
logger = Logger("weft.compat")


def _make_scope(name: str) -> Any:
    """A context manager, also a decorator, for an option that changes nothing here."""

    @contextlib.contextmanager
    def scope(value: Any = None) -> Iterator[None]:
        logger.debug("weft: the option %s of JAX changes nothing here.", name)
        yield

    return name_function(scope, name, f"The option {name} of JAX, which changes nothing here.")


array_garbage_collection_guard = _make_scope("array_garbage_collection_guard")
auto_pcast = _make_scope("auto_pcast")
no_execution = _make_scope("no_execution")
no_tracing = _make_scope("no_tracing")
softmax_custom_jvp = _make_scope("softmax_custom_jvp")
thread_guard = _make_scope("thread_guard")
