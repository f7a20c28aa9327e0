"""Guessing tokens ahead, so that a step can give an answer more than one. Changes no text: see `choosing`."""

from llmrun.engine.drafting.draft_model import DraftModel
from llmrun.engine.drafting.drafting import Drafting
from llmrun.engine.drafting.guess import Drafter, Guess
from llmrun.engine.drafting.ngrams import Ngrams

__all__ = ["DraftModel", "Drafter", "Drafting", "Guess", "Ngrams"]
