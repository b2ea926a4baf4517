"""Wears a clean page as scanners, copiers and telephones do, and says where every point of it went."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from bench.invoice_layouts.sheet import Colour, PixelBox

Box = tuple[int, int, int, int]
"""x, y, width, height in pixels of the finished picture."""

Matrix = NDArray[np.float64]

_REFERENCE_DPI = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Wear:
    """How a page was captured. Lengths are in pixels at 150 dpi and grow with the resolution."""

    name: str
    rotation_degrees: float = 0.0
    perspective: float = 0.0
    """How far the corners are displaced, as a share of the page's width."""
    light: float = 0.0
    """Share of the light that is missing at the darkest side."""
    blur_sigma: float = 0.0
    noise_sigma: float = 0.0
    """Standard deviation of the sensor noise in grey levels."""
    grey: bool = False
    fade: float = 0.0
    """Share of the contrast that is lost."""
    jpeg_quality: int | None = None
    """PNG where None."""
    desk: Colour = (250, 250, 248)
    """What lies around the page."""

    @property
    def description(self) -> str:
        """The parameters in a line for people."""
        parts = [self.name, f"rotation {self.rotation_degrees:+.1f} deg"]
        if self.perspective:
            parts.append(f"perspective {self.perspective:.3f}")
        if self.light:
            parts.append(f"light -{self.light:.0%}")
        parts += [f"blur {self.blur_sigma:.2f}", f"noise {self.noise_sigma:.1f}"]
        return ", ".join([*parts, f"JPEG {self.jpeg_quality}" if self.jpeg_quality else "PNG"])


KINDS = ("clean", "skewed_scan", "jpeg_50", "blurred", "noisy", "photographed", "grey_copy", "all_together")


def choose_wear(rng: Random, kind: str) -> Wear:
    """Draw the parameters of one kind of capture, one of `KINDS`."""

    def turn(limit: float) -> float:
        return rng.uniform(-limit, limit)

    wears = {
        "clean": Wear(name=kind, jpeg_quality=rng.choice((None, 92))),
        "skewed_scan": Wear(name=kind, rotation_degrees=turn(3), noise_sigma=rng.uniform(2, 5), jpeg_quality=75),
        "jpeg_50": Wear(name=kind, rotation_degrees=turn(1.5), jpeg_quality=50),
        "blurred": Wear(
            name=kind,
            rotation_degrees=turn(1.5),
            blur_sigma=rng.uniform(0.7, 1.05),
            noise_sigma=2,
            jpeg_quality=75,
        ),
        "noisy": Wear(name=kind, rotation_degrees=turn(2), noise_sigma=rng.uniform(9, 17), jpeg_quality=80),
        "photographed": Wear(
            name=kind,
            rotation_degrees=turn(3),
            perspective=rng.uniform(0.008, 0.025),
            light=rng.uniform(0.2, 0.45),
            blur_sigma=rng.uniform(0.3, 0.6),
            noise_sigma=rng.uniform(2, 6),
            jpeg_quality=rng.choice((50, 60, 70)),
            desk=rng.choice(((92, 74, 58), (60, 62, 66), (188, 184, 176))),
        ),
        "grey_copy": Wear(
            name=kind,
            rotation_degrees=turn(2),
            grey=True,
            fade=rng.uniform(0.1, 0.3),
            noise_sigma=5,
            jpeg_quality=65,
        ),
        "all_together": Wear(
            name=kind,
            rotation_degrees=turn(3),
            light=rng.uniform(0.1, 0.3),
            blur_sigma=rng.uniform(0.5, 0.75),
            noise_sigma=rng.uniform(4, 8),
            jpeg_quality=50,
        ),
    }
    return wears[kind]


def wear_out(page: Image.Image, wear: Wear, rng: Random, dpi: int) -> tuple[bytes, Matrix, tuple[int, int]]:
    """Capture the page.

    Returns:
        The encoded picture, the 3 by 3 homography from page to picture, and the picture's size.
    """
    matrix, size = _motion(page.size, wear, rng)
    picture = page
    if wear.rotation_degrees or wear.perspective:
        inverse = np.linalg.inv(matrix)
        inverse /= inverse[2, 2]
        picture = page.transform(
            size,
            Image.Transform.PERSPECTIVE,
            tuple(float(value) for value in inverse.flatten()[:8]),
            resample=Image.Resampling.BICUBIC,
            fillcolor=wear.desk,
        )
    if wear.grey:
        picture = picture.convert("L").convert("RGB")
    if wear.blur_sigma:
        picture = picture.filter(ImageFilter.GaussianBlur(wear.blur_sigma * dpi / _REFERENCE_DPI))
    picture = _expose(picture, wear, rng)
    out = io.BytesIO()
    if wear.jpeg_quality:
        picture.save(out, "JPEG", quality=wear.jpeg_quality, dpi=(dpi, dpi))
    else:
        picture.save(out, "PNG", dpi=(dpi, dpi), optimize=True)
    return out.getvalue(), matrix, picture.size


def moved(box: PixelBox, matrix: Matrix) -> Box:
    """The smallest upright box around a page box in the captured picture."""
    left, top, right, bottom = box
    points = _project(matrix, [(left, top), (right, top), (right, bottom), (left, bottom)])
    low, high = np.floor(points.min(axis=0)), np.ceil(points.max(axis=0))
    return int(low[0]), int(low[1]), int(high[0] - low[0]), int(high[1] - low[1])


def _motion(size: tuple[int, int], wear: Wear, rng: Random) -> tuple[Matrix, tuple[int, int]]:
    width, height = size
    corners = [(0.0, 0.0), (float(width), 0.0), (float(width), float(height)), (0.0, float(height))]
    angle = math.radians(wear.rotation_degrees)
    shift = wear.perspective * width
    targets = []
    for x, y in corners:
        across, down = x - width / 2, y - height / 2
        targets.append(
            (
                across * math.cos(angle) - down * math.sin(angle) + rng.uniform(-shift, shift),
                across * math.sin(angle) + down * math.cos(angle) + rng.uniform(-shift, shift),
            )
        )
    points = np.array(targets)
    border = 0.02 * width if wear.perspective else 0.0
    points += border - points.min(axis=0)
    far = points.max(axis=0) + border
    return _homography(corners, points.tolist()), (math.ceil(far[0]), math.ceil(far[1]))


def _homography(source: Sequence[tuple[float, float]], target: Sequence[Sequence[float]]) -> Matrix:
    """The projective map of four points onto four others (the usual eight linear equations)."""
    rows, values = [], []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
        values += [u, v]
    solved = np.linalg.solve(np.array(rows, dtype=np.float64), np.array(values, dtype=np.float64))
    return np.append(solved, 1.0).reshape(3, 3)


def _project(matrix: Matrix, points: Sequence[tuple[float, float]]) -> Matrix:
    flat = np.c_[np.array(points, dtype=np.float64), np.ones(len(points))] @ matrix.T
    projected: Matrix = flat[:, :2] / flat[:, 2:]
    return projected


def _expose(picture: Image.Image, wear: Wear, rng: Random) -> Image.Image:
    if not (wear.light or wear.noise_sigma or wear.fade):
        return picture
    pixels = np.asarray(picture, dtype=np.float32)
    height, width = pixels.shape[:2]
    if wear.fade:
        pixels = 255 - (255 - pixels) * (1 - wear.fade) - 12 * wear.fade
    if wear.light:
        direction = rng.uniform(0, 2 * math.pi)
        across = np.linspace(-0.5, 0.5, width, dtype=np.float32)[None, :] * math.cos(direction)
        down = np.linspace(-0.5, 0.5, height, dtype=np.float32)[:, None] * math.sin(direction)
        slope = across + down
        slope = (slope - slope.min()) / (slope.max() - slope.min())
        pixels = pixels * (1 - wear.light * slope[:, :, None] ** 1.3)
    if wear.noise_sigma:
        noise = np.random.default_rng(rng.getrandbits(32))
        pixels = pixels + noise.normal(0, wear.noise_sigma, (height, width, 1)).astype(np.float32)
        pixels = pixels + noise.normal(0, wear.noise_sigma / 3, pixels.shape).astype(np.float32)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
