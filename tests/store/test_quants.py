from __future__ import annotations

from dataclasses import replace

import pytest

from llmrun.errors import NOT_FOUND, LlmrunError
from llmrun.store.hardware import Machine
from llmrun.store.quants import Weights, choose, shard_siblings, split_label, weights_in

GB = 1 << 30


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen3-4B-Q4_K_M.gguf", ("Qwen3-4B", "Q4_K_M")),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", ("SmolLM2-135M-Instruct", "Q4_1")),
        ("qwen2.5-coder-7b-instruct-q4_k_m.gguf", ("qwen2.5-coder-7b-instruct", "q4_k_m")),
        ("gemma-4-26B-A4B-it-UD-Q4_K_XL.gguf", ("gemma-4-26B-A4B-it", "UD-Q4_K_XL")),
        ("gpt-oss-20b-MXFP4.gguf", ("gpt-oss-20b", "MXFP4")),
        ("x-IQ2_XXS.gguf", ("x", "IQ2_XXS")),
        ("x-IQ4_NL.gguf", ("x", "IQ4_NL")),
        ("model-f16.gguf", ("model", "f16")),
        ("Big-Q8_0-00001-of-00003.gguf", ("Big", "Q8_0")),
        ("Q4_K_M/Big-00001-of-00002.gguf", ("Big", "Q4_K_M")),
        ("plain.gguf", ("plain", "")),
        ("Q8_0.gguf", ("", "Q8_0")),
    ],
)
def test_split_label_finds_the_quant_publishers_write(name: str, expected: tuple[str, str]) -> None:
    assert split_label(name) == expected


def test_shard_siblings_are_all_shards_in_order() -> None:
    assert shard_siblings("a/X-00002-of-00003.gguf") == tuple(f"a/X-0000{i}-of-00003.gguf" for i in (1, 2, 3))
    assert shard_siblings("x.gguf") == ("x.gguf",)


def test_weights_in_groups_shards_and_leaves_other_files_out() -> None:
    sizes: dict[str, int | None] = {
        "README.md": 1,
        "x-Q4_0.gguf": 10,
        "mmproj-F16.gguf": 5,
        "imatrix.gguf": 5,
        "Q8_0/x-Q8_0-00001-of-00002.gguf": 7,
        "Q8_0/x-Q8_0-00002-of-00002.gguf": 8,
        "x-F16-00001-of-00002.gguf": 9,  # its other shard is missing
    }
    assert weights_in(sizes) == [
        Weights("Q4_0", ("x-Q4_0.gguf",), 10),
        Weights("Q8_0", ("Q8_0/x-Q8_0-00001-of-00002.gguf", "Q8_0/x-Q8_0-00002-of-00002.gguf"), 15),
    ]


def offered(**sizes: int) -> list[Weights]:
    return [Weights(label.replace("UD_", "UD-"), (f"{label}.gguf",), size) for label, size in sizes.items()]


LAPTOP = Machine(available=16 * GB, total=16 * GB, features=frozenset({"avx2"}))
PHONE = Machine(available=16 * GB, total=16 * GB, features=frozenset({"dotprod"}))


@pytest.mark.parametrize(
    ("there", "quant", "expected"),
    [
        (offered(Q4_K_M=3 * GB, Q8_0=5 * GB), None, "Q4_K_M"),
        (offered(Q4_K_M=GB // 2, Q8_0=GB // 2), None, "Q8_0"),
        (offered(Q8_0=5 * GB, UD_Q4_K_XL=3 * GB), None, "UD-Q4_K_XL"),
        (offered(F16=9 * GB, Q6_K=5 * GB), None, "Q6_K"),
        (offered(MXFP4=12 * GB, F16=13 * GB), None, "MXFP4"),
        (offered(Q4_1=4_780_000_000, Q4_0=4_340_000_000), None, "Q4_0"),
        (offered(Q2_K=3 * GB, Q3_K_M=4 * GB), None, "Q3_K_M"),
        (offered(Q4_K_M=3 * GB, Q8_0=5 * GB), "q8_0", "Q8_0"),
        (offered(UD_Q4_K_M=3 * GB), "Q4_K_M", "UD-Q4_K_M"),
        (offered(UD_Q4_K_M=3 * GB, Q4_K_M=3 * GB), "Q4_K_M", "Q4_K_M"),
    ],
)
def test_choose_takes_what_is_asked_or_the_best_and_says_why(
    there: list[Weights], quant: str | None, expected: str
) -> None:
    weights, why = choose("o/r", there, quant, LAPTOP)
    assert weights.label == expected
    assert why.startswith(expected)
    assert "\n" not in why


EIGHT_B = {
    "Q8_0": 7_960_000_000,
    "Q6_K": 6_140_000_000,
    "Q5_K_M": 5_330_000_000,
    "Q4_K_M": 4_580_000_000,
    "Q4_0": 4_340_000_000,
    "Q3_K_M": 3_740_000_000,
    "Q2_K": 2_960_000_000,
}


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (LAPTOP, "Q4_K_M"),
        (replace(LAPTOP, available=6 * GB), "Q4_K_M"),
        (replace(LAPTOP, available=int(5.5 * GB)), "Q4_0"),
        (replace(LAPTOP, available=5 * GB), "Q3_K_M"),
        (replace(LAPTOP, available=4 * GB), "Q2_K"),
        (replace(LAPTOP, available=1 * GB), "Q2_K"),
        (replace(LAPTOP, gpu_memory=8 * GB), "Q4_K_M"),
        (replace(LAPTOP, gpu_memory=5 * GB), "Q3_K_M"),
        (replace(LAPTOP, gpu_memory=1 * GB), "Q4_K_M"),
    ],
)
def test_choose_takes_the_best_that_fits_the_machine(machine: Machine, expected: str) -> None:
    assert choose("o/r", offered(**EIGHT_B), None, machine)[0].label == expected


def test_choose_types_with_quick_kernels_come_first_where_cores_are_what_limits() -> None:
    there = offered(Q5_1=5_650_000_000, Q4_0=EIGHT_B["Q4_0"])
    for cores, expected in ((1, "Q4_0"), (8, "Q5_1")):
        for machine in (LAPTOP, PHONE):
            assert choose("o/r", there, None, replace(machine, cores=cores))[0].label == expected
    slow = replace(LAPTOP, cores=8, bandwidth=5e9)
    assert choose("o/r", there, None, slow)[0].label == "Q5_1"


def test_choose_shows_the_runners_up_and_what_does_not_fit() -> None:
    why = choose("o/r", offered(**EIGHT_B), None, LAPTOP)[1]
    assert "else Q5_K_M (5.3 GB), Q6_K (6.1 GB)" in why
    why = choose("o/r", offered(**EIGHT_B), None, replace(LAPTOP, available=GB))[1]
    assert "none fits the 1.1 GB free" in why
    assert choose("o/r", offered(F16=GB), None, LAPTOP)[1].endswith("the only one there is")


def test_choose_quant_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(LlmrunError) as caught:
        choose("o/r", offered(Q4_0=1, Q8_0=2), "Q5_K_M", LAPTOP)
    assert caught.value.kind is NOT_FOUND
    assert "Q5_K_M" in caught.value.message
    assert caught.value.hint == "there are: Q4_0, Q8_0"


def test_choose_repository_without_models_is_refused() -> None:
    with pytest.raises(LlmrunError, match="holds no GGUF model"):
        choose("o/r", [], None, LAPTOP)
