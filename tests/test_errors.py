from __future__ import annotations

import errno

import pytest

from llmrun.errors import (
    CONTEXT_LENGTH,
    INTERNAL,
    KINDS,
    LONGEST,
    OVERLOADED,
    Kind,
    LlmrunError,
    is_exhaustion,
    short_of_memory,
)
from llmrun.types import ErrorInfo


def test_error_over_a_process_border_is_the_same() -> None:
    error = LlmrunError(CONTEXT_LENGTH, "too long", field="prompt", prompt_tokens=9, context=8)
    copy = LlmrunError.from_info(error.info())
    assert (copy.kind, copy.message, copy.hint, copy.field, copy.details) == (
        error.kind,
        error.message,
        error.hint,
        error.field,
        error.details,
    )


def test_again_of_a_raised_error_says_the_same_without_its_traceback() -> None:
    with pytest.raises(LlmrunError) as caught:
        raise LlmrunError(CONTEXT_LENGTH, "too long", context=8)
    copy = caught.value.again()
    assert copy.info() == caught.value.info()
    assert copy.__traceback__ is None


def test_error_in_words_is_what_then_how_to_mend_it() -> None:
    assert str(LlmrunError(CONTEXT_LENGTH, "too long", hint="cut it")) == "too long. cut it"
    assert str(LlmrunError(CONTEXT_LENGTH, "too long", hint="")) == "too long"


def test_error_from_a_newer_peer_is_internal_but_keeps_its_words() -> None:
    error = LlmrunError.from_info(ErrorInfo(code="from_the_future", message="odd"))
    assert (error.kind, error.message) == (INTERNAL, "odd")


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_kind_has_an_http_error_and_a_failing_exit_code(kind: Kind) -> None:
    assert 400 <= kind.status < 600
    assert kind.exit in {1, 2, 3, 4, 5, 130}
    assert KINDS[kind.code] is kind


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (ImportError("libopenblas.so: failed to map segment from shared object"), True),
        (OSError("libllama.so: cannot allocate memory in static TLS block"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.ENOENT, "No such file"), False),
        (ImportError("No module named x"), False),
        (ValueError("cannot allocate memory"), False),
    ],
)
def test_is_exhaustion_knows_every_wording(error: BaseException, verdict: bool) -> None:
    assert is_exhaustion(error) is verdict


def test_short_of_memory_says_when_to_come_again_and_nothing_of_other_errors() -> None:
    short = short_of_memory(MemoryError())
    assert short is not None
    assert (short.kind, short.details) == (OVERLOADED, {"retry_after": 5})
    assert short_of_memory(ValueError("x")) is None


def test_error_that_quotes_megabytes_is_cut() -> None:
    error = LlmrunError(INTERNAL, "x" * 10**6, field="y" * 10**6)
    assert error.message == "x" * LONGEST + "…"
    assert error.field == "y" * LONGEST
    assert error.again().message == error.message
