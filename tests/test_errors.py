from __future__ import annotations

import pytest

from llmrun.errors import CONTEXT_LENGTH, INTERNAL, KINDS, Kind, LlmrunError
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
