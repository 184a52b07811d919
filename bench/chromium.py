"""A headless Chromium, driven by the DevTools protocol: for the tests of the report and for its benchmark.

Debian's package ``chromium`` is what ``scripts/chromium`` installs. The browser gets a profile of its own, in a
temporary folder, and no name is resolved: a page that requests anything over a network fails, and is seen to.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WAIT = 30.0
"""Seconds that the browser may take to answer."""


class Missing(Exception):
    """There is no Chromium here, or nothing to talk to it with."""


class PageError(Exception):
    """A script of a page, or one that was sent to it, failed."""


def executable() -> str:
    """The path of a Chromium.

    Raises:
        Missing: There is none.
    """
    found = os.environ.get("GOVTOOL_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise Missing("there is no Chromium: scripts/chromium installs Debian's")
    return found


class Browser:
    """A running browser; a context manager.

    Raises:
        Missing: There is no Chromium, it does not start, or ``websockets`` is not installed.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="govtool-chromium-", ignore_cleanup_errors=True)
        arguments = (
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--mute-audio"),
            *("--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-port=0"),
        )
        self._process = subprocess.Popen(
            [executable(), *arguments, f"--user-data-dir={self._folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._address = self._find_address()

    def __enter__(self) -> Browser:
        """The browser."""
        return self

    def __exit__(self, *error: object) -> None:
        """End it and remove its profile."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def cpu_seconds(self) -> float:
        """CPU time of all processes of the browser that run now: scripts, style, painting and compositing (Linux)."""
        parents: dict[int, list[int]] = {}
        ticks: dict[int, int] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended
                fields = stat.read_text().rpartition(")")[2].split()
                process = int(stat.parent.name)
                parents.setdefault(int(fields[1]), []).append(process)
                ticks[process] = int(fields[11]) + int(fields[12])
        found, left = 0, [self._process.pid]
        while left:
            process = left.pop()
            found += ticks.get(process, 0)
            left += parents.get(process, [])
        return found / os.sysconf("SC_CLK_TCK")

    def _find_address(self) -> str:
        """``host:port`` of the protocol, which the browser writes down when it listens."""
        file, end = Path(self._folder.name) / "DevToolsActivePort", time.monotonic() + _WAIT
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                lines = file.read_text().splitlines()
                if len(lines) > 1:
                    return f"127.0.0.1:{lines[0]}"
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        self.__exit__()
        raise Missing("Chromium did not start")

    @contextlib.contextmanager
    def page(self, width: int = 1400, height: int = 900) -> Iterator[Page]:
        """A new page; it is closed at the end.

        Raises:
            Missing: ``websockets`` is not installed.
        """
        try:
            from websockets.sync.client import connect
        except ImportError as error:
            raise Missing("websockets is not installed: pip install 'govtool[test]'") from error
        target = json.loads(self._command("new?about:blank"))
        address = target["webSocketDebuggerUrl"]
        with connect(address, max_size=None, open_timeout=_WAIT, proxy=None, compression=None) as socket:
            page = Page(socket)
            page.send("Page.enable")
            page.send("Runtime.enable")
            page.send("Network.enable")
            page.send("Log.enable")
            page.resize(width, height)
            try:
                yield page
            finally:  # not by the page: its script may be busy for ever
                self._command(f"close/{target['id']}")

    def _command(self, command: str) -> bytes:
        """The answer of the browser itself."""
        request = urllib.request.Request(f"http://{self._address}/json/{command}", method="PUT")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_WAIT) as answer:
            body: bytes = answer.read()
        return body


class Page:
    """One page of a browser."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._ids = socket, itertools.count(1)
        self.requests: list[str] = []
        """Addresses that were requested."""
        self.messages: list[str] = []
        """Errors and warnings of the console and of the log, violations of the content security policy among them."""
        self._loaded = 0

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result.

        Raises:
            PageError: It failed.
        """
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_WAIT * 2))
            if message.get("id") == number:
                if "error" in message:
                    raise PageError(f"{method}: {message['error']['message']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.messages.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.messages.append(json.dumps(parameters["args"]))
        elif method == "Page.loadEventFired":
            self._loaded += 1

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, *, scheme: str = "light", kind: str = "") -> None:
        """Pretend to be a medium: ``print``, or a screen in ``light`` or ``dark``."""
        self.send(
            "Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    def open(self, address: str, ready: str = "document.documentElement.dataset.ready") -> float:
        """Load an address and wait until an expression is true; returns the seconds that it took.

        Raises:
            PageError: It is not true in time.
        """
        start = time.perf_counter()
        self.send("Page.navigate", url=address)
        while time.perf_counter() - start < _WAIT * 2:
            with contextlib.suppress(PageError):
                if self.run(f"location.href !== 'about:blank' && document.readyState === 'complete' && ({ready})"):
                    return time.perf_counter() - start
            time.sleep(0.01)
        raise PageError(f"{address} is not ready: {self.messages}")

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page; of a promise, what it comes to.

        Raises:
            PageError: It fails.
        """
        answer = self.send(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            allowUnsafeEvalBlockedByCSP=False,  # in a page of ours nothing is exempt from its policy
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def metric(self, name: str) -> float:
        """A metric of the ``Performance`` domain, which has to be enabled: ``TaskDuration`` in seconds."""
        found: list[dict[str, Any]] = self.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in found if one["name"] == name))

    def click(self, selector: str, *, shift: bool = False) -> None:
        """Click the middle of an element with the mouse.

        Raises:
            PageError: There is no such element.
        """
        x, y = self.middle(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1, modifiers=8 * shift)

    def hover(self, selector: str) -> None:
        """Move the mouse to the middle of an element.

        Raises:
            PageError: There is no such element.
        """
        x, y = self.middle(selector)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def middle(self, selector: str) -> tuple[float, float]:
        """The middle of an element on the screen.

        Raises:
            PageError: There is no such element.
        """
        found = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        if found is None:
            raise PageError(f"no element {selector}")
        return found[0], found[1]

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.send("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key: ``Enter``, ``Escape``, ``ArrowDown``, ``f``."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = codes.get(key, ord(key[0].upper()))
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, file: Path) -> None:
        """Write the window as a PNG."""
        file.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def pdf(self, file: Path) -> None:
        """Write the page as it is printed."""
        answer = self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        file.write_bytes(base64.b64decode(answer["data"]))
