"""A headless Chromium that is driven through its debugging pipe; no driver program and no package is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

# What software that draws in place of a graphics card, and a test that looks at the picture, lead to
REMARKS = ("GPU stall due to ReadPixels", "willReadFrequently")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium() -> str | None:
    """The browser: that of the environment variable CHROMIUM, one on the path, or one installed by Playwright."""
    for name in (os.environ.get("CHROMIUM", ""), *NAMES):
        if name and (found := shutil.which(name)):
            return found
    installed = sorted((Path.home() / ".cache" / "ms-playwright").glob("chromium*/chrome-linux*/*chrome*"))
    return next((str(path) for path in installed if path.is_file() and os.access(path, os.X_OK)), None)


class Browser:
    """One tab. What the console, exceptions and failed requests say is collected in `complaints`."""

    def __init__(self, program: str, folder: Path, limit: float = 60.0):
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on 4
        low = [fcntl.fcntl(end, fcntl.F_DUPFD, 50) for end in (commands, answers)]

        def place_pipes():
            os.dup2(low[0], 3)
            os.dup2(low[1], 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--enable-unsafe-swiftshader",  # WebGL without a graphics card
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-pipe",
                f"--user-data-dir={folder}",
            ],
            preexec_fn=place_pipes,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, answers, *low):
            os.close(end)
        self.complaints: list[str] = []
        self._limit, self._number, self._rest, self._session, self._loaded = limit, 0, b"", None, False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the process that was started here."""
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol, and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._limit
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self, deadline: float, waiting_for: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0.0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError(f"Chromium did not answer {waiting_for} within {self._limit:g} s")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise RuntimeError(f"Chromium ended while {waiting_for} was waited for")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, parameters: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif event == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:500])
        elif event == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            if not any(remark in parameters["entry"]["text"] for remark in REMARKS):
                self.complaints.append(parameters["entry"]["text"])
        elif event == "Page.loadEventFired":
            self._loaded = True

    def open(self, page: Path, width: int = 1280, height: int = 900, scale: float = 1.0, calm: bool = False) -> None:
        """Load a page in a window of this size and wait until it has loaded."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        reduced = {"name": "prefers-reduced-motion", "value": "reduce" if calm else ""}
        self.send("Emulation.setEmulatedMedia", features=[reduced])
        self._loaded = False
        self.send("Page.navigate", url=page.resolve().as_uri())
        deadline = time.monotonic() + self._limit
        while not self._loaded:
            self._receive(deadline, "the page")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def wait_for(self, expression: str, limit: float = 20.0) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + limit
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{expression} did not become true within {limit:g} s")
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """A click with the mouse on the middle of an element, once fonts have loaded and the page has been drawn."""
        x, y = self.evaluate(
            f"(async () => {{ const e = document.querySelector({json.dumps(selector)}); await document.fonts.ready; "
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); "
            "for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame); "
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key, for the element that has the focus."""
        text = {"text": key} if len(key) == 1 else {}
        code = {" ": 32, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}[key]
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """The window, or the whole page, as a PNG file."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
