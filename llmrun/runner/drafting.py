"""Who guesses ahead for a model, as its Load frame wants it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from llmrun.engine.drafting import Drafter, DraftModel, Ngrams
from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama import Context, ContextSettings, Model
from llmrun.llama.vocab_match import mismatch
from llmrun.runner.frames import Load
from llmrun.runner.opening import open_model
from llmrun.runner.sizing import Sizes
from llmrun.store.anatomy import Anatomy, anatomy
from llmrun.store.attention import BATCH


@dataclass(frozen=True)
class Small:
    """A loaded model that drafts for another, and its sizes."""

    model: Model
    shape: Anatomy


def load_small(spec: Load, target: Model) -> Small | None:
    """The model that drafts, closed together with `target`; None where none is wanted. MODEL_LOAD where it
    cannot draft for this one."""
    if spec.draft is None or spec.drafting != "auto":
        return None
    path = Path(spec.draft)
    if not target.trimmable:
        raise _refused(spec, "the model's memory cannot be cut back where a guess was wrong")
    model, headers = open_model(path, spec.gpu_layers)
    target.adopt(model)
    if reason := model.unservable:
        raise _refused(spec, f"it {reason}")
    if not model.trimmable:
        raise _refused(spec, "its own memory cannot be cut back where a guess was wrong")
    if difference := mismatch(target.vocab, model.vocab):
        raise _refused(spec, f"the vocabularies differ: {difference}")
    return Small(model, anatomy(headers))


def drafters(spec: Load, context: Context, small: Small | None, chosen: Sizes) -> tuple[Drafter, ...]:
    """The cheapest first. A small model gets a context as large as that of the model it drafts for."""
    if spec.drafting == "off":
        return ()
    ngrams = Ngrams(context.ctx)
    if small is None:
        return (ngrams,)
    settings = ContextSettings(
        ctx=context.ctx,
        batch=BATCH,
        slots=chosen.parallel,
        threads=chosen.threads,
        threads_batch=chosen.threads,
        kv_type=spec.kv_type,
    )
    return ngrams, DraftModel(Context(small.model, settings), context.model.vocab.size, time.monotonic)


def _refused(spec: Load, why: str) -> LlmrunError:
    return LlmrunError(
        MODEL_LOAD,
        f"{spec.draft} cannot draft for {spec.name}: {why}",
        hint="name a small model of the same family, or set LLMRUN_DRAFT=ngram",
    )
