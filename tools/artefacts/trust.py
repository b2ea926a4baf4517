"""Whose signatures count here: one JSON file for each key, in a folder that may belong to another user.

A key that was distrusted stays in the folder and says so, with who and why: an old copy of an artefact cannot
bring its key back, and only somebody who may write in the folder can.
"""

import base64
import binascii
import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from podium.errors import InternalError
from tools.artefacts.errors import ArtefactInvalid, ArtefactNotFound, ArtefactUnsigned, ArtefactUntrusted
from tools.artefacts.files import write_whole
from tools.artefacts.records import Artefact, Signature, Who
from tools.artefacts.signing import is_right, key_id_of

_KEY_ID = re.compile(r"[0-9a-f]{32}")
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedKey:
    """A key that was once trusted here."""

    key_id: str
    public_key: bytes
    label: str
    """Whose it is, for people."""
    expires_at: datetime | None
    distrusted_at: datetime | None
    history: tuple[dict[str, str], ...]
    """`{"action", "at", "by", "why"}`, oldest first."""

    def refusal(self, now: datetime) -> str:
        """Why its signatures do not count now; '' when they do."""
        if self.distrusted_at is not None:
            why = next((item["why"] for item in reversed(self.history) if item["action"] == "distrust"), "")
            return f"key {self.key_id} ({self.label}) is distrusted" + (f": {why}" if why else "")
        if self.expires_at is not None and now >= self.expires_at:
            return f"key {self.key_id} ({self.label}) expired on {self.expires_at.isoformat()}"
        return ""


class TrustedKeys:
    """The keys of one folder; read anew for every question, so that a distrust counts at once in every process."""

    def __init__(self, folder: Path, *, clock: Callable[[], datetime]) -> None:
        """Nothing is read or made yet.

        Args:
            folder: where the key files are; it may not be there.
            clock: says whether a key has expired.
        """
        self._folder = folder
        self._clock = clock

    def trust(self, public_key: bytes, *, label: str, who: Who, expires_at: datetime | None = None) -> TrustedKey:
        """Let a key's signatures count, also after a distrust.

        Args:
            public_key: 32 raw bytes of an Ed25519 key.
            label: whose it is.
            who: who trusts it, and why.
            expires_at: from when on its signatures count no more.

        Raises:
            ArtefactInvalid: not a public key, or no label.
        """
        if len(public_key) != _KEY_BYTES:
            raise ArtefactInvalid(f"an Ed25519 public key has {_KEY_BYTES} bytes", field="public_key")
        if not 1 <= len(label) <= 200 or not label.isprintable():
            raise ArtefactInvalid("say in 1 to 200 printable characters whose key it is", field="label")
        with self._locked():
            key_id = key_id_of(public_key)
            known = self._read(key_id)
            history = () if known is None else known.history
            return self._write(
                TrustedKey(
                    key_id=key_id,
                    public_key=public_key,
                    label=label,
                    expires_at=expires_at,
                    distrusted_at=None,
                    history=(*history, self._entry("trust", who)),
                )
            )

    def distrust(self, key_id: str, *, who: Who) -> TrustedKey:
        """Let a key's signatures count no more: what only it signed is not loaded again.

        Raises:
            ArtefactNotFound: no such key was ever trusted here.
        """
        with self._locked():
            known = self._read(key_id)
            if known is None:
                raise ArtefactNotFound(f"no key {key_id[:64]} is known here", field="key_id")
            entry = self._entry("distrust", who)
            return self._write(
                TrustedKey(
                    key_id=key_id,
                    public_key=known.public_key,
                    label=known.label,
                    expires_at=known.expires_at,
                    distrusted_at=self._clock(),
                    history=(*known.history, entry),
                )
            )

    def all(self) -> tuple[TrustedKey, ...]:
        """Every key that was ever trusted here, by its id."""
        names = sorted(path.stem for path in self._folder.glob("*.json"))
        return tuple(key for name in names if _KEY_ID.fullmatch(name) and (key := self._read(name)) is not None)

    def require(self, artefact: Artefact) -> TrustedKey:
        """The trusted key that answers for an artefact.

        Raises:
            ArtefactUnsigned: it has no signature at all.
            ArtefactUntrusted: none of its signatures is right and of a key that is trusted now.
        """
        return self.require_signed(str(artefact.reference), artefact.signatures, artefact.statement)

    def require_signed(self, what: str, signatures: tuple[Signature, ...], statement: bytes) -> TrustedKey:
        """As `require`, for an artefact that is not in a registry yet."""
        if not signatures:
            raise ArtefactUnsigned(f"{what} is not signed")
        reasons = []
        for signature in signatures:
            key = self._read(signature.key_id)
            if key is None:
                reasons.append(f"key {signature.key_id[:64]} is not known here")
            elif not is_right(key.public_key, signature, statement):
                reasons.append(f"the signature of key {key.key_id} ({key.label}) is not of this artefact")
            elif not (refusal := key.refusal(self._clock())):
                return key
            else:
                reasons.append(refusal)
        raise ArtefactUntrusted(f"{what}: {'; '.join(reasons)}", evidence=reasons)

    def _entry(self, action: str, who: Who) -> dict[str, str]:
        return {"action": action, "at": self._clock().isoformat(), "by": who.name, "why": who.why}

    def _read(self, key_id: str) -> TrustedKey | None:
        # The id comes out of a signature file: it must not lead out of the folder.
        if not _KEY_ID.fullmatch(key_id):
            return None
        path = self._folder / f"{key_id}.json"
        try:
            key = _key(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            # A key file that cannot be read trusts nobody.
            raise ArtefactUntrusted(f"{path} is not a key file: {error}") from error
        if key_id_of(key.public_key) != key_id:
            raise ArtefactUntrusted(f"{path} holds another key than its name says")
        return key

    def _write(self, key: TrustedKey) -> TrustedKey:
        content = {
            "public_key": base64.b64encode(key.public_key).decode("ascii"),
            "label": key.label,
            "expires_at": None if key.expires_at is None else key.expires_at.isoformat(),
            "distrusted_at": None if key.distrusted_at is None else key.distrusted_at.isoformat(),
            "history": list(key.history),
        }
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        write_whole(self._folder / f"{key.key_id}.json", text.encode("utf-8"))
        return key

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time: a trust that was decided before a distrust must not undo it unseen."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InternalError(
                f"{self._folder} cannot be written: {error.strerror}",
                next_step="Use the account that owns the folder of trusted keys.",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _key(content: dict[str, Any]) -> TrustedKey:
    public_key = base64.b64decode(content["public_key"], validate=True)
    return TrustedKey(
        key_id=key_id_of(public_key),
        public_key=public_key,
        label=str(content["label"]),
        expires_at=_moment(content["expires_at"]),
        distrusted_at=_moment(content["distrusted_at"]),
        history=tuple({str(key): str(value) for key, value in item.items()} for item in content["history"]),
    )


def _moment(value: str | None) -> datetime | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    return moment


def public_key_from_text(text: str) -> bytes:
    """The raw bytes of a public key in base64.

    Raises:
        ArtefactInvalid: another form.
    """
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ArtefactInvalid("a public key is 32 bytes in base64", field="public_key") from error
    if len(key) != _KEY_BYTES:
        raise ArtefactInvalid("a public key is 32 bytes in base64", field="public_key")
    return key
