"""Fields that llama-server takes wherever it generates, so that its clients may send them to its own routes
and to OpenAI's. In: a body. Out: what it asks of a request beside prompt, samplers and format.

Its samplers are in `llmrun.api.options`, its grammars in `llmrun.api.llama_format`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from llmrun.api.bounds import INT32
from llmrun.api.schema import Body, Ignored, one_value
from llmrun.types import AdapterScale

_CELLS = Ignored("answers get their cells by themselves")
_DRAFTS = Ignored("drafts change no answer, and are made where they pay")


class Adapter(Body):
    id: Annotated[int, Field(ge=0, le=INT32, description="which of the model's adapters")]
    scale: Annotated[float, Field(description="1 as trained, 0 not at all")]


class LlamaFields(Body):
    """See the module. `limit_names` are a dialect's names for the most tokens of an answer; errors speak of
    the last one."""

    limit_names: ClassVar[tuple[str, ...]] = ("n_predict", "max_tokens")

    stream: Annotated[bool | None, Field(description="server-sent events")] = None
    n_predict: Annotated[
        int | None,
        Field(
            ge=-1,
            le=INT32,
            description="llama.cpp's; most tokens to write; 0 computes the prompt and writes none; "
            "−1: until the model ends or the context is full",
        ),
    ] = None
    n_indent: Annotated[
        int | None,
        Field(ge=0, le=INT32, description="llama.cpp's; the answer ends before a line indented less"),
    ] = None
    t_max_predict_ms: Annotated[
        int | None,
        Field(
            ge=-1,
            le=INT32,
            description="llama.cpp's; after so many ms of answer it ends with its line; 0, −1: no limit",
        ),
    ] = None
    lora: Annotated[
        list[Adapter] | None, Field(max_length=64, description="llama.cpp's; adapters that count")
    ] = None
    return_progress: Annotated[
        bool | None,
        Field(description="llama.cpp's; `prompt_progress` while the prompt of a stream is computed"),
    ] = None
    timings_per_token: Annotated[
        bool | None, Field(description="llama.cpp's; `timings` in each part of a stream")
    ] = None
    sse_ping_interval: Annotated[
        int | None,
        Field(
            ge=-1,
            le=INT32,
            description="llama.cpp's; seconds until a quiet stream gets a comment; 0, −1: none",
        ),
    ] = None
    cache_prompt: Annotated[bool | None, Ignored("prompts are cached; greedy text does not depend on it")] = (
        None
    )
    n_cache_reuse: Annotated[int | None, Ignored("prompts are cached by themselves")] = None
    id_slot: Annotated[int | None, _CELLS] = None
    slot_id: Annotated[int | None, _CELLS] = None
    n_keep: Annotated[
        int | None, Ignored("what is left out stands behind the system prompt, which is kept")
    ] = None
    n_discard: Annotated[int | None, Ignored("a context that shifts leaves out half")] = None
    t_max_prompt_ms: Annotated[int | None, Ignored("llama-server has no such limit either")] = None
    backend_sampling: Annotated[bool | None, Ignored("where sampling runs changes no answer")] = None
    speculative_max: Annotated[object, Field(alias="speculative.n_max"), _DRAFTS] = None
    speculative_min: Annotated[object, Field(alias="speculative.n_min"), _DRAFTS] = None
    speculative_p_min: Annotated[object, Field(alias="speculative.p_min"), _DRAFTS] = None

    @model_validator(mode="after")
    def _one_limit(self) -> LlamaFields:
        one_value(self, *self.limit_names)
        return self

    @property
    def limit(self) -> int | None:
        """Most tokens; None where the body says nothing of it, −1 where it wants no limit."""
        found: int | None = one_value(self, *self.limit_names)
        return found

    @property
    def most_tokens(self) -> int | None:
        """The same for the daemon. No limit is a limit that the context reaches first: it beats one that the
        model brings."""
        return INT32 if self.limit == -1 else self.limit

    @property
    def wants_progress(self) -> bool:
        """Whether a stream says how far its prompt is."""
        return bool(self.stream and self.return_progress)

    @property
    def wants_timings(self) -> bool:
        """Whether each part of a stream has the timings so far."""
        return bool(self.stream and self.timings_per_token)

    @property
    def heartbeat(self) -> float | None:
        """Seconds of silence after which a stream gets a comment; None: the daemon's own."""
        if self.sse_ping_interval is None:
            return None
        return self.sse_ping_interval if self.sse_ping_interval > 0 else math.inf

    def wishes(self) -> dict[str, Any]:
        """The fields of a GenerateRequest that are set here."""
        late = self.t_max_predict_ms or 0
        times = self.wants_timings
        return {
            "progress": times or self.wants_progress,
            "pace": times,
            "min_indent": self.n_indent or 0,
            "line_seconds": late / 1e3 if late > 0 else None,
            "adapters": self._adapters(),
        }

    def _adapters(self) -> tuple[AdapterScale, ...] | None:
        if self.lora is None:
            return None
        return tuple(AdapterScale(id=adapter.id, scale=adapter.scale) for adapter in self.lora)
