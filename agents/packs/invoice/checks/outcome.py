"""What a check of an invoice hands back: findings with their box, what was looked at, and the source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SOURCE_RULES = "R"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, with its place in the stored page's pixels where it has one."""

    code: str
    field: str
    message: str
    page: int | None = None
    box: Sequence[int] | None = None

    @classmethod
    def at(cls, field: Mapping[str, Any], *, code: str, name: str, message: str) -> "Finding":
        """A finding at the place of an extracted field."""
        return cls(code=code, field=name, message=message, page=field["page"], box=field["box"])

    def to_json(self) -> dict[str, Any]:
        """The finding as it travels."""
        return {
            "code": self.code,
            "field": self.field,
            "message": self.message,
            "page": self.page,
            "box": list(self.box) if self.box is not None else None,
        }


def outcome(
    findings: Sequence[Finding],
    checked: Sequence[str],
    *,
    rule: str,
    version: str,
    kind: str = "rule",
    sha256: str = "",
    confidence: float = 1.0,
) -> dict[str, Any]:
    """The output of a check.

    Args:
        findings: What is wrong.
        checked: What was looked at, in words.
        rule: The rule book that was applied, for the source.
        version: Its edition.
        kind: What it is: rule or list.
        sha256: Hash of its content, where it was read from a file.
        confidence: How sure the check is of its input, in [0, 1].
    """
    return {
        "findings": [finding.to_json() for finding in findings],
        "checked": list(checked),
        "confidence_score": confidence,
        "sources": [
            {
                "id": SOURCE_RULES,
                "kind": kind,
                "label": rule,
                "location": version,
                "sha256": sha256,
            }
        ],
    }
