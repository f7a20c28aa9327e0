"""One request seen closely: the prompt's tokens, and each step of the answer. Shapes and a body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from llmrun.client.sse import event_data
from llmrun.client.wire import WireError, WireProgress
from llmrun.types import Options


class Piece(msgspec.Struct, frozen=True):
    """A token and its text; bytes that are no text by themselves are numbers."""

    id: int
    piece: str | list[int]

    @property
    def raw(self) -> bytes:
        return self.piece.encode() if isinstance(self.piece, str) else bytes(self.piece)


class RenderedPrompt(msgspec.Struct, frozen=True):
    """What the chat template makes of a conversation: the text, and the tokens that the model is given."""

    prompt: str
    tokens: list[Piece] = []


class Candidate(msgspec.Struct, frozen=True):
    """A token and its log probability, before any sampler."""

    id: int
    bytes: list[int]
    logprob: float


class Survivor(msgspec.Struct, frozen=True):
    """A token and its probability, after a sampler."""

    id: int
    bytes: list[int]
    prob: float


class Sampler(msgspec.Struct, frozen=True):
    """What a sampler made of the candidates: how many are left, the likeliest of them, and the probability of
    the one that was chosen in the end."""

    name: str
    left: int
    prob: float
    top_probs: list[Survivor] = []


class ChosenToken(Candidate, frozen=True):
    """The one that was chosen, beside the likeliest in its place, before any sampler and after each."""

    top_logprobs: list[Candidate] = []
    samplers: list[Sampler] = []


class Times(msgspec.Struct, frozen=True):
    """Milliseconds by the engine's clock. `predicted_ms`: from the answer's first token to the newest of this
    part; the others are the whole's, as in `llmrun.types.Timings`, and in the last part only."""

    predicted_ms: float = 0.0
    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    ttft_ms: float = 0.0


class Step(msgspec.Struct, frozen=True):
    """A part of the stream; the last, with `stop`, has the figures of the whole."""

    content: str = ""
    prompt_progress: WireProgress | None = None
    completion_probabilities: list[ChosenToken] = []
    stop: bool = False
    stop_type: str | None = None
    tokens_evaluated: int = 0
    tokens_predicted: int = 0
    tokens_cached: int = 0
    timings: Times = Times()
    generation_settings: dict[str, Any] = {}
    error: WireError | None = None


_decoder = msgspec.json.Decoder(Step)


def steps(chunks: Iterable[bytes]) -> Iterator[Step]:
    """The parts of the stream in `chunks`, to the last. LlmrunError where the daemon reports an error."""
    for data in event_data(chunks):
        step = _decoder.decode(data)
        if step.error:
            raise step.error.error()
        yield step


def traced_body(model: str, tokens: Sequence[int], options: Options, candidates: int) -> dict[str, Any]:
    """A streamed request for the continuation of token ids, with the likeliest `candidates` of each step. The
    context is not in it: that is the model's, loaded before."""
    chosen = msgspec.to_builtins(msgspec.structs.replace(options, ctx=None))
    return {
        "model": model,
        "prompt": list(tokens),
        **chosen,
        "n_probs": candidates,
        "sampler_probs": True,
        "stream": True,
        "return_progress": True,
        "timings_per_token": True,
    }
