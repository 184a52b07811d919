"""Trying a request again, with growing, random pauses.

Every request of the store may be repeated: objects are named by their content, and a slot that a writer finds taken by
its own bytes is its own. obstore would not know that, and does not repeat a conditional write after a connection was
lost, nor a read whose answer was cut off; so its own retries are switched off and the pauses are made here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from govtool.errors import StoreError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of attempts of a request, and their delays.

    Attributes:
        attempts: At most so often.
        seconds: No new attempt after so long.
        first: The longest first pause in seconds; the longest pause doubles with each attempt, up to ``longest``.
        longest: In seconds.
        sleep: Waits for so many seconds.
    """

    attempts: int = 7
    seconds: float = 60.0
    first: float = 0.1
    longest: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def run(self, request: Callable[[], _T]) -> _T:
        """Make a request until it is answered.

        Raises:
            StoreError: the last one; at once if it is about anything else than the network or the server.
        """
        deadline = time.monotonic() + self.seconds
        pause = self.first
        for _ in range(self.attempts - 1):
            try:
                return request()
            except StoreError as error:
                if error.code != "store.unreachable" or time.monotonic() > deadline:
                    raise
            self.sleep(random.uniform(0, pause))
            pause = min(2 * pause, self.longest)
        return request()


ONCE = RetryPolicy(attempts=1)
"""For places where trying again changes nothing."""
