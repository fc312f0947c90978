"""`breakpoint`: a prompt inside of a program, with the values of the local names.

The frames are recorded while the program is traced; the prompt opens when it runs.
"""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
from bdb import BdbQuit
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple, TextIO

from weft.core.source import is_own_file
from weft.core.trace import Tracer
from weft.debug.printing import bind_call
from weft.primitives.effects import debug_callback_p, ordered_debug_callback_p
from weft.pytrees import tree_map
from weft.util import check_option

__all__ = ["breakpoint"]

NEAR = 5  # lines shown around the current one


class Frame(NamedTuple):
    """The position of the program in one function, and the values of the names there."""

    file: str
    line: int
    function: str
    names: dict[str, Any]
    outside: dict[str, Any]  # the globals


def collect_frames(frame: FrameType | None, filter_frames: bool, num_frames: int | None) -> list:
    """The frames from `frame` outwards, the innermost first; weft's own are left out."""
    found: list[Frame] = []
    while frame is not None and (num_frames is None or len(found) < num_frames):
        code = frame.f_code
        if not (filter_frames and is_own_file(code.co_filename)):
            names = dict(frame.f_locals)
            found.append(
                Frame(code.co_filename, frame.f_lineno, code.co_name, names, frame.f_globals)
            )
        frame = frame.f_back
    return found


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> Any:
    """Open a prompt when a program comes to this place, also in a compiled program.

    The local names of the functions around have the values that they have in this run. `help` lists
    the commands: `c` continues, and `q` stops the program with `bdb.BdbQuit`.

    Args:
      backend: "cli", the only one, or None, the default.
      filter_frames: if True, the default, frames of weft are left out.
      num_frames: the number of frames to record. None, the default, records all.
      ordered: if True, it keeps its place among other ordered effects. The default is False.
      token: a pytree of arrays that have to be computed before. None by default.
      stdin, stdout: the file of the commands and the file of the answers. By default the terminal.

    Returns:
      `token`.

    >>> @weft.jit
    ... def f(x):
    ...     y = jnp.sin(x)
    ...     weft.debug.breakpoint()
    ...     return y
    >>> f(1.0)  # doctest: +SKIP
    """
    check_option("debug.breakpoint", "backend", backend, "cli", None)
    frames = collect_frames(sys._getframe(1), filter_frames, num_frames)
    places: list[Any] = []  # where there are values of the program, one place for each

    def place(x: Any) -> Any:
        if not isinstance(x, Tracer) or not x.is_live():
            return x
        places.append(x)
        return Traced(len(places) - 1)

    frames = [
        f._replace(names={k: change_leaves(x, place) for k, x in f.names.items()}) for f in frames
    ]

    def prompt(values: list, token: Any) -> None:
        fill = lambda x: values[x.index] if type(x) is Traced else x
        filled = [
            f._replace(names={k: change_leaves(x, fill) for k, x in f.names.items()})
            for f in frames
        ]
        Prompt(filled, stdin, stdout).run()

    prim = ordered_debug_callback_p if ordered else debug_callback_p
    bind_call(prompt, (places, token), {}, prim.apply, False)
    return token


class Traced:
    """Stands in a pytree for a value that is known when the program runs."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


def change_leaves(x: Any, change: Any) -> Any:
    """Return a pytree with changed leaves; unchanged if its class does not take them."""
    try:
        return tree_map(change, x)
    except Exception:  # a class registered as a node need not take any leaves
        return x


class Prompt(cmd.Cmd):
    """The commands of a debugger, on frames that do not run."""

    prompt = "(weft) "

    def __init__(self, frames: Sequence[Frame], stdin: TextIO | None, stdout: TextIO | None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.at = 0

    def run(self) -> None:
        """Read commands until one goes on."""
        if self.frames:
            self.do_where("")
        self.cmdloop()

    @property
    def frame(self) -> Frame:
        """The frame that names are looked up in."""
        return self.frames[self.at] if self.frames else Frame("", 0, "", {}, {})

    def say(self, text: str) -> None:
        """A line of an answer."""
        print(text, file=self.stdout)

    def value(self, text: str) -> Any:
        """Evaluate an expression in the frame, as a 1-tuple; None, with a message, if it fails."""
        try:
            names = {**self.frame.outside, **self.frame.names}
            return (eval(text, names),)
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")
            return None

    def do_p(self, text: str) -> None:
        """p expression: print its value."""
        for x in self.value(text) or ():
            self.say(repr(x))

    def do_pp(self, text: str) -> None:
        """pp expression: print its value, laid out in lines."""
        for x in self.value(text) or ():
            self.say(pprint.pformat(x))

    def do_locals(self, _: str) -> None:
        """locals: the local names and their values."""
        for name, x in self.frame.names.items():
            self.say(f"{name} = {x!r}")

    def do_where(self, _: str) -> None:
        """w(here), bt: the frames, the innermost last; the arrow is where names are looked up."""
        for i in reversed(range(len(self.frames))):
            f = self.frames[i]
            self.say(f"{'>' if i == self.at else ' '} {f.file}({f.line}){f.function}()")
            text = linecache.getline(f.file, f.line).strip()
            if text:
                self.say(f"-> {text}")

    def do_list(self, _: str) -> None:
        """l(ist): the source around the current line."""
        f = self.frame
        for n in range(max(1, f.line - NEAR), f.line + NEAR + 1):
            text = linecache.getline(f.file, n).rstrip()
            if text or n <= f.line:
                self.say(f"{n:4}{' ->' if n == f.line else '   '} {text}")

    def do_up(self, _: str) -> None:
        """u(p): to the function that called this one."""
        self.move(1, "Oldest frame")

    def do_down(self, _: str) -> None:
        """d(own): to the function that this one called."""
        self.move(-1, "Newest frame")

    def move(self, step: int, end: str) -> None:
        """Go to another frame, or print that it does not exist."""
        if not 0 <= self.at + step < len(self.frames):
            return self.say(f"*** {end}")
        self.at += step
        f = self.frame
        return self.say(f"> {f.file}({f.line}){f.function}()")

    def do_continue(self, _: str) -> bool:
        """c(ontinue): go on with the program."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), and the end of the input: stop the program, with bdb.BdbQuit."""
        raise BdbQuit

    def emptyline(self) -> bool:
        """An empty line does nothing."""
        return False

    def default(self, line: str) -> None:
        """Anything else is an expression to print."""
        self.do_p(line)

    do_bt = do_w = do_where
    do_l = do_list
    do_u, do_d = do_up, do_down
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit
    do_args = do_a = do_locals
