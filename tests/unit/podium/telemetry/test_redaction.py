import time

import pytest

from podium.telemetry.redaction import BLOT, redacted


@pytest.mark.parametrize(
    "text",
    [
        "+49 170 1234567",
        "+1 (415) 555-2671",
        "(415) 555-2671",
        "415-555-2671",
        "13812345678",
        "138 1234 5678",
        "+8613812345678",
        "11010519491231002X",
        "a.b+c@example.co.uk",
    ],
)
def test_numbers_and_addresses_of_people_are_blotted_out(text: str) -> None:
    assert redacted(f"call {text} now") == f"call {BLOT} now"


@pytest.mark.parametrize(
    "text",
    [
        "events.sqlite closed after 90 commits, 21 of them synced",
        "127.0.0.1:7443",
        "[::1]:50051",
        "110105194912310021",  # the last digit does not fit
        "4111 1111 1111 1112",  # nor here
        "version 1.10.2",
        "1764531685.123456",
        "16777216 bytes of 4194304",
    ],
)
def test_what_is_none_of_them_stays(text: str) -> None:
    assert redacted(text) == text


def test_two_cards_in_a_row_are_both_found() -> None:
    assert redacted("4111 1111 1111 1111 5500 0000 0000 0004") == f"{BLOT} {BLOT}"


@pytest.mark.parametrize("text", ["1 ", "1", "a@", "+1", " A", "DE11 ", "1-"])
def test_hostile_text_takes_no_more_than_a_moment(text: str) -> None:
    begun = time.perf_counter()
    redacted(text * 50_000)
    assert time.perf_counter() - begun < 5
