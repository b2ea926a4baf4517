"""What is said to an A2A agent and what of its answer counts: JSON in data parts, without loss.

A data part is a protobuf Value, which keeps every number as a double. Whole numbers beyond 2^53 would change on
the way, so they are refused on both sides instead of being wrong.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest
from google.protobuf import struct_pb2

from agents.canonical import canonical_json
from agents.invocation import Invocation
from podium.errors import InputContractBroken, OutputContractBroken

JSON: Final = "application/json"
_EXACT: Final = 2**53
_NAMESPACE: Final = uuid.UUID("0f5c7a0e-6f1c-5d0a-9d49-1d0c3a0e6b11")
_MAX_SCHEMA_CHARS: Final = 20_000


def first_request(invocation: Invocation, skill: str) -> SendMessageRequest:
    """The message that asks: the inputs as data, and in words what is wanted of them.

    Raises:
        InputContractBroken: a number of the inputs cannot be carried exactly.
    """
    schema = canonical_json(invocation.spec.output_schema).decode()
    lines = [f"Use the skill {skill!r} on the data below."]
    if len(schema) <= _MAX_SCHEMA_CHARS:
        lines.append(f"Answer with exactly one JSON object that keeps this JSON Schema: {schema}")
    lines += [f"The attempt before this one failed: {line}" for line in invocation.context.diagnosis]
    request = _request(invocation, lines, turn=0)
    request.message.metadata.update(
        {
            "podium/skill": skill,
            "podium/output-schema": schema,
            "podium/idempotency-key": invocation.context.idempotency_key,
        }
    )
    return request


def reply(invocation: Invocation, *, task_id: str, context_id: str, turn: int) -> SendMessageRequest:
    """The answer to an agent that asks for more: there is no more than the inputs."""
    lines = ["There is nothing to add: these are all the inputs there are. Answer as well as they allow."]
    lines += [f"The attempt before this one failed: {line}" for line in invocation.context.diagnosis]
    request = _request(invocation, lines, turn=turn)
    request.message.task_id = task_id
    if context_id:
        request.message.context_id = context_id
    return request


def answer_of(parts: Sequence[Part], agent: str) -> object:
    """The one JSON object of an answer: its data part, or its only text, which must be exactly one.

    Raises:
        OutputContractBroken: there is none, or there are several.
    """
    data = [part.data for part in parts if part.WhichOneof("content") == "data"]
    if len(data) == 1:
        return _json_of(data[0], "$", agent)
    texts = [part.text for part in parts if part.WhichOneof("content") == "text"]
    if not data and len(texts) == 1:
        return texts[0]
    raise OutputContractBroken(
        f"{agent} answered with {len(data)} data parts and {len(texts)} texts where one JSON object was asked for",
        agent=agent,
    )


def _request(invocation: Invocation, lines: Sequence[str], *, turn: int) -> SendMessageRequest:
    context = invocation.context
    parts = [
        Part(text="\n".join(lines), media_type="text/plain"),
        Part(data=_value_of(invocation.inputs, "$", invocation.spec.name), media_type=JSON),
    ]
    # The same message id for the same attempt: an agent that keeps to the protocol does not do it twice.
    name = f"{context.task_id}/{context.idempotency_key}/{context.attempt}/{turn}"
    message = Message(
        message_id=str(uuid.uuid5(_NAMESPACE, name)),
        context_id=str(uuid.uuid5(_NAMESPACE, context.task_id)),
        role=Role.ROLE_USER,
        parts=parts,
    )
    request = SendMessageRequest(message=message)
    request.configuration.accepted_output_modes.append(JSON)
    return request


def _value_of(value: Any, place: str, agent: str) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        if isinstance(value, int) and abs(value) > _EXACT:
            raise InputContractBroken(
                f"{place} is {value}, and A2A carries whole numbers exactly up to 2^53 only",
                next_step="Let the agent take such numbers as text.",
                agent=agent,
            )
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        fields = {name: _value_of(item, f"{place}.{name}", agent) for name, item in value.items()}
        return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=fields))
    values = [_value_of(item, f"{place}[{index}]", agent) for index, item in enumerate(value)]
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=values))


def _json_of(value: struct_pb2.Value, place: str, agent: str) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return {name: _json_of(item, f"{place}.{name}", agent) for name, item in value.struct_value.fields.items()}
    if kind == "list_value":
        values = value.list_value.values
        return [_json_of(item, f"{place}[{index}]", agent) for index, item in enumerate(values)]
    if kind == "number_value":
        return _number(value.number_value, place, agent)
    return {"string_value": value.string_value, "bool_value": value.bool_value}.get(kind or "")


def _number(number: float, place: str, agent: str) -> int | float:
    if not number.is_integer():
        return number  # NaN and infinity too: whoever checks the output refuses them by their place
    if abs(number) > _EXACT:
        raise OutputContractBroken(
            f"{place} is a whole number beyond 2^53, which A2A does not carry exactly",
            next_step="Let the agent answer such numbers as text.",
            agent=agent,
        )
    return int(number)
