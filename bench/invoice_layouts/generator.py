"""Makes one held-out invoice from a seed: its picture, the truth printed on it, and where it stands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from bench.invoice_layouts import chinese, consumer, office, trade
from bench.invoice_layouts.content import invent
from bench.invoice_layouts.degrade import KINDS, Box, choose_wear, moved, wear_out
from bench.invoice_layouts.invoice import Invoice
from bench.invoice_layouts.look import Look, choose_look
from bench.invoice_layouts.sheet import Sheet
from bench.invoice_layouts.stamp import stamp
from bench.invoice_layouts.typefaces import MONO, SANS, SERIF, Faces

Draw = Callable[[Sheet, Invoice, Random, Look], None]

_EVERY = ("en", "de", "fr", "nl", "es", "zh")
_LATIN = ("en", "de", "fr", "nl", "es")
_PAPERS = {"a4": (595.0, 842.0), "letter": (612.0, 792.0), "till": (226.0, 900.0)}
_STAMPED_SHARE = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One family of layouts and what it is used for."""

    name: str
    draw: Draw
    languages: Sequence[str]
    kinds: Sequence[str]
    paper: str = "a4"
    countries: Sequence[str] = ()
    """Keys of ``countries.toml`` that use it; every one of the language where empty."""
    serif: bool = True
    currency: str | None = None


LAYOUTS: tuple[Layout, ...] = (
    Layout(
        name="window_letter", draw=office.window_letter, languages=_LATIN, kinds=("goods", "services", "export")
    ),
    Layout(
        name="online_invoice",
        draw=office.online_invoice,
        languages=_EVERY,
        kinds=("services", "goods"),
        serif=False,
    ),
    Layout(
        name="colour_band", draw=office.colour_band, languages=_EVERY, kinds=("goods", "services"), serif=False
    ),
    Layout(name="erp_printout", draw=trade.erp_printout, languages=_LATIN, kinds=("goods", "export"), serif=False),
    Layout(
        name="export_form",
        draw=trade.export_form,
        languages=("en", "en", "fr", "es", "de", "nl"),
        kinds=("export",),
    ),
    Layout(
        name="forwarder", draw=trade.forwarder, languages=("en", "en", "de", "nl", "fr", "es"), kinds=("freight",)
    ),
    Layout(name="utility_bill", draw=consumer.utility_bill, languages=_LATIN, kinds=("utility",), serif=False),
    Layout(name="till_receipt", draw=consumer.till_receipt, languages=_EVERY, kinds=("till",), paper="till"),
    Layout(name="word_processor", draw=office.word_processor, languages=_LATIN, kinds=("services", "goods")),
    Layout(name="sidebar", draw=office.sidebar, languages=_LATIN, kinds=("services", "export"), serif=False),
    Layout(
        name="tax_office_invoice",
        draw=chinese.tax_office_invoice,
        languages=("zh",),
        kinds=("plain",),
        currency="CNY",
    ),
    Layout(name="exporter_sheet", draw=chinese.exporter_sheet, languages=("zh",), kinds=("goods", "export")),
    Layout(
        name="payment_slip",
        draw=consumer.payment_slip,
        languages=("de", "fr"),
        kinds=("services",),
        countries=("CH", "CHF_FR"),
        serif=False,
    ),
    Layout(
        name="gridded_factura", draw=consumer.gridded_factura, languages=("es", "es", "fr", "nl"), kinds=("goods",)
    ),
    Layout(
        name="american_letter",
        draw=trade.american_letter,
        languages=("en",),
        kinds=("goods",),
        paper="letter",
        countries=("US", "US", "CA"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedInvoice:
    """A picture of an invoice and what a careful reader finds on it."""

    seed: int
    image: bytes
    media_type: str
    """``image/png`` or ``image/jpeg``."""
    size: tuple[int, int]
    """Width and height in pixels."""
    truth: Mapping[str, Any]
    """number, date, due_date, supplier, currency, total, tax, iban, bic, incoterm: text or None where the page
    does not print it (tax is the sum of the tax lines, whether or not the sum is printed);
    lines: a list of description, quantity, unit_price, amount; hs_codes: a list of digits."""
    boxes: Mapping[str, tuple[Box, ...]]
    """Every place where a field is printed, in pixels of the picture."""
    language: str
    country: str
    layout: str
    degradation: str
    """Kind of capture, one of `degrade.KINDS`."""
    degradation_details: str

    @property
    def file_name(self) -> str:
        """A name for the picture, e.g. ``invoice-910003.jpg``."""
        return f"invoice-{self.seed}.{'png' if self.media_type == 'image/png' else 'jpg'}"


def generate(seed: int) -> GeneratedInvoice:
    """The invoice of a seed; the same seed always gives the same bytes.

    Layouts and captures follow the seed in turn, so that consecutive seeds cover all of them evenly.
    """
    rng = Random(seed)
    layout = LAYOUTS[seed % len(LAYOUTS)]
    language = rng.choice(layout.languages)
    inv = invent(
        rng,
        language=language,
        kind=rng.choice(layout.kinds),
        country=_country(rng, layout, language),
        currency=layout.currency,
    )
    dpi = 200 if layout.paper == "till" else rng.choice((150, 150, 170, 200))
    sheet = print_page(inv, layout, rng, dpi)
    if layout.paper != "till" and rng.random() < _STAMPED_SHARE:
        stamp(sheet, inv, rng)
    wear = choose_wear(rng, KINDS[seed % len(KINDS)])
    image, matrix, size = wear_out(sheet.image, wear, rng, dpi)
    return GeneratedInvoice(
        seed=seed,
        image=image,
        media_type="image/jpeg" if wear.jpeg_quality else "image/png",
        size=size,
        truth=truth_of(inv, set(sheet.boxes)),
        boxes={name: tuple(moved(box, matrix) for box in boxes) for name, boxes in sheet.boxes.items()},
        language=language,
        country=inv.seller.country,
        layout=layout.name,
        degradation=wear.name,
        degradation_details=wear.description,
    )


def print_page(inv: Invoice, layout: Layout, rng: Random, dpi: int) -> Sheet:
    """Print an invoice in a layout on clean paper."""
    families = (*SANS, *SERIF) if layout.serif else SANS
    body = rng.choice(families)
    faces = Faces(body=body, heading=rng.choice((body, body, rng.choice((*SANS, *SERIF)))), mono=MONO)
    width, height = _PAPERS[layout.paper]
    sheet = Sheet(width=width, height=height, dpi=dpi, faces=faces)
    layout.draw(sheet, inv, rng, choose_look(rng))
    return sheet


def truth_of(inv: Invoice, printed: set[str]) -> dict[str, Any]:
    """What the page says, for the fields whose names are in `printed`; None or empty for the others."""

    def where(name: str, value: str | None) -> str | None:
        return value if name in printed else None

    return {
        "number": inv.number,
        "date": inv.date.isoformat(),
        "due_date": where("due_date", inv.due.isoformat() if inv.due else None),
        "supplier": inv.seller.name,
        "currency": inv.notation.currency,
        "total": _plain(inv.total),
        "tax": where("tax", _plain(inv.tax.quantize(Decimal(1).scaleb(-inv.notation.places)))),
        "iban": where("iban", inv.account.iban),
        "bic": where("bic", inv.account.bic),
        "incoterm": where("incoterm", inv.incoterm),
        "hs_codes": [item.hs for item in inv.items] if "hs_codes" in printed else [],
        "lines": [
            {
                "description": item.description,
                "quantity": _plain(item.quantity),
                "unit_price": _plain(item.price),
                "amount": _plain(item.amount),
            }
            for item in inv.items
        ],
    }


def _plain(value: Decimal) -> str:
    return f"{value:f}"


def _country(rng: Random, layout: Layout, language: str) -> str | None:
    if not layout.countries:
        return None
    if layout.name == "payment_slip":
        return "CH" if language == "de" else "CHF_FR"
    return rng.choice(layout.countries)
