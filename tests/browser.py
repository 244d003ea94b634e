"""A headless Chromium that is spoken to through a pipe, with nothing but the standard library."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "about:blank",
]  # fmt: skip
# DevTools over a pipe reads from descriptor 3 and writes to 4; either number may be another pipe's until then.
_WIRE = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
for fd, number in zip(pipes, (3, 4)):
    os.dup2(fd, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """One tab. ``requests`` are the addresses it asked for, ``errors`` what its console and scripts complained of."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._sent = write, read, b"", 0
        self.session: str | None = None
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.loads = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command of the DevTools protocol and return its result."""
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._sent:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._rest += chunk
        line, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(json.dumps(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.errors.append(json.dumps(params["entry"]))
            case "Page.loadEventFired":
                self.loads += 1
        return message

    def open(self, file: Path) -> None:
        """Load a file and wait until it is ready."""
        loads = self.loads
        self.call("Page.navigate", url=file.resolve().as_uri())
        while self.loads == loads:
            self._next()

    def run(self, script: str) -> Any:
        """Evaluate JavaScript and return its value."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    @property
    def busy(self) -> float:
        """Seconds that the page has computed since it was opened; a busy machine stretches these little."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    def press(self, key: str) -> None:
        """Press and release a key where the focus is."""
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        name = " " if key == "Space" else key
        codes = {"Enter": 13, "Space": 32, "Tab": 9}
        common = {"key": name, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def point(self, x: float, y: float) -> None:
        """Move the mouse to a place in the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def window(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        """Set the size of the window and the colours that the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])

    def picture(self, file: Path) -> None:
        """Save the whole page as a PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """Start a browser of its own, and end it."""
    assert CHROMIUM is not None
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        wired = [sys.executable, "-c", _WIRE, str(to_browser), str(to_us), CHROMIUM, f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            wired + _OPTIONS, pass_fds=(to_browser, to_us), stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(to_browser)
        os.close(to_us)
        try:
            yield Page(from_us, from_browser)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(from_us)
            os.close(from_browser)
