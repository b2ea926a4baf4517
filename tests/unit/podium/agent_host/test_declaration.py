"""A manifest means the same to a host as to a server, and what is wrong in it is named."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.canonical import canonical_json, sha256_of
from agents.spec import load_spec
from podium.agent_host import AgentHost
from podium.agent_host.declaration import Declaration, read_manifest
from podium.agent_host.declaration import canonical_json as hosts_canonical_json
from podium.errors import Conflict, InvalidRequest

ROOT = Path(__file__).parents[4]
WEATHER = ROOT / "docs" / "examples" / "weather" / "weather.yaml"
RELAY = ROOT / "tests" / "integration" / "packs" / "relay" / "manifests"


def raw(**changes: Any) -> dict[str, Any]:
    return {**read_manifest(WEATHER), **changes}


@pytest.mark.parametrize(
    "path", [WEATHER, *sorted((ROOT / "bench/packs/relay/manifests").glob("*.yaml"))], ids=str
)
def test_host_and_server_hash_the_same_schemas(path: Path) -> None:
    spec = load_spec(path)
    declaration = Declaration.of(read_manifest(path), named=path.name)
    assert declaration.input_sha256 == sha256_of(spec.input_schema)
    assert declaration.output_sha256 == sha256_of(spec.output_schema)
    assert (declaration.name, declaration.version) == (spec.name, spec.version)
    assert declaration.time_limit == spec.sla.timeout
    assert declaration.max_output_bytes == spec.limits.max_output_bytes


@pytest.mark.parametrize("value", [{"b": [1, 2.5, None, True], "a": "ä\u2028"}, {"n": 2**70}, {"e": 1e-9}])
def test_both_write_json_in_one_form(value: Any) -> None:
    assert hosts_canonical_json(value) == canonical_json(value)


def test_a_manifest_may_be_json(tmp_path: Path) -> None:
    path = tmp_path / "weather.json"
    path.write_text(json.dumps(yaml.safe_load(WEATHER.read_text())))
    assert Declaration.of(read_manifest(path), named="x") == Declaration.of(raw(), named="x")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None),
        ("name", 7),
        ("version", None),
        ("input_schema", None),
        ("output_schema", {"type": "string"}),
        ("input_schema", {"type": "object", "properties": {"$include": "x.yaml#y"}}),
        ("side_effects", "some"),
        ("capability_tags", "weather"),
        ("capability_tags", [1]),
        ("limits", []),
    ],
)
def test_the_field_at_fault_is_named(field: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=field) as caught:
        Declaration.of({key: item for key, item in raw(**{field: value}).items() if item is not None}, named="m")
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("written", "meant_s"), [(2, 2), ("2.5", 2.5), ("PT2M", 120), ("P1DT1S", 86_401), ("00:02:00", 120)]
)
def test_time_limits_are_those_of_the_server(written: Any, meant_s: float) -> None:
    assert Declaration.of(raw(sla={"timeout": written}), named="m").time_limit == timedelta(seconds=meant_s)


@pytest.mark.parametrize("written", ["soon", 0, -1, "PT", ""])
def test_a_time_limit_of_nothing_is_refused(written: Any) -> None:
    with pytest.raises(InvalidRequest, match="timeout"):
        Declaration.of(raw(sla={"timeout": written}), named="m")


@pytest.mark.parametrize("size", [0, -1, "many", True, 1.5])
def test_a_size_is_a_number_of_bytes(size: Any) -> None:
    with pytest.raises(InvalidRequest, match="max_output_bytes"):
        Declaration.of(raw(limits={"max_output_bytes": size}), named="m")


def test_what_is_no_manifest_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    for text in ("a: [", "[1]", "\x00"):
        path.write_text(text)
        with pytest.raises(InvalidRequest, match=r"m\.yaml"):
            read_manifest(path)
    with pytest.raises(InvalidRequest, match=r"none\.yaml"):
        read_manifest(tmp_path / "none.yaml")


def host(**arguments: Any) -> AgentHost:
    return AgentHost(**{"insecure_loopback": True, **arguments})


def test_code_and_manifest_must_say_the_same() -> None:
    with pytest.raises(InvalidRequest, match="version"):
        host().agent("weather", version="2.0.0", manifest=WEATHER)(lambda inputs, context: {})


def test_an_agent_is_taken_in_once() -> None:
    served = host()
    served.agent(manifest=WEATHER)(lambda inputs, context: {})
    with pytest.raises(Conflict):
        served.agent(manifest=WEATHER)(lambda inputs, context: {})


def test_schemas_do_in_place_of_a_manifest() -> None:
    schema = {"type": "object", "additionalProperties": False}
    host().agent("tiny", version="1.0.0", input_schema=schema, output_schema=schema, side_effects="read")(print)
    with pytest.raises(InvalidRequest, match="no JSON Schema"):
        host().agent("t", version="1.0.0", input_schema={"type": "object", "required": 1}, output_schema=schema)(
            print
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {"listen": "7500"},
        {"listen": "127.0.0.1:99999"},
        {"listen": "0.0.0.0:0"},
        {"insecure_loopback": False},
        {"identity": Path("identity")},
    ],
)
def test_in_clear_only_on_this_machine_and_only_when_asked_for(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        host(**arguments)
