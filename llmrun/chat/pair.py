"""A query and a document as one sequence of token ids, for models that rank.

With the model's own template for that (`tokenizer.chat_template.rerank`, plain text with `{query}` and
`{document}` in it), else as encoders are trained: the texts behind each other, with the vocabulary's
separators. Either text stays text: no spelling in it becomes a control token.
"""

from __future__ import annotations

import re

from llmrun.chat.control import ControlTokens
from llmrun.chat.encoding import encode_marked
from llmrun.chat.mark import Mark
from llmrun.chat.vocab import Vocab

Edges = tuple[list[int], list[int], list[int]]
"""Token ids in front of the query, between it and the document, and behind the document."""

_PLACE = re.compile(r"\{(query|document)\}")


class PairEncoder:
    """Encodes pairs for one model. Thread-safe."""

    def __init__(self, template: str | None, vocab: Vocab, edges: Edges) -> None:
        self._parts = None if template is None else _PLACE.split(template)
        self._vocab = vocab
        self._edges = edges
        self._control = ControlTokens(vocab, self._parts[::2] if self._parts else ())

    def encode(self, query: str, document: str) -> list[int]:
        """The ids of the pair. LlmrunError INVALID_REQUEST where one is no valid Unicode."""
        if self._parts is None:
            front, between, behind = self._edges
            first, second = (self._vocab.tokenize(text, special=False) for text in (query, document))
            return [*front, *first, *between, *second, *behind]
        given = {"query": query, "document": document}
        mark = Mark(self._control, given)
        marked = {name: mark.outside(text) for name, text in given.items()}
        text = "".join(marked[part] if place % 2 else part for place, part in enumerate(self._parts))
        return encode_marked(text, mark, self._control, self._vocab)
