"""`llmrun map` from its arguments to its end: the daemon, the lines, the results and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from llmrun.cli.mapping.answers import Answerer
from llmrun.cli.mapping.lines import Line, asked, read_lines, size_of
from llmrun.cli.mapping.ordered import InOrder
from llmrun.cli.mapping.progress import Counts, shown
from llmrun.cli.mapping.results import Done, Result, ResultsFile
from llmrun.cli.prompt_template import PromptTemplate
from llmrun.cli.reach import reach
from llmrun.cli.session import Session
from llmrun.cli.waiting import waiting_for
from llmrun.store.plan import ANSWERING
from llmrun.types import Options, OutputFormat

_PER_PLACE = 2  # requests for each place in the batch: the next is prepared while one is answered
_WINDOW = 4  # lines taken in for each request, so that one long answer does not stop the others


@dataclass(frozen=True)
class Wanted:
    """The command's arguments. concurrency: None for what the model's batch wants. resume: the file that
    results are added to; None: stdout."""

    template: PromptTemplate
    system: str | None
    options: Options
    output: OutputFormat | None
    think: bool | None
    concurrency: int | None
    resume: Path | None


def map_lines(session: Session, model: str, wanted: Wanted, descriptor: int, *, local: bool) -> int:
    """Answer every line of the file descriptor; how many failed."""
    out, counts = session.out, Counts()
    with ExitStack() as stack:
        file = stack.enter_context(closing(ResultsFile(wanted.resume))) if wanted.resume else None
        if file and file.count:
            out.note(f"{file.count} lines have results in {wanted.resume}; going on behind them")
        there = stack.enter_context(reach(session, model, local=local))
        client = stack.enter_context(there.client())
        with waiting_for(out, client, there.model):
            loaded = client.load(there.model, wanted.options)
        places = loaded.info.parallel if loaded and loaded.info else session.settings.parallel or ANSWERING
        workers = wanted.concurrency or _PER_PLACE * places
        answerer = Answerer(
            client, there.model, wanted.template, wanted.system, wanted.options, wanted.output, wanted.think
        )
        watched = out.on_terminal and file is None
        bar = shown(out, counts, size_of(descriptor), results_shown=watched)
        report = stack.enter_context(bar)

        def emit(result: Result) -> None:
            if file:
                file.write(result.text())
            else:
                out.result(result.text())
            counts.add(result)
            report(result.end)

        work = InOrder(answerer, emit, workers=workers, window=_WINDOW * workers)
        try:
            work.run(_new(read_lines(descriptor), wanted.template, file.done if file else None))
        except KeyboardInterrupt:
            out.note(f"stopped: {counts.text()}. {_how_to_go_on(wanted)}")
            raise
    out.note(counts.text())
    if counts.failed:
        out.warn(f"{counts.failed} of {counts.done} lines failed; their results say why, under error")
    return counts.failed


def _new(lines: Iterator[Line], template: PromptTemplate, done: Done | None) -> Iterator[Line]:
    """The lines that have no result yet."""
    for line in lines:
        if done is None or not done.has(line.index, asked(line, template).input):
            yield line


def _how_to_go_on(wanted: Wanted) -> str:
    if wanted.resume:
        return "The same command goes on from there"
    return "With the results in FILE, --resume FILE goes on from there"
