"""What a manifest that came over the wire may name of this machine: nothing, beyond what the operator allows.

Whoever registers an agent chooses functions, folders and variables by name. Without bounds that is running any
code in the server, reading its keys, and sending its secrets to an address of one's own.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.allowed_hosts import AllowedHosts
from agents.callables import resolve
from agents.spec import AgentSpec, ManifestInvalid

_OWN_HOOKS = "agents.output_hooks"
"""Hooks that come with Podium: they only read what they are given."""
_ISOLATED = frozenset({"process"})
"""Engines that run a function in a process which is locked away."""
_PROGRAM_FOLDERS = ("/usr", "/bin", "/sbin", "/opt", sys.prefix, sys.base_prefix)
"""Programs that anybody may start; the folder of a program is shown to it."""
_ADDRESSES = frozenset({"url", "card", "base_url", "endpoints", "hosts"})
_FUNCTIONS = frozenset({"callable", "before", "after"})
_FOLDERS = frozenset({"path", "cwd", "folder"})
ENVIRONMENT_PREFIX = "PODIUM_AGENT_"
"""Variables of the server that are meant for agents."""

SettingPlace = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPolicy:
    """What the operator allows manifests from elsewhere to name."""

    modules: tuple[str, ...] = ()
    """Modules, each with what is below it, whose functions may run inside the server."""
    folders: tuple[Path, ...] = ()
    """Folders that agents may be given, with what is below them."""
    environment: tuple[str, ...] = ()
    """Variables besides those that begin with `PODIUM_AGENT_`."""
    hosts: AllowedHosts = field(default_factory=AllowedHosts)
    """Where agents may be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that a manifest names and may not."""

    code: str
    message: str
    place: SettingPlace


def refusals(spec: AgentSpec, policy: ForeignPolicy) -> Iterator[Refusal]:
    """What a manifest from elsewhere names and may not.

    Hooks and validators run in the server whatever the engine is. A function under an allowed module is imported
    and must have been written there: what the module itself imported from elsewhere is not meant.

    Args:
        spec: The agent.
        policy: What the operator allows.
    """
    for place, name in _functions(spec):
        yield from _function_refusals(place, name, policy)
    for key, value in spec.settings.items():
        if key in _FOLDERS or key.endswith(("_file", "_folder", "_path")):
            yield from _folder_refusals(key, value, policy)
        if key == "env" or key.endswith("_env"):
            yield from _variable_refusals(key, value, policy)
        if key == "command" and value:
            yield from _program_refusals(spec, str(value[0]), policy)
        if key in _ADDRESSES:
            yield from _address_refusals(key, value, policy)
        if key == "network" and value and not policy.hosts.everywhere:
            # A program with sockets calls whom it likes; nobody here sees whom.
            message = (
                "with `network` the program reaches every address; the operator allows that with `*` in the "
                "setting `agent_hosts`"
            )
            yield Refusal(code="HOST_NOT_ALLOWED", message=message, place=("settings", key))


def _functions(spec: AgentSpec) -> Iterator[tuple[SettingPlace, str]]:
    if spec.engine not in _ISOLATED:
        for key in sorted(_FUNCTIONS & spec.settings.keys()):
            yield ("settings", key), str(spec.settings[key])
    if spec.output_hook is not None and spec.output_hook.partition(":")[0] != _OWN_HOOKS:
        yield ("output_hook",), spec.output_hook
    for index, validator in enumerate(spec.validators):
        if validator.python is not None:
            yield ("validators", index, "python"), validator.python


def _function_refusals(place: SettingPlace, name: str, policy: ForeignPolicy) -> Iterator[Refusal]:
    if not _below(name.partition(":")[0], policy):
        yield Refusal(
            code="CODE_NOT_ALLOWED",
            message=f"{name} would run inside the server; the operator allows modules with the setting "
            "`agent_modules`, and engine process runs functions in isolation",
            place=place,
        )
        return
    try:
        home = str(getattr(resolve(name), "__module__", ""))
    except ManifestInvalid as error:
        yield Refusal(code="CODE_UNUSABLE", message=error.message, place=place)
        return
    if not _below(home, policy):
        message = f"{name} was written in {home or 'no module'}, which the setting `agent_modules` does not name"
        yield Refusal(code="CODE_NOT_ALLOWED", message=message, place=place)


def _below(module: str, policy: ForeignPolicy) -> bool:
    return any(module == allowed or module.startswith(f"{allowed}.") for allowed in policy.modules)


def _folder_refusals(key: str, value: Any, policy: ForeignPolicy) -> Iterator[Refusal]:
    if value is None:
        return
    # Resolved: a link, or a/../b, leads where it leads.
    path = Path(str(value)).resolve()
    if not any(path.is_relative_to(folder.resolve()) for folder in policy.folders):
        message = f"{value} is not below a folder that the operator allows with the setting `agent_folders`"
        yield Refusal(code="FOLDER_NOT_ALLOWED", message=message, place=("settings", key))


def _program_refusals(spec: AgentSpec, program: str, policy: ForeignPolicy) -> Iterator[Refusal]:
    """Programs are locked away, but see the folder they lie in. One by its bare name is on the search path."""
    if os.sep not in program:
        return
    if not os.path.isabs(program):
        if spec.settings.get("path") is not None and ".." not in Path(program).parts:
            return  # below a folder that is checked itself
    elif any(Path(os.path.normpath(program)).is_relative_to(folder) for folder in _PROGRAM_FOLDERS):
        return
    yield from _folder_refusals("command", program, policy)


def _address_refusals(key: str, value: Any, policy: ForeignPolicy) -> Iterator[Refusal]:
    for place in value if isinstance(value, list | tuple) else [value]:
        if place is not None and (why := policy.hosts.refusal(str(place))):
            yield Refusal(code="HOST_NOT_ALLOWED", message=why, place=("settings", key))


def _variable_refusals(key: str, value: Any, policy: ForeignPolicy) -> Iterator[Refusal]:
    names = value if isinstance(value, list | tuple) else [*value] if isinstance(value, Mapping) else [value]
    for name in names:
        if name is not None and not str(name).startswith(ENVIRONMENT_PREFIX) and name not in policy.environment:
            message = (
                f"the server's variable {name} would be given away; name one of {ENVIRONMENT_PREFIX}..., "
                "or allow it with the setting `agent_variables`"
            )
            yield Refusal(code="VARIABLE_NOT_ALLOWED", message=message, place=("settings", key))
