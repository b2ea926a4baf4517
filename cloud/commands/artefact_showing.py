"""Artefacts as JSON and as lines on a terminal."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from podium.terminal import Console
from tools.artefacts.records import Artefact, Change, Current

if TYPE_CHECKING:
    from tools.artefacts.trust import TrustedKey
    from tools.onnx.inspection import Inspection


def artefact_json(artefact: Artefact) -> dict[str, Any]:
    """One version."""
    description, reference = artefact.description, artefact.reference
    return {
        "artefact": str(reference),
        "kind": reference.name.kind,
        "name": reference.name.name,
        "version": reference.version,
        "sha256": artefact.sha256,
        "size_bytes": artefact.size_bytes,
        "media_type": description.media_type,
        "package_model": artefact.package_model or None,
        "parents": [str(parent) for parent in description.parents],
        "metrics": dict(description.metrics),
        "trial": dict(description.trial),
        "created_by": artefact.created_by,
        "created_at": artefact.created_at.isoformat(),
        "note": artefact.note,
        "signed_by": [signature.key_id for signature in artefact.signatures],
    }


def current_json(current: Current) -> dict[str, Any]:
    """Which version is current."""
    return {
        "name": str(current.name),
        "version": current.version,
        "pinned": current.pinned,
        "change": current.sequence,
    }


def change_json(change: Change) -> dict[str, Any]:
    """One move."""
    return {
        "change": change.sequence,
        "name": str(change.name),
        "action": change.action,
        "from": change.from_version,
        "to": change.to_version,
        "by": change.by,
        "why": change.why,
        "at": change.at.isoformat(),
    }


def key_json(key: "TrustedKey") -> dict[str, Any]:
    """One key that is or was trusted."""
    return {
        "key_id": key.key_id,
        "label": key.label,
        "trusted": key.distrusted_at is None,
        "expires_at": None if key.expires_at is None else key.expires_at.isoformat(),
        "history": list(key.history),
    }


def difference(
    left: Artefact, right: Artefact, left_look: "Inspection | None", right_look: "Inspection | None"
) -> list[dict[str, Any]]:
    """Two versions side by side: `{"field", "left", "right", "differs"}`."""
    sides = (_fields(left, left_look), _fields(right, right_look))
    names = dict.fromkeys([*sides[0], *sides[1]])
    return [
        {
            "field": name,
            "left": sides[0].get(name),
            "right": sides[1].get(name),
            "differs": sides[0].get(name) != sides[1].get(name),
        }
        for name in names
    ]


def print_fields(fields: Mapping[str, Any]) -> None:
    """One line a field, for people."""
    table = Table("Field", "Value", box=None, show_header=False)
    for name, value in fields.items():
        if value in (None, [], {}, ""):
            continue
        table.add_row(*cells(name, value))
    Console(highlight=False).print(table, soft_wrap=True)


def cells(*values: Any) -> list[Text]:
    """Cells of a table: what people wrote must not move the cursor, turn the text around or look like markup."""
    return [Text("" if value is None else _visible(value)) for value in values]


def _visible(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)


def _fields(artefact: Artefact, look: "Inspection | None") -> dict[str, Any]:
    known = artefact_json(artefact)
    names = ("sha256", "size_bytes", "media_type", "package_model", "parents", "created_by", "created_at", "note")
    fields = {name: known[name] for name in (*names, "signed_by")}
    fields |= {f"metrics.{name}": value for name, value in known["metrics"].items()}
    if look is not None:
        seen = look.to_json()
        fields |= {"onnx.ir_version": seen["ir_version"], "onnx.nodes": seen["nodes"]}
        fields |= {f"onnx.opset.{domain}": version for domain, version in seen["opsets"].items()}
        for role, specs in (("input", look.interface.inputs), ("output", look.interface.outputs)):
            fields |= {f"onnx.{role}.{spec.name}": str(spec) for spec in specs}
    return fields
