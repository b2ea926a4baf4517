"""Where the arguments of the right plan come from: labels found by running the normalisers on the text."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from conductor.policy.cards import ToolCard
from conductor.policy.filling_kinds import ABSENT, FALSE, FORM, LIST, SPAN, TRUE, UNKNOWN
from conductor.policy.values.dates import find_dates, find_times
from conductor.policy.values.fields import InputField, input_fields
from conductor.policy.values.forms import (
    as_it_stands,
    clean,
    in_form,
    mentions_place,
    number_as_it_stands,
    number_in_form,
    plain_form,
    split_items,
)
from conductor.policy.values.numbers import find_numbers
from conductor.policy.values.places import city_and_region, currency
from conductor.training.examples import Example, GoldStep

_LONGEST = 12
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")
_MOST_SPANS = 8


@dataclass(frozen=True, slots=True)
class FieldLabel:
    """Every way in which one argument gets a right value; with none at all it is unknown."""

    kinds: frozenset[int] = frozenset()
    """Of those that need nothing else: UNKNOWN, ABSENT, TRUE, FALSE and LIST."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """(SPAN or FORM, first character, end)."""
    items: tuple[tuple[int, int], ...] = ()
    """Characters of the items of the list, where LIST is among the kinds."""
    options: frozenset[int] = frozenset()
    reference: tuple[int, str] | None = None
    """Step and field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledStep:
    """A call of the right plan with a label for each of its arguments."""

    card: ToolCard
    labels: Mapping[tuple[str, ...], FieldLabel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A request with the calls of its plan, labelled."""

    source: str
    id: str
    request: str
    steps: tuple[LabelledStep, ...]
    example: Example | None = field(default=None, repr=False)
    """What it was made from; None for a made one."""


def labelled(example: Example) -> Labelled:
    """Labels for all arguments of an example."""
    cards: dict[str, ToolCard] = {}
    for card in example.tools:
        cards.setdefault(card.name, card)
    words = _Words(example.request)
    steps = []
    for number, step in enumerate(example.steps):
        card = cards[step.tool]
        labels = {
            wanted.path: _label(wanted, _gold(step, wanted.path), words, number)
            for wanted in input_fields(card.input_schema)
        }
        steps.append(LabelledStep(card=card, labels=labels))
    return Labelled(
        source=example.source, id=example.id, request=example.request, steps=tuple(steps), example=example
    )


def comparable(value: Any) -> Any:
    """A form in which two values are equal exactly when the public scorer takes them for the same."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        plain = value.strip().lower().rstrip(".").replace(",", "")
        try:
            return float(plain.replace("$", ""))
        except ValueError:
            return {"true": True, "false": False}.get(plain, re.sub(r"\s+", " ", plain))
    if isinstance(value, Mapping):
        return tuple(sorted((key, comparable(item)) for key, item in value.items()))
    if isinstance(value, Sequence):
        return tuple(comparable(item) for item in value)
    return value


@dataclass(frozen=True, slots=True)
class _Gold:
    """What one argument should be."""

    accepted: frozenset[Any] = frozenset()
    raw: tuple[Any, ...] = ()
    absent: bool = False
    reference: tuple[int, str] | None = None


def _gold(step: GoldStep, path: tuple[str, ...]) -> _Gold:
    if step.accept is not None:
        values: list[Any] = list(step.accept.get(path[0], ("",)))
    elif path[0] in step.arguments:
        values = [step.arguments[path[0]]]
    else:
        return _Gold(absent=True)
    if len(path) > 1 and _reference(values):
        return _Gold(absent=True)
    for name in path[1:]:
        inner: list[Any] = []
        for value in values:
            found = value.get(name, "") if isinstance(value, Mapping) else ""
            inner += found if step.accept is not None and isinstance(found, list) else [found]
        values = inner
    if _reference(values):
        return _Gold(reference=(values[0]["step"], str(values[0]["field"])))
    kept = tuple(value for value in values if value != "" and value is not None)
    return _Gold(
        accepted=frozenset(comparable(value) for value in kept),
        raw=kept,
        absent=len(kept) < len(values) or not values,
    )


def _reference(values: Sequence[Any]) -> bool:
    return len(values) == 1 and isinstance(values[0], Mapping) and set(values[0]) == {"step", "field"}


class _Words:
    """A request with its words and every short run of them by comparable value."""

    def __init__(self, request: str) -> None:
        self.request = request
        places = [match.span() for match in _WORD.finditer(request)]
        self.runs = [
            (places[first][0], places[last][1])
            for first in range(len(places))
            for last in range(first, min(len(places), first + _LONGEST))
        ]
        self.by_value: dict[Any, list[tuple[int, int]]] = {}
        for start, end in self.runs:
            self.by_value.setdefault(comparable(clean(request[start:end])), []).append((start, end))
        self.numbers = find_numbers(request)
        self._formed: dict[bool, dict[Any, list[tuple[int, int]]]] = {}

    def formed(self, *, place: bool) -> Mapping[Any, list[tuple[int, int]]]:
        """Short runs by the value that they have in another form: a city with its state, a singular, a code."""
        if place not in self._formed:
            found: dict[Any, list[tuple[int, int]]] = {}
            for start, end in self.runs:
                if end - start > 45 or end - start < 2:
                    continue
                text = self.request[start:end]
                for value in (
                    (city_and_region(clean(text)),) if place else (plain_form(text), currency(clean(text)))
                ):
                    if value is not None:
                        found.setdefault(comparable(value), []).append((start, end))
            self._formed[place] = found
        return self._formed[place]

    def runs_of(self, value: Any) -> list[tuple[int, int]]:
        """Where `value` stands, the tightest places only."""
        found = list(self.by_value.get(comparable(value), ()))
        if not found and isinstance(value, str) and len(value) > 3:
            found += [match.span() for match in re.finditer(re.escape(value), self.request, re.IGNORECASE)]
        return [
            run
            for run in found
            if not any(other != run and run[0] <= other[0] and other[1] <= run[1] for other in found)
        ]


def _label(wanted: InputField, gold: _Gold, words: _Words, number: int) -> FieldLabel:
    if gold.reference is not None:
        fits = gold.reference[0] != number
        return FieldLabel(reference=gold.reference) if fits else FieldLabel(kinds=frozenset({UNKNOWN}))
    # An object with known fields is filled field by field, unless another step returns it whole.
    kinds = {ABSENT} if gold.absent or (wanted.type == "object" and "properties" in wanted.schema) else set()
    if wanted.type in ("boolean", "any"):
        kinds |= {kind for kind, value in ((TRUE, True), (FALSE, False)) if value in gold.accepted}
    options = frozenset(
        index
        for index, option in enumerate(wanted.options)
        if comparable([option.value] if wanted.type == "array" else option.value) in gold.accepted
    )
    spans = tuple(_spans(wanted, gold, words))[:_MOST_SPANS]
    items = _items(wanted, gold, words)
    if items:
        kinds.add(LIST)
    if not (kinds or options or spans):
        kinds.add(UNKNOWN)
    return FieldLabel(kinds=frozenset(kinds), spans=spans, items=items, options=options)


def _spans(wanted: InputField, gold: _Gold, words: _Words) -> Iterable[tuple[int, int, int]]:
    if not gold.accepted or wanted.type in ("boolean", "object"):
        return
    if wanted.type in ("integer", "number"):
        for mention in words.numbers:
            for kind, value in (
                (SPAN, number_as_it_stands(mention, wanted)),
                (FORM, number_in_form(mention, wanted)),
            ):
                if value is not None and comparable(value) in gold.accepted:
                    yield kind, mention.start, mention.end
        return
    literal = []
    for value in gold.raw:
        for run in words.runs_of(value):
            found = as_it_stands(words.request[run[0] : run[1]], wanted)
            if run not in literal and found is not None and comparable(found) in gold.accepted:
                literal.append(run)
    if wanted.type == "array":
        literal += _enclosing(wanted, gold, words, as_it_stands)
    yield from ((SPAN, start, end) for start, end in literal)
    yield from ((FORM, start, end) for start, end in _formed(wanted, gold, words) if (start, end) not in literal)


def _formed(wanted: InputField, gold: _Gold, words: _Words) -> Iterable[tuple[int, int]]:
    """Pieces that become an accepted value in the form that the argument asks for."""
    if wanted.type == "array":
        yield from _enclosing(wanted, gold, words, in_form)
        return
    if wanted.strict:
        return
    if wanted.moment is not None:
        dates = [(item.start, item.end) for item in find_dates(words.request, day_first=wanted.moment.day_first)]
        times = [(item.start, item.end) for item in find_times(words.request)]
        both = [(date[0], time[1]) for date in dates for time in times if 0 <= time[0] - date[1] < 12]
        for start, end in (*dates, *times, *both):
            if comparable(in_form(words.request[start:end], wanted, words.request)) in gold.accepted:
                yield start, end
        return
    for value in gold.accepted:
        yield from words.formed(place=mentions_place(wanted)).get(value, ())[:2]


def _enclosing(
    wanted: InputField, gold: _Gold, words: _Words, value_of: Callable[[str, InputField], Any]
) -> list[tuple[int, int]]:
    """The tightest piece that, split, is an accepted list."""
    found = []
    firsts = {comparable(value[0]) for value in gold.raw if isinstance(value, list | tuple) and value}
    known = (words.by_value, words.formed(place=False))
    starts = {run[0] for first in firsts for table in known for run in table.get(first, ())}
    for start, end in words.runs:
        if start in starts and end - start < 160:
            value = value_of(words.request[start:end], wanted)
            if value is not None and comparable(value) in gold.accepted:
                found.append((start, end))
                break
    return found


def _items(wanted: InputField, gold: _Gold, words: _Words) -> tuple[tuple[int, int], ...]:
    """Characters of the items of an accepted list, those that stand closest together."""
    if wanted.type == "string" and not wanted.strict:
        lists: list[Sequence[Any]] = [split_items(value) for value in gold.raw if isinstance(value, str)]
        lists = [items for items in lists if len(items) > 1]
    elif wanted.type == "array":
        lists = [value for value in gold.raw if isinstance(value, list | tuple) and value]
    else:
        return ()
    best: tuple[tuple[int, int], ...] = ()
    extent = 10**9
    for items in lists:
        places = [_places(item, words) for item in items]
        if not all(places):
            continue
        for anchor in places[0]:
            chosen = [anchor]
            for options in places[1:]:
                free = [place for place in options if place not in chosen] or options
                last = chosen[-1]
                chosen.append(min(free, key=lambda place: abs(place[0] - last[1])))
            size = max(end for _, end in chosen) - min(start for start, _ in chosen)
            in_order = all(left < right for left, right in pairwise(chosen))
            if in_order and size < extent:
                best, extent = tuple(chosen), size
    if wanted.type == "string" and best and words.runs_of(", ".join(words.request[s:e] for s, e in best)):
        return ()
    return best


def _places(item: Any, words: _Words) -> list[tuple[int, int]]:
    if isinstance(item, int | float) and not isinstance(item, bool):
        return [(mention.start, mention.end) for mention in words.numbers if mention.value == float(item)]
    return words.runs_of(item) if isinstance(item, str) else []
