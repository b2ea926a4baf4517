"""A JSON document kept as its canonical bytes and decoded at most once."""

import hashlib
import json
from typing import Any

from agents.canonical import canonical_json
from podium.errors import DataCorrupt


class JsonDocument:
    """Canonical JSON with its decoded value; treat the value as read-only.

    Logs hold bytes, agents want values: decoding waits until somebody asks, and happens once.
    """

    __slots__ = ("_decoded", "_value", "data")

    def __init__(self, data: bytes) -> None:
        """Hold bytes that are expected to be JSON."""
        self.data = data
        self._decoded = False
        self._value: Any = None

    @classmethod
    def of(cls, value: Any) -> "JsonDocument":
        """The document of a value that is already at hand.

        Raises:
            ValueError: the value holds NaN, infinity or a lone surrogate.
            TypeError: the value is not JSON.
        """
        return cls.written(value, canonical_json(value))

    @classmethod
    def written(cls, value: Any, data: bytes) -> "JsonDocument":
        """The document of a value and its canonical JSON, both at hand."""
        document = cls(data)
        document._value, document._decoded = value, True
        return document

    @property
    def value(self) -> Any:
        """The decoded value.

        Raises:
            DataCorrupt: the bytes are not JSON.
        """
        if not self._decoded:
            try:
                self._value = json.loads(self.data)
            except (ValueError, RecursionError) as error:
                raise DataCorrupt(f"an event holds bytes that are not JSON: {error}") from error
            self._decoded = True
        return self._value

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonDocument) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"JsonDocument({len(self.data)} bytes)"
