from __future__ import annotations

from llmrun.daemon.guard import CrashGuard, delay_after
from llmrun.errors import NO_MEMORY, LlmrunError
from tests.daemon.fakes import wanted

ERROR = LlmrunError(NO_MEMORY, "too large", needed=9)


def test_delay_after_grows_to_a_minute() -> None:
    assert [delay_after(failures) for failures in range(1, 11)] == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_refusal_after_one_failure_is_none() -> None:
    guard = CrashGuard()
    guard.failed(wanted("a"), ERROR, now=0)
    assert guard.refusal(wanted("a"), now=0) is None


def test_refusal_after_two_failures_keeps_the_reason_and_its_numbers() -> None:
    guard = CrashGuard()
    for _ in range(2):
        guard.failed(wanted("a"), ERROR, now=0)
    refusal = guard.refusal(wanted("a"), now=0.5)
    assert refusal is not None
    assert refusal.kind is NO_MEMORY
    assert refusal.details == {"needed": 9, "retry_after": 1}
    assert guard.refusal(wanted("a"), now=1.0) is None


def test_refusal_of_another_model_or_context_is_none() -> None:
    guard = CrashGuard()
    for _ in range(5):
        guard.failed(wanted("a"), ERROR, now=0)
    assert guard.refusal(wanted("b"), now=0) is None
    assert guard.refusal(wanted("a", ctx=512), now=0) is None


def test_served_clears_the_record() -> None:
    guard = CrashGuard()
    for _ in range(5):
        guard.failed(wanted("a"), ERROR, now=0)
    guard.served("a")
    assert guard.refusal(wanted("a"), now=0) is None
