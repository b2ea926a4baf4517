"""Which steps wait for which, while references between them are decided one by one: never in a circle."""

from collections.abc import Set


class Waiting:
    """Steps by place; a step waits for those whose results it takes."""

    def __init__(self, steps: int) -> None:
        self._needing: list[set[int]] = [{step} for step in range(steps)]

    def barred(self, step: int) -> Set[int]:
        """The steps that `step` must not take anything from: itself, and all that wait for it."""
        return self._needing[step]

    def add(self, step: int, source: int) -> None:
        """Have `step` wait for `source`, which must not be barred."""
        for needing in self._needing:
            if source in needing:
                needing |= self._needing[step]
