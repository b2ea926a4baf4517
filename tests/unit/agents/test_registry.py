"""Registering, finding and switching agents."""

import threading
from collections import Counter

import pytest

from agents.registry import AgentRegistry
from agents.spec import ManifestInvalid
from podium.errors import Conflict, InvalidRequest, NotFound
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


def _versions(*versions: str) -> AgentRegistry:
    registry = AgentRegistry()
    for version in versions:
        registry.register(spec(version=version))
    return registry


def _chosen(registry: AgentRegistry, count: int = 2000) -> dict[str, int]:
    found = (registry.choose("echo", f"task-{number}") for number in range(count))
    return dict(Counter(agent.spec.version for agent in found if agent is not None))


def test_calls_are_shared_by_weight_and_a_key_keeps_its_version() -> None:
    registry = _versions("1.0.0", "2.0.0", "3.0.0")
    assert _chosen(registry) == {"3.0.0": 2000}
    registry.set_weights("echo", {"1.0.0": 900, "2.0.0": 100})
    shares = _chosen(registry)
    assert 1720 < shares["1.0.0"] < 1880, shares
    assert shares["1.0.0"] + shares["2.0.0"] == 2000
    assert [agent.weight for agent in registry.versions("echo")] == [900, 100, 0]
    first = [registry.choose("echo", f"{number}") for number in range(50)]
    assert first == [registry.choose("echo", f"{number}") for number in range(50)]
    # What a planner works with is the version that most tasks get.
    assert registry.get("echo").spec.version == "1.0.0"


def test_a_version_that_comes_to_weighted_ones_waits_for_a_weight() -> None:
    registry = _versions("1.0.0", "2.0.0")
    registry.set_weights("echo", {"1.0.0": 1})
    assert registry.register(spec(version="9.0.0")).weight == 0
    assert _chosen(registry, 50) == {"1.0.0": 50}
    registry.set_enabled("echo", False, version="1.0.0")
    assert _chosen(registry, 50) == {"9.0.0": 50}, "with none weighted on duty, the newest enabled one serves"
    registry.set_enabled("echo", False)
    found = registry.choose("echo", "x")
    assert found is not None
    assert not found.enabled
    assert registry.choose("nobody", "x") is None


def test_a_used_version_is_kept_and_a_failed_one_avoided() -> None:
    registry = _versions("1.0.0", "2.0.0", "3.0.0")
    registry.set_weights("echo", {"2.0.0": 1, "3.0.0": 1})

    def version(**how: str) -> str:
        found = registry.choose("echo", "k", **how)
        return found.spec.version if found is not None else ""

    assert version(keep="1.0.0") == "1.0.0"
    assert {version(avoid="2.0.0"), version(avoid="3.0.0")} == {"2.0.0", "3.0.0"}
    registry.set_weights("echo", {"2.0.0": 1})
    assert version(avoid="2.0.0") == "2.0.0", "there is no other"
    registry.set_enabled("echo", False, version="1.0.0")
    assert version(keep="1.0.0") == "2.0.0"


def test_weights_that_make_no_sense_are_refused_and_change_nothing() -> None:
    registry = _versions("1.0.0", "2.0.0")
    for weights, error in (
        ({"1.0.0": 1001}, InvalidRequest),
        ({"1.0.0": -1, "2.0.0": 5}, InvalidRequest),
        ({"1.0.0": 0}, InvalidRequest),
        ({}, InvalidRequest),
        ({"4.0.0": 1}, NotFound),
        ({"": 5}, InvalidRequest),
    ):
        with pytest.raises(error):
            registry.set_weights("echo", weights)
    assert [agent.weight for agent in registry.versions("echo")] == [0, 1000]
    assert not registry.has_weights("echo")


def test_a_removed_version_is_gone() -> None:
    registry = _versions("1.0.0", "2.0.0")
    registry.set_weights("echo", {"2.0.0": 7})
    registry.remove("echo", "2.0.0")
    assert [agent.spec.version for agent in registry.serving()] == ["1.0.0"]
    registry.remove("echo", "1.0.0")
    assert registry.find("echo") is None
    assert registry.versions("echo") == ()
    with pytest.raises(NotFound):
        registry.remove("echo", "1.0.0")
    assert registry.register(spec()).weight == 1000


def test_readers_never_see_a_registry_half_changed() -> None:
    registry = _versions("1.0.0", "2.0.0")
    stop = threading.Event()
    odd: list[object] = []

    def read() -> None:
        while not stop.is_set():
            agent = registry.choose("echo", "k")
            if agent is None or not agent.enabled or len(registry.serving()) != 1:
                odd.append(agent)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(300):
            registry.set_enabled("echo", False, version="2.0.0")
            registry.set_enabled("echo", True, version="2.0.0")
            registry.set_weights("echo", {"1.0.0": number + 1, "2.0.0": 5})
            registry.register(spec(version=f"0.0.{number}"))
            registry.remove("echo", f"0.0.{number}")
    finally:
        stop.set()
        for reader in readers:
            reader.join(30)
    assert not odd
