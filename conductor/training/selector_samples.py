"""What the selection is trained on: real, written and synthetic requests, drawn one after another from a seed."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from conductor.policy.cards import ToolCard
from conductor.policy.multilingual import reads_english
from conductor.policy.selecting_flows import FieldWords
from conductor.policy.selecting_index import tool_text, words_of
from conductor.training import synthesis
from conductor.training.datasets import read_bfcl, read_nestools, read_sealtools, read_ultratool, ultratool_links
from conductor.training.examples import Example, GoldStep
from conductor.training.splits import part_of
from conductor.training.written import FOLDER, read_written

_POOL = 10_000
"""How many synthetic requests of a sort there are: their states are kept, so each serves several times."""
_ORGANISATION = range(12, 40)
"""How many agents an organisation has."""
UNSEEN = ("dev_disjoint", "select_disjoint")
"""Parts whose sets of tools no sample may have."""
_FEW = 14
"""Candidates beside the right ones, where there are thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request as the selection is trained on it."""

    request: str
    candidates: tuple[int, ...]
    """Numbers of the catalogue."""
    path: tuple[int, ...]
    """The right tools in the order of the data."""
    waits: tuple[tuple[int, ...], ...]
    """For each step the earlier steps that it needs; steps that need nothing open may come in any order."""
    linked: bool = False
    """Whether the links of the catalogue say something of these tools."""
    feedback: tuple[tuple[int, int], ...] = ()
    """(tool, number of the verdict) for each step of an earlier plan."""


@dataclass(slots=True)
class Catalogue:
    """Every tool of every data set, each content once."""

    cards: list[ToolCard] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    links: set[tuple[int, int]] = field(default_factory=set)
    _fields: dict[int, FieldWords] = field(default_factory=dict)

    def add(self, cards: Sequence[ToolCard]) -> tuple[int, ...]:
        """Numbers of `cards`."""
        found = []
        for card in cards:
            number = self.numbers.setdefault(card.key, len(self.cards))
            if number == len(self.cards):
                self.cards.append(card)
            found.append(number)
        return tuple(found)

    def fields(self, number: int) -> FieldWords:
        """The words of what a tool takes and returns."""
        if number not in self._fields:
            self._fields[number] = FieldWords.of(self.cards[number])
        return self._fields[number]

    def texts(self, number: int) -> tuple[str, str, str]:
        """The text of a tool, whole, without its description, and without its name."""
        card = self.cards[number]
        return tool_text(card), words_of(card.name), " ".join(card.description.split()) or words_of(card.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Shares of the kinds of samples."""

    walks: float = 0.32
    """Of the samples over the shared registry: walks over the link graph."""
    stretches: float = 0.16
    """Stretches of training rows."""
    joined: float = 0.06
    """Two real requests in one."""
    written: float = 0.35
    """Written rows over the same registry."""
    nothing: float = 0.07
    """Requests that no candidate can serve."""
    balanced: float = 0.4
    """How much seldom sets are preferred: a row weighs (rows of its set) to the power of minus this."""
    thinned: float = 0.30
    """Samples of which 10 to 60 % of the candidates are dropped."""


class Samples:
    """Draws samples of a kind: "shared" (one registry of 260 tools), "own" (each its own tools), "single"."""

    def __init__(
        self,
        data: Path,
        catalogue: Catalogue,
        *,
        mixture: Mixture,
        folder: Path = FOLDER,
    ) -> None:
        """Read the data.

        Args:
            data: the folder of the public data.
            catalogue: takes the tools.
            mixture: shares of the kinds.
            folder: where written rows are; an empty one for none.
        """
        self.catalogue = catalogue
        self.mixture = mixture
        whole = read_ultratool(data)
        seal, nested, bfcl = read_sealtools(data), read_nestools(data), read_bfcl(data)
        held_out = {_said(row.request) for row in (*whole, *seal, *nested, *bfcl) if part_of(row) != "train"}

        def keep(rows: Iterable[Example]) -> list[Example]:
            # One data set repeats requests of another: what is held out must not come in by another name.
            return [row for row in rows if part_of(row) == "train" and _said(row.request) not in held_out]

        ultratool = keep(whole)
        self._registry = self.catalogue.add(whole[0].tools)
        links = ultratool_links(data)
        number = dict(zip((card.name for card in whole[0].tools), self._registry, strict=True))
        self.catalogue.links |= {(number[a], number[b]) for a, b in links if a in number and b in number}
        rows = [row for name in _written(folder) for row in keep(read_written(name, data, folder))]
        same = {row.id + row.source: row for row in rows if len(row.tools) == len(whole[0].tools)}
        held = [row for row in same.values() if part_of(replace(row, source="ultratool")) in UNSEEN]
        wanted = [row for row in same.values() if row not in held]
        written_same = [row for row in wanted if reads_english(row.request)]
        others = [row for row in rows if row.id + row.source not in same]
        descriptions = {card.name: card.description for card in whole[0].tools}
        self._wordings = synthesis.wordings([*ultratool, *written_same], links, descriptions)
        self._number = number
        self._kept_sets = frozenset(row.tool_set for row in whole if part_of(row) in UNSEEN)
        self._kept_numbers = frozenset(frozenset(number[tool] for tool in tools) for tools in self._kept_sets)
        self._shared = [self._sample(row, linked=True) for row in ultratool]
        often = Counter(frozenset(sample.path) for sample in self._shared)
        self._weights = list(
            accumulate(often[frozenset(sample.path)] ** -mixture.balanced for sample in self._shared)
        )
        self._written = [self._sample(row, linked=True) for row in written_same]
        foreign = [row for row in (*wanted, *others) if not reads_english(row.request)]
        others = [row for row in others if reads_english(row.request)]
        self._foreign = [self._sample(row) for row in foreign]
        groups: dict[str, list[Sample]] = {
            "seal": [self._sample(row) for row in keep(seal)],
            "nested": [self._sample(row) for row in keep(nested)],
            "bfcl": [self._sample(row) for row in keep(bfcl)],
        }
        for row in others:
            groups.setdefault(row.source, []).append(self._sample(row))
        self._groups = {name: found for name, found in groups.items() if found}
        self._by_tool: dict[int, list[Sample]] = {}
        for sample in self._groups.get("bfcl", []) + self._groups.get("seal", []):
            if len(sample.path) == 1:
                self._by_tool.setdefault(sample.path[0], []).append(sample)
        self.near: Callable[[int], Sequence[int]] = lambda _: ()
        """Tools whose text is like that of a tool, nearest first; set by who has vectors."""
        self.feedback: Callable[[random.Random], Sample] | None = None
        """Draws samples with feedback, where there are any."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """How many real and written samples there are of each group."""
        named = {"shared": self._shared, "written": self._written, "foreign": self._foreign, **self._groups}
        return {name: len(found) for name, found in named.items()}

    def draw(self, kind: str, chance: random.Random) -> Sample:
        """The next sample of `kind`: shared, own, single or foreign."""
        if kind == "shared":
            return self._thinned(self._draw_shared(chance), chance)
        if kind == "foreign" and self._foreign:
            return self._few(chance.choice(self._foreign), chance)
        if kind == "single":
            return self._draw_single(chance)
        if kind == "feedback" and self.feedback is not None:
            return self.feedback(chance)
        return self._draw_own(chance)

    def _draw_shared(self, chance: random.Random) -> Sample:
        mixture, share = self.mixture, chance.random()
        if share < mixture.nothing:
            return self._nothing(chance)
        for size, make in (
            (mixture.walks, self._walk),
            (mixture.stretches, self._stretch),
            (mixture.joined, self._joined),
        ):
            share -= size
            if share < mixture.nothing:
                return make(chance)
        if self._written and chance.random() < mixture.written:
            return chance.choice(self._written)
        return chance.choices(self._shared, cum_weights=self._weights)[0]

    def _walk(self, chance: random.Random) -> Sample:
        chance = random.Random(f"walk {chance.randrange(_POOL)}")  # noqa: S311 - samples
        return self._of_clauses(
            lambda: synthesis.walk(self._wordings, chance, chance.choice((1, 2, 2, 3, 3, 4, 5))), chance
        )

    def _stretch(self, chance: random.Random) -> Sample:
        chance = random.Random(f"stretch {chance.randrange(_POOL)}")  # noqa: S311 - samples
        return self._of_clauses(lambda: synthesis.part_of_chain(self._wordings, chance), chance)

    def _of_clauses(self, make: Callable[[], tuple[tuple[str, str], ...]], chance: random.Random) -> Sample:
        clauses = make()
        while frozenset(tool for tool, _ in clauses) in self._kept_sets:
            clauses = make()
        path = tuple(self._number[tool] for tool, _ in clauses)
        request = synthesis.spoken([text for _, text in clauses], chance)
        return Sample(request=request, candidates=self._registry, path=path, waits=_chain(len(path)), linked=True)

    def _joined(self, chance: random.Random) -> Sample:
        first, second = chance.choice(self._shared), chance.choice(self._shared)
        while set(first.path) & set(second.path) or {*first.path, *second.path} in self._kept_numbers:
            second = chance.choice(self._shared)
        return replace(
            first,
            request=synthesis.joined_requests([first.request, second.request], chance),
            path=first.path + second.path,
            waits=first.waits + tuple(tuple(at + len(first.path) for at in row) for row in second.waits),
            linked=(first.path[-1], second.path[0]) in self.catalogue.links,
        )

    def _nothing(self, chance: random.Random) -> Sample:
        """Somebody else's request over these tools, or a request without the tools that could serve it."""
        if chance.random() < 0.6:
            group = chance.choice(("seal", "bfcl", "nested"))
            stranger = chance.choice(self._groups.get(group) or self._shared)
            near = {tool for step in stranger.path for tool in self.near(step)[:12]}
            request, banned = stranger.request, near | set(stranger.path)
        else:
            sample = chance.choice(self._shared)
            request = sample.request
            banned = set(sample.path) | {tool for step in sample.path for tool in self.near(step)[:25]}
            banned |= {b for a, b in self.catalogue.links if a in banned}
        left = [tool for tool in self._registry if tool not in banned]
        few = chance.sample(left, min(len(left), chance.choice((4, 10, 20, 40, 260))))
        return Sample(request=request, candidates=tuple(few), path=(), waits=())

    def _draw_single(self, chance: random.Random) -> Sample:
        if chance.random() < 0.4:
            free = (tool for tool in self._wordings.texts if frozenset((tool,)) not in self._kept_sets)
            tool = chance.choice(sorted(free))
            request = synthesis.spoken([chance.choice(self._wordings.texts[tool])], chance)
            number = self._number[tool]
            return Sample(request=request, candidates=self._registry, path=(number,), waits=((),), linked=True)
        groups = [found for name, found in self._groups.items() if name in ("bfcl", "seal")]
        while True:
            sample = chance.choice(chance.choice(groups))
            if len(sample.path) == 1:
                return self._few(sample, chance)

    def _draw_own(self, chance: random.Random) -> Sample:
        share = chance.random()
        if share < 0.11:
            return self._again(chance)
        if share < 0.20:
            return self._several(chance)
        name = chance.choices(list(self._groups), [_WEIGHTS.get(name, 1.0) for name in self._groups])[0]
        sample = self._few(chance.choice(self._groups[name]), chance)
        if chance.random() < 0.08:
            near = {tool for step in sample.path for tool in self.near(step)[:15]} | set(sample.path)
            left = tuple(tool for tool in sample.candidates if tool not in near)
            left += tuple(chance.sample(self._registry, 3))
            return replace(sample, candidates=left, path=(), waits=())
        return sample

    def _again(self, chance: random.Random) -> Sample:
        """The same tool called several times."""
        tool = chance.choice(sorted(self._by_tool))
        found = self._by_tool[tool]
        sample = chance.choice(found)
        count = chance.choice((2, 2, 3, 4))
        requests = [sample.request]
        while len(requests) < count:
            requests.append(synthesis.other_numbers(chance.choice(found).request, chance))
        if len(set(requests)) < count:
            return self._few(sample, chance)
        return self._few(
            replace(
                sample,
                request=synthesis.joined_requests(requests, chance),
                path=sample.path * count,
                waits=((),) * count,
            ),
            chance,
        )

    def _several(self, chance: random.Random) -> Sample:
        """Requests for different tools in one."""
        group = self._groups[chance.choice([name for name in ("bfcl", "seal") if name in self._groups])]
        count = chance.choice((2, 2, 3))
        found = chance.sample(group, count)
        tools = [tool for sample in found for tool in sample.path]
        if len(tools) > 6 or len(set(tools)) < len(tools):
            return self._few(found[0], chance)
        waits: tuple[tuple[int, ...], ...] = ()
        for sample in found:
            waits += tuple(tuple(at + len(waits) for at in row) for row in sample.waits)
        candidates = {tool for sample in found for tool in self._few(sample, chance).candidates}
        request = synthesis.joined_requests([sample.request for sample in found], chance)
        mixed = tuple(sorted(candidates | set(tools)))
        return Sample(request=request, candidates=mixed, path=tuple(tools), waits=waits)

    def _few(self, sample: Sample, chance: random.Random) -> Sample:
        """Fewer candidates of thousands (the likest among them), or some more where there are very few."""
        if len(sample.candidates) > 60 and sample.candidates is not self._registry:
            likest = [tool for step in sample.path for tool in self.near(step)[:6]]
            wrong = [tool for tool in likest if tool in self.catalogue_of(sample) and chance.random() < 0.7]
            wrong += chance.sample(sample.candidates, _FEW)
            candidates = tuple(dict.fromkeys([*sample.path, *wrong]))[: len(sample.path) + _FEW]
            return replace(sample, candidates=candidates)
        if len(sample.candidates) < 4 and chance.random() < 0.5:
            pool = self._groups.get("bfcl", self._shared)
            more = [tool for _ in range(4) for tool in chance.choice(pool).candidates[:3]]
            near = {tool for step in sample.path for tool in self.near(step)[:4]}
            more = [tool for tool in more if tool not in near]
            return replace(sample, candidates=tuple(dict.fromkeys([*sample.candidates, *more])))
        if len(sample.candidates) in _ORGANISATION and chance.random() < 0.3:
            # A server has agents of several packs side by side.
            other = chance.choice(self._groups["written/agents"]) if "written/agents" in self._groups else sample
            near = {tool for step in sample.path for tool in self.near(step)[:8]}
            more = [tool for tool in other.candidates if tool not in near]
            more = chance.sample(more, min(len(more), chance.randint(4, 24))) if sample.path else []
            sample = replace(sample, candidates=tuple(dict.fromkeys([*sample.candidates, *more])))
        return self._thinned(sample, chance)

    def catalogue_of(self, sample: Sample) -> set[int]:
        """The candidates of a sample as a set; only for the large registry."""
        return set(sample.candidates)

    def _thinned(self, sample: Sample, chance: random.Random) -> Sample:
        if not sample.path or len(sample.candidates) < 6 or chance.random() >= self.mixture.thinned:
            return sample
        share = chance.uniform(0.1, 0.6)
        kept = tuple(t for t in sample.candidates if t in sample.path or chance.random() >= share)
        return replace(sample, candidates=kept)

    def _sample(self, row: Example, *, linked: bool = False) -> Sample:
        candidates = self.catalogue.add(row.tools)
        number = dict(zip((card.name for card in row.tools), candidates, strict=True))
        return Sample(
            request=row.request.strip(),
            candidates=candidates if len(candidates) < 200 else self._one(candidates),
            path=tuple(number[step.tool] for step in row.steps),
            waits=_waits(row.steps),
            linked=linked,
        )

    def _one(self, candidates: tuple[int, ...]) -> tuple[int, ...]:
        return self._registry if candidates == self._registry else candidates


_WEIGHTS = {
    "nested": 5.0,
    "seal": 2.0,
    "bfcl": 2.0,
    "written/nested": 4.0,
    "written/packs": 1.5,
    "written/agents": 12.0,
    "written/calls": 1.5,
}


def _written(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.jsonl")) if folder.is_dir() else []


def _said(request: str) -> str:
    return " ".join(request.lower().split()).rstrip(".?! ")


def _chain(length: int) -> tuple[tuple[int, ...], ...]:
    return tuple((at - 1,) if at else () for at in range(length))


def _waits(steps: Sequence[GoldStep]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(at for at in step.depends_on if 0 <= at < len(steps)) for step in steps)
