"""Whether inputs and outputs keep their schemas; looked at on the host only where jsonschema_rs is installed.

The server checks both in any case. Here it gives whoever writes an agent the error where it arises.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from podium.agent_host.declaration import Declaration
from podium.errors import InputContractBroken, InvalidRequest, OutputContractBroken

_MAX_SHOWN = 10
_MAX_SHOWN_CHARS = 200

Violations = Callable[[Any], list[str]]


class Checks:
    """The schemas of one agent, compiled."""

    def __init__(self, declaration: Declaration) -> None:
        """Compile them.

        Raises:
            InvalidRequest: a schema is none.
        """
        self._name = declaration.name
        self._input = _violations(declaration, "input_schema", declaration.input_schema)
        self._output = _violations(declaration, "output_schema", declaration.output_schema)

    def inputs(self, value: Mapping[str, Any]) -> None:
        """Return only if the inputs keep their schema.

        Raises:
            InputContractBroken: what is wrong with them.
        """
        if broken := self._input(value):
            raise InputContractBroken(
                f"the input of {self._name} breaks its schema: {broken[0]}", evidence=broken, agent=self._name
            )

    def output(self, value: object) -> None:
        """Return only if the output keeps its schema.

        Raises:
            OutputContractBroken: what is wrong with it.
        """
        if broken := self._output(value):
            raise OutputContractBroken(
                f"the output of {self._name} breaks its schema: {broken[0]}", evidence=broken, agent=self._name
            )


def _violations(declaration: Declaration, field: str, schema: Mapping[str, Any]) -> Violations:
    try:
        # By name: a light host goes without, and the server checks what it sends.
        library = importlib.import_module("jsonschema_rs")
    except ModuleNotFoundError:
        return lambda _: []
    try:
        validator = library.Draft202012Validator(dict(schema))
    except library.ValidationError as error:
        raise InvalidRequest(
            f"{field} of {declaration.name} is no JSON Schema: {error.message}", field=field
        ) from error

    def found(value: object) -> list[str]:
        broken = []
        for error in validator.iter_errors(value):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
            broken.append(f"${place}: {error.message}"[:_MAX_SHOWN_CHARS])
            if len(broken) == _MAX_SHOWN:
                break
        return broken

    return found
