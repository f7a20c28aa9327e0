from __future__ import annotations

import pytest

from llmrun.api.continuing import continuing
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import GenerateRequest, Message, ToolCall

HI = Message(role="user", content="Hi")


def asked(*messages: Message) -> GenerateRequest:
    return GenerateRequest(id="r", model="m", messages=messages)


def gone_on(request: GenerateRequest) -> GenerateRequest:
    return continuing(request, last="messages.1")


@pytest.mark.parametrize(
    "begun", [Message(role="assistant", content="Well,"), Message(role="assistant", reasoning="Hm")]
)
def test_continuing_last_message_of_the_assistants_is_gone_on_from(begun: Message) -> None:
    request = gone_on(asked(HI, begun))
    assert (request.continues, request.messages) == (True, (HI, begun))


def test_continuing_other_requests_stay_as_they_are() -> None:
    for request in (
        asked(HI, Message(role="assistant", content="Yes."), HI),
        GenerateRequest(id="r", model="m", prompt="Once"),
    ):
        assert gone_on(request) == request


def test_continuing_last_message_without_a_word_is_left_out() -> None:
    empty = Message(role="assistant")
    assert gone_on(asked(HI, empty)) == asked(HI)
    assert gone_on(asked(empty)) == asked(empty)


def test_continuing_calls_without_results_are_refused_by_name() -> None:
    with pytest.raises(LlmrunError) as caught:
        gone_on(asked(HI, Message(role="assistant", tool_calls=(ToolCall(name="look"),))))
    assert (caught.value.kind, caught.value.field) == (INVALID_REQUEST, "messages.1")
