"""Finds the fonts that invoices are set in: open-licensed families that come as Python packages."""

import functools
import importlib.resources
from dataclasses import dataclass

from PIL import ImageFont

CJK = "cjk"
"""Family name of the Chinese face; every other family is Latin and borrows its Chinese glyphs from this one."""

MONO = "plex-mono"

_CJK_SIMPLIFIED_INDEX = 2  # order of the faces in the collection: JP, KR, SC, TC, HK

# family -> (package, file of the regular face, file of the bold face or None where the weight is an axis)
_FAMILIES: dict[str, tuple[str, str, str | None]] = {
    "lato": ("fontpkg_lato", "Lato-Regular.ttf", "Lato-Bold.ttf"),
    "plex-sans": ("fontpkg_ibm_plex_sans", "IBMPlexSans[wdth,wght].ttf", None),
    MONO: ("fontpkg_ibm_plex_mono", "IBMPlexMono-Regular.ttf", "IBMPlexMono-Bold.ttf"),
    "inter": ("fontpkg_inter", "Inter[opsz,wght].ttf", None),
    "source-serif": ("fontpkg_source_serif_4", "SourceSerif4[opsz,wght].ttf", None),
    "merriweather": ("fontpkg_merriweather", "Merriweather[opsz,wdth,wght].ttf", None),
}

SANS = ("lato", "plex-sans", "inter")
SERIF = ("source-serif", "merriweather")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faces:
    """The families one invoice uses: running text, headings, and figures in a typewriter style."""

    body: str
    heading: str
    mono: str = MONO

    def family(self, role: str) -> str:
        """The family for a role: ``body``, ``heading`` or ``mono``."""
        return {"body": self.body, "heading": self.heading, "mono": self.mono}[role]


@functools.lru_cache(maxsize=512)
def load(family: str, size_px: float, *, bold: bool) -> ImageFont.FreeTypeFont:
    """The font of a family at a size in pixels."""
    if family == CJK:
        path = importlib.resources.files("manimgx_fonts_cjk").joinpath("NotoSansCJK-VF.otf.ttc")
        font = ImageFont.truetype(str(path), size_px, index=_CJK_SIMPLIFIED_INDEX)
        font.set_variation_by_axes([700 if bold else 400])
        return font
    package, regular, heavy = _FAMILIES[family]
    name = heavy if bold and heavy else regular
    font = ImageFont.truetype(str(importlib.resources.files(package).joinpath("files", name)), size_px)
    if heavy is None:
        font.set_variation_by_axes([_axis(axis, bold=bold, size_px=size_px) for axis in font.get_variation_axes()])
    return font


def is_cjk(character: str) -> bool:
    """Whether a character is Chinese (or full-width) and so needs the Chinese face."""
    return character >= "\u2e80"


def _axis(axis: ImageFont.Axis, *, bold: bool, size_px: float) -> float:
    name = (axis["name"] or b"").lower()
    low, high = axis["minimum"] or 0, axis["maximum"] or 0
    if b"weight" in name:
        return 700 if bold else 400
    if b"optical" in name:
        return min(max(size_px / 2, low), high)
    return axis["default"] or 0
