"""Pictures of the chat page for the docs, taken in headless Chromium from the real daemon and default model.

Run it from the root: `.venv/bin/python scripts/screens/page.py`. It wants Chromium and its driver, and writes
docs/page-light.png and docs/page-dark.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from llmrun.config import DEFAULT_MODEL, Paths  # noqa: E402
from llmrun.store import Store  # noqa: E402
from tests.real.daemons import Daemon  # noqa: E402
from tests.support.browser import ENTER, Driver, Page, find_browser  # noqa: E402

HOME = ROOT / ".cache" / "tests" / "home"
MOST = 150_000  # bytes of a picture
FIRST = "What is the capital of France?"
SECOND = "Write a Python function that adds two numbers. Then explain it in a list."


def ask(page: Page, question: str) -> None:
    page.type("#prompt", question)
    page.keys(ENTER)


def picture(driver: Driver, url: str, path: Path, *, dark: bool) -> None:
    with driver.page(width=1120, height=760, dark=dark) as page:
        page.open(url)
        page.until(lambda: page.count("#model option"))
        page.click("#open-settings")
        page.type("#settings [name=temperature]", "0")
        page.click("#settings button[type=submit]")
        ask(page, FIRST)
        page.until(lambda: page.count(".answer[aria-busy=false]"), 90)
        ask(page, SECOND)
        # In the middle of an answer, when there is something to see of the engine too.
        page.until(lambda: len(page.text(".answer[aria-busy=true] .prose")) > 400, 90)
        page.until(lambda: "1 running" in page.text("#engine"))
        page.screenshot(path)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size} bytes")
    if size > MOST:
        raise SystemExit(f"error: {path} is larger than {MOST} bytes")


def main() -> None:
    found = find_browser()
    if found is None:
        raise SystemExit(
            "error: Chromium and its driver are not installed (Debian: chromium, chromium-driver)"
        )
    Store(Paths.find({"LLMRUN_HOME": str(HOME)})).pull(DEFAULT_MODEL)
    daemon, driver = Daemon(HOME, LLMRUN_CTX="2048"), Driver(*found)
    try:
        for theme in ("light", "dark"):
            picture(driver, daemon.url, ROOT / "docs" / f"page-{theme}.png", dark=theme == "dark")
    finally:
        driver.close()
        daemon.close()


if __name__ == "__main__":
    main()
