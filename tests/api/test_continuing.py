from __future__ import annotations

import pytest

from llmrun.api.continuing import continuing
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import GenerateRequest, Message, OutputFormat, ToolCall

HI = Message(role="user", content="Hi")
JSON = OutputFormat(kind="json_object", field="format")


def asked(*messages: Message, output_format: OutputFormat | None = None) -> GenerateRequest:
    return GenerateRequest(id="r", model="m", messages=messages, output_format=output_format)


def gone_on(request: GenerateRequest) -> GenerateRequest:
    return continuing(request, last="messages.1", format_field="format")


@pytest.mark.parametrize(
    "begun", [Message(role="assistant", content="Well,"), Message(role="assistant", reasoning="Hm")]
)
def test_continuing_last_message_of_the_assistants_is_gone_on_from(begun: Message) -> None:
    request = gone_on(asked(HI, begun))
    assert (request.continues, request.messages) == (True, (HI, begun))


def test_continuing_other_requests_stay_as_they_are() -> None:
    for request in (
        asked(HI, Message(role="assistant", content="Yes."), HI, output_format=JSON),
        GenerateRequest(id="r", model="m", prompt="Once"),
    ):
        assert gone_on(request) == request


def test_continuing_last_message_without_a_word_is_left_out() -> None:
    empty = Message(role="assistant")
    assert gone_on(asked(HI, empty)) == asked(HI)
    assert gone_on(asked(empty)) == asked(empty)


def test_continuing_what_cannot_be_gone_on_from_is_refused_by_name() -> None:
    with pytest.raises(LlmrunError) as calls:
        gone_on(asked(HI, Message(role="assistant", tool_calls=(ToolCall(name="look"),))))
    assert (calls.value.kind, calls.value.field) == (INVALID_REQUEST, "messages.1")
    with pytest.raises(LlmrunError) as formatted:
        gone_on(asked(HI, Message(role="assistant", content="Well,"), output_format=JSON))
    assert (formatted.value.kind, formatted.value.field) == (UNSUPPORTED_FIELD, "format")
