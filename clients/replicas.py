"""Which replica is asked next, and when."""

import time
from collections.abc import Iterator, Sequence

from tenacity import (
    AttemptManager,
    RetryCallState,
    Retrying,
    retry_if_exception,
    wait_random_exponential,
)

from clients.errors import is_temporary

_BACKOFF = wait_random_exponential(multiplier=0.1, max=2)
_LONGEST_PAUSE_S = 60.0
_MOMENT_S = 1e-3  # a clock need not come to the very end of the patience


class Replicas:
    """Each has its turn when the one before fails, until nothing has come for `patience_s` since
    the first failure."""

    def __init__(self, urls: Sequence[str], patience_s: float) -> None:
        self._free_at_s = dict.fromkeys(urls, 0.0)
        self._patience_s = patience_s

    def attempts(self) -> Iterator[tuple[AttemptManager, str]]:
        """Each try with the replica to ask, the one that has been left alone for long enough."""
        url = ""

        def pause_s(failed: RetryCallState) -> float:
            now_s = time.monotonic()
            if failed.attempt_number == 1:
                # It begins with the failure, however long that took and however late this is.
                failed.start_time = failed.outcome_timestamp or now_s
            left_s = max(0, failed.start_time + self._patience_s - now_s)
            error = failed.outcome.exception() if failed.outcome else None
            alone_s = max(min(_BACKOFF(failed), left_s), getattr(error, "pause_s", 0))
            self._free_at_s[url] = now_s + min(alone_s, _LONGEST_PAUSE_S)
            return max(0, min(self._free_at_s.values()) - now_s)

        def over(failed: RetryCallState) -> bool:
            """After a last try at the end; a pause that would outlast that is not begun. Who need
            not be waited for is asked all the same."""
            all_asked = failed.attempt_number >= len(self._free_at_s)
            if failed.upcoming_sleep == 0 and not all_asked:
                return False
            passed_s = failed.seconds_since_start or 0
            after_s = passed_s + failed.upcoming_sleep - _MOMENT_S
            return passed_s + _MOMENT_S >= self._patience_s or after_s > self._patience_s

        again = retry_if_exception(is_temporary)
        for attempt in Retrying(retry=again, stop=over, wait=pause_s, reraise=True):
            url = min(self._free_at_s, key=lambda one: self._free_at_s[one])
            yield attempt, url


def begin_again(attempt: AttemptManager) -> None:
    """Something came: what fails from now on is a first failure."""
    attempt.retry_state.attempt_number = 1
