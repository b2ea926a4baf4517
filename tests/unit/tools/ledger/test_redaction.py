import io
from pathlib import Path

import pytest

from podium.errors import InvalidRequest, NotFound
from tests.fakes.ledgers import open_ledger, segment_files
from tools.ledger import redacting
from tools.ledger.errors import LedgerCorrupt
from tools.ledger.ledger import INDEX_FILE, Ledger
from tools.ledger.reading import entries, export, verify


class _Crash(BaseException):
    """The process dies here."""


def _filled(folder: Path, count: int = 9) -> Ledger:
    ledger = open_ledger(folder, segment_bytes=1300)
    for number in range(count):
        ledger.append({"secret": f"patient {number}"}, key=f"k{number}")
    return ledger


def test_the_body_is_gone_and_the_chain_stays(tmp_path: Path) -> None:
    with _filled(tmp_path) as ledger:
        before, head = {entry.sequence: entry for entry in entries(tmp_path)}, ledger.head
        receipt = ledger.redact(2, reason="asked to", by="anna")
        assert receipt.sequence == 10
        assert ledger.append({"more": 1}).sequence == 11
    assert not any(b"patient 1" in path.read_bytes() for path in tmp_path.iterdir())
    found = verify(tmp_path, head=head)
    assert (found.damage, found.redacted, found.unfinished, found.head.sequence) == (None, 1, (), 11)
    after = {entry.sequence: entry for entry in entries(tmp_path)}
    assert after[2].body is None
    assert (after[2].hash, after[2].time, after[2].key) == (before[2].hash, before[2].time, before[2].key)
    assert all(after[number] == before[number] for number in before if number != 2)
    assert after[10].kind == "redaction"
    assert after[10].body == {"sequence": 2, "reason": "asked to", "by": "anna"}


def test_nothing_is_left_to_try_a_guess_on(tmp_path: Path) -> None:
    with _filled(tmp_path) as ledger:
        ledger.redact(2, reason="r", by="b")
    line = segment_files(tmp_path)[0].read_bytes().splitlines()[1]
    assert b"salt" not in line
    assert line.endswith(b'"redacted":true}')


def test_an_entry_of_the_last_file_can_be_redacted_and_writing_goes_on(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append({"secret": "patient 0"})
        ledger.append({"secret": "patient 1"})
        ledger.redact(1, reason="r", by="b")
        ledger.redact(2, reason="r", by="b")
        assert ledger.append({"after": 1}).sequence == 5
    assert len(segment_files(tmp_path)) == 1
    found = verify(tmp_path)
    assert (found.damage, found.redacted, found.head.sequence) == (None, 2, 5)
    with open_ledger(tmp_path) as ledger:
        assert ledger.append({}).sequence == 6


def test_once_more_changes_nothing_and_the_key_stays_taken(tmp_path: Path) -> None:
    with _filled(tmp_path) as ledger:
        first = ledger.redact(2, reason="asked to", by="anna")
        again = ledger.redact(2, reason="another", by="otto")
        assert (again.sequence, again.hash, again.duplicate) == (first.sequence, first.hash, True)
        assert ledger.append({"secret": "patient 1"}, key="k1").duplicate
        # The keys of entries and of redactions are different things.
        assert not ledger.append({}, key="2").duplicate


def test_what_cannot_be_redacted_is_refused(tmp_path: Path) -> None:
    with _filled(tmp_path) as ledger:
        for sequence in (0, -1, 10):
            with pytest.raises(NotFound):
                ledger.redact(sequence, reason="r", by="b")
        for reason, by, field in ((" ", "b", "reason"), ("r", "", "by")):
            with pytest.raises(InvalidRequest) as refused:
                ledger.redact(1, reason=reason, by=by)
            assert refused.value.field == field
        ledger.redact(1, reason="r", by="b")
        with pytest.raises(InvalidRequest, match="records a redaction"):
            ledger.redact(10, reason="r", by="b")
        assert ledger.head.sequence == 10


def test_a_body_taken_out_without_a_record_is_damage(tmp_path: Path) -> None:
    _filled(tmp_path).close()
    path = segment_files(tmp_path)[1]
    redacting.without_bodies(path, {5}, lambda _: None)
    damage = verify(tmp_path).damage
    assert damage is not None
    assert (damage.segment, damage.sequence) == (path.name, 5)
    assert damage.reason == "its body is gone and no redaction is on record"


def test_a_damaged_entry_is_not_rewritten_as_if_it_were_sound(tmp_path: Path) -> None:
    with _filled(tmp_path) as ledger:
        path = segment_files(tmp_path)[0]
        path.write_bytes(path.read_bytes().replace(b"patient 1", b"patient X"))
        changed = path.read_bytes()
        with pytest.raises(LedgerCorrupt, match="entry 2"):
            ledger.redact(2, reason="r", by="b")
        assert path.read_bytes() == changed
        assert ledger.head.sequence == 9


@pytest.mark.parametrize("sequence", [2, 9])
@pytest.mark.parametrize("place", ["before the rewriting", "in it", "before the new file is named"])
@pytest.mark.parametrize("index", ["kept", "lost"])
def test_a_crash_in_the_middle_is_made_good_at_the_next_opening(
    tmp_path: Path, sequence: int, place: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = _filled(tmp_path)

    def die(*_: object, **__: object) -> None:
        if place == "in it":
            (tmp_path / "000000000000000001.new").write_bytes(b'{"sequ')
        raise _Crash

    with monkeypatch.context() as patched:
        if place == "before the new file is named":
            patched.setattr(Path, "replace", die)
        else:
            patched.setattr("tools.ledger.ledger.without_bodies", die)
        with pytest.raises(_Crash):
            ledger.redact(sequence, reason="r", by="b")
    found = verify(tmp_path)
    assert (found.damage, found.unfinished) == (None, (sequence,))
    ledger.close()  # the kernel would
    if index == "lost":
        (tmp_path / INDEX_FILE).unlink()
    with open_ledger(tmp_path) as ledger:
        assert ledger.head.sequence == 10
        found = verify(tmp_path)
        assert (found.damage, found.unfinished, found.redacted) == (None, (), 1)
        assert ledger.redact(sequence, reason="r", by="b").duplicate
    assert not any(f"patient {sequence - 1}".encode() in path.read_bytes() for path in tmp_path.iterdir())
    assert list(tmp_path.glob("*.new")) == []


def test_an_export_is_a_ledger_again(tmp_path: Path) -> None:
    with _filled(tmp_path / "ledger") as ledger:
        ledger.redact(3, reason="r", by="b")
    output = io.BytesIO()
    found = export(tmp_path / "ledger", output)
    assert found.head.sequence == 10
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "000000000000000001.jsonl").write_bytes(output.getvalue())
    assert verify(tmp_path / "copy", head=found.head).damage is None
    assert list(entries(tmp_path / "copy")) == list(entries(tmp_path / "ledger"))
    path = segment_files(tmp_path / "ledger")[1]
    path.write_bytes(path.read_bytes().replace(b"patient 4", b"patient X"))
    with pytest.raises(LedgerCorrupt, match="entry 5"):
        export(tmp_path / "ledger", io.BytesIO())
