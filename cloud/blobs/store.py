"""The blobs of one data directory: stored, read, referred to and removed, by one process at a time."""

import asyncio
import hashlib
import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cloud.auth.ownership import reads_all_blobs
from cloud.auth.principal import Principal
from cloud.auth.quotas import Quotas
from cloud.blobs.files import BlobFiles, checked_sha256, partial_name
from cloud.blobs.index import FILE_NAME, RECOVERED, Amount, BlobIndex
from cloud.blobs.room import BlobLimits, Room, no_quotas
from cloud.blobs.uploads import CHUNK_BYTES, Upload
from podium.errors import DataCorrupt, InvalidRequest, NotFound

_LOG = logging.getLogger(__name__)

_ABANDONED_AFTER = timedelta(days=1)
_QUOTA_PERIOD = timedelta(days=1)
_REMEMBERED_HASHES = 1000
_BATCH = 100
_BOOT = "boot"
_REFERENCES = "references"
_KNOWN = "known"
_TO_RECOVER = "to recover"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobState:
    """How much of a blob is stored, as far as whoever asks may know."""

    committed_bytes: int
    complete: bool


def machine_boot() -> str:
    """Names the present run of this machine's kernel; '' where it does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


class BlobStore:
    """Bytes by their hash. What a caller may know of them: what it stored, and what its own tasks refer to."""

    def __init__(
        self,
        folder: Path,
        limits: BlobLimits,
        *,
        clock: Callable[[], datetime],
        quotas: Quotas | None = None,
        boot: str | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the store, making its folder.

        Args:
            folder: where it lies; the data directory is locked.
            limits: for everybody.
            clock: the present moment in UTC.
            quotas: of each caller; none when None.
            boot: names the present run of the kernel; bytes written in an earlier one count only as far as they
                were pressed to disk.
            monotonic_s: seconds that never go back nor jump, as the clock may.
        """
        self._files = BlobFiles(folder)
        self._index = BlobIndex(folder / FILE_NAME)
        self._clock = clock
        self._room = Room(limits, quotas or no_quotas())
        self._monotonic_s = monotonic_s
        self._left_s: dict[str, float] = {}
        """Holders of this process that are neither settled nor released, and since when nobody works on them."""
        self._live: dict[str, Upload] = {}
        self._hashes: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        """Of unfinished uploads: hashed bytes and their hash, so that breaks do not cost reading all anew."""
        self._lock = threading.Lock()
        """Over the names on disk and their rows: storing, referring and removing happen one after the other."""
        try:
            self._settle_partials(machine_boot() if boot is None else boot)
            self._settle_blobs()
        except BaseException:
            self._index.close()
            raise

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    @property
    def stored_bytes(self) -> int:
        """Bytes of all whole blobs."""
        return self._room.stored_bytes

    async def state(self, sha256: str, principal: Principal) -> BlobState:
        """How much of a blob is stored; 0 bytes when nothing is, or nothing that this caller may know of.

        Raises:
            InvalidRequest: not a SHA-256.
        """
        return await asyncio.to_thread(self._state, checked_sha256(sha256, "sha256"), principal)

    async def start(self, sha256: str, size_bytes: int, principal: Principal, *, media: str = "") -> Upload:
        """Begin an upload or go on with one; it takes over from any other of the same blob and caller.

        Raises:
            InvalidRequest: not a SHA-256, an empty blob, or another size than the stored one has.
            LimitExceeded: too large, alone, or together with what is stored or being sent; the limit is named.
        """
        checked_sha256(sha256, "blob.sha256")
        self._room.check_size(size_bytes)
        return await asyncio.to_thread(self._start, sha256, size_bytes, principal, media)

    async def check_readable(self, sha256: str, principal: Principal) -> None:
        """Let only those read a blob who may.

        Raises:
            InvalidRequest: not a SHA-256.
            NotFound: it is not stored, or another's; in the same words.
        """
        if not (await self.state(sha256, principal)).complete:
            raise _missing(sha256)

    async def read(self, sha256: str, *, offset_bytes: int = 0) -> AsyncIterator[bytes]:
        """A whole blob's bytes from an offset in pieces of `CHUNK_BYTES`; read from 0, its hash is checked again.

        Raises:
            InvalidRequest: not a SHA-256, or an offset past the end.
            NotFound: there is no such blob, or it is not whole yet.
            DataCorrupt: what is on the disk is not what was stored; raised after the last piece.
        """
        checked_sha256(sha256, "sha256")
        try:
            file = await asyncio.to_thread(self._files.open, sha256)
        except FileNotFoundError as error:
            raise _missing(sha256) from error
        with file:
            size_bytes = os.fstat(file.fileno()).st_size
            if offset_bytes > size_bytes:
                raise InvalidRequest(
                    f"offset {offset_bytes} is past the end at {size_bytes}", field="offset_bytes"
                )
            file.seek(offset_bytes)
            digest = hashlib.sha256()
            while piece := await asyncio.to_thread(file.read, CHUNK_BYTES):
                digest.update(piece)
                yield piece
        if offset_bytes == 0 and digest.hexdigest() != sha256:
            raise DataCorrupt(f"blob {sha256} has changed on the disk since it was stored")

    async def hold(self, holder: str, hashes: Iterable[str], *, caller: str) -> None:
        """Refer to blobs on behalf of a task that is about to be accepted; `leave` after that, `settle` if it was.

        A reference that is never settled goes once it is known that there is no such task; not before `leave`,
        whatever the clock says.

        Raises:
            NotFound: one of them is gone; nothing is referred to.
        """
        await asyncio.to_thread(self._hold, holder, frozenset(hashes), caller)

    def leave(self, holder: str) -> None:
        """Accepting the task was tried, with whatever end: from now on the collector may ask what became of it."""
        if holder in self._left_s:
            self._left_s[holder] = self._monotonic_s()

    async def settle(self, holder: str) -> None:
        """The task that refers to blobs was accepted."""
        await asyncio.to_thread(self._index.settle, holder)
        self._left_s.pop(holder, None)

    async def release(self, holder: str) -> None:
        """A holder refers to nothing any more."""
        await asyncio.to_thread(self._index.release, holder)
        self._left_s.pop(holder, None)

    async def pending(self, left_for: timedelta) -> list[str]:
        """Holders that were neither settled nor released, and that nobody has worked on for so long.

        Those of an earlier process are all among them. Time is not told by the clock: one that jumps ahead would
        end references under the hands of who accepts the task.
        """
        before_s = self._monotonic_s() - left_for.total_seconds()
        pending = await asyncio.to_thread(self._index.pending)
        return [holder for holder in pending if self._left_s.get(holder, -math.inf) <= before_s]

    async def must_recover(self) -> bool:
        """Whether the references were lost, with the index or because there was none yet."""
        return await asyncio.to_thread(self._index.note, _REFERENCES) != _KNOWN

    async def recover(self, holder: str, hashes: Iterable[str], *, caller: str) -> None:
        """Note again what an accepted task refers to."""
        await asyncio.to_thread(self._index.hold, holder, list(hashes), caller=caller, pending_s=None)

    async def recovered(self) -> None:
        """All tasks' references are known again; what was held because they were not is let go."""
        await asyncio.to_thread(self._index.release, RECOVERED)
        await asyncio.to_thread(self._index.write_note, _REFERENCES, _KNOWN)

    async def unused(self, before: datetime) -> Amount:
        """What nothing refers to and nobody asked for since a moment."""
        return await asyncio.to_thread(self._index.unused, before.timestamp())

    async def total(self) -> Amount:
        """All whole blobs."""
        return await asyncio.to_thread(self._index.total)

    async def remove_unused(self, before: datetime) -> Amount:
        """Remove some of the blobs that `unused` counts; none when there are no more."""
        return await asyncio.to_thread(self._remove_unused, before.timestamp())

    async def remove_abandoned(self) -> int:
        """Remove unfinished uploads that nobody wrote to for a day; how many."""
        return await asyncio.to_thread(self._remove_abandoned)

    def note_synced(self, upload: Upload, synced_bytes: int) -> None:
        """For `Upload`: so many of its bytes are on disk."""
        self._index.note_synced(upload.name, synced_bytes)

    def keep(self, upload: Upload) -> None:
        """For `Upload`: its file is checked and synced; give it its name and its rows."""
        now_s = self._clock().timestamp()
        with self._lock:
            was_there = self._files.size(upload.sha256) is not None
            # Also over one that is there: that may have changed on the disk, this was just checked.
            self._files.keep(upload.name, upload.sha256)
            if not was_there:
                self._room.stored_bytes += upload.size_bytes
            self._index.add(
                upload.sha256,
                size_bytes=upload.size_bytes,
                media=upload.media,
                caller=upload.caller,
                now_s=now_s,
            )

    def let_go(self, upload: Upload, left_bytes: int, digest: Any) -> None:
        """For `Upload`: it ended with so many bytes left in its file; they count until they are removed."""
        with self._lock:
            del self._live[upload.name]
            if left_bytes:
                self._room.reserved[upload.name] = left_bytes
                self._hashes[upload.name] = (left_bytes, digest)
                if len(self._hashes) > _REMEMBERED_HASHES:
                    self._hashes.popitem(last=False)
            else:
                self._drop_partial(upload.name)

    def _drop_partial(self, name: str) -> None:
        self._room.reserved.pop(name, None)
        self._hashes.pop(name, None)
        self._files.remove_partial(name)
        self._index.end_upload(name)

    def _state(self, sha256: str, principal: Principal) -> BlobState:
        size_bytes = self._files.size(sha256)
        if size_bytes is not None and self._may_read(sha256, principal):
            self._index.touch(sha256, self._clock().timestamp())
            return BlobState(committed_bytes=size_bytes, complete=True)
        partial_bytes = self._files.partial_size(partial_name(sha256, principal.caller))
        return BlobState(committed_bytes=partial_bytes, complete=False)

    def _may_read(self, sha256: str, principal: Principal) -> bool:
        return reads_all_blobs(principal) or self._index.may_read(sha256, principal.caller)

    def _start(self, sha256: str, size_bytes: int, principal: Principal, media: str) -> Upload:
        name = partial_name(sha256, principal.caller)
        while True:
            with self._lock:
                live = self._live.get(name)
                if live is None:
                    upload = self._new_upload(name, sha256, size_bytes, principal, media)
                    known = self._hashes.pop(name, None)
                    break
            # The older stream is most likely dead and does not know it yet: its device came back elsewhere.
            live.supersede()
        if not upload.complete:
            try:
                upload.catch_up(known)
            except BaseException:
                upload.supersede()
                raise
        return upload

    def _new_upload(self, name: str, sha256: str, size_bytes: int, principal: Principal, media: str) -> Upload:
        stored = self._files.size(sha256)
        if stored is not None and self._may_read(sha256, principal):
            file = None
            self._own(sha256, stored, size_bytes, principal, media)
        else:
            self._room.check_upload(name, principal, self._stored_today(principal), size_bytes)
            file = self._files.open_partial(name)
            self._room.reserved[name] = size_bytes
        upload = Upload(
            self, name, sha256=sha256, size_bytes=size_bytes, media=media, caller=principal.caller, file=file
        )
        if file is not None:
            self._live[name] = upload
        return upload

    def _stored_today(self, principal: Principal) -> int:
        # What a task refers to stays as long as the task's log: a quota on all of it would run out for good, and
        # with it what a device sees.
        since = self._clock() - _QUOTA_PERIOD
        return self._index.bytes_stored_since(since.timestamp(), principal.caller)

    def _own(self, sha256: str, stored: int, size_bytes: int, principal: Principal, media: str) -> None:
        """Make a caller that may read a blob anyhow one of its owners."""
        if stored != size_bytes:
            raise InvalidRequest(
                f"the blob {sha256} has {stored} bytes, not {size_bytes}", field="blob.size_bytes"
            )
        if not self._index.owns(sha256, principal.caller):
            self._room.check_share(principal, self._stored_today(principal), size_bytes)
        now_s = self._clock().timestamp()
        self._index.add(sha256, size_bytes=stored, media=media, caller=principal.caller, now_s=now_s)

    def _hold(self, holder: str, hashes: frozenset[str], caller: str) -> None:
        with self._lock:
            for sha256 in hashes:
                if self._files.size(sha256) is None:
                    raise _missing(sha256)
            self._left_s[holder] = math.inf
            try:
                self._index.hold(holder, hashes, caller=caller, pending_s=self._clock().timestamp())
            except BaseException:
                del self._left_s[holder]
                raise

    def _remove_unused(self, before_s: float) -> Amount:
        with self._lock:
            found = self._index.forget_unused(before_s, limit=_BATCH)
            for sha256, size_bytes in found:
                self._files.remove(sha256)
                self._room.stored_bytes -= size_bytes
        return Amount(count=len(found), total_bytes=sum(size for _, size in found))

    def _remove_abandoned(self) -> int:
        oldest_s = (self._clock() - _ABANDONED_AFTER).timestamp()
        removed = 0
        with self._lock:
            for name, _, written_s in self._files.partials():
                if written_s < oldest_s and name not in self._live:
                    self._drop_partial(name)
                    removed += 1
        return removed

    def _settle_partials(self, boot: str) -> None:
        """Cut what a power cut may have spoilt, and count what is left."""
        if not boot or self._index.note(_BOOT) != boot:
            synced = self._index.synced()
            for name, _, _ in self._files.partials():
                self._files.truncate_partial(name, synced.get(name, 0))
            self._index.write_note(_BOOT, boot)
        self._remove_abandoned()
        for name, size_bytes, _ in self._files.partials():
            if size_bytes:
                self._room.reserved[name] = size_bytes
            else:
                self._drop_partial(name)
        for name in self._index.synced().keys() - self._room.reserved.keys():
            self._index.end_upload(name)

    def _settle_blobs(self) -> None:
        """Make index and disk agree, as they may not after a crash."""
        on_disk = dict(self._files.blobs())
        self._room.stored_bytes = sum(on_disk.values())
        known = self._index.note(_REFERENCES)
        if not known and not on_disk:
            known = _KNOWN
        holder = "" if known == _KNOWN else RECOVERED
        self._index.reconcile(on_disk, now_s=self._clock().timestamp(), holder=holder)
        self._index.write_note(_REFERENCES, known or _TO_RECOVER)


def _missing(sha256: str) -> NotFound:
    return NotFound(f"there is no blob {sha256}", next_step="Upload it first, or check the hash.")
