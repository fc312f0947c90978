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
    """Names of scopes and of transformations, from the outermost to the innermost.

    `str` of it is a path. The name of a transformation wraps the scope after it. `extend(name)`
    returns a stack with a scope inside, and `transform(name)` a stack with a transformation inside.

    Args:
      stack: the names, a tuple of strings. The default is empty.

    >>> from weft.extend.source_info_util import NameStack
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
    """Return a stack of names with one scope or none.

    Args:
      name: the name of the scope. The default, an empty string, returns an empty stack.

    Returns:
      A `NameStack`.

    >>> from weft.extend import source_info_util
    >>> print(source_info_util.new_name_stack("model").extend("dense"))
    model/dense
    """
    return NameStack((name,) if name else ())


def current() -> SourceInfo:
    """Return the place of the call in the user's program, and the open named scopes.

    It is for interpreters that write equations: pass it to `weft.extend.core.new_jaxpr_eqn`.

    Returns:
      A `SourceInfo`.

    >>> from weft.extend import source_info_util
    >>> with weft.named_scope("loss"):
    ...     print(source_info_util.current().name_stack)
    loss
    """
    return SourceInfo(get_traceback(), here.scope)


def new_source_info() -> SourceInfo:
    """Return a `SourceInfo` for a place that is not known.

    Returns:
      A `SourceInfo` without a traceback and without scopes.

    >>> from weft.extend import source_info_util
    >>> source_info_util.new_source_info()
    SourceInfo(traceback=None, scope=())
    """
    return SourceInfo(None, ())


def current_name_stack() -> NameStack:
    """Return the names of the open scopes.

    Returns:
      A `NameStack`. It is empty if no scope is open.

    >>> from weft.extend import source_info_util
    >>> with weft.named_scope("loss"), weft.named_scope("dense"):
    ...     print(source_info_util.current_name_stack())
    loss/dense
    """
    return NameStack(here.scope)


def set_name_stack(name_stack: NameStack) -> contextlib.AbstractContextManager[None]:
    """Open the scopes of a stack within the block, in place of the scopes that are open.

    It is for interpreters that evaluate an equation under the names it was traced with.

    Args:
      name_stack: a `NameStack`.

    Returns:
      A context manager.

    >>> from weft.extend.source_info_util import (
    ...     current_name_stack, new_name_stack, set_name_stack,
    ... )
    >>> with weft.named_scope("loss"), set_name_stack(new_name_stack("model")):
    ...     print(current_name_stack())
    model
    """
    return open_scope(name_stack.stack)


def reset_name_stack() -> contextlib.AbstractContextManager[None]:
    """Close all named scopes within the block.

    The scopes are open again after the block.

    Returns:
      A context manager.

    >>> from weft.extend import source_info_util
    >>> with weft.named_scope("loss"), source_info_util.reset_name_stack():
    ...     print(source_info_util.current_name_stack().stack)
    ()
    """
    return open_scope(())


def transform_name_stack(name: str) -> contextlib.AbstractContextManager[None]:
    """Wrap the scopes that open within the block in the name of a transformation.

    It is for libraries that define transformations, so that profiles and dumps show them.

    Args:
      name: the name of the transformation, such as "jvp".

    Returns:
      A context manager.

    >>> from weft.extend import source_info_util
    >>> with source_info_util.transform_name_stack("jvp"), weft.named_scope("loss"):
    ...     print(source_info_util.current_name_stack())
    jvp(loss)
    """
    return open_scope((*here.scope, Transform(name)))


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """Return a place in the user's program as text.

    Args:
      source_info: a `SourceInfo`, or the `source` of an equation.
      num_frames: ignored; the text always names one frame. The parameter exists for calls that are
        written for JAX.

    Returns:
      A text such as `model.py:12:4 (loss)`: the file, the line, the column and the function. It is
      empty if the place is not known.

    >>> from weft.extend import source_info_util
    >>> source_info_util.summarize(source_info_util.new_source_info())
    ''
    """
    return source_location(source_info)


def register_exclusion(path: str) -> None:
    """Hide the frames of a file from users, as the frames of weft are hidden.

    It is for libraries that are built on weft. Errors and the places of equations then name the
    line that called the library.

    Args:
      path: the path of the file, such as `__file__`.

    >>> from weft.extend import source_info_util
    >>> source_info_util.register_exclusion("/path/of/a/library.py")
    """
    HIDDEN_FILES.add(path)


@contextlib.contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """Open the scopes of a stack within the block.

    It is for interpreters that evaluate an equation of a user's program.

    Args:
      traceback: ignored, as errors name the lines of the user's program anyway. The parameter
        exists for calls that are written for JAX.
      name_stack: a `NameStack`. None keeps the open scopes.

    Returns:
      A context manager.

    >>> from weft.extend import source_info_util
    >>> stack = source_info_util.new_name_stack("model")
    >>> with source_info_util.user_context(None, name_stack=stack):
    ...     print(source_info_util.current_name_stack())
    model
    """
    with open_scope(here.scope if name_stack is None else name_stack.stack):
        yield
