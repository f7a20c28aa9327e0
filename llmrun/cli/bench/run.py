"""`llmrun bench` from its arguments to its report.

Each model has a daemon of its own, in which nothing is cached and no token is guessed ahead.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from llmrun.cli.bench.figures import by_concurrency, by_length, of_roofline
from llmrun.cli.bench.report import Report
from llmrun.cli.bench.workload import Prompts, Workload, text
from llmrun.cli.session import Session
from llmrun.client.local import private_daemon
from llmrun.errors import MODEL_LOAD, USAGE, LlmrunError
from llmrun.store import Store, StoredModel
from llmrun.store.anatomy import anatomy
from llmrun.store.hardware import Machine, this_machine
from llmrun.store.native_child import ChildError, said_by
from llmrun.store.plan import bytes_read
from llmrun.types import Options

_MARGIN = 256  # cells that a context has beside those that are used


@dataclass(frozen=True)
class Plan:
    """lengths: of prompts, in tokens. concurrency: requests at once. answer: tokens of each. times: requests
    of each length, and of each caller."""

    lengths: tuple[int, ...]
    concurrency: tuple[int, ...]
    answer: int
    times: int

    @property
    def short(self) -> int:
        """The length of the prompts that come together."""
        return min(self.lengths)

    @property
    def cells(self) -> int:
        """Tokens of context that all of it needs."""
        together = max(self.concurrency) * (self.short + self.answer)
        return max(max(self.lengths) + self.answer, together) + _MARGIN


def measure(session: Session, models: Sequence[StoredModel], plan: Plan) -> Report:
    """Speed of every model; quality too where there are several, beside the largest file of them."""
    with session.out.waiting("measuring the machine's memory"):
        machine = this_machine(measure=True)
    report: Report = {"models": [], "quality": [], "reference": None}
    for model in models:
        report["models"].append(_speed(session, model, plan, machine))
    if len(models) > 1:
        best = max(models, key=lambda model: model.size)
        with session.out.waiting("comparing what the models expect"):
            report["quality"] = _quality(models, best, report["models"])
        report["reference"] = best.name
    return report


def _speed(session: Session, model: StoredModel, plan: Plan, machine: Machine) -> dict[str, Any]:
    if max(plan.lengths) + plan.answer > model.ctx_train > 0:
        raise LlmrunError(
            USAGE,
            f"{model.name} has a context of {model.ctx_train} tokens,"
            f" and {max(plan.lengths)} with an answer of {plan.answer} are more",
            hint="use smaller --lengths",
        )
    sizes = anatomy(Store(session.paths).peek(str(model.path)).headers)
    with ExitStack() as stack:
        with session.out.waiting(f"loading {model.name} in a daemon of its own"):
            client = stack.enter_context(private_daemon(_alone(plan)))
            loaded = client.load(str(model.path), Options())
        workload = Workload(
            client, str(model.path), Prompts(client.tokenize(str(model.path), text())), plan.answer
        )
        workload.alone(plan.short, 1)  # the first request of all warms buffers up
        lengths = []
        for length in plan.lengths:
            with session.out.waiting(f"{model.name}: prompts of {length} tokens"):
                row = by_length(length, workload.alone(length, plan.times))
            read = bytes_read(sizes, session.settings.kv_type, length + plan.answer // 2)
            bandwidth = None if machine.gpu_memory else machine.bandwidth
            lengths.append(row | {"roofline": of_roofline(row["decode_tps"], read, bandwidth)})
        together = []
        for at_once in plan.concurrency:
            with session.out.waiting(f"{model.name}: {at_once} at once"):
                samples, seconds = workload.together(at_once, plan.short, plan.times)
            together.append(by_concurrency(at_once, samples, seconds))
    return {
        "name": model.name,
        "quant": model.quant,
        "size": model.size,
        "device": loaded.info.device if loaded and loaded.info else "?",
        "bandwidth": machine.bandwidth,
        "answer": plan.answer,
        "lengths": lengths,
        "concurrency": together,
    }


def _alone(plan: Plan) -> dict[str, str]:
    """The environment of a daemon that shows the engine's own speed."""
    return {
        **os.environ,
        "LLMRUN_CTX": str(plan.cells),
        "LLMRUN_PARALLEL": str(max(plan.concurrency)),
        "LLMRUN_CACHE_RAM": "0",
        "LLMRUN_CACHE_DISK": "0",
        "LLMRUN_DRAFT": "off",
        "LLMRUN_KEEP_ALIVE": "-1",
    }


def _quality(
    models: Sequence[StoredModel], best: StoredModel, speeds: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    import psutil

    job = {
        "reference": str(best.path),
        "models": [str(model.path) for model in models],
        "text": text(),
        "threads": psutil.cpu_count(logical=False) or 1,
    }
    try:
        found = list(said_by("llmrun.llama.quality", job))
    except ChildError as error:
        raise LlmrunError(MODEL_LOAD, f"the quality cannot be measured: {error}", hint="") from None
    return [
        {
            "name": model.name,
            "size": model.size,
            "prefill_tps": speed["lengths"][0]["prefill_tps"],
            "decode_tps": speed["lengths"][0]["decode_tps"],
            **figures,
        }
        for model, speed, figures in zip(models, speeds, found, strict=True)
    ]
