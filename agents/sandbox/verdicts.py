"""What an agent wrote, or how its process ended, as an output or as a typed error that names the agent."""

import errno
import json
import signal
from collections.abc import Mapping
from typing import Any

from agents.engines.settings import SETTINGS
from agents.spec import AgentSpec
from podium.errors import AgentCrashed, AgentError, AgentOverLimit, AgentTimeout, OutputContractBroken


def read_answer(spec: AgentSpec, answer: bytes) -> Any:
    """The output in what an agent wrote; raises what the agent says went wrong, or that it wrote no answer."""
    try:
        said = json.loads(answer, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError as error:
        raise OutputContractBroken(
            f"the output is nested deeper than {spec.limits.max_depth} levels", agent=spec.name
        ) from error
    except ValueError as error:
        raise OutputContractBroken(f"{spec.name} did not answer in JSON: {error}", agent=spec.name) from error
    if isinstance(said, dict) and set(said) == {"output"}:
        return said["output"]
    if isinstance(said, dict) and set(said) == {"error"} and isinstance(said["error"], dict):
        raise _own_error(spec, said["error"])
    raise OutputContractBroken(
        f"{spec.name} must answer with one object that holds `output` or `error`", agent=spec.name
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is repeated")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


_LIMIT_BY_ERRNO = {
    errno.EAGAIN: "max_processes",
    errno.ENOMEM: "memory_bytes",
    errno.EFBIG: "scratch_bytes",
    errno.ENOSPC: "scratch_bytes",
}


def _own_error(spec: AgentSpec, error: Mapping[str, Any]) -> AgentError:
    """What the agent's process says went wrong; it is the agent's word and is believed of the agent only."""
    kind, text = str(error.get("class", "an error"))[:100], str(error.get("message", ""))[:300]
    if kind == "OutputNotJson":
        return OutputContractBroken(text, agent=spec.name)
    number = error.get("errno")
    limit = error.get("limit") or (_LIMIT_BY_ERRNO.get(number) if isinstance(number, int) else None)
    if limit in ("memory_bytes", "max_processes", "scratch_bytes"):
        return AgentOverLimit(
            f"{spec.name} needs more than its limit {limit} of {_allowed(spec, str(limit))}: {kind}: {text}",
            agent=spec.name,
        )
    return AgentCrashed(f"{spec.name} raised {kind}: {text}", agent=spec.name)


def _allowed(spec: AgentSpec, limit: str) -> str:
    if limit == "scratch_bytes":
        return str(getattr(SETTINGS[spec.engine].model_validate(dict(spec.settings)), limit))
    return str(getattr(spec.limits, limit))


def failure_of(spec: AgentSpec, reply: Mapping[str, Any]) -> AgentError:
    """The warden's verdict as an error."""
    name, kind = spec.name, reply["kind"]
    if kind == "over":
        if reply["limit"] == "max_output_bytes":
            used = f"announced an answer of {reply['used']} bytes"
        else:
            used = f"used {reply['used']:g}" if isinstance(reply["used"], float) else f"used {reply['used']}"
        allowed = _allowed(spec, reply["limit"])
        return AgentOverLimit(
            f"{name} {used}, its limit {reply['limit']} is {allowed}; it was stopped", agent=name
        )
    if kind == "left":
        return AgentOverLimit(
            f"{name} left {reply['processes']} processes running after its answer (limit max_processes: none may "
            "outlive a call); they were stopped",
            agent=name,
        )
    if kind == "timeout":
        return AgentTimeout(
            f"{name} did not answer in time and was stopped (processor time used: {reply['cpu_seconds']:.2f} s)",
            agent=name,
        )
    if kind == "garbage":
        return OutputContractBroken(
            f"{name} wrote something that is not a framed answer",
            evidence=[f"it begins with {reply['begins']!r}"],
            agent=name,
        )
    return _ended(spec, reply)


def _ended(spec: AgentSpec, reply: Mapping[str, Any]) -> AgentError:
    name, kind = spec.name, reply["kind"]
    if kind == "crash" and "signal" in reply:
        number = reply["signal"]
        if number == signal.SIGXFSZ:
            allowed = _allowed(spec, "scratch_bytes")
            return AgentOverLimit(f"{name} wrote a file over its limit scratch_bytes of {allowed}", agent=name)
        if number == signal.SIGXCPU:
            return AgentOverLimit(
                f"{name} used up its limit cpu_seconds of {_allowed(spec, 'cpu_seconds')}", agent=name
            )
        return AgentCrashed(
            f"the process of {name} was ended by {_signal_name(number)}",
            evidence=[f"it had used at most {reply['peak_bytes']} bytes of memory"],
            agent=name,
        )
    reasons = {
        "crash": f"ended with status {reply.get('status')} before it answered",
        "closed": "closed its output without an answer",
        "stale": f"did not wait for its next call: {reply.get('reason')}",
    }
    reason = reasons.get(kind, f"could not be watched: {reply.get('message', kind)}")
    return AgentCrashed(f"the process of {name} {reason}", agent=name)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
