"""Follow a value that evidence names back through the data flow to the step that brought it in."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conductor.history import Attempt, History

_TOKEN = re.compile(
    r"""(?P<quoted>'[^']{1,200}'|"[^"]{1,200}")|(?P<number>(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]))"""
    r"""|(?P<word>[^\W\d_][\w-]{2,})"""
)
_MAX_LEAVES = 20_000


def culprit(history: History, attempt: Attempt, evidence: Iterable[str]) -> tuple[Attempt, str]:
    """The step that brought in the value that evidence complains of first, and that value in words.

    The first number, quoted text or known word of each line of evidence is taken as the value complained of. When
    it was among the attempt's inputs it came from a step before; that step's own inputs are searched in turn. A
    value that no input holds was made by the attempt itself.
    """
    for line in evidence:
        for value in _values(_without_name(line)):
            found = _owner(history, attempt, value)
            if found is not None:
                return found, _shown(value)
            if not isinstance(value, _Word):
                break  # the first definite value of the line is the one complained of
    return attempt, ""


class _Word(str):
    """A bare word: it counts only when some input holds exactly this text."""

    __slots__ = ()


def _owner(history: History, attempt: Attempt, value: float | str) -> Attempt | None:
    """The earliest step up the data flow whose output holds the value; None when no input of the attempt does."""
    for name, (uid, _) in attempt.origins.items():
        before = history.done(uid)
        given = attempt.inputs.get(name) if attempt.inputs else (before.output if before is not None else None)
        if before is not None and any(_same(leaf, value) for leaf in leaves(given)):
            return _owner(history, before, value) or before
    return None


def leaves(value: Any) -> Iterator[Any]:
    """The numbers and texts of a JSON value, at most 20,000 of them."""
    pending = [value]
    for _ in range(_MAX_LEAVES):
        if not pending:
            return
        item = pending.pop()
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, Sequence) and not isinstance(item, str):
            pending.extend(item)
        elif item is not None and not isinstance(item, bool):
            yield item


def _values(line: str) -> Iterator[float | str]:
    for match in _TOKEN.finditer(line):
        if match["quoted"]:
            yield match["quoted"][1:-1]
        elif match["number"]:
            yield float(match["number"])
        else:
            yield _Word(match["word"])


def _without_name(line: str) -> str:
    """Evidence begins with the name of the check that speaks; numbers in names are not values."""
    name, separator, rest = line.partition(": ")
    return rest if separator and " " not in name else line


def _same(leaf: Any, value: float | str) -> bool:
    if isinstance(value, str):
        return str(leaf) == str(value)
    try:
        number = float(leaf)
    except ValueError:
        return False
    return abs(number - value) <= 1e-9 * max(1.0, abs(number), abs(value))


def _shown(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(str(value))
