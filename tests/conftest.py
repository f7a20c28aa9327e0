"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes on a busy machine says nothing of the code.
settings.register_profile("llmrun", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("llmrun")
