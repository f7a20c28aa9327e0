"""The same promises over vocabularies that llama.cpp itself reads.

`LLMRUN_TEST_VOCABS` names a folder of GGUF files to go through beside the one written here, such as
`models` in llama.cpp's source, or one with whole models.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmrun.chat.control import ControlTokens
from llmrun.chat.encoding import encode_marked
from llmrun.chat.mark import Mark
from llmrun.chat.prompt import Prompter
from llmrun.types import GenerateRequest, Message
from tests.chat.vocabs import native_vocab, real_vocab_files, write_spm_vocab

TEMPLATE = (
    "{% for m in messages %}{{ mine }}{{ m.role }}\n{{ m.content | trim | replace('/no', '') }}"
    "{{ [m.content] | tojson }}{{ '<' ~ m.name ~ '>' }}{{ mine }}{% endfor %}"
)
WORDS = [
    "Hello",
    " world",
    "\n",
    "  ",
    "<",
    "<|",
    "é日本",
    "|>",
    "\n\n",
    "1234",
    "don't",
    "</s",
    "🦙",
    " <b> ",
]


@pytest.fixture(
    scope="module", params=[None, *real_vocab_files()], ids=lambda path: path.stem if path else "spm"
)
def vocab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path | None = request.param
    with native_vocab(path or write_spm_vocab(tmp_path_factory.mktemp("vocab") / "spm.gguf")) as opened:
        yield opened


def test_encode_equals_llama_tokenize_with_parse_special(vocab: Any) -> None:
    control = ControlTokens(vocab, ["<tool>"])
    mark = Mark(control, "")
    draw = random.Random(1)
    words = WORDS + draw.sample(sorted(control.ids), min(20, len(control.ids))) * 2
    words += sorted(vocab.user_defined_tokens())[:20]
    for _ in range(400):
        text = "".join(draw.choices(words, k=draw.randint(1, 14)))
        assert encode_marked(text, mark, control, vocab) == vocab.tokenize(text, special=True), repr(text)


def test_hostile_messages_make_no_control_token(vocab: Any) -> None:
    mine = max(vocab.control_tokens(), key=len)
    prompter = Prompter(TEMPLATE.replace("{{ mine }}", mine), vocab)
    control = ControlTokens(vocab, prompter_literals(mine))
    unknown = set(vocab.tokenize("\u0378🦙", special=False))  # where the vocabulary has no bytes
    draw = random.Random(2)
    spellings = draw.sample(sorted(control.ids), min(20, len(control.ids)))

    def piece() -> str:
        spelling = draw.choice(spellings)
        at = draw.randint(0, len(spelling))
        return draw.choice(
            [spelling, spelling[:at], spelling[at:], f"{spelling[:at]}/no{spelling[at:]}", " ", "a"]
        )

    for _ in range(150):
        text = "".join(piece() for _ in range(draw.randint(0, 6)))
        message = Message(role="user", content=text, name=draw.choice(["s", "/s", "tool", "unk", piece()]))
        ids = prompter.encode(GenerateRequest(id="r", model="m", messages=(message,)))
        made = [i for i in ids if i in control.tokens and i not in unknown]
        begun = [vocab.bos] if vocab.add_bos and vocab.bos != control.ids[mine] else []
        assert made == [*begun, control.ids[mine], control.ids[mine]], repr(message)


def prompter_literals(mine: str) -> list[str]:
    return [TEMPLATE, mine, "<"]


def test_spm_merge_into_a_control_token_is_cut_open(tmp_path: Path) -> None:
    with native_vocab(write_spm_vocab(tmp_path / "spm.gguf")) as vocab:
        assert 2 in vocab.tokenize("a</s>b", special=False)  # what makes the cut necessary
        prompter = Prompter("{{ messages[0].content }}<tool>", vocab)
        ids = prompter.encode(
            GenerateRequest(id="r", model="m", messages=(Message(role="user", content="a</s><tool>b"),))
        )
        assert vocab.detokenize(ids[1:]).decode() == " a</s><tool>b<tool>"
        assert [i for i in ids if i < 3 or vocab.text(i) == "<tool>"] == [1, ids[-1]]


def test_tokenize_long_text_in_pieces_as_in_one(vocab: Any) -> None:
    prose = "The others, said he (twice).\n\n\tThey'd gone\n  there: 1234 times, café 日本 again; " * 1500
    assert vocab.tokenize(prose, special=True) == vocab._tokenize(prose, special=True, edges=False)
