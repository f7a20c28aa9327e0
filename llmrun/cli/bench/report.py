"""Tables and plots of what was measured. Records of `figures` in."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmrun.cli.layout import Columns, table
from llmrun.cli.output import Output
from llmrun.errors import USAGE, LlmrunError
from llmrun.store.disk import human

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Report = dict[str, Any]


def _number(name: str, form: str = ".0f", inner: str | None = None) -> Callable[[Any], str]:
    def cell(record: Any) -> str:
        value = record[name][inner] if inner else record[name]
        return "-" if value is None else format(value, form)

    return cell


_TIMES: Columns = {
    "TTFT P50": _number("ttft_ms", ".0f", "p50"),
    "P90": _number("ttft_ms", ".0f", "p90"),
    "ITL P50": _number("itl_ms", ".1f", "p50"),
    "ITL P99": _number("itl_ms", ".1f", "p99"),
}
_LENGTHS: Columns = {
    "PROMPT": _number("prompt"),
    "PREFILL/S": _number("prefill_tps"),
    "DECODE/S": _number("decode_tps", ".1f"),
    "ROOFLINE": _number("roofline", ".0%"),
    **_TIMES,
}
_CONCURRENCY: Columns = {
    "AT ONCE": _number("concurrency"),
    "TOKENS/S": _number("decode_tps", ".1f"),
    **_TIMES,
}
_QUALITY: Columns = {
    "MODEL": lambda record: record["name"],
    "SIZE": lambda record: human(record["size"]),
    "PREFILL/S": _number("prefill_tps"),
    "DECODE/S": _number("decode_tps", ".1f"),
    "PERPLEXITY": _number("perplexity", ".3f"),
    "KL MEAN": _number("kl_mean", ".5f"),
    "KL P99": _number("kl_p99", ".4f"),
    "SAME TOP": _number("same_top", ".1%"),
}


def show(out: Output, report: Report) -> None:
    """The report as tables; milliseconds and tokens a second."""
    for one in report["models"]:
        bandwidth = one["bandwidth"]
        reads = f", memory read at {bandwidth / 1e9:.1f} GB/s" if bandwidth else ""
        out.words(f"{one['name']}: {human(one['size'])} on {one['device']}{reads}")
        for records, columns in ((one["lengths"], _LENGTHS), (one["concurrency"], _CONCURRENCY)):
            out.result("")
            for line in table(records, columns, out.width):
                out.result(line)
        out.result("")
    if report["quality"]:
        best = report["reference"]
        out.words(f"Perplexity, and Kullback-Leibler divergence from {best} in nats a token:")
        out.result("")
        for line in table(report["quality"], _QUALITY, out.width):
            out.result(line)


def require_plotting() -> None:
    """LlmrunError USAGE where there is nothing to plot with."""
    if importlib.util.find_spec("matplotlib") is None:
        raise LlmrunError(
            USAGE, "--plot needs matplotlib, which is not installed", hint="pip install 'llmrun[plot]'"
        )


def plot(report: Report, path: Path) -> None:
    """Four curves for each model: prefill, decode, throughput and time to the first token."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), dpi=120, layout="constrained")
    axes = figure.subplots(2, 2)
    curves = (
        (axes[0, 0], "lengths", "prompt", "prefill_tps", None, "Prefill, tokens/s", "prompt tokens"),
        (axes[0, 1], "lengths", "prompt", "decode_tps", None, "Decode, tokens/s", "prompt tokens"),
        (axes[1, 0], "concurrency", "concurrency", "decode_tps", None, "All together, tokens/s", "at once"),
        (axes[1, 1], "concurrency", "concurrency", "ttft_ms", "p90", "TTFT, ms (p90)", "at once"),
    )
    for axis, part, x, y, inner, title, label in curves:
        for one in report["models"]:
            _line(axis, one["name"], one[part], x, y, inner)
        measured = [record[x] for record in report["models"][0][part]]
        axis.set(title=title, xlabel=label, ylim=(0, None), xticks=measured)
        axis.grid(alpha=0.3)
    axes[0, 0].legend()
    figure.savefig(path)


def _line(axis: Axes, name: str, records: Sequence[Any], x: str, y: str, inner: str | None) -> None:
    values = [record[y][inner] if inner else record[y] for record in records]
    axis.plot([record[x] for record in records], values, marker="o", label=name)
