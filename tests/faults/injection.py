"""Ctrl-C at a chosen instruction of weft's code, and whether weft is as before afterwards."""

import dis
import functools
import sys
from pathlib import Path

import weft
import weft.numpy as jnp
from weft.core.trace import current, get_traceback
from weft.experimental import checkify, jet
from weft.options import config, mesh_in_scope, named_axes, surroundings

HOME = str(Path(weft.__file__).parent)
BOTTOM = current.trace

# After these Python looks whether a signal has come. The names differ between its versions.
CHECKED = ("RESUME", "CALL", "PRECALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "INSTRUMENTED")


@functools.cache
def names_of(code):
    """The operations of a code object, by their place."""
    return {i.offset: i.opname for i in dis.get_instructions(code)}


SWITCHES = {
    "current",
    "swap_local",
    "set_local",
    "use",
    "run_staged",
    "run_once",
    "get_local",
    "before",
}


def is_switch(code):
    """Return True if a function of weft sets something for a while."""
    return code.co_filename.startswith(HOME) and not SWITCHES.isdisjoint(code.co_names)


class Interruption:
    """Raises KeyboardInterrupt when an instruction is executed for the `at`-th time.

    An instruction is a code object and an offset in it. Without one, `places` counts the executed
    instructions, with a mark where Python checks for signals.
    """

    def __init__(self, place=None, at=0, watched=is_switch):
        self.place, self.left, self.watched = place, at, watched
        self.places = {}
        self.before = {}  # of each frame, the last operation

    def __call__(self, frame, event, arg):
        if event == "call":
            if not self.watched(frame.f_code):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            place = (frame.f_code, frame.f_lasti)
            if self.place is None:
                before, now = (
                    self.before.get(frame, "RESUME"),
                    names_of(frame.f_code).get(frame.f_lasti, ""),
                )
                looks = before.startswith(CHECKED) and (before, now) != ("PRECALL", "CALL")
                count, looked = self.places.get(place, (0, False))
                self.places[place] = count + 1, looks or looked
                self.before[frame] = now
            elif place == self.place:
                self.left -= 1
                if self.left == 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
        elif event == "return":
            self.before.pop(frame, None)
        return self


def state():
    """Return the settings of this thread that calls change for a while."""
    cells = (surroundings.value, named_axes.value, mesh_in_scope.value, weft.config.enable_x64)
    return (current.trace is BOTTOM, current.source, current.scope, current.capture, *cells)


CLEAN = (True, None, (), get_traceback, None, (), None, False)


def restore():
    """Put the state back by hand."""
    current.trace, current.source, current.scope, current.capture = BOTTOM, None, (), get_traceback
    for cell, value in ((surroundings, None), (named_axes, ()), (mesh_in_scope, None)):
        cell.set_local(value)
    config._cells["enable_x64"].set_local(False)


def places_in(program, watched=is_switch):
    """The instructions of the functions that switch, each with whether Python looks for signals."""
    watch = Interruption(watched=watched)
    sys.settrace(watch)
    try:
        program()
    finally:
        sys.settrace(None)
    return watch.places


def interrupt(program, place, at, watched=is_switch):
    """Return the state left behind by an interrupt at an instruction; None if there is none."""
    kept = []  # an error, and so what its frames hold, as in an interactive session
    try:
        sys.settrace(Interruption(place, at, watched))
        program()
    except KeyboardInterrupt as error:
        kept.append(error)
    finally:
        sys.settrace(None)
    if state() == CLEAN:
        return None
    code, offset = place
    line = next((n for start, end, n in code.co_lines() if start <= offset < end), 0)
    left = f"{code.co_qualname}:{line}:{names_of(code).get(offset)} {state()}"
    restore()
    return left


MESH = weft.make_mesh((1,), ("i",))
BLOCKS = {
    "option": weft.enable_x64,
    "options": lambda: config.scope(enable_x64=True, debug_nans=True),
    "mesh": lambda: weft.sharding.use_mesh(MESH),
    "name": lambda: weft.named_scope("layer"),
    "guard": lambda: weft.transfer_guard("log"),
}


def run_block(make):
    """A block that something holds in, ended by a call."""
    with make():
        len("")


def loss(x, w):
    """Most kinds of equations."""
    with weft.named_scope("layer"):
        y = jnp.tanh(w @ x)
    y = weft.lax.cond(y[0] > 0, lambda v: v * 2, jnp.sin, y)
    return weft.lax.scan(lambda c, a: (c + a, c * a), y.sum(), x)[1].sum()


X, W = weft.ShapeDtypeStruct((3,), "float32"), weft.ShapeDtypeStruct((3, 3), "float32")
ONE = jnp.ones(())
KEYED = lambda x: weft.random.normal(weft.random.key(0), x.shape) + x


def trace_much():
    """Trace most transformations, anew in each call."""
    f = weft.jit(lambda x, w: loss(x, w))
    gradients = weft.vmap(weft.value_and_grad(weft.checkpoint(f)), in_axes=(None, 0))
    weft.jit(lambda x, w: gradients(x, w[None])).trace(x=X, w=W)


def check_errors():
    """Trace with checkify, and a context."""
    with weft.enable_x64(False):
        weft.eval_shape(checkify.checkify(lambda x: jnp.log(x) + x, checkify.float_checks), X)


PROGRAMS = {
    "trace": trace_much,
    "checkify": check_errors,
    "eager grad": lambda: weft.grad(lambda x: x * jnp.sin(x))(ONE),
    "eager vmap": lambda: weft.vmap(lambda x: x + 1, axis_name="i")(jnp.ones(2)),
    "linearize": lambda: weft.linearize(weft.jit(lambda x: x * x), ONE),
    "jet": lambda: jet.jet(lambda x: x * x, (ONE,), ([ONE],)),
    "lower": lambda: weft.jit(lambda x: KEYED(x)).lower(X),
}
