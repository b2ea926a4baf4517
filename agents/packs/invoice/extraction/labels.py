"""Find the labels in the segments, also where the OCR dropped spaces or misread a letter."""

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from agents.packs.invoice.extraction.folding import Folded, is_wide
from agents.packs.invoice.extraction.frame import Segment, Span
from agents.packs.invoice.extraction.lexicon import LONGEST, PHRASES, Phrase

_FUZZY = {
    length: [phrase for phrase in PHRASES if abs(len(phrase) - length) <= 3 and len(phrase) >= 5]
    for length in range(5, 34)
}
_FUZZY_STRENGTH = 0.85
_CAREFUL = 4
"""Latin labels up to this length are common words too; they count only where they stand like a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label found in a segment."""

    kind: str
    strength: float
    span: Span
    exact: bool
    is_head: bool = False
    """True for the head of a table column: what stands below it are cells, not the field."""
    alone: bool = False
    """True when the segment holds nothing else but punctuation."""

    @property
    def segment(self) -> Segment:
        """The segment the label stands in."""
        return self.span.segment


def find_labels(segments: Sequence[Segment]) -> list[Label]:
    """All labels, in reading order of their segments; within one segment they do not overlap."""
    labels: list[Label] = []
    for segment in segments:
        found = _exact(segment)
        labels.extend(found or _fuzzy(segment))
    return labels


def _exact(segment: Segment) -> list[Label]:
    folded = segment.folded
    compact, found, position = folded.compact, [], 0
    after_label = False
    while position < len(compact):
        size = _longest_at(folded, position) if after_label or _starts_word(folded, position) else 0
        if 0 < size < _CAREFUL and not after_label and _inside_camel(folded, position):
            size = 0
        if size:
            found.append(_label(segment, position, position + size, PHRASES[compact[position : position + size]]))
        after_label = bool(size)
        position += size or 1
    return found


def _label(segment: Segment, start: int, end: int, phrase: Phrase, factor: float = 1.0) -> Label:
    at = segment.folded.compact_at
    first, last = at[start], at[end - 1] + 1
    rest = segment.text[:first] + segment.text[last:]
    return Label(
        kind=phrase.kind,
        strength=phrase.strength * factor,
        span=Span(segment=segment, start=first, end=last),
        exact=factor == 1.0,
        alone=not any(char.isalnum() for char in rest),
    )


def _starts_word(folded: Folded, position: int) -> bool:
    at, text = folded.compact_at[position], folded.original
    if at == 0 or is_wide(text[at]) or text[at] in "#%":
        return True
    if position and folded.compact_at[position - 1] == at:
        return False
    before, here = text[at - 1], text[at]
    return (
        not before.isalnum()
        or (before.islower() and here.isupper())
        or (not before.isalpha()) != (not here.isalpha())
    )


def _inside_camel(folded: Folded, position: int) -> bool:
    """True when only a change of case marks the start: too little for a short label (``UStHdNr``)."""
    at = folded.compact_at[position]
    return at > 0 and folded.original[at - 1].isalpha() and not is_wide(folded.original[at])


def _longest_at(folded: Folded, position: int) -> int:
    compact = folded.compact
    for size in range(min(LONGEST, len(compact) - position), 0, -1):
        if compact[position : position + size] in PHRASES and _ends_well(folded, position, size):
            return size
    return 0


def _ends_well(folded: Folded, position: int, size: int) -> bool:
    text, end = folded.original, folded.compact_at[position + size - 1] + 1
    first = folded.compact_at[position]
    wide = is_wide(text[first])
    following = text[end] if end < len(text) else ""
    if size <= _CAREFUL and not wide and not _stands_like_label(folded, position, size):
        return False
    if wide or not following.isalpha() or is_wide(following):
        return True
    if text[end - 1].islower() and following.isupper():
        return True
    # A long label run into the next word is still a label when the OCR lost the spaces.
    return size >= 10 and " " not in text


def _stands_like_label(folded: Folded, position: int, size: int) -> bool:
    """A short label must open the segment, or be followed by a colon, a digit or the segment's end."""
    text, end = folded.original, folded.compact_at[position + size - 1] + 1
    phrase = folded.compact[position : position + size]
    rest = text[end:].lstrip(" .")
    if phrase in _GENERIC:
        return folded.compact_at[position] <= 1 and (not rest or rest[0] in ":：#")
    opens = folded.compact_at[position] <= 2
    return (
        not rest
        or rest[0] in ":：#(%-/"
        or rest[0].isdigit()
        or (opens and not rest[0].isalpha())
        or (not opens and _money_follows(rest))
        or phrase in _PLAIN
    )


_GENERIC = frozenset(
    "to for an van aan le den vom due no nr n id ref from tel me bar pin cb each text ware net base suma brut port".split()
) - {"due", "net", "base", "suma", "ref", "tel", "no", "nr", "from"}
_PLAIN = frozenset(
    "vat gst tax tva btw iva mwst ust due net tel fax po nif cif ein qty iban bic page item date kvk siret uid ht ttc".split()
)


def _money_follows(rest: str) -> bool:
    return rest[0] in "$€£¥" or rest[:3].isupper()


def _fuzzy(segment: Segment) -> list[Label]:
    """The nearest label to the whole segment, or to what stands before its colon or first digit."""
    compact = segment.folded.compact
    at = segment.folded.compact_at
    ends = {len(compact)}
    for index, char in enumerate(compact):
        if char.isdigit():
            ends.add(index)
            break
    colon = min((place for place in map(segment.text.find, ":：") if place > 0), default=-1)
    if colon > 0:
        ends.add(sum(1 for place in at if place < colon))
    best: tuple[float, int, str] | None = None
    for end in ends:
        if not 5 <= end <= 30:
            continue
        limit = 1 if end < 8 else 2 if end < 14 else 3
        match = process.extractOne(compact[:end], _FUZZY[end], scorer=Levenshtein.distance, score_cutoff=limit)
        if match and (best is None or (match[1], -end) < (best[0], -best[1])):
            best = (match[1], end, match[0])
    if best is None:
        return []
    return [_label(segment, 0, best[1], PHRASES[best[2]], _FUZZY_STRENGTH)]
