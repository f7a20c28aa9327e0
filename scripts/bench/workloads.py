"""Named workloads: what is sent to a server, and the figures that come of it.

Every prompt begins with a salt of its own, so that nothing is answered from an earlier round's cache.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import secrets
import time
from collections.abc import Awaitable, Callable
from statistics import mean
from typing import NamedTuple

from traffic import Reading, Server, mean_ttft, together

TOPICS = ("bread", "Rome", "glass", "chess", "maps", "tea", "clocks", "salt")
TRADES = ("baker", "sailor", "glassblower", "clockmaker", "shepherd", "printer")
COPIED = """<|im_start|>user
Copy this text word for word.

{0} is the number of this inventory of the old lighthouse, written down in the spring of 1911:
seven brass lamps, four of them dented; one barometer by Negretti & Zambra; thirty-two fathoms of rope;
a chest with the keeper's papers; two stuffed gulls; and a clock that had not been wound for nine years.
In the cellar: nine barrels of oil, a broken oar, and a box of candles that the mice had found first.
Upstairs stand a bed of iron, a table with three legs, and a shelf of books about the weather of the north;
the keeper's coat hangs behind the door, and in its pocket are a whistle, two keys and a letter from Bergen.
The boat is tarred, but its sail was lent to the pilot of the next island, who keeps it.<|im_end|>
<|im_start|>assistant
{0} is the number of this inventory"""
WORDS = (
    *("the", "old", "sea", "keeps", "a", "map", "of", "every", "town", "that", "once", "traded"),
    *("salt", "glass", "bread", "tea"),
)
SCHEMA = {
    "type": "object",
    "properties": {
        "first_name": {"type": "string", "maxLength": 12},
        "family_name": {"type": "string", "maxLength": 12},
        "occupation": {"enum": ["baker", "sailor", "glassblower", "clockmaker"]},
        "years_of_experience": {"type": "integer", "minimum": 0, "maximum": 60},
        "available_immediately": {"type": "boolean"},
    },
    "required": [
        "first_name",
        "family_name",
        "occupation",
        "years_of_experience",
        "available_immediately",
    ],
    "additionalProperties": False,
}


class Figure(NamedTuple):
    """`better`: which way is better, higher or lower."""

    value: float
    better: str


Figures = dict[str, Figure]
Workload = Callable[[Server], Awaitable[Figures]]


def higher(value: float) -> Figure:
    return Figure(value, "higher")


def lower(value: float) -> Figure:
    return Figure(value, "lower")


def prose(words: int) -> str:
    """So many words that no other prompt begins with; about 1.2 tokens each."""
    salt = secrets.token_hex(4)
    return f"{salt} " + " ".join(f"{WORDS[n * 7 % len(WORDS)]} {n * 37 % 91}" for n in range(words // 2))


async def single(server: Server) -> Figures:
    """One stream of text that does not repeat itself: it is sampled."""
    reading = await server.complete(f"{prose(40)}\nA story:", 128, temperature=0.8)
    return {"decode tokens/s": higher(reading.decode_tps)}


async def copy(server: Server) -> Figures:
    """One stream that copies a text of its prompt: where drafts pay."""
    reading = await server.complete(COPIED.format(secrets.token_hex(4)), 240)
    return {"decode tokens/s": higher(reading.decode_tps)}


async def fresh(server: Server) -> Figures:
    """Texts about something else each, one after the other: half of them greedy, half sampled."""
    speeds = {}
    for way, temperature in (("greedy", 0.0), ("sampled", 0.8)):
        readings = [
            await server.complete(f"A letter from a {trade} to a friend about", 64, temperature=temperature)
            for trade in TRADES
        ]
        speeds[way] = mean(reading.decode_tps for reading in readings)
    return {f"decode tokens/s, {way}": higher(speed) for way, speed in speeds.items()}


async def streams(server: Server) -> Figures:
    """Eight streams with prompts that have nothing in common."""
    began = time.perf_counter()
    prompts = [f"{prose(60)} The history of {topic}:" for topic in TOPICS]
    readings = await together(*(server.complete(prompt, 96, temperature=0.8) for prompt in prompts))
    seconds = time.perf_counter() - began
    return {
        "tokens/s": higher(sum(reading.tokens for reading in readings) / seconds),
        "mean TTFT s": lower(mean_ttft(readings)),
    }


async def shared(server: Server) -> Figures:
    """Eight requests behind one system prompt of some 1,500 tokens, nothing cached."""
    system = prose(1000)
    readings = await together(
        *(
            server.chat(
                [{"role": "system", "content": system}, {"role": "user", "content": f"About {topic}?"}], 16
            )
            for topic in TOPICS
        )
    )
    return {"mean TTFT s": lower(mean_ttft(readings))}


async def conversations(server: Server) -> Figures:
    """Four conversations of six turns, taking turns."""
    talks = [
        [{"role": "system", "content": prose(150)}, {"role": "user", "content": f"Tell me of {topic}."}]
        for topic in TOPICS[:4]
    ]
    readings: list[Reading] = []
    for turn in range(6):
        for talk in talks:
            reading = await server.chat(talk, 24)
            readings.append(reading)
            talk += [
                {"role": "assistant", "content": reading.text},
                {"role": "user", "content": f"And what came {turn} years later? {prose(30)}"},
            ]
    return {"mean TTFT s": lower(mean_ttft(readings))}


async def objects(server: Server) -> Figures:
    """JSON objects by a schema, one after the other."""
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
    began = time.perf_counter()
    for _ in range(4):
        ask = [{"role": "user", "content": f"Invent a person. {secrets.token_hex(4)}"}]
        reading = await server.chat(ask, 200, response_format=form)
        json.loads(reading.text)
    return {"objects/s": higher(4 / (time.perf_counter() - began))}


async def arrival(server: Server) -> Figures:
    """A prompt of some 3,000 tokens arrives beside three running streams, a short one behind it."""
    running = [Reading() for _ in range(3)]
    tasks = [
        asyncio.create_task(server.complete(f"{prose(30)} On {topic}:", 2000, reading, temperature=0.8))
        for topic, reading in zip(TOPICS, running, strict=False)
    ]
    await asyncio.sleep(1.5)
    since = time.perf_counter()
    long = asyncio.create_task(server.complete(prose(1200), 4))
    await asyncio.sleep(0.1)
    short = await server.complete(f"{secrets.token_hex(3)} Hello!", 4)
    arrived = await long
    worst = max(reading.worst_gap(since) for reading in running)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return {
        "worst ITL s": lower(worst),
        "long prompt's TTFT s": lower(arrived.ttft),
        "short prompt's TTFT s": lower(short.ttft),
    }


def _burn() -> None:
    while True:
        pass


async def busy(server: Server) -> Figures:
    """One stream beside a process that burns a core: the share of its speed that it keeps."""
    prompt = f"{prose(40)}\nA story:"
    alone = await server.complete(prompt, 128, temperature=0.8)
    burner = multiprocessing.Process(target=_burn, daemon=True)
    burner.start()
    try:
        beside = await server.complete(prompt, 128, temperature=0.8)
    finally:
        burner.kill()
        burner.join()
    return {"share of speed kept": higher(beside.decode_tps / alone.decode_tps)}


WORKLOADS: dict[str, Workload] = {
    work.__name__: work
    for work in (single, copy, fresh, streams, shared, conversations, objects, arrival, busy)
}
