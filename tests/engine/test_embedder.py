"""The embedder on tiny models: real kernels, its thread, every request's one end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from llmrun.engine import Embedder, VectorRequest
from llmrun.errors import NO_MEMORY, LlmrunError
from llmrun.llama import EmbeddingContext, Model
from llmrun.types import Embedded, Event, Failed, Finished, Ranked
from tests.support.kinds import CTX, EMBEDDERS, RANKERS, Make


class Embedding:
    """An embedder on its thread, and what it has said of each request."""

    def __init__(self, model: Model) -> None:
        self.opened: list[int] = []
        self.refused: set[int] = set()
        self.events: dict[str, list[Event]] = {}
        self.order: list[str] = []
        self._ended = threading.Semaphore(0)
        self._model = model
        self.embedder = Embedder(self._open, longest=CTX * 4, emit=self._take, clock=time.monotonic)
        self.thread = threading.Thread(target=self.embedder.run)

    def _open(self, tokens: int) -> EmbeddingContext:
        if tokens in self.refused:
            raise LlmrunError(NO_MEMORY, "no room")
        self.opened.append(tokens)
        return EmbeddingContext(self._model, tokens, 1)

    def _take(self, events: list[tuple[str, Event]]) -> None:
        for name, event in events:
            self.events.setdefault(name, []).append(event)
            if isinstance(event, Finished | Failed):
                self.order.append(name)
                self._ended.release()

    def submit(self, name: str, *lengths: int, **wanted: object) -> None:
        inputs = tuple(np.arange(4, 4 + length, dtype=np.int32) % 70 + 4 for length in lengths)
        fields = {"truncated": (0,) * len(inputs), "arrived": time.monotonic(), **wanted}
        self.embedder.submit(VectorRequest(id=name, inputs=inputs, **fields))  # type: ignore[arg-type]

    def wait(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._ended.acquire(timeout=60)

    def vectors(self, name: str) -> list[list[float]]:
        return [event.numbers() for event in self.events[name] if isinstance(event, Embedded)]

    def failure(self, name: str) -> str:
        last = self.events[name][-1]
        assert isinstance(last, Failed)
        return last.error.code


@contextmanager
def embedding(make: Make, folder: Path, *, started: bool = True) -> Iterator[Embedding]:
    model = Model(make(folder / "tiny.gguf"))
    work = Embedding(model)
    if started:
        work.thread.start()
    try:
        yield work
    finally:
        work.embedder.stop()
        if work.thread.ident:
            work.thread.join(30)
        assert not work.thread.is_alive()
        model.close()


BERT, DECODER = EMBEDDERS["encoder, mean"], EMBEDDERS["decoder, last"]


@pytest.mark.parametrize("make", EMBEDDERS.values(), ids=EMBEDDERS)
def test_embedder_vectors_come_in_order_and_have_length_1(tmp_path: Path, make: Make) -> None:
    with embedding(make, tmp_path) as work:
        work.submit("many", 5, 300, 7, 200, 5)
        work.submit("one", 7)
        work.wait(2)
        many = work.events["many"]
    assert [event.index for event in many[:-1] if isinstance(event, Embedded)] == [0, 1, 2, 3, 4]
    vectors = np.array(work.vectors("many"))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert vectors[0] == pytest.approx(vectors[4], abs=1e-6)
    assert vectors[2] == pytest.approx(work.vectors("one")[0], abs=1e-6)
    assert isinstance(many[-1], Finished)
    assert many[-1].usage.prompt == 517


def test_embedder_long_input_opens_a_larger_context_only_then(tmp_path: Path) -> None:
    with embedding(DECODER, tmp_path) as work:
        work.submit("short", 5, 512)
        work.wait()
        assert work.opened == [512]
        work.submit("long", 600, 5, 1100)
        work.submit("again", 2000)
        work.wait(2)
    assert work.opened == [512, 1024, 2048]
    assert len(work.vectors("long")) == 3


def test_embedder_no_room_for_one_input_fails_its_request_alone(tmp_path: Path) -> None:
    with embedding(DECODER, tmp_path) as work:
        work.refused = {1024}
        work.submit("long", 5, 600)
        work.submit("short", 5)
        work.wait(2)
    assert work.failure("long") == "out_of_memory"
    assert len(work.vectors("short")) == 1


def test_embedder_dimensions_cut_and_bring_to_length_1_again(tmp_path: Path) -> None:
    with embedding(BERT, tmp_path) as work:
        work.submit("whole", 9, normalize=False)
        work.submit("cut", 9, dimensions=8)
        work.submit("raw", 9, dimensions=8, normalize=False)
        work.wait(3)
    (whole,), (cut,), (raw,) = map(work.vectors, ("whole", "cut", "raw"))
    assert raw == pytest.approx(whole[:8])
    assert np.linalg.norm(whole) > 2
    assert cut == pytest.approx(np.array(raw) / np.linalg.norm(raw))


def test_embedder_cancelled_request_ends_once_and_the_others_go_on(tmp_path: Path) -> None:
    with embedding(BERT, tmp_path, started=False) as work:
        work.submit("gone", *[400] * 50)
        work.submit("stays", 5)
        for name in ("gone", "gone", "unknown"):
            work.embedder.cancel(name)
        work.thread.start()
        work.wait(2)
    assert work.failure("gone") == "cancelled"
    assert len(work.events["gone"]) == 1
    assert len(work.vectors("stays")) == 1


def test_embedder_small_request_does_not_wait_for_a_large_one(tmp_path: Path) -> None:
    with embedding(BERT, tmp_path, started=False) as work:
        work.submit("large", *[400] * 20)
        work.submit("small", 5)
        work.thread.start()
        work.wait(2)
    assert work.order == ["small", "large"]


def test_embedder_stopped_fails_what_is_open(tmp_path: Path) -> None:
    with embedding(BERT, tmp_path, started=False) as work:
        work.submit("open", *[500] * 200)
        work.thread.start()
        while not work.embedder.running:
            time.sleep(0.001)
        work.embedder.stop()
        work.wait()
    assert work.failure("open") == "shutting_down"


@pytest.mark.parametrize("make", RANKERS.values(), ids=RANKERS)
def test_embedder_scores_instead_of_vectors(tmp_path: Path, make: Make) -> None:
    with embedding(make, tmp_path) as work:
        work.submit("rank", 5, 50, 5, score=0)
        work.wait()
        scores = [event.score for event in work.events["rank"] if isinstance(event, Ranked)]
    assert len(scores) == 3
    assert scores[0] == pytest.approx(scores[2], abs=1e-5)
    assert scores[0] != pytest.approx(scores[1], abs=1e-5)
