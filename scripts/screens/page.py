"""Pictures of the chat page for the docs, taken in headless Chromium from the real daemon and default model.

Run it from the root: `.venv/bin/python scripts/screens/page.py`. It wants Chromium and its driver, and writes
docs/page-light.png, docs/page-dark.png and docs/page-phone.png.
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
DESK, PHONE = (1120, 760), (390, 760)
MOST = 150_000  # bytes of a picture
FIRST = "What is the capital of France?"
SECOND = "Write a Python function that adds two numbers. Then explain it in a list."


def ask(page: Page, question: str) -> None:
    page.type("#prompt", question)
    page.keys(ENTER)


def picture(driver: Driver, url: str, path: Path, *, size: tuple[int, int], dark: bool = False) -> None:
    with driver.page(width=size[0], height=size[1], dark=dark) as page:
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
        if size != PHONE:  # where the engine is behind a button
            page.until(lambda: "1 running" in page.text("#engine"))
        page.screenshot(path)
    taken = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {taken} bytes")
    if taken > MOST:
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
        docs = ROOT / "docs"
        picture(driver, daemon.url, docs / "page-light.png", size=DESK)
        picture(driver, daemon.url, docs / "page-dark.png", size=DESK, dark=True)
        picture(driver, daemon.url, docs / "page-phone.png", size=PHONE)
    finally:
        driver.close()
        daemon.close()


if __name__ == "__main__":
    main()
