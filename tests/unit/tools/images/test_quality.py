"""Sharp or blurred, printed or blank: judged from the pixels."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from tools.images.quality import BLURRED_BELOW, is_blank, sharpness


def page(lines: int = 20) -> Image.Image:
    image = Image.new("RGB", (1240, 1754), "white")
    draw = ImageDraw.Draw(image)
    for line in range(lines):
        for word in range(9):
            x, y = 120 + word * 110, 150 + line * 70
            for stroke in range(0, 80, 9):
                draw.line((x + stroke, y, x + stroke + 4, y + 22), fill=(25, 25, 25), width=3)
    return image


def noisy(image: Image.Image, strength: float) -> np.ndarray:
    grain = np.random.default_rng(3).normal(0, strength, (image.height, image.width, 1))
    return np.clip(np.asarray(image, dtype=np.float32) + grain, 0, 255).astype(np.uint8)


def blurred(radius: float) -> Image.Image:
    return page().filter(ImageFilter.GaussianBlur(radius))


def test_blur_lowers_sharpness_and_the_limit_lies_between() -> None:
    values = [sharpness(np.asarray(blurred(radius))) for radius in (0, 1, 2, 4, 6)]
    assert values == sorted(values, reverse=True)
    assert values[1] > BLURRED_BELOW * 2
    assert values[3] < BLURRED_BELOW


@pytest.mark.parametrize("strength", [6, 12])
def test_noise_does_not_pass_for_sharpness(strength: float) -> None:
    assert sharpness(noisy(blurred(5), strength)) < BLURRED_BELOW
    assert sharpness(noisy(page(), strength)) > BLURRED_BELOW * 5


def test_a_page_with_little_on_it_is_as_sharp_as_a_full_one() -> None:
    assert sharpness(np.asarray(page(1))) == pytest.approx(sharpness(np.asarray(page())), rel=0.5)


def test_blank_pages_and_one_line_of_faint_print() -> None:
    white = np.full((1754, 1240, 3), 255, dtype=np.uint8)
    assert is_blank(white)
    assert sharpness(white) == 0
    shadow = np.repeat(np.linspace(160, 250, 1240, dtype=np.uint8)[None, :, None], 1754, axis=0).repeat(3, axis=2)
    assert is_blank(shadow)
    faint = Image.new("RGB", (1240, 1754), "white")
    ImageDraw.Draw(faint).text((300, 600), "Total 17.00", fill=(190, 190, 190), font_size=24)
    assert not is_blank(np.asarray(faint))


def test_tiny_pictures_do_not_fail() -> None:
    for size in ((1, 1), (5, 3), (40, 2)):
        pixels = np.zeros((*size, 3), dtype=np.uint8)
        assert sharpness(pixels) == 0
        assert is_blank(pixels)
