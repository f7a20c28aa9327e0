"""What holds for all tests, and how they are shared out where two processes run them (`scripts/test`)."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes on a busy machine says nothing of the code.
settings.register_profile("llmrun", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("llmrun")

# A shell has what it starts in the background ignore Ctrl-C, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REAL = "tests/real/"
APART = frozenset(
    f"{REAL}test_{name}.py"
    for name in ("drafting", "editors", "faults_stuck", "many_clients", "openapi", "oracle", "plan", "pull")
)
"""Of the real tests those that neither run a daemon over the home they share nor keep all processors busy."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file stay in one process. So do the real ones, for there is one daemon a home, and two
    that compute at once would wait for each other."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return REAL if file.startswith(REAL) and file not in APART else file

    return ByFile(config, log)
