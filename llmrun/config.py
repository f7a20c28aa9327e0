"""Where things lie and how they are set: flag, then environment, then config.toml, then default."""

from __future__ import annotations

import difflib
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from llmrun import hosts
from llmrun.errors import CONFIG, LlmrunError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_MODEL = "smollm2:135m"
MAX_SEQUENCES = 256  # LLAMA_MAX_SEQ in llama.cpp
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_BYTES = re.compile(r"(\d+(?:\.\d+)?|\.\d+) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+")

LOG_FORMATS = ("text", "json")
DRAFTING = ("auto", "ngram", "off")
FLASH_ATTENTION = ("auto", "on", "off")
KV_LAYOUTS = ("unified", "separate")
KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")


@dataclass(frozen=True)
class Paths:
    """The folders llmrun owns. With `LLMRUN_HOME` all lie under it, else where the platform keeps such.

    models  manifests and model files       cache  what can be made again (partial downloads, …)
    logs    the daemon's log                state  lock, address of the daemon, REPL history
    config  config.toml
    """

    models: Path
    cache: Path
    logs: Path
    state: Path
    config: Path

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def kv(self) -> Path:
        """KV prefixes of all models."""
        return self.cache / "kv"

    @classmethod
    def find(cls, env: Mapping[str, str] = os.environ) -> Paths:
        """The folders that `env` names. Nothing is created."""
        if home := env.get("LLMRUN_HOME"):
            root = Path(home).expanduser().absolute()
            return cls(root / "models", root / "cache", root / "logs", root / "state", root / "config")
        import platformdirs  # slower than all else here; not needed with LLMRUN_HOME

        dirs = platformdirs.PlatformDirs("llmrun", appauthor=False)
        return cls(
            models=dirs.user_data_path / "models",
            cache=dirs.user_cache_path,
            logs=dirs.user_log_path,
            state=dirs.user_state_path,
            config=dirs.user_config_path,
        )


def _auto_or_count(text: str) -> int | None:
    if text == "auto":
        return None
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def _auto_or_sequences(text: str) -> int | None:
    count = _auto_or_count(text)
    if count is not None and count > MAX_SEQUENCES:
        raise ValueError(text)
    return count


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError(text)
    return count


def _auto_or_layers(text: str) -> int | None:
    return None if text == "auto" else _count(text)


def parse_bytes(text: str) -> int:
    """Bytes in `0`, `500M`, `1.5G`, `80000`; units are 1024."""
    match = _BYTES.fullmatch(text.strip())
    if not match:
        raise ValueError(text)
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def _auto_or_bytes(text: str) -> int | None:
    return None if text == "auto" else parse_bytes(text)


def _switch(text: str) -> bool:
    switches = {"1": True, "true": True, "0": False, "false": False}
    if text.lower() not in switches:
        raise ValueError(text)
    return switches[text.lower()]


def _one_of(values: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return parse


def _log_format(text: str) -> str:
    if text not in LOG_FORMATS:
        raise ValueError(text)
    return text


def _origins(text: str) -> tuple[str, ...]:
    return tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())


def _absolute(text: str) -> str:
    return str(Path(text).expanduser().absolute())


def parse_duration(text: str) -> float:
    """Seconds in `5m`, `1h30m`, `300`, `0`; a negative number means for ever (`inf`)."""
    text = text.strip().lower()
    if _DURATION.fullmatch(text):
        return sum(float(count) * _UNITS[unit] for count, unit in _DURATION_PART.findall(text))
    seconds = float(text)
    if math.isnan(seconds):
        raise ValueError(text)
    return math.inf if seconds < 0 else seconds


def _limit(text: str) -> float:
    seconds = parse_duration(text)
    if seconds == 0:
        raise ValueError(text)
    return seconds


def _setting(default: Any, parse: Callable[[str], Any], form: str, about: str) -> Any:
    return field(default=default, metadata={"parse": parse, "form": form, "about": about})


def _choice(default: str, values: tuple[str, ...], about: str) -> Any:
    return _setting(default, _one_of(values), ", ".join(values), about)


@dataclass(frozen=True)
class Settings:
    """Every setting. The environment's name is `LLMRUN_` plus the field's in capitals.

    `None` stands for `auto` (or, for `api_key` and `tls_…`, for none).
    """

    host: hosts.Address = _setting(  # noqa: RUF009 (ruff does not see that it is a tuple)
        hosts.DEFAULT,
        hosts.parse_host,
        "HOST:PORT or https://HOST:PORT",
        "where the daemon listens and the client looks",
    )
    api_key: str | None = _setting(None, str, "text", "sent by the client; required by the daemon where set")
    tls_cert: str | None = _setting(
        None, _absolute, "a path", "certificate (PEM) to serve HTTPS with; the client trusts it"
    )
    tls_key: str | None = _setting(None, _absolute, "a path", "its private key, where not in the same file")
    keep_alive: float = _setting(
        300.0, parse_duration, "5m, 300, -1, 0", "idle time before a model is unloaded; -1 never, 0 at once"
    )
    time_limit: float = _setting(
        math.inf,
        _limit,
        "10m, 300, -1",
        "time that a request may be computed, then it ends as it is; -1 no limit",
    )
    parallel: int | None = _setting(
        None,
        _auto_or_sequences,
        f"auto or 1 to {MAX_SEQUENCES}",
        "sequences decoded together per model",
    )
    ctx: int | None = _setting(
        None, _auto_or_count, "auto or tokens", "context: the model's own, capped by what fits in memory"
    )
    max_queue: int = _setting(512, _count, "a count", "waiting requests per model before 503")
    max_loaded: int | None = _setting(None, _auto_or_count, "auto or a count", "models in memory at once")
    kv_type: str = _choice("f16", KV_TYPES, "number type of the KV cache")
    kv_layout: str = _choice(
        "unified",
        KV_LAYOUTS,
        "one KV cache that sequences share, or a whole context's for each that may run",
    )
    flash_attention: str = _choice(
        "auto",
        FLASH_ATTENTION,
        "attention in one pass; off: some CPUs answer long texts faster, near ties may fall otherwise",
    )
    cache_ram: int | None = _setting(
        None,
        _auto_or_bytes,
        "auto, 0, 500M, 2G",
        "KV prefixes kept in host memory, per model; 0 is off, auto a 16th of it, at most 1 GiB",
    )
    cache_disk: int | None = _setting(
        None,
        _auto_or_bytes,
        "auto, 0, 500M, 2G",
        "KV prefixes kept on disk, for all models; 0 is off, auto a tenth of what is free, at most 4 GiB",
    )
    draft: str = _choice(
        "auto",
        DRAFTING,
        "guess tokens ahead: from repeated text and the model's draft, from text alone, never",
    )
    gpu_layers: int | None = _setting(None, _auto_or_layers, "auto or a count", "layers kept on the GPU")
    threads: int | None = _setting(None, _auto_or_count, "auto or a count", "compute threads")
    origins: tuple[str, ...] = _setting((), _origins, "https://a.example,…", "further web origins allowed")
    offline: bool = _setting(
        False, _switch, "1 or 0", "fetch nothing: no connection but those to the daemon itself"
    )
    log_format: str = _setting(
        "text", _log_format, " or ".join(LOG_FORMATS), "form of the log lines of every process"
    )
    lenient: bool = _setting(
        False, _switch, "1 or 0", "pass over request fields that are not honoured, and name them"
    )


SETTINGS = {f.name: f for f in fields(Settings)}


def parse_setting(name: str, text: str, where: str) -> Any:
    """The value of setting `name` written as `text`; `where` says in an error who wrote it."""
    meta = SETTINGS[name].metadata
    try:
        return meta["parse"](text)
    except ValueError:
        raise LlmrunError(
            CONFIG, f"{where} is {text!r}, but is written as {meta['form']}", hint="mend it or remove it"
        ) from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LlmrunError(CONFIG, f"{path} cannot be read: {error}", hint="mend the file") from None
    values = {}
    for name, value in document.items():
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.0)[0]
            raise LlmrunError(CONFIG, f"{path} has the unknown key {name!r}", hint=f"did you mean {near!r}?")
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        values[name] = parse_setting(name, text, f"{name} in {path}")
    return values


def load_settings(
    paths: Paths, env: Mapping[str, str] = os.environ, flags: Mapping[str, Any] | None = None
) -> Settings:
    """The settings in force. `flags` holds parsed values; those that are None were not given."""
    chosen = _from_file(paths.config_file)
    for name in SETTINGS:
        variable = f"LLMRUN_{name.upper()}"
        if text := env.get(variable):
            chosen[name] = parse_setting(name, text, variable)
    chosen.update({name: value for name, value in (flags or {}).items() if value is not None})
    return replace(Settings(), **chosen)
