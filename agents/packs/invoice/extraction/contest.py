"""Decide which value belongs to which label, all labels of one family against all values of one type."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.packs.invoice.extraction.frame import Span
from agents.packs.invoice.extraction.labels import Label
from agents.packs.invoice.extraction.relation import Link, Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A value claimed for a kind of field."""

    value: int
    """Index of the value."""
    link: Link
    score: float
    """Relation times the label's strength times the value's own plausibility."""
    rival: float
    """The best claim that another kind has on the same value."""
    owned: bool
    """True when label and value chose each other over all others."""

    @property
    def standing(self) -> float:
        """The score less what a rival kind takes away."""
        lost = max(0.0, self.rival - self.score) + (0.0 if self.owned else 0.25)
        return max(0.0, self.score - lost)


def contest(
    labels: Sequence[Label],
    values: Sequence[Span],
    neighbours: Neighbours,
    worth: Callable[[Label, int, Link], float],
    allies: frozenset[str] = frozenset(),
) -> Mapping[str, list[Claim]]:
    """All claims by kind of label, best standing first.

    Args:
        labels: every label that may own one of the values, the negative kinds too.
        values: where the values stand.
        neighbours: what stands between labels and values.
        worth: plausibility of a value for a label, 0 to refuse.
        allies: kinds that are no rivals of each other.
    """
    links = _links(labels, values, neighbours, worth)
    links.sort(key=lambda item: -item[0])
    owner: dict[int, int] = {}
    taken: set[int] = set()
    for _, number, index, _ in links:
        if index not in owner and number not in taken:
            owner[index] = number
            taken.add(number)
    best: dict[tuple[str, int], tuple[float, int, Link]] = {}
    for score, number, index, link in links:
        key = (labels[number].kind, index)
        if key not in best or (
            owner.get(index) == number and labels[number].kind == key[0] and score > best[key][0] - 0.05
        ):
            best[key] = (score, number, link)
    claims: dict[str, list[Claim]] = {}
    for (kind, index), (score, number, link) in best.items():
        rival = max(
            (
                other[0]
                for (name, place), other in best.items()
                if place == index and name != kind and not {name, kind} <= allies
            ),
            default=0.0,
        )
        claims.setdefault(kind, []).append(
            Claim(value=index, link=link, score=score, rival=rival, owned=owner.get(index) == number)
        )
    for group in claims.values():
        group.sort(key=lambda claim: -claim.standing)
    return claims


def _links(
    labels: Sequence[Label],
    values: Sequence[Span],
    neighbours: Neighbours,
    worth: Callable[[Label, int, Link], float],
) -> list[tuple[float, int, int, Link]]:
    """Score, label and value of every pair that stands in some relation."""
    links = []
    for number, label in enumerate(labels):
        for index, value in enumerate(values):
            link = neighbours.link(label, value)
            score = link.score * label.strength * worth(label, index, link) if link else 0.0
            if link and score > 0.02:
                links.append((score, number, index, link))
    return links
