"""Make development invoices and read them with the OCR once; later runs use what is cached on disk.

python -m tests.invoices_dev.corpus --out /tmp/podium_invoices --count 20 --seed 1
"""

import argparse
import io
import json
import random
import sys
import time
from pathlib import Path

from tests.invoices_dev.canvas import degrade
from tests.invoices_dev.content import make_invoice
from tests.invoices_dev.layouts import STYLES, draw
from tools.document.reader import DocumentReader

LANGS = ["en", "de", "fr", "nl", "es", "zh"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("/tmp/podium_invoices"))
    parser.add_argument("--count", type=int, default=84)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--images", type=int, default=12, help="keep the first so many pictures")
    parser.add_argument("--hard", action="store_true", help="every page as bad as `degrade` makes them")
    options = parser.parse_args()
    reader = DocumentReader()
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
        quarters = rng.choice([1, 2, 3]) if rng.random() < 0.1 else 0
        image = image.rotate(-90 * quarters, expand=True)
        picture = io.BytesIO()
        image.save(picture, "JPEG", quality=rng.choice([50, 60, 75, 90]))
        if index < options.images:
            (options.out / f"{name}.jpg").write_bytes(picture.getvalue())
        started = time.perf_counter()
        reading = reader.read(picture.getvalue(), name)
        lines = reading.pages[0].lines
        path.write_text(
            json.dumps(
                {"family": family, "harsh": harsh, "truth": invoice.truth, "reading": reading.to_json()},
                ensure_ascii=False,
            )
        )
        sys.stderr.write(f"{name} {family} {lang} {len(lines)} lines {time.perf_counter() - started:.1f} s\n")


if __name__ == "__main__":
    main()
