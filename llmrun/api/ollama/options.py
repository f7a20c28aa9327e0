"""The object `options` of a request: every name that Ollama knows, its type and its bounds.

Names and meanings are those of Ollama's Modelfile parameters. Ollama passes over names that it does not
know; here they are errors that name the nearest one.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from llmrun.api.bounds import INT32, Stops
from llmrun.api.options import options_of, within
from llmrun.api.schema import Body, Ignored, Refused
from llmrun.types import Options

_AT_START = "the daemon decides it for every model: "


def _whole(value: object) -> object:
    """Numbers like 8.0 count as whole, as they do where all of JSON's numbers are floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = BeforeValidator(_whole)


class ModelOptions(Body):
    num_predict: Annotated[
        int | None,
        Field(
            ge=-2,
            le=INT32,
            description="most tokens to write; 0 computes the prompt and writes none; −1 and −2 go on until "
            "the model ends or the context is full; default: the model's, else −1",
        ),
        Whole,
    ] = None
    num_ctx: Annotated[
        int | None,
        Field(
            ge=1,
            le=INT32,
            description="tokens of prompt and answer together; where the model has fewer it is loaded anew",
        ),
        Whole,
    ] = None
    temperature: Annotated[
        float | None,
        within("temperature", "0 takes the likeliest token; default: the model's, else 0.8"),
    ] = None
    top_k: Annotated[int | None, within("top_k", "0 keeps all; default: the model's, else 40"), Whole] = None
    top_p: Annotated[float | None, within("top_p", "default: the model's, else 0.95")] = None
    min_p: Annotated[float | None, within("min_p", "0 is off; default: the model's, else 0.05")] = None
    typical_p: Annotated[float | None, within("typical_p", "1 is off")] = None
    repeat_last_n: Annotated[int | None, within("repeat_last_n", "0 is off, −1 the whole context"), Whole] = (
        None
    )
    repeat_penalty: Annotated[float | None, within("repeat_penalty", "1 is off")] = None
    presence_penalty: Annotated[float | None, within("presence_penalty", "0 is off")] = None
    frequency_penalty: Annotated[float | None, within("frequency_penalty", "0 is off")] = None
    seed: Annotated[int | None, Field(ge=-1, lt=2**63, description="−1 or none: a fresh one"), Whole] = None
    stop: Annotated[Stops | None, Field(description="a string or a list of them, none empty")] = None
    num_keep: Annotated[
        object, Ignored("what is left out stands behind the system prompt, which is kept")
    ] = None
    num_batch: Annotated[object, Ignored("steps are sized as they go")] = None
    num_gpu: Annotated[object, Ignored(f"{_AT_START}LLMRUN_GPU_LAYERS")] = None
    num_thread: Annotated[object, Ignored(f"{_AT_START}LLMRUN_THREADS")] = None
    main_gpu: Annotated[object, Ignored("llama.cpp chooses the devices")] = None
    numa: Annotated[object, Ignored("a hint for speed alone")] = None
    low_vram: Annotated[object, Ignored("what fits is measured")] = None
    f16_kv: Annotated[object, Ignored(f"{_AT_START}LLMRUN_KV_TYPE")] = None
    use_mmap: Annotated[object, Ignored("a hint for speed alone")] = None
    use_mlock: Annotated[object, Ignored("a hint for speed alone")] = None
    mirostat: Annotated[int | None, within("mirostat", "1 or 2; 0 is off"), Whole] = None
    mirostat_tau: Annotated[float | None, within("mirostat_tau", "with `mirostat`")] = None
    mirostat_eta: Annotated[float | None, within("mirostat_eta", "with `mirostat`")] = None
    time_limit: Annotated[
        float | None, within("time_limit", "llmrun's; seconds, then the answer ends as it is")
    ] = None
    tfs_z: Annotated[object, Refused("tail-free sampling", unless=(1, 1.0))] = None
    penalize_newline: Annotated[object, Refused("a penalty that spares newlines", unless=(True,))] = None
    logits_all: Annotated[object, Refused("logits of every prompt token", unless=(False,))] = None
    vocab_only: Annotated[object, Refused("a model without its weights", unless=(False,))] = None
    embedding_only: Annotated[object, Refused("a model for embeddings alone", unless=(False,))] = None

    def options(self) -> Options:
        """What is set here, in the daemon's words."""
        # No limit is a limit that the context reaches first: it beats one that the model brings.
        endless = self.num_predict is not None and self.num_predict < 0
        limit = INT32 if endless else self.num_predict
        return options_of(self, max_tokens=limit, stop=self.stop, ctx=self.num_ctx)
