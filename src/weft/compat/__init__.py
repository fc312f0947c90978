"""Programs and libraries written for JAX, unchanged: `import jax` means weft.

    python -m weft script.py args          also -m module, and -c code
    import weft.compat; weft.compat.install()
    %load_ext weft.compat                  the first cell of a notebook
    pytest -p weft.compat.pytest

Child processes inherit it by WEFT_AS_JAX=1 in the environment, which a file that is installed with
weft reads (weft_as_jax.pth). finder.py maps modules of JAX; places.py lists absent ones.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from weft.compat import version
from weft.compat.finder import Finder
from weft.compat.traces import install_traces
from weft.core.aval import ShapedArray
from weft.errors import MissingRule
from weft.options import config
from weft.util import list_public

__all__ = ["install", "load_ipython_extension"]
__dir__ = list_public(__name__)


def install() -> None:
    """Make `import jax` mean weft, in this process and in those that it starts.

    What JAX does by default is then the default: random numbers as under
    `config.threefry_partitionable`, and no check of bounds, unless the environment says otherwise;
    types of values print with the dtypes' full names; and the error for a missing rule is of the
    class NotImplementedError itself, with which JAX's tutorials compare its class.
    Calling it again does nothing. Raises ImportError where JAX itself is imported already.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    if "jax" in sys.modules:
        raise ImportError(
            "weft.compat.install: must be called before the first `import jax`; got JAX imported "
            "already. Hint: call it at the top of the program, or run python -m weft script.py."
        )
    sys.meta_path.insert(0, Finder())
    sys.modules["jax.version"] = version  # which libraries read wherever jaxlib is loaded
    os.environ["WEFT_AS_JAX"] = "1"
    config.update("threefry_partitionable", True)  # `import jax` reads the environment
    config.update("check_bounds", False)
    config.update("wrap_callback_errors", True)
    MissingRule.__new__ = lambda cls, *args: NotImplementedError(*args)  # type: ignore[assignment]
    ShapedArray.__str__ = show_type  # type: ignore[method-assign]
    install_traces()


def show_type(aval: ShapedArray) -> str:
    """A type as JAX prints it outside of programs: `float32[3]`, a weak one `~float32[]`."""
    return f"{'~' if aval.weak_type else ''}{aval.str_short(short_dtypes=False)}"


def load_ipython_extension(ipython: Any) -> None:
    """Load the extension: `%load_ext weft.compat` calls it."""
    install()
