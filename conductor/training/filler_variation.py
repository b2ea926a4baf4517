"""Makes more requests out of the given ones: other values, several calls of one tool, two requests in one.

Labels are places in the text, so an edit of the text moves them along and stays right.
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conductor.policy.cards import ToolCard
from conductor.policy.filling_kinds import LIST, SPAN, UNKNOWN
from conductor.policy.values.fields import InputField, input_fields
from conductor.training.filler_labels import FieldLabel, Labelled, LabelledStep

_Edit = tuple[int, int, str]
_IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_\-]{5,}")
_JOINTS = (
    ". Also, ",
    ". Then ",
    ". After that, ",
    " and also ",
    ". Additionally, ",
    "; ",
    ". ",
    ". Next, ",
    ". Finally, ",
)
_PAIRS = (" and ", " and also ", " and then ", ", and ", " as well as ")


@dataclass(frozen=True, slots=True)
class Values:
    """Pieces of requests by the last word of the argument they fill."""

    by_word: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, requests: Iterable[Labelled]) -> "Values":
        """All literal values of the requests."""
        found: dict[str, dict[str, None]] = {}
        for item in requests:
            for step in item.steps:
                for field in input_fields(step.card.input_schema):
                    label = step.labels.get(field.path)
                    if label is None or field.type != "string" or label.options:
                        continue
                    for kind, start, end in label.spans[:1]:
                        if kind == SPAN and end - start < 60:
                            found.setdefault(field.words.split()[-1], {})[item.request[start:end]] = None
        return cls({word: tuple(values) for word, values in found.items()})

    def other(self, text: str, field: InputField, rng: np.random.Generator) -> str | None:
        """Another value in place of `text`; None where there is none to be had."""
        if field.type in ("integer", "number"):
            return _other_number(text, rng)
        if field.type != "string":
            return None
        if _IDENTIFIER.fullmatch(text) and rng.random() < 0.7:
            return _other_identifier(text, rng)
        known = self.by_word.get(field.words.split()[-1], ())
        if len(known) < 4:
            return None
        return str(known[int(rng.integers(len(known)))])


def _other_number(text: str, rng: np.random.Generator) -> str | None:
    if not re.fullmatch(r"\d+(?:\.\d+)?", text):
        return None
    whole, point, decimals = text.partition(".")
    digits = max(1, len(whole) + int(rng.integers(-1, 2)))
    number = int(rng.integers(10 ** (digits - 1), 10**digits)) if digits < 10 else int(whole)
    if not point:
        return str(number)
    return f"{number}.{int(rng.integers(1, 10 ** min(6, len(decimals))))}"


def _other_identifier(text: str, rng: np.random.Generator) -> str:
    def other(letter: str) -> str:
        for letters in (string.digits, string.ascii_lowercase, string.ascii_uppercase):
            if letter in letters:
                return letters[int(rng.integers(len(letters)))]
        return letter

    return "".join(other(letter) for letter in text)


def with_other_values(item: Labelled, values: Values, rng: np.random.Generator) -> Labelled:
    """The request with some of its values replaced wherever they stand."""
    edits: list[_Edit] = []
    for field, places in _replaceable(item):
        if rng.random() < 0.5 or _touches(places, [(start, end) for start, end, _ in edits]):
            continue
        old = item.request[places[0][0] : places[0][1]]
        new = values.other(old, field, rng)
        if new is not None and new != old:
            edits += [(start, end, new) for start, end in places]
    return edited(item, edits) if edits else item


def _replaceable(item: Labelled) -> list[tuple[InputField, list[tuple[int, int]]]]:
    """Fields whose value is one piece of the text that nothing else than equal pieces shares letters with."""
    pieces: dict[tuple[int, int], list[tuple[InputField, FieldLabel]]] = {}
    taken: list[tuple[int, int]] = []
    for step in item.steps:
        fields = {field.path: field for field in input_fields(step.card.input_schema)}
        for path, label in step.labels.items():
            for _, start, end in label.spans:
                pieces.setdefault((start, end), []).append((fields[path], label))
            taken += label.items
    found = []
    for (start, end), users in pieces.items():
        places = sorted({(s, e) for _, label in users for _, s, e in label.spans})
        if places[0] != (start, end) or _touches(places, taken):
            continue
        alone = all(not _touches([place], [other]) for place in places for other in pieces if other not in places)
        plain = all(kind == SPAN for _, label in users for kind, _, _ in label.spans) and not any(
            label.options or label.kinds for _, label in users
        )
        same = len({item.request[s:e].lower() for s, e in places}) == 1
        if alone and plain and same and not users[0][0].strict and users[0][0].moment is None:
            found.append((users[0][0], places))
    return found


def _touches(places: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> bool:
    return any(start < right and left < end for start, end in places for left, right in others)


def parallel_calls(item: Labelled, values: Values, rng: np.random.Generator) -> Labelled:
    """One call as two or three: "the weather in Paris" becomes "the weather in Paris and Rome".

    Returns:
        The request itself where none of its values has another to stand beside it.
    """
    choices = [(field, places) for field, places in _replaceable(item) if len(places) == 1]
    if not choices:
        return item
    count = 3 if rng.random() < 0.3 else 2
    chosen = [choices[index] for index in rng.permutation(len(choices))[: 1 if rng.random() < 0.75 else 2]]
    edits: list[_Edit] = []
    pieces: dict[tuple[int, int], list[str]] = {}
    for field, [(start, end)] in chosen:
        texts = [item.request[start:end]]
        for _ in range(count - 1):
            new = values.other(texts[0], field, rng)
            if new is None or new.lower() in (text.lower() for text in texts):
                return item
            texts.append(new)
        pieces[start, end] = texts
        edits.append((start, end, _listed(texts, rng)))
    moved = _Moved(edits)
    request = moved.applied(item.request)
    steps = []
    for number in range(count):
        labels = {}
        for path, label in item.steps[0].labels.items():
            place = next(((start, end) for _, start, end in label.spans if (start, end) in pieces), None)
            if place is None:
                labels[path] = moved.label(label)
                continue
            base = moved.start(place[0])
            within = _offsets(request[base : moved.end(place[1])], pieces[place])[number]
            labels[path] = FieldLabel(spans=((SPAN, base + within[0], base + within[1]),))
        steps.append(LabelledStep(card=item.steps[0].card, labels=labels))
    return Labelled(source=item.source, id=item.id, request=request, steps=tuple(steps))


def _listed(texts: Sequence[str], rng: np.random.Generator) -> str:
    last = _PAIRS[int(rng.integers(len(_PAIRS)))]
    return ", ".join(texts[:-1]) + last + texts[-1]


def _offsets(listed: str, texts: Sequence[str]) -> list[tuple[int, int]]:
    found, at = [], 0
    for text in texts:
        start = listed.index(text, at)
        found.append((start, start + len(text)))
        at = start + len(text)
    return found


def joined_requests(first: Labelled, second: Labelled, rng: np.random.Generator) -> Labelled:
    """Two requests in one text, the calls of the first before those of the second."""
    head = first.request.rstrip(" .?!")
    joint = _JOINTS[int(rng.integers(len(_JOINTS)))]
    shift = len(head) + len(joint)
    later = tuple(_shifted(step, shift, len(first.steps)) for step in second.steps)
    cut = tuple(
        LabelledStep(card=step.card, labels={path: _cut(label, len(head)) for path, label in step.labels.items()})
        for step in first.steps
    )
    return Labelled(
        source=first.source, id=f"{first.id}+{second.id}", request=head + joint + second.request, steps=cut + later
    )


def _cut(label: FieldLabel, end: int) -> FieldLabel:
    """A label in a text that lost its last characters."""
    spans = tuple(span for span in label.spans if span[2] <= end)
    if spans == label.spans and all(item[1] <= end for item in label.items):
        return label
    kinds = label.kinds - {LIST} if any(item[1] > end for item in label.items) else label.kinds
    empty = not (spans or kinds or label.options or label.reference)
    return replace(label, spans=spans, kinds=kinds | {UNKNOWN} if empty else kinds)


def shuffled(item: Labelled, rng: np.random.Generator) -> Labelled:
    """The same calls in another order; calls of one tool keep theirs, for it is that of the request."""
    order = [int(at) for at in rng.permutation(len(item.steps))]
    by_tool: dict[str, list[int]] = {}
    for at in sorted(order):
        by_tool.setdefault(item.steps[at].card.key, []).append(at)
    order = [by_tool[item.steps[at].card.key].pop(0) for at in order]
    return _moved(item, [item.steps[at] for at in order], {old: new for new, old in enumerate(order)})


def without_a_step(item: Labelled, rng: np.random.Generator) -> Labelled:
    """The selection forgot a call: what it would have returned is to be had nowhere."""
    dropped = int(rng.integers(len(item.steps)))
    kept = [at for at in range(len(item.steps)) if at != dropped]
    return _moved(item, [item.steps[at] for at in kept], {old: new for new, old in enumerate(kept)})


def with_a_stranger(item: Labelled, card: ToolCard, rng: np.random.Generator) -> Labelled:
    """The selection chose a wrong tool besides: nobody says what its arguments should be."""
    place = int(rng.integers(len(item.steps) + 1))
    steps = [*item.steps[:place], LabelledStep(card=card, labels={}), *item.steps[place:]]
    return _moved(item, steps, {at: at + (at >= place) for at in range(len(item.steps))})


def _moved(item: Labelled, steps: Sequence[LabelledStep], places: Mapping[int, int]) -> Labelled:
    """The request with `steps`, in which the former step `old` is now number `places[old]`, or gone."""

    def moved(label: FieldLabel) -> FieldLabel:
        if label.reference is None:
            return label
        if label.reference[0] in places:
            return replace(label, reference=(places[label.reference[0]], label.reference[1]))
        return replace(label, reference=None, kinds=label.kinds | {UNKNOWN})

    return Labelled(
        source=item.source,
        id=item.id,
        request=item.request,
        steps=tuple(
            LabelledStep(card=step.card, labels={path: moved(label) for path, label in step.labels.items()})
            for step in steps
        ),
    )


def _shifted(step: LabelledStep, characters: int, steps: int) -> LabelledStep:
    labels = {}
    for path, label in step.labels.items():
        labels[path] = replace(
            label,
            spans=tuple((kind, start + characters, end + characters) for kind, start, end in label.spans),
            items=tuple((start + characters, end + characters) for start, end in label.items),
            reference=None if label.reference is None else (label.reference[0] + steps, label.reference[1]),
        )
    return LabelledStep(card=step.card, labels=labels)


def edited(item: Labelled, edits: Sequence[_Edit]) -> Labelled:
    """The request with pieces of its text replaced; labels move along.

    Args:
        item: The request.
        edits: (first character, end, new text), not overlapping.
    """
    moved = _Moved(edits)
    steps = tuple(
        LabelledStep(card=step.card, labels={path: moved.label(label) for path, label in step.labels.items()})
        for step in item.steps
    )
    return Labelled(source=item.source, id=item.id, request=moved.applied(item.request), steps=steps)


class _Moved:
    """Where characters go when pieces of a text are replaced."""

    def __init__(self, edits: Sequence[_Edit]) -> None:
        self._edits = sorted(edits)

    def applied(self, text: str) -> str:
        """The new text."""
        for start, end, new in reversed(self._edits):
            text = text[:start] + new + text[end:]
        return text

    def start(self, at: int) -> int:
        """Where a piece that begins at `at` begins."""
        return at + sum(len(new) - (end - start) for start, end, new in self._edits if end <= at)

    def end(self, at: int) -> int:
        """Where a piece that ends at `at` ends."""
        return at + sum(len(new) - (end - start) for start, end, new in self._edits if end <= at)

    def label(self, label: FieldLabel) -> FieldLabel:
        """The label in the new text."""
        return replace(
            label,
            spans=tuple((kind, self.start(start), self.end(end)) for kind, start, end in label.spans),
            items=tuple((self.start(start), self.end(end)) for start, end in label.items),
        )
