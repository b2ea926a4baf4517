"""A request as the filler points at it: its pieces, where values may begin and end, and its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from conductor.policy.parts import Floats
from conductor.policy.values.numbers import NumberMention, find_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class PointedText:
    """A request with its pieces, and where spans may begin and end."""

    request: str
    spans: Sequence[tuple[int, int]]
    begins: Floats
    """0 where a word begins, very low elsewhere."""
    ends: Floats
    numbers: tuple[tuple[NumberMention, int, int], ...]
    """Every number with its first and last piece."""


def pointed_text(request: str, spans: Sequence[tuple[int, int]]) -> PointedText:
    """`request` with the characters `spans` of its pieces."""
    begins = np.full(len(spans), -1e6, dtype=np.float32)
    ends = np.full(len(spans), -1e6, dtype=np.float32)
    for index, (start, end) in enumerate(spans):
        if start == end:
            continue
        if not (start and request[start - 1].isalnum() and request[start].isalnum()) or _ideograph(request[start]):
            begins[index] = 0
        if not (end < len(request) and request[end].isalnum() and request[end - 1].isalnum()) or _ideograph(
            request[end - 1]
        ):
            ends[index] = 0
    return PointedText(
        request=request, spans=spans, begins=begins, ends=ends, numbers=number_pieces(request, spans)
    )


def number_pieces(request: str, spans: Sequence[tuple[int, int]]) -> tuple[tuple[NumberMention, int, int], ...]:
    """Every number in `request` with its first and last piece."""
    found = []
    for mention in find_numbers(request):
        covered = covering(spans, mention.start, mention.end)
        if covered:
            found.append((mention, *covered))
    return tuple(found)


def covering(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """First and last piece that share characters with [start, end); None when it was cut off."""
    pieces = [index for index, (left, right) in enumerate(spans) if right > left and left < end and start < right]
    return (pieces[0], pieces[-1]) if pieces else None


def _ideograph(letter: str) -> bool:
    return "\u4e00" <= letter <= "\u9fff"
