"""One request to an OpenAI-compatible server, and the clock readings of its stream."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import httpx


@dataclass
class Reading:
    """Seconds: `sent`, and when each piece of the answer came. `tokens`: of the answer, by its usage."""

    sent: float = 0.0
    arrivals: list[float] = field(default_factory=list)
    tokens: int = 0
    text: str = ""

    @property
    def ttft(self) -> float:
        return self.arrivals[0] - self.sent

    def worst_gap(self, since: float) -> float:
        """The longest time between pieces, or from the last to now where the answer has not ended, that
        ended after `since`."""
        ends = self.arrivals if self.tokens else [*self.arrivals, time.perf_counter()]
        return max((b - a for a, b in itertools.pairwise(ends) if b > since), default=0.0)

    @property
    def decode_tps(self) -> float:
        """Tokens a second after the first."""
        return (self.tokens - 1) / (self.arrivals[-1] - self.arrivals[0])


class Server:
    """A server under test: `name` for the tables, `url` without a path, `model` as it knows it."""

    def __init__(self, name: str, url: str, model: str) -> None:
        self.name, self.url, self.model = name, url, model
        # A connection that the server has just closed for idleness must not be used again.
        fresh = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.AsyncClient(base_url=url, timeout=600, limits=fresh)

    async def close(self) -> None:
        await self._http.aclose()

    async def complete(
        self, prompt: str, tokens: int, reading: Reading | None = None, *, temperature: float = 0.0
    ) -> Reading:
        """A raw prompt, answered by exactly so many tokens. `reading` is filled as they come."""
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": temperature, "ignore_eos": True}
        return await self._stream("/v1/completions", body, reading)

    async def chat(self, messages: list[dict[str, str]], tokens: int, **fields: Any) -> Reading:
        """A conversation, greedy."""
        body = {"messages": messages, "max_tokens": tokens, "temperature": 0, **fields}
        return await self._stream("/v1/chat/completions", body)

    async def _stream(self, path: str, body: dict[str, Any], reading: Reading | None = None) -> Reading:
        body = {"model": self.model, "stream": True, "stream_options": {"include_usage": True}, **body}
        reading = reading or Reading()
        reading.sent = time.perf_counter()
        async with self._http.stream("POST", path, json=body) as response:
            if response.status_code != 200:
                raise RuntimeError(f"{self.name}: {response.status_code} {(await response.aread())[:300]!r}")
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    _note(json.loads(line[6:]), reading)
        if not reading.arrivals:
            raise RuntimeError(f"{self.name} said nothing to {str(body)[:200]}")
        return reading


def _note(chunk: dict[str, Any], reading: Reading) -> None:
    if "error" in chunk:
        raise RuntimeError(str(chunk["error"]))
    if usage := chunk.get("usage"):
        reading.tokens = usage["completion_tokens"]
    for choice in chunk.get("choices", ()):
        text = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
        if text:
            reading.arrivals.append(time.perf_counter())
            reading.text += text


async def together(*asked: Any) -> list[Reading]:
    """Readings of requests sent at the same moment."""
    return list(await asyncio.gather(*asked))


def mean_ttft(readings: list[Reading]) -> float:
    return mean(reading.ttft for reading in readings)
