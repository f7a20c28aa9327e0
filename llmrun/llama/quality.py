"""How well a model predicts a text, beside another one: `python -m llmrun.llama.quality JOB`, in a process of
its own.

In: a `Job` as JSON. Out, on stdout, one JSON object a line: for each model {"tokens", "perplexity",
"kl_mean", "kl_p99", "same_top"}, then {"done": true}, or {"error": …}.

The text is read in windows, as llama.cpp's own `llama-perplexity` does, and every token of a window but its
first is scored. KL is sum p log(p / q) over the vocabulary, p being the reference's, in nats a token.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama.batch import Batch
from llmrun.llama.context import Context, ContextSettings, DecodeStatus
from llmrun.llama.model import Model

Logs = npt.NDArray[np.float32]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of first shards. window: tokens that are read together."""

    reference: str
    models: list[str]
    text: str
    window: int = 256
    threads: int = 1


def main(text: str) -> int:
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        job = msgspec.json.decode(text, type=Job)
        for path in job.models:
            _say(_compared(job, Path(path)))
    except LlmrunError as error:
        _say({"error": error.message})
        return 1
    _say({"done": True})
    return 0


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _compared(job: Job, path: Path) -> dict[str, Any]:
    """The figures of one model. Both are in memory at once; one window's probabilities are, too."""
    reference = Reader(Path(job.reference), job)
    try:
        other = reference if path == Path(job.reference) else Reader(path, job)
        try:
            return compare(reference, other, job)
        finally:
            other.close()
    finally:
        reference.close()


def compare(reference: Reader, other: Reader, job: Job) -> dict[str, Any]:
    """The figures of `other`. LlmrunError where the two do not have the same tokens."""
    tokens = reference.tokens(job.text)
    if other.tokens(job.text) != tokens or other.vocabulary != reference.vocabulary:
        raise LlmrunError(MODEL_LOAD, "the models have other vocabularies, so they cannot be compared")
    losses: list[float] = []
    divergences: list[float] = []
    same = 0
    for window in windows(tokens, job.window):
        expected = reference.log_probabilities(window)
        found = expected if other is reference else other.log_probabilities(window)
        losses += [-float(found[place, token]) for place, token in enumerate(window[1:])]
        divergences += (np.exp(expected) * (expected - found)).sum(axis=1, dtype=np.float64).tolist()
        same += int((expected.argmax(axis=1) == found.argmax(axis=1)).sum())
    return {
        "tokens": len(losses),
        "perplexity": float(np.exp(np.mean(losses))),
        "kl_mean": float(np.mean(divergences)),
        "kl_p99": float(np.percentile(divergences, 99)),
        "same_top": same / len(losses),
    }


def windows(tokens: list[int], size: int) -> Iterator[list[int]]:
    """The tokens in pieces of `size`; a last one is whatever is left, unless it is a single token."""
    for start in range(0, len(tokens), size):
        window = tokens[start : start + size]
        if len(window) > 1:
            yield window


class Reader:
    """One model that reads windows of text."""

    def __init__(self, path: Path, job: Job) -> None:
        self._model = Model(path, gpu_layers=None)
        try:
            if why := self._model.unservable:
                raise LlmrunError(MODEL_LOAD, why)
            settings = ContextSettings(
                ctx=job.window, batch=job.window, slots=1, threads=job.threads, threads_batch=job.threads
            )
            self._context = Context(self._model, settings)
        except BaseException:
            self._model.close()
            raise
        self._batch = Batch(job.window)

    @property
    def vocabulary(self) -> int:
        return self._model.vocab.size

    def tokens(self, text: str) -> list[int]:
        return self._model.vocab.tokenize(text, special=False)

    def log_probabilities(self, window: list[int]) -> Logs:
        """Of shape (tokens - 1, vocabulary): row i is what is expected behind token i."""
        self._context.drop(0)
        self._batch.clear()
        count = len(window) - 1
        first = self._batch.add(np.array(window[:-1], np.int32), 0, 0, outputs=count)
        if self._context.decode(self._batch) is not DecodeStatus.OK:
            raise LlmrunError(MODEL_LOAD, f"{self._model.description} cannot read the text")
        rows = np.stack([self._context.logits(first + place) for place in range(count)])
        rows -= rows.max(axis=1, keepdims=True)
        rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True, dtype=np.float64)).astype(np.float32)
        return rows

    def close(self) -> None:
        """Free the model and its context. Harmless when called again."""
        self._model.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
