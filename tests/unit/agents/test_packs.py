"""The packs and agents that ship: they load, keep their contracts, fit together and import nothing heavy."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.contract import SOURCES_SCHEMA
from agents.engines.python import PythonEngine
from agents.examples import input_examples
from agents.invocation import AgentContext, Resources
from agents.pack import PACKS_FOLDER, Pack, build_registry, build_resources, load_atomic, load_pack, load_packs
from agents.registry import AgentRegistry
from agents.spec import ManifestInvalid
from agents.validation import ValidationReport, validate_agent
from tests.unit.agents.specs import context, output_schema, spec

ATOMIC = {
    "parser",
    "retriever",
    "coder",
    "executor",
    "validator",
    "reporter",
    "logger",
    "security",
    "clarify",
    "librarian",
}


def test_the_atomic_agents_are_there_with_examples_and_the_sources_schema() -> None:
    specs = {agent.name: agent for agent in load_atomic()}
    assert set(specs) >= ATOMIC
    for agent in specs.values():
        assert input_examples(agent), agent.name
        assert agent.output_schema["properties"]["sources"] == SOURCES_SCHEMA


def test_every_pack_loads_and_its_rules_name_agents_that_exist() -> None:
    packs = load_packs()
    assert "sales" in {pack.name for pack in packs}
    registry = build_registry(packs)
    for pack in packs:
        for rule in (*pack.rules, *pack.revisions):
            for step in rule.steps:
                assert registry.find(step["tool"]), f"{pack.name}: {rule.name} names {step['tool']}"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("pack.yaml", "name: Sales\nversion: 1.0.0\ndescription: x\n", "name"),
        ("pack.yaml", "name: pp\nversion: 1.0.0\ndescription: x\nagents: [none/*.yaml]\n", "none/"),
        ("pack.yaml", "[1, 2]", "not a mapping"),
        ("pack.yaml", "a: [", "cannot be read"),
        ("rules.yaml", "rules: [{name: r, when: 'a ==', confidence: 1, steps: [{tool: t}]}]", "when"),
        ("rules.yaml", "rules: [{name: r, when: 'true', confidence: 2, steps: [{tool: t}]}]", "confidence"),
        ("rules.yaml", "rules: [{name: r, when: 'true', confidence: 1, steps: []}]", "steps"),
        ("rules.yaml", "rules: [{name: r, when: 'true', confidence: 1, steps: [{tool: t}], answer: 1}]", "answer"),
        ("rules.yaml", "rules: [{name: r, when: 'true', confidence: 1, steps: [{tool: t, tol: 1}]}]", "tol"),
    ],
)
def test_a_broken_pack_is_refused_with_every_reason(tmp_path: Path, name: str, content: str, reason: str) -> None:
    files = {"pack.yaml": "name: pp\nversion: 1.0.0\ndescription: x\nrules: rules.yaml\n", "rules.yaml": "{}"}
    for file, text in {**files, name: content}.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(ManifestInvalid) as refused:
        load_pack(tmp_path)
    assert reason in str(refused.value) + " ".join(refused.value.evidence)


def test_resources_of_two_packs_must_not_collide(tmp_path: Path) -> None:
    packs = [
        Pack(
            name=name,
            version="1.0.0",
            description="",
            folder=tmp_path,
            vocabulary={},
            resources=lambda _: {"x": 1},
        )
        for name in "ab"
    ]
    with pytest.raises(ManifestInvalid, match="'x'"):
        build_resources(packs, tmp_path, {})
    assert build_resources(packs[:1], tmp_path, {"x": 2}).get("x", int) == 2


def test_every_word_of_the_semantic_model_is_in_the_vocabulary() -> None:
    folder = PACKS_FOLDER / "sales"
    model = yaml.safe_load((folder / "semantic.yaml").read_text(encoding="utf-8"))
    kinds = yaml.safe_load((folder / "vocabulary.yaml").read_text(encoding="utf-8"))["kinds"]

    def known(kind: str, value: str) -> set[str]:
        return {alias.lower() for alias in kinds[kind]["values"].get(value, ())}

    def names(entry: Mapping[str, Any]) -> set[str]:
        return {name.lower() for name in (*entry["labels"].values(), *entry.get("synonyms", ()))}

    for name, measure in model["measures"].items():
        assert names(measure) <= known("metric", name)
    for name, dimension in model["dimensions"].items():
        assert names(dimension) <= known("dimension" if "column" in dimension else "granularity", name)
        for value in dimension.get("values", ()):
            assert names(value) <= known(name, value["value"])


def test_reading_packs_and_building_the_registry_loads_nothing_heavy() -> None:
    heavy = ["duckdb", "cv2", "tokenizers", "onnxruntime", "rapidocr", "sqlglot", "hypothesis"]
    script = (
        "import sys, agents.pack, agents.engines.python, agents.engines.device\n"
        "import agents.validation, agents.understanding\n"
        "packs = agents.pack.load_packs(); agents.pack.build_registry(packs)\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    root = PACKS_FOLDER.parents[1]
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=root,
        env={"PYTHONPATH": f"{root}:{root / 'protos'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"


def drifts(inputs: Mapping[str, Any], _: AgentContext) -> dict[str, Any]:
    loose: Any = 1 if inputs["text"] else "one"
    return {"said": 2.0, "loose": loose, "confidence_score": 1.0, "sources": []}


def breaks(inputs: Mapping[str, Any], _: AgentContext) -> dict[str, Any]:
    return {"said": inputs["text"].encode("ascii").decode(), "confidence_score": 1.0, "sources": []}


def validated(callable_name: str, **changes: Any) -> ValidationReport:
    registry = AgentRegistry()
    agent = registry.register(spec(f"tests.unit.agents.{callable_name}", **changes))
    engine = PythonEngine(Resources(), threads=1)
    try:
        return asyncio.run(validate_agent(agent, engine, context(), count=60, seed=3))
    finally:
        engine.close()


def test_validation_runs_examples_and_generated_inputs_the_same_for_a_seed() -> None:
    report = validated("specs:echo")
    assert report.passed
    assert report.answered > 40
    assert report == validated("specs:echo")


def test_validation_finds_what_an_example_alone_would_not() -> None:
    report = validated("test_packs:breaks")
    assert not report.passed
    assert any(
        "AGENT_CRASHED" in violation and "UnicodeEncodeError" in violation for violation in report.violations
    )


def test_validation_reports_type_drift() -> None:
    report = validated(
        "test_packs:drifts", output_schema=output_schema({"said": {"type": "integer"}, "loose": {}})
    )
    assert report.passed
    found = {(drift.kind, drift.place): drift.message for drift in report.drift}
    assert found == {
        ("SEVERAL_TYPES", "$.loose"): "came as integer and string, and the schema does not say which",
        ("INTEGER_WITH_POINT", "$.said"): "is declared an integer and came with a decimal point: 2.0",
    }


def test_an_agent_that_writes_is_not_run() -> None:
    report = validated("specs:echo", side_effects="write")
    assert report.skipped
    assert report.answered == 0
