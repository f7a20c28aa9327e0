"""The chat page in headless Chromium, over a real daemon and the real default model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually
from tests.support.browser import ENTER, ESCAPE, Driver, Page

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

QUESTION = "What is the capital of France?"
LONG = "Write a long story about a ship and its crew, in ten chapters."
ENDED = ".answer[aria-busy=false]"
LENGTHS = """
    window.lengths = new Set();
    const note = () => lengths.add(document.querySelector(".answer .prose")?.textContent.length);
    const changes = {childList: true, subtree: true, characterData: true};
    new MutationObserver(note).observe(document.getElementById("transcript"), changes);
"""


@pytest.fixture
def page(driver: Driver, daemon: Daemon) -> Iterator[Page]:
    with driver.page() as page:
        show(page, daemon)
        yield page


def show(page: Page, daemon: Daemon) -> None:
    page.open(daemon.url)
    page.until(lambda: page.count("#model option"))


def say(page: Page, text: str) -> None:
    page.type("#prompt", text)
    page.keys(ENTER)


def answered(page: Page, count: int = 1) -> str:
    """The last answer's text, once `count` answers are complete."""
    page.until(lambda: page.count(ENDED) == count and not page.count(".answer[aria-busy=true]"), 90)
    return page.text(".answer .prose")


def again(page: Page) -> None:
    """Has the last answer made anew."""
    page.run("[...document.querySelectorAll('.answer')].at(-1).dataset.old = 'yes'")
    page.click(".answer .foot button:nth-of-type(2)")
    page.until(lambda: not page.count("[data-old]"))


def begun(page: Page) -> None:
    """Waits for the first words of an answer that is being written."""
    page.until(lambda: len(page.text(".answer[aria-busy=true] .prose")) > 20, 60)


def test_answer_streams_into_the_page_and_is_kept(page: Page, daemon: Daemon) -> None:
    page.click("#open-settings")
    page.type("#settings [name=max_tokens]", "300")
    page.click("#settings button[type=submit]")
    page.run(LENGTHS)
    say(page, LONG)
    text = answered(page)
    lengths = page.run("return [...lengths]")
    assert len(lengths) > 3, "the answer came at once"
    assert "tokens/s" in page.text(".answer .figures")
    assert page.text("#status") == "The answer is complete"
    assert page.run("return document.getElementById('model').value") == DEFAULT_MODEL
    page.until(lambda: "(loaded)" in page.text("#model"))
    show(page, daemon)
    page.until(lambda: page.count("#conversations li") == 1)
    page.click("#conversations .name")
    assert answered(page) == text
    assert page.console() == []


@pytest.mark.parametrize("way", ["button", "escape"])
def test_stop_frees_the_engine_keeps_the_text_and_it_can_go_on(page: Page, daemon: Daemon, way: str) -> None:
    say(page, LONG)
    begun(page)
    assert not daemon.is_at_rest()
    if way == "button":
        page.click("#stop")
    else:
        page.keys(ESCAPE)
    assert eventually(daemon.is_at_rest, 5.0)
    partial = answered(page)
    assert len(partial) > 20
    assert page.text(".notice") == "Stopped"
    page.click(".answer .foot button:nth-of-type(3)")
    begun(page)
    page.keys(ESCAPE)
    assert answered(page).startswith(partial[:20])
    assert len(answered(page)) >= len(partial)
    assert page.console() == []


def test_regenerate_replaces_the_answer_and_edit_the_question(page: Page) -> None:
    page.click("#open-settings")
    page.type("#settings [name=temperature]", "0")
    page.click("#settings button[type=submit]")
    say(page, QUESTION)
    answered(page)
    again(page)
    assert "Paris" in answered(page)
    page.click(".person .foot button")
    page.seen(".edit textarea")
    page.run("document.querySelector('.edit textarea').select()")
    page.type(".edit textarea", "What is the capital of Italy?")
    page.keys(ENTER)
    page.until(lambda: "Italy" in page.text(".said"))
    assert page.run("return document.activeElement.id") == "prompt"
    assert "Paris" not in answered(page)
    assert page.count("article") == 2
    assert page.console() == []


def test_settings_reach_the_model(page: Page) -> None:
    page.click("#open-settings")
    page.type("#settings [name=max_tokens]", "5")
    page.type("#settings [name=temperature]", "0")
    page.type("#settings [name=system]", "You answer in English.")
    page.click("#settings button[type=submit]")
    say(page, LONG)
    first = answered(page)
    assert page.text(".figures").startswith("5 tokens")
    assert "limit of tokens" in page.text(".notice")
    again(page)
    assert answered(page) == first


def test_runner_that_dies_leaves_the_text_and_a_way_to_try_again(page: Page, daemon: Daemon) -> None:
    say(page, LONG)
    begun(page)
    daemon.runner().kill()
    assert len(answered(page)) > 20
    assert "SIGKILL" in page.text(".notice")
    page.click(".answer .foot button:nth-of-type(2)")
    begun(page)
    page.click("#stop")
    answered(page)


def test_engine_is_shown_while_it_works(page: Page) -> None:
    say(page, LONG)
    page.until(lambda: "1 running" in page.text("#engine"), 60)
    page.click("#stop")
    page.until(lambda: "0 running" in page.text("#engine"))
    assert DEFAULT_MODEL in page.text("#engine h3")
    assert " in use" in page.text("#engine .cells")


def test_daemon_that_dies_leaves_the_text_and_says_how_to_start_it(
    driver: Driver, home: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home / "models", copy / "models", copy_function=os.link)
    daemon = Daemon(copy, LLMRUN_CTX="2048")
    try:
        with driver.page() as page:
            show(page, daemon)
            say(page, LONG)
            begun(page)
            daemon.process.kill()
            assert len(answered(page)) > 20
            assert "broke off" in page.text(".notice")
            page.click(".answer .foot button:nth-of-type(2)")
            page.until(lambda: "llmrun serve" in page.text(".notice"))
    finally:
        daemon.http.close()
        daemon.process.communicate(timeout=20)


def test_key_is_asked_for_and_kept_in_the_session_alone(driver: Driver, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, LLMRUN_API_KEY="s3cret-key")
    try:
        with driver.page() as page:
            page.open(daemon.url)
            page.seen("#key")
            page.type("#key input", "wrong")
            page.keys(ENTER)
            page.until(lambda: "wrong" in page.text("#key-why"))
            page.type("#key input", "s3cret-key")
            page.keys(ENTER)
            page.until(lambda: f"llmrun pull {DEFAULT_MODEL}" in page.text(".greeting"))
            assert page.run("return Object.values(sessionStorage)") == ["s3cret-key"]
            assert "s3cret" not in str(page.run("return JSON.stringify({...localStorage}) + document.cookie"))
            page.open(daemon.url)
            page.until(lambda: "llmrun pull" in page.text(".greeting"))
            assert not page.run("return document.getElementById('key').open")
    finally:
        daemon.close()
