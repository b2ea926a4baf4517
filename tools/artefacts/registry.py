"""The registry: which versions there are, which is current, and who moved it when and why.

It is a folder: `files/` by hash, `keys/` that are trusted, and `registry.sqlite`. Several processes may use it at
once. Every move of a current version is one transaction that compares what was current when the caller looked.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from podium.errors import PodiumError
from tools.artefacts import rows
from tools.artefacts.admission import Admission
from tools.artefacts.errors import (
    ArtefactExists,
    ArtefactInvalid,
    ArtefactNotFound,
    ArtefactPinned,
    CurrentChanged,
    NothingCurrent,
    NothingToRollBackTo,
)
from tools.artefacts.files import ArtefactFiles
from tools.artefacts.gate import Gate
from tools.artefacts.loading import Loader, sha256_of_file
from tools.artefacts.pointers import fold
from tools.artefacts.records import (
    Artefact,
    Change,
    Current,
    Description,
    Name,
    Reference,
    Signature,
    Who,
    statement,
)
from tools.artefacts.tables import Database
from tools.artefacts.trust import TrustedKeys
from tools.models.pinned import PinnedModels, committed_models
from tools.models.verified import VerifiedContent
from tools.onnx.inspection import Inspection

FOLDER = "artefacts"
"""Of the data directory."""
KEYS = "keys"
_MAX_FILE_BYTES = 16 * 2**30


class ArtefactRegistry:
    """Versions of artefacts in one folder; safe from several threads and several processes."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], datetime],
        keys: Path | None = None,
        packaged: PinnedModels | None = None,
        admission: Admission | None = None,
        max_file_bytes: int = _MAX_FILE_BYTES,
        max_pages: int | None = None,
    ) -> None:
        """Open the registry, making it when it is not there.

        Args:
            folder: where it is kept.
            clock: says when something was done, and whether a key has expired.
            keys: the folder of trusted keys, if it is not the one in `folder`; it may belong to another user.
            packaged: the list of reviewed models of packages; the committed one unless given.
            admission: how ONNX models are looked at and tried before one becomes current.
            max_file_bytes: largest single file.
            max_pages: size limit of the SQLite file, in pages of 4096 bytes.

        Raises:
            DataCorrupt: the SQLite file is damaged.
            InternalError: the folder cannot be used.
        """
        self._clock = clock
        self.keys = TrustedKeys(folder / KEYS if keys is None else keys, clock=clock)
        files = ArtefactFiles(folder / "files", max_bytes=max_file_bytes, now=clock())
        self._files = files
        self._loader = Loader(files=files, keys=self.keys, packaged=packaged or committed_models())
        self._gate = Gate(loader=self._loader, admission=admission or Admission())
        self._database = Database(folder / "registry.sqlite", max_pages=max_pages)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "ArtefactRegistry":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What there is.

    def get(self, reference: Reference) -> Artefact:
        """One version.

        Raises:
            ArtefactNotFound: there is none.
        """
        with self._database.reading() as connection:
            found = rows.artefact(connection, reference)
        if found is None:
            raise ArtefactNotFound(f"there is no {reference}", field="version")
        return found

    def list(self, *, kind: str | None = None, name: str | None = None) -> tuple[Artefact, ...]:
        """Versions in the order they were added."""
        with self._database.reading() as connection:
            return rows.artefacts(connection, kind, name)

    def current(self, name: Name) -> Current | None:
        """Which version is current, or None if none was promoted."""
        with self._database.reading() as connection:
            return rows.current(connection, name)

    def changes(self, name: Name | None = None, *, after: int = 0) -> tuple[Change, ...]:
        """Moves of current versions after a number, of one name or all, oldest first."""
        with self._database.reading() as connection:
            return rows.changes(connection, name, after)

    def succession(self, name: Name) -> tuple[str, ...]:
        """The current version and those a rollback would try, newest first."""
        pointer = fold(self.changes(name))
        return () if pointer.version is None else (pointer.version, *pointer.before)

    # Adding.

    def add(
        self,
        description: Description,
        source: Path,
        *,
        who: Who,
        signatures: tuple[Signature, ...] = (),
    ) -> Artefact:
        """Add a version from a file; adding the same again changes nothing but mends a damaged file.

        Args:
            description: what it is.
            source: the file.
            who: who adds it; the reason is kept as its note.
            signatures: over `records.statement`.

        Raises:
            ArtefactUnsigned, ArtefactUntrusted: nobody who is trusted here signed it; nothing was stored.
            ModelRefused: an ONNX file that must never be loaded.
            ArtefactExists: the version is there with other content.
            ArtefactInvalid, LimitExceeded, StorageFull: see `ArtefactFiles.add`.
        """
        reference = description.reference
        try:
            sha256, size_bytes = sha256_of_file(source)
        except OSError as error:
            raise ArtefactInvalid(f"{source} cannot be read: {error.strerror}", field="file") from error
        signed = statement(description, sha256=sha256, size_bytes=size_bytes)
        self.keys.require_signed(str(reference), signatures, signed)
        self._gate.look_at_file(description, source)
        stored = self._files.add(source)
        if stored.sha256 != sha256:
            raise ArtefactInvalid(f"{source} changed while it was read", field="file")
        artefact = self._artefact(description, stored.sha256, stored.size_bytes, "", who, signatures)
        return self._insert(artefact, who)

    def add_packaged(self, description: Description, model: str, *, who: Who) -> Artefact:
        """Add a model of an installed package; the committed list answers for its bytes.

        Args:
            description: what it is.
            model: its name in the committed list.
            who: who adds it; the reason is kept as its note.

        Raises:
            ModelError: not in the list, not installed, or other bytes than reviewed.
            ModelRefused: an ONNX file that must never be loaded.
            ArtefactExists: the version is there with other content.
        """
        if description.reference.name.kind != "model":
            raise ArtefactInvalid("only a model can come from the list of packaged models", field="kind")
        content = self._loader.packaged.verified(model)
        self._gate.admission.look(description.media_type, content.data, name=str(description.reference))
        return self._insert(self._artefact(description, content.sha256, len(content.data), model, who, ()), who)

    def sign(self, reference: Reference, signature: Signature, *, who: Who) -> Artefact:
        """Add one more signature to a version.

        Raises:
            ArtefactUntrusted: it is not a signature of this artefact by a key that is trusted here.
            ArtefactNotFound: there is no such version.
        """
        artefact = self.get(reference)
        self.keys.require_signed(str(reference), (signature,), artefact.statement)
        with self._database.writing() as connection:
            rows.insert_signatures(connection, reference, (signature,), who.name, self._clock())
        return self.get(reference)

    # Moving what is current.

    def promote(
        self, reference: Reference, *, who: Who, expected: str | None = None, new_interface: bool = False
    ) -> Current:
        """Make a version current, after it was verified, looked at and tried.

        Args:
            reference: the version.
            who: who promotes it, and why.
            expected: the version that must be current now; what is current when the call begins unless given.
            new_interface: an ONNX model may take and give something else than the one before it.

        Raises:
            ArtefactPinned: the name is pinned.
            CurrentChanged: another version became current meanwhile.
            ArtefactUnsigned, ArtefactUntrusted, ArtefactCorrupt, ModelRefused, TrialFailed: it must not be loaded.
        """
        name, artefact = reference.name, self.get(reference)
        before = self._expected(name, expected)
        if before is not None and before.version == reference.version:
            return before
        _require_unpinned(before)
        wanted = None
        if before is not None and not new_interface:
            wanted = self._gate.interface(self.get(Reference(name=name, version=before.version)))
        self._gate.admit(artefact, expected=wanted)
        return self._move(name, before, "promote", reference.version, who)

    def roll_back(self, name: Name, *, who: Who, expected: str | None = None) -> Current:
        """Make the version current that was before, or the one before that if it does not load any more.

        Args:
            name: whose version.
            who: who rolls back, and why.
            expected: the version that must be current now; what is current when the call begins unless given.

        Raises:
            NothingToRollBackTo: no earlier version loads; `evidence` says why for each.
            ArtefactPinned: the name is pinned.
            CurrentChanged: another version became current meanwhile.
        """
        before = self._expected(name, expected)
        if before is None:
            raise NothingCurrent(f"no version of {name} is current")
        _require_unpinned(before)
        reasons = []
        for version in self.succession(name)[1:]:
            artefact = self.get(Reference(name=name, version=version))
            try:
                self._gate.admit(artefact)
            except PodiumError as error:
                reasons.append(f"{artefact.reference}: {error.code}: {error.message}")
                continue
            return self._move(name, before, "rollback", version, who)
        raise NothingToRollBackTo(f"{name} has no earlier version that loads", evidence=reasons)

    def pin(self, name: Name, *, who: Who, expected: str | None = None) -> Current:
        """Keep the current version from being promoted over or rolled back; pinning twice changes nothing.

        Raises:
            NothingCurrent: no version was promoted yet.
            CurrentChanged: `expected` is given and not current.
        """
        return self._set_pin(name, "pin", who, expected)

    def unpin(self, name: Name, *, who: Who, expected: str | None = None) -> Current:
        """Let the current version move again; unpinning twice changes nothing.

        Raises:
            NothingCurrent: no version was promoted yet.
            CurrentChanged: `expected` is given and not current.
        """
        return self._set_pin(name, "unpin", who, expected)

    # Loading and checking.

    def load(self, artefact: Artefact) -> VerifiedContent:
        """The content of an artefact, sealed: hashed just now, and somebody who is trusted now answers for it.

        Raises:
            ArtefactUnsigned, ArtefactUntrusted, ArtefactCorrupt: it must not be loaded.
            ModelError: it comes from a package, and the committed list does not allow it.
        """
        return self._loader.load(artefact)

    def require_trusted(self, artefact: Artefact) -> None:
        """Return only if somebody who is trusted now answers for the artefact; see `Loader.require_trusted`."""
        self._loader.require_trusted(artefact)

    def is_trusted(self, artefact: Artefact) -> bool:
        """Whether somebody who is trusted now answers for the artefact."""
        try:
            self._loader.require_trusted(artefact)
        except PodiumError:
            return False
        return True

    def inspection(self, artefact: Artefact) -> Inspection | None:
        """What an ONNX file is, or None for content of another type.

        Raises:
            ModelRefused and the errors of `load`.
        """
        return self._gate.look(artefact)

    def fault(self, artefact: Artefact) -> PodiumError | None:
        """Why an artefact would not load now, or None; hashes its bytes."""
        return self._loader.fault(artefact)

    def names(self) -> tuple[Name, ...]:
        """Every name that has a version."""
        with self._database.reading() as connection:
            return rows.names(connection)

    def moves(self, name: Name) -> tuple[Current | None, tuple[Change, ...]]:
        """What is stored as current, and the changes that led there, of one moment."""
        with self._database.reading() as connection:
            return rows.current(connection, name), rows.changes(connection, name)

    def stored_hashes(self) -> frozenset[str]:
        """Every hash that a file is stored for."""
        return frozenset(self._files.hashes())

    def _artefact(
        self,
        description: Description,
        sha256: str,
        size_bytes: int,
        package_model: str,
        who: Who,
        signatures: tuple[Signature, ...],
    ) -> Artefact:
        if description.reference in description.parents:
            raise ArtefactInvalid(f"{description.reference} cannot be its own parent", field="parents")
        return Artefact(
            description=description,
            sha256=sha256,
            size_bytes=size_bytes,
            package_model=package_model,
            created_by=who.name,
            created_at=self._clock(),
            note=who.why,
            signatures=signatures,
        )

    def _insert(self, new: Artefact, who: Who) -> Artefact:
        with self._database.writing() as connection:
            known = rows.artefact(connection, new.reference)
            if known is None:
                rows.insert_artefact(connection, new)
            elif known.statement != new.statement or known.package_model != new.package_model:
                raise ArtefactExists(f"{new.reference} exists with other content", field="version")
            rows.insert_signatures(connection, new.reference, new.signatures, who.name, new.created_at)
        return self.get(new.reference)

    def _expected(self, name: Name, expected: str | None) -> Current | None:
        found = self.current(name)
        if expected is not None and (found is None or found.version != expected):
            now = "no version" if found is None else found.version
            raise CurrentChanged(f"{now} of {name} is current, not {expected}")
        return found

    def _set_pin(self, name: Name, action: str, who: Who, expected: str | None) -> Current:
        before = self._expected(name, expected)
        if before is None:
            raise NothingCurrent(f"no version of {name} is current")
        if before.pinned == (action == "pin"):
            return before
        return self._move(name, before, action, before.version, who)

    def _move(self, name: Name, before: Current | None, action: str, version: str, who: Who) -> Current:
        with self._database.writing() as connection:
            found = rows.current(connection, name)
            if found != before:
                now = "no version" if found is None else f"{found.version} (change {found.sequence})"
                raise CurrentChanged(f"{now} of {name} became current meanwhile")
            return rows.move(connection, name, before, action=action, version=version, who=who, at=self._clock())


def _require_unpinned(current: Current | None) -> None:
    if current is not None and current.pinned:
        raise ArtefactPinned(f"{current.name} is pinned to {current.version}")
