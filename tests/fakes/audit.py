"""An audit log that keeps its entries in a list."""

from agents.audit import AuditEntry, AuditReceipt


class ListAuditLog:
    """`agents.audit.AuditLog` for tests."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    def append(self, entry: AuditEntry) -> AuditReceipt:
        for place, old in enumerate(self.entries):
            if old.key == entry.key:
                return AuditReceipt(sequence=place + 1, sha256="", duplicate=True)
        self.entries.append(entry)
        return AuditReceipt(sequence=len(self.entries), sha256="", duplicate=False)

    @property
    def actions(self) -> list[str]:
        return [entry.action for entry in self.entries]
