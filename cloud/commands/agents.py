"""`podium agents`: which agents there are, in which versions; switch and weigh them, and see what changed."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    connected,
)
from cloud.commands.showing import wrapped
from podium.cli import emit
from podium.errors import InvalidRequest, NotFound
from podium.terminal import Console
from podium.v1 import agent_pb2

app = typer.Typer()
_TOUCHES = {"none": "computes only", "read": "reads data", "write": "writes data", "unspecified": "unknown"}
_SHOWN_CHARS = 120
agents = typer.Typer(name="agents", help="Which agents there are; switch and weigh them.", no_args_is_help=True)
app.add_typer(agents)

NameArgument = Annotated[str, typer.Argument(help="The agent.", show_default=False)]
VersionOption = Annotated[str, typer.Option("--version", help="Only this version; all of them when not given.")]


@agents.command("list")
def list_agents(
    pack: Annotated[str, typer.Option(help="Only agents of this pack.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """List the agents: what each does, what it needs before it, what it may touch, whether it serves."""
    with connected(server, ca, data, token_file) as client:
        found = client.agents(pack)
    if as_json:
        emit({"agents": [agent_json(agent) for agent in found]})
        return
    console = Console(highlight=False)
    for agent in found:
        _show_line(console, agent, alone=sum(other.name == agent.name for other in found) == 1)
        for line in wrapped(agent.description, console.width, "    "):
            console.print(line, markup=False)


@agents.command()
def show(
    name: NameArgument,
    version: Annotated[str, typer.Option("--version", help="The version that serves when not given.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Show one agent with its manifest, and which versions there are beside it."""
    with connected(server, ca, data, token_file) as client:
        found = client.agent(name, version)
        versions = [agent for agent in client.agents() if agent.name == name]
    manifest = json.loads(found.manifest_json)
    if as_json:
        emit(
            {
                "agent": agent_json(found.agent),
                "manifest": manifest,
                "versions": [agent_json(agent) for agent in versions],
            }
        )
        return
    console = Console(highlight=False)
    for agent in versions:
        _show_line(console, agent, alone=len(versions) == 1)
    if found.agent.registered_by:
        when = found.agent.register_time.ToJsonString()
        console.print(f"Registered by {found.agent.registered_by} at {when}", markup=False)
    console.print(f"Manifest of version {found.agent.version}, SHA-256 {found.agent.manifest_sha256}:")
    console.print(json.dumps(manifest, indent=2, ensure_ascii=False), markup=False, soft_wrap=True)


@agents.command()
def disable(
    name: NameArgument,
    version: VersionOption = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Take an agent out of service: a running step ends, later ones go to another version, agent or plan."""
    with connected(server, ca, data, token_file) as client:
        _show_versions(client.set_agent_enabled(name, False, version=version), as_json=as_json)


@agents.command()
def enable(
    name: NameArgument,
    version: VersionOption = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Take an agent back into service."""
    with connected(server, ca, data, token_file) as client:
        _show_versions(client.set_agent_enabled(name, True, version=version), as_json=as_json)


@agents.command()
def weights(
    name: NameArgument,
    shares: Annotated[
        list[str],
        typer.Argument(help="VERSION=WEIGHT, 0 to 1000 each; versions not named get 0.", show_default=False),
    ],
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Share an agent's tasks among its versions, e.g. `1.0.0=900 2.0.0=100`; a task keeps its version."""
    wanted = dict(_share(entry) for entry in shares)
    if len(wanted) < len(shares):
        raise InvalidRequest("a version is named twice", field="shares")
    with connected(server, ca, data, token_file) as client:
        _show_versions(client.set_agent_weights(name, wanted), as_json=as_json)


@agents.command()
def diff(
    name: NameArgument,
    old: Annotated[str, typer.Argument(metavar="[FROM]", help="Version; the one before TO when not given.")] = "",
    new: Annotated[str, typer.Argument(metavar="[TO]", help="Version; the newest when not given.")] = "",
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two versions, and whether callers of the first can go on with the second."""
    from cloud.commands.agent_diff import compare

    with connected(server, ca, data, token_file) as client:
        there = [agent.version for agent in client.agents() if agent.name == name]
        first, second = _two_versions(name, there, old, new)
        manifests = [json.loads(client.agent(name, version).manifest_json) for version in (first, second)]
    found = compare(*manifests)
    if as_json:
        changes = [{"path": one.path, "before": one.before, "after": one.after} for one in found.changes]
        breaking = list(found.breaking)
        emit(
            {
                "agent": name,
                "from": first,
                "to": second,
                "compatible": not breaking,
                "breaking": breaking,
                "changes": changes,
            }
        )
        return
    console = Console(highlight=False)
    for one in found.changes:
        before, after = (json.dumps(value, ensure_ascii=False)[:_SHOWN_CHARS] for value in (one.before, one.after))
        console.print(f"{one.path}: {before} -> {after}", markup=False, soft_wrap=True)
    verdict = Text("breaking", style="bold red") if found.breaking else Text("compatible", style="bold green")
    console.print(Text.assemble(f"{name} {first} -> {second}: ", verdict))
    for line in found.breaking:
        console.print(f"  - {line}", markup=False, soft_wrap=True)


def _two_versions(name: str, there: Sequence[str], old: str, new: str) -> tuple[str, str]:
    if not there:
        raise NotFound(f"there is no agent {name}")
    new = new or there[-1]
    if new not in there:
        raise NotFound(f"there is no agent {name} {new}; there are {', '.join(there)}")
    before = there[: there.index(new)]
    if not old and not before:
        raise InvalidRequest(f"{name} {new} is the oldest version; name another to compare with", field="old")
    return old or before[-1], new


def _share(entry: str) -> tuple[str, int]:
    version, _, weight = entry.partition("=")
    if not version or not weight.isdecimal() or int(weight) > 2**31:
        raise InvalidRequest(f"{entry!r} is not VERSION=WEIGHT", field="shares")
    return version, int(weight)


def _show_versions(found: Sequence[agent_pb2.AgentDescription], *, as_json: bool) -> None:
    if as_json:
        emit({"agents": [agent_json(agent) for agent in found]})
        return
    console = Console(highlight=False)
    for agent in found:
        _show_line(console, agent, alone=len(found) == 1)


def _show_line(console: Console, agent: agent_pb2.AgentDescription, *, alone: bool) -> None:
    pack = f"pack {agent.pack}, " if agent.pack else ""
    off = "" if agent.enabled else ", disabled"
    model = f", model version {agent.model_version}" if agent.model_version else ""
    share = "" if alone else f", weight {agent.weight}"
    about = f" {agent.version} ({pack}{agent.engine}, {_TOUCHES[_touches(agent)]}{model}{share}{off})"
    if not agent.engine:
        about = f" {agent.version} (does not serve)"
    console.print(Text.assemble((agent.name, "bold"), about), soft_wrap=True)
    if agent.problem:
        console.print(Text.assemble("    ", ("problem", "bold red"), f": {agent.problem}"), soft_wrap=True)


def _touches(agent: agent_pb2.AgentDescription) -> str:
    return agent_pb2.SideEffects.Name(agent.side_effects).removeprefix("SIDE_EFFECTS_").lower()


def agent_json(agent: agent_pb2.AgentDescription) -> dict[str, Any]:
    """An agent as commands print it."""
    return {
        "name": agent.name,
        "version": agent.version,
        "pack": agent.pack,
        "description": agent.description,
        "engine": agent.engine,
        "enabled": agent.enabled,
        "problem": agent.problem,
        "model_version": agent.model_version,
        "weight": agent.weight,
        "side_effects": _touches(agent),
        "capability_tags": list(agent.capability_tags),
        "requires": list(agent.requires),
        "timeout_ms": agent.timeout.ToMilliseconds(),
        "endpoint": agent.endpoint,
        "handovers": json.loads(agent.handovers_json or b"[]"),
        "manifest_sha256": agent.manifest_sha256,
        "registered_by": agent.registered_by,
        "register_time": agent.register_time.ToJsonString() if agent.HasField("register_time") else None,
    }
