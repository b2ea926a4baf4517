"""What a step is given: its arguments, resolved against the request and the outputs before it."""

from collections.abc import Mapping
from typing import Any

from conductor.paths import PathMissing, lookup
from conductor.plan import Literal, RequestRef, Step
from podium.errors import InputContractBroken


def resolve_inputs(
    step: Step,
    *,
    request: Mapping[str, Any],
    outputs: Mapping[int, Any],
    skipped: frozenset[int] = frozenset(),
    required: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The step's arguments as values.

    Args:
        step: The step.
        request: The normalised request.
        outputs: Outputs of finished steps, by index.
        skipped: Steps that were left out; optional arguments taken from them are left out too.
        required: Arguments that the agent cannot do without.

    Raises:
        InputContractBroken: a value that is asked for is not there; `evidence` names each.
    """
    inputs: dict[str, Any] = {}
    missing: list[str] = []
    for name, argument in step.arguments.items():
        if isinstance(argument, Literal):
            inputs[name] = argument.value
            continue
        from_request = isinstance(argument, RequestRef)
        try:
            if isinstance(argument, RequestRef):
                inputs[name] = lookup(request, argument.path)
            elif argument.step in skipped and name not in required:
                continue
            else:
                inputs[name] = lookup(outputs.get(argument.step), argument.field)
        except PathMissing as error:
            if name in required or from_request:
                place = (
                    "the request" if isinstance(argument, RequestRef) else f"the output of step {argument.step}"
                )
                missing.append(f"argument {name!r} from {place}: {error}")
    if missing:
        raise InputContractBroken(f"{step.tool} cannot be given what it needs: {missing[0]}", evidence=missing)
    return inputs
