"""A pull as a person sees it, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from llmrun.cli.memory import memory_line
from llmrun.cli.output import Output
from llmrun.errors import USAGE, LlmrunError
from llmrun.store.disk import human

if TYPE_CHECKING:
    from llmrun.store import Store, StoredModel
    from llmrun.store.preview import Preview
    from llmrun.store.progress import PullProgress

Report = Callable[["PullProgress"], None]
_NARROW = 60  # columns of a terminal that has room for a name, bytes and the time that is left, no more
_FIGURES = 24  # columns of these two
_ALL = 44  # and of a short bar and the speed
_VERBS = {"download": "downloading", "verify": "checking", "quantize": "quantising"}


def parse_rate(text: str) -> int:
    """Bytes a second in `500k`, `5M`, `1.5G` or `80000`; units are 1024, as curl's and wget's are."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)([kmg]?)b?(?:/s)?", text.strip().lower())
    rate = int(float(match[1]) * 1024 ** " kmg".index(match[2] or " ")) if match else 0
    if rate < 1:
        raise LlmrunError(
            USAGE, f"{text!r} is not a rate", hint="use bytes a second, such as 500k, 5M or 1.5G"
        )
    return rate


def pull(
    out: Output, store: Store, reference: str, *, quant: str | None = None, limit_rate: int | None = None
) -> StoredModel:
    """Fetch `reference` and tell of it on stderr. What an interrupted pull fetched is kept."""
    with reporter(out) as report, _parting(out):
        model = store.pull(reference, quant=quant, limit_rate=limit_rate, on_progress=report)
    out.note(f"{model.name}: {human(model.size)}, {model.quant}, from {model.source}")
    return model


def show_preview(out: Output, preview: Preview, memory: Mapping[str, Any]) -> None:
    """What a pull would fetch, and what `llmrun.cli.memory` found, as a result."""
    if out.mode == "json":
        out.json({**asdict(preview), "fits_disk": preview.fits_disk, "memory": memory})
        return
    pairs = [("source", preview.source)]
    if preview.why:
        pairs.append(("why", preview.why))
    for file in preview.files:
        size = "size not known before it is fetched" if file.size is None else human(file.size)
        name = file.name or "a GGUF file in the package"
        pairs.append((file.role, f"{name}, {size}{', here already' if file.here else ''}"))
    if preview.kept:
        pairs.append(("kept", f"{human(preview.kept)} of an earlier try"))
    pairs.append(("to fetch", "not known" if preview.to_fetch is None else human(preview.to_fetch)))
    room = {True: "", False: ": too little", None: ""}[preview.fits_disk]
    pairs.append(("disk", f"{human(preview.free)} free{room}"))
    pairs.append(("memory", memory_line(memory)))
    out.fields(pairs)


@contextmanager
def _parting(out: Output) -> Iterator[None]:
    """Say on Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        out.note("stopped; what came is kept, and the same command goes on from there")
        raise


@contextmanager
def reporter(out: Output) -> Iterator[Report | None]:
    """What a pull reports to, shown as suits `out`; None when quiet."""
    if out.quiet:
        yield None
    elif out.notes_on_terminal:
        with _bar(out) as report:
            yield report
    else:
        yield Lines(out.note).report


class Lines:
    """Progress without a terminal: the notes, and a line at the start of a step and at every tenth."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._shown: tuple[str, int] | None = None

    def report(self, progress: PullProgress) -> None:
        if progress.step == "note":
            self._write(progress.text)
            return
        tenth = progress.completed * 10 // progress.total if progress.total else 0
        if self._shown == (progress.step, tenth):
            return
        self._shown = (progress.step, tenth)
        done = human(progress.completed)
        of = f" of {human(progress.total)} ({tenth * 10} %)" if progress.total else ""
        self._write(f"{_VERBS[progress.step]} {progress.text}: {done}{of}")


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


@contextmanager
def _bar(out: Output) -> Iterator[Report]:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.table import Column

    def whole() -> Column:
        return Column(no_wrap=True)

    console = out.note_console()
    name, figures = TextColumn("{task.description}", markup=False), DownloadColumn(table_column=whole())
    left = TimeRemainingColumn(table_column=whole())
    narrow = console.width < _NARROW
    speed = TransferSpeedColumn(table_column=whole())
    columns = (name, figures, left) if narrow else (name, BarColumn(), figures, speed, left)
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, transient=True) as bar:

        def report(progress: PullProgress) -> None:
            if progress.step == "note":
                bar.console.print(progress.text, markup=False, highlight=False)
                return
            if progress.step not in tasks:
                tasks[progress.step] = bar.add_task("", total=None)
            words = progress.text if narrow else f"{_VERBS[progress.step]} {progress.text}"
            bar.update(
                tasks[progress.step],
                description=_cut(words, console.width - (_FIGURES if narrow else _ALL)),
                completed=progress.completed,
                total=progress.total,
            )

        yield report
