"""Comparisons as Markdown, and kept as JSON: what `servers.py` prints and what scripts/docs.py puts into
docs/performance.md are made by the same functions.

The file holds an object: by the suite's name its `Table`.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from comparing import Comparison

HEAD = (
    "| workload | figure | against | llmrun | peer | ratio | wanted |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass(frozen=True)
class Circumstances:
    """Under which figures came about. `load`: the machine's load average before."""

    about: str
    ctx: int
    threads: int
    cpu: str
    cores: int
    load: float

    @property
    def sentence(self) -> str:
        machine = f"{self.cores} cores of an {self.cpu}, load average {self.load:.1f} before"
        return f"{self.about}. Context {self.ctx:,}, {self.threads} threads; {machine}.".lstrip(". ")


def circumstances(about: str, ctx: int, threads: int) -> Circumstances:
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.+)", info.read_text()) if info.exists() else None
    cpu = named[1].replace("(R)", "") if named else "unnamed CPU"
    return Circumstances(about, ctx, threads, cpu, os.cpu_count() or 1, os.getloadavg()[0])


def row(one: Comparison) -> str:
    """A line of the table."""
    cells = (
        f"`{one.workload}`",
        one.figure,
        f"`{one.peer}`",
        _values(one.ours),
        _values(one.theirs),
        f"{one.times:.2f}",
        _wanted(one),
    )
    return "| " + " | ".join(cells) + " |\n"


def _values(values: list[float]) -> str:
    if len(values) == 1:
        return _digits(values[0])
    return f"{_digits(median(values))} ({_digits(min(values))} to {_digits(max(values))})"


def _digits(value: float) -> str:
    """Three digits that count, and no exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _wanted(one: Comparison) -> str:
    """The wish, and whether it was missed."""
    if one.ratio is not None:
        return f"{one.ratio:.2f}" + (", missed" if one.times < one.ratio else "")
    if one.more is not None:
        missed = median(one.ours) - median(one.theirs) > one.more
        return f"at most {one.more:g} more" + (", missed" if missed else "")
    return ""


def keep(path: Path, suite: str, about: Circumstances, found: list[Comparison]) -> None:
    """Put a suite's figures into the file, in the place of those it has."""
    tables = json.loads(path.read_text("utf-8")) if path.exists() else {}
    tables[suite] = {"circumstances": asdict(about), "rows": [one.as_json() for one in found]}
    path.write_text(json.dumps(tables, indent=1) + "\n", "utf-8")


def markdown(path: Path, suite: str) -> str:
    """A kept suite: its command, under which circumstances it ran, its table."""
    table: dict[str, Any] = json.loads(path.read_text("utf-8"))[suite]
    about = Circumstances(**table["circumstances"])
    command = f".venv/bin/python scripts/bench/servers.py --suite {suite} --keep docs/performance.json"
    rows = "".join(row(Comparison(**kept)) for kept in table["rows"])
    return f"```sh\n{command}\n```\n\n{about.sentence}\n\n{HEAD}\n{rows}"
