"""An explained request as lines of text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from llmrun.cli.explaining.explained import Choice, Decoded, Explained
from llmrun.cli.explaining.stages import candidates, columns
from llmrun.cli.layout import Columns, Record, table
from llmrun.store.disk import human

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 72
_FIGURES = 26  # columns beside a bar: milliseconds, and tokens of tokens


def lines(found: Explained, width: int | None = None) -> Iterator[str]:
    """All stages in order, a blank line between; tables and bars in `width`, long sentences as they are."""
    total = len(found.prompt)
    yield f"TEMPLATE  what the model's chat template makes of the prompt ({len(found.rendered)} characters)"
    yield found.rendered
    yield ""
    yield f"TOKENS  {total}, of which {found.cached} were cached (marked *)"
    yield from table(
        [{"place": place, "token": token} for place, token in enumerate(found.prompt)],
        {
            "AT": lambda row: f"{row['place']}{'*' if row['token'].cached else ''}",
            "ID": lambda row: str(row["token"].id),
            "TEXT": lambda row: quoted(row["token"].text),
        },
        width,
    )
    yield ""
    computed = f"{total - found.cached} tokens in {found.prefill_ms:.0f} ms"
    yield f"PREFILL  {computed}, after {found.queue_ms:.0f} ms of waiting"
    for done in found.prefill:
        yield f"{done.ms:8.0f} ms  {_share(done.processed, total, width)}  {done.processed}/{total}"
    yield ""
    yield f"DECODE  {len(found.steps)} tokens in {found.decode_ms:.0f} ms, ended by {found.stopped_by}"
    steps = [{"place": place, "step": step} for place, step in enumerate(found.steps)]
    yield from table(steps, _STEPS, width)
    yield ""
    yield "SAMPLERS  candidates before and after each sampler (> chosen, - ruled out, . not listed)"
    for place, step in enumerate(found.steps):
        yield from _samplers(place, step, width)
    yield ""
    yield f"TIME  first token after {found.ttft_ms:.0f} ms; between tokens {_spread(found)}"
    if gaps := [step.gap_ms for step in found.steps if step.gap_ms is not None]:
        yield f"{sparkline(gaps, width)}  up to {max(gaps):.0f} ms"
    yield ""
    kv = found.kv
    yield f"KV CACHE  {human(kv.prompt)} of prompt, {human(kv.answer)} of answer"
    yield f"{kv.per_token} bytes a token ({kv.type}, {kv.layers} layers)"
    if batch := found.batch:
        yield ""
        yield f"BATCH  {batch.running} of {batch.places} places in use, {batch.waiting} requests waiting"
        yield f"{batch.cells_used} of {batch.cells} cells held by running requests"


def quoted(text: str) -> str:
    """A token's text with its spaces and line breaks to be seen."""
    return json.dumps(text, ensure_ascii=False)


_STEPS: Columns = {
    "STEP": lambda row: str(row["place"]),
    "ID": lambda row: str(row["step"].id),
    "TOKEN": lambda row: quoted(row["step"].text),
    "P": lambda row: f"{row['step'].probability:.1%}",
    "ITL MS": lambda row: _gap(row["step"]),
    "LIKELIEST": lambda row: _candidates(row["step"].candidates),
}


def _samplers(place: int, step: Decoded, width: int | None) -> Iterator[str]:
    if not step.samplers:
        yield f"step {place}: {quoted(step.text)} was forced"
        return
    stages = columns(step)
    rows = [{"of": candidate} for candidate in candidates(step)]
    heads: dict[str, Callable[[Record], str]] = {
        f"step {place}": lambda row: f"{'>' if row['of'].chosen else ' '} {quoted(row['of'].text)}"
    }
    for at, (name, left) in enumerate(stages):
        heads[name if left is None else f"{name} {left}"] = partial(_cell, at)
    yield from table(rows, heads, width)


def _cell(at: int, row: Record) -> str:
    share = row["of"].cells[at]
    if share is None:
        return "."
    return f"{share:.1%}" if share else "-"


def _gap(step: Decoded) -> str:
    return "-" if step.gap_ms is None else f"{step.gap_ms:.1f}"


def _candidates(choices: Sequence[Choice]) -> str:
    return "  ".join(f"{quoted(choice.text)} {choice.probability:.1%}" for choice in choices)


def _spread(found: Explained) -> str:
    known = {name: value for name, value in found.itl_ms.items() if value is not None}
    return ", ".join(f"{name} {value:.1f} ms" for name, value in known.items()) or "none"


def _share(done: int, total: int, width: int | None) -> str:
    """A bar, as long as `width` has room for it beside its figures."""
    long = 30 if width is None else max(10, min(30, width - _FIGURES))
    filled = round(long * done / total) if total else 0
    return "█" * filled + "░" * (long - filled)


def sparkline(values: Sequence[float], width: int | None = None) -> str:
    """A bar for each value, the highest full; of many values each bar is the highest of some."""
    most_bars = _WIDTH if width is None else max(10, min(_WIDTH, width - _FIGURES // 2))
    size = -(-len(values) // most_bars)
    tops = [max(values[start : start + size]) for start in range(0, len(values), size)]
    most = max(tops) or 1.0
    return "".join(_BARS[min(len(_BARS) - 1, int(len(_BARS) * top / most))] for top in tops)
