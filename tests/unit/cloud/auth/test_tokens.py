"""Tokens: who is believed, who is not, and what of them lies on disk."""

import base64
import errno
import hmac
import json
import os
import random
import stat
import string
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from cloud.auth.authentication import Authentication
from cloud.auth.files import SecretExposed, read_secret, write_secret
from cloud.auth.principal import Principal
from cloud.auth.tokens import LEEWAY, OtherIssuer, TokenKeyUnusable, Tokens, other_issuer
from podium.errors import (
    DataCorrupt,
    InternalError,
    InvalidRequest,
    PodiumError,
    StorageFull,
    Unauthenticated,
)
from tests.fakes.clock import FakeClock

ISSUER = "https://login.example"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(tmp_path: Path, clock: FakeClock) -> Tokens:
    return Tokens.open(tmp_path, clock=clock)


def test_a_token_says_who_and_what_until_when(tokens: Tokens, clock: FakeClock) -> None:
    token, expires = tokens.issue("ann@example", ["viewer", "caller", "caller"], lifetime=timedelta(hours=1))
    assert tokens.check(token) == Principal(
        name="ann@example",
        roles=frozenset({"viewer", "caller"}),
        kind="caller",
        caller="ann@example",
        expire_time=expires + LEEWAY,
    )
    clock.advance(hours=1, seconds=LEEWAY.total_seconds() - 1)
    tokens.check(token)
    clock.advance(seconds=1)
    with pytest.raises(Unauthenticated, match="expired"):
        tokens.check(token)


def test_a_clock_that_is_a_year_off_is_named(tokens: Tokens, clock: FakeClock) -> None:
    token, _ = tokens.issue("ann", ["caller"])
    clock.advance(seconds=-59)
    tokens.check(token)
    clock.advance(days=-365)
    with pytest.raises(Unauthenticated, match="yet to come") as caught:
        tokens.check(token)
    assert "clocks" in caught.value.next_step


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path, clock: FakeClock) -> None:
    token, _ = Tokens.open(tmp_path, clock=clock).issue("ann", ["caller"])
    key = tmp_path / "tokens.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert Tokens.open(tmp_path, clock=clock).check(token).name == "ann"
    key.chmod(0o640)
    with pytest.raises(SecretExposed, match=r"tokens\.key"):
        Tokens.open(tmp_path, clock=clock)
    key.unlink()
    with pytest.raises(Unauthenticated):
        Tokens.open(tmp_path, clock=clock).check(token)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a key",
        b"\xff\xfe\x00",
        RSAKey.generate_key(2048).as_pem(private=True),
        ECKey.generate_key("P-384").as_pem(private=True),
        ECKey.generate_key("P-256").as_pem(private=False),
    ],
)
def test_a_damaged_key_is_told_and_not_shown(tmp_path: Path, clock: FakeClock, content: bytes) -> None:
    write_secret(tmp_path / "tokens.key", content)
    with pytest.raises(TokenKeyUnusable) as caught:
        Tokens.open(tmp_path, clock=clock)
    assert "BEGIN" not in caught.value.message
    assert caught.value.__cause__ is None
    assert (tmp_path / "tokens.key").read_bytes() == content


def test_what_was_taken_back_stays_so(tmp_path: Path, clock: FakeClock) -> None:
    tokens = Tokens.open(tmp_path, clock=clock)
    old, _ = tokens.issue("ann", ["caller"])
    other, _ = tokens.issue("bob", ["caller"])
    assert tokens.revoke("ann") == clock()
    for again in (tokens, Tokens.open(tmp_path, clock=clock)):
        with pytest.raises(Unauthenticated, match="taken back"):
            again.check(old)
        assert again.check(other).name == "bob"
    new, _ = tokens.issue("ann", ["caller"])
    assert Tokens.open(tmp_path, clock=clock).check(new).name == "ann"


@pytest.mark.parametrize("years", [-1, 1])
def test_a_clock_that_is_years_off_gives_nothing_back_and_takes_no_more(
    tmp_path: Path, clock: FakeClock, years: int
) -> None:
    old, _ = Tokens.open(tmp_path, clock=clock).issue("ann", ["caller"])
    clock.advance(days=365 * years)
    Tokens.open(tmp_path, clock=clock).revoke("ann")
    clock.advance(days=-365 * years)
    tokens = Tokens.open(tmp_path, clock=clock)
    with pytest.raises(Unauthenticated, match="taken back"):
        tokens.check(old)
    assert tokens.check(tokens.issue("ann", ["caller"])[0]).name == "ann"


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"ann": 1}',
        b'{"ann": {"until": "2026-01-01T00:00:00", "epoch": "a"}}',
        b'{"ann": {"until": "2026-01-01T00:00:00Z", "epoch": 1}}',
        b'{"ann": {"until": "2026-01-01T00:00:00Z"}}',
        b"\xff",
    ],
)
def test_a_damaged_list_of_what_was_taken_back_stops_the_server(
    tmp_path: Path, clock: FakeClock, content: bytes
) -> None:
    write_secret(tmp_path / "revoked-tokens.json", content)
    with pytest.raises(DataCorrupt, match="revoked-tokens"):
        Tokens.open(tmp_path, clock=clock)


@pytest.mark.parametrize(
    "subject", ["", " ", "a b", "device/pi", "external/x", "local", "anonymous", "a" * 101, "ä"]
)
def test_what_no_token_can_be_of_is_refused(tokens: Tokens, subject: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tokens.issue(subject, ["caller"])
    assert caught.value.field == "subject"
    with pytest.raises(InvalidRequest):
        tokens.revoke(subject)


@pytest.mark.parametrize("roles", [[], ["root"], ["caller", "device"], ["Administrator"]])
def test_roles_that_tokens_do_not_give_are_refused(tokens: Tokens, roles: list[str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tokens.issue("ann", roles)
    assert caught.value.field == "roles"


@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(seconds=-5), timedelta(days=367)])
def test_lifetimes_have_bounds(tokens: Tokens, lifetime: timedelta) -> None:
    with pytest.raises(InvalidRequest, match="lives"):
        tokens.issue("ann", ["caller"], lifetime=lifetime)


def test_garbage_is_refused_with_a_type_and_never_quoted(tokens: Tokens) -> None:
    seed = random.randrange(1 << 32)
    sys.stdout.write(f"seed {seed}\n")
    draw = random.Random(seed)
    good, _ = tokens.issue("ann", ["administrator"])
    signs = string.ascii_letters + string.digits + "-_.=é\x00 "
    for _ in range(400):
        if draw.random() < 0.5:
            bad = "".join(draw.choices(signs, k=draw.randrange(200)))
        else:
            place = draw.randrange(len(good))
            bad = good[:place] + draw.choice(signs) + good[place + draw.choice((0, 1, 5)) :]
        try:
            found = tokens.check(bad)
        except Unauthenticated as error:
            told = f"{error.message} {error.next_step} {error.evidence} {error.__cause__}"
            assert len(bad) < 12 or bad not in told
        else:
            # Base64 has spare bits at its end: another spelling of the same signature.
            assert found.name == "ann"
            assert _signature(bad) == _signature(good)


def _signature(token: str) -> bytes:
    signature = token.rpartition(".")[2]
    return base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))


# The other issuer.


def _jwks(path: Path, *keys: Key, **more: Any) -> Path:
    path.write_text(json.dumps({"keys": [key.as_dict(private=False) | more for key in keys]}))
    return path


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.fixture(params=["ES256", "ES384", "RS256", "PS256", "Ed25519"])
def foreign(request: pytest.FixtureRequest) -> tuple[str, Key]:
    key: Key
    match request.param:
        case "ES256":
            key = ECKey.generate_key("P-256")
        case "ES384":
            key = ECKey.generate_key("P-384")
        case "Ed25519":
            key = OKPKey.generate_key("Ed25519")
        case _:
            key = RSAKey.generate_key(2048)
    return request.param, key


def _other(path: Path, *keys: Key) -> OtherIssuer:
    return other_issuer(_jwks(path, *keys), issuer=ISSUER, audience="podium-prod", roles_claim="groups")


def _foreign_token(algorithm: str, key: Key, clock: FakeClock, **changes: Any) -> str:
    now = clock().timestamp()
    claims = {
        "iss": ISSUER,
        "aud": ["podium-prod", "x"],
        "sub": "auth0|7",
        "groups": ["caller", "staff", "device"],
    }
    claims |= {"iat": int(now), "exp": int(now) + 600} | changes  # type: ignore[dict-item]
    return jwt.encode({"alg": algorithm, "kid": key.kid or key.thumbprint()}, claims, key, algorithms=[algorithm])


def test_another_issuers_token_is_believed_for_what_people_may(
    tmp_path: Path, clock: FakeClock, foreign: tuple[str, Key]
) -> None:
    algorithm, key = foreign
    tokens = Tokens.open(tmp_path, clock=clock, other=_other(tmp_path / "jwks.json", OKPKey.generate_key(), key))
    found = tokens.check(_foreign_token(algorithm, key, clock))
    assert (found.name, found.caller, found.roles) == ("auth0|7", "external/auth0|7", frozenset({"caller"}))
    assert tokens.check(_foreign_token(algorithm, key, clock, groups="viewer operator")).roles == {
        "viewer",
        "operator",
    }
    # Its subject "ann" is not our ann, and ours is still believed.
    assert tokens.check(_foreign_token(algorithm, key, clock, sub="ann")).caller == "external/ann"
    assert tokens.check(tokens.issue("ann", ["caller"])[0]).caller == "ann"

    wrong: list[dict[str, Any]] = [
        {"aud": "podium"},
        {"aud": None},
        {"iss": "https://login.example/"},
        {"iss": "podium"},
        {"exp": None},
        {"exp": "soon"},
        {"exp": clock().timestamp() - 61},
        {"exp": 10**400},
        {"exp": 253402300799},  # the last second that calendars know
        {"iat": -(10**400)},
        {"nbf": clock().timestamp() + 120},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a\nb"},
        {"sub": "x" * 201},
    ]
    for changes in wrong:
        with pytest.raises(Unauthenticated):
            tokens.check(_foreign_token(algorithm, key, clock, **changes))
    for groups in (None, 5, {"caller": 1}, [["caller"]]):
        assert tokens.check(_foreign_token(algorithm, key, clock, groups=groups)).roles == frozenset()

    token = _foreign_token(algorithm, key, clock)
    tokens.revoke("external/auth0|7")
    with pytest.raises(Unauthenticated, match="taken back"):
        tokens.check(token)
    with pytest.raises(Unauthenticated, match="taken back"):
        tokens.check(_foreign_token(algorithm, key, clock, iat=None))


def test_a_public_key_is_no_password(tmp_path: Path, clock: FakeClock, foreign: tuple[str, Key]) -> None:
    _, key = foreign
    tokens = Tokens.open(tmp_path, clock=clock, other=_other(tmp_path / "jwks.json", key))
    public = json.dumps(key.as_dict(private=False))
    pem = key.as_pem(private=False)  # type: ignore[attr-defined]
    for secret in (pem, public.encode()):
        _, claims, _ = _foreign_token("HS256", OctKey.generate_key(256), clock).split(".")
        for kid in ({}, {"kid": key.thumbprint()}):
            # By hand: the library refuses to sign with what is somebody's public key.
            signed = f"{_encoded(json.dumps({'alg': 'HS256'} | kid).encode())}.{claims}"
            forged = f"{signed}.{_encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"
            with pytest.raises(Unauthenticated):
                tokens.check(forged)
    _, claims, _ = _foreign_token("HS256", OctKey.generate_key(256), clock).split(".")
    with pytest.raises(Unauthenticated):
        tokens.check(f"{_encoded(json.dumps({'alg': 'none'}).encode())}.{claims}.")
    with pytest.raises(Unauthenticated):  # our key is not the issuer's, and the other way round
        tokens.check(_foreign_token("ES256", ECKey.generate_key("P-256"), clock))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"keys": []}',
        '{"keys": [7]}',
        '{"keys": [{"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0"}]}',
        json.dumps({"keys": [ECKey.generate_key("P-256").as_dict(private=True)]}),
    ],
)
def test_keys_of_the_other_issuer_are_public_keys(tmp_path: Path, content: str) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(content)
    with pytest.raises(InvalidRequest, match="public keys") as caught:
        other_issuer(path, issuer=ISSUER, audience="a", roles_claim="roles")
    assert caught.value.field == "jwt_jwks"


# What is shown.


def test_a_private_token_is_compared_and_nothing_else_opens(tmp_path: Path, clock: FakeClock) -> None:
    asked = Authentication(Tokens.open(tmp_path, clock=clock), private_token="only-this-process")
    with pytest.raises(Unauthenticated):
        asked.principal([], {})
    with pytest.raises(Unauthenticated):
        asked.principal([("authorization", "Bearer only-this-proces")], {})
    found = asked.principal([("authorization", "bearer only-this-process")], {})
    assert (found.caller, found.kind) == ("operator", "local")


def test_a_certificate_that_names_no_machine_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    asked = Authentication(Tokens.open(tmp_path, clock=clock))
    for pem in (b"", b"junk", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        with pytest.raises(Unauthenticated, match="names no machine"):
            asked.principal([], {"x509_pem_cert": [pem]})


def test_a_token_nested_beyond_reading_is_refused_with_a_type(tmp_path: Path, clock: FakeClock) -> None:
    other = _other(tmp_path / "jwks.json", ECKey.generate_key("P-256"))
    for tokens in (Tokens.open(tmp_path, clock=clock), Tokens.open(tmp_path, clock=clock, other=other)):
        for part in (b"[" * 2900, b'{"a":' * 700):
            header = _encoded(b'{"alg":"ES256"}')
            for token in (f"{header}.{_encoded(part)}.AA", f"{_encoded(part)}.e30.AA"):
                with pytest.raises(Unauthenticated):
                    tokens.check(token)


def test_a_secret_that_cannot_be_written_or_read_says_so_with_a_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    write_secret(path, b"one")
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", _no_room)
        with pytest.raises(StorageFull, match="secret"):
            write_secret(path, b"two")
    assert read_secret(path) == b"one"
    path.unlink()
    path.mkdir()
    with pytest.raises(InternalError, match="secret"):
        read_secret(path)
    with pytest.raises(InternalError, match="secret"):
        write_secret(path, b"three")


def _no_room(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_secrets_are_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    assert read_secret(path) is None
    (tmp_path / ".secret.new").write_bytes(b"left by a process that was killed")
    write_secret(path, b"one")
    write_secret(path, b"two")
    assert read_secret(path) == b"two"
    assert [found.name for found in tmp_path.iterdir()] == ["secret"]


def test_nothing_that_is_raised_is_anything_but_ours(tokens: Tokens) -> None:
    for value in ("\ud800", "a.b", "..", "e30.e30.e30", "x" * 9000, "eyJhbGciOiJFUzI1NiJ9.W10.AA"):
        with pytest.raises(PodiumError):
            tokens.check(value)
