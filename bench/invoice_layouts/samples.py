"""Draws the sample invoices of the demo, always the same: clean, with planted faults, with a soft spot.

python -m bench.invoice_layouts.samples
"""

import argparse
import datetime as dt
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image, ImageFilter

from bench.invoice_layouts import office, trade
from bench.invoice_layouts.content import wording
from bench.invoice_layouts.degrade import Box, Wear, moved, wear_out
from bench.invoice_layouts.generator import Draw, truth_of
from bench.invoice_layouts.invoice import Account, Invoice, Item, Party
from bench.invoice_layouts.look import Look
from bench.invoice_layouts.notation import Notation
from bench.invoice_layouts.sheet import Run, Sheet
from bench.invoice_layouts.typefaces import Faces

FOLDER = Path(__file__).resolve().parents[2] / "agents/packs/invoice/samples"

_DPI = 150
_A4 = (595.0, 842.0)
_ACCENT = (20, 60, 110)
_SEED = 20_260_304

_SOFT_BLUR_SIGMA = 0.7
_CREASE_TOP, _CREASE_HEIGHT, _CREASE_LOSS = 11, 4, 0.75
"""Rows of the soft spot, in pixels, that a fold has bleached, and the share of the ink that is gone.

Found by trial, in the middle of a plateau: the first reading of the IBAN is unsure (0.54), the second one, larger
and shown several ways, is sure (0.95).
"""

_PHOTO = Wear(
    name="photographed",
    rotation_degrees=-2.1,
    perspective=0.018,
    light=0.34,
    blur_sigma=0.35,
    noise_sigma=3,
    jpeg_quality=62,
    desk=(92, 74, 58),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A mistake planted on purpose, and what the check that finds it calls it."""

    code: str
    field: str
    value: str


def draw_samples(folder: Path) -> list[Path]:
    """Write all samples and their truth into `folder`; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    clean, faulty, soft = _clean_invoice(), _faulty_invoice(), _soft_invoice()
    written = []
    sheet = _print(clean, trade.export_form)
    written += _save(folder / "clean.png", _png(sheet.image), clean, _boxes(sheet), ())
    written += _save_two_pages(folder / "two_pages.pdf", clean)
    sheet = _print(faulty, trade.erp_printout)
    data, matrix, _ = wear_out(sheet.image, _PHOTO, Random(_SEED), _DPI)
    boxes = {name: [moved(box, matrix) for box in places] for name, places in sheet.boxes.items()}
    faults = (
        Fault(code="tariff_code_length", field="hs_codes", value=faulty.items[1].hs),
        Fault(code="iban_check_digits", field="iban", value=faulty.account.iban),
        Fault(code="sanctions_near_match", field="supplier", value=faulty.seller.name),
    )
    # Only the second of the tariff codes is wrong.
    marked = boxes | {"hs_codes": [boxes["hs_codes"][1]]}
    written += _save(folder / "faulty.jpg", data, faulty, boxes, faults, fault_boxes=marked)
    sheet = _print(soft, office.colour_band)
    picture = soften(sheet.image, sheet.boxes["iban"][0])
    return written + _save(folder / "blurred_field.png", _png(picture), soft, _boxes(sheet), ())


def soften(page: Image.Image, box: tuple[float, float, float, float]) -> Image.Image:
    """The page with one place blurred and crossed by a pale crease, as where a letter was folded."""
    left, top, right, bottom = box
    area = (int(left) - 4, int(top) - 5, int(right) + 5, int(bottom) + 6)
    part = page.crop(area).filter(ImageFilter.GaussianBlur(_SOFT_BLUR_SIGMA))
    band = (0, _CREASE_TOP, part.width, _CREASE_TOP + _CREASE_HEIGHT)
    crease = part.crop(band)
    part.paste(Image.blend(crease, Image.new("RGB", crease.size, (255, 255, 255)), _CREASE_LOSS), band[:2])
    result = page.copy()
    result.paste(part, area[:2])
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.invoice_layouts.samples", description="Draw the sample invoices of the demo again."
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write (the invoice pack's samples)")
    for path in draw_samples(parser.parse_args(arguments).folder):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
    return 0


def _words(**changes: str) -> dict[str, str]:
    lists = {key: values for key, values in wording("en").items() if key != "country_names"}
    words = {key: values[0] for key, values in lists.items() if isinstance(values[0], str)}
    return words | {"terms_short": words["terms"], "bic": "BIC / SWIFT"} | changes


def _notation(currency: str, symbol: str, style: str, dates: str) -> Notation:
    english = wording("en")
    return Notation(
        currency=currency,
        decimal=".",
        thousands=",",
        places=2,
        style=style,
        symbol=symbol,
        dates=dates,
        months=english["month"],
        short_months=english["mon"],
    )


def _items(*rows: tuple[str, str, str, int, str, str, str, str]) -> tuple[Item, ...]:
    return tuple(
        Item(
            code=code,
            description=description,
            quantity=Decimal(quantity),
            unit=unit,
            price=Decimal(price),
            rate=Decimal(0),
            amount=Decimal(price) * quantity,
            hs="".join(letter for letter in hs if letter.isdigit()),
            hs_printed=hs,
            origin=origin,
        )
        for code, description, hs, quantity, unit, price, origin, _ in rows
    )


def _invoice(seller: Party, buyer: Party, account: Account, items: tuple[Item, ...], **facts: Any) -> Invoice:
    total = sum((item.amount for item in items), Decimal(0))
    date: dt.date = facts["date"]
    defaults: dict[str, Any] = {
        "language": "en",
        "due": date + dt.timedelta(days=30),
        "days": 30,
        "goods_total": total,
        "discount": Decimal(0),
        "shipping": Decimal(0),
        "net": total,
        "taxes": (),
        "tax": Decimal(0),
        "total": total,
        "prices_include_tax": False,
        "deposit": Decimal(0),
        "prior": Decimal(0),
        "order_date": date - dt.timedelta(days=33),
        "delivery_date": date - dt.timedelta(days=2),
    }
    return Invoice(seller=seller, buyer=buyer, account=account, items=items, **(defaults | facts))


def _clean_invoice() -> Invoice:
    return _invoice(
        Party(
            name="Pennine Bearings Ltd",
            street="Unit 6, Calder Trading Estate",
            city="Huddersfield HD5 0RN",
            country="GB",
            country_name="United Kingdom",
            vat="GB 294 7716 05",
            phone="+44 1484 550318",
            web="pennine.co.uk",
        ),
        Party(
            name="Wattle Creek Engineering Pty Ltd",
            street="27 Foundry Road",
            city="Seven Hills NSW 2147",
            country="AU",
            country_name="Australia",
            vat="",
            phone="",
            web="",
        ),
        Account(
            bank="Wharfedale Bank plc",
            bic="WHARGB2L",
            iban="GB59WHAR20451863174402",
            iban_printed="GB59 WHAR 2045 1863 1744 02",
            number="",
        ),
        _items(
            ("PB-6204", "Deep groove ball bearing 6204-2RS", "84821010", 500, "pcs", "3.85", "GB", ""),
            ("CP-32", "Centrifugal pump CP-32", "841370", 4, "pcs", "1240.00", "GB", ""),
            ("SV-15", "Solenoid valve 1/2 in.", "84818059", 60, "pcs", "48.50", "DE", ""),
            ("PG-16", "Pressure gauge 0-16 bar", "902620", 25, "pcs", "36.20", "GB", ""),
        ),
        words=_words(number="Invoice No.", date="Invoice date", total="Total amount payable"),
        notation=_notation("GBP", "£", "{s}{n}", "{d} {month} {yyyy}"),
        number="PB-2026-00417",
        date=dt.date(2026, 3, 17),
        incoterm="CIF Sydney",
        origin="United Kingdom",
        order="WC-88213",
        delivery_note="DN4471",
        customer="C-2093",
        project="",
        person="S. Okafor",
        weight="1,184 kg",
    )


def _faulty_invoice() -> Invoice:
    return _invoice(
        Party(
            name="Zarvand Shiping Lines",
            street="Havnegade 8",
            city="5000 Odense C",
            country="DK",
            country_name="Denmark",
            vat="DK 30551872",
            phone="+45 66 12 40 77",
            web="zarvand.dk",
            legal=("CVR 30551872",),
        ),
        Party(
            name="Tamar Valley Marine Ltd",
            street="19 Quay Street",
            city="Plymouth PL4 8DX",
            country="GB",
            country_name="United Kingdom",
            vat="",
            phone="",
            web="",
        ),
        Account(
            bank="Limfjordsbanken A/S",
            bic="LIMFDK22",
            iban="DK3890430012584736",
            iban_printed="DK38 9043 0012 5847 36",
            number="",
        ),
        _items(
            ("TL-100", "Twist lock, galvanised", "732690", 320, "pcs", "11.40", "DK", ""),
            ("LC-13", "Lashing chain 13 mm, 6 m", "7315820", 150, "pcs", "28.75", "DK", ""),
            ("TC-40", "Container tarpaulin 40 ft", "63061200", 12, "pcs", "385.00", "PL", ""),
        ),
        words=_words(number="Invoice number", date="Date of issue", total="Grand total", hs="HS code"),
        notation=_notation("EUR", "€", "{c} {n}", "{dd} {mon} {yyyy}"),
        number="ZSL-26-1183",
        date=dt.date(2026, 2, 24),
        incoterm="FOB Aarhus",
        origin="Denmark",
        order="TVM-5520",
        delivery_note="80114720",
        customer="10417",
        project="26-0311",
        person="T. Lindgren",
        weight="6,420 kg",
    )


def _soft_invoice() -> Invoice:
    clean = _clean_invoice()
    return replace(
        clean,
        seller=replace(
            clean.seller,
            name="Corrib Controls Ltd",
            street="8 Merchants Quay",
            city="Galway H91 XH5D",
            country="IE",
            country_name="Ireland",
            vat="IE 6388047V",
            phone="+353 91 560 214",
        ),
        account=Account(
            bank="Bank of Thomond",
            bic="BTHMIE2D",
            iban="IE76BTHM90583812345678",
            iban_printed="IE76 BTHM 9058 3812 3456 78",
            number="",
        ),
        notation=_notation("EUR", "€", "{s}{n}", "{d} {month} {yyyy}"),
        number="CC-10582",
        date=dt.date(2026, 4, 9),
        due=dt.date(2026, 5, 9),
    )


def _print(inv: Invoice, draw: Draw) -> Sheet:
    rng = Random(_SEED)
    sheet = Sheet(width=_A4[0], height=_A4[1], dpi=_DPI, faces=Faces(body="lato", heading="lato"))
    draw(sheet, inv, rng, _look(rng))
    return sheet


def _look(rng: Random) -> Look:
    drawn = {"edition": True, "note": True}
    return Look(rng=rng, accent=_ACCENT, table="rules", totals="grid", marked=False, colon=False, _drawn=drawn)


def _boxes(sheet: Sheet) -> dict[str, list[Box]]:
    return {
        name: [(int(x0), int(y0), int(x1 - x0) + 1, int(y1 - y0) + 1) for x0, y0, x1, y1 in places]
        for name, places in sheet.boxes.items()
    }


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.quantize(64).save(out, "PNG", optimize=True, dpi=(_DPI, _DPI))
    return out.getvalue()


def _save(
    path: Path,
    data: bytes,
    inv: Invoice,
    boxes: dict[str, list[Box]],
    faults: Sequence[Fault],
    fault_boxes: dict[str, list[Box]] | None = None,
) -> list[Path]:
    path.write_bytes(data)
    marked = fault_boxes or boxes
    truth = {
        "fields": truth_of(inv, set(boxes)),
        "boxes": boxes,
        "faults": [
            {
                "code": fault.code,
                "field": fault.field,
                "value": fault.value,
                "page": 1,
                "box": marked[fault.field][0],
            }
            for fault in faults
        ],
    }
    target = path.with_suffix(".truth.json")
    target.write_text(json.dumps(truth, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return [path, target]


def _save_two_pages(path: Path, inv: Invoice) -> list[Path]:
    first = _print(replace(inv, words=inv.words | {"page": "Page 1 of 2"}), trade.export_form)
    second = Sheet(width=_A4[0], height=_A4[1], dpi=_DPI, faces=Faces(body="lato", heading="lato"))
    second.write(36, 60, "PACKING LIST", size=15, bold=True, face="heading")
    second.write(36, 84, f"Annex to invoice {inv.number}", size=9)
    for row, item in enumerate(inv.items):
        y = 120 + row * 18
        second.write(36, y, f"Case {row + 1} of {len(inv.items)}", size=9)
        second.write(120, y, f"{inv.quantity_text(item)} {item.unit}  {item.description}", size=9)
        second.write(400, y, "Plywood case, IPPC marked", size=9)
    second.write(36, 220, f"Gross weight {inv.weight}", size=9)
    second.write(_A4[0] - 36, _A4[1] - 22, Run("Page 2 of 2"), size=7, align="right")
    moment = dt.datetime(2026, 3, 17, tzinfo=dt.UTC).timetuple()
    out = io.BytesIO()
    first.image.save(
        out,
        "PDF",
        save_all=True,
        append_images=[second.image],
        resolution=_DPI,
        quality=80,
        creationDate=moment,
        modDate=moment,
    )
    boxes = _boxes(first)
    return _save(path, out.getvalue(), inv, boxes, ())


if __name__ == "__main__":
    sys.exit(main())
