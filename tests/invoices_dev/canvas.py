"""A page to draw on with Pillow, and what a scanner or phone then does to it."""

import importlib.util
import random
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

FAMILIES = [
    "noto_sans",
    "pt_serif",
    "roboto_mono",
    "fira_sans",
    "arimo",
    "archivo_narrow",
    "eb_garamond",
    "dm_sans",
]
WIDTH, HEIGHT = 1240, 1754


def _folder(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise RuntimeError(
            f"the development fonts need the package {module}: uv pip install {module.replace('_', '-')}"
        )
    return Path(spec.origin).parent


@lru_cache(maxsize=200)
def font(family: str, size: int, bold: bool) -> ImageFont.FreeTypeFont:
    if family == "cjk":
        face = ImageFont.truetype(str(_folder("manimgx_fonts_cjk") / "NotoSansCJK-VF.otf.ttc"), size, index=2)
        face.set_variation_by_axes([700 if bold else 400])
        return face
    files = sorted(
        path for path in (_folder(f"fontpkg_{family}") / "files").glob("*.ttf") if "Italic" not in path.name
    )
    variable = [path for path in files if "wght" in path.name]
    if variable:
        face = ImageFont.truetype(str(variable[0]), size)
        face.set_variation_by_axes(
            [
                {b"Weight": 700 if bold else 400}.get(axis["name"], axis["default"])
                for axis in face.get_variation_axes()
            ]
        )
        return face
    wanted = "-Bold.ttf" if bold else "-Regular.ttf"
    return ImageFont.truetype(str(next(path for path in files if path.name.endswith(wanted))), size)


class Canvas:
    """Places text; coordinates are pixels, `align` is left, right or centre about x."""

    def __init__(self, family: str, size: int, ink: str = "black") -> None:
        self.image = Image.new("RGB", (WIDTH, HEIGHT), "white")
        self.draw = ImageDraw.Draw(self.image)
        self.family, self.size, self.ink = family, size, ink
        self.leading = int(size * 1.45)

    def width(self, text: str, scale: float = 1.0, bold: bool = False) -> int:
        return int(font(self.family, int(self.size * scale), bold).getlength(text))

    def text(
        self,
        x: int,
        y: int,
        text: str,
        *,
        scale: float = 1.0,
        bold: bool = False,
        align: str = "left",
        ink: str | None = None,
    ) -> int:
        face = font(self.family, int(self.size * scale), bold)
        shift = {"left": 0, "right": face.getlength(text), "centre": face.getlength(text) / 2}[align]
        self.draw.text((x - shift, y), text, font=face, fill=ink or self.ink)
        return y + int(self.leading * scale)

    def rule(self, x0: int, y0: int, x1: int, y1: int, width: int = 1) -> None:
        self.draw.line((x0, y0, x1, y1), fill="#444", width=width)

    def box(self, x0: int, y0: int, x1: int, y1: int, fill: str | None = None) -> None:
        self.draw.rectangle((x0, y0, x1, y1), outline="#444", fill=fill)


def degrade(image: Image.Image, rng: random.Random, harsh: float) -> Image.Image:
    """Rotate, blur and add noise; `harsh` in [0, 1] says how much."""
    if rng.random() < 0.7:
        image = image.rotate(
            rng.uniform(-3, 3) * min(1.0, harsh + 0.4),
            resample=Image.Resampling.BICUBIC,
            expand=True,
            fillcolor="white",
        )
    if rng.random() < harsh:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.3) * max(1.0, harsh)))
    if rng.random() < harsh:
        noise = np.random.default_rng(rng.randrange(2**32)).normal(
            0, rng.uniform(3, 14) * max(1.0, harsh), (image.height, image.width, 1)
        )
        image = Image.fromarray(np.clip(np.asarray(image, dtype=np.float32) + noise, 0, 255).astype(np.uint8))
    return image
