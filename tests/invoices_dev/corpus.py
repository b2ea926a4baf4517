"""Make development invoices and read them with the OCR once; later runs use what is cached on disk.

python -m tests.invoices_dev.corpus --out /tmp/podium_invoices --count 20 --seed 1
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import numpy as np

from tests.invoices_dev.canvas import degrade
from tests.invoices_dev.content import make_invoice
from tests.invoices_dev.layouts import STYLES, draw
from tools.document.reading import DocumentReading, Page, TextLine

LANGS = ["en", "de", "fr", "nl", "es", "zh"]


def read_lines(engine, image) -> tuple[TextLine, ...]:
    result = engine(np.asarray(image)[:, :, ::-1].copy(), use_cls=True)
    if result.boxes is None:
        return ()
    return tuple(
        TextLine(text=text, quad=tuple(float(value) for point in box for value in point), confidence=float(score))
        for box, text, score in zip(result.boxes, result.txts, result.scores, strict=True)
    )


def turned(
    lines: tuple[TextLine, ...], width: int, height: int, quarters: int
) -> tuple[tuple[TextLine, ...], int, int]:
    """The lines as they stand when the page was scanned `quarters` quarter turns clockwise."""
    for _ in range(quarters):
        lines = tuple(
            TextLine(
                text=line.text,
                quad=tuple(
                    v for x, y in zip(line.quad[0::2], line.quad[1::2], strict=True) for v in (height - y, x)
                ),
                confidence=line.confidence,
            )
            for line in lines
        )
        width, height = height, width
    return lines, width, height


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("/tmp/podium_invoices"))
    parser.add_argument("--count", type=int, default=84)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--images", type=int, default=12, help="keep the first so many pictures")
    parser.add_argument("--hard", action="store_true", help="every page as bad as `degrade` makes them")
    options = parser.parse_args()
    from rapidocr import RapidOCR

    engine = RapidOCR(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1})
    options.out.mkdir(parents=True, exist_ok=True)
    families = list(STYLES)
    for index in range(options.count):
        rng = random.Random(f"{options.seed}/{index}")
        family, lang = families[index % len(families)], LANGS[(index + index // len(families)) % len(LANGS)]
        name = f"{options.seed:03d}-{index:04d}"
        path = options.out / f"{name}.json"
        if path.exists():
            continue
        invoice = make_invoice(rng, lang)
        canvas = draw(rng, invoice, family)
        harsh = rng.choice([1.0, 1.4]) if options.hard else rng.choice([0.0, 0.3, 0.6, 1.0])
        image = degrade(canvas.image, rng, harsh)
        if index < options.images:
            image.save(options.out / f"{name}.jpg", quality=80)
        started = time.perf_counter()
        lines = read_lines(engine, image)
        quarters = rng.choice([1, 2, 3]) if rng.random() < 0.1 else 0
        lines, width, height = turned(lines, image.width, image.height, quarters)
        page = Page(
            page=1, width=width, height=height, lines=lines, sharpness=500.0, orientation_degrees=quarters * 90
        )
        reading = DocumentReading(name=name, sha256="0" * 64, media_type="image/jpeg", pages=(page,))
        path.write_text(
            json.dumps(
                {"family": family, "harsh": harsh, "truth": invoice.truth, "reading": reading.to_json()},
                ensure_ascii=False,
            )
        )
        sys.stderr.write(f"{name} {family} {lang} {len(lines)} lines {time.perf_counter() - started:.1f} s\n")


if __name__ == "__main__":
    main()
