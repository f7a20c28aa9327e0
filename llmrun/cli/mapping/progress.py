"""How far `llmrun map` is: a bar on a terminal, and counts for the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llmrun.cli.mapping.results import Result
from llmrun.cli.output import Output


class Counts:
    """Lines and tokens so far. `clock` in seconds. Called by one thread at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self.done = 0
        self.failed = 0
        self.tokens = 0

    def add(self, result: Result) -> None:
        self.done += 1
        self.failed += result.failed
        self.tokens += result.tokens

    def text(self) -> str:
        """`57 done, 2 failed, 310 tokens/s`, the speed being that since the start."""
        seconds = max(self._clock() - self._begun, 1e-9)
        parts = [f"{self.done} done", f"{self.failed} failed" if self.failed else ""]
        return ", ".join(filter(None, [*parts, f"{self.tokens / seconds:.0f} tokens/s"]))


@contextmanager
def shown(
    out: Output, counts: Counts, size: int | None, *, results_shown: bool
) -> Iterator[Callable[[int], None]]:
    """What is told the bytes of input that are behind; `size` is all of them. Draws where a person watches,
    unless the results themselves come by there."""
    if out.quiet or not out.notes_on_terminal or results_shown:
        yield lambda _end: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out.note_console(), transient=True) as bar:
        task = bar.add_task(counts.text(), total=size)
        yield lambda end: bar.update(task, completed=end, description=counts.text())
