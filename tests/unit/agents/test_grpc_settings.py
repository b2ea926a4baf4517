"""What a manifest may say about the hosts of its agent."""

from typing import Any

import pytest

from agents.allowed_hosts import AllowedHosts
from agents.engines.settings import check_settings
from agents.foreign_code import ForeignPolicy, refusals
from tests.integration.hosts.ground import spec


@pytest.mark.parametrize(
    "settings",
    [
        {"endpoints": ["agents.example:7500"]},
        {"endpoints": ["192.0.2.1:1", "[2001:db8::1]:65535"], "agent": "weather"},
        {"endpoints": ["localhost:7500"], "insecure_loopback": True},
        {
            "endpoints": ["a.example:1"],
            "identity_folder": "/srv/identity",
            "idempotent": True,
            "fallback": "other",
        },
    ],
)
def test_these_are_taken(settings: dict[str, Any]) -> None:
    check_settings("grpc", settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"endpoints": []},
        {"endpoints": ["agents.example"]},
        {"endpoints": ["agents.example:0"]},
        {"endpoints": ["agents.example:65536"]},
        {"endpoints": ["agents.example:\u0661"]},
        {"endpoints": ["unix:/run/docker.sock"]},
        {"endpoints": ["dns:///a.example:1"]},
        {"endpoints": ["user@a.example:1"]},
        {"endpoints": ["a.example:1"], "insecure_loopback": True},
        {"endpoints": ["127.0.0.1:1", "192.0.2.1:1"], "insecure_loopback": True},
        {"endpoints": ["127.0.0.1:1"], "insecure_loopback": True, "identity_folder": "/srv/identity"},
        {"endpoints": ["a.example:1"] * 33},
        {"endpoints": ["a.example:1"], "agent": "No Name"},
        {"endpoints": ["a.example:1"], "token": "secret"},
    ],
)
def test_these_are_not(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="GrpcSettings"):
        check_settings("grpc", settings)


def test_a_registered_manifest_may_not_name_an_identity_of_the_server() -> None:
    settings = {"endpoints": ["a.example:1"], "identity_folder": "/srv/identity"}
    policy = ForeignPolicy(hosts=AllowedHosts.parse(["a.example"]))
    assert [refusal.code for refusal in refusals(spec(settings=settings), policy)] == ["FOLDER_NOT_ALLOWED"]
