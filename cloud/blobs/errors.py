"""What may be wrong with an upload."""

from podium.errors import Conflict, DataCorrupt, InvalidRequest, TimeLimitExceeded


class UploadOffsetWrong(Conflict):
    """A chunk does not start where the stored bytes end."""

    code = "UPLOAD_OFFSET_WRONG"
    advice = "Call Stat and send the bytes from committed_bytes on."


class UploadSuperseded(Conflict):
    """Another upload of the same blob has taken over."""

    code = "UPLOAD_SUPERSEDED"
    advice = "Call Stat: the other upload may have finished; otherwise go on from committed_bytes."


class UploadIncomplete(InvalidRequest):
    """The stream of chunks ended early."""

    code = "UPLOAD_INCOMPLETE"
    advice = "Call Stat and send the bytes from committed_bytes on."


class UploadTooSlow(TimeLimitExceeded):
    """Hardly any bytes of an upload came for minutes, so that the server let go of it."""

    code = "UPLOAD_TOO_SLOW"
    advice = "Call Stat and send the bytes from committed_bytes on, in smaller chunks where the line is slow."


class ChunkDamaged(DataCorrupt):
    """The bytes of a chunk are not those that its CRC-32 was made from; nothing of it was stored."""

    code = "CHUNK_DAMAGED"
    retryable = True
    advice = "Call Stat and send the bytes from committed_bytes on; clients of Podium do so by themselves."


class HashMismatch(DataCorrupt):
    """The uploaded bytes are not those that the hash names."""

    code = "HASH_MISMATCH"
    advice = "Compute the SHA-256 anew and send the whole file again from offset 0."
