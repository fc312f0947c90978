"""Drive a page in headless Chromium, by its debugging protocol over two pipes."""

import base64
import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Page:
    """A page that is open; `call` sends a command of the protocol."""

    def __init__(self, into, out):
        self._into, self._out, self._count, self._session = into, out, 0, None

    def call(self, method, **params):
        self._count += 1
        told = {"id": self._count, "method": method, "params": params}
        if self._session:
            told["sessionId"] = self._session
        os.write(self._into, json.dumps(told).encode() + b"\0")
        while True:
            answer = json.loads(self.read())
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def read(self):
        data = bytearray()
        while not data.endswith(b"\0"):
            byte = os.read(self._out, 1)
            assert byte, "the browser has ended"
            data += byte
        return data[:-1]

    def open(self, url):
        target = self.call("Target.createTarget", url=url)["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]

    def ask(self, expression):
        """Return the value of an expression of JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    def wait(self, expression, seconds=30):
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + seconds
        while not self.ask(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.05)

    def find_corner(self, name):
        """Return the left and the top of an element."""
        rectangle = f"document.getElementById('{name}').getBoundingClientRect()"
        return self.ask(f"{rectangle}.left"), self.ask(f"{rectangle}.top")

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1,
                  clickCount=1)  # fmt: skip

    def drag(self, points):
        """Press the mouse at the first point, move it over the others, and let go."""
        self.mouse("mousePressed", *points[0])
        for point in points[1:]:
            self.mouse("mouseMoved", *point)
        self.mouse("mouseReleased", *points[-1])

    def take_picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Print nothing."""


@contextlib.contextmanager
def open_page(folder):
    """Serve a folder, and open its page in a browser."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (their_in, into), (out, their_out) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += [f"--user-data-dir={profile}", "--window-size=900,700"]
        command = f'exec 3<&{their_in} 4>&{their_out}; exec "$@"'
        process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *options],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            page = Page(into, out)
            page.open(f"http://127.0.0.1:{server.server_port}/index.html")
            yield page
            page._session = None
            page.call("Browser.close")
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
            server.server_close()
            for fd in (their_in, into, out, their_out):
                os.close(fd)
            time.sleep(0.2)  # the browser's other processes leave the profile
