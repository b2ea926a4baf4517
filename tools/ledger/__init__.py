"""An append-only ledger: hash-chained entries on disk, found out when a byte changes, redactable without a gap.

`ledger.Ledger` writes, `reading` shows, verifies and exports. The form on disk is described in `record`.
"""
