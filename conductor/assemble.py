"""Assemble the final answer, and refuse one that does not keep the request's constraints or lacks a source."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from agents.canonical import canonical_json
from conductor.claims import cited, claims, is_chinese
from conductor.errors import AnswerIncomplete, AnswerWithoutSource
from conductor.progress import StepProgress, TaskState
from conductor.scheduler import ancestors
from conductor.step_transitions import source_of
from podium.v1 import result_pb2, status_pb2

_NOT_FIELDS = frozenset({"markdown", "fields", "sources", "confidence_score", "assumptions"})
_SHOWN = 5
_PLANNERS = {"revision": "rules"}
"""Planner as answers name it: revisions are rules of packs."""


def check_answer(
    output: Mapping[str, Any], request: Mapping[str, Any], known_sources: Iterable[str]
) -> tuple[str, ...]:
    """Check an answer step's output against the request; the names of the checks that passed.

    Args:
        output: Has `markdown`, and `fields` or fields of its own.
        request: The normalised request.
        known_sources: Ids of sources that the steps before it named.

    Raises:
        AnswerIncomplete: there is no text, or it is not in the language that was asked for.
        AnswerWithoutSource: there is no source, or a claim names none, or one that does not exist.
    """
    markdown = output.get("markdown")
    if not isinstance(markdown, str) or not markdown.strip():
        raise AnswerIncomplete("the answer has no text", evidence=["markdown is missing or empty"])
    # A report about a document is in its pack's language: it must not be withheld for the words sent beside it.
    about_document = request.get("payload_kind") or request.get("attachments")
    language = "" if about_document else str(request.get("language") or "")
    if language.startswith(("zh", "en")) and is_chinese(markdown) != language.startswith("zh"):
        raise AnswerIncomplete(
            f"the answer is not in the language that was asked for, {language!r}", evidence=[markdown[:120]]
        )
    own = {str(source.get("id")) for source in output.get("sources", ()) if isinstance(source, Mapping)}
    known = own | set(known_sources)
    if not known:
        raise AnswerWithoutSource("the answer names no source at all", evidence=[markdown[:120]])
    bare = [claim for claim in claims(markdown) if not cited(claim)]
    if bare:
        raise AnswerWithoutSource(
            f"{len(bare)} claims name no source", evidence=[claim[:200] for claim in bare[:_SHOWN]]
        )
    if unknown := sorted(set(cited(markdown)) - known):
        raise AnswerWithoutSource(
            f"the answer cites {', '.join(unknown[:_SHOWN])}, which no step named",
            evidence=[f"known sources: {', '.join(sorted(known))}"],
        )
    return ("answer_language", "answer_sources") if language else ("answer_sources",)


def assemble(state: TaskState) -> result_pb2.Result:
    """The final answer of a task whose answer step succeeded.

    Raises:
        AnswerIncomplete: the answer step has no output, or its text is wrong.
        AnswerWithoutSource: as `check_answer`.
    """
    if state.plan is None or state.request is None or not state.steps:
        raise AnswerIncomplete("there is no plan whose answer could be given")
    step = state.steps[state.answer_step]
    if step.output is None:
        raise AnswerIncomplete(f"step {step.index} ({step.tool}) was to give the answer and has no output")
    output = step.output.value
    behind = [state.steps[index] for index in sorted(ancestors(state.plan, step.index))]
    sources = merged_sources([step, *(before for before in behind if before.output is not None)])
    check_answer(output, state.request.value, (source.id for source in sources))
    fields = output.get("fields")
    if fields is None:
        fields = {name: value for name, value in output.items() if name not in _NOT_FIELDS}
    return result_pb2.Result(
        answer_markdown=output["markdown"],
        fields_json=canonical_json(fields),
        sources=sources,
        snapshot_sha256=snapshot_sha256(state, [*behind, step]),
        degraded=[
            f"{step.tool}: {step.skip_reason}"
            for step in state.steps
            if step.status == status_pb2.STEP_STATUS_SKIPPED
        ],
        assumptions=_assumptions(state, [*behind, step]),
        planner=_PLANNERS.get(state.planner, state.planner),
        route=state.route,
    )


def merged_sources(steps: Iterable[StepProgress]) -> list[result_pb2.Source]:
    """The sources of several steps; of two with one id the first keeps it, the other is named after its step.

    One that is among them already, under whatever id, is not named twice.
    """
    merged: dict[str, result_pb2.Source] = {}
    seen: set[tuple[str, str]] = set()
    for step in steps:
        for source in step.sources:
            present = merged.setdefault(source.id, source)
            content = (source.sha256, source.location)
            known = content in seen
            seen.add(content)
            if present is not source and present != source and not known:
                renamed = result_pb2.Source()
                renamed.CopyFrom(source)
                renamed.id = f"{source.id}@{step.uid}"
                merged.setdefault(renamed.id, renamed)
    return list(merged.values())


def snapshot_sha256(state: TaskState, steps: Iterable[StepProgress]) -> str:
    """SHA-256 over the canonical JSON `{"outputs": {uid: output}, "request": request}` of the data used.

    The parts are canonical JSON already, so they are joined instead of decoded and encoded again.
    """
    digest = hashlib.sha256(b'{"outputs":{')
    parts = sorted((step.uid, step.output.data) for step in steps if step.output is not None)
    for number, (uid, data) in enumerate(parts):
        digest.update(b"," if number else b"")
        digest.update(canonical_json(uid) + b":" + data)
    digest.update(b'},"request":' + (state.request.data if state.request else b"null") + b"}")
    return digest.hexdigest()


def _assumptions(state: TaskState, steps: Iterable[StepProgress]) -> list[str]:
    found: dict[str, None] = {}
    listed: list[Any] = list(state.request.value.get("assumptions", ())) if state.request else []
    for step in steps:
        if step.output is not None:
            listed.extend(step.output.value.get("assumptions") or ())
    for item in listed:
        found.setdefault(str(item.get("text", item)) if isinstance(item, Mapping) else str(item))
    return list(found)


def answer_sources(output: Mapping[str, Any]) -> list[result_pb2.Source]:
    """The sources an output names, as they travel."""
    return [source_of(entry) for entry in output.get("sources", ()) if isinstance(entry, Mapping)]
