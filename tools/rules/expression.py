"""Compile a CEL expression once, evaluate it often, and bound what it may cost.

CEL has no unbounded loops, but its macros (``all``, ``exists``, ``map`` ...) nest: over n values, d nested macros
take n ** d steps. The nesting is read from the expression, n from the values, and their power is refused above
`MAX_STEPS` before anything is evaluated. ``map`` and ``filter`` count as two levels: the engine copies the list
it builds at every step (measured: 240 s for 50,000 values).

Two habits of the engine to know when writing rules: ``size(text)`` counts UTF-8 bytes, so `length(text)` is added
here and counts characters; and an int never mixes with a double in arithmetic (comparing them is fine).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cel

from tools.rules.errors import RuleEvaluationError, RuleResultError, RuleSyntaxError, RuleTooCostly
from tools.rules.values import MAX_VALUES, CelInput, from_cel, to_cel

__all__ = ["MAX_EXPRESSION_CHARS", "MAX_STEPS", "MAX_VALUES", "CelRule"]

MAX_EXPRESSION_CHARS = 4096
MAX_STEPS = 4_000_000

_SCANNING = "all|exists|exists_one"
_BUILDING = "map|filter"
_LEVELS = {"open": 0, "scanning": 1, "building": 2}
_STRING_OR_COMMENT = re.compile(
    r"""[rRbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*""", re.DOTALL
)
_SCAN = re.compile(
    rf"(?P<scanning>\.\s*(?:{_SCANNING})\s*\()|(?P<building>\.\s*(?:{_BUILDING})\s*\()"
    r"|(?P<open>\()|(?P<close>\))|(?P<plus>\+)|(?P<comma>,)"
)
_POSITION = re.compile(r"<input>:(\d+):(\d+): (.*)")
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (KeyError, "missing_field"),
    (IndexError, "missing_field"),
    (ZeroDivisionError, "division_by_zero"),
    (OverflowError, "overflow"),
    (TypeError, "type_mismatch"),
    (ValueError, "invalid_value"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CelRule:
    """One compiled CEL expression; build it with `compile`, then call `evaluate` or `holds`.

    Example:
        >>> CelRule.compile("order.total > 100.0").holds({"order": {"total": Decimal("120.50")}})
        True
    """

    expression: str
    variables: frozenset[str]
    """Names the expression mentions; names bound by a macro are among them."""
    loop_depth: int
    _growth: int
    _literals: int
    _program: cel.Program = field(repr=False, compare=False)

    @classmethod
    def compile(cls, expression: str) -> "CelRule":
        """Read `expression`.

        Raises:
            RuleSyntaxError: it is not CEL; carries line and column.
            RuleTooCostly: it is longer than `MAX_EXPRESSION_CHARS`.
        """
        if len(expression) > MAX_EXPRESSION_CHARS:
            raise RuleTooCostly(
                f"the expression has {len(expression)} characters, the limit is {MAX_EXPRESSION_CHARS}",
                expression=expression[:200],
            )
        _refuse_unencodable(expression)
        try:
            program = cel.compile(expression)
        except ValueError as error:
            raise _syntax_error(expression, str(error)) from error
        depth, growth, literals = _loops(expression)
        return cls(
            expression=expression,
            variables=frozenset(program.variables()),
            loop_depth=depth,
            _growth=growth,
            _literals=literals,
            _program=program,
        )

    def evaluate(self, values: Mapping[str, Any] | CelInput) -> Any:
        """Evaluate the expression over `values` and return a Python value.

        Decimals become doubles (about 16 significant digits) because CEL has no decimal type. Values that several
        rules look at are best converted once, by `to_cel`.

        Raises:
            RuleInputError: a value has no counterpart in CEL (an integer over 64 bits, a naive time, an object).
            RuleTooCostly: too many values, or too many steps for the nesting of this expression.
            RuleEvaluationError: the expression failed; `reason` is missing_field, undefined_name, type_mismatch,
                division_by_zero, overflow or invalid_value.
        """
        given = values if isinstance(values, CelInput) else to_cel(values, expression=self.expression)
        steps = (given.longest_list * self._growth + self._literals) ** self.loop_depth
        # A step may search the longest text: about 1 KiB of it costs as much as a plain step.
        steps *= 1 + given.longest_text_chars // 1024 if self.loop_depth else 1
        if steps > MAX_STEPS:
            raise RuleTooCostly(
                f"{self.loop_depth} nested loops over {given.longest_list} values could take {steps} steps, "
                f"the limit is {MAX_STEPS}",
                expression=self.expression,
            )
        context = cel.Context(variables=given.variables, functions={"length": _length})
        try:
            return from_cel(self._program.execute(context))
        except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
            raise self._failure(error) from error

    def holds(self, values: Mapping[str, Any] | CelInput) -> bool:
        """Evaluate a condition; anything but true or false is an error, never truthiness.

        Raises:
            RuleResultError: the result is not a bool.
            RuleError: as `evaluate`.
        """
        result = self.evaluate(values)
        if not isinstance(result, bool):
            raise RuleResultError(
                f"the condition returned {type(result).__name__}, not true or false", expression=self.expression
            )
        return result

    def _failure(self, error: Exception) -> RuleEvaluationError:
        reason = next((reason for kind, reason in _REASONS if isinstance(error, kind)), "invalid_value")
        message = str(error)
        if message.startswith("Undefined variable or function"):
            reason = "undefined_name"
        if isinstance(error, KeyError):
            message = f"there is no field {message}"
        return RuleEvaluationError(message, expression=self.expression, reason=reason)


def _length(text: str) -> int:
    return len(text)


def _refuse_unencodable(expression: str) -> None:
    """A lone surrogate cannot cross into the engine; say where it stands instead of failing inside."""
    try:
        expression.encode()
    except UnicodeEncodeError as error:
        line = expression.count("\n", 0, error.start) + 1
        column = error.start - (expression.rfind("\n", 0, error.start) + 1) + 1
        raise RuleSyntaxError(
            "not valid Unicode", expression=expression.encode(errors="replace").decode(), line=line, column=column
        ) from error


def _syntax_error(expression: str, message: str) -> RuleSyntaxError:
    match = _POSITION.search(message)
    line, column, text = (int(match[1]), int(match[2]), match[3]) if match else (1, 1, message)
    return RuleSyntaxError(text, expression=expression, line=line, column=column)


def _loops(expression: str) -> tuple[int, int, int]:
    """Levels of the deepest nesting, how often a list can grow by ``+``, how long a literal list can be."""
    stack: list[int] = []
    deepest, pluses, commas = 0, 0, 0
    for match in _SCAN.finditer(_STRING_OR_COMMENT.sub(" ", expression)):
        kind = match.lastgroup or ""
        if kind in _LEVELS:
            stack.append(_LEVELS[kind])
            deepest = max(deepest, sum(stack))
        elif kind == "close" and stack:
            stack.pop()
        pluses += kind == "plus"
        commas += kind == "comma"
    return deepest, pluses + 1, commas + 1
