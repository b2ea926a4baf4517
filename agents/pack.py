"""Packs: a folder each, with agents, plan rules, vocabulary and the resources its agents share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.callables import resolve
from agents.capability import CapabilityAuthority
from agents.invocation import Resources
from agents.plan_rules import PlanRule, RevisionRule
from agents.registry import AgentRegistry
from agents.spec import AgentSpec, ManifestInvalid, load_spec

PACKS_FOLDER = Path(__file__).parent / "packs"
ATOMIC_FOLDER = Path(__file__).parent / "manifests"

M = TypeVar("M", bound=BaseModel)

ResourceFactory = Callable[[Path], Mapping[str, object]]
"""Given the data directory, what a pack's agents share, by name; must not do heavy work before first use."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Rules(_Strict):
    rules: tuple[PlanRule, ...] = ()
    revisions: tuple[RevisionRule, ...] = ()


class _Manifest(_Strict):
    name: str = Field(pattern=r"^[a-z][a-z0-9_]{1,63}$")
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    description: str
    agents: tuple[str, ...] = ()
    """Manifests, relative to the pack; `*` is allowed."""
    vocabulary: str | None = None
    rules: str | None = None
    resources: str | None = None
    """`module:function` of a `ResourceFactory`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The specialists of one subject."""

    name: str
    version: str
    description: str
    folder: Path
    specs: tuple[AgentSpec, ...] = ()
    rules: tuple[PlanRule, ...] = ()
    revisions: tuple[RevisionRule, ...] = ()
    vocabulary: Mapping[str, Any]
    """Raw YAML, as `tools.text.Vocabulary` reads it; empty when the pack has none."""
    resources: ResourceFactory | None = None


def load_atomic() -> tuple[AgentSpec, ...]:
    """The agents that every pack builds on: parser, retriever, coder, security, executor and the rest."""
    return tuple(load_spec(path) for path in _manifests(ATOMIC_FOLDER, "*.yaml"))


def load_pack(folder: Path) -> Pack:
    """Read one pack.

    Raises:
        ManifestInvalid: a file is missing or breaks the rules; every violation is listed.
    """
    manifest = _read(folder / "pack.yaml", _Manifest)
    rules = _read(folder / manifest.rules, _Rules) if manifest.rules else _Rules()
    vocabulary = _yaml(folder / manifest.vocabulary) if manifest.vocabulary else {}
    paths: list[Path] = []
    for pattern in manifest.agents:
        if not (found := _manifests(folder, pattern)):
            raise ManifestInvalid(f"{folder / 'pack.yaml'} names {pattern}, and there is no such file")
        paths.extend(found)
    return Pack(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        folder=folder,
        specs=tuple(load_spec(path) for path in paths),
        rules=rules.rules,
        revisions=rules.revisions,
        vocabulary=vocabulary,
        resources=_lazy(manifest.resources) if manifest.resources else None,
    )


def load_packs(folder: Path | None = None) -> tuple[Pack, ...]:
    """Every pack of a folder (those that ship with Podium when none is given), sorted by name.

    Raises:
        ManifestInvalid: a pack cannot be read, or two have one name.
    """
    packs = sorted(
        (load_pack(path.parent) for path in (folder or PACKS_FOLDER).glob("*/pack.yaml")),
        key=lambda pack: pack.name,
    )
    if repeated := {pack.name for index, pack in enumerate(packs) if index and packs[index - 1].name == pack.name}:
        raise ManifestInvalid(f"two packs have the name {sorted(repeated)[0]}")
    return tuple(packs)


def build_registry(packs: Iterable[Pack]) -> AgentRegistry:
    """A registry of the atomic agents and those of the packs.

    Raises:
        ManifestInvalid: an agent contradicts its own schemas.
        Conflict: two packs bring the same version of an agent.
    """
    registry = AgentRegistry()
    for spec in load_atomic():
        registry.register(spec)
    for pack in packs:
        for spec in pack.specs:
            registry.register(spec, pack=pack.name)
    return registry


def build_resources(packs: Iterable[Pack], data_dir: Path, extra: Mapping[str, object]) -> Resources:
    """What agents share: the capability authority, what each pack brings, and what the process adds.

    Args:
        packs: Their `resources` functions are called with `data_dir`.
        data_dir: Where files that are made at first use lie.
        extra: Entries of the process, e.g. `audit_log`; they win over those of the packs.

    Raises:
        ManifestInvalid: two packs bring a resource of the same name.
    """
    entries: dict[str, object] = {}
    for pack in packs:
        if pack.resources is None:
            continue
        brought = pack.resources(data_dir)
        if both := sorted(set(entries) & set(brought)):
            raise ManifestInvalid(
                f"pack {pack.name} brings resource {both[0]!r}, which another pack brings already"
            )
        entries.update(brought)
    entries.update(extra)
    if CapabilityAuthority.RESOURCE not in entries:
        entries[CapabilityAuthority.RESOURCE] = CapabilityAuthority.open(
            data_dir / "capability.key", clock=lambda: datetime.now(UTC)
        )
    return Resources(entries)


def _manifests(folder: Path, pattern: str) -> list[Path]:
    # A name that begins with _ is a part that manifests include.
    return sorted(path for path in folder.glob(pattern) if not path.name.startswith("_"))


def _lazy(name: str) -> ResourceFactory:
    def factory(data_dir: Path) -> Mapping[str, object]:
        # Imported when resources are built, so that reading packs alone imports no specialist.
        brought: Mapping[str, object] = resolve(name)(data_dir)
        return brought

    return factory


def _yaml(path: Path) -> Mapping[str, Any]:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ManifestInvalid(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ManifestInvalid(f"{path} is not a mapping")
    return value


def _read(path: Path, kind: type[M]) -> M:
    try:
        return kind.model_validate(_yaml(path))
    except ValidationError as error:
        evidence = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise ManifestInvalid(f"{path} breaks {len(evidence)} rules", evidence=evidence) from error
