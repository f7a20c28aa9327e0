"""An explained request as one HTML file that asks for nothing else: no script, style and charts inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from llmrun.cli.explaining.explained import Decoded, Explained
from llmrun.cli.explaining.stages import candidates, columns
from llmrun.cli.explaining.terminal import quoted
from llmrun.store.disk import human

_STYLE = """
:root { color-scheme: light dark; --line: #8885; --bar: #3b82f6; --cached: #16a34a33; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
pre, .token, td.t { font-family: ui-monospace, monospace; }
pre { white-space: pre-wrap; border: 1px solid var(--line); border-radius: 6px; padding: .7rem; }
.token { display: inline-block; border: 1px solid var(--line); border-radius: 4px; padding: 0 .3rem;
  margin: 1px; white-space: pre-wrap; }
.cached { background: var(--cached); } .token small { opacity: .6; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; }
td, th { border-bottom: 1px solid var(--line); padding: .15rem .6rem .15rem 0; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.t { white-space: nowrap; } td details { margin-left: 1.2rem; } summary { cursor: pointer; }
.wide { overflow-x: auto; }
.samplers { width: auto; margin: .4rem 0; font-size: .9em; } .chosen { font-weight: 600; }
.samplers th { text-align: right; } .samplers small { display: block; font-weight: 400; opacity: .6; }
svg { width: 100%; height: 120px; } rect { fill: var(--bar); }
.p { display: inline-block; height: .6em; background: var(--bar); border-radius: 2px; }
"""


def page(found: Explained) -> str:
    """The whole file."""
    return "\n".join(["<!doctype html>", *_parts(found), ""])


def _parts(found: Explained) -> Iterator[str]:
    total, kv = len(found.prompt), found.kv
    title = f"{escape(found.model)}: one request explained"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
    yield "<table>"
    yield from _rows(
        {
            "Prompt": f"{total} tokens, {found.cached} of them cached",
            "Answer": f"{len(found.steps)} tokens, ended by {found.stopped_by}",
            "Waiting": f"{found.queue_ms:.0f} ms",
            "Prefill": f"{found.prefill_ms:.0f} ms",
            "First token": f"{found.ttft_ms:.0f} ms after the request",
            "Between tokens": ", ".join(
                f"{name} {value:.1f} ms" for name, value in found.itl_ms.items() if value is not None
            ),
            "KV cache": f"{human(kv.prompt + kv.answer)} = {total} + {max(0, len(found.steps) - 1)} tokens"
            f" × {kv.per_token} bytes ({kv.type}, {kv.layers} layers)",
            **_batch(found),
        }
    )
    yield "</table><h2>What the template makes of it</h2>"
    yield f"<pre>{escape(found.rendered)}</pre><h2>Tokens</h2><p>Green ones were cached.</p><p>"
    yield "".join(
        f'<span class="token{" cached" if token.cached else ""}">{escape(quoted(token.text)[1:-1])}'
        f" <small>{token.id}</small></span>"
        for token in found.prompt
    )
    yield "</p><h2>Prefill</h2>"
    yield _chart([done.processed for done in found.prefill], [f"{done.ms:.0f} ms" for done in found.prefill])
    yield "<h2>Time between tokens</h2>"
    gaps = [step for step in found.steps if step.gap_ms is not None]
    yield _chart([step.gap_ms or 0.0 for step in gaps], [f"{step.gap_ms:.1f} ms" for step in gaps])
    yield "<h2>Steps</h2><p>Probabilities are the model's own, before any sampler."
    yield "Open a step's candidates to see what each sampler made of them.</p><div class='wide'><table>"
    yield "<tr><th>Step<th>Token<th>Id<th>Probability<th>ms<th>Likeliest</tr>"
    yield from (_step(place, step) for place, step in enumerate(found.steps))
    yield f"</table></div><h2>Answer</h2><pre>{escape(found.answer)}</pre>"
    yield "<details><summary>How tokens were chosen</summary><table>"
    yield from _rows(found.settings)
    yield "</table></details></body></html>"


def _rows(values: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield f"<tr><th>{escape(name)}<td>{escape(str(value))}</tr>"


def _batch(found: Explained) -> dict[str, str]:
    if found.batch is None:
        return {}
    batch = found.batch
    return {
        "Batch": f"{batch.running} of {batch.places} places in use, {batch.waiting} requests waiting",
        "Cells": f"{batch.cells_used} of {batch.cells} held by running requests",
    }


def _step(place: int, step: Decoded) -> str:
    likeliest = "<br>".join(
        f'<span class="p" style="width:{choice.probability * 6:.2f}em"></span>'
        f" {escape(quoted(choice.text))} {choice.probability:.1%}"
        for choice in step.candidates
    )
    if step.samplers:
        likeliest = f"<details><summary>{likeliest}</summary>{_samplers(step)}</details>"
    gap = "" if step.gap_ms is None else f"{step.gap_ms:.1f}"
    return (
        f'<tr><td class="n">{place}<td class="t">{escape(quoted(step.text))}<td class="n">{step.id}'
        f'<td class="n">{step.probability:.1%}<td class="n">{gap}<td class="t">{likeliest}</tr>'
    )


def _samplers(step: Decoded) -> str:
    """The candidates down, the samplers across."""
    heads = "".join(
        f"<th>{escape(name)}<small>{'' if left is None else f' {left} left'}</small>"
        for name, left in columns(step)
    )
    rows = "".join(
        f'<tr{" class=chosen" if row.chosen else ""}><td class="t">{escape(quoted(row.text))}'
        + "".join(f'<td class="n">{_share(share)}' for share in row.cells)
        for row in candidates(step)
    )
    return f'<table class="samplers"><tr><th>{heads}{rows}</table>'


def _share(share: float | None) -> str:
    if share is None:
        return "…"
    return f"{share:.1%}" if share else "–"


def _chart(values: Sequence[float], labels: Sequence[str]) -> str:
    """Bars, each with its label to point at."""
    if not values:
        return "<p>nothing</p>"
    most, width = max(values) or 1.0, 100 / len(values)
    bars = "".join(
        f'<rect x="{place * width:.3f}" y="{100 - 100 * value / most:.3f}" width="{width * 0.9:.3f}"'
        f' height="{100 * value / most:.3f}"><title>{escape(label)}</title></rect>'
        for place, (value, label) in enumerate(zip(values, labels, strict=True))
    )
    return f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="bars">{bars}</svg>'
