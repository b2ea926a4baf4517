"""Find the labels in the segments, also where the OCR dropped spaces or misread a letter."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from agents.packs.invoice.extraction.folding import Folded, is_wide
from agents.packs.invoice.extraction.frame import Segment, Span
from agents.packs.invoice.extraction.lexicon import LONGEST, PHRASES, WEAK, Phrase
from agents.packs.invoice.extraction.lexicon_words import FILLERS, GENERIC, PLAIN
from agents.packs.invoice.extraction.marks import CODES
from agents.packs.invoice.extraction.stems import guess

_FUZZY = {
    length: [phrase for phrase in PHRASES if abs(len(phrase) - length) <= 3 and len(phrase) >= 5]
    for length in range(5, 34)
}
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE = re.compile("|".join(CODES))
_FUZZY_STRENGTH = 0.85
_COMMON_UP_TO = 7
"""Listed labels up to this length are words that other labels are made of, too."""
_REFERRING = re.compile(
    r"\b(?:for|original\w*|initial\w*|cancel\w*|replac\w*|correct\w*|revers\w*|relat\w*|referenc\w*|concern\w*"
    r"|previous|prior|against|zu|zur|betr\w*|bezug|storn\w*|ersetzt|korrigiert|urspr\w+|unsere|d'origine|annul\w*"
    r"|remplace|rectifi\w*|betref\w*|oorspronk\w+|vervangt|anula|sustituye|referencia|original)\s(?:\w+\s)?$"
)
"""Words before a label that make it speak of another document: ``Original invoice date``, ``for invoice no``."""
_QUALIFYING = frozenset({"other_id", "other_date", "date", "due", "quantity", "other_amount"})
"""Kinds of labels that make a common word right behind them part of themselves: ``Terminal #``."""
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
    qualified: bool = False
    """True for a common word that unknown words make something else: ``Membership number``, ``Run date``."""

    @property
    def segment(self) -> Segment:
        """The segment the label stands in."""
        return self.span.segment


def find_labels(segments: Sequence[Segment]) -> list[Label]:
    """All labels, in reading order of their segments; within one segment they do not overlap."""
    labels: list[Label] = []
    for segment in segments:
        found = _exact(segment) or _fuzzy(segment) or _by_stems(segment)
        found = _joined_by_slash(found)
        labels.extend(_weighed(label, found) for label in found)
    return _continued_below(labels)


def _continued_below(labels: list[Label]) -> list[Label]:
    """A label that opens with a slash goes on from the one above it, and means the same."""
    result = []
    for label in labels:
        segment = label.segment
        above = [
            other
            for other in labels
            if segment.text.lstrip().startswith("/")
            and 0 < segment.middle - other.segment.middle < 2.2 * segment.height
            and abs(other.segment.x0 - segment.x0) < 2 * segment.height
        ]
        result.append(replace(label, kind=above[-1].kind) if above else label)
    return result


def _joined_by_slash(found: list[Label]) -> list[Label]:
    """``Invoice date / delivery date``: one label with the first one's meaning."""
    kept: list[Label] = []
    for label in found:
        gap = label.segment.text[kept[-1].span.end : label.span.start].strip() if kept else ""
        if kept and label.kind == kept[-1].kind and not any(char.isalnum() or char in ":：" for char in gap):
            # Two languages: Rechnungsnummer / Invoice No.
            span = Span(segment=label.segment, start=kept[-1].span.start, end=label.span.end)
            kept[-1] = replace(kept[-1], span=span, strength=max(label.strength, kept[-1].strength))
            continue
        joined = gap in {"/", "=", "&", "und", "and", "et", "en", "y", "-"}
        if kept and joined and {label.kind, kept[-1].kind} <= {"date", "other_date", "due"}:
            span = Span(segment=label.segment, start=kept[-1].span.start, end=label.span.end)
            kept[-1] = replace(kept[-1], span=span)
            continue
        kept.append(label)
    return kept


def _weighed(label: Label, found: Sequence[Label]) -> Label:
    factor = _in_context(label, found)
    common = (
        label.strength <= WEAK
        or label.kind == "total"
        or sum(char.isalnum() for char in label.span.text) <= _COMMON_UP_TO
    )
    before = label.segment.folded.plain[: label.segment.folded.plain_at.index(label.span.start)]
    if label.kind in {"number", "title", "date", "total"} and _REFERRING.search(before):
        return replace(label, strength=label.strength * min(factor, 0.5), qualified=True)
    if common and any(
        other.kind in _QUALIFYING and not label.segment.text[other.span.end : label.span.start].strip(" -")
        for other in found
        if other.span.end <= label.span.start
    ):
        factor *= 0.75
    return replace(label, strength=label.strength * factor, qualified=factor < 1.0 and common)


def _in_context(label: Label, found: Sequence[Label]) -> float:
    """What words around a label leave of it: ``30 days from invoice date`` names a term, no date follows."""
    text, span = label.segment.text, label.span
    start = max((other.span.end for other in found if other.span.end <= span.start), default=0)
    end = min((other.span.start for other in found if other.span.start >= span.end), default=len(text))
    before = re.split(r"[:：;|·•]", text[start : span.start])[-1]
    after = re.split(r"[:：\d#$€£¥￥(]", text[span.end : end], maxsplit=1)[0]
    lead = [word for word in _WORD.findall(before.lower()) if word not in FILLERS]
    tail = [word for word in _WORD.findall(after.lower()) if word not in FILLERS]
    factor = 1.0 if not lead else 0.75 if len(lead) == 1 else 0.5
    if re.search(r"\d\s*(?:days?|tagen?|jours?|dagen|d.as|giorni|天)\b", before.lower()):
        factor = 0.3
    if label.kind in {"total", "net", "date", "due"} and tail and not _CODE.fullmatch(" ".join(tail).upper()):
        factor *= 0.75 if len(tail) == 1 else 0.5
    return factor


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
    if phrase in GENERIC:
        numbered = phrase in {"no", "nr", "n"} and rest[:1].isdigit()
        return folded.compact_at[position] <= 1 and (not rest or rest[0] in ":：#" or numbered)
    opens = folded.compact_at[position] <= 2
    return (
        not rest
        or rest[0] in ":：#(%-/"
        or rest[0].isdigit()
        or (opens and not rest[0].isalpha())
        or (not opens and _money_follows(rest))
        or phrase in PLAIN
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
        limit = 1 if end < 9 else 2 if end < 15 else 3
        match = process.extractOne(compact[:end], _FUZZY[end], scorer=Levenshtein.distance, score_cutoff=limit)
        if match and (best is None or (match[1], -end) < (best[0], -best[1])):
            best = (match[1], end, match[0])
    if best is None:
        return []
    return [_label(segment, 0, best[1], PHRASES[best[2]], _FUZZY_STRENGTH)]


def _by_stems(segment: Segment) -> list[Label]:
    """A label that no list has: what stands before the colon or the first digit, when it is short enough."""
    head = re.split(r"[:：\d]", segment.text, maxsplit=1)[0]
    end = sum(1 for place in segment.folded.compact_at if place < len(head))
    if not 3 <= end <= 40 or len(head.split()) > 6:
        return []
    phrase = guess(segment.folded.compact[:end])
    return [_label(segment, 0, end, phrase, 0.95)] if phrase else []
