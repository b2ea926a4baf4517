"""What a manifest may say of a foreign agent, and what one from elsewhere may not name of this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.allowed_hosts import AllowedHosts
from agents.engines.settings import A2aSettings, McpSettings, check_settings
from agents.foreign_code import ForeignPolicy, refusals
from tests.fakes.agents import agent_spec

A2A = {"card": "https://agents.example/", "skill": "lookup", "confidence": 0.7}
MCP = {"url": "https://tools.example/mcp", "tool": "lookup", "confidence": 0.7}
STDIO = {"command": ["atlas"], "tool": "lookup", "confidence": 0.7}


@pytest.mark.parametrize(
    ("engine", "settings", "words"),
    [
        ("a2a", A2A | {"confidence": None}, "declare `confidence`"),
        ("a2a", A2A | {"confidence": 1.5}, "less than or equal to 1"),
        ("a2a", A2A | {"confidence": float("nan")}, "confidence"),
        ("a2a", A2A | {"card": "http://agents.example/"}, "only spoken to over https"),
        ("a2a", A2A | {"card": "https://ann:secret@agents.example/"}, "carries credentials"),
        ("a2a", A2A | {"card": "file:///etc/passwd"}, "not an http or https URL"),
        ("a2a", A2A | {"binding": "soap"}, "binding"),
        ("a2a", A2A | {"token": "secret"}, "token"),
        ("mcp", MCP | {"command": ["atlas"]}, "either `command` or `url`"),
        ("mcp", {"tool": "lookup", "confidence": 0.7}, "either `command` or `url`"),
        ("mcp", MCP | {"env": ["HOME"]}, "are for a `command`"),
        ("mcp", STDIO | {"token_env": "TOKEN"}, "are for a `url`"),
        ("mcp", STDIO | {"env": ["A=B"]}, "env"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused_when_they_are_read(
    engine: str, settings: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        check_settings(engine, settings)


def test_the_most_that_an_output_may_claim() -> None:
    assert A2aSettings.model_validate(A2A).ceiling == 0.7
    assert McpSettings.model_validate(MCP | {"max_confidence": 0.9}).ceiling == 0.9
    assert McpSettings.model_validate({**MCP, "confidence": None, "max_confidence": 0.4}).ceiling == 0.4


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        # Locked away, it may be any program that everybody has; but a program sees the folder it lies in.
        (["sh", "-c", "true"], False),
        (["/usr/bin/python3", "/srv/agents/atlas.py"], False),
        (["/srv/agents/../../root/bin/tool"], True),
        (["/root/bin/tool"], True),
        (["../bin/tool"], True),
        (["/srv/agents/atlas", "--verbose"], False),
    ],
)
def test_a_manifest_from_elsewhere_starts_programs_that_everybody_has_or_that_the_operator_allows(
    command: list[str], refused: bool
) -> None:
    spec = agent_spec("atlas", engine="mcp", settings=STDIO | {"command": command})
    found = [refusal.code for refusal in refusals(spec, ForeignPolicy(folders=(Path("/srv/agents"),)))]
    assert found == (["FOLDER_NOT_ALLOWED"] if refused else [])


def test_a_manifest_from_elsewhere_sends_no_secret_of_the_server_away() -> None:
    settings = MCP | {"token_env": "PODIUM_TOKEN", "ca_file": "/etc/ca.pem"}
    spec = agent_spec("atlas", engine="mcp", settings=settings)
    hosts = AllowedHosts.parse(["tools.example"])
    found = {refusal.code for refusal in refusals(spec, ForeignPolicy(hosts=hosts))}
    assert found == {"VARIABLE_NOT_ALLOWED", "FOLDER_NOT_ALLOWED"}
