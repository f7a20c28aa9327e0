"""Thin typed owners of llama.cpp's native objects. Only this package imports `llama_cpp`.

An owner frees its object in `close()`, which may be called twice, and never in a finaliser: at
interpreter exit the garbage collector's order is unknown, and freeing a model before its context
crashes. What is still open then is left to the operating system.
"""

from llmrun.llama.adapter import Adapter
from llmrun.llama.batch import Batch, Tokens
from llmrun.llama.context import Context, ContextSettings, DecodeStatus
from llmrun.llama.devices import Device, devices, system_info
from llmrun.llama.embedding import EmbeddingContext, Vector
from llmrun.llama.guide import guide_tokenizer
from llmrun.llama.library import llama_version
from llmrun.llama.model import Model
from llmrun.llama.sampler import SamplerChain
from llmrun.llama.traced_sampler import TracedChain
from llmrun.llama.vocab import Vocab

__all__ = [
    "Adapter",
    "Batch",
    "Context",
    "ContextSettings",
    "DecodeStatus",
    "Device",
    "EmbeddingContext",
    "Model",
    "SamplerChain",
    "Tokens",
    "TracedChain",
    "Vector",
    "Vocab",
    "devices",
    "guide_tokenizer",
    "llama_version",
    "system_info",
]
