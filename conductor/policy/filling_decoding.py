"""From the scores of the joint pass to arguments: the likeliest way in which each gets a valid value."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from conductor.plan import Argument, Literal, StepRef
from conductor.policy.filling_inputs import Item
from conductor.policy.filling_kinds import (
    ABSENT,
    END,
    FIRST,
    FORM,
    INSIDE,
    LIST,
    OPTION,
    REFERENCE,
    SPAN,
    START,
    TRUE,
    UNKNOWN,
)
from conductor.policy.filling_text import PointedText, covering, pointed_text
from conductor.policy.parts import Floats
from conductor.policy.values.fields import InputField
from conductor.policy.values.forms import as_it_stands, in_form, joined, number_as_it_stands, number_in_form
from conductor.policy.waiting import Waiting

_LONGEST_SPAN = 48
_TRIED = 6
_BARRED = 4
"""How many times over a piece counts as used that must not be taken again."""
_WITHIN = 0.5
"""How much the choice within a way (which piece, which option) counts against the way itself."""
DOUBTFUL = 0.3
"""How much the guess that a value is not to be found counts."""
REUSED = -2.5
"""Added to the log-probability of a piece that another argument of the same step has."""
LONGER = -0.15
"""Added for each further word piece, so that the start of one value and the end of another do not make one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """An argument and how sure the filler is of it."""

    argument: Argument
    confidence: float
    span: tuple[int, int] | None = None
    """The characters of the request that it was taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledStep:
    """A step's arguments by name; what is left out is absent."""

    arguments: Mapping[str, Filled]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The outputs of the joint pass for one request."""

    kind: Floats
    pointers: Floats
    option: Floats
    reference: Floats
    span: Floats


_Outcome = tuple[Any, float, tuple[int, int] | None]


def decode(
    request: str, spans: Sequence[tuple[int, int]], items: Sequence[Item], scores: Scores, steps: int
) -> tuple[FilledStep, ...]:
    """The arguments of every step.

    Args:
        request: The text.
        spans: The characters of its pieces.
        items: What the rows of the scores are.
        scores: From the joint pass.
        steps: How many steps there are.
    """
    text = pointed_text(request, spans)
    kinds = _softmax(scores.kind)
    found: list[dict[tuple[str, ...], Filled]] = [{} for _ in range(steps)]
    used: list[list[tuple[int, int]]] = [[] for _ in range(steps)]
    rows = [row for row, item in enumerate(items) if item.input is not None]
    waiting = Waiting(steps)
    # The surest first, so that a piece of the request goes to the argument that it fits best.
    for row in sorted(rows, key=lambda row: -_peak(kinds[row], row, scores)):
        field, step = items[row].input, items[row].step
        if field is None:
            continue
        filled = _argument(text, field, items, row, kinds[row], scores, used[step], waiting.barred(step))
        if filled is None:
            continue
        found[step][field.path] = filled
        if filled.span is not None:
            used[step].append(filled.span)
        if isinstance(filled.argument, StepRef):
            waiting.add(step, filled.argument.step)
    _told_apart(text, items, rows, kinds, scores, found)
    return tuple(FilledStep(arguments=_assembled(arguments)) for arguments in found)


def _told_apart(
    text: PointedText,
    items: Sequence[Item],
    rows: Sequence[int],
    kinds: Floats,
    scores: Scores,
    found: list[dict[tuple[str, ...], Filled]],
) -> None:
    """Where two calls of one tool came out the same, give the later one the next best value that differs."""
    fields = [[row for row in rows if items[row].step == step] for step in range(len(found))]
    for step, mine in enumerate(fields):
        same = [
            earlier
            for earlier in range(step)
            if [items[row].input for row in fields[earlier]] == [items[row].input for row in mine]
        ]
        if not same or not any(_values(found[earlier]) == _values(found[step]) for earlier in same):
            continue
        best = 0.0
        change: tuple[tuple[str, ...], Filled] | None = None
        for row in mine:
            field = items[row].input
            before = found[step].get(field.path) if field is not None else None
            if field is None or before is None or before.span is None:
                continue
            held = [found[earlier].get(field.path) for earlier in same]
            barred = [filled.span for filled in held if filled is not None and filled.span is not None]
            everything = set(range(len(found)))
            other = _argument(text, field, items, row, kinds[row], scores, barred * _BARRED, everything)
            if other is None or any(filled and filled.argument == other.argument for filled in held):
                continue
            if other.confidence / max(before.confidence, 1e-9) > best:
                best, change = other.confidence / max(before.confidence, 1e-9), (field.path, other)
        if change is not None:
            found[step][change[0]] = change[1]


def _values(arguments: Mapping[tuple[str, ...], Filled]) -> dict[tuple[str, ...], Argument]:
    return {path: filled.argument for path, filled in arguments.items()}


def _peak(kinds: Floats, row: int, scores: Scores) -> float:
    """How sure the model is of where a value stands, then of whose result it is; the rest comes last."""
    if int(np.argmax(kinds)) == REFERENCE:
        return float(kinds[REFERENCE] * _softmax(scores.reference[row][None])[0].max())
    if int(np.argmax(kinds)) not in (SPAN, FORM):
        return -1.0
    return float(_together(scores.pointers[row], scores.span).max()) * 0.5 + 10.0


def _argument(
    text: PointedText,
    field: InputField,
    items: Sequence[Item],
    row: int,
    kinds: Floats,
    scores: Scores,
    used: Sequence[tuple[int, int]],
    barred: Set[int],
) -> Filled | None:
    best, found = max(float(kinds[ABSENT]), DOUBTFUL * float(kinds[UNKNOWN])), None
    for kind in np.argsort(-kinds):
        if kinds[kind] <= best:
            break
        if kind in (ABSENT, UNKNOWN):
            continue
        outcome = _way(int(kind), text, field, items, row, scores, used, barred)
        if outcome is None:
            continue
        value, probability, span = outcome
        worth = float(kinds[kind]) * probability**_WITHIN
        if worth > best:
            argument = value if isinstance(value, StepRef) else Literal(value=value)
            best = worth
            found = Filled(argument=argument, confidence=float(kinds[kind]) * probability, span=span)
    return found


def _way(
    kind: int,
    text: PointedText,
    field: InputField,
    items: Sequence[Item],
    row: int,
    scores: Scores,
    used: Sequence[tuple[int, int]],
    barred: Set[int],
) -> _Outcome | None:
    if kind in (SPAN, FORM):
        return _from_span(text, field, scores.pointers[row], scores.span, used, literal=kind == SPAN)
    if kind == LIST:
        return _from_list(text, field, scores.pointers[row])
    if kind == OPTION:
        return _from_options(field, scores.option[row])
    if kind == REFERENCE:
        return _from_results(items, scores.reference[row], barred)
    return (kind == TRUE, 1.0, None) if field.type in ("boolean", "any") else None


def _from_span(
    text: PointedText,
    field: InputField,
    pointers: Floats,
    span: Floats,
    used: Sequence[tuple[int, int]],
    *,
    literal: bool,
) -> _Outcome | None:
    together = _together(pointers, span)
    if field.type in ("integer", "number"):
        return _from_number(text, field, together, used, literal=literal)
    for first, last, probability in _spans(text, together, used):
        start, end = text.spans[first][0], text.spans[last][1]
        piece = text.request[start:end]
        value = as_it_stands(piece, field) if literal else in_form(piece, field, text.request)
        if value is not None and value != "":
            return value, probability, (start, end)
    return None


def _from_number(
    text: PointedText, field: InputField, scores: Floats, used: Sequence[tuple[int, int]], *, literal: bool
) -> _Outcome | None:
    """The likeliest number whose value the schema takes; the probabilities of all numbers add up to one."""
    if not text.numbers:
        return None
    taken = [
        REUSED * sum(item.start < end and start < item.end for start, end in used) for item, _, _ in text.numbers
    ]
    together = [scores[first, last] for _, first, last in text.numbers]
    shares = _softmax(np.array([together]) + np.array([taken]))[0]
    for index in np.argsort(-shares)[:_TRIED]:
        mention = text.numbers[index][0]
        value = number_as_it_stands(mention, field) if literal else number_in_form(mention, field)
        if value is not None:
            return value, float(shares[index]), (mention.start, mention.end)
    return None


def _together(pointers: Floats, span: Floats) -> Floats:
    """[pieces, pieces]: log-probability that the value begins at the first and ends at the second."""
    ends = pointers[END][None, :] + span
    ends = ends - ends.max(axis=1, keepdims=True)
    found: Floats = _log_softmax(pointers[START])[:, None] + ends - np.log(np.exp(ends).sum(axis=1, keepdims=True))
    return found


def _spans(text: PointedText, scores: Floats, used: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, float]]:
    length = len(scores)
    together = scores + text.begins[:, None] + text.ends[None, :]
    offset = np.arange(length)[None, :] - np.arange(length)[:, None]
    together = np.where((offset >= 0) & (offset < _LONGEST_SPAN), together + LONGER * offset, -np.inf)
    for start, end in used:
        held = covering(text.spans, start, end)
        if held:
            together[: held[1] + 1, held[0] :] += REUSED
    flat = together.ravel()
    count = min(_TRIED, flat.size)
    best = np.argpartition(-flat, count - 1)[:count]
    for index in best[np.argsort(-flat[best])]:
        if flat[index] > -1e3:
            yield int(index // length), int(index % length), float(np.exp(min(0.0, flat[index])))


def _from_list(text: PointedText, field: InputField, pointers: Floats) -> _Outcome | None:
    inside = 1.0 / (1.0 + np.exp(-pointers[INSIDE]))
    begins = 1.0 / (1.0 + np.exp(-pointers[FIRST]))
    found: list[tuple[int, int]] = []
    sure = 1.0
    open_at: int | None = None
    for index, (start, end) in enumerate(text.spans):
        if start == end:
            continue
        within_word = open_at is not None and text.begins[index] != 0
        is_in = inside[index] > 0.5 or within_word
        fresh = begins[index] > 0.5 and text.begins[index] == 0
        if is_in:
            sure = min(sure, max(0.5, float(inside[index])))
        if is_in and (open_at is None or fresh):
            open_at = start
            found.append((start, end))
        elif is_in:
            found[-1] = (found[-1][0], end)
        else:
            open_at = None
    if not found:
        return None
    value = joined([text.request[start:end] for start, end in found], field)
    return None if value is None else (value, sure, (found[0][0], found[-1][1]))


def _from_options(field: InputField, scores: Floats) -> _Outcome | None:
    if not field.options:
        return None
    shares = _softmax(scores[None, : len(field.options)])[0]
    best = int(np.argmax(shares))
    value = field.options[best].value
    return ([value] if field.type == "array" else value), float(shares[best]), None


def _from_results(items: Sequence[Item], scores: Floats, barred: Set[int]) -> _Outcome | None:
    shares = _softmax(scores[None])[0]
    for index in np.argsort(-shares):
        chosen = items[index]
        if chosen.output is not None and chosen.step not in barred:
            return StepRef(step=chosen.step, field=chosen.output.name), float(shares[index]), None
    return None


def _assembled(arguments: Mapping[tuple[str, ...], Filled]) -> Mapping[str, Filled]:
    """Arguments by name; the fields of an object become one literal, as sure as the least sure of them."""
    found: dict[str, Filled] = {}
    for path, filled in arguments.items():
        if len(path) == 1:
            found[path[0]] = filled
            continue
        whole = found.get(path[0])
        if whole is not None and not (
            isinstance(whole.argument, Literal) and isinstance(whole.argument.value, dict)
        ):
            continue
        if not isinstance(filled.argument, Literal):
            continue
        before = found.get(path[0])
        value: dict[str, Any] = (
            dict(before.argument.value) if before and isinstance(before.argument, Literal) else {}
        )
        _put(value, path[1:], filled.argument.value)
        sure = min(filled.confidence, before.confidence) if before else filled.confidence
        found[path[0]] = Filled(argument=Literal(value=value), confidence=sure)
    return found


def _put(target: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        target[name] = dict(target.get(name, {}))
        target = target[name]
    target[path[-1]] = value


def _softmax(scores: Floats) -> Floats:
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found: Floats = shifted / shifted.sum(axis=-1, keepdims=True)
    return found


def _log_softmax(scores: Floats) -> Floats:
    shifted = scores - scores.max()
    found: Floats = shifted - np.log(np.exp(shifted).sum())
    return found
