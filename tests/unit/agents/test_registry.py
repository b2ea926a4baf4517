"""Registering, finding and switching agents."""

import pytest

from agents.registry import AgentRegistry
from agents.spec import ManifestInvalid
from podium.errors import Conflict, NotFound
from tests.unit.agents.specs import output_schema, spec


def test_the_newest_enabled_version_serves() -> None:
    registry = AgentRegistry()
    for version in ("1.9.0", "1.10.0", "0.20.0"):
        registry.register(spec(version=version), pack="p")
    assert registry.get("echo").spec.version == "1.10.0"
    assert registry.get("echo", "0.20.0").spec.version == "0.20.0"
    assert [agent.spec.version for agent in registry.serving()] == ["1.10.0"]
    assert [agent.spec.version for agent in registry.all_versions()] == ["0.20.0", "1.9.0", "1.10.0"]
    assert registry.get("echo").pack == "p"


def test_what_is_not_there_is_not_found() -> None:
    registry = AgentRegistry()
    registry.register(spec())
    assert registry.find("nobody") is None
    for name, version in (("nobody", ""), ("echo", "2.0.0")):
        with pytest.raises(NotFound, match="there is no agent"):
            registry.get(name, version)
    with pytest.raises(NotFound):
        registry.set_enabled("nobody", False)


def test_a_version_is_taken_once() -> None:
    registry = AgentRegistry()
    registry.register(spec())
    with pytest.raises(Conflict, match="registered already"):
        registry.register(spec())


def test_an_agent_out_of_service_does_not_serve_but_is_found() -> None:
    registry = AgentRegistry()
    registry.register(spec())
    registry.register(spec(name="other", capability_tags=("echo", "x")))
    registry.set_enabled("echo", False)
    assert [agent.spec.name for agent in registry.serving()] == ["other"]
    assert [agent.spec.name for agent in registry.with_capability("echo")] == ["other"]
    found = registry.find("echo")
    assert found is not None
    assert not found.enabled
    registry.set_enabled("echo", True)
    assert [agent.spec.name for agent in registry.with_capability("echo")] == ["echo", "other"]


def test_examples_must_fit_and_broken_ones_must_not() -> None:
    schema = dict(spec().input_schema)
    with pytest.raises(ManifestInvalid) as refused:
        AgentRegistry().register(spec(input_schema={**schema, "examples": [{"text": 7}]}))
    assert any("examples[0]: $.text" in line for line in refused.value.evidence)
    loose = {**schema, "properties": {"text": {}, "count": {"type": ["integer", "string"]}}, "required": []}
    AgentRegistry().register(spec(input_schema=loose))
    never = {
        "type": "object",
        "not": {"required": ["nothing"]},
        "additionalProperties": {},
        "examples": [{"a": 1}],
    }
    with pytest.raises(ManifestInvalid) as refused:
        AgentRegistry().register(spec(input_schema=never))
    assert refused.value.evidence == ("input_schema.examples[0]: the schema accepts it with an unknown field",)


def test_output_examples_must_fit() -> None:
    schema = {**output_schema({"said": {"type": "string"}}), "examples": [{"said": "x", "sources": []}]}
    with pytest.raises(ManifestInvalid) as refused:
        AgentRegistry().register(spec(output_schema=schema))
    assert "output_schema.examples[0]" in refused.value.evidence[0]
