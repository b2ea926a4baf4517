"""What an agent promises: its manifest, checked when it is read.

A manifest is YAML with the fields of `AgentSpec`. Schemas are JSON Schema 2020-12 and strict: every object in
them refuses unknown fields, and every output declares `confidence_score` and `sources`. What several
manifests share stands in a file beside them whose name begins with `_`: `{$include: _schemas.yaml#sources}`.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agents.engines.settings import check_settings
from agents.plan_rules import OfferedPlan
from podium.errors import InvalidRequest


class ManifestInvalid(InvalidRequest):
    """An agent's manifest breaks the rules; `evidence` lists every violation."""

    code = "MANIFEST_INVALID"
    advice = "Mend the manifest at the places listed and load it again."


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Sla(_Strict):
    """How long one call may take and how often it is retried with the diagnosis attached."""

    timeout: timedelta = timedelta(seconds=30)
    retries: int = Field(default=1, ge=0, le=5)


class Limits(_Strict):
    """What one call may use; docs/architecture.md says where each limit is enforced."""

    max_input_bytes: int = Field(default=4_000_000, gt=0)
    """Of the input as canonical JSON."""
    max_output_bytes: int = Field(default=1_000_000, gt=0)
    """Of the output, as it comes and as canonical JSON."""
    max_depth: int = Field(default=24, gt=0, le=200)
    """Of objects and lists in each other in the output."""
    cpu_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """Processor time of one call, over all its processes."""
    memory_bytes: int = Field(default=2**30, ge=2**24)
    """Memory of the process of one call."""
    max_processes: int = Field(default=16, ge=1, le=4_096)
    """Processes and threads of one call at once."""
    context_tokens: int = Field(default=32_768, gt=0)
    """What a language model may be given and may answer with, together."""


class Validator(_Strict):
    """A golden check of an output: a CEL expression over `input`, `output` and `request`, or a Python function.

    The function is named `module:function` and is called with `(inputs, output, context)`; it returns a list of
    violations in words, empty when all is well.
    """

    name: str
    cel: str | None = None
    python: str | None = None
    message: str = ""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Validator":
        if (self.cel is None) == (self.python is None):
            raise ValueError("a validator has either cel or python")
        return self


class Handover(_Strict):
    """What an agent promises whom it hands values to, and what it expects of them."""

    to: str = Field(pattern=r"^[a-z][a-z0-9_.]{1,63}$")
    """An agent's name, or a capability tag: every agent that has it."""
    within_turns: int = Field(ge=1, le=100)
    """The receiver must have given an accepted output by then; each call of its step is a turn."""
    parameters: Mapping[str, Any]
    """JSON Schema of the receiver's arguments that are taken from this agent's output, by their names there."""

    @field_validator("parameters")
    @classmethod
    def _strict_schema(cls, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if schema.get("type") != "object":
            raise ValueError("parameters must be the schema of an object: {type: object, properties: ...}")
        return _strict(schema)


class AgentSpec(_Strict):
    """An agent is a tool with a contract."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{1,63}$")
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    description: str = Field(min_length=20)
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    capability_tags: tuple[str, ...] = Field(min_length=1)
    requires: tuple[str, ...] = ()
    """Capabilities that some step before this one must have (the task-ability graph)."""
    side_effects: Literal["none", "read", "write"] = "none"
    permission: str = "caller"
    """Role the caller needs."""
    sla: Sla = Sla()
    limits: Limits = Limits()
    cost: float = Field(default=1.0, ge=0)
    """Budget units of one call."""
    confidence_gate: float = Field(default=0.0, ge=0, le=1)
    """Outputs less sure than this fail the step."""
    critical: bool = True
    """False: the task may go on without this step, and the answer says so."""
    anchor_fields: tuple[str, ...] = ()
    """Text inputs that must stay close in meaning to the request."""
    output_hook: str | None = None
    """`module:function` that repairs a known habit of a model before validation; every repair is on record."""
    validators: tuple[Validator, ...] = Field(default=(), max_length=50)
    handovers: tuple[Handover, ...] = Field(default=(), max_length=50)
    """What holds between this agent and those that are given its output."""
    plans: tuple[OfferedPlan, ...] = Field(default=(), max_length=20)
    """Plans with this agent in them: how requests come to it where no pack plans with it."""
    engine: str = "python"
    """One of `agents.engines.settings.SETTINGS`."""
    settings: Mapping[str, Any] = {}
    """What its engine needs to know; the form is in `agents.engines.settings`."""

    @field_validator("input_schema", "output_schema")
    @classmethod
    def _strict_schema(cls, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return _strict(schema)

    @model_validator(mode="after")
    def _declares_confidence_and_sources(self) -> "AgentSpec":
        required = self.output_schema.get("required")
        named = [name for name in required if isinstance(name, str)] if isinstance(required, list | tuple) else []
        if missing := {"confidence_score", "sources"} - set(named):
            raise ValueError(
                f"output_schema must have the required properties {', '.join(sorted(missing))}; "
                "docs/agents.md has their schemas to copy"
            )
        return self

    @model_validator(mode="after")
    def _settings_fit_the_engine(self) -> "AgentSpec":
        check_settings(self.engine, self.settings)
        return self

    @model_validator(mode="after")
    def _plans_have_the_agent_in_them(self) -> "AgentSpec":
        for plan in self.plans:
            if all(step["tool"] != self.name for step in plan.steps):
                raise ValueError(
                    f"plan {plan.name} has no step with {self.name}; an agent offers plans for itself"
                )
        if len({plan.name for plan in self.plans}) < len(self.plans):
            raise ValueError("two plans have the same name")
        return self

    def manifest(self) -> dict[str, Any]:
        """The manifest as JSON, without what is left at its default; `read_spec` makes the same spec of it."""
        return self.model_dump(mode="json", exclude_defaults=True)


def check_rules(raw: object) -> tuple[AgentSpec | None, list[tuple[tuple[int | str, ...], str]]]:
    """The spec that a manifest's content describes, or every rule it breaks: where, and in which way."""
    try:
        return AgentSpec.model_validate(raw), []
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        return None, [(item["loc"], _in_words(item["loc"], item["type"], item["msg"])) for item in found]


_WORDS = {
    "missing": "is missing; every manifest has it",
    "extra_forbidden": "there is no such field",
    "tuple_type": "a list is asked for: [one, two]",
    "string_type": "text is asked for; put it into quotes",
}
"""What pydantic says in terms of Python, for whoever writes YAML."""


def _in_words(place: tuple[int | str, ...], kind: str, message: str) -> str:
    if place == ("version",):
        return "a version is three numbers with dots, such as 1.0.0"
    if place == ("name",) and kind == "string_pattern_mismatch":
        return "a name is 2 to 64 small letters, digits and underscores, and begins with a letter"
    return _WORDS.get(kind, message.removeprefix("Value error, "))


def read_spec(raw: object, *, named: str) -> AgentSpec:
    """The spec that a manifest's content describes.

    Args:
        raw: The manifest as YAML or JSON gave it, without includes.
        named: What to call the manifest in an error.

    Raises:
        ManifestInvalid: broken rules; every violation is listed.
    """
    spec, broken = check_rules(raw)
    if spec is None:
        evidence = [f"{'.'.join(map(str, place))}: {message}" for place, message in broken]
        raise ManifestInvalid(f"{named} breaks {len(evidence)} rules of agent manifests", evidence=evidence)
    return spec


def load_spec(path: Path) -> AgentSpec:
    """Read a manifest; ``{$include: file.yaml#name}`` stands for the part `name` of a file beside it.

    Raises:
        ManifestInvalid: not YAML, an include of what is not there, or broken rules; every violation is listed.
    """
    try:
        raw = included(_yaml(path), path.parent)
        return read_spec(raw, named=str(path))
    except (yaml.YAMLError, OSError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalid(f"{path} cannot be read: {error}") from error


def included(value: Any, folder: Path) -> Any:
    """The value with every ``{$include: file.yaml#name}`` in it replaced by that part of a file of the folder."""
    if isinstance(value, dict):
        if set(value) == {"$include"}:
            name, _, part = str(value["$include"]).partition("#")
            # Only files beside the manifest: a manifest from elsewhere must not read this machine's files.
            beside = folder / Path(name).name
            content = _shared(beside, beside.stat().st_mtime_ns)
            if part not in content:
                raise ManifestInvalid(f"{name} has no part {part!r}; it has {sorted(content)}")
            return included(content[part], folder)
        return {key: included(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [included(item, folder) for item in value]
    return value


@cache
def _shared(path: Path, changed_ns: int) -> Any:
    """A file that many manifests include, parsed once as long as it does not change."""
    return _yaml(path)


def _yaml(path: Path) -> Any:
    # libyaml's parser, where PyYAML was built with it, is ten times as fast; a server reads some dozens of files.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - both loaders are safe


def _strict(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if loose := loose_objects(schema, "$"):
        raise ValueError("objects that allow unknown fields: " + ", ".join(loose))
    return schema


def loose_objects(schema: Any, place: str) -> list[str]:
    """Places of object schemas that allow unknown fields (a map says what its values are instead)."""
    found: list[str] = []
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" and schema.get("additionalProperties", True) is True:
            found.append(place)
        for key, value in schema.items():
            if key in ("enum", "const", "examples", "default"):
                continue
            found.extend(loose_objects(value, f"{place}.{key}"))
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            found.extend(loose_objects(value, f"{place}[{index}]"))
    return found
