"""Training requests for the agents of the packs, each with what the `rules` planner does with it.

Sentences are filled from the packs' own vocabulary, understood as the server understands them and planned by the
planner given; so the labels are its plans and nobody's opinion. A sentence that it plans otherwise than it was
written for is left out. Requests that no agent can serve get an empty plan, though `rules` asks the caller back.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from agents.invocation import Caller
from agents.registry import AgentRegistry
from conductor.clarifying import asks_caller
from conductor.planner import Planner, Proposal, Situation
from conductor.policy.cards import ToolCard
from conductor.policy.requests import request_text
from conductor.request import TextNormaliser
from conductor.training.examples import Example, GoldStep

SOURCE = "packs"
_PATTERNS = Path(__file__).with_name("pack_patterns.yaml")
_CALLER = Caller(name="training")
_SLOT = re.compile(r"\{(\w+?)(?:_b)?\}")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[a-z]{6,}")

Kind = Literal["sales", "document", "asked_back", "unservable"]
_SHARES: Mapping[Kind, float] = {"sales": 0.52, "document": 0.16, "asked_back": 0.14, "unservable": 0.18}
_MEDIA = ("application/pdf", "image/png", "image/jpeg", "image/tiff")
# Shares of the requests with that trait.
_OPENED, _CLOSED, _MISSPELT, _WORDLESS, _ON_DEVICE, _SEVERAL, _CROWDED = 0.25, 0.12, 0.12, 0.15, 0.5, 0.12, 0.6
_MOST_DISTRACTORS = 24
_TRIES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PackSetting:
    """Everything that labels a request; `cloud.specialists` supplies it, which this package may not import."""

    planner: Planner
    normalise: TextNormaliser
    registry: AgentRegistry
    vocabularies: Sequence[Mapping[str, Any]]
    """The `vocabulary` of each pack."""
    as_of: datetime
    """The moment that "last month" refers to."""


@dataclass(slots=True, kw_only=True)
class PackExamples:
    """What came out, and how many sentences the planner planned otherwise than they were written for."""

    examples: list[Example] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


async def pack_examples(
    setting: PackSetting, *, count: int, seed: int, distractors: Sequence[ToolCard] = ()
) -> PackExamples:
    """About `count` examples, half of them Chinese, no request twice; the same for the same seed.

    Args:
        setting: Planner, normaliser, agents and words.
        count: How many are tried for; fewer come out where sentences run out.
        seed: Of every choice.
        distractors: Cards of other tools; some of them stand beside the agents in most examples.
    """
    chance = random.Random(seed)  # noqa: S311 - choices of sentences, nothing secret
    cards = pack_cards(setting.registry)
    others = [card for card in distractors if card.name not in {card.name for card in cards}]
    found = PackExamples()
    seen: set[str] = set()
    for language in ("zh", "en"):
        sentences = _Sentences(language, _words(setting.vocabularies, language), chance)
        for kind, share in _SHARES.items():
            for number in range(round(count / 2 * share)):
                example = await _one(setting, sentences, kind, seen, found.left_out)
                if example is not None:
                    seen.add(example[0])
                    found.examples.append(
                        Example(
                            source=SOURCE,
                            id=f"{language}-{kind}-{number}",
                            request=example[0],
                            tools=_crowd(cards, others, chance),
                            steps=example[1],
                        )
                    )
    return found


def pack_cards(registry: AgentRegistry) -> tuple[ToolCard, ...]:
    """Cards of the agents that serve."""
    return tuple(
        ToolCard(
            name=agent.spec.name,
            description=agent.spec.description,
            input_schema=agent.spec.input_schema,
            output_schema=agent.spec.output_schema,
        )
        for agent in registry.serving()
    )


def gold_steps(proposal: Proposal) -> tuple[GoldStep, ...]:
    """A plan as training sees it; references to the request stay as `{"request": path}`."""
    return tuple(
        GoldStep(tool=step["tool"], arguments=step["arguments"], depends_on=tuple(step["depends_on"]))
        for step in proposal.plan.to_json()["steps"]
    )


async def _one(
    setting: PackSetting, sentences: "_Sentences", kind: Kind, seen: set[str], left_out: Counter[str]
) -> tuple[str, tuple[GoldStep, ...]] | None:
    """A new request of this kind with its plan; None when none was found."""
    for _ in range(_TRIES):
        text, documents = sentences.draw(kind)
        request = _understood(setting, text, documents)
        # The caller's words are read as they were corrected, or as they stand where nobody corrects them.
        read = request_text({**request, "text": text} if sentences.chance.random() < 1 / 2 else request)
        if not read or read in seen:
            continue
        proposal = await setting.planner.propose(
            Situation(request=request, registry=setting.registry, caller=_CALLER)
        )
        steps = proposal.plan.steps
        asked = len(steps) == 1 and asks_caller(setting.registry.find(steps[0].tool))
        wanted = kind in ("asked_back", "unservable") or len(documents.get("attachments", ())) > 1
        if asked != wanted:
            left_out[kind] += 1
            continue
        return read, () if kind == "unservable" else gold_steps(proposal)
    return None


def _understood(setting: PackSetting, text: str, documents: Mapping[str, Any]) -> dict[str, Any]:
    """The normalised request, as `conductor.request.build_request` makes it of a task."""
    return {
        **setting.normalise(text, setting.as_of, ()),
        "original": text,
        "now": setting.as_of.isoformat(),
        "payload_kind": "",
        "payload": {},
        "attachments": [],
        "device": {"id": "", "online": False},
        "caller": {"name": _CALLER.name, "roles": sorted(_CALLER.roles)},
        "agents": [agent.spec.name for agent in setting.registry.serving()],
        "clarifications": [],
        **documents,
    }


class _Sentences:
    """Draws requests of one language."""

    def __init__(self, language: str, words: Mapping[str, Sequence[str]], chance: random.Random) -> None:
        self.chance = chance
        self._chinese = language == "zh"
        self._patterns = _patterns()[language]
        self._words: Mapping[str, Sequence[str]] = {**words, **self._patterns["words"]}
        self._slips: Mapping[str, str] = _patterns()["slips"]

    def draw(self, kind: Kind) -> tuple[str, Mapping[str, Any]]:
        """A text, and the fields of a request that say what came with it."""
        pattern = self.chance.choice(self._patterns[kind])
        text = _SLOT.sub(self._word(), pattern)
        if kind == "document":
            return ("" if self._is(_WORDLESS) else self._dressed(text, pattern)), self._documents()
        if kind in ("sales", "asked_back"):
            text = self._dressed(text, pattern)
            if self._is(_MISSPELT):
                text = self._misspelt(text)
        return text, {}

    def _is(self, share: float) -> bool:
        return self.chance.random() < share

    def _word(self) -> Callable[[re.Match[str]], str]:
        """Fills slots, each with another word than the slots before."""
        used: set[str] = set()

        def fill(slot: re.Match[str]) -> str:
            words = [word for word in self._words[slot[1]] if word not in used] or list(self._words[slot[1]])
            used.add(chosen := self.chance.choice(words))
            return chosen

        return fill

    def _dressed(self, text: str, pattern: str) -> str:
        """With an opening or a closing word, or a mark at the end, as people write."""
        between, comma = ("", "，") if self._chinese else (" ", ", ")
        # "Show me" goes before a thing that is named, not before a sentence of its own.
        if pattern.startswith("{") and self._is(_OPENED):
            text = self.chance.choice(self._patterns["openers"]) + between + text
        if self._is(_CLOSED):
            text += comma + self.chance.choice(self._patterns["closers"])
        marks = ("？", "。", "", "", "") if self._chinese else ("?", ".", "", "", "")
        text += self.chance.choice(marks)
        return text[:1].upper() + text[1:] if self._is(1 / 2) else text

    def _misspelt(self, text: str) -> str:
        if self._chinese:
            present = [(right, wrong) for right, wrong in self._slips.items() if right in text]
            return text.replace(*self.chance.choice(present), 1) if present else text
        words = list(_WORD.finditer(text))
        if not words:
            return text
        word = self.chance.choice(words)
        at = self.chance.randrange(word.start() + 1, word.end() - 1)
        one, two = text[at], text[at + 1]
        return text[:at] + self.chance.choice((two + one, one, one + one + two)) + text[at + 2 :]

    def _documents(self) -> Mapping[str, Any]:
        if self._is(_ON_DEVICE):
            return {"payload_kind": "document_reading", "payload": {"pages": []}}
        count = self.chance.choice((2, 3)) if self._is(_SEVERAL) else 1
        return {"attachments": [{"media_type": self.chance.choice(_MEDIA)} for _ in range(count)]}


def _crowd(cards: tuple[ToolCard, ...], others: Sequence[ToolCard], chance: random.Random) -> tuple[ToolCard, ...]:
    """The agents, among other tools in most cases; the same tuple where there are none."""
    if not others or chance.random() >= _CROWDED:
        return cards
    drawn = chance.sample(others, min(len(others), chance.randint(3, _MOST_DISTRACTORS)))
    return cards + tuple({card.name: card for card in drawn}.values())


def _words(vocabularies: Sequence[Mapping[str, Any]], language: str) -> Mapping[str, tuple[str, ...]]:
    """The names of each kind in one language."""
    found: dict[str, list[str]] = {}
    for vocabulary in vocabularies:
        for kind, entry in vocabulary.get("kinds", {}).items():
            for aliases in entry.get("values", {}).values():
                spoken = [name for name in aliases if bool(_CHINESE.search(name)) == (language == "zh")]
                found.setdefault(kind, []).extend(spoken)
    return {kind: tuple(names) for kind, names in found.items()}


@cache
def _patterns() -> Mapping[str, Any]:
    patterns: Mapping[str, Any] = yaml.safe_load(_PATTERNS.read_text(encoding="utf-8"))
    return patterns
