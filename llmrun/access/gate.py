"""Whether a request may come in, by its key and how much that has used. Knows no HTTP.

In: the key that a request carries, tokens as they are computed. Out: the key's record, or the error that
refuses it. Used from one thread.
"""

from __future__ import annotations

import hmac
import time
from collections import Counter
from collections.abc import Callable

from llmrun.access.key import ApiKey, find
from llmrun.access.keyring import Keyring
from llmrun.access.limiter import RateLimiter, day_of, until_tomorrow
from llmrun.access.usage import KeyUsage, UsageLog
from llmrun.errors import BUDGET_SPENT, RATE_LIMITED, UNAUTHORIZED, LlmrunError


class Gate:
    """The checks of one daemon.

    api_key   the owner's, from the settings: it may do everything
    keyring   the keys given to others, and `usage`, what they used; both or none
    always    a key is wanted even where none was ever set (open to other machines)
    no_auth   no key is wanted, whatever is set; one that is sent counts all the same
    """

    def __init__(
        self,
        api_key: str | None,
        keyring: Keyring | None = None,
        usage: UsageLog | None = None,
        *,
        always: bool = False,
        no_auth: bool = False,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self._api_key = api_key
        self._keyring = keyring
        self._usage = usage
        self._always = always
        self._no_auth = no_auth
        self._clock = clock
        self._calendar = calendar
        self._rates = RateLimiter()
        self.refused: Counter[tuple[str, str]] = Counter()
        """Requests refused, by a key's name and the code of the error."""

    def admit(self, secret: str, *, counts: bool = True) -> ApiKey | None:
        """The key that a request carries; None for the owner, and for everybody where no key is wanted.
        LlmrunError UNAUTHORIZED, RATE_LIMITED.

        counts  whether it is one of the requests that a key may send in a minute
        """
        keys = self._keyring.entries() if self._keyring else ()
        if secret and (key := find(keys, secret)):
            if counts:
                self._count_request(key)
            return key
        if self._no_auth or not (self._always or keys or self._api_key is not None):
            return None
        if self._api_key is not None and hmac.compare_digest(secret.encode(), self._api_key.encode()):
            return None
        what = "the API key is wrong" if secret else "an API key is needed"
        raise LlmrunError(
            UNAUTHORIZED, what, hint="send Authorization: Bearer KEY (llmrun sends LLMRUN_API_KEY)"
        )

    def tokens_left(self, key: ApiKey) -> int | None:
        """How many tokens a key may still use today; None: any number. LlmrunError BUDGET_SPENT for none."""
        left = self._left(key)
        if left is None or left > 0:
            return left
        self.refused[key.name, BUDGET_SPENT.code] += 1
        raise LlmrunError(
            BUDGET_SPENT,
            f"the key {key.name} has used its {key.tokens_per_day} tokens of today",
            hint="the next day begins at midnight UTC",
            retry_after=until_tomorrow(self._calendar()),
        )

    def is_overdrawn(self, key: ApiKey) -> bool:
        """Whether a key has used more tokens today than it has."""
        left = self._left(key)
        return left is not None and left < 0

    def _left(self, key: ApiKey) -> int | None:
        if key.tokens_per_day is None:
            return None
        return key.tokens_per_day - self.used(key).tokens_on(day_of(self._calendar()))

    def count(self, key: ApiKey, *, prompt: int = 0, completion: int = 0) -> None:
        """A key used tokens."""
        if self._usage:
            self._usage.add(key.id, self._calendar(), prompt=prompt, completion=completion)

    def used(self, key: ApiKey) -> KeyUsage:
        """What a key used so far."""
        return self._usage.used(key.id) if self._usage else KeyUsage()

    def entries(self) -> tuple[ApiKey, ...]:
        """All keys given to others, revoked ones too."""
        return self._keyring.entries() if self._keyring else ()

    def _count_request(self, key: ApiKey) -> None:
        if key.requests_per_minute is not None:
            wait = self._rates.take(key.id, key.requests_per_minute, self._clock())
            if wait > 0:
                self.refused[key.name, RATE_LIMITED.code] += 1
                raise LlmrunError(
                    RATE_LIMITED,
                    f"the key {key.name} may send {key.requests_per_minute} requests a minute",
                    retry_after=wait,
                )
        if self._usage:
            self._usage.add(key.id, self._calendar(), requests=1)
