"""Greedy text equals that of `llama_cpp.Llama`, on the same file, token for token."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.llama import Model
from tests.support.models import running

pytestmark = pytest.mark.real

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "The three laws of thermodynamics are",
    "1, 1, 2, 3, 5, 8,",
    "Dear Sir or Madam,",
    "A recipe for pancakes:\n\n1.",
    "The quick brown fox",
    "In the year 2050, computers",
    "Q: Why is the sky blue?\nA:",
    "import numpy as np\n\n",
    "The best way to learn a language is",
    "<|im_start|>user\nTell me a joke.<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nList three fruits.<|im_end|>\n<|im_start|>assistant\n",
    "Water boils at",
    "L'été dernier, nous avons",
    "SELECT name FROM users WHERE",
    "🦙 llamas are",
    "The meaning of life, according to many philosophers, is",
    "It was a dark and stormy night; " * 12,
]


@pytest.mark.timeout(600)  # 2,560 tokens on one thread
def test_greedy_text_of_twenty_prompts_equals_llama_cpp_python(model_path: Path) -> None:
    model = Model(model_path)
    # Imported after ours, which decides which kernels this process may use.
    import llama_cpp

    oracle = llama_cpp.Llama(str(model_path), n_ctx=1024, n_threads=1, flash_attn=True, verbose=False)
    try:
        assert len(PROMPTS) == 20
        for prompt in PROMPTS:
            ids = model.vocab.tokenize(prompt, special=True)
            assert ids == oracle.tokenize(prompt.encode(), add_bos=False, special=True)
            expected = oracle.create_completion(ids, max_tokens=64, temperature=0, repeat_penalty=1.0)
            oracle.reset()
            # Each in an empty cache, with flash attention as the oracle has it: sums over the cells are
            # rounded by where they lie, so that near ties fall by what else is there.
            with running(model, ctx=1024, slots=4, parallel=1, batch=512) as work:
                assert work.answer(ids, max_tokens=64) == expected["choices"][0]["text"]
    finally:
        oracle.close()
        model.close()
        model.close()
