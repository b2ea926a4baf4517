"""The token's text: one form, read with care, never shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.identity.token import EnrolmentToken
from podium.link.certificates import EnrolmentTokenInvalid


@given(st.binary(max_size=600))
def test_a_token_survives_its_text(ca_der: bytes) -> None:
    token = EnrolmentToken.make(ca_der)
    assert EnrolmentToken.parse(token.text) == token
    sent = EnrolmentToken.parse(token.proof)
    assert (sent.token_id, sent.secret, sent.ca_der) == (token.token_id, token.secret, b"")


@given(st.text(max_size=200) | st.text(alphabet="podium1.-_=AB", max_size=100))
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(EnrolmentTokenInvalid) as raised:
        EnrolmentToken.parse(text)
    assert len(text) < 12 or text not in raised.value.message


def test_one_token_has_one_text() -> None:
    token = EnrolmentToken.make(b"")
    prefix, token_id, secret, _ = token.text.split(".")
    for other in (secret + "=", secret.replace(secret[0], "*"), secret[:-1] + "\u0391", secret + "AA"):
        with pytest.raises(EnrolmentTokenInvalid):
            EnrolmentToken.parse(f"{prefix}.{token_id}.{other}.")


def test_a_damaged_authority_is_told_before_anything_is_sent() -> None:
    token = EnrolmentToken.make(b"\x30\x03no")
    with pytest.raises(EnrolmentTokenInvalid, match="damaged"):
        assert token.ca_pem
    assert EnrolmentToken.make(b"").ca_pem == b""
