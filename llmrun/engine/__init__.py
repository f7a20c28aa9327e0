"""Many sequences, one model: token ids in, events out.

Knows token ids, the KV cache, sampling and stop conditions. Knows no messages, JSON, HTTP or
processes, and no clock but the one it is given.
"""

from llmrun.engine.budget import PrefillBudget
from llmrun.engine.constraint import Constraint, GrammarRefused, Grammars
from llmrun.engine.embedder import Embedder
from llmrun.engine.engine import Engine
from llmrun.engine.guide import Guide
from llmrun.engine.prefill_cost import Cost, PrefillCost
from llmrun.engine.request import EngineRequest
from llmrun.engine.saved_prefixes import SavedPrefixes
from llmrun.engine.steering import CallPart, ReasoningPart, Steering, Tokens
from llmrun.engine.thread_choice import ThreadChoice
from llmrun.engine.vectors import VectorRequest

__all__ = [
    "CallPart",
    "Constraint",
    "Cost",
    "Embedder",
    "Engine",
    "EngineRequest",
    "GrammarRefused",
    "Grammars",
    "Guide",
    "PrefillBudget",
    "PrefillCost",
    "ReasoningPart",
    "SavedPrefixes",
    "Steering",
    "ThreadChoice",
    "Tokens",
    "VectorRequest",
]
