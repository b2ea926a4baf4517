"""How one place of a page is looked at when it is read a second time.

Sharpening and local contrast (CLAHE) were tried on blurred, faint and shadowed pages and made the recogniser worse
(of 73 lines 55 became 33 to 50), so neither is offered. What helps: real detail, where a PDF can be drawn larger,
and several views that vote, where it cannot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.document.ocr import DetectionSetting
from tools.document.recognition import View

_FIVE_VIEWS = (
    View(trim=0.08),
    View(),
    View(trim=0.13),
    View(trim=0.08, stretch=1.15),
    View(trim=0.06, stretch=0.9),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadSetting:
    """A second way of looking at a place the first reading was not sure of."""

    name: str
    scale: float = 3.0
    """How much larger than the stored page; a PDF page is drawn anew at that resolution."""
    views: tuple[View, ...] = (View(trim=0.08),)
    """Ways to show each line; with several, the reading most of them agree on is taken."""
    detection: DetectionSetting = field(
        default_factory=lambda: DetectionSetting(long_side=960, threshold=0.2, box_threshold=0.4)
    )


ENLARGED = RereadSetting(name="enlarged")
"""Larger, with text looked for more eagerly: enough for a PDF, which gains real detail."""
CONSENSUS = RereadSetting(name="consensus", views=_FIVE_VIEWS)
"""Larger and shown five ways; the confidence is lowered by the share that disagrees.

Of 41 wrong readings 19 lacked full agreement, of 323 right ones 18.
"""

REREAD_SETTINGS: Mapping[str, RereadSetting] = {setting.name: setting for setting in (ENLARGED, CONSENSUS)}
"""The settings by the name that travels."""
