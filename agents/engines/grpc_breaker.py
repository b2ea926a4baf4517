"""Leave an endpoint alone for a while after it failed several times, then let one call see whether it is back."""

import enum
from collections.abc import Callable


class BreakerState(enum.Enum):
    """Whether an endpoint is called."""

    CLOSED = "closed"
    """It is."""
    OPEN = "open"
    """It failed too often and is left alone."""
    HALF_OPEN = "half open"
    """One call is on its way to see whether it is back."""


class Breaker:
    """Of one endpoint; not safe to use from several threads."""

    def __init__(
        self,
        clock_s: Callable[[], float],
        *,
        threshold: int = 3,
        first_pause_s: float = 1.0,
        longest_pause_s: float = 30.0,
    ) -> None:
        """Begin closed.

        Args:
            clock_s: a clock that never goes back.
            threshold: failures in a row that open it.
            first_pause_s: how long it stays open at first; doubles with every probe that fails.
            longest_pause_s: and no longer than this.
        """
        self._clock_s = clock_s
        self._threshold = threshold
        self._first_pause_s, self._longest_pause_s = first_pause_s, longest_pause_s
        self.state = BreakerState.CLOSED
        self._failures = 0
        self._pause_s = first_pause_s
        self._until_s = 0.0

    def admits(self) -> bool:
        """Whether a call may go out now; a true answer must be followed by one of the three below."""
        if self.state is BreakerState.OPEN and self._clock_s() >= self._until_s:
            self.state = BreakerState.HALF_OPEN
            return True
        return self.state is BreakerState.CLOSED

    @property
    def pause_left_s(self) -> float:
        """How long it is still left alone."""
        return max(0.0, self._until_s - self._clock_s()) if self.state is BreakerState.OPEN else 0.0

    def succeeded(self) -> None:
        """The endpoint answered, with whatever."""
        self.state, self._failures, self._pause_s = BreakerState.CLOSED, 0, self._first_pause_s

    def failed(self) -> None:
        """The endpoint could not be reached, or was lost."""
        self._failures += 1
        if self.state is BreakerState.HALF_OPEN:
            self._pause_s = min(self._pause_s * 2, self._longest_pause_s)
        elif self.state is BreakerState.CLOSED and self._failures < self._threshold:
            return
        elif self.state is BreakerState.OPEN:
            return  # of a call that went out before it opened
        self.state, self._until_s = BreakerState.OPEN, self._clock_s() + self._pause_s

    def unsettled(self) -> None:
        """The call was given up and says nothing about the endpoint: the next one may see."""
        if self.state is BreakerState.HALF_OPEN:
            self.state, self._until_s = BreakerState.OPEN, self._clock_s()
