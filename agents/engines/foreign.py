"""What engines share whose agents know nothing of Podium: their outputs are given a confidence and a source."""

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from grpc import StatusCode

from agents.canonical import canonical_json
from agents.engines.settings import ForeignSettings
from agents.invocation import Invocation
from agents.sanitising import sanitise
from podium.errors import AgentCrashed, AgentError, AgentTimeout, OutputContractBroken

_LOG = logging.getLogger(__name__)

MESSAGE_ROOM = 65_536
"""Bytes that a protocol may add to an output."""
_MAX_SAID_CHARS = 300
_MAX_SOURCES = 199
_MAX_LABEL_CHARS = 500
_ID = re.compile("S[1-9][0-9]{0,3}")


class AgentIncompatible(AgentError):
    """A foreign agent is not what its manifest says: another protocol version, no such skill, other inputs."""

    code = "AGENT_INCOMPATIBLE"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Mend the manifest or the foreign agent at the places listed; until then another agent takes over."


def message_limit(invocation: Invocation) -> int:
    """Bytes that one message of a foreign agent may have.

    An MCP server sends its result twice, as structured content and as text in which quotes are escaped; a status
    of an A2A agent repeats what came before.
    """
    return 4 * invocation.spec.limits.max_output_bytes + MESSAGE_ROOM


def said(text: object) -> str:
    """What a foreign agent said, cut to what an error message may quote."""
    words = " ".join(str(text).split())
    return words if len(words) <= _MAX_SAID_CHARS else words[: _MAX_SAID_CHARS - 1] + "…"


def timed_out(invocation: Invocation) -> AgentTimeout:
    """The error of a call that took longer than it may."""
    name = invocation.spec.name
    return AgentTimeout(f"{name} did not answer within {invocation.time_limit.total_seconds():g} s", agent=name)


def token_headers(settings: ForeignSettings, environment: Mapping[str, str], agent: str) -> dict[str, str]:
    """The header that a bearer token travels in; none without `token_env`.

    Raises:
        AgentCrashed: the variable is not set.
    """
    if settings.token_env is None:
        return {}
    if not (token := environment.get(settings.token_env, "").strip()):
        raise AgentCrashed(
            f"the environment variable {settings.token_env} that holds the token of {agent} is not set",
            next_step=f"Start the server with {settings.token_env} set.",
            agent=agent,
        )
    return {"Authorization": f"Bearer {token}"}


@contextmanager
def unquoted(settings: ForeignSettings, environment: Mapping[str, str]) -> Iterator[None]:
    """Take the token out of what an error says: some agents repeat the one that they did not like."""
    token = environment.get(settings.token_env, "").strip() if settings.token_env is not None else ""
    try:
        yield
    except AgentError as error:
        if token:
            error.message = error.message.replace(token, "[token]")
            error.evidence = tuple(line.replace(token, "[token]") for line in error.evidence)
        raise


def attributed(
    raw: object, invocation: Invocation, settings: ForeignSettings, *, label: str, location: str
) -> dict[str, Any]:
    """An output as it came, with a confidence that its manifest answers for and the source it rests on.

    An agent from elsewhere may claim any confidence and any source. It gets at most what the manifest declares,
    and its own sources stay, marked as told by it, behind the one that says where the output came from.

    Args:
        raw: a JSON object, or text that must be exactly one.
        invocation: the call.
        settings: of the manifest.
        label: a line for people that says who answered.
        location: where it can be found.

    Raises:
        OutputContractBroken: not one JSON object, too large, or no confidence where none is declared.
    """
    name = invocation.spec.name
    output, sha256 = _read(raw, invocation)
    claimed = output.get("confidence_score")
    if claimed is None:
        if settings.confidence is None:
            raise OutputContractBroken(
                f"{name} gave no confidence_score, and its manifest declares none",
                next_step="Declare `confidence` in the settings of its manifest.",
                agent=name,
            )
        output["confidence_score"] = settings.confidence
    elif isinstance(claimed, int | float) and claimed > settings.ceiling:
        _LOG.info("%s claimed a confidence above the %g that its manifest allows", name, settings.ceiling)
        output["confidence_score"] = settings.ceiling
    own = {
        "kind": "agent",
        "label": label[:_MAX_LABEL_CHARS],
        "location": location[:_MAX_LABEL_CHARS],
        "sha256": sha256,
    }
    output["sources"] = _sources(own, output.get("sources", []), name)
    return output


def _read(raw: object, invocation: Invocation) -> tuple[dict[str, Any], str]:
    name, limits = invocation.spec.name, invocation.spec.limits
    try:
        if isinstance(raw, str):
            data = raw.encode("utf-8", "surrogatepass")
            return sanitise(raw, limits, None).output, hashlib.sha256(data).hexdigest()
        if not isinstance(raw, Mapping):
            raise OutputContractBroken(f"the output is {type(raw).__name__}, not an object")
        data = canonical_json(raw)
    except OutputContractBroken as error:
        raise OutputContractBroken(
            f"{name}: {error.message}", evidence=[said(line) for line in error.evidence], agent=name
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise OutputContractBroken(f"{name}: the output is not JSON: {said(error)}", agent=name) from error
    return dict(raw), hashlib.sha256(data).hexdigest()


def _sources(own: dict[str, Any], told: object, name: str) -> object:
    if not isinstance(told, list):
        return told  # the contract refuses it, and says what it is
    taken = {source["id"] for source in told if isinstance(source, dict) and _numbered(source)}
    free = (f"S{number}" for number in count(1) if f"S{number}" not in taken)
    return [{"id": next(free), **own}, *(_as_told(source, name, free) for source in told[:_MAX_SOURCES])]


def _numbered(source: dict[str, Any]) -> bool:
    return isinstance(source.get("id"), str) and _ID.fullmatch(source["id"]) is not None


def _as_told(source: object, name: str, free: Iterator[str]) -> object:
    """A claimed source, marked; one with another kind of id gets one of ours, and keeps its own in the label."""
    if not isinstance(source, dict) or not all(isinstance(source.get(part), str) for part in ("id", "label")):
        return source
    mark, label = f" (as told by {name})", source["label"]
    if _numbered(source):
        number = source["id"]
    else:
        number, label = next(free), f"{source['id']}: {label}"
    return {**source, "id": number, "label": label[: _MAX_LABEL_CHARS - len(mark)] + mark}
