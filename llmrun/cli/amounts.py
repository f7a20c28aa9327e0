"""Counts and times as people read them; bytes are `llmrun.store.disk.human`'s. Pure."""

from __future__ import annotations

from datetime import datetime, timezone


def parameters(count: int) -> str:
    """Weights of a model: `135M`, `7.2B`."""
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= limit:
            return f"{_three_digits(count / limit)}{unit}"
    return str(count)


def _three_digits(value: float) -> str:
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration(seconds: float) -> str:
    """The two largest units that matter: `4m 30s`, `2h`, `12s`."""
    left = max(0, round(seconds))
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


_AGES = (("year", 31536000), ("month", 2592000), ("day", 86400), ("hour", 3600), ("minute", 60))


def ago(moment: datetime, now: datetime | None = None) -> str:
    """How long since `moment`, in its largest unit: `3 days ago`."""
    seconds = ((now or datetime.now(timezone.utc)) - moment).total_seconds()
    for unit, length in _AGES:
        if (count := int(seconds // length)) >= 1:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
