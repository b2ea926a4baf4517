"""The held-out generator: reproducible, covering, true to what it prints, and possible in real life."""

import datetime as dt
import io
from decimal import Decimal
from functools import cache
from random import Random

import numpy as np
import pytest
from PIL import Image
from stdnum import bic, iban

from bench.invoice_layouts import GeneratedInvoice, generate
from bench.invoice_layouts.accounts import iban_check, make_iban
from bench.invoice_layouts.chinese import chinese_sum
from bench.invoice_layouts.content import countries, invent, wording
from bench.invoice_layouts.degrade import KINDS, Wear, moved, wear_out
from bench.invoice_layouts.generator import LAYOUTS, print_page
from bench.invoice_layouts.stamp import stamp
from bench.invoice_layouts.typefaces import Faces, is_cjk, load

LANGUAGES = ("en", "de", "fr", "nl", "es", "zh")
SEEDS = range(70_000, 70_000 + len(LAYOUTS))


@cache
def page(seed: int) -> GeneratedInvoice:
    return generate(seed)


def picture(made: GeneratedInvoice) -> Image.Image:
    return Image.open(io.BytesIO(made.image)).convert("L")


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    assert generate(70_007).image == page(70_007).image
    assert generate(70_007 + len(LAYOUTS)).truth != page(70_007).truth


def test_consecutive_seeds_cover_every_layout_and_every_kind_of_capture() -> None:
    pages = [page(seed) for seed in SEEDS]
    assert {made.layout for made in pages} == {layout.name for layout in LAYOUTS}
    assert {made.degradation for made in pages} == set(KINDS)
    assert len(LAYOUTS) >= 12
    assert {language for layout in LAYOUTS for language in layout.languages} == set(LANGUAGES)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_value_of_the_truth_has_a_place_inside_the_picture(seed: int) -> None:
    made = page(seed)
    width, height = picture(made).size
    assert (width, height) == made.size
    for name in ("number", "date", "supplier", "currency", "total", "lines"):
        assert made.boxes[name], name
    for name in ("due_date", "tax", "iban", "bic", "incoterm"):
        assert (made.truth[name] is not None) <= (name in made.boxes)
    for name, places in made.boxes.items():
        for x, y, wide, high in places:
            assert 0 <= x < x + wide <= width, name
            assert 0 <= y < y + high <= height, name


@pytest.mark.parametrize("seed", SEEDS)
def test_something_is_printed_at_every_box(seed: int) -> None:
    made = page(seed)
    pixels = np.asarray(picture(made), dtype=np.int16)
    for name, places in made.boxes.items():
        for x, y, wide, high in places:
            spot = pixels[y : y + high, x : x + wide]
            assert spot.max() - spot.min() > 60, name


@pytest.mark.parametrize("seed", range(120))
def test_amounts_add_up_and_accounts_pass_the_official_tests(seed: int) -> None:
    rng = Random(seed)
    kind = ("goods", "plain", "export", "services", "utility", "freight", "till")[seed % 7]
    inv = invent(rng, language=LANGUAGES[seed % 6], kind=kind)
    assert sum(item.amount for item in inv.items) == inv.goods_total
    assert inv.net + inv.tax == inv.total
    if not inv.prices_include_tax:
        assert inv.net == inv.goods_total - inv.discount + inv.shipping
    assert inv.due is None or inv.due > inv.date
    assert inv.seller.name != inv.buyer.name
    assert not inv.account.iban or iban.is_valid(inv.account.iban)
    assert bic.is_valid(inv.account.bic)
    assert all(len(item.hs) in {0, 6, 8} for item in inv.items)


def test_a_bare_dollar_sign_appears_on_pages_from_the_united_states_only() -> None:
    for seed in range(300):
        inv = invent(Random(seed), language=("en", "es")[seed % 2], kind="goods")
        printed = "".join(run.text for run in inv.money(inv.total)).strip()
        if printed.startswith("$") and not printed.endswith(inv.notation.currency):
            assert inv.seller.country == "US"


def test_every_language_has_a_wording_for_every_label() -> None:
    keys = set(wording("en"))
    for language in LANGUAGES:
        assert set(wording(language)) == keys
        assert {entry.get("code", key) for key, entry in countries().items()} <= set(
            wording(language)["country_names"]
        )


def test_no_glyph_is_missing_from_the_typefaces() -> None:
    letters = {letter for language in LANGUAGES for value in wording(language).values() for letter in str(value)}
    letters |= set("€£¥￥złkr₂") - {"₂"}
    for family in ("lato", "plex-sans", "plex-mono", "inter", "source-serif", "merriweather"):
        font = load(family, 20.0, bold=False)
        blank = bytes(font.getmask("\ue0ff"))
        latin = {letter for letter in letters if not is_cjk(letter) and letter.strip() and letter.isprintable()}
        missing = {letter for letter in latin if bytes(font.getmask(letter)) == blank}
        assert not missing, (family, missing)


def test_a_box_follows_the_page_through_rotation_and_perspective() -> None:
    sheet = Image.new("RGB", (600, 800), (255, 255, 255))
    sheet.paste((0, 0, 0), (400, 500, 460, 520))
    wear = Wear(name="test", rotation_degrees=3, perspective=0.02, jpeg_quality=None)
    data, matrix, _ = wear_out(sheet, wear, Random(4), 150)
    dark = np.asarray(Image.open(io.BytesIO(data)).convert("L")) < 128
    rows, columns = np.nonzero(dark)
    x, y, wide, high = moved((400, 500, 460, 520), matrix)
    assert abs(columns.min() - x) <= 2
    assert abs(columns.max() - (x + wide)) <= 2
    assert abs(rows.min() - y) <= 2
    assert abs(rows.max() - (y + high)) <= 2


def test_a_stamp_covers_nothing_that_was_printed() -> None:
    inv = invent(Random(3), language="en", kind="services")
    sheet = print_page(inv, LAYOUTS[0], Random(3), 150)
    before = np.asarray(sheet.image.convert("L"))
    assert stamp(sheet, inv, Random(3))
    after = np.asarray(sheet.image.convert("L"))
    changed = before != after
    assert changed.any()
    assert before[changed].min() > 240


def test_known_ibans_have_known_check_digits() -> None:
    assert iban_check("DE", "370400440532013000") == "89"
    assert iban_check("GB", "WEST12345698765432") == "82"
    assert make_iban(Random(1), "US", "ABCD") is None


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("0.50", "零圆伍角整"),
        ("105.20", "壹佰零伍圆贰角整"),
        ("10000", "壹万圆整"),
        ("38770.07", "叁万捌仟柒佰柒拾圆零柒分"),
        ("1002000.30", "壹佰万贰仟圆叁角整"),
        ("20030.00", "贰万零叁拾圆整"),
    ],
)
def test_sums_are_written_in_chinese_capitals(amount: str, words: str) -> None:
    assert chinese_sum(Decimal(amount)) == words


def test_dates_are_printed_in_the_order_of_the_country() -> None:
    day = dt.date(2026, 3, 4)
    american = {
        invent(Random(seed), language="en", kind="goods", country="US").day(day).text for seed in range(60)
    }
    british = {invent(Random(seed), language="en", kind="goods", country="GB").day(day).text for seed in range(60)}
    assert {"03/04/2026", "March 4, 2026"} <= american
    assert "04/03/2026" in british
    assert "04/03/2026" not in american


def test_chinese_text_is_measured_with_the_chinese_face() -> None:
    assert is_cjk("票")
    assert not is_cjk("€")
    assert Faces(body="lato", heading="inter").family("mono") == "plex-mono"
