"""The words every package shares: a request going down, events coming up.

All of them are msgspec structs, so they cross the pipe between daemon and runner unchanged. Nothing
here knows HTTP, JSON bodies, token ids of a model, or native code.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length"]


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a conversation. `content` is text; parts were joined by the dialect, in order."""

    role: Role
    content: str
    name: str | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a Modelfile, a GGUF or a request may set. `None` means: not set here, look further down.

    Names and meanings are llama.cpp's. `stop` adds to lower layers' stops, the rest replace them.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    ctx: int | None = None

    def over(self, lower: Options) -> Options:
        """These options laid over `lower`: what is set here wins, stops are joined in order."""
        stops = tuple(dict.fromkeys((*lower.stop, *self.stop)))
        set_here = {
            name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(lower, **{**set_here, "stop": stops})


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How the next token is chosen; every value decided. The defaults are llama.cpp's.

    temperature  0 or less takes the likeliest token (greedy); otherwise logits are divided by it
    top_k        keep the k likeliest tokens; 0 keeps all
    top_p        keep the likeliest tokens whose probabilities sum to p; 1 keeps all
    min_p        drop tokens less likely than p times the likeliest; 0 keeps all
    typical_p    locally typical sampling; 1 is off
    repeat_*     penalise tokens seen in the last n (0: off, -1: the whole context); 1.0 is off
    seed         None draws a fresh one; the one used is reported
    logit_bias   token id -> added to its logit
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    logit_bias: dict[int, float] = {}

    @classmethod
    def from_options(cls, options: Options, logit_bias: dict[int, float]) -> SamplingParams:
        """The decided values: an option that is set, else the default."""
        chosen = {
            name: value
            for name in cls.__struct_fields__
            if name != "logit_bias" and (value := getattr(options, name)) is not None
        }
        return cls(logit_bias=logit_bias, **chosen)


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


class GenerateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt and what is wanted of it. Exactly one of `messages` and `prompt` is set.

    messages         a conversation for the model's chat template
    prompt           text or token ids that go to the model as they are (control tokens in text parse)
    n                answers to the one prompt; answer i has index i, and seed + i where a seed is set
    logprobs         None: off; k: each token's log probability and the k likeliest alternatives
    template_kwargs  extra variables for the chat template
    echo             put the prompt in front of the answer (raw prompts only)
    template         Jinja source of a chat template to use in place of the model's
    keep_alive       seconds that the model stays loaded once it is idle (inf: for ever); None leaves
                     that as it is
    output_format    what the answers must look like; None: free text
    context          token ids in front of the prompt: the `Stopped.tokens` of an earlier answer
    tokens           whether `Stopped` carries token ids
    suffix           text that the answer shall fit before, where the prompt is the text in front of it
    """

    id: str
    model: str
    messages: tuple[Message, ...] | None = None
    prompt: str | tuple[int, ...] | None = None
    options: Options = Options()
    logit_bias: dict[int, float] = {}
    n: int = 1
    logprobs: int | None = None
    template_kwargs: dict[str, Any] = {}
    echo: bool = False
    template: str | None = None
    keep_alive: float | None = None
    output_format: OutputFormat | None = None
    context: tuple[int, ...] = ()
    tokens: bool = False
    suffix: str | None = None


class TopLogprob(msgspec.Struct, frozen=True, array_like=True):
    """A candidate: its id, its raw bytes (a token may hold part of a character), its log probability."""

    id: int
    raw: bytes
    logprob: float


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """A chosen token beside the likeliest ones, from the model's logits before any sampler."""

    id: int
    raw: bytes
    logprob: float
    top: tuple[TopLogprob, ...] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one request over all its answers; `cached` counts prompt tokens not computed again."""

    prompt: int
    completion: int
    cached: int = 0


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds. `queue`: until the first prompt token is computed; `prefill`: the prompt;
    `decode`: first to last token; `ttft`: arrival to first token; `itl`: mean time between tokens;
    `load`: the part of `queue` until the model was loaded and had room."""

    queue_ms: float
    prefill_ms: float
    decode_ms: float
    ttft_ms: float
    itl_ms: float
    load_ms: float = 0.0


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An error as it crosses a process border; `code` is a key of the table in `llmrun.errors`."""

    code: str
    message: str
    hint: str = ""
    field: str | None = None
    details: dict[str, Any] = {}


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The prompt is tokenised and its answers have sequences; sent once, before any text."""

    prompt_tokens: int
    seed: int


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Prompt tokens computed so far (`cached` of them came from the cache)."""

    processed: int
    total: int
    cached: int


class Text(msgspec.Struct, frozen=True, tag="text"):
    """More of answer `index`: valid UTF-8, never part of a stop string. May be empty with logprobs."""

    index: int
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


class Stopped(msgspec.Struct, frozen=True, tag="stopped"):
    """Answer `index` is complete. `stop_sequence` names the stop string that ended it, if one did.
    `tokens`: prompt and answer as token ids, where the request wanted them."""

    index: int
    reason: FinishReason
    stop_sequence: str | None = None
    tokens: tuple[int, ...] = ()


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The request ended well; the last event."""

    usage: Usage
    timings: Timings


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The request ended badly; the last event."""

    error: ErrorInfo


Event = Started | Progress | Text | Stopped | Finished | Failed
Terminal = Finished | Failed
