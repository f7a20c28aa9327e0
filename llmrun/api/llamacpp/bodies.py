"""The bodies of llama-server's own routes: every field, its type and its bounds.

Names and meanings are those of https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md.
llama-server passes over names that it does not know; here they are errors.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.bounds import INT32, Stops
from llmrun.api.llama_format import LlamaFormat
from llmrun.api.llamacpp.logit_bias import LogitBias
from llmrun.api.llamacpp.prompts import Prompts
from llmrun.api.options import LlamaSampling, options_of, within
from llmrun.api.schema import Body, Ignored, Refused, wrong
from llmrun.types import Options

MAX_CHOICES = 128
MAX_SNIPPETS = 1024
_DRAFTS = Ignored("drafts change no answer, and are made where they pay")
_CELLS = Ignored("answers get their cells by themselves")


def _seed(value: object) -> object:
    """LLAMA_DEFAULT_SEED, which clients send back as they read it, is no seed."""
    return -1 if value == 2**32 - 1 else value


class Adapter(Body):
    id: Annotated[int, Field(ge=0, description="which of the model's adapters")]
    scale: Annotated[float, Field(description="1 as trained, 0 not at all")]


class OfModel(Body):
    model: Annotated[
        str | None,
        Field(description="a name that `llmrun list` shows; needed where more than one could be meant"),
    ] = None


class Completing(OfModel, LlamaSampling, LlamaFormat):
    """The fields that `/completion` and `/infill` share."""

    temperature: Annotated[
        float | None, within("temperature", "0 takes the likeliest token; default: the model's, else 0.8")
    ] = None
    top_p: Annotated[float | None, within("top_p", "default: the model's, else 0.95")] = None
    presence_penalty: Annotated[float | None, within("presence_penalty", "0 is off")] = None
    frequency_penalty: Annotated[float | None, within("frequency_penalty", "0 is off")] = None
    seed: Annotated[
        int | None,
        Field(ge=-1, lt=2**63, description="answer i uses seed + i; −1, 4294967295 or none: a fresh one"),
        BeforeValidator(_seed),
    ] = None
    n_predict: Annotated[
        int | None,
        Field(
            ge=-1,
            le=INT32,
            description="most tokens to write; 0 computes the prompt and writes none; −1: until the model "
            "ends or the context is full",
        ),
    ] = None
    max_tokens: Annotated[int | None, Field(ge=-1, le=INT32, description="the same as `n_predict`")] = None
    n_cmpl: Annotated[int | None, Field(ge=1, le=MAX_CHOICES, description="answers to one prompt")] = None
    n: Annotated[int | None, Field(ge=1, le=MAX_CHOICES, description="the same as `n_cmpl`")] = None
    stop: Annotated[Stops | None, Field(description="a string or a list of them, none empty")] = None
    logit_bias: Annotated[
        LogitBias | None,
        Field(description="`[[token, bias], …]` or an object; a token is an id or text; false rules it out"),
    ] = None
    n_probs: Annotated[
        int | None, Field(ge=0, le=1000, description="log probabilities of so many alternatives; 0 is off")
    ] = None
    logprobs: Annotated[int | None, Field(ge=0, le=1000, description="the same as `n_probs`")] = None
    n_indent: Annotated[
        int | None, Field(ge=0, le=INT32, description="the answer ends before a line indented less")
    ] = None
    t_max_predict_ms: Annotated[
        int | None,
        Field(
            ge=-1, le=INT32, description="after so many ms of answer it ends with its line; 0, −1: no limit"
        ),
    ] = None
    stream: Annotated[bool | None, Field(description="server-sent events")] = None
    return_tokens: Annotated[bool | None, Field(description="`tokens` holds the answer's ids")] = None
    return_progress: Annotated[
        bool | None, Field(description="`prompt_progress` while a stream's prompt is computed")
    ] = None
    timings_per_token: Annotated[bool | None, Field(description="`timings` in each part of a stream")] = None
    response_fields: Annotated[
        list[str] | None,
        Field(max_length=64, description="these fields alone; `a/b` is field `b` of `a`, under that name"),
    ] = None
    lora: Annotated[list[Adapter] | None, Field(max_length=64, description="adapters that count")] = None
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
    sse_ping_interval: Annotated[int | None, Ignored("a quiet stream gets a comment every few seconds")] = (
        None
    )
    stream_options: Annotated[object, Ignored("a stream's last part always has the counts")] = None
    backend_sampling: Annotated[bool | None, Ignored("where sampling runs changes no answer")] = None
    verbose: Annotated[bool | None, Ignored("`generation_settings` and `timings` are always there")] = None
    reasoning_format: Annotated[str | None, Ignored("the text comes as the model writes it")] = None
    speculative_max: Annotated[object, Field(alias="speculative.n_max"), _DRAFTS] = None
    speculative_min: Annotated[object, Field(alias="speculative.n_min"), _DRAFTS] = None
    speculative_p_min: Annotated[object, Field(alias="speculative.p_min"), _DRAFTS] = None
    post_sampling_probs: Annotated[object, Refused("probabilities after the samplers", unless=(False,))] = (
        None
    )
    grammar_lazy: Annotated[object, Refused("a grammar that begins later", unless=(False,))] = None
    grammar_triggers: Annotated[object, Refused("a grammar that begins later", unless=([],))] = None
    preserved_tokens: Annotated[object, Refused("tokens that show in the text", unless=([],))] = None
    image_data: Annotated[object, Refused("image input", unless=([],))] = None
    penalize_nl: Annotated[object, Refused("a penalty of newlines apart", unless=(False, True))] = None
    tfs_z: Annotated[object, Refused("tail-free sampling", unless=(1, 1.0))] = None

    @model_validator(mode="after")
    def _one_value_for_two_names(self) -> Completing:
        for name, other in (("max_tokens", "n_predict"), ("n", "n_cmpl"), ("logprobs", "n_probs")):
            mine, theirs = getattr(self, name), getattr(self, other)
            if mine is not None and theirs is not None and mine != theirs:
                raise wrong(f"is {mine} but {other} is {theirs}: send one", name)
        return self

    @property
    def limit(self) -> int | None:
        """Most tokens; None where the body says nothing of it, −1 where it wants no limit."""
        return self.max_tokens if self.n_predict is None else self.n_predict

    @property
    def answers(self) -> int:
        return self.n_cmpl or self.n or 1

    @property
    def alternatives(self) -> int:
        """0: no probabilities are wanted."""
        return self.n_probs or self.logprobs or 0

    def options(self) -> Options:
        """What is set here, in the daemon's words."""
        # No limit is a limit that the context reaches first: it beats one that the model brings.
        limit = INT32 if self.limit == -1 else self.limit
        return options_of(self, max_tokens=limit, stop=self.stop, ctx=None)


class LlamaCompletionBody(Completing):
    prompt: Annotated[
        Prompts,
        Field(description="text, token ids, texts and ids in turn, or a list of these"),
    ]


class Extra(Body):
    text: Annotated[str, Field(description="a piece of a file of the project")]
    filename: Annotated[str | None, Field(description="its name; default: `tmp`")] = None
    time: Annotated[object, Ignored("when an editor took the piece")] = None


class InfillBody(Completing):
    input_prefix: Annotated[str, Field(description="the text in front of the gap")]
    input_suffix: Annotated[str, Field(description="the text behind it")]
    input_extra: Annotated[
        list[Extra] | None,
        Field(max_length=MAX_SNIPPETS, description="other files of the project, in pieces"),
    ] = None
    prompt: Annotated[str | None, Field(description="the begun line; goes behind `input_prefix`")] = None


class TokenizeBody(OfModel):
    content: Annotated[str, Field(description="the text")]
    add_special: Annotated[bool | None, Field(description="with BOS where the model adds it")] = None
    parse_special: Annotated[bool | None, Field(description="control tokens parse (the default)")] = None
    with_pieces: Annotated[bool | None, Field(description="each token's text beside its id")] = None


class DetokenizeBody(OfModel):
    tokens: Annotated[
        list[Annotated[int, Field(ge=0, le=INT32)]], Field(description="ids of the model's vocabulary")
    ]
