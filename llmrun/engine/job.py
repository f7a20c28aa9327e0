"""One request in the engine: its answers, its clock readings, its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field

from llmrun.engine.latency import Latencies
from llmrun.engine.request import EngineRequest
from llmrun.engine.sequence import Sequence, State
from llmrun.types import Progress, Timings, Usage


@dataclass
class Job:
    """Times are on the engine's clock, in seconds; None until the moment has come. `gaps`: between the tokens
    of each answer; tokens that a step gave together count as one."""

    request: EngineRequest
    sequences: list[Sequence] = field(init=False)
    started: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    gaps: Latencies = field(default_factory=Latencies)

    def __post_init__(self) -> None:
        self.sequences = [Sequence(self.request, 0)]

    def others(self) -> list[Sequence]:
        """The sequences of all answers but the first, made now; to be called once."""
        made = [Sequence(self.request, index) for index in range(1, self.request.n)]
        self.sequences += made
        return made

    @property
    def ended(self) -> bool:
        """Whether every answer is complete."""
        return all(sequence.state is State.ENDED for sequence in self.sequences)

    def sampled(self, sequence: Sequence, now: float) -> None:
        """A step gave one of the answers a token or more."""
        if sequence.last_token is None:
            sequence.first_token = now
        else:
            self.gaps.add(now - sequence.last_token)
        sequence.last_token = now
        if self.first_token is None:
            self.first_token = now
        self.last_token = now

    def decoding_seconds(self, now: float) -> float:
        """Since the first token; 0 before it."""
        return 0.0 if self.first_token is None else now - self.first_token

    def progress(self, now: float) -> Progress:
        """How far the prompt is, by the first answer, whose prompt the others share."""
        first, started = self.sequences[0], now if self.started is None else self.started
        return Progress(first.computed, first.prompt_length, first.cached, (now - started) * 1e3)

    def usage(self) -> Usage:
        """Tokens so far. The prompt counts once, however many answers; `cached` is the first answer's."""
        return Usage(
            prompt=len(self.request.prompt),
            completion=sum(s.generated for s in self.sequences),
            cached=self.sequences[0].cached,
            truncated=self.request.truncated,
            reasoning=sum(s.constraint.thought for s in self.sequences if s.constraint),
            drafted=sum(s.drafted for s in self.sequences),
            accepted=sum(s.accepted for s in self.sequences),
        )

    def timings(self, now: float) -> Timings:
        """The readings in milliseconds; a moment that never came counts as `now`."""
        started = self.started or now
        first = self.first_token or now
        last = self.last_token or now
        steps = max(s.generated for s in self.sequences) - 1
        return Timings(
            queue_ms=(started - self.request.arrived) * 1e3,
            prefill_ms=(first - started) * 1e3,
            decode_ms=(last - first) * 1e3,
            ttft_ms=(first - self.request.arrived) * 1e3,
            itl_ms=(last - first) * 1e3 / steps if steps > 0 else 0.0,
            itl_p50_ms=self.gaps.percentile(0.5) * 1e3,
            itl_p95_ms=self.gaps.percentile(0.95) * 1e3,
            itl_max_ms=self.gaps.longest * 1e3,
        )
