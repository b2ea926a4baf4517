"""How one place of a page is prepared when it is read a second time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tools.document.ocr import DetectionSetting
from tools.images.decode import Pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadSetting:
    """A second way of looking at a place the first reading was not sure of."""

    name: str
    scale: float = 3.0
    """How much larger than the stored page; a PDF page is drawn anew at that resolution."""
    contrast: bool = False
    """Even out the light by CLAHE (Zuiderveld, 1994)."""
    sharpen: bool = False
    """Unsharp masking."""
    find_lines: bool = True
    """Look for lines in the box; without, the whole box is read as one line."""
    detection: DetectionSetting = field(
        default_factory=lambda: DetectionSetting(long_side=960, threshold=0.2, box_threshold=0.4)
    )


ENLARGED = RereadSetting(name="enlarged")
CONTRAST = RereadSetting(name="contrast", contrast=True, sharpen=True)
ONE_LINE = RereadSetting(name="one_line", sharpen=True, find_lines=False)

REREAD_SETTINGS: Mapping[str, RereadSetting] = {
    setting.name: setting for setting in (ENLARGED, CONTRAST, ONE_LINE)
}
"""The settings by the name that travels."""


def prepared(picture: Pixels, setting: RereadSetting) -> Pixels:
    """The picture with contrast and edges enhanced as the setting says."""
    import cv2

    if setting.contrast:
        lab = cv2.cvtColor(picture, cv2.COLOR_RGB2LAB)
        lab[:, :, 0] = cv2.createCLAHE(clipLimit=2.0, tileGridSize=(4, 4)).apply(lab[:, :, 0])
        picture = np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), dtype=np.uint8)
    if setting.sharpen:
        soft = cv2.GaussianBlur(picture, (0, 0), 1.2 * setting.scale)
        picture = np.asarray(cv2.addWeighted(picture, 1.8, soft, -0.8, 0), dtype=np.uint8)
    return picture
