import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.errors import InvalidRequest
from tests.fakes.ledgers import open_ledger, segment_files
from tools.ledger.errors import Damage, LedgerCorrupt
from tools.ledger.ledger import INDEX_FILE
from tools.ledger.reading import entries, verify
from tools.ledger.record import GENESIS, Head


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine entries, three to a file; the second is redacted, which the ninth says."""
    folder = tmp_path / "ledger"
    with open_ledger(folder, segment_bytes=1300) as ledger:
        for number in range(8):
            ledger.append({"number": number}, key=f"k{number}")
        ledger.redact(2, reason="asked to", by="anna")
    assert [int(path.stem) for path in segment_files(folder)] == [1, 4, 7]
    assert verify(folder).damage is None
    return folder


def _damage(folder: Path, head: Head | None = None) -> Damage:
    found = verify(folder, head=head).damage
    assert found is not None
    return found


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_every_changed_byte_is_located(folder: Path) -> None:
    for path in segment_files(folder):
        first, sound, offset = int(path.stem), path.read_bytes(), 0
        for index, line in enumerate(_lines(path)):
            for place in range(offset, offset + len(line)):
                for value in (sound[place] ^ 1, sound[place] ^ 0x20, sound[place] ^ 0xFF, 0, 10):
                    if value == sound[place]:
                        continue
                    path.write_bytes(sound[:place] + bytes([value]) + sound[place + 1 :])
                    damage = _damage(folder)
                    assert (damage.segment, damage.sequence) == (path.name, first + index), (place, value)
                    assert damage.offset == offset
                    assert damage.offset <= place < damage.offset + damage.length, (place, value)
            offset += len(line)
        path.write_bytes(sound)
    assert verify(folder).damage is None


def test_opening_never_takes_a_changed_last_entry_for_an_unfinished_write(folder: Path) -> None:
    path = segment_files(folder)[-1]
    sound = path.read_bytes()
    start = len(sound) - len(_lines(path)[-1])
    for place in (start, start + 20, (start + len(sound)) // 2, len(sound) - 2, len(sound) - 1):
        for value in (0, 10, sound[place] ^ 1):
            if value == sound[place]:
                continue
            changed = sound[:place] + bytes([value]) + sound[place + 1 :]
            path.write_bytes(changed)
            with pytest.raises(LedgerCorrupt) as refused:
                open_ledger(folder)
            assert (refused.value.damage.segment, refused.value.damage.offset) == (path.name, start)
            assert f"{path.name}, byte {start}, entry 9" in str(refused.value)
            assert path.read_bytes() == changed


@pytest.mark.parametrize(
    ("change", "sequence", "reason"),
    [
        (lambda lines: [lines[0], lines[2]], 5, "entry 6 stands here; the entries before it are missing"),
        (lambda lines: [lines[1], lines[0], lines[2]], 4, "entry 5 stands here"),
        (lambda lines: [lines[0], lines[0], lines[1], lines[2]], 5, "entry 4 stands here once more"),
        (lambda lines: [lines[0], b"{}\n", *lines[1:]], 5, "not the form"),
        (lambda lines: [lines[0], b"\n", *lines[1:]], 5, "not the form"),
        (lambda lines: lines[:2], 6, "missing"),
        (lambda lines: [lines[0], lines[1][:-20]], 5, "not the form"),
        (lambda lines: [], 4, "empty"),
        (lambda lines: [*lines, b"\0" * 512], 7, "not the form"),
        (lambda lines: [lines[0] * 10_000], 5, "once more"),
        (lambda lines: [b"x" * 3_000_000], 4, "not the form"),
    ],
)
def test_what_is_missing_inserted_or_moved_is_located(
    folder: Path, change: Callable[[list[bytes]], list[bytes]], sequence: int, reason: str
) -> None:
    path = segment_files(folder)[1]
    path.write_bytes(b"".join(change(_lines(path))))
    damage = _damage(folder)
    assert damage.sequence == sequence
    assert reason in damage.reason


Forged = list[tuple[bytes, bytes, bytes, bool]]
"""Of each entry kind, key and body, and whether it shows its body."""


@pytest.mark.parametrize(
    ("entries_", "wrong"),
    [
        ([(b"entry", b"\xff", b"{}", True)], 1),
        ([(b"entry", b"k", b"{not json}", True)], 1),
        ([(b"entry", b"k", b'{"deep":' + b"[" * 100_000 + b"}", True)], 1),
        ([(b"entry", b"k", b"{}", True), (b"redaction", b"1", b"{}", True)], 2),
        ([(b"entry", b"k", b"{}", True), (b"redaction", b"1", b'{"sequence":"1"}', True)], 2),
        ([(b"entry", b"k", b"{}", False), (b"redaction", b"1", b'{"sequence":true}', True)], 2),
        ([(b"entry", b"k", b"{}", True), (b"redaction", b"1", b'{"sequence":-1}', True)], 2),
        ([(b"entry", b"k", b"{}", True), (b"redaction", b"1", b'{"sequence":2}', True)], 2),
        ([(b"entry", b"k", b"{}", True), (b"redaction", b"1", b'{"sequence":3}', True)], 2),
        ([(b"entry", b"k", b"{}", True), (b"redaction", b"1", b'{"sequence":' + b"9" * 5000 + b"}", True)], 2),
        ([(b"entry", b"k", b"{}", True), (b"redaction", b"1", b'{"sequence":1}', False)], 2),
    ],
)
def test_what_no_ledger_of_ours_wrote_is_damage_also_where_every_hash_fits(
    tmp_path: Path, entries_: Forged, wrong: int
) -> None:
    _forge(tmp_path, entries_)
    assert _damage(tmp_path).sequence == wrong
    if entries_[-1][0] == b"redaction" or entries_[0][1] != b"k":  # bodies are not read at opening
        with pytest.raises(LedgerCorrupt) as caught:
            open_ledger(tmp_path)
        assert caught.value.damage.sequence == wrong


def _forge(folder: Path, entries_: Forged) -> None:
    previous, lines, salt = GENESIS.encode(), [], b"0" * 32
    for sequence, (kind, key, body, shown) in enumerate(entries_, 1):
        header = b"".join(
            (
                b'{"sequence":%d,"time":"2026-11-30T00:00:00.000000Z","kind":"%b"' % (sequence, kind),
                b',"key":"%b","previous":"%b"' % (key, previous),
                b',"commitment":"%b"' % hashlib.sha256(salt + body).hexdigest().encode(),
            )
        )
        previous = hashlib.sha256(header).hexdigest().encode()
        rest = b'"salt":"%b","body":%b' % (salt, body) if shown else b'"redacted":true'
        lines.append(b'%b,"hash":"%b",%b}\n' % (header, previous, rest))
    (folder / f"{1:018d}.jsonl").write_bytes(b"".join(lines))


def test_a_missing_file_is_told(folder: Path) -> None:
    for index, (first, last) in enumerate([(1, 3), (4, 6)]):
        path = segment_files(folder)[index]
        kept = path.read_bytes()
        path.unlink()
        damage = _damage(folder)
        assert (damage.segment, damage.sequence) == ("", first)
        assert damage.reason == f"entries {first} to {last} are missing"
        path.write_bytes(kept)


def test_a_file_that_the_system_does_not_give_is_told(folder: Path) -> None:
    path = segment_files(folder)[1]
    path.unlink()
    path.mkdir()
    for read in (verify, lambda folder: list(entries(folder))):
        with pytest.raises(InvalidRequest, match=f"{path.name} cannot be read") as refused:
            read(folder)
        assert refused.value.field == "ledger"


def test_an_entry_of_another_ledger_does_not_fit(folder: Path, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "other", segment_bytes=1300) as other:
        for number in range(9):
            other.append({"number": -number}, key=f"k{number}")
    segment_files(folder)[1].write_bytes(segment_files(tmp_path / "other")[1].read_bytes())
    damage = _damage(folder)
    assert (damage.sequence, damage.offset) == (4, 0)
    assert "does not follow" in damage.reason


def test_a_cut_off_end_is_noticed_with_a_head_and_at_opening(folder: Path) -> None:
    head = verify(folder).head
    path = segment_files(folder)[-1]
    lines = _lines(path)
    path.write_bytes(b"".join(lines[:-2]))
    # The redaction's record is cut off with it, so the bare entry has no reason.
    assert (_damage(folder).sequence, _damage(folder, head).sequence) == (2, 2)
    with pytest.raises(LedgerCorrupt, match="seen entries up to 9"):
        open_ledger(folder)
    (folder / INDEX_FILE).unlink()
    open_ledger(folder).close()


def test_without_a_head_a_clean_cut_cannot_be_seen_and_with_one_it_is_located(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        for number in range(5):
            ledger.append({"number": number})
        head = ledger.head
    path = segment_files(tmp_path)[0]
    lines = _lines(path)
    path.write_bytes(b"".join(lines[:3]))
    assert verify(tmp_path).damage is None
    damage = _damage(tmp_path, head)
    assert damage.reason == "entries 4 to 5 are missing at the end"
    assert (damage.segment, damage.offset, damage.sequence) == (path.name, len(b"".join(lines[:3])), 4)
    path.write_bytes(b"".join(lines))
    assert verify(tmp_path, head=head).damage is None


def test_a_ledger_that_was_written_anew_is_noticed_with_a_head_and_at_opening(tmp_path: Path) -> None:
    for name, value in (("true", 1), ("forged", 2)):
        with open_ledger(tmp_path / name) as ledger:
            for number in range(3):
                ledger.append({"number": number * value})
            if name == "true":
                head = ledger.head
    segment_files(tmp_path / "true")[0].write_bytes(segment_files(tmp_path / "forged")[0].read_bytes())
    assert verify(tmp_path / "true").damage is None
    assert "written anew" in _damage(tmp_path / "true", head).reason
    with pytest.raises(LedgerCorrupt, match="has seen another entry here"):
        open_ledger(tmp_path / "true")


@pytest.mark.parametrize("zeros", [0, 1, 4096])
def test_an_unfinished_write_is_cut_off_and_told(
    folder: Path, zeros: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = segment_files(folder)[-1]
    sound = path.read_bytes()
    last = _lines(path)[-1]
    for length in (0, 1, 50, len(last) - 2, len(last) - 1):
        if length == len(last) - 1 and zeros:
            continue  # complete, with a zero in the place of the line end: a changed byte, see above
        torn = last[:length] + b"\0" * zeros
        if not torn:
            continue
        path.write_bytes(sound + torn)
        found = verify(folder)
        assert found.damage is None
        assert found.torn is not None
        assert (found.torn.offset, found.torn.length) == (len(sound), len(torn))
        caplog.clear()
        with caplog.at_level(logging.WARNING), open_ledger(folder) as ledger:
            assert ledger.torn == found.torn
            assert ledger.head == found.head
        assert f"cutting off {len(torn)} bytes" in caplog.text
        assert path.read_bytes() == sound


def test_an_unfinished_write_at_the_very_beginning_leaves_an_empty_ledger(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append({"n": 1})
    path = segment_files(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:100])
    (tmp_path / INDEX_FILE).unlink()
    with open_ledger(tmp_path) as ledger:
        assert ledger.head.sequence == 0
        assert ledger.append({"n": 2}).sequence == 1
    assert [entry.body for entry in entries(tmp_path)] == [{"n": 2}]


def test_a_new_file_with_nothing_in_it_yet_is_gone_on_with(folder: Path) -> None:
    (folder / "000000000000000010.jsonl").touch()
    assert verify(folder).damage is None
    with open_ledger(folder, segment_bytes=1300) as ledger:
        assert ledger.append({}).sequence == 10
    assert verify(folder).head.sequence == 10
    assert (folder / "000000000000000010.jsonl").stat().st_size
