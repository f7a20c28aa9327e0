"""llmrun beside llama-server: named workloads in turns, medians and ratios as a Markdown table.

    .venv/bin/python scripts/bench/servers.py --suite small       a table of docs/performance.md
    … --suite small --keep docs/performance.json                  and keep its figures for scripts/docs.py
    … --suite small --only arrival busy --rounds 9                some of its workloads
    … --model FILE.gguf --peer "llama-server -b 256 -ub 256" --only single streams
    … --url http://127.0.0.1:8080=MODEL --peer-url http://…=MODEL  OpenAI-compatible servers that run already

A ratio above 1 means that llmrun is better.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import results
from comparing import Comparison, compare
from contestants import Contestant, named
from lifecycle import LIFECYCLE
from models import default
from suites import LLMRUN, PEER, SUITES, Case, Suite
from traffic import Server
from workloads import WORKLOADS


class Arena:
    """The contestants of one suite; those that serve all the time are started when they are first needed."""

    def __init__(self, suite: Suite, threads: int, stack: AsyncExitStack) -> None:
        self._model, self._ctx, self._threads = suite.model(), suite.ctx, threads
        self._stack = stack
        self._servers: dict[str, Server] = {}

    def contestant(self, name: str) -> Contestant:
        """One of its own: a home has one daemon."""
        made = named(name, self._model, self._ctx, self._threads)
        self._stack.callback(made.close)
        return made

    async def server(self, name: str) -> Server:
        if name not in self._servers:
            process = self.contestant(name).start()
            self._stack.callback(process.stop)
            server = Server(name, process.url, process.model)
            self._stack.push_async_callback(server.close)
            await server.complete("Once upon a time", 64)  # loaded, and what is learnt at first is learnt
            self._servers[name] = server
        return self._servers[name]

    async def run(self, case: Case, rounds: int | None) -> list[Comparison]:
        name, peer = case.workload, case.peer
        count = rounds or case.rounds
        if name in LIFECYCLE:
            pair = self.contestant(case.ours), self.contestant(peer)
            found = await compare(name, LIFECYCLE[name], *pair, peer=peer, rounds=count)
        else:
            servers = await self.server(case.ours), await self.server(peer)
            found = await compare(name, WORKLOADS[name], *servers, peer=peer, rounds=count)
        for one in found:
            one.ratio, one.more = case.wishes.get(one.figure, (None, None))
        return found


@asynccontextmanager
async def arena(suite: Suite, threads: int) -> AsyncIterator[Arena]:
    async with AsyncExitStack() as stack:
        yield Arena(suite, threads, stack)


async def run_suite(
    suite: Suite, threads: int, rounds: int | None, keep: Callable[[list[Comparison]], None]
) -> None:
    """All cases, each printed and kept as soon as its rounds are over."""
    found: list[Comparison] = []
    print(results.HEAD, flush=True)
    async with arena(suite, threads) as place:
        for case in suite.cases:
            rows = await place.run(case, rounds)
            print("".join(map(results.row, rows)), end="", flush=True)
            found += rows
            keep(found)


async def run_urls(ours: str, theirs: str, names: list[str], rounds: int) -> None:
    """The workloads at two servers that run already, each given as URL=MODEL."""
    servers = [Server(url, *url.rsplit("=", 1)) for url in (ours, theirs)]
    print(results.HEAD, flush=True)
    for name in names:
        rows = await compare(name, WORKLOADS[name], *servers, peer=theirs, rounds=rounds)
        print("".join(map(results.row, rows)), end="", flush=True)
    for server in servers:
        await server.close()


def arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--suite", choices=SUITES, help="the workloads, model and peers of a table")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="JSON to put the suite's figures into")
    parser.add_argument("--only", nargs="*", choices=[*WORKLOADS, *LIFECYCLE])
    parser.add_argument("--rounds", type=int)
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of llama-server; llmrun finds its own"
    )
    parser.add_argument("--model", type=Path, help="without a suite: the default model")
    parser.add_argument("--ctx", type=int, default=16384)
    parser.add_argument("--ours", default=LLMRUN, help="llmrun with settings: llmrun LLMRUN_X=Y")
    parser.add_argument("--peer", default=PEER, help="llama-server with arguments, or llmrun with settings")
    parser.add_argument("--url", help="URL=MODEL of a running server in llmrun's place")
    parser.add_argument("--peer-url", help="URL=MODEL of a running server in the peer's place")
    asked = parser.parse_args()
    if asked.keep and (asked.suite is None or asked.only):
        parser.error("--keep is for a whole --suite")
    return asked


def chosen_suite(asked: argparse.Namespace) -> Suite:
    if asked.suite is None:
        names = asked.only or [*WORKLOADS, *LIFECYCLE]
        cases = tuple(Case(name, peer=asked.peer, ours=asked.ours, rounds=3) for name in names)
        return Suite("", lambda: asked.model or default(), cases, asked.ctx)
    suite = SUITES[asked.suite]
    cases = tuple(case for case in suite.cases if asked.only is None or case.workload in asked.only)
    return Suite(suite.about, suite.model, cases, suite.ctx)


async def main() -> None:
    asked = arguments()
    if asked.url and asked.peer_url:
        await run_urls(asked.url, asked.peer_url, asked.only or [*WORKLOADS], asked.rounds or 3)
        return
    suite = chosen_suite(asked)
    about = results.circumstances(suite.about, suite.ctx, asked.threads)

    def keep(found: list[Comparison]) -> None:
        if asked.keep:
            results.keep(asked.keep, asked.suite, about, found)

    await run_suite(suite, asked.threads, asked.rounds, keep)
    print(f"\n{about.sentence}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was started is ended
    asyncio.run(main())
