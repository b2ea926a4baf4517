"""Whatever is handed in as a manifest, looking it over ends in findings and never in an exception."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.drift import drifts
from agents.manifest_lint import lint
from tests.integration.test_registering import manifest

TEXT = json.dumps(manifest(), indent=1)
LINES = TEXT.splitlines()
KEYWORDS = (
    "properties", "required", "type", "$ref", "anyOf", "pattern", "additionalProperties", "items", "examples",
    "patternProperties", "prefixItems", "$defs", "enum", "const",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
@example("")
@example("Null")
def test_any_text(text: str) -> None:
    linted = lint(text)
    assert linted.spec is None
    assert linted.fatal


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(TEXT) - 1), st.integers(0, 40), st.text(max_size=20))
def test_a_manifest_with_a_piece_of_it_replaced(start: int, length: int, piece: str) -> None:
    linted = lint(TEXT[:start] + piece + TEXT[start + length :])
    assert (linted.spec is None) == bool(linted.fatal)
    assert all(str(finding) for finding in linted.findings)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(manifest())), JSON)
def test_a_manifest_with_a_field_of_any_form(field: str, value: object) -> None:
    linted = lint(json.dumps({**manifest(), field: value}))
    assert (linted.spec is None) == bool(linted.fatal)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(("input_schema", "output_schema")), st.sampled_from(KEYWORDS), JSON)
def test_a_manifest_with_a_schema_of_any_form(schema: str, keyword: str, value: object) -> None:
    changed = manifest()
    changed[schema] = {**changed[schema], keyword: value}
    linted = lint(json.dumps(changed))
    assert (linted.spec is None) == bool(linted.fatal)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=12), JSON, max_size=6), JSON)
def test_any_output_is_compared(output: dict[str, object], value: object) -> None:
    declared = manifest()["output_schema"]
    for one in drifts(declared, {**output, "cities": value}):
        assert one.kind
        assert one.place.startswith("$")
