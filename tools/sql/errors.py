"""What can go wrong with a query, on Podium's error tree.

InvalidRequest
├── SqlRefused         the guard or the engine found something that must not run
├── SqlFailed          the engine could not run it
├── UnknownName        a measure, dimension or value that the model does not have
└── QueryInvalid       the parts of a query do not fit together
TimeLimitExceeded
└── SqlTimeout         the query ran past its time
Conflict
└── SqlCancelled       the caller stopped it
LimitExceeded
├── SqlTooManyRows     more rows than the caller can take, where a part would mislead
└── SqlOutOfMemory     the query needs more memory than it may have
NotFound
└── WarehouseMissing   there is no database file to open
InternalError
└── SemanticModelInvalid   the semantic model contradicts itself
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from podium.errors import Conflict, InternalError, InvalidRequest, LimitExceeded, NotFound, TimeLimitExceeded

# Long enough for every name of a pack, short enough for an error message under 4 KiB.
_NAMES_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One reason why a statement must not run.

    Attributes:
        code: Stable identifier in snake case, e.g. `unknown_table`.
        message: What is wrong, for a person.
        fragment: The part of the statement it is about, at most 80 characters.
    """

    code: str
    message: str
    fragment: str = ""


class SqlRefused(InvalidRequest):
    """The statement must not run; `violations` lists every reason."""

    code = "SQL_REFUSED"

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        reasons = [f"{v.code}: {v.message}" for v in self.violations]
        super().__init__(
            f"The statement was refused: {'; '.join(reasons)}.",
            evidence=reasons,
            next_step="Ask with one SELECT over the known tables, columns and functions.",
        )


class SqlTimeout(TimeLimitExceeded):
    """The query was interrupted because its time was up."""

    code = "SQL_TIMEOUT"

    def __init__(self, *, after: timedelta) -> None:
        self.after = after
        super().__init__(
            f"The query was stopped after {after.total_seconds():g} s.",
            next_step="Narrow the interval or the dimensions, or raise the timeout.",
        )


class SqlCancelled(Conflict):
    """The query was interrupted because its caller no longer waits."""

    code = "SQL_CANCELLED"

    def __init__(self) -> None:
        super().__init__("The query was cancelled.", next_step="Submit it again if the answer is still wanted.")


class SqlFailed(InvalidRequest):
    """The engine could not prepare or run the statement."""

    code = "SQL_FAILED"

    def __init__(self, reason: str, *, next_step: str = "Check names, types and parameters.") -> None:
        super().__init__(f"The query failed: {reason}", next_step=next_step)


class SqlOutOfMemory(LimitExceeded):
    """The query needs more memory than the warehouse may use."""

    code = "SQL_OUT_OF_MEMORY"
    advice = "Group by fewer values, narrow the interval, or raise the memory limit."


class SqlTooManyRows(LimitExceeded):
    """The rows exceed what the caller can take, and a part of them would give a wrong answer."""

    code = "SQL_TOO_MANY_ROWS"

    def __init__(self, *, max_rows: int) -> None:
        self.max_rows = max_rows
        super().__init__(
            f"The query gives more than {max_rows} rows.", next_step="Narrow the interval or raise max_rows."
        )


class WarehouseMissing(NotFound):
    """There is no readable database at the path."""

    code = "WAREHOUSE_MISSING"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"Cannot open the database {path}: {reason}", next_step="Build or copy the database file first."
        )


class SemanticModelInvalid(InternalError):
    """The semantic model contradicts itself; `problems` lists every fault."""

    code = "SEMANTIC_MODEL_INVALID"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "The semantic model is not valid: " + "; ".join(self.problems) + ".",
            next_step="Correct the YAML file.",
        )


class UnknownName(InvalidRequest):
    """The model has no measure, dimension or value of that name; `known` lists what it has."""

    code = "UNKNOWN_NAME"

    def __init__(self, *, kind: str, name: str, known: Collection[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        shown = ", ".join(self.known[:_NAMES_SHOWN]) + (", …" if len(self.known) > _NAMES_SHOWN else "")
        super().__init__(f"There is no {kind} {name!r}.", next_step=f"Known: {shown}.")


class QueryInvalid(InvalidRequest):
    """Each part of the query is known, but together they make no sense."""

    code = "QUERY_INVALID"
