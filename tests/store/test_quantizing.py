from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmrun.config import Paths
from llmrun.errors import CONFLICT, INVALID_REQUEST, MODEL_LOAD, LlmrunError
from llmrun.store import Store, parse_modelfile, read_header
from llmrun.store.housekeeping import Housekeeper
from llmrun.store.peeking import peek_at
from llmrun.store.progress import PullProgress
from llmrun.store.quantizing import Quantizer, Wish, default_name, type_names, type_of
from tests.support.tiny import Shape, write_llama


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An F32 model whose rows the 256-blocks of K types fit."""
    folder = tmp_path_factory.mktemp("a folder 量")
    return write_llama(folder / "whole.gguf", Shape(embd=256, ff=512, heads=4, kv_heads=2))


def quantized(paths: Paths, source: str | Path, wish: Wish, seen: list[PullProgress] | None = None) -> str:
    peek = peek_at(Store(paths).resolve(str(source)))
    return Quantizer(paths).run(peek, wish, seen.append if seen is not None else None)


@pytest.mark.real
def test_quantize_makes_a_model_that_is_smaller_and_whole(
    paths: Paths, store: Store, whole: Path, progress: list[PullProgress]
) -> None:
    store.create("base", parse_modelfile(f"FROM {whole}\nSYSTEM Hi\nPARAMETER top_k 3\nMESSAGE user a\n"))
    assert quantized(paths, "base", Wish("Q4_K_M", "small:q4"), progress) == "small:q4"
    model = store.resolve("small:q4")
    assert (model.quant, model.in_place, model.path.name) == ("Q4_K_M", False, "small-Q4_K_M.gguf")
    assert model.size < whole.stat().st_size / 4
    assert (model.system, model.options.top_k, len(model.messages)) == ("Hi", 3, 1)
    assert progress[-1].step == "quantize"
    assert progress[-1].completed == progress[-1].total
    keeper = Housekeeper(paths)
    assert keeper.litter() == []
    assert [check.digest for check in keeper.verify("small:q4")] == [True]


@pytest.mark.real
@pytest.mark.parametrize("form", ["gguf", "dat"])
def test_quantize_takes_importance_matrices_of_both_forms(
    paths: Paths, store: Store, whole: Path, tmp_path: Path, form: str
) -> None:
    matrix = write_imatrix(tmp_path / f"imatrix.{form}", whole, form)
    quantized(paths, whole, Wish("IQ2_XXS", "tiny:iq2", imatrix=matrix))
    assert store.resolve("tiny:iq2").quant == "IQ2_XXS"


@pytest.mark.real
@pytest.mark.parametrize("content", [b"", b"GGUF", b"\xff" * 64, struct.pack("<ii", 1, 4) + b"name"])
def test_quantize_with_a_broken_matrix_says_so_and_leaves_nothing(
    paths: Paths, whole: Path, tmp_path: Path, content: bytes
) -> None:
    matrix = tmp_path / "imatrix.dat"
    matrix.write_bytes(content)
    with pytest.raises(LlmrunError, match=r"is no importance matrix|not a usable GGUF") as caught:
        quantized(paths, whole, Wish("Q4_0", "x", imatrix=matrix))
    assert caught.value.kind is MODEL_LOAD
    assert Housekeeper(paths).litter() == []


@pytest.mark.real
def test_quantize_interrupted_leaves_nothing(paths: Paths, whole: Path) -> None:
    def stop(_: PullProgress) -> None:
        raise KeyboardInterrupt

    peek = peek_at(Store(paths).resolve(str(whole)))
    with pytest.raises(KeyboardInterrupt):
        Quantizer(paths).run(peek, Wish("Q8_0", "x"), stop)
    assert Housekeeper(paths).litter() == []
    assert Store(paths).list() == []


def test_quantize_refuses_what_loses_twice_unless_told(paths: Paths, tmp_path: Path) -> None:
    lossy = write_llama(tmp_path / "q8.gguf", Shape(quant=gguf.GGMLQuantizationType.Q8_0))
    with pytest.raises(LlmrunError, match="lose a second time") as caught:
        quantized(paths, lossy, Wish("Q4_0", "x"))
    assert caught.value.kind is INVALID_REQUEST
    assert "--again" in caught.value.hint


@pytest.mark.real
def test_quantize_again_where_told(paths: Paths, store: Store, tmp_path: Path) -> None:
    lossy = write_llama(tmp_path / "q8.gguf", Shape(quant=gguf.GGMLQuantizationType.Q8_0))
    quantized(paths, lossy, Wish("Q4_0", "x", again=True))
    assert store.resolve("x").quant == "Q4_0"


def test_quantize_refuses_a_type_that_needs_a_matrix_and_a_name_that_is_taken(
    paths: Paths, store: Store, whole: Path
) -> None:
    with pytest.raises(LlmrunError, match="importance matrix"):
        quantized(paths, whole, Wish("IQ1_S", "x"))
    store.copy(str(whole), "x")
    with pytest.raises(LlmrunError) as caught:
        quantized(paths, whole, Wish("Q4_0", "x"))
    assert caught.value.kind is CONFLICT


@pytest.mark.parametrize(
    ("text", "kind"), [("q4_0", "Q4_0"), ("Q4_K", "Q4_K_M"), ("fp16", "F16"), ("mxfp4_moe", "MXFP4")]
)
def test_type_of_takes_any_case_and_the_short_forms(text: str, kind: str) -> None:
    assert type_of(text) == kind


def test_type_of_something_else_names_those_there_are() -> None:
    with pytest.raises(LlmrunError) as caught:
        type_of("Q9")
    assert all(name in caught.value.hint for name in ("Q4_0", "IQ4_XS", "TQ2_0"))
    assert "NVFP4" not in type_names()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("smollm2:135m", "smollm2:135m-Q4_0"),
        ("org/some-model:Q8_0", "some-model:Q4_0"),
        ("plain", "plain:Q4_0"),
        ("/a/My-Model-F16.gguf", "my-model-f16:Q4_0"),
    ],
)
def test_default_name_carries_the_type(model: str, name: str) -> None:
    assert default_name(model, "Q4_0") == name


def write_imatrix(path: Path, model: Path, form: str) -> Path:
    """Importances that are all alike, but for their rising."""
    columns = {t.name: t.shape[0] for t in read_header(model).tensors if len(t.shape) > 1}
    if form == "dat":
        entries = [
            struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 2, size)
            + np.linspace(1, 2, size, dtype=np.float32).tobytes()
            for name, size in columns.items()
        ]  # fmt: skip
        path.write_bytes(struct.pack("<i", len(entries)) + b"".join(entries))
        return path
    writer = gguf.GGUFWriter(path, "imatrix")
    writer.add_type("imatrix")
    for name, size in columns.items():
        writer.add_tensor(f"{name}.in_sum2", np.linspace(1, 2, size, dtype=np.float32)[None, :])
        writer.add_tensor(f"{name}.counts", np.full((1, 1), 3, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
