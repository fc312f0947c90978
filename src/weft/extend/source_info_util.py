"""The origin of equations: names of `jax.extend.source_info_util`.

A stack of names is the path of the open scopes, `attention/dense`. Transformations are part of it:
`jvp(loss)/dense`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from weft.api.named_scope import named_scope, open_scope
from weft.core.source import SourceInfo, Transform, path_text, source_location
from weft.core.trace import current as here
from weft.core.trace import get_traceback
from weft.errors import HIDDEN_FILES
from weft.util import list_public

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack",
    "set_name_stack", "summarize", "transform_name_stack", "user_context",
]  # fmt: skip
__dir__ = list_public(__name__)

extend_name_stack = named_scope


class NameStack(NamedTuple):
    """Names of scopes and of transformations, from the outside in.

    >>> print(NameStack().extend("loss").transform("jvp").extend("dense"))
    loss/jvp(dense)
    """

    stack: tuple[str, ...] = ()

    def extend(self, name: str) -> NameStack:
        """The stack with a scope inside."""
        return NameStack((*self.stack, name))

    def transform(self, name: str) -> NameStack:
        """The stack with a transformation inside, which wraps the next scope."""
        return NameStack((*self.stack, Transform(name)))

    def __str__(self) -> str:
        return path_text(self.stack)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one scope, or of none."""
    return NameStack((name,) if name else ())


def current() -> SourceInfo:
    """The place here, and the names of scopes that are open."""
    return SourceInfo(get_traceback(), here.scope)


def new_source_info() -> SourceInfo:
    """A place that is not known."""
    return SourceInfo(None, ())


def current_name_stack() -> NameStack:
    """The names of the scopes that are open."""
    return NameStack(here.scope)


def set_name_stack(name_stack: NameStack) -> contextlib.AbstractContextManager[None]:
    """Open the scopes of a stack within the block, in place of others.

    >>> with set_name_stack(new_name_stack("model")):
    ...     print(current_name_stack())
    model
    """
    return open_scope(name_stack.stack)


def reset_name_stack() -> contextlib.AbstractContextManager[None]:
    """Close all scopes within the block."""
    return open_scope(())


def transform_name_stack(name: str) -> contextlib.AbstractContextManager[None]:
    """Wrap the scopes that open within the block in a transformation of this name."""
    return open_scope((*here.scope, Transform(name)))


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """`model.py:12:4 (loss)`: the user's line."""
    return source_location(source_info)


def register_exclusion(path: str) -> None:
    """Name a file whose frames users do not want to see, as they do not see weft's.

    Errors and the places of equations leave them out.
    """
    HIDDEN_FILES.add(path)


@contextlib.contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """Open the scopes of `name_stack`, if given, within the block.

    Errors show the lines of the user's program anyway.
    """
    with open_scope(here.scope if name_stack is None else name_stack.stack):
        yield
