"""Requests that the template and the vocabulary answer by themselves: the engine has no part in them."""

from __future__ import annotations

from llmrun.chat.prompt import Prompter
from llmrun.chat.vocab import Vocab
from llmrun.types import DetokenizeRequest, Lookup, Rendered, RenderRequest, Tokenized


def look_up(request: Lookup, prompter: Prompter, vocab: Vocab) -> Tokenized | Rendered:
    """The answer. LlmrunError as the prompter's and the vocabulary's, with the field at fault."""
    if isinstance(request, RenderRequest):
        return Rendered(prompter.render(request.prompt))
    if isinstance(request, DetokenizeRequest):
        tokens = prompter.checked(request.tokens, "tokens")
        return Rendered(vocab.detokenize(tokens).decode("utf-8", "replace"))
    if request.prompt is not None:
        tokens = prompter.encode(request.prompt)
    else:
        tokens = vocab.tokenize(request.text, special=request.special, edges=request.edges)
    if not request.pieces:
        return Tokenized(tuple(tokens))
    pieces = {token: vocab.detokenize([token]) for token in set(tokens)}
    return Tokenized(tuple(tokens), tuple(pieces[token] for token in tokens))
