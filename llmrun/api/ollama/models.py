"""Stored and loaded models in Ollama's words: the entries of tags and ps, and what show tells. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from llmrun.store import GGUFHeader, format_modelfile, modelfile_of
from llmrun.store.gguf import LongArray, Value

if TYPE_CHECKING:
    from llmrun.daemon.pool import LoadedModel
    from llmrun.store import StoredModel

Json = dict[str, object]

FOR_EVER = timedelta(seconds=2**63 // 10**9)
"""From now to the time at which a model that never expires is said to: as far as Ollama counts."""
SHORT_ARRAY = 5  # longer arrays are left empty unless asked for
_OLLAMA_NAMES = {"max_tokens": "num_predict", "ctx": "num_ctx"}
_NAME_WIDTH = 30


def parameter_size(count: int) -> str:
    """`134.52M`, `7.2B`: whole numbers without decimals."""
    for unit, size, decimals in (("B", 10**9, 1), ("M", 10**6, 2)):
        if count >= size:
            number = count / size
            return f"{number:.0f}{unit}" if number == int(number) else f"{number:.{decimals}f}{unit}"
    return f"{count / 1000:.0f}K" if count >= 1000 else str(count)


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def digest(model: StoredModel) -> str:
    """The SHA-256 of the weights; of files used in place, which nobody hashed, that of their names, sizes
    and time. 64 hexadecimal digits, by which clients tell models apart."""
    if model.sha256:
        return model.sha256
    identity = f"{[str(path) for path in model.files]} {model.size} {model.modified.timestamp()}"
    return hashlib.sha256(identity.encode()).hexdigest()


def details(model: StoredModel) -> Json:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": model.architecture,
        "families": [model.architecture],
        "parameter_size": parameter_size(model.parameters),
        "quantization_level": model.quant,
    }


def tags(models: Sequence[StoredModel]) -> Json:
    """The models on disk, the newest first."""
    newest_first = sorted(models, key=lambda model: model.modified, reverse=True)
    return {
        "models": [
            {
                "name": model.name,
                "model": model.name,
                "modified_at": timestamp(model.modified),
                "size": model.size,
                "digest": digest(model),
                "details": details(model),
            }
            for model in newest_first
        ]
    }


def running(loaded: LoadedModel, stored: StoredModel | None, now: datetime) -> Json:
    """One entry of ps. `stored` is None where the model was removed while it runs."""
    info = loaded.info
    size = info.size + info.kv_bytes if info else stored.size if stored else 0
    return {
        "name": loaded.name,
        "model": loaded.name,
        "size": size,
        "digest": digest(stored) if stored else "0" * 64,
        "details": details(stored) if stored else {},
        "expires_at": timestamp(_expiry(loaded, now)),
        "size_vram": size if info and info.device != "CPU" else 0,
        "context_length": info.ctx if info else 0,
    }


def _expiry(loaded: LoadedModel, now: datetime) -> datetime:
    """When it leaves; for one in use, when it would leave if it were idle from now on."""
    if loaded.expires_at is not None:
        return datetime.fromtimestamp(loaded.expires_at, timezone.utc)
    return now + (FOR_EVER if loaded.keep_alive is None else timedelta(seconds=loaded.keep_alive))


def show(model: StoredModel, header: GGUFHeader, verbose: bool) -> Json:
    """All that is known of a model. `header` is that of its first file."""
    template = model.template or header.text("tokenizer.chat_template") or ""
    shown: Json = {
        "license": model.license,
        "modelfile": modelfile(model),
        "parameters": parameters(model),
        "template": template,
        "details": details(model),
        "model_info": {
            **{key: _shown(value, verbose) for key, value in header.metadata.items() if key not in _APART},
            "general.parameter_count": model.parameters,
        },
        "capabilities": _capabilities(model, header, template),
        "modified_at": timestamp(model.modified),
    }
    if model.system:
        shown["system"] = model.system
    if verbose:
        shown["tensors"] = [
            {"name": tensor.name, "type": tensor.type.name, "shape": list(tensor.shape)}
            for tensor in header.tensors
        ]
    return shown


def _capabilities(model: StoredModel, header: GGUFHeader, template: str) -> list[str]:
    """What clients may ask of it. Every chat model takes tools: a template without them gets them as text."""
    if model.kind in ("embedding", "reranker"):
        return ["embedding"] if model.kind == "embedding" else []
    able = {
        "completion": True,
        "tools": model.kind == "chat",
        "insert": any(key in header.metadata for key in _FIM),
        "thinking": _THINKS.search(template) is not None,
    }
    return [name for name, is_able in able.items() if is_able]


_THINKS = re.compile(r"<think>|enable_thinking|reasoning_content|reasoning_effort")
_FIM = ("tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id")  # new and old name
_APART = ("general.name", "tokenizer.chat_template")  # Ollama leaves these two out


def _shown(value: Value, verbose: bool) -> object:
    if isinstance(value, LongArray):
        return []
    if isinstance(value, tuple):
        return list(value) if verbose or len(value) <= SHORT_ARRAY else []
    return value


def parameters(model: StoredModel) -> str:
    """The model's own options, a line each, texts in quotes."""
    options = model.options
    set_here = {name: getattr(options, name) for name in options.__struct_fields__ if name != "stop"}
    lines = [
        f"{_OLLAMA_NAMES.get(name, name):<{_NAME_WIDTH}} {value}"
        for name, value in set_here.items()
        if value is not None
    ]
    lines += [f"{'stop':<{_NAME_WIDTH}} {json.dumps(stop, ensure_ascii=False)}" for stop in options.stop]
    return "\n".join(lines)


def modelfile(model: StoredModel) -> str:
    """A Modelfile that makes this model from its source."""
    return format_modelfile(modelfile_of(model))
