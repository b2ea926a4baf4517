"""Only what a trusted key answers for is added or loaded, whatever was true when it was added."""

import json
import os
import sqlite3
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.tools.artefacts.signed import ANN, DEFECTS, Desk, now, signature, version
from tests.unit.tools.onnx.graphs import adding
from tools.artefacts.errors import ArtefactInvalid, ArtefactNotFound, ArtefactUnsigned, ArtefactUntrusted
from tools.artefacts.records import ONNX, Description, Signature, Who
from tools.artefacts.registry import ArtefactRegistry
from tools.artefacts.signing import is_right, key_id_of, new_key, read_key, sign
from tools.artefacts.trust import TrustedKeys, public_key_from_text


def test_what_nobody_signed_is_not_added(desk: Desk) -> None:
    description = Description(reference=version("1"), media_type=ONNX)
    with pytest.raises(ArtefactUnsigned):
        desk.registry.add(description, desk.file(adding()), who=ANN)
    assert not desk.registry.list()
    assert not desk.registry.stored_hashes()


def test_what_a_stranger_signed_is_not_added(desk: Desk) -> None:
    with pytest.raises(ArtefactUntrusted, match="not known here"):
        desk.add("1", adding(), key=new_key())
    assert not desk.registry.stored_hashes()


@pytest.mark.parametrize(
    "other",
    [
        {"reference": version("2")},
        {"reference": version("1", replace(DEFECTS, name="others"))},
        {"reference": version("1", replace(DEFECTS, kind="adapter"))},
        {"media_type": "application/octet-stream"},
        {"parents": (version("0"),)},
        {"metrics": {"recall": 1.0}},
        {"trial": {"x": {"value": 1}}},
    ],
    ids=str,
)
def test_a_signature_is_for_everything_that_is_said(desk: Desk, other: dict) -> None:
    signed = Description(reference=version("1"), media_type=ONNX)
    file = desk.file(adding())
    with pytest.raises(ArtefactUntrusted, match="not of this artefact"):
        desk.registry.add(replace(signed, **other), file, who=ANN, signatures=(signature(desk.key, signed, file),))


def test_a_signature_is_for_these_bytes(desk: Desk) -> None:
    description = Description(reference=version("1"), media_type=ONNX)
    signed = signature(desk.key, description, desk.file(adding(1)))
    with pytest.raises(ArtefactUntrusted):
        desk.registry.add(description, desk.file(adding(2)), who=ANN, signatures=(signed,))


def test_a_distrusted_key_loads_nothing_any_more_also_in_other_processes(desk: Desk, tmp_path: Path) -> None:
    made = desk.add("1", adding())
    desk.registry.promote(version("1"), who=ANN)
    other = ArtefactRegistry(tmp_path / "artefacts", clock=now)
    assert other.load(made).data == adding()
    desk.registry.keys.distrust(desk.key.key_id, who=Who(name="bob", why="the laptop was stolen"))
    with pytest.raises(ArtefactUntrusted, match="the laptop was stolen"):
        other.load(made)
    with pytest.raises(ArtefactUntrusted):
        desk.add("2", adding(2))
    history = other.keys.all()[0].history
    assert [(item["action"], item["by"]) for item in history] == [("trust", "ann"), ("distrust", "bob")]
    other.close()


def test_a_second_key_keeps_an_artefact_alive(desk: Desk) -> None:
    made = desk.add("1", adding())
    second = new_key()
    more = sign(second, made.statement)
    with pytest.raises(ArtefactUntrusted):
        desk.registry.sign(version("1"), more, who=ANN)
    desk.registry.keys.trust(second.public_key, label="the release desk", who=ANN)
    made = desk.registry.sign(version("1"), more, who=ANN)
    desk.registry.keys.distrust(desk.key.key_id, who=ANN)
    assert second.key_id in desk.registry.load(made).answerer


def test_a_key_expires(tmp_path: Path) -> None:
    moment = [now()]
    desk = Desk(tmp_path, clock=lambda: moment[0])
    desk.registry.keys.trust(desk.key.public_key, label="ann", who=ANN, expires_at=moment[0] + timedelta(days=30))
    made = desk.add("1", adding())
    desk.registry.load(made)
    moment[0] += timedelta(days=31)
    with pytest.raises(ArtefactUntrusted, match="expired"):
        desk.registry.load(made)
    desk.registry.close()


def test_a_row_that_somebody_changed_is_no_artefact_any_more(desk: Desk, tmp_path: Path) -> None:
    made = desk.add("1", adding(1))
    evil = desk.file(adding(666))
    stored = desk.registry._files.add(evil)
    other = sqlite3.connect(tmp_path / "artefacts" / "registry.sqlite", isolation_level=None)
    other.execute("DROP TRIGGER artefacts_stay")
    other.execute("UPDATE artefacts SET sha256 = ?, size_bytes = ?", (stored.sha256, stored.size_bytes))
    other.close()
    changed = desk.registry.get(made.reference)
    assert changed.sha256 == stored.sha256
    with pytest.raises(ArtefactUntrusted):
        desk.registry.load(changed)


_KEY = '"public_key": "' + "A" * 43 + '=", "label": "x", "expires_at": null, "distrusted_at": null'


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"public_key": "AAAA"}', "not json", f'{{{_KEY}, "history": ["x"]}}', "[" * 100_000],
)
def test_a_key_file_that_cannot_be_read_trusts_nobody(desk: Desk, tmp_path: Path, content: str) -> None:
    made = desk.add("1", adding())
    (tmp_path / "artefacts" / "keys" / f"{desk.key.key_id}.json").write_text(content)
    with pytest.raises(ArtefactUntrusted):
        desk.registry.load(made)


def test_a_key_file_under_another_name_trusts_nobody(desk: Desk, tmp_path: Path) -> None:
    stranger = new_key()
    keys = tmp_path / "artefacts" / "keys"
    (keys / f"{stranger.key_id}.json").write_text((keys / f"{desk.key.key_id}.json").read_text())
    with pytest.raises(ArtefactUntrusted):
        desk.add("1", adding(), key=stranger)


@pytest.mark.parametrize("key_id", ["../../evil", "", "A" * 32, "0" * 31, "\0"])
def test_a_hostile_key_id_leads_nowhere(desk: Desk, key_id: str) -> None:
    with pytest.raises(ArtefactUntrusted, match="not known"):
        desk.registry.keys.require_signed("x", (Signature(key_id=key_id, value=b"x" * 64),), b"{}")
    with pytest.raises(ArtefactNotFound):
        desk.registry.keys.distrust(key_id, who=ANN)


def test_a_folder_of_keys_that_others_own_is_enough(tmp_path: Path) -> None:
    keys = tmp_path / "keys-of-root"
    key = new_key()
    TrustedKeys(keys, clock=now).trust(key.public_key, label="release", who=ANN)
    desk = Desk(tmp_path, keys=keys)
    desk.add("1", adding(), key=key)
    assert not (tmp_path / "artefacts" / "keys").exists()
    desk.registry.close()


def test_a_key_never_shows_itself_and_survives_its_file() -> None:
    key = new_key()
    assert "PRIVATE" not in repr(key)
    again = read_key(key.private_pem)
    assert (again.key_id, again.public_key) == (key.key_id, key.public_key)
    assert key_id_of(key.public_key) == key.key_id
    assert is_right(key.public_key, sign(again, b"x"), b"x")
    assert not is_right(key.public_key, sign(again, b"x"), b"y")
    assert not is_right(b"short", sign(again, b"x"), b"x")
    assert not is_right(key.public_key, Signature(key_id=key.key_id, value=b"short"), b"x")


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"])
def test_a_broken_key_is_not_quoted(pem: bytes) -> None:
    with pytest.raises(ArtefactInvalid) as refused:
        read_key(pem)
    assert "secret" not in refused.value.message


def test_a_key_of_another_kind_is_refused() -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    other = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(ArtefactInvalid, match="not an Ed25519 key"):
        read_key(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@pytest.mark.parametrize("text", ["", "zz", "AAAA", "!" * 44])
def test_a_public_key_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ArtefactInvalid):
        public_key_from_text(text)


def test_key_files_are_whole_and_say_whose_they_are(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "artefacts" / "keys" / f"{desk.key.key_id}.json"
    assert json.loads(path.read_text())["label"] == "ann's key"
    assert stat.S_IMODE(os.stat(path).st_mode) & 0o022 == 0
    assert b"PRIVATE" not in path.read_bytes()


def test_a_label_is_needed(desk: Desk) -> None:
    with pytest.raises(ArtefactInvalid):
        desk.registry.keys.trust(new_key().public_key, label="", who=ANN)
    with pytest.raises(ArtefactInvalid):
        desk.registry.keys.trust(b"x", label="x", who=ANN)
    with pytest.raises(ArtefactInvalid):
        Who(name="")
