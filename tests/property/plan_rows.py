"""Random right plans and predictions, near each other and full of what makes scorers disagree."""

import random
from typing import Any

TOOLS = ("find_flight", "book_flight", "find_hotel", "pay", "send_mail")
NAMES = ("city", "price", "when", "options")
VALUES: tuple[Any, ...] = (
    "Paris", "paris ", "PARIS.", "New  York", "new york", 5, 5.0, "5", "$5", "1,000", 1000, True, "true", False,
    0, 1, "", None, [1, "2"], ["1", 2.0], {"a": "X"}, {"a": "x."}, {"step": 9, "field": "f"}, {"step": "0"}, "nan",
    "1_0", 10,
)  # fmt: skip


def sample(seed: int, *, requests: int = 12) -> dict[str, list[dict[str, Any]]]:
    """Gold, gold with accepted values, and predictions for some of the requests."""
    dice = random.Random(seed)
    gold = [{"id": index, "steps": _steps(dice, least=1)} for index in range(requests)]
    accept = [{"id": row["id"], "steps": [_accepting(dice, step) for step in row["steps"]]} for row in gold]
    answered = [row for row in gold if dice.random() < 0.85]
    predictions = [{"id": str(row["id"]), "steps": _near(dice, row["steps"])} for row in answered]
    return {"gold": gold, "accept": accept, "predictions": predictions}


def _steps(dice: random.Random, *, least: int) -> list[dict[str, Any]]:
    count = dice.randint(least, 4)
    return [_step(dice, count) for _ in range(count)]


def _step(dice: random.Random, count: int) -> dict[str, Any]:
    arguments = {name: _value(dice, count) for name in NAMES if dice.random() < 0.5}
    depends_on = [dice.randint(-1, count) for _ in range(dice.randint(0, 2))]
    return {"tool": dice.choice(TOOLS), "arguments": arguments, "depends_on": depends_on}


def _value(dice: random.Random, count: int) -> Any:
    if dice.random() < 0.25:
        return {"step": dice.randint(0, count), "field": dice.choice(NAMES)}
    return dice.choice(VALUES)


def _accepting(dice: random.Random, step: dict[str, Any]) -> dict[str, Any]:
    accept = {
        name: [value, *(dice.choice(VALUES) for _ in range(dice.randint(0, 2)))]
        for name, value in step["arguments"].items()
    }
    return {"tool": step["tool"], "accept": accept}


def _near(dice: random.Random, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The right plan with some of it changed."""
    kind = dice.random()
    if kind < 0.15:
        return _steps(dice, least=0)
    ours = [dict(step, arguments=dict(step["arguments"])) for step in steps]
    if kind < 0.3:
        ours.pop(dice.randrange(len(ours)))
    elif kind < 0.45:
        ours.append(_step(dice, len(ours)))
    elif kind < 0.6:
        dice.shuffle(ours)
    return _retouched(dice, ours)


def _retouched(dice: random.Random, ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for step in ours:
        for name in NAMES:
            if dice.random() < 0.15:
                step["arguments"][name] = _value(dice, len(ours))
            elif dice.random() < 0.05:
                step["arguments"].pop(name, None)
        if dice.random() < 0.1:
            step["depends_on"] = [dice.randint(0, 3)]
        if dice.random() < 0.1:
            step["arguments"] = None  # type: ignore[assignment]
    return ours
