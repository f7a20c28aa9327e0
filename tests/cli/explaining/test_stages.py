from __future__ import annotations

from llmrun.cli.explaining.explained import Choice, Decoded, Sampled
from llmrun.cli.explaining.stages import Candidate, Column, candidates, columns

A, B, C = (Choice(1, "a", 0.5), Choice(2, "b", 0.3), Choice(3, "c", 0.1))


def step(*samplers: Sampled) -> Decoded:
    """The third candidate is chosen; two are listed."""
    return Decoded(3, "c", 0.1, 1.0, None, (A, B), samplers)


def test_candidates_of_a_step_have_a_cell_for_each_stage() -> None:
    found = step(
        Sampled("top_k", 40, 0.11, (Choice(1, "a", 0.55), Choice(2, "b", 0.33))),
        Sampled("xtc", 2, 0.25, (Choice(2, "b", 0.75), Choice(3, "c", 0.25))),
    )
    assert columns(found) == [Column("model", None), Column("top_k", 40), Column("xtc", 2)]
    assert list(candidates(found)) == [
        Candidate("a", False, (0.5, 0.55, 0.0)),
        Candidate("b", False, (0.3, 0.33, 0.75)),
        Candidate("c", True, (0.1, 0.11, 0.25)),
    ]


def test_candidate_that_a_stage_may_still_have_is_not_said_to_be_out() -> None:
    found = step(Sampled("penalties", 40, 0.2, (Choice(9, "new", 0.4), Choice(3, "c", 0.2))))
    assert list(candidates(found)) == [
        Candidate("a", False, (0.5, None)),
        Candidate("b", False, (0.3, None)),
        Candidate("new", False, (None, 0.4)),
        Candidate("c", True, (0.1, 0.2)),
    ]
