"""`podium machine`, `podium enroll` and `podium identity`, and being killed in the middle of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.identity.enrolling import enroll
from podium.identity.token import EnrolmentToken
from podium.link import MachineIdentity
from podium.link.renewing import Validity
from tests.integration.command_line import podium
from tests.integration.identity.ground import Stream, enrolled, now, operator, tls_serving, token
from tests.integration.server import ROOT, Running


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with tls_serving(tmp_path_factory.mktemp("data")) as running:
        yield running


def test_from_the_invitation_to_the_revocation(hub: Running, tmp_path: Path) -> None:
    data, pi = ("--data", str(hub.data)), ("--dir", str(tmp_path / "pi"))
    file = tmp_path / "token"
    invited = podium(
        "machine", "invite", "--name", "pi-1", "--lifetime", "2h", "--output", str(file), *data, "--json"
    )
    assert invited.json["file"] == str(file)
    assert file.stat().st_mode & 0o777 == 0o600
    asked = ("enroll", "--server", hub.address, "--token-file", str(file), *pi)
    got = podium(*asked, "--json").json
    assert (got["kind"], got["name"], got["server"]) == ("device", "pi-1", hub.app.machines_address)
    shown = podium("identity", "show", *pi, "--json").json
    assert (shown["serial"], shown["expired"]) == (got["serial"], False)
    assert "pi-1" in podium("identity", "show", *pi).out
    renewed = podium("identity", "renew", *pi, "--json").json
    assert renewed["serial"] != got["serial"]
    with Stream.of(tmp_path / "pi") as stream:
        stream.welcome()
    (machine,) = podium("machine", "list", *data, "--json").json["machines"]
    assert machine["serial"] == renewed["serial"]
    assert machine["last_seen"]
    assert machine["revoked"] is None
    assert podium(*asked, "--json").error["code"] == "ENROLMENT_TOKEN_USED"
    revoked = podium("machine", "revoke", "pi-1", "--reason", "lost", *data, "--json").json
    assert revoked["revoke_reason"] == "lost"
    assert "REVOKED" in podium("machine", "list", *data).out
    assert podium("identity", "renew", *pi, "--json").error["code"] == "CERTIFICATE_REVOKED"
    assert podium("machine", "revoke", "nobody", *data, "--json").error["code"] == "NOT_FOUND"
    assert podium("machine", "invite", "--kind", "fridge", *data, "--json").error["code"] == "INVALID_REQUEST"


def test_a_token_comes_from_the_environment_or_stdin_and_is_never_said_again(
    hub: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = token(hub, "pi-env")
    asked = ("enroll", "--server", hub.address, "--dir", str(tmp_path / "pi"))
    assert podium(*asked, "--json").error["code"] == "INVALID_REQUEST"
    wrong = podium(*asked, "--name", "other", "--json", environment={"PODIUM_ENROLMENT_TOKEN": text})
    assert wrong.error["code"] == "ENROLMENT_NOT_COVERED"
    secret = text.split(".")[2]
    assert secret not in wrong.out + wrong.err
    ran = podium(*asked, environment={"PODIUM_ENROLMENT_TOKEN": text})
    assert ran.status == 0
    assert secret not in ran.out + ran.err
    with (tmp_path / "piped").open("w") as file:
        file.write(f"\n  {token(hub, 'pi-stdin')}\n")
    with (tmp_path / "piped").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        got = podium(
            "enroll", "--server", hub.address, "--dir", str(tmp_path / "b"), "--token-file", "-", "--json"
        )
    assert got.json["name"] == "pi-stdin"


def test_a_token_made_without_a_running_server_is_good_for_the_next_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    text = podium("machine", "invite", "--name", "pi-1", "--data", str(data), "--json").json["token"]
    with tls_serving(data) as server:
        assert enroll(server.address, text, tmp_path / "pi", kind="device", clock=now).name == "pi-1"


def test_files_that_are_missing_or_do_not_fit_are_told(hub: Running, tmp_path: Path) -> None:
    assert podium("identity", "show", "--dir", str(tmp_path), "--json").error["code"] == "IDENTITY_UNUSABLE"
    enrolled(hub, tmp_path / "a", "pi-a")
    enrolled(hub, tmp_path / "b", "pi-b")
    (tmp_path / "a" / "key.pem").write_bytes((tmp_path / "b" / "key.pem").read_bytes())
    shown = podium("identity", "show", "--dir", str(tmp_path / "a"), "--json")
    assert shown.error["code"] == "IDENTITY_UNUSABLE"
    assert "does not belong" in shown.error["message"]
    assert (
        podium("identity", "renew", "--dir", str(tmp_path / "a"), "--json").error["code"]
        == "POSSESSION_NOT_PROVEN"
    )


_KILLED = """
import os, signal, sys
from pathlib import Path
folder = Path(sys.argv[1])
def die(event, arguments):
    # The answer has come, and nothing of it is on disk yet.
    if event == "os.mkdir" and Path(str(arguments[0])).name.startswith("set-"):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(die)
from podium.identity.enrolling import enroll, renew
from tests.integration.identity.ground import now
if sys.argv[2] == "renew":
    renew(folder, clock=now)
else:
    enroll(sys.argv[2], os.environ["PODIUM_ENROLMENT_TOKEN"], folder, kind="device", clock=now)
"""


def _killed(folder: Path, what: str, text: str = "") -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _KILLED, str(folder), what],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}", "PODIUM_ENROLMENT_TOKEN": text},
        capture_output=True,
        timeout=60,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr


def test_enrolment_killed_after_the_answer_is_finished_with_the_same_token(hub: Running, tmp_path: Path) -> None:
    text = token(hub, "pi-killed")
    _killed(tmp_path / "pi", hub.address, text)
    assert not (tmp_path / "pi" / "identity.json").exists()
    with operator(hub) as client:
        (machine,) = [item for item in client.machines() if item.name == "pi-killed"]
    got = enroll(hub.address, text, tmp_path / "pi", kind="device", clock=now)
    assert got.serial == machine.serial  # the one that was issued to this key
    with Stream.of(tmp_path / "pi", device_id="pi-killed") as stream:
        stream.welcome()
    assert EnrolmentToken.parse(text).text == text


def test_renewal_killed_after_the_answer_leaves_an_identity_that_works(hub: Running, tmp_path: Path) -> None:
    before = enrolled(hub, tmp_path, "pi-renewing")
    _killed(tmp_path, "renew")
    assert Validity.read(tmp_path).serial == before.serial
    with Stream.of(tmp_path, device_id="pi-renewing") as stream:
        stream.welcome()
    after = podium("identity", "renew", "--dir", str(tmp_path), "--json").json
    assert after["serial"] != before.serial
    with Stream.of(tmp_path, device_id="pi-renewing") as stream:
        stream.welcome()
    with operator(hub) as client:
        (machine,) = [item for item in client.machines() if item.name == "pi-renewing"]
    assert not machine.HasField("contested_time")
    assert MachineIdentity.load(tmp_path).name == "pi-renewing"


def test_what_a_running_device_loads_for_its_identity_has_no_cryptography() -> None:
    names = "podium.link, podium.link.renewing, podium.link.certificates, podium.link.machine"
    code = f"import sys, json, {names}; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    loaded = json.loads(ran.stdout)
    assert "podium.link.renewing" in loaded
    assert not {"cryptography", "pydantic", "podium.identity"} & set(loaded)
