"""Whatever form a card number, an IBAN or an address is written in, it is blotted out; what is none survives."""

import hashlib
import uuid
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from podium.telemetry.redaction import BLOT, redacted

_GAPS = st.sampled_from(["", " ", "-", ".", "/", "_", "\u00a0", "\u2011", "  ", " - "])
_WORDS = st.sampled_from(["", "card ", "paid with ", "x=", "(", "号码", "12 ", "no. 7, "])


def _luhn_digit(digits: str) -> str:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 - place % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


@st.composite
def cards(draw: st.DrawFn) -> str:
    prefix = draw(
        st.sampled_from(["4", "34", "37", "51", "55", "2221", "2720", "6011", "65", "62", "3528", "36", "50"])
    )
    length = draw(st.integers(13, 19))
    rest = draw(st.text("0123456789", min_size=length - 1 - len(prefix), max_size=length - 1 - len(prefix)))
    return prefix + rest + _luhn_digit(prefix + rest)


@st.composite
def groupings(draw: st.DrawFn, number: str) -> str:
    out = number[0]
    for digit in number[1:]:
        out += draw(_GAPS) + digit
    return out


@given(st.data(), cards(), _WORDS, st.sampled_from(["", " please", ").", "\n", "。"]))
def test_a_card_number_is_found_in_any_grouping(data: st.DataObject, card: str, before: str, after: str) -> None:
    written = data.draw(groupings(card))
    shown = redacted(f"{before}{written}{after}")
    assert BLOT in shown
    assert written not in shown
    assert card[-8:] not in "".join(character for character in shown if character.isdigit())


@given(cards())
def test_digits_of_other_scripts_are_digits(card: str) -> None:
    assert redacted(card.translate({48 + digit: 0xFF10 + digit for digit in range(10)})) == BLOT


@given(st.uuids(), st.binary(max_size=20), st.integers(946_684_800, 4_102_444_800))
def test_ids_hashes_and_times_survive(number: uuid.UUID, data: bytes, when_s: int) -> None:
    version_4 = uuid.UUID(int=number.int, version=4)
    moment = datetime.fromtimestamp(when_s + 0.123, tz=UTC)
    for kept in (
        str(version_4),
        f"{version_4}/v1s3#2",
        hashlib.sha256(data).hexdigest(),
        hashlib.md5(data, usedforsecurity=False).hexdigest(),
        moment.isoformat(timespec="milliseconds"),
        moment.isoformat(sep=" ", timespec="seconds"),
    ):
        assert redacted(f"task {kept} ran") == f"task {kept} ran"


@given(st.integers(1_000_000_000, 1_999_999_999), st.sampled_from([3, 6, 9]), st.integers(0, 10**9 - 1))
def test_moments_in_milliseconds_to_nanoseconds_survive(since_1970_s: int, digits: int, rest: int) -> None:
    moment = f"{since_1970_s}{rest:09d}"[: 10 + digits]
    assert redacted(f"at {moment}") == f"at {moment}"


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@given(st.sampled_from(["DE", "GB", "FR", "CH"]), st.text("0123456789", min_size=14, max_size=18), _GAPS)
def test_an_iban_is_found(country: str, account: str, gap: str) -> None:
    letters = account + country + "00"
    check = 98 - int("".join(str(int(character, 36)) for character in letters)) % 97
    iban = f"{country}{check:02d}{account}"
    written = gap.join(iban[place : place + 4] for place in range(0, len(iban), 4))
    assert account[-6:] not in redacted(f"to {written}.")


@given(st.from_regex(r"[a-z][a-z0-9.]{0,20}@[a-z0-9]{1,20}\.(com|de|cn)", fullmatch=True))
def test_an_address_is_found(address: str) -> None:
    assert address not in redacted(f"from <{address}>, today")
