"""Every listed name one letter away is found; ordinary company names are not."""

import csv
import random
import string

import pytest

from agents.packs.invoice.checks.sanctions import LIST_FILE, fold, screen_parties
from tests.unit.agents.invoice_checks.papers import CONTEXT, codes, invoice
from tools.document.reading import content_hash

with LIST_FILE.open(encoding="utf-8") as file:
    LISTED = [
        spelling
        for row in csv.DictReader(file)
        for spelling in (row["name"], *filter(None, row["aliases"].split("|")))
    ]

# First words of real companies' kind beside the very business words that the list uses.
OWN = [
    "North",
    "South",
    "Blue",
    "Golden",
    "Silver",
    "Alpine",
    "Baltic",
    "Nordic",
    "Atlantic",
    "Pacific",
    "Rhein",
    "Elbe",
    "Donau",
    "Schwarz",
    "Müller",
    "Schmidt",
    "Weber",
    "Dupont",
    "Moreau",
    "Lefèvre",
    "Garcia",
    "Martinez",
    "Jansen",
    "Bakker",
    "Novak",
    "Kowalski",
    "Petrov",
    "Ivanov",
    "Volkov",
    "Falcon",
    "Eagle",
    "Zenith",
    "Apex",
    "Summit",
    "Delta",
    "Omega",
    "Quantum",
    "Vector",
    "Orion",
    "Nova",
    "Polar",
    "Harbor",
    "Stone",
    "Cedar",
    "Iron",
    "Amber",
    "Coral",
    "Milan",
    "Peltier",
    "Caldera",
    "Turan",
]
BUSINESS = [
    "Maritime Agency",
    "Commodities Trading",
    "Heavy Industries",
    "Petrochemical Group",
    "Air Cargo",
    "Precision Machines",
    "Freight Forwarding",
    "Mining Consortium",
    "Electronics Import",
    "Defence Supplies",
    "Shipping Lines",
    "Trading",
    "Holding",
    "Logistics",
    "Bau",
    "Software",
    "Consulting",
    "Foods",
    "Textiles",
    "Werkzeugbau",
    "Transports",
    "Services",
    "Papier",
    "Import Export",
]
FORMS = ("GmbH", "S.A.", "Co., Ltd.", "")


def _codes(supplier, **parties):
    return codes(screen_parties({"invoice": invoice(supplier=supplier, **parties)}, CONTEXT))


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_name_is_a_match_however_it_is_written(name):
    for written in (name, name.upper(), f"{name} Ltd.", f"{name} Co., Ltd.", f"  {name}, S.A. "):
        assert _codes(written) == ["sanctions_match"]


@pytest.mark.parametrize("name", LISTED)
def test_one_letter_away_is_found_at_every_place(name):
    rng = random.Random(name)
    for place in range(len(name)):
        letter = rng.choice(string.ascii_lowercase + " -.")
        changed = {
            "dropped": name[:place] + name[place + 1 :],
            "added": name[:place] + letter + name[place:],
            "replaced": name[:place] + letter + name[place + 1 :],
            "swapped": name[:place] + name[place + 1 : place + 2] + name[place] + name[place + 2 :],
        }
        for how, spelling in changed.items():
            for form in ("", " GmbH"):
                assert _codes(spelling + form), f"{how} at {place}: {spelling + form}"


def test_ordinary_names_are_not_near():
    names = {f"{own} {business} {form}".strip() for own in OWN for business in BUSINESS for form in FORMS}
    assert len(names) > 4_000
    assert [name for name in names if _codes(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "Kordova Trading Commodities",  # other order
        "Zarvand Lines (Dubai Branch)",  # something around it
        "K0rdova Cornmodities Trading",  # misread twice
        "OrlovMeridianTrading",  # the OCR lost the spaces
        "Hàzmera Heavy Industries",
    ],
)
def test_other_ways_to_write_a_listed_name(name):
    assert _codes(name)


def test_both_parties_are_screened_and_what_was_looked_at_is_said():
    output = screen_parties({"invoice": invoice(supplier="Acme GmbH", buyer="Milovar Air Cargo")}, CONTEXT)
    (finding,) = output["findings"]
    assert (finding["code"], finding["field"], finding["box"]) == ("sanctions_match", "buyer", [10, 20, 100, 30])
    assert output["checked"] == ["supplier Acme GmbH", "buyer Milovar Air Cargo"]
    assert screen_parties({"invoice": invoice()}, CONTEXT)["checked"] == []
    (source,) = output["sources"]
    assert (source["kind"], source["sha256"]) == ("list", content_hash(LIST_FILE.read_bytes()))


def test_a_name_of_signs_only_is_nobody():
    assert _codes("---") == []


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Müller & Söhne GmbH & Co. KG", "muller sohne"),
        ("ACME S. p. A.", "acme"),
        ("AG", "ag"),
        ("Kestrel Pact Holdings", "kestrel pact holdings"),
        ("Maritime Ag-ncy", "maritime ag ncy"),
    ],
)
def test_folding_takes_legal_forms_off_the_end_only(name, folded):
    assert fold(name) == folded
