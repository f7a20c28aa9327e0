"""The prompt after which a model writes what belongs between two texts, as token ids.

The order of the parts is the one that llama-server documents: snippets of other files, the text in front,
the text behind. Control tokens in the texts are plain text.
"""

from __future__ import annotations

from collections.abc import Sequence

from llmrun.chat.vocab import Vocab
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Snippet

_PROJECT, _FILE = "myproject", "filename"  # what the project and the open file are called is not known
_BORDER = "\n\n--- snippet ---\n\n"  # before a snippet, for models without a token for it


def infill_prompt(
    prefix: str | Sequence[int | str] | None,
    suffix: str,
    snippets: Sequence[Snippet] | None,
    vocab: Vocab,
    most: int | None = None,
) -> list[int]:
    """The ids, without BOS. INVALID_REQUEST where the model has no tokens for this, or `prefix` is no text.

    snippets  None: a prompt of the two texts alone; a project in view, though of no snippets, makes another
    most      stop soon behind so many ids, of which there are more then
    """
    if vocab.fim is None:
        raise LlmrunError(
            INVALID_REQUEST,
            "this model cannot fill in the middle: its vocabulary has no tokens for that",
            hint="leave the suffix out, or use a model made for code",
            field="suffix",
        )
    if not isinstance(prefix, str):
        raise LlmrunError(INVALID_REQUEST, "the prompt in front of a suffix should be text", field="prompt")
    before, after, middle = vocab.fim

    def plain(text: str) -> list[int]:
        return vocab.tokenize(text, special=False, most=most)

    project: list[int] = []
    if snippets is not None and vocab.fim_repo is not None:
        project += [vocab.fim_repo, *plain(f"{_PROJECT}\n")]
    for snippet in snippets or ():
        if vocab.fim_file is None:
            project += plain(_BORDER)
        else:
            project += [vocab.fim_file, *plain(f"{snippet.filename}\n")]
        project += plain(snippet.text)
        if most is not None and len(project) > most:
            return project
    if snippets is not None and vocab.fim_file is not None:
        project += [vocab.fim_file, *plain(f"{_FILE}\n")]
    return [*project, before, *plain(prefix), after, *plain(suffix), middle]
