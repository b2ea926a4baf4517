"""Output hooks that a manifest may declare: repairs of known habits of models, each on record."""

import re

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


def unwrap_fenced_json(raw: object) -> tuple[object, tuple[str, ...]]:
    """Take JSON out of the one Markdown fence around it; anything else is returned as it came."""
    if not isinstance(raw, str):
        return raw, ()
    fences = list(_FENCE.finditer(raw))
    if len(fences) != 1:  # none, or a choice that is not ours to make
        return raw, ()
    outside = len(raw.strip()) - len(fences[0][0])
    return fences[0][1], (f"took the JSON out of a Markdown fence, dropping {outside} characters around it",)
