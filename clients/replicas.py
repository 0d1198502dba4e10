"""Which replica is asked next, and when."""

import time
from collections.abc import Iterator, Sequence

from tenacity import (
    AttemptManager,
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from clients.errors import is_temporary

_BACKOFF = wait_random_exponential(multiplier=0.1, max=10)
_LONGEST_PAUSE_S = 60.0


class Replicas:
    """Each has its turn when the one before fails, until nothing has come for `patience_s`."""

    def __init__(self, urls: Sequence[str], patience_s: float) -> None:
        self._free_at_s = dict.fromkeys(urls, 0.0)
        self._patience_s = patience_s

    def attempts(self) -> Iterator[tuple[AttemptManager, str]]:
        """Each try with the replica to ask, the one that has been left alone for long enough."""
        url = ""

        def pause_s(failed: RetryCallState) -> float:
            now_s = time.monotonic()
            error = failed.outcome.exception() if failed.outcome else None
            alone_s = max(_BACKOFF(failed), getattr(error, "pause_s", 0))
            self._free_at_s[url] = now_s + min(alone_s, _LONGEST_PAUSE_S)
            return max(0, min(self._free_at_s.values()) - now_s)

        # A pause that would outlast the patience is not begun.
        over = stop_before_delay(self._patience_s) & stop_after_attempt(len(self._free_at_s))
        again = retry_if_exception(is_temporary)
        for attempt in Retrying(retry=again, stop=over, wait=pause_s, reraise=True):
            url = min(self._free_at_s, key=lambda one: self._free_at_s[one])
            yield attempt, url


def begin_again(attempt: AttemptManager) -> None:
    """Something came: what fails from now on is a first failure."""
    attempt.retry_state.attempt_number = 1
    attempt.retry_state.start_time = time.monotonic()
