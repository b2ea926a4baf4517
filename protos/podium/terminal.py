"""What is shown on a terminal: text of requests, agents and devices does not command it.

Escape sequences in a text could move the cursor over what was printed before, retitle the window, or fill the
clipboard; marks that reorder text could make it read as something else.
"""

import re
from collections.abc import Iterable

from rich import console
from rich.segment import Segment

# C0 without tab and line feed, DEL, C1, and the marks that reorder text.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def plain(text: str) -> str:
    """The text with a replacement character for whatever a terminal would obey."""
    return _COMMANDS.sub("\ufffd", text)


def escaped(json_text: str) -> str:
    """JSON with those characters escaped, which means the same."""
    return _COMMANDS.sub(lambda match: f"\\u{ord(match.group()):04x}", json_text)


class Console(console.Console):
    """A rich console on which only rich itself moves the cursor and sets colours."""

    def render(
        self, renderable: console.RenderableType, options: console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """See `rich.console.Console.render`."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(plain(segment.text), segment.style)
