"""Threads for work beside the event loop, on a system that may have no more of them."""

from concurrent.futures import ThreadPoolExecutor


class Workers(ThreadPoolExecutor):
    """Where the system has no thread for more work, those that there are do it as well.

    Such work would be an error, though it lies in the queue by then, and would be done for nobody.
    """

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
