"""The token of a foreign agent is in no error, whatever the agent says."""

import pytest

from agents.engines.foreign import unquoted
from agents.engines.settings import ForeignSettings
from podium.errors import AgentCrashed

TOKEN = "very-secret-token"


@pytest.mark.parametrize("variable", ["ATLAS_TOKEN", None])
def test_a_token_that_an_agent_repeats_is_taken_out(variable: str | None) -> None:
    settings = ForeignSettings(confidence=0.5, token_env=variable)
    with pytest.raises(AgentCrashed) as failed, unquoted(settings, {"ATLAS_TOKEN": f" {TOKEN}\n"}):
        raise AgentCrashed(f"no such token: {TOKEN}", evidence=[f"Bearer {TOKEN}"], agent="atlas")
    shown = TOKEN if variable is None else "[token]"
    assert failed.value.message == f"no such token: {shown}"
    assert failed.value.evidence == (f"Bearer {shown}",)
    assert failed.value.agent == "atlas"
