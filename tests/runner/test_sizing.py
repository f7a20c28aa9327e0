from __future__ import annotations

from llmrun.runner.sizing import LEAST_CTX, Machine, Sizes, kv_bytes_per_token, sizes


def _sizes(**changed: object) -> Sizes:
    given: dict[str, object] = {
        "machine": Machine(memory=10_000_000, cores=4),
        "weights": 2_000_000,
        "ctx_train": 8192,
        "token_bytes": 1000.0,
        "trimmable": True,
        "ctx": None,
        "parallel": None,
        "threads": None,
        **changed,
    }
    return sizes(**given)  # type: ignore[arg-type]


def test_kv_bytes_of_smollm2_are_those_llama_cpp_allocates() -> None:
    # 30 layers, 3 KV heads of 64: llama.cpp reports 45 MiB for 2,048 cells
    assert kv_bytes_per_token(30, 3 * 64, "f16") * 2048 == 45 * 1024**2


def test_sizes_automatic_context_is_capped_by_memory() -> None:
    assert _sizes().ctx == 4000
    assert _sizes(ctx_train=512).ctx == 512


def test_sizes_without_memory_left_still_offers_the_least() -> None:
    assert _sizes(weights=20_000_000).ctx == LEAST_CTX


def test_sizes_given_values_win() -> None:
    chosen = _sizes(ctx=100_000, parallel=3, threads=1)
    assert (chosen.ctx, chosen.parallel, chosen.threads) == (100_000, 3, 1)


def test_sizes_recurrent_model_keeps_few_states() -> None:
    assert _sizes(trimmable=False, parallel=4).slots == 8
    assert _sizes(parallel=4).slots == 20
    assert _sizes(parallel=200).slots == 256
