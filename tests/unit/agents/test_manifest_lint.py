"""Manifests are looked over before they are believed: every weakness by code, path and line."""

import re
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from agents.foreign_code import ForeignPolicy
from agents.manifest_lint import Linted, lint
from agents.manifest_text import MAX_BYTES
from agents.pack import ATOMIC_FOLDER, PACKS_FOLDER, load_atomic, load_packs
from agents.schema_lint import accepts_anything
from agents.spec import ManifestInvalid

GOOD = """\
name: weather_lookup
version: 1.0.0
description: Looks up the temperature of a city at noon and returns it in degrees.
capability_tags: [weather]
engine: python
settings: {callable: "tests.unit.agents.specs:echo"}
input_schema:
  type: object
  properties:
    city: {type: string, maxLength: 100}
  required: [city]
  additionalProperties: false
  examples: [{city: Bern}]
output_schema:
  type: object
  properties:
    degrees: {type: number, minimum: -100, maximum: 100}
    confidence_score: {type: number, minimum: 0, maximum: 1}
    sources: {type: array, maxItems: 5, items: {type: object, properties: {id: {type: string, maxLength: 9}},
      required: [id], additionalProperties: false}}
  required: [degrees, confidence_score, sources]
  additionalProperties: false
"""
POLICY = ForeignPolicy(modules=("tests.unit.agents",))


def _lint(text: str = GOOD, **more: Any) -> Linted:
    return lint(text, **{"policy": POLICY, **more})


def _changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def test_a_good_manifest_has_no_findings() -> None:
    linted = _lint()
    assert linted.findings == ()
    assert linted.demand().name == "weather_lookup"


FATAL = [
    ("city: {type: string, maxLength: 100}", 'city: {type: string, pattern: ".*"}',
     "PATTERN_ACCEPTS_ANYTHING", 10),
    ("    city: {type: string, maxLength: 100}", '    city:\n      type: string\n      pattern: "^.+$"',
     "PATTERN_ACCEPTS_ANYTHING", 12),
    ("  required: [city]\n  additionalProperties: false\n", "  required: [city]\n", "UNKNOWN_FIELDS_ALLOWED", 7),
    ("  required: [city]\n", "", "REQUIRED_MISSING", 7),
    ("required: [city]", "required: [city, town]", "REQUIRED_UNDECLARED", 11),
    ("Looks up the temperature of a city at noon and returns it in degrees.", "Handles various kinds of tasks.",
     "DESCRIPTION_VAGUE", 3),
    ("Looks up the temperature of a city at noon and returns it in degrees.",
     "The weather lookup agent does the weather lookup.", "DESCRIPTION_VAGUE", 3),
    ("degrees: {type: number, minimum: -100, maximum: 100}", "degrees: {type: nonsense}", "SCHEMA_UNUSABLE", 0),
    ("examples: [{city: Bern}]", "examples: [{city: 7}]", "EXAMPLE_CONTRADICTS", 13),
    ("confidence_score: {type: number, minimum: 0, maximum: 1}", "confidence_score: {type: string, maxLength: 4}",
     "CONFIDENCE_TYPE", 18),
    ("capability_tags", "sla: {timeout: PT0S}\ncapability_tags", "TIMEOUT", 4),
    ("capability_tags", "validators: [{name: v, cel: 'output.degrees >'}]\ncapability_tags", "CEL_INVALID", 4),
    ("capability_tags", "validators: [{name: v, cel: 'output.celsius > 0.0'}]\ncapability_tags",
     "CEL_FIELD_UNKNOWN", 4),
    ("capability_tags", "colour: red\ncapability_tags", "RULE", 4),
    ("engine: python", "engine: telepathy", "RULE", 0),
    ("version: 1.0.0", "version: one", "RULE", 2),
    ("city: {type: string, maxLength: 100}", "city: {type: string, enum: [NO, SE]}", "YAML_BOOLEAN", 10),
    ("city: {type: string, maxLength: 100}", "city: {const: 12:30:00}", "YAML_NUMBER", 10),
    ("city: {type: string, maxLength: 100}", "city: {const: 2026-07-01}", "YAML_DATE", 10),
    ("version: 1.0.0", "version: 1.0.0\nversion: 2.0.0", "DUPLICATE_KEY", 3),
    ("engine: python", "engine: python\non: true", "YAML_KEY", 6),
    ("engine: python", "\tengine: python", "YAML_SYNTAX", 5),
    ("engine: python", "engine: !!python/object/apply:os.system [id]", "YAML_TAG", 5),
    ("engine: python", "<<: {engine: python}", "YAML_MERGE", 5),
    ("city: {type: string, maxLength: 100}", "city: {$include: /etc/passwd#x}", "INCLUDE_REFUSED", 10),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "line"), FATAL, ids=[f"{row[2]}-{row[1][:24]}" for row in FATAL])
def test_what_refuses_a_manifest_is_told_with_its_line(old: str, new: str, code: str, line: int) -> None:
    linted = _lint(_changed(old, new))
    found = [finding for finding in linted.fatal if finding.code == code]
    assert found, linted.findings
    assert found[0].line == line
    assert linted.spec is None
    with pytest.raises(ManifestInvalid) as refused:
        linted.demand()
    assert any(code in said for said in refused.value.evidence)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1.0.0", "version: 1.0", "three numbers with dots"),
        ("name: weather_lookup", "name: Weather-Lookup", "small letters"),
        ("capability_tags: [weather]", "capability_tags: weather", "a list is asked for"),
        ("capability_tags: [weather]\n", "", "is missing"),
        ("required: [degrees, confidence_score, sources]", "required: [degrees]", "confidence_score, sources"),
        ("capability_tags", "colour: red\ncapability_tags", "there is no such field"),
    ],
)
def test_a_broken_rule_is_told_in_words_of_the_manifest(old: str, new: str, said: str) -> None:
    rules = [finding.message for finding in _lint(_changed(old, new)).fatal if finding.code == "RULE"]
    assert len(rules) == 1
    assert said in rules[0]
    assert "Value error" not in rules[0]


WARNINGS = [
    ("city: {type: string, maxLength: 100}", "city: {type: string}", "STRING_UNBOUNDED", 10),
    ("degrees: {type: number, minimum: -100, maximum: 100}", "degrees: {type: number}", "NUMBER_UNBOUNDED", 17),
    ("{type: array, maxItems: 5, ", "{type: array, ", "ARRAY_UNBOUNDED", 19),
    ("degrees: {type: number, minimum: -100, maximum: 100}", "degrees: {}", "ANY_VALUE", 17),
    ("""{type: object, properties: {id: {type: string, maxLength: 9}},
      required: [id], additionalProperties: false}""", "{type: string, maxLength: 9}", "SOURCES_FORM", 19),
    ("  examples: [{city: Bern}]\n", "", "EXAMPLES_MISSING", 7),
    ("{type: number, minimum: 0, maximum: 1}", "{type: number, minimum: 0}", "CONFIDENCE_BOUNDS", 18),
    ("capability_tags", "sla: {timeout: PT1H}\ncapability_tags", "TIMEOUT", 4),
    ("capability_tags", "side_effects: write\nsla: {retries: 3}\ncapability_tags", "RETRIED_WRITE", 5),
    ("Looks up the temperature of a city at noon and returns it in degrees.",
     "Meteorological oracle for alpine mountaineers worldwide.", "DESCRIPTION_ONE_SIDED", 3),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "line"), WARNINGS, ids=[row[2] for row in WARNINGS])
def test_what_is_weak_is_a_warning_with_its_line(old: str, new: str, code: str, line: int) -> None:
    linted = _lint(_changed(old, new))
    assert [(finding.code, finding.line) for finding in linted.findings] == [(code, line)]
    assert linted.spec is not None


def test_a_check_of_a_field_that_may_be_missing_asks_first() -> None:
    optional = _changed("required: [degrees, confidence_score, sources]", "required: [confidence_score, sources]")
    for cel, codes in (
        ("output.degrees > 0.0", ["CEL_FIELD_OPTIONAL"]),
        ("!has(output.degrees) || output.degrees > 0.0", []),
        ("input.city != 'output.nothing'", []),
    ):
        text = optional.replace("capability_tags", f'validators: [{{name: v, cel: "{cel}"}}]\ncapability_tags')
        assert [finding.code for finding in _lint(text).findings] == codes, cel


def test_names_and_tags_are_compared_with_those_there_are() -> None:
    known = load_atomic()
    text = GOOD.replace("[weather]", "[retreive]\nrequires: [shema]").replace(
        "specs:echo", 'specs:echo", fallback: "retriver'
    )
    said = {finding.code: finding.message for finding in _lint(text, known=known).findings}
    assert "did you mean 'retrieve'?" in said["CAPABILITY_UNKNOWN"]
    assert "did you mean 'schema'?" in said["REQUIRES_UNKNOWN"]
    assert "did you mean 'retriever'?" in said["FALLBACK_UNKNOWN"]
    copied = GOOD.replace(
        "Looks up the temperature of a city at noon and returns it in degrees.",
        next(" ".join(spec.description.split()) for spec in known if spec.name == "logger").replace(":", ""),
    )
    assert "DESCRIPTION_DUPLICATE" in {finding.code for finding in _lint(copied, known=known).findings}


def test_a_version_may_not_do_more_than_the_one_it_stands_beside() -> None:
    spec = _lint().demand()
    wider = GOOD.replace("1.0.0", "2.0.0").replace("engine:", "side_effects: write\nengine:")
    (finding,) = _lint(wider, known=[spec]).fatal
    assert finding.code == "VERSION_WIDENS"


def test_engine_and_model_may_be_replaced() -> None:
    text = _changed('settings: {callable: "tests.unit.agents.specs:echo"}\n', "")
    assert lint(text, engine="device").demand().engine == "device"
    (finding,) = lint(text, engine="device", model="m").fatal
    assert "model" in finding.path or "model" in finding.message


SHIPPED = [
    path
    for path in (*ATOMIC_FOLDER.glob("*.yaml"), *PACKS_FOLDER.glob("*/manifests/*.yaml"))
    if not path.name.startswith("_")
]


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_nothing_refuses_a_shipped_manifest(path: Path) -> None:
    known = [*load_atomic(), *(spec for pack in load_packs() for spec in pack.specs)]
    linted = lint(path.read_text("utf-8"), known=known, folder=path.parent, policy=None)
    assert not linted.fatal
    assert linted.spec is not None


@pytest.mark.parametrize(
    ("pattern", "anything"),
    [
        (".*", True), ("^.*$", True), (r"[\s\S]*", True), ("", True), (".+", True),
        ("(.|\\n)*", True),
        ("^", True), ("a*", True), (r"^[a-z]+$", False), (r"\S", False), ("^(a+)+$", False),
        ("(", False), ("^.{1,3}$", False),
    ],
)  # fmt: skip
def test_patterns_that_accept_anything(pattern: str, anything: bool) -> None:
    assert accepts_anything(pattern) is anything


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 12)]
    return "\n".join(lines)


HOSTILE = {
    "alias bomb": (_bomb(), "ALIASES"),
    "alias of itself": ("a: &a [*a]", "ALIASES"),
    "deep lists": ("a: " + "[" * 100_000, "YAML_SYNTAX"),
    "deep mappings": ("{a: " * 60_000, "TOO_DEEP"),
    "many values": ("a: [" + "1," * 60_000 + "1]", "TOO_MANY_VALUES"),
    "huge": ("x" * (MAX_BYTES + 1), "TOO_LARGE"),
    "huge number": ("a: " + "9" * 100_000, "YAML_NUMBER"),
    "infinity": ("a: .inf", "YAML_NUMBER"),
    "control": ("a: \x00", "YAML_SYNTAX"),
    "surrogate": ("a: \ud800", "YAML_SYNTAX"),
    "two documents": ("a: 1\n---\nb: 2", "YAML_SYNTAX"),
    "nothing": ("", "EMPTY"),
    "a list": ("[1, 2]", "NOT_A_MAPPING"),
    "binary": ("a: !!binary aGVsbG8=", "YAML_TAG"),
    "a set": ("a: !!set {b, c}", "YAML_TAG"),
    "a key that is a list": ("? [a, b]\n: c", "YAML_KEY"),
    "question marks": ("? " * 50_000, "TOO_DEEP"),
}


@pytest.mark.parametrize(("text", "code"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_ends_soon_and_small(text: str, code: str) -> None:
    before_kib, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    linted = lint(text)
    assert code in {finding.code for finding in linted.fatal}, linted.findings[:5]
    assert linted.spec is None
    assert time.monotonic() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 100 * 1024


def test_many_hostile_patterns_end_soon() -> None:
    slow = "(?:\\\\w{50}){20}" * 8
    fields = "\n".join(f'    f{number}: {{type: string, pattern: "^{slow}{number}$"}}' for number in range(300))
    began = time.monotonic()
    linted = _lint(_changed("    city: {type: string, maxLength: 100}", fields))
    assert "TOO_MANY_PATTERNS" in {finding.code for finding in linted.fatal}
    assert time.monotonic() - began < 20


def test_every_code_of_a_finding_is_explained() -> None:
    root = ATOMIC_FOLDER.parents[1]
    page = (root / "docs" / "architecture.md").read_text("utf-8")
    modules = ("manifest_lint", "manifest_text", "schema_lint", "description_lint", "foreign_code")
    codes = {
        code
        for name in modules
        for code in re.findall(
            r'(?:finding|_say|_unread|code=)\(?\s*"([A-Z][A-Z_]+)"',
            (root / "agents" / f"{name}.py").read_text("utf-8"),
        )
    }
    assert len(codes) > 40
    assert not {code for code in codes if f"`{code}`" not in page}
