"""GBNF as Lark. The oracle is llama.cpp's own sampler for such grammars: it takes what ours lets through."""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Iterator

import pytest
from llguidance import LLMatcher, LLTokenizer

from llmrun.chat.gbnf import GbnfFault, to_lark
from llmrun.llama import Model
from llmrun.llama.library import lib
from tests.support.models import tiny_model
from tests.support.tiny import FIRST_BYTE

ENDS = 200  # bytes after which a walk stops


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    loaded = tiny_model(tmp_path_factory.mktemp("model"))
    yield loaded
    loaded.close()


def walk(grammar: str, seed: int) -> bytes:
    """Text that ours allows, byte by byte, chosen by chance; whole where it came to an end."""
    tokenizer, rng, text = LLTokenizer("byte"), random.Random(seed), b""
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(to_lark(grammar)), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    while len(text) < ENDS and not matcher.is_stopped():
        mask = matcher.compute_bitmask()
        allowed = [byte for byte in range(256) if mask[byte // 8] >> byte % 8 & 1]
        if matcher.is_accepting() and (not allowed or rng.random() < 0.3):
            break
        byte = rng.choice(allowed)
        matcher.consume_token(byte)
        text += bytes([byte])
    return text


def takes(model: Model, grammar: str, text: bytes) -> bool:
    """Whether llama.cpp's sampler lets a text through, byte by byte."""
    sampler = lib.llama_sampler_init_grammar(model.vocab.pointer, grammar.encode(), b"root")
    assert sampler
    try:
        for byte in text:
            token = FIRST_BYTE + byte
            one = (lib.llama_token_data * 1)(lib.llama_token_data(id=token, logit=1.0, p=0.0))
            array = lib.llama_token_data_array(data=one, size=1, selected=-1, sorted=False)
            lib.llama_sampler_apply(sampler, ctypes.byref(array))
            if one[0].logit == float("-inf"):
                return False
            lib.llama_sampler_accept(sampler, token)
    finally:
        lib.llama_sampler_free(sampler)
    return True


LEFT, RIGHT = 'list ::= item | list "," item', 'list ::= item ("," item)*'
GRAMMARS = [
    "root ::= [a-c&&b-z]{12}",
    "root ::= [+--]{12}",
    "root ::= [#-]{8} [^a-y&&--]",
    "root ::= [a-e--b-d]{12} [a-e~~b-z]{12}",
    r"root ::= [\x01-\x1f] [\"\\\]\[] [/] [.*^$] [^\n]",
    r'root ::= "\x41\u00e9\U0001F600\t\r\n\"\\\[\]" "/*+?{}|()" .',
    'root ::= ("a"+)? ("b"*)* ([a-z]{2})? ("c"{2}){3} ("d"{2,3}){1,} "e"{0}',
    'root ::= start START\nstart ::= "s" | | T0\nSTART ::= [S]\nT0 ::= "t"',
    'root ::= (x | "(" root ")")* ws # all of it\n\n\nx ::= "x" | [0-9]+\nws ::= [ \\t\\n]*\n',
    'root ::= item ("," (\n  item |\n  "?" # an item\n) )*\nitem ::= "[" list? "]"\n' + LEFT,
]


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_to_lark_walks_are_let_through_by_llama_cpp(model: Model, grammar: str) -> None:
    texts = [walk(grammar, seed) for seed in range(30)]
    oracle = grammar.replace(LEFT, RIGHT)  # llama.cpp does not take what begins with itself
    assert all(takes(model, oracle, text) for text in texts)
    assert len({text for text in texts if text}) > 1


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ("root ::= [a-c&&b-z]{4}", "&az&"),
        ("root ::= [+--]{3}", "+,-"),
        ("root ::= [%--z]{3}", "%-z"),
        ('root ::= ("a"+)? "b"', "b"),
        ('root ::= "\\U0001F600"', "\N{GRINNING FACE}"),
        ('root ::= "a"{0} "b"', "b"),
    ],
)
def test_to_lark_takes_the_texts_that_the_notation_means(grammar: str, text: str) -> None:
    tokenizer = LLTokenizer("byte")
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(to_lark(grammar)))
    assert matcher.consume_tokens(list(text.encode()))
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("grammar", "said"),
    [
        ("", "there is no rule 'root'"),
        ('a ::= "a"', "there is no rule 'root'"),
        ("root ::= x", "line 1, column 10: there is no rule 'x'"),
        ('root ::= "a"\nroot ::= "b"', "line 2, column 1: the rule 'root' is there twice"),
        ('root ::= "a', "line 1, column 10: the text has no end"),
        ("root ::= [ab", "line 1, column 10: the class has no end"),
        ("root ::= []", "the class is empty"),
        ("root ::= [z-a]", "a range ends before it begins"),
        (r'root ::= "\q"', r"line 1, column 11: \q is no escape"),
        (r'root ::= "\x4z"', r"\x4z is no escape"),
        (r'root ::= "\ud800"', r"\ud800 is no character"),
        ('root ::= ("a"', "line 1, column 14: ) is wanted, not the end"),
        ('root ::= "a" }', "line 1, column 14: the end of the rule is wanted, not '}'"),
        ('root ::= "a"{x}', "{m}, {m,} or {m,n} is wanted"),
        ('root ::= "a"{3,2}', "the second number is less than the first"),
        ('root = "a"', "::= is wanted, not '='"),
        ("root ::= <[12]>", "tokens (<…>) are not supported"),
        ("root ::= " + "(" * 30_000, "it is nested too deeply"),
    ],
)
def test_to_lark_of_what_is_no_gbnf_says_where(grammar: str, said: str) -> None:
    with pytest.raises(GbnfFault, match=re.escape(said)):
        to_lark(grammar)
