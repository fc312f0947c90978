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
    """The current trace and the server for traces; there is at most one of each."""

    lock = threading.Lock()
    session: Any = None
    log_dir = pathlib.Path()
    perfetto_trace = False
    perfetto_link = False
    server: Any = None


class TraceAnnotation(_profiler.TraceMe):
    """Give a block of code a name in the trace: `with TraceAnnotation("load batch"):`.

    Args:
      name: the name, a string. Keyword arguments are recorded with it.

    >>> with weft.profiler.TraceAnnotation("load batch", index=3):
    ...     x = np.ones(3)
    """


class StepTraceAnnotation(TraceAnnotation):
    """Mark one step of training in the trace: `with StepTraceAnnotation("train", step_num=i):`.

    Tools show the time of each step.

    Args:
      name: the name, a string.
      **kwargs: `step_num`, the number of the step, and other values that are recorded with it.

    >>> with weft.profiler.StepTraceAnnotation("train", step_num=3):
    ...     x = np.ones(3)
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable | None = None, name: str | None = None, **decorator_kwargs: Any
) -> Callable[..., Any]:
    """Show each call of a function in the trace under a name. A decorator.

    Args:
      func: the function. Without it, `annotate_function(name=...)` is a decorator.
      name: the name. None, the default, is the name of the function.
      **decorator_kwargs: values that are recorded with it, as of `TraceAnnotation`.

    Returns:
      A function like `func`.

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
    """Begin a trace of what the process and the devices do. `stop_trace` writes it.

    The files are below `log_dir`, in `plugins/profile/<date>`. TensorBoard and XProf read them.

    Args:
      log_dir: the path of the folder.
      create_perfetto_link: if True, `stop_trace` prints a link to the trace and waits until it is
        opened. The default is False.
      create_perfetto_trace: if True, `perfetto_trace.json.gz` is written as well. The default is
        False.
      profiler_options: a `ProfileOptions` that says what to record. None is the default.

    Returns:
      None.

    >>> weft.profiler.start_trace("/tmp/trace")  # doctest: +SKIP
    >>> f(x).block_until_ready()  # doctest: +SKIP
    >>> weft.profiler.stop_trace()  # doctest: +SKIP
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
    """End the trace that `start_trace` began, and write it.

    Computation is asynchronous: wait for its results before.

    Returns:
      None.

    >>> weft.profiler.start_trace("/tmp/trace")  # doctest: +SKIP
    >>> f(x).block_until_ready()  # doctest: +SKIP
    >>> weft.profiler.stop_trace()  # doctest: +SKIP
    """
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
    """Take a trace of a block: `with trace(folder): ...`.

    Computation is asynchronous: wait for its results within the block.

    Args:
      log_dir: the path of the folder. The files are in `plugins/profile/<date>` below it.
      create_perfetto_link: if True, a link to the trace is printed at the end, and the program
        waits until it is opened. The default is False.
      create_perfetto_trace: if True, `perfetto_trace.json.gz` is written as well. The default is
        False.
      profiler_options: a `ProfileOptions` that says what to record. None is the default.

    Returns:
      A context manager.

    >>> with weft.profiler.trace("/tmp/trace"):  # doctest: +SKIP
    ...     f(x).block_until_ready()
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
    """Let tools such as XProf take traces of this process through a port.

    Args:
      port: the number of the port.
      requires_backend: if True, the default, the devices are opened first, so that traces show
        them.

    Returns:
      The server.

    >>> server = weft.profiler.start_server(9999)  # doctest: +SKIP
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
    """Stop the server that `start_server` began.

    Returns:
      None.

    >>> server = weft.profiler.start_server(9999)  # doctest: +SKIP
    >>> weft.profiler.stop_server()  # doctest: +SKIP
    """
    if _Running.server is None:
        raise RuntimeError("stop_server: a server must have been started; got none.")
    _Running.server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Include another process in the traces of this one.

    Args:
      pid: the id of the process.
      port: the port on which it serves traces.

    Returns:
      A function that ends it.

    >>> stop = weft.profiler.register_subprocess(4711, 9999)  # doctest: +SKIP
    """
    return _profiler.register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return a profile of the memory of the devices.

    Args:
      backend: the platform. None, the default, is the default platform.

    Returns:
      Bytes: a gzipped profile that `pprof` reads.

    >>> len(weft.profiler.device_memory_profile()) > 0
    True
    """
    return gzip.compress(client().heap_profile())


def save_device_memory_profile(filename: os.PathLike | str, backend: str | None = None) -> None:
    """Write a profile of the memory of the devices to a file, which `pprof` reads.

    Args:
      filename: the path of the file.
      backend: the platform. None, the default, is the default platform.

    Returns:
      None.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "memory.prof")
    ...     weft.profiler.save_device_memory_profile(path)
    ...     print(os.path.exists(path))
    True
    """
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))
