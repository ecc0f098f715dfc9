"""A headless Chromium driven over the DevTools protocol: what a page says, and asks for."""

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LOCAL = ("file:", "data:", "blob:", "about:")
PATIENCE = 60.0


class Browser:
    """One browser with one page; use it in a `with` statement.

    `complaints` are console errors, exceptions and log errors, `requests` the addresses asked for
    outside this file, since the last `open`.
    """

    def __init__(self, profile: Path) -> None:
        """Start Chromium with a profile of its own in the folder `profile`."""
        found = next(filter(None, (shutil.which(name) for name in NAMES)), None)
        if found is None:
            raise AssertionError(
                "This test opens the page in Chromium, which is not on this machine; install it "
                "with your package manager, for instance `apt-get install -y chromium`."
            )
        self._output = (profile / "browser.log").open("w")
        self._process = subprocess.Popen(
            [
                found,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=self._output,
            stderr=self._output,
        )
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self.requests: list[str] = []
        try:
            self._socket = websocket.create_connection(self._address(profile), timeout=PATIENCE)
            targets = self._send("Target.getTargets")["targetInfos"]
            page = next(target for target in targets if target["type"] == "page")
            self._session: str | None = self._send(
                "Target.attachToTarget", targetId=page["targetId"], flatten=True
            )["sessionId"]
            for domain in ("Runtime", "Log", "Network", "Page"):
                self.send(f"{domain}.enable")
        except BaseException:
            self._stop()
            raise

    def _address(self, profile: Path) -> str:
        port = profile / "DevToolsActivePort"
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if port.exists() and len(lines := port.read_text().split("\n")) >= 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        log = (profile / "browser.log").read_text()[-2000:]
        raise AssertionError(f"Chromium did not open its DevTools port; it said: {log}")

    def __enter__(self) -> Self:
        """Return the browser itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the browser."""
        self._socket.close()
        self._stop()

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to the page and return its result."""
        return self._send(method, self._session, **parameters)

    def _send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method} failed: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        method, details = event.get("method", ""), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(details["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and details["type"] in ("error", "assert"):
            self.complaints.append(json.dumps(details["args"]))
        elif method == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.complaints.append(details["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = details["request"]["url"]
            if not url.startswith(LOCAL):
                self.requests.append(url)

    def open(self, file: Path, *, width: int, scheme: str, ready: str, height: int = 900) -> None:
        """Open a local file and wait until the expression `ready` is true in it."""
        self.complaints.clear()
        self.requests.clear()
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=media)
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.send("Page.navigate", url=file.resolve().as_uri())
        self.wait(f"document.readyState === 'complete' && ({ready})")

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while self.evaluate(f"Boolean({expression})") is not True:
            if time.monotonic() > end:
                said = f"the page said {self.complaints}"
                raise AssertionError(f"{expression} did not come true in {PATIENCE:.0f} s; {said}")
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression} threw: {result['exceptionDetails']}")
        return result["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """Write the whole page as a PNG."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))
