"""Profiles: what runs when, on the host and on the devices, and what memory holds.

A trace is written for TensorBoard and XProf (`.xplane.pb`) and as `.trace.json.gz` for
ui.perfetto.dev. Operations have the paths of their named scopes (api/named_scope.py).
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import os
import pathlib
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

from jaxlib import _profile_data, _profiler

from weft.api.functions import check_callable
from weft.mesh.client import client
from weft.util import fun_name, list_public

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation",
    "TraceAnnotation", "annotate_function", "device_memory_profile", "register_subprocess",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace",
    "trace",
]  # fmt: skip
__dir__ = list_public(__name__)

# What reads a written profile: ProfileData.from_file(path).planes, their lines, and their events.
ProfileData = _profile_data.ProfileData
ProfileEvent, ProfilePlane = _profile_data.ProfileEvent, _profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions
PERFETTO_PORT = 9001  # the one that ui.perfetto.dev allows pages to fetch from


class _Running:
    """The trace being taken and the server that takes them, of which there is one each."""

    lock = threading.Lock()
    session: Any = None
    log_dir = pathlib.Path()
    perfetto_trace = False
    perfetto_link = False
    server: Any = None


class TraceAnnotation(_profiler.TraceMe):
    """`with TraceAnnotation("load batch"):` shows the block in the trace; keywords go with it."""


class StepTraceAnnotation(TraceAnnotation):
    """`with StepTraceAnnotation("train", step_num=i):` marks one step of training in the trace."""

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable | None = None, name: str | None = None, **decorator_kwargs: Any
) -> Callable[..., Any]:
    """A decorator: each call of the function shows in the trace under its name, or `name`.

    Further keywords go with it, as with `TraceAnnotation`.

    >>> @annotate_function
    ... def load():
    ...     return 3
    >>> load()
    3
    """
    if func is None:
        return functools.partial(annotate_function, name=name, **decorator_kwargs)
    check_callable("annotate_function", func, wraps=True)
    shown = name or fun_name(func)

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Begin a trace; `stop_trace` writes it below `log_dir`, in `plugins/profile/<date>`.

    Args:
      create_perfetto_trace: also write `perfetto_trace.json.gz`.
      create_perfetto_link: at the end print a link to it, and wait until it is opened.
      profiler_options: a ProfileOptions, what to record.
    """
    with _Running.lock:
        if _Running.session is not None:
            raise RuntimeError(
                "start_trace: one trace can be taken at a time; got a second start. "
                "Hint: weft.profiler.stop_trace() first."
            )
        client()  # devices are seen by a session that starts after them
        options = profiler_options or ProfileOptions()
        _Running.session = _profiler.ProfilerSession(options)
        _Running.log_dir = pathlib.Path(log_dir)
        _Running.perfetto_link = create_perfetto_link
        _Running.perfetto_trace = create_perfetto_trace or create_perfetto_link


def stop_trace() -> None:
    """End the trace that `start_trace` began, and write it."""
    with _Running.lock:
        if _Running.session is None:
            raise RuntimeError(
                "stop_trace: a trace must have been started; got none. "
                'Hint: weft.profiler.start_trace("/tmp/profile").'
            )
        session, _Running.session = _Running.session, None
        session.stop_and_export(str(_Running.log_dir))
        if _Running.perfetto_trace:
            # copy the events of the newest trace to where Perfetto's users look for them
            folders = (_Running.log_dir / "plugins" / "profile").iterdir()
            newest = max(folders, key=lambda f: f.stat().st_mtime)
            (events,) = newest.glob("*.trace.json.gz")
            written = pathlib.Path(shutil.copyfile(events, newest / "perfetto_trace.json.gz"))
            if _Running.perfetto_link:
                serve_perfetto_trace(written)


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """Take a trace of the block; arguments as for `start_trace`.

    Computation is asynchronous: wait for its results in the block (`x.block_until_ready()`).
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def serve_perfetto_trace(file: pathlib.Path) -> None:
    """Print a link that opens a trace in ui.perfetto.dev, and wait until it is fetched."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any):
            super().__init__(*args, directory=str(file.parent))

        def end_headers(self) -> None:
            self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
            super().end_headers()

        def do_GET(self) -> None:
            super().do_GET()
            self.server.fetched = True

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", PERFETTO_PORT), Handler) as server:
        server.fetched = False
        where = f"http://127.0.0.1:{server.server_port}/{file.name}"
        print(f"Open in a browser: https://ui.perfetto.dev/#!/?url={where}", flush=True)
        while not server.fetched:
            server.handle_request()


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let tools (XProf, TensorBoard's capture) take traces of this process through a port.

    With `requires_backend` the devices are opened first, so that they are seen.
    """
    if _Running.server is not None:
        raise RuntimeError(
            "start_server: one server can run at a time; got a second start. "
            "Hint: weft.profiler.stop_server() first."
        )
    if requires_backend:
        client()
    _Running.server = _profiler.start_server(port)
    return _Running.server


def stop_server() -> None:
    """Stop the server that `start_server` began."""
    if _Running.server is None:
        raise RuntimeError("stop_server: a server must have been started; got none.")
    _Running.server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Let traces of this process include another one, which serves traces on `port`."""
    return _profiler.register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """What holds memory on the devices now, as a gzipped profile that `pprof` reads."""
    return gzip.compress(client().heap_profile())


def save_device_memory_profile(filename: os.PathLike | str, backend: str | None = None) -> None:
    """Write `device_memory_profile()` to a file."""
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))
