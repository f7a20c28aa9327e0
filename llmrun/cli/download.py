"""A pull as a person sees it, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llmrun.cli.output import Output
from llmrun.store.disk import human

if TYPE_CHECKING:
    from llmrun.store import Store, StoredModel
    from llmrun.store.progress import PullProgress

Report = Callable[["PullProgress"], None]
_VERBS = {"download": "downloading", "verify": "checking"}


def pull(out: Output, store: Store, reference: str) -> StoredModel:
    """Fetch `reference` and tell of it on stderr. What an interrupted pull fetched is kept."""
    with reporter(out) as report:
        model = store.pull(reference, on_progress=report)
    out.note(f"{model.name}: {human(model.size)}, {model.quant}, from {model.source}")
    return model


@contextmanager
def reporter(out: Output) -> Iterator[Report | None]:
    """What a pull reports to, shown as suits `out`; None when quiet."""
    if out.mode == "quiet":
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

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=out.note_console(), transient=True) as bar:

        def report(progress: PullProgress) -> None:
            if progress.step == "note":
                bar.console.print(progress.text, markup=False, highlight=False)
                return
            if progress.step not in tasks:
                tasks[progress.step] = bar.add_task("", total=None)
            bar.update(
                tasks[progress.step],
                description=f"{_VERBS[progress.step]} {progress.text}",
                completed=progress.completed,
                total=progress.total,
            )

        yield report
