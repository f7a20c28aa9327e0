"""Headless Chromium, driven through the WebDriver protocol: https://www.w3.org/TR/webdriver2/

Tests that use it skip, with the reason, where Chromium or its driver is not installed.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's own name for a reference
ENTER, ESCAPE, SHIFT, TAB, UP = "\ue007", "\ue00c", "\ue008", "\ue004", "\ue013"
_ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"),
)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Driver:
    """A running `chromedriver`."""

    def __init__(self, chromium: str, chromedriver: str) -> None:
        self.chromium = chromium
        port = _free_port()
        self.process = subprocess.Popen(
            [chromedriver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)
        deadline = time.monotonic() + 20
        while not self._is_ready():
            if time.monotonic() > deadline:
                self.close()
                raise AssertionError("chromedriver does not answer")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return bool(self.http.get("/status").json()["value"]["ready"])
        except httpx.TransportError:
            return False

    def close(self) -> None:
        self.http.close()
        self.process.terminate()
        self.process.wait(20)

    @contextmanager
    def page(self, *, width: int = 1200, height: int = 800, dark: bool = False) -> Iterator[Page]:
        """A browser of its own, with nothing stored in it."""
        options = {"binary": self.chromium, "args": _ARGUMENTS}
        asked = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        reply = self.http.post("/session", json={"capabilities": {"alwaysMatch": asked}})
        assert reply.status_code == 200, reply.text
        page = Page(self.http, f"/session/{reply.json()['value']['sessionId']}")
        try:
            page.size(width, height, dark=dark)
            yield page
        finally:
            self.http.delete(page.session)


class Page:
    """One tab. Selectors are CSS; what is waited for must come in `seconds`."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self.http = http
        self.session = session

    def command(self, path: str, **body: Any) -> Any:
        reply = self.http.post(f"{self.session}/{path}", json=body)
        value = reply.json()["value"]
        assert reply.status_code == 200, value
        return value

    def devtools(self, method: str, **params: Any) -> Any:
        return self.command("goog/cdp/execute", cmd=method, params=params)

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """The window as a phone or a desktop would have it: headless windows have a least width."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        self.command("url", url=url)

    def run(self, script: str, *args: Any) -> Any:
        """What a function with this body returns."""
        return self.command("execute/sync", script=script, args=list(args))

    def find(self, selector: str) -> str:
        return str(self.command("element", using="css selector", value=selector)[_ELEMENT])

    def click(self, selector: str) -> None:
        self.command(f"element/{self.find(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        self.command(f"element/{self.find(selector)}/value", text=text)

    def keys(self, text: str) -> None:
        """Key presses to whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.command("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def text(self, selector: str) -> str:
        """The text of the last element that fits, "" where none does."""
        return str(
            self.run("return [...document.querySelectorAll(arguments[0])].at(-1)?.innerText ?? ''", selector)
        )

    def count(self, selector: str) -> int:
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def until(self, holds: Callable[[], Any], seconds: float = 30) -> Any:
        """The first true value of `holds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := holds():
                return found
            time.sleep(0.05)
        raise AssertionError(f"not in {seconds} s; the page says: {self.text('body')[-2000:]}")

    def seen(self, selector: str, seconds: float = 30) -> None:
        """Waits for a visible element."""
        self.until(
            lambda: self.run("return !!document.querySelector(arguments[0])?.checkVisibility()", selector),
            seconds,
        )

    def console(self) -> list[str]:
        """The console's warnings and errors since the last look."""
        entries = self.command("se/log", type="browser")
        return [entry["message"] for entry in entries if entry["level"] in ("WARNING", "SEVERE")]

    def screenshot(self, path: Path) -> None:
        value = self.http.get(f"{self.session}/screenshot").json()["value"]
        path.write_bytes(base64.b64decode(value))


def find_browser() -> tuple[str, str] | None:
    """The paths of Chromium and of its driver, where both are installed."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    return (chromium, chromedriver) if chromium and chromedriver else None


def start_driver() -> Driver:
    """Skips the test where there is no Chromium to drive."""
    found = find_browser()
    if found is None:
        pytest.skip("Chromium and its driver are not installed (Debian: chromium, chromium-driver)")
    return Driver(*found)
