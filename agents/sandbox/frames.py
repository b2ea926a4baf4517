"""How server, warden and agent speak: four bytes of length (big-endian), then that much JSON.

Between server and warden a message is a header of that form, followed by as many raw bytes as its
`payload_bytes` says.
"""

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

LENGTH = struct.Struct(">I")
MAX_HEADER_BYTES = 1_000_000


class StreamEnded(Exception):
    """The other side has closed."""


def message(header: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """A message between server and warden."""
    data = json.dumps({**header, "payload_bytes": len(payload)}).encode("utf-8")
    return LENGTH.pack(len(data)) + data + payload


def read_message(fd: int) -> tuple[dict[str, Any], bytes]:
    """Wait for a whole message.

    Raises:
        StreamEnded: the other side closed before it was whole.
    """
    (size,) = LENGTH.unpack(read_exactly(fd, LENGTH.size))
    header = json.loads(read_exactly(fd, size))
    return header, read_exactly(fd, header["payload_bytes"])


def read_exactly(fd: int, size: int) -> bytes:
    """Wait for this many bytes; raises StreamEnded."""
    parts: list[bytes] = []
    while size > 0:
        part = os.read(fd, min(size, 1 << 16))
        if not part:
            raise StreamEnded
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write everything, waiting as long as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
