"""The bodies of llama-server's own routes: every field, its type and its bounds.

Names and meanings are those of https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md.
llama-server passes over names that it does not know; here they are errors.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.bounds import INT32, Stops
from llmrun.api.llama_fields import LlamaFields
from llmrun.api.llama_format import LlamaFormat
from llmrun.api.llamacpp.logit_bias import LogitBias
from llmrun.api.llamacpp.prompts import Prompts
from llmrun.api.options import LlamaSampling, options_of, within
from llmrun.api.schema import Body, Ignored, Refused, one_value, wrong
from llmrun.types import Options

MAX_CHOICES = 128
MAX_SNIPPETS = 1024


def _seed(value: object) -> object:
    """LLAMA_DEFAULT_SEED, which clients send back as they read it, is no seed."""
    return -1 if value == 2**32 - 1 else value


class OfModel(Body):
    model: Annotated[
        str | None,
        Field(description="a name that `llmrun list` shows; needed where more than one could be meant"),
    ] = None


class Completing(OfModel, LlamaFields, LlamaSampling, LlamaFormat):
    """The fields that `/completion` and `/infill` share."""

    temperature: Annotated[
        float | None, within("temperature", "0 takes the likeliest token; default: the model's, else 0.8")
    ] = None
    top_p: Annotated[float | None, within("top_p", "default: the model's, else 0.95")] = None
    presence_penalty: Annotated[float | None, within("presence_penalty", "0 is off")] = None
    frequency_penalty: Annotated[float | None, within("frequency_penalty", "0 is off")] = None
    seed: Annotated[
        int | None,
        Field(ge=-1, lt=2**64, description="answer i uses seed + i; −1, 4294967295 or none: a fresh one"),
        BeforeValidator(_seed),
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
    post_sampling_probs: Annotated[
        bool | None, Field(description="probabilities after the samplers, as `prob` and `top_probs`")
    ] = None
    sampler_probs: Annotated[
        bool | None,
        Field(description="`samplers` beside each token: candidates and probabilities after each sampler"),
    ] = None
    return_tokens: Annotated[bool | None, Field(description="`tokens` holds the answer's ids")] = None
    response_fields: Annotated[
        list[str] | None,
        Field(max_length=64, description="these fields alone; `a/b` is field `b` of `a`, under that name"),
    ] = None
    stream_options: Annotated[object, Ignored("a stream's last part always has the counts")] = None
    verbose: Annotated[bool | None, Ignored("`generation_settings` and `timings` are always there")] = None
    reasoning_format: Annotated[str | None, Ignored("the text comes as the model writes it")] = None
    grammar_lazy: Annotated[object, Refused("a grammar that begins later", unless=(False,))] = None
    grammar_triggers: Annotated[object, Refused("a grammar that begins later", unless=([],))] = None
    preserved_tokens: Annotated[object, Refused("tokens that show in the text", unless=([],))] = None
    image_data: Annotated[object, Refused("image input", unless=([],))] = None
    penalize_nl: Annotated[object, Refused("a penalty of newlines apart", unless=(False, True))] = None
    penalty_last_n: Annotated[object, Ignored("Tabby's; llama-server knows no such field either")] = None
    tfs_z: Annotated[object, Refused("tail-free sampling", unless=(1, 1.0))] = None

    @model_validator(mode="after")
    def _one_value_for_two_names(self) -> Completing:
        one_value(self, "n_cmpl", "n")
        one_value(self, "n_probs", "logprobs")
        if self.sampler_probs and not self.alternatives:
            raise wrong("is only allowed with n_probs", "sampler_probs")
        return self

    @property
    def answers(self) -> int:
        return self.n_cmpl or self.n or 1

    @property
    def alternatives(self) -> int:
        """0: no probabilities are wanted."""
        return self.n_probs or self.logprobs or 0

    def options(self) -> Options:
        """What is set here, in the daemon's words."""
        return options_of(self, max_tokens=self.most_tokens, stop=self.stop, ctx=None)


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
