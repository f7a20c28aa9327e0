"""Two servers side by side: named workloads, interleaved, medians and ratios as a Markdown table.

    .venv/bin/python scripts/bench/servers.py                          llmrun against llama-server
    … --peer-args "-b 256 -ub 256" --only single streams               with other settings, some workloads
    … --model FILE.gguf --rounds 5
    … --url http://127.0.0.1:8080=MODEL --peer-url http://…=MODEL      servers that run already

Both get the same model, context and threads. A ratio above 1 means that llmrun is better.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from peer import LlamaServer, Llmrun
from traffic import Server
from workloads import WORKLOADS, Figures, lower, prose

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store

Starter = Llmrun | LlamaServer


async def start(starter: Starter) -> Figures:
    """From the start of the program to the first token, and the most memory it then has had."""
    process = starter.start()
    server = Server(starter.name, process.url, process.model)
    try:
        reading = await server.complete(prose(10), 2)
        return {
            "start to first token s": lower(reading.arrivals[0] - process.began),
            "peak memory MB": lower(process.memory() / 1e6),
        }
    finally:
        await server.close()
        process.stop()


async def restart(starter: Starter) -> Figures:
    """A prompt of some 3,000 tokens again, after the server was stopped and started."""
    prompt = prose(1200)
    for _ in range(2):
        process = starter.start()
        server = Server(starter.name, process.url, process.model)
        try:
            await server.complete("Hello", 1)  # the model is loaded
            reading = await server.complete(prompt, 2)
            await asyncio.sleep(1)
        finally:
            await server.close()
            process.stop()
    return {"TTFT s": lower(reading.ttft)}


FROM_THE_START = {"start": start, "restart": restart}


async def measure(names: list[str], servers: list[Server], starters: list[Starter], rounds: int) -> None:
    """Print a row for each figure of each workload, as soon as its rounds are over."""
    for name in names:
        if name not in WORKLOADS and not starters:
            continue
        found: dict[str, list[list[float]]] = defaultdict(lambda: [[], []])
        better = {}
        for turn in range(rounds):
            for place in (0, 1) if turn % 2 == 0 else (1, 0):
                if name in WORKLOADS:
                    figures = await WORKLOADS[name](servers[place])
                else:
                    figures = await FROM_THE_START[name](starters[place])
                for what, figure in figures.items():
                    found[what][place].append(figure.value)
                    better[what] = figure.better
        for what, (ours, peers) in found.items():
            print(_row(f"{name}: {what}", ours, peers, better[what]), flush=True)


def _row(title: str, ours: list[float], peers: list[float], better: str) -> str:
    a, b = median(ours), median(peers)
    ratio = a / b if better == "higher" else b / a
    spread = f"{min(ours):.3g} to {max(ours):.3g}", f"{min(peers):.3g} to {max(peers):.3g}"
    return f"| {title} | {a:.3g} ({spread[0]}) | {b:.3g} ({spread[1]}) | {ratio:.2f} |"


def arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--ctx", type=int, default=16384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=[*WORKLOADS, *FROM_THE_START])
    parser.add_argument("--peer-args", default="", help="further arguments of llama-server")
    parser.add_argument("--url", help="URL=MODEL of a running server in llmrun's place")
    parser.add_argument("--peer-url", help="URL=MODEL of a running server in the peer's place")
    return parser.parse_args()


async def main() -> None:
    chosen = arguments()
    names = chosen.only or [*WORKLOADS, *FROM_THE_START]
    path = chosen.model or Store(Paths.find()).resolve(DEFAULT_MODEL).path
    starters: list[Starter] = []
    processes = []
    if chosen.url and chosen.peer_url:
        servers = [Server(url, *url.rsplit("=", 1)) for url in (chosen.url, chosen.peer_url)]
    else:
        extra = shlex.split(chosen.peer_args)
        starters = [
            Llmrun(path, chosen.ctx, chosen.threads),
            LlamaServer(path, chosen.ctx, chosen.threads, *extra),
        ]
        processes = [starter.start() for starter in starters]
        servers = [
            Server(starter.name, process.url, process.model)
            for starter, process in zip(starters, processes, strict=True)
        ]
        for server in servers:
            await server.complete("Hello", 1)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{path.name}, context {chosen.ctx}, {chosen.threads} threads, {chosen.rounds} rounds, load {load}")
    print()
    print(f"| workload | {servers[0].name} | {servers[1].name} | ratio |\n| --- | --- | --- | --- |")
    began = time.perf_counter()
    try:
        await measure(names, servers, starters, chosen.rounds)
    finally:
        for server in servers:
            await server.close()
        for process in processes:
            process.stop()
        for starter in starters:
            starter.close()
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
