"""How many threads compute a decoding step, found out by trying. Pure: it is told times and the time.

More threads are not always faster: in a tiny model they wait for each other longer than they work, and beside
a busy neighbour every step waits for the thread that has no core. So the engine's own steps are the test:

- At first trials of fewer threads, until one is lost. The outcome can be kept (`explored`).
- Fewer again when steps take much longer than the fastest of as many rows did: somebody else is computing.
  At once, where steps became so slow only after fewer threads had lost.
- More again from time to time while there are fewer than there could be: the neighbour may be gone.

A trial is a few steps. It is compared with the steps before it, row count by row count, and what was tried
stays only where it is clearly faster. Trials that follow each other closely are ever further apart, so that
noise does not make it flap, and costs ever less.
"""

from __future__ import annotations

from collections import deque
from statistics import median

WINDOW = 16
"""Steps of a trial, and of what it is compared with."""
_HOPELESS_AFTER = 4  # steps of a trial
_HOPELESS = 1.3  # of the time before
_FASTER = 0.9  # of the time before: then the trial stays
_BUSY = 1.4  # of the fastest
_FORGET = 1.001  # the fastest is believed a little less with each step
_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 30.0
_CLOSE_S = 60.0  # trials that begin so soon after they may are close to the one before


class ThreadChoice:
    """Between 1 and `most` threads. `start`: where an earlier trial ended. Used by the engine's thread."""

    def __init__(self, most: int, start: int | None = None) -> None:
        self.most = most
        self.threads = min(start, most) if start else most
        """Those that are in force while nothing is tried."""
        self.explored = start is not None
        """Whether fewer threads were tried, and lost, or none are left to try."""
        self._tried: int | None = None
        self._fastest: dict[int, float] = {}  # seconds by rows, with the threads in force
        self._slowness: deque[float] = deque(maxlen=WINDOW)  # of the newest steps, as shares of the fastest
        self._trial: list[float] = []  # the same with the threads that are tried
        self._left = 0  # steps that the trial may have at most
        self._quiet_until = 0.0
        self._pause = _PAUSE_S
        self._lost_at = 1.0  # how slow steps were when a trial of fewer was lost

    @property
    def next(self) -> int:
        """For the next decoding step."""
        return self.threads if self._tried is None else self._tried

    @property
    def trying(self) -> bool:
        """Whether the next step is part of a trial."""
        return self._tried is not None

    def observe(self, rows: int, seconds: float, now: float) -> float:
        """A decoding step of so many rows with `next` threads took so long. What all steps cost from now on,
        as a share of what they did: 1 but where a trial was won."""
        if self._tried is None:
            self._take(rows, seconds)
            if len(self._slowness) == WINDOW and (now >= self._quiet_until or self._changed):
                self._consider()
            return 1.0
        self._left -= 1
        if rows in self._fastest:
            self._trial.append(seconds / self._fastest[rows])
        return self._judge(now)

    def _take(self, rows: int, seconds: float) -> None:
        fastest = self._fastest.get(rows, seconds) * _FORGET
        self._fastest[rows] = min(fastest, seconds)
        self._slowness.append(seconds / self._fastest[rows])

    @property
    def _changed(self) -> bool:
        """Whether steps became slow since fewer threads lost."""
        bound = _BUSY * self._lost_at
        return self.threads > 1 and self._slowness[-1] > bound and median(self._slowness) > bound

    def _consider(self) -> None:
        """Begin a trial, if there is a reason for one."""
        self._left = 4 * WINDOW
        busy = median(self._slowness) > _BUSY
        if not busy:
            self._lost_at = 1.0
        if self.threads > 1 and (busy or not self.explored):
            self._tried = self.threads - max(1, self.threads // 4)
        elif self.threads < self.most and not busy:
            self._tried = min(self.most, self.threads + max(1, self.threads // 3))

    def _judge(self, now: float) -> float:
        """End the trial, if it is decided."""
        count = len(self._trial)
        share = median(self._trial or [1.0]) / median(self._slowness)
        decided = count == WINDOW or (count >= _HOPELESS_AFTER and share > _HOPELESS)
        if not (decided or self._left == 0):
            return 1.0
        won = count == WINDOW and share < _FASTER
        assert self._tried is not None
        if not won and self._tried < self.threads:
            self._lost_at = median(self._slowness)
        if won:
            self.threads = self._tried
            self._fastest.clear()
        self.explored = self.explored or self.threads == 1 or (not won and self._tried < self.threads)
        self._tried = None
        self._trial = []
        self._slowness.clear()
        if not self.explored:
            return share
        close = now - self._quiet_until < _CLOSE_S
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_S) if close else _PAUSE_S
        self._quiet_until = now + self._pause
        return share if won else 1.0
