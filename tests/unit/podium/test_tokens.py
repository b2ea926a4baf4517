"""Where a token comes from, and that none is quoted."""

from pathlib import Path

import pytest

from podium.errors import InvalidRequest
from podium.link import Address
from podium.link.tokens import given_token, token_of


def test_a_file_goes_before_the_variable_and_neither_is_none(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("  of-the-file\n")
    assert given_token(file, {"PODIUM_TOKEN": "of-the-variable"}) == "of-the-file"
    assert given_token(None, {"PODIUM_TOKEN": " of-the-variable\n"}) == "of-the-variable"
    assert given_token(None, {}) == ""


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"two words", b"\xff\xfesecret", "geheim-schlüssel".encode(), b"a\0b"]
)
def test_what_is_no_token_is_refused_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest) as caught:
        token_of(file)
    assert caught.value.field == "token_file"
    assert str(file) in caught.value.message
    for word in ("secret", "geheim", "words"):
        assert word not in f"{caught.value.message}{caught.value.__cause__}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="No such file"):
        token_of(tmp_path / "none")
    with pytest.raises(InvalidRequest, match="directory"):
        token_of(tmp_path)


def test_an_address_does_not_show_its_token() -> None:
    assert "s3cret" not in repr(Address.of("127.0.0.1:1", token="s3cret"))
