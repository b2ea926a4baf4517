"""An agent's contract, compiled once: its schemas with their hashes, and what is done to a raw output."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from agents.callables import resolve
from agents.canonical import canonical_json, sha256_of
from agents.sanitising import Sanitised, sanitise
from agents.schema_cost import costs_too_much
from agents.spec import AgentSpec, Limits, ManifestInvalid
from podium.errors import AgentError

__all__ = ["SOURCES_SCHEMA", "Contract", "HandoverBroken", "HandoverContract", "Sanitised"]

SOURCES_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "maxItems": 200,
    "items": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^S[1-9][0-9]{0,3}$"},
            "kind": {"enum": ["sql", "document", "rule", "list", "request", "agent", "person"]},
            "label": {"type": "string", "maxLength": 500},
            "location": {"type": "string", "maxLength": 500},
            "sha256": {"type": "string", "pattern": "^([0-9a-f]{64})?$"},
        },
        "required": ["id", "kind", "label", "location", "sha256"],
        "additionalProperties": False,
    },
}
"""The form of `sources` in every output."""

_MAX_VIOLATIONS = 20
_MAX_VIOLATION_CHARS = 300
_SMALL = 16_384
"""Characters and parts of a value of which all errors are listed."""


class HandoverBroken(AgentError):
    """An agent handed over what it had promised not to, or nobody answered within the turns agreed on."""

    code = "HANDOVER_BROKEN"
    advice = "Compare the giver's `handovers` with what it returned and with what the receiver did of it."

    def __init__(
        self, message: str, *, giver: str = "", receiver: str = "", turn: int = 0, at_fault: str = "", **more: Any
    ) -> None:
        super().__init__(message, **{"agent": at_fault or receiver, **more})
        self.giver = giver
        self.receiver = receiver
        self.turn = turn
        """Of the receiver's step, from 1."""
        self.before_call = bool(giver) and at_fault == giver
        """The receiver was not called: a write certainly did not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverContract:
    """What holds between an agent and one that is given its output; compiled with the giver's contract."""

    to: str
    within_turns: int
    parameters: Mapping[str, Any] = field(repr=False, compare=False)
    _validator: jsonschema_rs.Draft202012Validator = field(repr=False, compare=False)

    def concerns(self, receiver: AgentSpec) -> bool:
        """Whether an agent is one of those meant."""
        return self.to == receiver.name or self.to in receiver.capability_tags

    def violations(self, values: Mapping[str, Any]) -> list[str]:
        """What is wrong with the values handed over, by the receiver's argument names; empty when nothing is."""
        return _violations(self._validator, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What may go into an agent and what must come out; build it with `compile`."""

    input_sha256: str
    """SHA-256 of the canonical JSON of the input schema."""
    output_sha256: str
    input_schema: Mapping[str, Any] = field(repr=False, compare=False)
    output_schema: Mapping[str, Any] = field(repr=False, compare=False)
    handovers: tuple[HandoverContract, ...] = field(default=(), compare=False)
    _limits: Limits
    _input: jsonschema_rs.Draft202012Validator = field(repr=False, compare=False)
    _output: jsonschema_rs.Draft202012Validator = field(repr=False, compare=False)
    _hook: Callable[..., Any] | None = field(repr=False, compare=False)

    @classmethod
    def compile(cls, spec: AgentSpec) -> "Contract":
        """Compile the schemas of a manifest.

        Raises:
            ManifestInvalid: a schema is not JSON Schema 2020-12, refers to another document or names an unknown
                format; or the output hook cannot be imported.
        """
        return cls(
            input_sha256=sha256_of(spec.input_schema),
            output_sha256=sha256_of(spec.output_schema),
            input_schema=spec.input_schema,
            output_schema=spec.output_schema,
            handovers=tuple(
                HandoverContract(
                    to=handover.to,
                    within_turns=handover.within_turns,
                    parameters=handover.parameters,
                    _validator=_validator(spec, f"handovers[{index}].parameters", handover.parameters),
                )
                for index, handover in enumerate(spec.handovers)
            ),
            _limits=spec.limits,
            _input=_validator(spec, "input_schema", spec.input_schema),
            _output=_validator(spec, "output_schema", spec.output_schema),
            _hook=resolve(spec.output_hook) if spec.output_hook else None,
        )

    def input_violations(self, inputs: Mapping[str, Any]) -> list[str]:
        """What is wrong with inputs, as `$.path: message`; empty when nothing is. At most 20 are listed."""
        return self.written_input(inputs)[1]

    def written_input(self, inputs: Mapping[str, Any]) -> tuple[bytes, list[str]]:
        """Inputs as canonical JSON, and what is wrong with them as `input_violations` says it."""
        try:
            data = canonical_json(inputs)
        except (TypeError, ValueError, RecursionError) as error:
            return b"", [f"$: not JSON: {_cut(str(error))}"]
        if len(data) > self._limits.max_input_bytes:
            return data, [f"$: {len(data)} bytes, the limit is {self._limits.max_input_bytes}"]
        return data, _violations(self._input, inputs)

    def sanitise(self, raw: object) -> Sanitised:
        """Turn what an agent returned into a JSON object that is safe to keep, and say what was repaired.

        A mapping is taken as it is; text or bytes must be exactly one JSON object. The declared output hook runs
        first and its repairs are on record; without one nothing is dug out of prose.

        Raises:
            OutputContractBroken: prose instead of JSON, not an object, too large, too deep, NaN or infinity, a
                lone surrogate, a repeated key or a value that is not JSON.
        """
        return sanitise(raw, self._limits, self._hook)

    def output_violations(self, output: Mapping[str, Any]) -> list[str]:
        """What is wrong with a sanitised output, as `$.path: message`; empty when nothing is."""
        return _violations(self._output, output)


def _validator(spec: AgentSpec, name: str, schema: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator:
    agent = spec.name
    if costs_too_much(schema, max_depth=spec.limits.max_depth):
        raise ManifestInvalid(
            f"{name} of agent {agent} is not usable: checking a value against it could take for ever",
            next_step="Let fewer branches lead to the same schema, or lower limits.max_depth.",
            agent=agent,
        )
    try:
        return jsonschema_rs.Draft202012Validator(
            dict(schema), validate_formats=True, ignore_unknown_formats=False, offline=True
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise ManifestInvalid(f"{name} of agent {agent} is not usable: {_cut(str(error))}", agent=agent) from error


def _violations(validator: jsonschema_rs.Draft202012Validator, value: Mapping[str, Any]) -> list[str]:
    if validator.is_valid(dict(value)):
        return []
    found: list[str] = []
    for error in _errors(validator, dict(value)):
        if len(found) == _MAX_VIOLATIONS:
            found.append("$: and more")
            break
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
        found.append(f"${_cut(place)}: {_cut(error.message)}")
    return found


def _errors(
    validator: jsonschema_rs.Draft202012Validator, value: dict[str, Any]
) -> Iterable[jsonschema_rs.ValidationError]:
    """Every error of a small value, the first one of a large one.

    All of them are made before the first can be had, each with a text that quotes what is wrong: those of a
    megabyte of wrong numbers take 15 seconds in which nobody else is served.
    """
    if _is_small(value):
        return validator.iter_errors(value)
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return (error,)
    return ()


def _is_small(value: object) -> bool:
    left = _SMALL
    waiting = [value]
    while waiting and left > 0:
        part = waiting.pop()
        left -= 1
        if isinstance(part, str):
            left -= len(part)
        elif isinstance(part, Mapping):
            left -= sum(map(len, part))
            waiting.extend(part.values())
        elif isinstance(part, Sequence):
            left -= len(part)
            waiting.extend(part[:_SMALL])
    return left > 0


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_VIOLATION_CHARS else text[: _MAX_VIOLATION_CHARS - 1] + "…"
