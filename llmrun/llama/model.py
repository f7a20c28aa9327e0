"""Owner of a loaded model's weights."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama.library import lib, take_error
from llmrun.llama.mapped import Parts, release
from llmrun.llama.vocab import Vocab
from llmrun.store.architectures import COMPRESSED, ENCODERS, WITHOUT_CACHE
from llmrun.store.plan import RELEASE_STEP

Pooling = Literal["mean", "cls", "last", "rank"]
# enum llama_pooling_type in llama.h; 0 and what is missing say nothing
_POOLING: dict[str, Pooling] = {"1": "mean", "2": "cls", "3": "last", "4": "rank"}


class _Closable(Protocol):
    def close(self) -> None: ...


def _refused(path: Path, reason: str) -> LlmrunError:
    if unknown := re.search(r"unknown model architecture: '(.+)'", reason):
        return LlmrunError(
            MODEL_LOAD,
            f"llama.cpp does not know models of the architecture {unknown[1]!r}, which {path} is",
            hint="take another model, or a newer llmrun",
        )
    hint = "if the file is damaged, pull it again"
    return LlmrunError(MODEL_LOAD, f"llama.cpp cannot load {path}: {reason}", hint=hint)


class Model:
    """Weights and vocabulary of one GGUF file (the first shard names the rest).

    `gpu_layers` None leaves all layers to the GPU where there is one. `on_progress` gets 0 to 1 from
    the loading thread. `copied`: tells what of its files llama.cpp copies and then reads no more; it is not
    kept in memory twice. Called again and again on that thread too, so it must be quick after the first call,
    and must not raise. Raises MODEL_LOAD where llama.cpp refuses the file; its reason is in the log.
    """

    def __init__(
        self,
        path: Path,
        *,
        gpu_layers: int | None = None,
        on_progress: Callable[[float], None] | None = None,
        copied: Callable[[], Parts] = dict,
    ) -> None:
        params = lib.llama_model_default_params()
        params.n_gpu_layers = -1 if gpu_layers is None else gpu_layers
        due = 0.0

        @lib.llama_progress_callback  # type: ignore[untyped-decorator]  # a ctypes function type
        def report(fraction: float, _user_data: object) -> bool:
            nonlocal due
            if on_progress is not None:
                on_progress(fraction)
            if fraction >= due:
                due = fraction + RELEASE_STEP
                release(copied())
            return True

        params.progress_callback = report
        take_error()
        self._pointer: ctypes.c_void_p | None = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self._pointer:
            raise _refused(path, take_error())
        release(copied())
        self._dependents: list[_Closable] = []
        self.vocab = Vocab(self._pointer)

    @property
    def pointer(self) -> ctypes.c_void_p:
        """The native model, for the other owners of this package."""
        if self._pointer is None:
            raise ValueError("the model is closed")
        return self._pointer

    def adopt(self, dependent: _Closable) -> None:
        """Note an owner of something made from this model: it is closed before the model is."""
        self._dependents.append(dependent)

    def close(self) -> None:
        """Free the weights, after everything made from them. Harmless when called again."""
        for dependent in reversed(self._dependents):
            dependent.close()
        self._dependents.clear()
        if self._pointer is not None:
            lib.llama_model_free(self._pointer)
            self._pointer = None

    @functools.cached_property
    def ctx_train(self) -> int:
        """Tokens of context the model was trained for."""
        return int(lib.llama_model_n_ctx_train(self.pointer))

    @functools.cached_property
    def parameters(self) -> int:
        return int(lib.llama_model_n_params(self.pointer))

    @functools.cached_property
    def size(self) -> int:
        """Bytes of all tensors."""
        return int(lib.llama_model_size(self.pointer))

    @functools.cached_property
    def description(self) -> str:
        """llama.cpp's short name of architecture, size and quant."""
        buffer = ctypes.create_string_buffer(256)
        lib.llama_model_desc(self.pointer, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    @functools.cached_property
    def chat_template(self) -> str | None:
        """The GGUF's own Jinja template."""
        template = lib.llama_model_chat_template(self.pointer, None)
        return bytes(template).decode("utf-8", "replace") if template else None

    @functools.cached_property
    def rank_template(self) -> str | None:
        """The GGUF's own form of a query and a document, with `{query}` and `{document}` in it."""
        template = lib.llama_model_chat_template(self.pointer, b"rerank")
        return bytes(template).decode("utf-8", "replace") if template else None

    @functools.cached_property
    def unservable(self) -> str | None:
        """Why a model of this kind can neither write text nor embed; None where it can."""
        if lib.llama_model_has_encoder(self.pointer):  # T5, its encoder alone, EAGLE-3
            return "has an encoder of its own (models like T5 are not supported)"
        if lib.llama_model_is_diffusion(self.pointer):
            return "is a diffusion model"
        if self.architecture in WITHOUT_CACHE - ENCODERS:
            return f"is a {self.architecture} model, which does not write text"
        return None

    @functools.cached_property
    def trimmable(self) -> bool:
        """Whether its memory of a sequence can be cut at any token: recurrent state cannot."""
        recurrent = lib.llama_model_is_recurrent(self.pointer) or lib.llama_model_is_hybrid(self.pointer)
        return not recurrent and self.architecture not in COMPRESSED

    @functools.cached_property
    def sliding_window(self) -> int:
        """Tokens that its layers with a sliding window look back; 0 where it has none.

        Once a sequence has as many, llama.cpp may give its older cells in those layers to others, and leaves
        them out of what it saves (`llama_kv_cache::find_slot`, `state_write`)."""
        return int(lib.llama_model_n_swa(self.pointer))

    @property
    def saves_whole(self) -> bool:
        """Whether what is saved of a sequence is good for nothing that begins with a part of it."""
        return self.sliding_window > 0 or not self.trimmable

    def metadata(self, key: str) -> str | None:
        """A value of the GGUF as text; numbers and truth values as C writes them."""
        buffer = ctypes.create_string_buffer(256)
        length = lib.llama_model_meta_val_str(self.pointer, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if length >= 0 else None

    @functools.cached_property
    def architecture(self) -> str:
        """The GGUF's name of it."""
        return self.metadata("general.architecture") or ""

    @functools.cached_property
    def causal(self) -> bool:
        """Whether a token sees only those before it."""
        stated = self.metadata(f"{self.architecture}.attention.causal")
        return stated != "false" and self.architecture not in ENCODERS

    @property
    def has_memory(self) -> bool:
        """Whether a context keeps what a token computed for those behind it."""
        return self.architecture not in WITHOUT_CACHE

    # --- what it makes of a whole text

    @functools.cached_property
    def pooling(self) -> Pooling:
        """How one vector is made of those of a text's tokens. Where the GGUF does not say, a decoder's last
        token stands for the text, being the only one that has seen all of it; else the mean does."""
        stated = _POOLING.get(self.metadata(f"{self.architecture}.pooling_type") or "")
        return stated or ("last" if self.causal else "mean")

    @property
    def pools_last_row(self) -> bool:
        """Whether the output of a text's last token is all that its vector is made of."""
        return self.causal and self.pooling in ("last", "rank")

    @functools.cached_property
    def embedding_size(self) -> int:
        """Numbers in the vector of a text."""
        return int(lib.llama_model_n_embd_out(self.pointer))

    @functools.cached_property
    def classes(self) -> tuple[str, ...]:
        """What a ranker's numbers mean, one label for each; empty labels where the GGUF has none."""
        count = int(lib.llama_model_n_cls_out(self.pointer))
        labels = (lib.llama_model_cls_label(self.pointer, index) or b"" for index in range(count))
        return tuple(bytes(label).decode("utf-8", "replace") for label in labels)
