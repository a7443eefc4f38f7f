"""A headless Chromium over its DevTools protocol: open a page, ask it, photograph it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 30.0  # seconds for the browser to start, or to answer


def find_chromium() -> str | None:
    """HECKESEL_CHROMIUM, or what is on the path."""
    given = os.environ.get("HECKESEL_CHROMIUM")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser():
    """A `Tab` of a browser of its own, with a profile that is thrown away."""
    from websocket import create_connection

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                find_chromium(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            address = _tab_address(Path(profile) / "DevToolsActivePort", process)
            connection = create_connection(address, timeout=PATIENCE, http_no_proxy=["*"])
            yield Tab(connection)
            connection.close()
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _tab_address(port_file: Path, process) -> str:
    end = time.monotonic() + PATIENCE
    opener = build_opener(ProxyHandler({}))
    while time.monotonic() < end and process.poll() is None:
        lines = port_file.read_text().split() if port_file.exists() else []
        if lines:
            with opener.open(f"http://127.0.0.1:{lines[0]}/json", timeout=PATIENCE) as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            if tabs:
                return tabs[0]["webSocketDebuggerUrl"]
        time.sleep(0.05)
    raise RuntimeError("Chromium did not start")


class Tab:
    """events : everything the browser reported, in order"""

    def __init__(self, connection):
        self.connection, self.events, self.count = connection, [], 0
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params) -> dict:
        self.count += 1
        self.connection.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            message = json.loads(self.connection.recv())
            if message.get("id") != self.count:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            else:
                return message["result"]

    def show(self, path: Path, *, width: int, height: int, dark: bool = False) -> None:
        """Open a file at this size and wait until it is loaded."""
        self.events.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(json.loads(self.connection.recv()))

    def ask(self, script: str):
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def photograph(self, path: Path, *, whole: bool = True) -> None:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def print_pdf(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", paperWidth=8.27)["data"]))
