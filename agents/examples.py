"""Does a schema mean what its author thinks? Its examples must pass, and examples broken on purpose must not."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.contract import Contract
from agents.spec import AgentSpec


def input_examples(spec: AgentSpec) -> tuple[dict[str, Any], ...]:
    """The inputs that the input schema gives under `examples`."""
    return tuple(copy.deepcopy(dict(example)) for example in _examples(spec.input_schema) if _is_object(example))


def example_faults(spec: AgentSpec, contract: Contract) -> list[str]:
    """Examples that the schemas refuse, and broken examples that they let through, in words."""
    faults = [
        f"{name}.examples[{index}]: an example is an object"
        for name, schema in (("input_schema", spec.input_schema), ("output_schema", spec.output_schema))
        for index, example in enumerate(_examples(schema))
        if not _is_object(example)
    ]
    for index, example in enumerate(_examples(spec.input_schema)):
        if not _is_object(example):
            continue
        place = f"input_schema.examples[{index}]"
        faults.extend(f"{place}: {violation}" for violation in contract.input_violations(example))
        faults.extend(
            f"{place}: the schema accepts it {how}"
            for how, broken in broken_variants(example, spec.input_schema)
            if not contract.input_violations(broken)
        )
    for index, example in enumerate(_examples(spec.output_schema)):
        if _is_object(example):
            faults.extend(
                f"output_schema.examples[{index}]: {violation}"
                for violation in contract.output_violations(example)
            )
    return faults


def broken_variants(example: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The example with one thing wrong each time: an unknown, a missing or a wrongly typed field."""
    yield "with an unknown field", {**example, "field_that_nobody_declared": 1}
    for name in _names(schema.get("required", ())):
        yield f"without {name}", {key: value for key, value in example.items() if key != name}
    for name, declared in schema.get("properties", {}).items():
        if name in example and isinstance(declared, Mapping) and isinstance(declared.get("type"), str):
            yield f"with another type for {name}", {**example, name: _WRONG.get(declared["type"], [])}


_WRONG: Mapping[str, Any] = {
    "string": 7,
    "integer": "7",
    "number": "7",
    "boolean": "true",
    "array": {},
    "object": [],
}


def _examples(schema: Mapping[str, Any]) -> Sequence[Any]:
    found = schema.get("examples", ())
    return found if isinstance(found, list | tuple) else ()


def _is_object(example: Any) -> bool:
    return isinstance(example, Mapping)


def _names(value: Any) -> Sequence[str]:
    return [name for name in value if isinstance(name, str)]
