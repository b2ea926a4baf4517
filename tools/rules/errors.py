"""What can go wrong with a rule.

RuleError
├── RuleSyntaxError      the expression cannot be read (line and column)
├── RuleTooCostly        the expression or its input is larger than a rule may be
├── RuleInputError       a value has no counterpart in CEL
├── RuleEvaluationError  the expression failed on this input
└── RuleResultError      the result is not of the kind that was asked for
"""

from grpc import StatusCode

from podium.errors import PodiumError


class RuleError(PodiumError):
    """A rule could not be compiled or evaluated; `code` names why and `next_step` says what to do."""

    code = "RULE_ERROR"
    status = StatusCode.INVALID_ARGUMENT
    advice = "Correct the rule."

    def __init__(self, message: str, *, expression: str) -> None:
        super().__init__(message, evidence=(expression,))
        self.expression = expression


class RuleSyntaxError(RuleError):
    """The expression is not CEL; `line` and `column` (both from 1) say where reading stopped."""

    code = "RULE_SYNTAX"
    advice = "Correct the expression at the position given."

    def __init__(self, message: str, *, expression: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}", expression=expression)
        self.line = line
        self.column = column


class RuleTooCostly(RuleError):
    """The expression or the values are over a limit, so evaluating them could take unbounded time."""

    code = "RULE_TOO_COSTLY"
    advice = "Shorten the expression, nest fewer loops, or pass fewer values."


class RuleInputError(RuleError):
    """A value cannot be given to CEL; `path` names it, e.g. ``order.lines[2].total``."""

    code = "RULE_INPUT"
    advice = "Pass only JSON values, bytes, Decimals, durations and dates or times with a time zone."

    def __init__(self, message: str, *, expression: str, path: str) -> None:
        super().__init__(f"{path}: {message}", expression=expression)
        self.path = path


class RuleEvaluationError(RuleError):
    """The expression is valid but failed on these values; `reason` is a short machine-readable cause."""

    code = "RULE_EVALUATION"
    advice = "Guard the expression with has(...) or convert types with int(), double() or string()."

    def __init__(self, message: str, *, expression: str, reason: str) -> None:
        super().__init__(message, expression=expression)
        self.reason = reason


class RuleResultError(RuleError):
    """A condition returned something other than true or false."""

    code = "RULE_RESULT"
    advice = "Make the expression a comparison, so that it returns true or false."
