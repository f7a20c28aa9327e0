from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmrun.llama import Adapter, Batch, EmbeddingContext, Model, Vector
from llmrun.llama.batch import Tokens
from llmrun.llama.library import lib
from tests.support.kinds import EMBEDDERS, RANKERS, UNSERVABLE, WRITERS, bert
from tests.support.models import tiny_model
from tests.support.tiny import write_lora

TEXTS = [
    "hello world",
    "a",
    "the quick brown fox jumps",
    "one two three four five six seven " * 4,
    "ok then.",
]
ALL = {**EMBEDDERS, **{f"ranker, {name}": make for name, make in RANKERS.items()}, **WRITERS}
POOLING = {"mean": 1, "cls": 2, "last": 3, "rank": 4}


@pytest.fixture(scope="module", params=ALL)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    loaded = Model(ALL[request.param](tmp_path_factory.mktemp("kind") / "tiny.gguf"))
    yield loaded
    loaded.close()


def ids_of(model: Model, text: str) -> Tokens:
    front, behind = model.vocab.edges
    return np.array([*front, *model.vocab.tokenize(text, special=False), *behind], np.int32)


def one_by_one(context: EmbeddingContext, sequences: list[Tokens]) -> list[Vector]:
    return [vector for each in sequences for vector in context.embed([each]) or []]


def reference(model: Model, tokens: Tokens) -> Vector:
    """The vector by plain calls of llama.cpp: all rows in one batch of a context that has nothing else."""
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = 1
    params.embeddings = True
    params.pooling_type = POOLING[model.pooling]
    context = lib.llama_init_from_model(model.pointer, params)
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for row, token in enumerate(tokens):
        batch.token[row], batch.pos[row], batch.n_seq_id[row] = int(token), row, 1
        batch.seq_id[row][0], batch.logits[row] = 0, 1
    assert lib.llama_decode(context, batch) == 0
    width = len(model.classes) if model.pooling == "rank" else model.embedding_size
    vector: Vector = np.ctypeslib.as_array(lib.llama_get_embeddings_seq(context, 0), shape=(width,)).copy()
    lib.llama_batch_free(batch)
    lib.llama_free(context)
    return vector


def test_embed_is_what_llama_cpp_computes(model: Model) -> None:
    context = EmbeddingContext(model, 512, threads=1)
    for text in TEXTS:
        tokens = ids_of(model, text)
        (vector,) = context.embed([tokens]) or []
        assert vector == pytest.approx(reference(model, tokens), abs=2e-2)


def test_embed_together_is_embed_alone_in_order(model: Model) -> None:
    context = EmbeddingContext(model, 512, threads=1)
    sequences = [ids_of(model, text) for text in TEXTS][: context.sequences]
    together = context.embed(sequences)
    assert together is not None
    np.testing.assert_allclose(together, one_by_one(context, sequences), rtol=0, atol=1e-5)
    assert len({vector.tobytes() for vector in together}) == len(sequences)


def test_embed_many_short_texts_stay_within_the_positions_of_the_model(tmp_path: Path) -> None:
    """Those of what fills the gaps too: llama.cpp would abort."""
    model = Model(bert(tmp_path / "tiny.gguf", gguf.PoolingType.MEAN, ctx=64))
    context = EmbeddingContext(model, 64, threads=1)
    sequences = [np.array([4 + number], np.int32) for number in range(context.sequences)]
    assert len(sequences) == 4
    together = context.embed(sequences)
    assert together is not None
    np.testing.assert_allclose(together, one_by_one(context, sequences), rtol=0, atol=1e-5)
    model.close()


def test_embed_in_parts_is_embed_at_once(tmp_path: Path) -> None:
    """A decoder's rows before the last are computed a batch at a time."""
    model = Model(EMBEDDERS["decoder, last"](tmp_path / "tiny.gguf"))
    rng = random.Random(0)
    tokens = np.array([rng.randrange(10, 260) for _ in range(500)], np.int32)
    context = EmbeddingContext(model, 512, threads=1)
    context._batch = Batch(64)
    (vector,) = context.embed([tokens]) or []
    assert vector == pytest.approx(reference(model, tokens), abs=2e-2)
    model.close()


def test_embed_aborted_gives_nothing_and_the_next_is_right(model: Model) -> None:
    context = EmbeddingContext(model, 512, threads=1)
    tokens = ids_of(model, TEXTS[3])
    expected = context.embed([tokens])
    context.abort.set()
    assert context.embed([tokens]) is None
    context.abort.clear()
    np.testing.assert_array_equal(context.embed([tokens]), expected)


def test_edges_are_those_that_llama_cpp_adds(model: Model) -> None:
    for text in TEXTS:
        assert ids_of(model, text).tolist() == model.vocab.tokenize(text, special=False, edges=True)


@pytest.mark.parametrize("kind", UNSERVABLE)
def test_unservable_model_says_why(tmp_path: Path, kind: str) -> None:
    model = Model(UNSERVABLE[kind](tmp_path / "tiny.gguf"))
    assert model.unservable is not None
    assert kind in model.unservable
    model.close()


def test_embed_applies_the_adapters(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    tokens = ids_of(model, "hello")
    adapter = Adapter(model, write_lora(tmp_path / "lora.gguf"))
    (plain,) = EmbeddingContext(model, 256, 1).embed([tokens]) or []
    (adapted,) = EmbeddingContext(model, 256, 1, [adapter]).embed([tokens]) or []
    assert not np.allclose(plain, adapted, atol=1e-2)
    model.close()
