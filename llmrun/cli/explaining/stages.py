"""One step as a table: its candidates down, the samplers across, a probability in each cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from llmrun.cli.explaining.explained import Choice, Decoded, Sampled

MODEL = "model"  # the first column: what the model said, before any sampler


class Column(NamedTuple):
    """A stage, and how many candidates it left; None: all of the vocabulary."""

    name: str
    left: int | None


class Candidate(NamedTuple):
    """A row. A cell is a probability, 0 where the sampler ruled the token out, None where it is not among the
    likeliest that were asked for."""

    text: str
    chosen: bool
    cells: tuple[float | None, ...]


def columns(step: Decoded) -> list[Column]:
    """The stages in the order in which they were applied."""
    return [Column(MODEL, None), *(Column(stage.name, stage.left) for stage in step.samplers)]


def candidates(step: Decoded) -> Iterator[Candidate]:
    """Every token that was among the likeliest at some stage, in the model's order, and the chosen one."""
    texts: dict[int, str] = {}
    for choices in (step.candidates, *(stage.candidates for stage in step.samplers)):
        texts.update((choice.id, choice.text) for choice in choices)
    texts.setdefault(step.id, step.text)
    for id, text in texts.items():
        after = (_after(stage, id, step) for stage in step.samplers)
        yield Candidate(text, id == step.id, (_before(id, step), *after))


def _before(id: int, step: Decoded) -> float | None:
    return step.probability if id == step.id else _listed(step.candidates, id)


def _after(stage: Sampled, id: int, step: Decoded) -> float | None:
    if id == step.id:
        return stage.probability
    found = _listed(stage.candidates, id)
    return 0.0 if found is None and stage.left <= len(stage.candidates) else found


def _listed(choices: tuple[Choice, ...], id: int) -> float | None:
    return next((choice.probability for choice in choices if choice.id == id), None)
