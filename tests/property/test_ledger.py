"""Ledgers: any changed byte is located; appending, reopening and redacting in any order keep chain and content."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.ledgers import open_ledger, segment_files
from tools.ledger.ledger import INDEX_FILE, Item
from tools.ledger.reading import entries, verify

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_BODIES = st.dictionaries(st.text(max_size=5), _JSON, max_size=4)
_KEYS = st.just("") | st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1, max_size=6)
_STEPS = st.lists(
    st.tuples(st.just("append"), _BODIES, _KEYS)
    | st.tuples(st.just("many"), st.lists(st.tuples(_BODIES, _KEYS), max_size=5))
    | st.tuples(st.just("redact"), st.integers(1, 12))
    | st.tuples(st.just("reopen"), st.sampled_from(["", "torn", "index lost"])),
    max_size=12,
)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="podium-ledger-") as folder:
        yield Path(folder) / "ledger"


@pytest.fixture(scope="module")
def ledgers() -> Iterator[dict[str, Path]]:
    """One as it was written, one with redactions; several files each."""
    with _folder() as folder:
        made = {"plain": folder / "plain", "redacted": folder / "redacted"}
        for path in made.values():
            with open_ledger(path, segment_bytes=4000) as ledger:
                for number in range(40):
                    ledger.append(
                        {"text": "héllo\n" * (number % 7), "n": number}, key=f"k/{number}" * (number % 2)
                    )
        with open_ledger(made["redacted"], segment_bytes=4000) as ledger:
            for sequence in (1, 7, 8, 25, 40):
                ledger.redact(sequence, reason="asked to", by="anna")
        assert all(len(segment_files(path)) > 3 for path in made.values())
        yield made


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_is_located(ledgers: dict[str, Path], data: st.DataObject) -> None:
    folder = ledgers[data.draw(st.sampled_from(sorted(ledgers)))]
    path = data.draw(st.sampled_from(segment_files(folder)))
    sound = path.read_bytes()
    place = data.draw(st.integers(0, len(sound) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda value: value != sound[place]))
    try:
        path.write_bytes(sound[:place] + bytes([value]) + sound[place + 1 :])
        damage = verify(folder).damage
    finally:
        path.write_bytes(sound)
    assert damage is not None
    assert damage.segment == path.name
    assert damage.offset <= place < damage.offset + damage.length
    assert damage.sequence == int(path.stem) + sound[:place].count(b"\n")


class _Model:
    """What a ledger should hold, and the ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = open_ledger(folder, segment_bytes=1500)
        self.wanted: list[tuple[str, dict[str, Any]]] = []
        self.keys: dict[str, int] = {}
        self.redacted: dict[int, int] = {}

    def append(self, body: dict[str, Any], key: str) -> None:
        receipt = self.ledger.append(body, key=key)
        assert (receipt.sequence, receipt.duplicate) == self._expected(body, key)

    def many(self, pairs: list[tuple[dict[str, Any], str]]) -> None:
        receipts = self.ledger.append_many([Item(body=body, key=key) for body, key in pairs])
        assert [(one.sequence, one.duplicate) for one in receipts] == [
            self._expected(body, key) for body, key in pairs
        ]

    def _expected(self, body: dict[str, Any], key: str) -> tuple[int, bool]:
        if key in self.keys:
            return self.keys[key], True
        self.wanted.append((key, body))
        if key:
            self.keys[key] = len(self.wanted)
        return len(self.wanted), False

    def redact(self, sequence: int) -> None:
        if sequence > len(self.wanted) or sequence in self.redacted.values():
            return
        receipt = self.ledger.redact(sequence, reason="r", by="b")
        assert receipt.duplicate == (sequence in self.redacted)
        if not receipt.duplicate:
            self.wanted.append((str(sequence), {"sequence": sequence, "reason": "r", "by": "b"}))
            self.redacted[sequence] = len(self.wanted)
        assert receipt.sequence == self.redacted[sequence]

    def reopen(self, after: str) -> None:
        head = self.ledger.head
        self.ledger.close()
        if after == "torn":
            path = segment_files(self.folder)[-1]
            path.write_bytes(path.read_bytes() + b'{"sequence":')
        elif after == "index lost":
            (self.folder / INDEX_FILE).unlink()
        self.ledger = open_ledger(self.folder, segment_bytes=1500)
        assert self.ledger.head == head


@settings(max_examples=120, deadline=None)
@given(steps=_STEPS)
def test_any_order_of_steps_keeps_chain_and_content(steps: list[tuple[Any, ...]]) -> None:
    with _folder() as folder:
        model = _Model(folder)
        for name, *arguments in steps:
            head = model.ledger.head
            getattr(model, name)(*arguments)
            found = verify(folder, head=head)
            assert (found.damage, found.unfinished, found.redacted) == (None, (), len(model.redacted))
            assert found.head == model.ledger.head
        model.ledger.close()
        for entry, (key, body) in zip(entries(folder), model.wanted, strict=True):
            assert entry.key == key
            assert entry.body == (None if entry.sequence in model.redacted else body)
