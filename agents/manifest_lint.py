"""Look a manifest over before it is believed: what refuses it, and what is weak about it, each with its line.

`lint` reads the text, looks at the schemas, the description, the tags and the checks, and ends with the spec when
nothing fatal was found. It runs nothing of the agent. A manifest from elsewhere is read with a `policy`: it may
name no function, folder or variable of this machine beyond what the operator allows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz, process

from agents.contract import Contract
from agents.description_lint import description_findings
from agents.examples import example_faults
from agents.foreign_code import ForeignPolicy, refusals
from agents.manifest_text import Finding, ManifestText, Place, read_manifest
from agents.schema_lint import schema_findings
from agents.spec import AgentSpec, ManifestInvalid, check_rules
from tools.rules.errors import RuleError
from tools.rules.expression import CelRule

_MAX_FINDINGS = 200
_LONGEST_TIMEOUT_S = 900
_UNUSABLE = "SCHEMA_UNUSABLE"
_NEAR = 75
_LITERAL = re.compile(r"""\"(?:\\.|[^"\\])*\"|'(?:\\.|[^'\\])*'""")
_FIELD = re.compile(r"\b(has\(\s*)?(input|output)\.([A-Za-z_]\w*)")
NOTHING_ALLOWED = ForeignPolicy()
"""For a manifest from anybody."""
_SCHEMA_RULE = "objects that allow unknown fields"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """What came of looking a manifest over."""

    spec: AgentSpec | None
    """None when a finding is fatal."""
    findings: tuple[Finding, ...]
    """What refuses the manifest first, each by line."""

    @property
    def fatal(self) -> tuple[Finding, ...]:
        """What refuses the manifest."""
        return tuple(finding for finding in self.findings if finding.fatal)

    def demand(self) -> AgentSpec:
        """The spec.

        Raises:
            ManifestInvalid: something refuses the manifest; `evidence` lists every finding.
        """
        if self.spec is None:
            fatal = self.fatal
            raise ManifestInvalid(
                f"the manifest has {len(fatal)} faults, the first: {fatal[0]}",
                evidence=[str(finding) for finding in (*fatal, *(f for f in self.findings if not f.fatal))],
            )
        return self.spec


def lint(
    text: str,
    *,
    known: Iterable[AgentSpec] = (),
    folder: Path | None = None,
    policy: ForeignPolicy | None = NOTHING_ALLOWED,
    engine: str = "",
    model: str = "",
) -> Linted:
    """Look a manifest over.

    Args:
        text: The manifest.
        known: The agents there are; they say which tags and names mean something.
        folder: Where files that it includes lie; None when it may include none.
        policy: What it may name of this machine; None for one that comes with the server.
        engine: Takes the place of the manifest's engine, unless empty.
        model: Takes the place of `settings.model`, unless empty.
    """
    read = read_manifest(text, folder=folder)
    findings = list(read.findings)
    raw = read.value
    if raw is not None and not isinstance(raw, dict):
        findings.append(read.finding("NOT_A_MAPPING", "a manifest is a mapping of fields"))
    if not isinstance(raw, dict):
        return Linted(spec=None, findings=tuple(findings))
    raw = _overridden(raw, engine, model)
    findings += _weak_schemas(read, raw)
    spec, broken = check_rules(raw)
    told = {finding.path for finding in findings}
    findings += [
        read.finding("RULE", message, place)
        for place, message in broken
        if not (_SCHEMA_RULE in message and any(path.startswith(str(place[0])) for path in told))
    ]
    if spec is not None and not any(finding.fatal for finding in findings):
        findings += _about(read, spec, tuple(known), policy)
    merged = _merged(findings)
    fatal = any(finding.fatal for finding in merged)
    return Linted(spec=None if fatal else spec, findings=tuple(merged[:_MAX_FINDINGS]))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """By line, what refuses first; of many of one kind on one line (an include) the first speaks for all."""
    groups: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.line), []).append(finding)
    merged = [
        replace(first, message=f"{first.message} (and {len(more)} more)") if more else first
        for first, *more in groups.values()
    ]
    return sorted(merged, key=lambda finding: (not finding.fatal, finding.line))


def _overridden(raw: dict[str, Any], engine: str, model: str) -> dict[str, Any]:
    changed = {**raw, "engine": engine} if engine else raw
    if model:
        settings = changed.get("settings")
        changed = {**changed, "settings": {**(settings if isinstance(settings, dict) else {}), "model": model}}
    return changed


def _weak_schemas(read: ManifestText, raw: Mapping[str, Any]) -> Iterator[Finding]:
    for name in ("input_schema", "output_schema"):
        if isinstance(raw.get(name), dict):
            yield from schema_findings(read, raw[name], (name,))
    handovers = raw.get("handovers")
    for index, handover in enumerate(handovers if isinstance(handovers, list) else ()):
        if isinstance(handover, dict) and isinstance(handover.get("parameters"), dict):
            yield from schema_findings(read, handover["parameters"], ("handovers", index, "parameters"))


def _about(
    read: ManifestText, spec: AgentSpec, known: tuple[AgentSpec, ...], policy: ForeignPolicy | None
) -> Iterator[Finding]:
    blocked = [] if policy is None else list(refusals(spec, policy))
    for refusal in blocked:
        yield read.finding(refusal.code, refusal.message, refusal.place)
    # Compiling imports the output hook, so that what is blocked is not compiled.
    compiled = [] if blocked else list(_compile_findings(read, spec))
    yield from compiled
    if any(finding.code == _UNUSABLE for finding in compiled):
        return  # what follows reads the schemas as if they were some
    yield from description_findings(read, spec, tuple(other for other in known if other.name != spec.name))
    yield from _output_findings(read, spec)
    yield from _sla_findings(read, spec)
    yield from _cel_findings(read, spec)
    yield from _neighbour_findings(read, spec, known)


def _compile_findings(read: ManifestText, spec: AgentSpec) -> Iterator[Finding]:
    try:
        contract = Contract.compile(spec)
    except ManifestInvalid as error:
        yield read.finding(_UNUSABLE, error.message)
        return
    for fault in example_faults(spec, contract):
        yield read.finding("EXAMPLE_CONTRADICTS", fault, (fault.partition(".")[0], "examples"))
    if not spec.input_schema.get("examples"):
        message = "no examples; one makes `podium validate` and the trial reach deeper"
        yield read.finding("EXAMPLES_MISSING", message, ("input_schema",), fatal=False)


def _output_findings(read: ManifestText, spec: AgentSpec) -> Iterator[Finding]:
    properties = spec.output_schema.get("properties", {})
    confidence, sources = properties.get("confidence_score", {}), properties.get("sources", {})
    place: Place = ("output_schema", "properties", "confidence_score")
    if confidence.get("type") not in ("number", "integer"):
        yield read.finding("CONFIDENCE_TYPE", "confidence_score must be a number from 0 to 1", place)
    elif (confidence.get("minimum"), confidence.get("maximum")) != (0, 1):
        yield read.finding("CONFIDENCE_BOUNDS", "add `minimum: 0` and `maximum: 1`", place, fatal=False)
    if sources.get("type") != "array":
        place = ("output_schema", "properties", "sources")
        yield read.finding("SOURCES_TYPE", "sources must be a list; docs/agents.md has its schema to copy", place)
    elif not _may_name_a_source(sources.get("items")):
        place = ("output_schema", "properties", "sources")
        message = "only objects with an `id` count as sources; docs/agents.md has the schema to copy"
        yield read.finding("SOURCES_FORM", message, place, fatal=False)


def _may_name_a_source(items: object) -> bool:
    if not isinstance(items, dict):
        return True
    properties = items.get("properties")
    return "id" in properties if isinstance(properties, dict) else items.get("type", "object") == "object"


def _sla_findings(read: ManifestText, spec: AgentSpec) -> Iterator[Finding]:
    seconds = spec.sla.timeout.total_seconds()
    if seconds <= 0:
        yield read.finding("TIMEOUT", "no time at all; give it some seconds", ("sla", "timeout"))
    elif seconds > _LONGEST_TIMEOUT_S:
        message = f"{seconds:g} s is long; above {_LONGEST_TIMEOUT_S} s a hung call holds its task up"
        yield read.finding("TIMEOUT", message, ("sla", "timeout"), fatal=False)
    if spec.side_effects == "write" and spec.sla.retries and spec.settings.get("idempotent") is not True:
        message = "a write is retried only with `settings: {idempotent: true}`; say so, or set retries to 0"
        yield read.finding("RETRIED_WRITE", message, ("sla", "retries"), fatal=False)


def _cel_findings(read: ManifestText, spec: AgentSpec) -> Iterator[Finding]:
    schemas = {"input": spec.input_schema, "output": spec.output_schema}
    for index, validator in enumerate(spec.validators):
        if validator.cel is None:
            continue
        place: Place = ("validators", index, "cel")
        try:
            CelRule.compile(validator.cel)
        except RuleError as error:
            yield read.finding("CEL_INVALID", error.message, place)
            continue
        mentions = _FIELD.findall(_LITERAL.sub("", validator.cel))
        guarded = {(side, name) for has, side, name in mentions if has}
        for side, name in dict.fromkeys((side, name) for _, side, name in mentions):
            schema = schemas[side]
            if name not in schema.get("properties", {}):
                yield read.finding("CEL_FIELD_UNKNOWN", f"there is no {side}.{name}", place)
            elif name not in schema.get("required", ()) and (side, name) not in guarded:
                message = f"{side}.{name} is not required; require it, or ask has({side}.{name}) first"
                yield read.finding("CEL_FIELD_OPTIONAL", message, place, fatal=False)


def _neighbour_findings(read: ManifestText, spec: AgentSpec, known: tuple[AgentSpec, ...]) -> Iterator[Finding]:
    others = [other for other in known if other.name != spec.name]
    tags = {tag for other in others for tag in (*other.capability_tags, *other.requires)}
    for index, tag in enumerate(spec.capability_tags):
        if tags and tag not in tags and all(tag not in same.capability_tags for same in known):
            message = f"no other agent has or requires the capability {tag!r}{_near(tag, tags)}"
            yield read.finding("CAPABILITY_UNKNOWN", message, ("capability_tags", index), fatal=False)
    brought = {tag for other in others for tag in other.capability_tags}
    for index, tag in enumerate(spec.requires):
        if known and tag not in brought:
            message = f"no agent brings {tag!r}, so that no plan can hold this one{_near(tag, brought)}"
            yield read.finding("REQUIRES_UNKNOWN", message, ("requires", index), fatal=False)
    names = {other.name for other in others}
    for index, handover in enumerate(spec.handovers):
        if known and handover.to not in names | brought | {spec.name}:
            message = f"there is no agent or capability {handover.to!r}{_near(handover.to, names | brought)}"
            yield read.finding("HANDOVER_UNKNOWN", message, ("handovers", index, "to"), fatal=False)
    fallback = spec.settings.get("fallback")
    if known and isinstance(fallback, str) and fallback not in names:
        message = f"there is no agent {fallback!r} to fall back on{_near(fallback, names)}"
        yield read.finding("FALLBACK_UNKNOWN", message, ("settings", "fallback"), fatal=False)
    for same in known:
        if same.name == spec.name and (same.side_effects, same.permission) != (spec.side_effects, spec.permission):
            message = (
                f"version {same.version} has side_effects {same.side_effects} and permission {same.permission}; "
                "another version may not change either, give it another name"
            )
            yield read.finding("VERSION_WIDENS", message, ("side_effects",))
            break


def _near(word: str, among: Iterable[str]) -> str:
    found = process.extractOne(word, sorted(among), scorer=fuzz.ratio, score_cutoff=_NEAR)
    return f"; did you mean {found[0]!r}?" if found is not None else ""
