from __future__ import annotations

import pytest

from llmrun.store.companions import projector_for


@pytest.mark.parametrize(
    ("weights", "names", "expected"),
    [
        ("m-Q4_0.gguf", ["m-Q4_0.gguf", "README.md"], None),
        (
            "m-Q4_0.gguf",
            ["mmproj-m-F32.gguf", "mmproj-m-BF16.gguf", "mmproj-m-F16.gguf"],
            "mmproj-m-F16.gguf",
        ),
        ("m-Q4_0.gguf", ["m-mmproj-f16.gguf", "M-MMPROJ-Q8_0.GGUF"], "m-mmproj-f16.gguf"),
        ("m-Q4_0.gguf", ["mmproj-model.gguf"], "mmproj-model.gguf"),
        ("a/m-Q4_0.gguf", ["mmproj-F16.gguf", "a/mmproj-F32.gguf", "b/mmproj-F16.gguf"], "a/mmproj-F32.gguf"),
        ("a/m-Q4_0.gguf", ["mmproj-F16.gguf", "b/mmproj-F16.gguf"], "mmproj-F16.gguf"),
        ("m-Q4_0.gguf", ["b/mmproj-F16.gguf", "mmproj.txt"], None),
    ],
)
def test_projector_for_takes_the_nearest_and_best(
    weights: str, names: list[str], expected: str | None
) -> None:
    assert projector_for(weights, names) == expected
