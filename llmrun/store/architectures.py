"""Which of llama.cpp's architectures are not plain decoders, by their GGUF names. Facts of its code.

ENCODERS       attend in both directions and embed (`causal_attn` is false in their GGUFs or in their code)
WITHOUT_CACHE  have no KV cache and no state: encoders, and models that write by diffusion
               (`llama_model::create_memory`)
COMPRESSED     keep what lies far back in a form that cannot be cut (a comment in `llama_model_n_swa`)
"""

from __future__ import annotations

_BERT = frozenset(
    {"bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3"}
)
_PURE = _BERT | {"eurobert", "gemma-embedding"}

ENCODERS = _PURE | {"llama-embed", "t5encoder"}
WITHOUT_CACHE = _PURE | {"dream", "llada", "llada-moe", "rnd1", "wavtokenizer-dec"}
COMPRESSED = frozenset({"deepseek4"})
