"""How tokens are chosen: what may be set in each layer, and what is decided."""

from __future__ import annotations

import msgspec


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
