"""What is asked of a model."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from llmrun.types.messages import Message, Thinking, Tool, ToolChoice
from llmrun.types.sampling import Options

Overflow = Literal["error", "shift", "truncate_middle"]


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A grammar that every answer must keep to. What of it cannot be had is an error, never left out.

    kind     json_object  any JSON object
             json_schema  a JSON value that validates; `text` is the schema, as JSON
             regex        `text` as a whole (Rust's syntax, no look-around; \\d is 0 to 9)
             lark, gbnf   a grammar in llguidance's dialect of Lark, or in llama.cpp's notation
             choice       one of `choices`
    field    the request field it came from, named in errors
    """

    kind: Literal["json_object", "json_schema", "regex", "lark", "gbnf", "choice"]
    text: str = ""
    choices: tuple[str, ...] = ()
    field: str = "response_format"


class AdapterScale(msgspec.Struct, frozen=True, kw_only=True):
    """A LoRA adapter of the model, by its place in the order of the Modelfile from 0, and how strongly it
    counts: 1 as trained, 0 not at all."""

    id: int
    scale: float = 1.0


class Snippet(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a file, for a model that fills in another."""

    filename: str
    text: str


class GenerateRequest(msgspec.Struct, frozen=True, kw_only=True, tag="generate"):
    """One prompt and what is wanted of it. Exactly one of `messages` and `prompt` is set.

    messages         a conversation for the model's chat template
    prompt           text, token ids, or texts and ids in turn, that go to the model as they are (control
                     tokens in text parse)
    n                answers to the one prompt; answer i has index i, and seed + i where a seed is set
    logprobs         None: off; k: each token's log probability and the k likeliest alternatives
    stages           with logprobs: also those after each sampler
    template_kwargs  extra variables for the chat template
    echo             put the prompt in front of the answer (raw prompts only); with logprobs, its tokens' too
    template         Jinja source of a chat template to use in place of the model's
    keep_alive       seconds that the model stays loaded once it is idle (inf: for ever); None leaves
                     that as it is
    output_format    what the answers must look like; None: free text
    context          token ids in front of the prompt: the `Stopped.tokens` of an earlier answer
    tokens           whether `Text` and `Stopped` carry token ids
    progress, pace   whether `Progress` and `Pace` events are wanted
    suffix           text that the answer shall fit before, where the prompt is the text in front of it
    snippets         with `suffix`: what else of the project the model shall see; None: it is told of none
    min_indent       the answer ends before its first further line that is indented by fewer characters
    line_seconds     the answer ends with the first line that is done so long after its first token
    tools            what the model may call
    tool_choice      whether it may, must or must not
    thinking         what is said of its reasoning; None: nothing
    inline_reasoning  reasoning is part of the text, between its markers as the model writes them
    continues        the last message is the assistant's, unfinished: the answer goes on from it
    overflow         what becomes of a prompt that is too long, or of an answer that fills the context:
                     an error and the end; or the oldest part behind the system prompt, or the middle of
                     the prompt, left out
    client           who asks, for fairness between clients; "" is one client too
    priority         lower begins sooner, whoever asks
    adapters         which of the model's LoRA adapters count; those not named do not. None: all, at 1
    """

    id: str
    model: str
    messages: tuple[Message, ...] | None = None
    prompt: str | tuple[int | str, ...] | None = None
    options: Options = Options()
    logit_bias: dict[int, float] = {}
    n: int = 1
    logprobs: int | None = None
    stages: bool = False
    template_kwargs: dict[str, Any] = {}
    echo: bool = False
    template: str | None = None
    keep_alive: float | None = None
    output_format: OutputFormat | None = None
    context: tuple[int, ...] = ()
    tokens: bool = False
    progress: bool = False
    pace: bool = False
    suffix: str | None = None
    snippets: tuple[Snippet, ...] | None = None
    min_indent: int = 0
    line_seconds: float | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    thinking: Thinking | None = None
    inline_reasoning: bool = False
    continues: bool = False
    overflow: Overflow = "error"
    client: str = ""
    priority: int = 0
    adapters: tuple[AdapterScale, ...] | None = None


class EmbedRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="embed"):
    """Texts, or token ids, to turn into vectors.

    truncate    cut what is longer than the context, and say so; else that is an error
    dimensions  keep so many leading components; None: all
    normalize   bring the vectors to length 1
    keep_alive  as in GenerateRequest
    """

    id: str
    model: str
    inputs: tuple[str | tuple[int, ...], ...]
    truncate: bool = False
    dimensions: int | None = None
    normalize: bool = True
    options: Options = Options()
    keep_alive: float | None = None


class RankRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="rank"):
    """How well each document answers the query, by a model that ranks."""

    id: str
    model: str
    query: str
    documents: tuple[str, ...]
    options: Options = Options()
    keep_alive: float | None = None


class TokenizeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tokenize"):
    """Text, or the prompt of `prompt` (as GenerateRequest would make it), to token ids.

    special  control tokens in `text` parse       edges  BOS (and EOS) where the model adds them
    pieces   whether the answer carries the bytes of each token
    """

    id: str
    model: str
    text: str = ""
    special: bool = False
    edges: bool = False
    pieces: bool = False
    prompt: GenerateRequest | None = None
    keep_alive: float | None = None


class DetokenizeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="detokenize"):
    """Token ids to text."""

    id: str
    model: str
    tokens: tuple[int, ...]
    keep_alive: float | None = None


class RenderRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="render"):
    """The text that the model's template makes of the conversation in `prompt`."""

    id: str
    model: str
    prompt: GenerateRequest
    keep_alive: float | None = None


Lookup = TokenizeRequest | DetokenizeRequest | RenderRequest
"""What a model's vocabulary and template answer by themselves."""
AnyRequest = (
    GenerateRequest | EmbedRequest | RankRequest | TokenizeRequest | DetokenizeRequest | RenderRequest
)
