from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.chat.pair import PairEncoder
from llmrun.errors import LlmrunError
from llmrun.llama import Model
from llmrun.runner.vectors import VectorDesk, score_of
from llmrun.types import EmbedRequest, Options, RankRequest
from tests.support.kinds import EMBEDDERS, RANKERS, Make

LONGEST = 16
CLS, SEP = 2, 3


def desk_of(folder: Path, make: Make) -> VectorDesk:
    model = Model(make(folder / "tiny.gguf"))
    return VectorDesk("tiny", model, PairEncoder(None, model.vocab, model.vocab.pair_edges), LONGEST)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorDesk]:
    made = desk_of(tmp_path_factory.mktemp("bert"), EMBEDDERS["encoder, mean"])
    yield made
    made.model.close()


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorDesk]:
    made = desk_of(tmp_path_factory.mktemp("ranker"), RANKERS["encoder"])
    yield made
    made.model.close()


def asked(*inputs: str | tuple[int, ...], **wanted: object) -> EmbedRequest:
    return EmbedRequest(id="r", model="tiny", inputs=inputs, **wanted)  # type: ignore[arg-type]


def refusal(desk: VectorDesk, request: EmbedRequest | RankRequest) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        desk.embedding(request, 0.0) if isinstance(request, EmbedRequest) else desk.ranking(request, 0.0)
    return caught.value


def test_embedding_text_gets_the_tokens_that_the_model_wants_around_it(desk: VectorDesk) -> None:
    made = desk.embedding(asked("ab", "[SEP] c"), 3.5)
    vocab = desk.model.vocab
    assert made.inputs[0].tolist() == [CLS, *vocab.tokenize("ab", special=False), SEP]
    assert made.inputs[1].tolist().count(SEP) == 1
    assert (made.truncated, made.arrived, made.score) == ((0, 0), 3.5, None)


def test_embedding_token_ids_are_taken_as_they_are(desk: VectorDesk) -> None:
    assert desk.embedding(asked((5, 6, 7)), 0.0).inputs[0].tolist() == [5, 6, 7]


def test_embedding_too_long_is_refused_with_both_counts(desk: VectorDesk) -> None:
    error = refusal(desk, asked("ab", "a" * 20))
    assert (error.kind.code, error.field) == ("context_length_exceeded", "input.1")
    assert error.details == {"prompt_tokens": 22, "context": LONGEST}
    assert "22" in error.message
    assert "16" in error.message


def test_embedding_too_long_is_cut_at_its_end_where_that_is_asked(desk: VectorDesk) -> None:
    made = desk.embedding(asked("a" * 14, "a" * 15, tuple(range(5, 25)), truncate=True), 0.0)
    assert made.truncated == (0, 1, 4)
    assert [len(tokens) for tokens in made.inputs] == [LONGEST] * 3
    assert made.inputs[1].tolist() == made.inputs[0].tolist()
    assert made.inputs[2].tolist() == list(range(5, 21))


def test_embedding_smaller_context_of_the_request_is_kept(desk: VectorDesk) -> None:
    error = refusal(desk, asked("a" * 10, options=Options(ctx=8)))
    assert error.details == {"prompt_tokens": 12, "context": 8}
    assert refusal(desk, asked("a" * 10, options=Options(ctx=2), truncate=True)).details["context"] == 2


@pytest.mark.parametrize("nothing", ["", " ", ()])
def test_embedding_empty_input_is_refused(desk: VectorDesk, nothing: str | tuple[int, ...]) -> None:
    error = refusal(desk, asked("ab", nothing))
    assert (error.kind.status, error.field) == (400, "input.1")


@pytest.mark.parametrize("token", [-1, 84])
def test_embedding_unknown_token_is_refused(desk: VectorDesk, token: int) -> None:
    error = refusal(desk, asked((5, token)))
    assert (error.kind.status, error.field) == (400, "input.0")
    assert "0 to 83" in error.message


@pytest.mark.parametrize("dimensions", [0, 65])
def test_embedding_dimensions_that_the_model_has_not_are_refused(desk: VectorDesk, dimensions: int) -> None:
    error = refusal(desk, asked("ab", dimensions=dimensions))
    assert error.field == "dimensions"
    assert "64" in error.message


def test_embedding_model_that_ranks_says_so(ranker: VectorDesk) -> None:
    assert "ranks" in refusal(ranker, asked("ab")).message


def test_ranking_model_without_a_head_says_so(desk: VectorDesk) -> None:
    error = refusal(desk, RankRequest(id="r", model="tiny", query="a", documents=("b",)))
    assert (error.kind.status, error.field) == (400, "model")


def test_ranking_pairs_query_and_document(ranker: VectorDesk) -> None:
    made = ranker.ranking(RankRequest(id="r", model="tiny", query="a", documents=("b", "c")), 0.0)
    tokenize = ranker.model.vocab.tokenize
    query, first = tokenize("a", special=False), tokenize("b", special=False)
    assert made.inputs[0].tolist() == [CLS, *query, SEP, *first, SEP]
    assert (len(made.inputs), made.score) == (2, 0)


def test_ranking_document_too_long_is_refused_with_both_counts(ranker: VectorDesk) -> None:
    error = refusal(ranker, RankRequest(id="r", model="tiny", query="a", documents=("b", "c" * 20)))
    assert error.field == "documents.1"
    assert error.details == {"prompt_tokens": 24, "context": LONGEST}


@pytest.mark.parametrize(
    ("classes", "score"),
    [(("",), 0), (("anything",), 0), (("no", "yes"), 1), (("Yes", "No"), 0), (("joy", "anger"), None)],
)
def test_score_is_the_only_number_or_the_one_that_says_yes(classes: tuple[str, ...], score: int) -> None:
    assert score_of(classes) == score
