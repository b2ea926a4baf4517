"""Whose tenant a caller is: what tokens say of it, and what they must not."""

from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from cloud.auth.principal import Principal
from cloud.auth.tokens import Tokens
from podium.errors import InvalidRequest, Unauthenticated
from tests.fakes.clock import FakeClock


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens.open(tmp_path, clock=FakeClock())


def test_a_token_may_say_whom_its_subject_belongs_to(tokens: Tokens) -> None:
    token, _ = tokens.issue("ann", ["caller"], tenant="acme")
    assert tokens.check(token).tenant == "acme"
    alone, _ = tokens.issue("ann", ["caller"])
    assert tokens.check(alone).tenant == "ann"
    assert Principal.local().tenant == "local"
    assert Principal.machine("device", "pi-1", serial=1, expire_time=None).tenant == "device/pi-1"


@pytest.mark.parametrize("tenant", ["a b", "../acme", "-acme", "a" * 101, "acme\n", "acmé"])
def test_what_is_no_tenant_is_refused(tokens: Tokens, tenant: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tokens.issue("ann", ["caller"], tenant=tenant)
    assert caught.value.field == "tenant"


@pytest.mark.parametrize("claim", ["", "a b", 7, ["acme"], {"name": "acme"}, True])
def test_a_signed_claim_that_is_no_tenant_is_not_believed(tokens: Tokens, tmp_path: Path, claim: Any) -> None:
    key = ECKey.import_key((tmp_path / "tokens.key").read_bytes())
    token, _ = tokens.issue("ann", ["caller"], tenant="acme")
    claims = {**jwt.decode(token, key, algorithms=["ES256"]).claims, "tenant": claim}
    forged = jwt.encode({"alg": "ES256"}, claims, key, algorithms=["ES256"])
    with pytest.raises(Unauthenticated, match="tenant"):
        tokens.check(forged)
