"""Tools that do the same as another under another name, as when two suppliers offer one service.

Name and description are worded anew by rule, the schemas stay; the wording depends on the tool's content alone.
"""

import random
from collections.abc import Mapping
from dataclasses import replace

from conductor.policy.cards import ToolCard
from conductor.policy.selecting_index import words_of

_SAME: Mapping[str, tuple[str, ...]] = {
    "add": ("append", "insert"),
    "apply": ("submit", "request"),
    "availability": ("vacancies", "openings"),
    "book": ("reserve", "order"),
    "booking": ("reservation", "reserving"),
    "buy": ("purchase", "order"),
    "calculate": ("compute", "work out"),
    "cancel": ("call off", "revoke"),
    "cancelling": ("cancellation", "revoking"),
    "change": ("modify", "alter"),
    "changing": ("modification", "altering"),
    "check": ("verify", "inspect"),
    "compare": ("contrast", "match"),
    "convert": ("transform", "translate"),
    "create": ("make", "set up"),
    "delete": ("remove", "erase"),
    "email": ("e-mail", "mail"),
    "fetch": ("get", "retrieve"),
    "find": ("search", "look up"),
    "flight": ("air travel", "plane"),
    "generate": ("produce", "make"),
    "get": ("fetch", "retrieve"),
    "hotel": ("accommodation", "lodging"),
    "info": ("details", "data"),
    "information": ("details", "data"),
    "inquiry": ("lookup", "enquiry"),
    "list": ("enumerate", "show"),
    "manage": ("administer", "handle"),
    "order": ("purchase", "request"),
    "payment": ("paying", "settlement"),
    "planner": ("organiser", "scheduler"),
    "price": ("cost", "fare"),
    "provider": ("supplier", "vendor"),
    "purchase": ("buying", "order"),
    "query": ("lookup", "check"),
    "recommend": ("suggest", "propose"),
    "remove": ("delete", "take away"),
    "rental": ("hire", "leasing"),
    "reservation": ("booking", "reserving"),
    "retrieve": ("get", "fetch"),
    "schedule": ("timetable", "calendar"),
    "search": ("find", "look up"),
    "select": ("choose", "pick"),
    "send": ("deliver", "transmit"),
    "set": ("configure", "define"),
    "status": ("state", "progress"),
    "tool": ("service", "utility"),
    "tracker": ("monitor", "follower"),
    "tracking": ("following", "tracing"),
    "transfer": ("move", "remit"),
    "travel": ("trip", "journey"),
    "update": ("refresh", "modify"),
    "user": ("customer", "client"),
    "weather": ("forecast", "meteorology"),
}
_SUPPLIERS = ("alt", "backup", "second", "nova", "acme", "plus", "v2", "other", "west", "mirror", "open", "quick")
_FRAMES = (
    "{}",
    "{} (second supplier)",
    "Another supplier's service: {}",
    "Does the following: {}",
    "{}. Offered by a different provider",
    "Alternative way to do this: {}",
)
_CHANGED = 0.6
"""Share of the words with a known synonym that are replaced."""


def stand_in(card: ToolCard, number: int = 0) -> ToolCard:
    """A tool that does what `card` does, worded anew.

    Args:
        card: The tool.
        number: Several stand-ins of one tool are told apart by it.
    """
    chance = random.Random(f"stand-in {number} {card.key}")  # noqa: S311 - wordings
    words = words_of(card.name).split()
    renamed = [word for found in words for word in _reworded(found, chance, 0.8).split()]
    if renamed == words or chance.random() < 0.4:
        at = chance.choice((0, len(renamed)))
        renamed.insert(at, chance.choice(_SUPPLIERS))
    described = " ".join(_reworded(word, chance, _CHANGED) for word in card.description.split())
    if described and chance.random() < 0.5:
        described = chance.choice(_FRAMES).format(described.rstrip("."))
    return replace(card, name=_styled(renamed, card.name, chance), description=described)


def _reworded(word: str, chance: random.Random, share: float) -> str:
    bare = word.strip(".,;:()'\"")
    same = _SAME.get(bare.lower())
    if not bare or same is None or chance.random() >= share:
        return word
    found = chance.choice(same)
    return word.replace(bare, found.capitalize() if bare[:1].isupper() else found)


def _styled(words: list[str], like: str, chance: random.Random) -> str:
    if chance.random() < 0.25:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    between = next((mark for mark in "_.-" if mark in like), "_")
    return between.join(words)
