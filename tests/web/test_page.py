"""The chat page in headless Chromium over a scripted service: what a model may say, and how it looks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from llmrun.types import Event, GenerateRequest, Started, Text
from tests.api.openai.test_models import stored
from tests.api.scripted import AGENT, MODEL, ScriptedService, answer
from tests.api.server import serving
from tests.support.browser import ENTER, ESCAPE, TAB, Driver, Page

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

EVIL = (
    "<img src=x onerror=\"window.hit='img'\"> <script>window.hit='script'</script>\n\n"
    "[click](javascript:window.hit='link') ![see](http://127.0.0.1:9/spy.png)\n\n"
    "```html\n<svg onload=\"window.hit='svg'\">\n```\n\n| <b>a</b> | b |\n|---|---|\n| <iframe src=x> | 1 |"
)
WIDE = (
    f"{'w' * 300}\n\n```\n{'c' * 300}\n```\n\n|{' h |' * 20}\n|{'---|' * 20}\n|{' cell |' * 20}\n\n"
    f"https://x.y/{'u' * 200}"
)


def scripted(*pieces: str) -> ScriptedService:
    """A service whose model says these pieces."""

    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer(*pieces):
            yield event

    return ScriptedService(script=script, stored=[stored(MODEL)])


def ask(page: Page, url: str) -> None:
    page.open(url)
    page.until(lambda: MODEL in page.text("#model"))
    page.type("#prompt", "Go")
    page.keys(ENTER)
    page.until(lambda: page.count(".answer[aria-busy=false]"))


@pytest.fixture
def evil(driver: Driver) -> Iterator[Page]:
    """A page with an answer that tries to be more than text."""
    with serving(scripted(*re.findall(r"(?s).{1,7}", EVIL))) as url, driver.page() as page:
        ask(page, url)
        yield page


def test_answer_with_markup_stays_text(evil: Page) -> None:
    prose = evil.text(".answer .prose")
    for text in ("<img src=x onerror=", "<script>", "[click](javascript:", "<svg onload=", "<iframe src=x>"):
        assert text in prose
    inside = evil.run("return [...document.querySelectorAll('.prose *')].map(e => e.tagName.toLowerCase())")
    assert not {"img", "script", "svg", "iframe", "b"} & set(inside)
    assert evil.run("return [...document.querySelectorAll('.prose a')].map(a => [a.href, a.rel])") == [
        ["http://127.0.0.1:9/spy.png", "noopener noreferrer nofollow"]
    ]
    assert evil.run("return window.hit") is None
    assert evil.console() == []


@pytest.mark.parametrize(
    "attack",
    [
        "const s = document.createElement('script'); s.append('window.hit = 1'); document.body.append(s)",
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit = 1\">')",
        "document.body.setAttribute('onclick', 'window.hit = 1'); document.body.click()",
        "setTimeout('window.hit = 1')",
        "window.hit = new Function('return 1')()",
        "const s = document.createElement('script'); s.src = 'http://127.0.0.1:9/'; document.body.append(s)",
    ],
)
def test_policy_stops_scripts_that_the_page_did_not_ship(evil: Page, attack: str) -> None:
    # From a timer: what the driver runs itself may do what the policy forbids.
    evil.run(f"setTimeout(() => {{ try {{ {attack} }} catch (error) {{ window.refused = String(error) }} }})")
    evil.run("setTimeout(() => { window.tick = 1 }, 150)")
    evil.until(lambda: evil.run("return window.tick"))
    assert evil.run("return window.hit") is None
    assert evil.run("return window.refused") or evil.console(), "nothing refused it"


def test_policy_lets_the_page_speak_to_its_daemon_alone(evil: Page) -> None:
    evil.run(
        "document.addEventListener('securitypolicyviolation', e => { window.broke = e.effectiveDirective });"
        "fetch('http://127.0.0.1:9/').catch(() => {})"
    )
    assert evil.until(lambda: evil.run("return window.broke")) == "connect-src"


def test_thoughts_are_folded_away_once_the_answer_begins(driver: Driver) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in AGENT:
            if "Call" not in type(event).__name__:
                yield event

    service = ScriptedService(script=script, stored=[stored(MODEL)])
    with serving(service) as url, driver.page() as page:
        ask(page, url)
        assert page.text(".answer .prose") == "I look."
        assert not page.run("return document.querySelector('.thinking').open")
        page.click(".thinking summary")
        assert page.text(".thinking-text") == "Look twice."
        assert "9 of them thinking" in page.run("return document.querySelector('.figures').title")


@pytest.mark.parametrize("dark", [False, True])
def test_phone_width_has_no_sideways_scroll_and_a_drawer(driver: Driver, dark: bool) -> None:
    with serving(scripted(WIDE)) as url, driver.page(width=360, height=700, dark=dark) as page:
        ask(page, url)
        assert page.run("return document.documentElement.scrollWidth") == 360
        assert page.run("return document.getElementById('transcript').scrollWidth") <= 360
        assert page.run("return document.getElementById('sidebar').inert")
        page.click("#menu")
        page.seen("#sidebar")
        assert page.run("return document.getElementById('sidebar').contains(document.activeElement)")
        page.keys(ESCAPE)
        page.until(lambda: page.run("return document.activeElement.id") == "menu")
        assert page.console() == []


def test_escape_that_closes_the_drawer_leaves_the_answer_alone(driver: Driver) -> None:
    async def endless(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        while True:
            yield Text(0, "la ")
            await asyncio.sleep(0.02)

    service = ScriptedService(script=endless, stored=[stored(MODEL)])
    with serving(service) as url, driver.page(width=360, height=700) as page:
        page.open(url)
        page.until(lambda: MODEL in page.text("#model"))
        page.type("#prompt", "Sing")
        page.keys(ENTER)
        page.until(lambda: "la la" in page.text(".answer[aria-busy=true] .prose"))
        page.click("#menu")
        page.seen("#sidebar")
        page.keys(ESCAPE)
        page.until(lambda: page.run("return document.activeElement.id") == "menu")
        said = page.text(".answer .prose")
        page.until(lambda: len(page.text(".answer[aria-busy=true] .prose")) > len(said))
        page.keys(ESCAPE)
        page.until(lambda: page.count(".answer[aria-busy=false]"))
        assert page.text(".notice") == "Stopped"


def brightness(page: Page) -> float:
    colour = page.run("return getComputedStyle(document.body).backgroundColor")
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def test_theme_follows_the_system_until_the_person_chooses(driver: Driver) -> None:
    with serving(scripted("Hi")) as url, driver.page(dark=True) as page:
        page.open(url)
        assert brightness(page) < 60
        page.click("#theme")
        assert brightness(page) > 200
        page.open(url)
        assert brightness(page) > 200
        page.click("#theme")
        assert brightness(page) < 60
        assert page.console() == []


CONTRAST = """
    const parts = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = element => {
        for (let e = element; e; e = e.parentElement) {
            const colour = parts(getComputedStyle(e).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
    };
    return [...document.querySelectorAll("body *")]
        .filter(e => e.checkVisibility({opacityProperty: true})
            && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
        .map(e => {
            const [a, b] = [light(parts(getComputedStyle(e).color)), light(ground(e))];
            return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)];
        })
        .filter(([ratio]) => ratio < 4.5);
"""


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_and_every_control_has_a_name(driver: Driver, dark: bool) -> None:
    """WCAG 2.2 AA, 1.4.3: a contrast of 4.5 to 1; and 4.1.2, by what the browser tells screen readers."""
    text = "# Title\n\n`code` and [link](https://x.y)\n\n> quote"
    with serving(scripted(text)) as url, driver.page(dark=dark) as page:
        ask(page, url)
        assert page.run(CONTRAST) == []
        nodes = page.devtools("Accessibility.getFullAXTree")["nodes"]
        wanted = {"button", "textbox", "combobox", "link", "article", "dialog", "log"}
        named = [node for node in nodes if node.get("role", {}).get("value") in wanted]
        assert len(named) > 8
        assert [node for node in named if not node.get("name", {}).get("value")] == []


def test_keyboard_alone_reaches_every_control_in_the_order_of_the_page(driver: Driver) -> None:
    with serving(scripted("Hi")) as url, driver.page() as page:
        ask(page, url)
        assert page.run("return document.activeElement.id") == "prompt"
        page.run(
            "document.body.focus(); document.activeElement.blur(); window.getSelection().removeAllRanges()"
        )
        page.run("document.querySelector('.skip').focus()")
        reached: list[Any] = []
        for _ in range(40):
            page.keys(TAB)
            name = page.run("const e = document.activeElement; return e.id || e.ariaLabel || e.textContent")
            if name in reached or page.run("return document.activeElement === document.body"):
                break
            reached.append(name)
            outline = page.run("const s = getComputedStyle(document.activeElement); return s.outlineStyle")
            assert outline != "none" or name == "prompt", f"{name} shows no focus"
        order = ["theme", "new", "model", "open-settings", "transcript", "prompt", "send"]
        assert [name for name in reached if name in order] == order


def test_pull_from_the_page_shows_its_progress_and_then_the_model(driver: Driver) -> None:
    service = scripted("Hi")
    service.stored.clear()
    with serving(service) as url, driver.page() as page:
        page.open(url)
        page.until(lambda: "llmrun pull smollm2:135m" in page.text(".greeting"))
        service.stored.append(stored(MODEL))
        page.click(".greeting button")
        page.until(lambda: MODEL in page.text("#model"))
        assert page.text(".greeting") == "What would you like to know?"
        assert page.console() == []


def test_conversations_can_be_renamed_exported_and_deleted(driver: Driver) -> None:
    with serving(scripted("Hi")) as url, driver.page() as page:
        ask(page, url)
        page.click("#conversations [title=Rename]")
        page.run("document.querySelector('#conversations input').select()")
        page.type("#conversations input", f"My <b>chat</b>{ENTER}")
        page.until(lambda: page.text("#conversations .name") == "My <b>chat</b>")
        page.until(lambda: page.run("return document.activeElement.textContent") == "My <b>chat</b>")
        assert page.console() == []
        page.run(
            "const make = URL.createObjectURL; URL.createObjectURL = blob => {"
            " blob.text().then(text => { window.saved = text }); return make(blob) }"
        )
        page.click("#conversations [title=Export]")
        page.until(lambda: page.run("return window.saved && JSON.parse(window.saved).messages.length === 2"))
        page.click("#conversations [title=Delete]")
        page.seen("#confirm")
        page.keys(ESCAPE)
        assert page.count("#conversations li") == 1
        page.click("#conversations [title=Delete]")
        page.click("#confirm button[type=submit]")
        page.until(lambda: page.count("#conversations li") == 0)
        assert page.count("article") == 0
