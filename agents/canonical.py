"""The one byte form of a JSON value, so that a hash names the value and not its spelling."""

import hashlib
import json
from typing import Any

# json.dumps would make an encoder at each call, and a task writes JSON some twenty times.
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no spaces, UTF-8.

    Raises:
        ValueError: the value holds NaN, infinity, a lone surrogate or a cycle.
        TypeError: the value is not JSON.
    """
    return _ENCODER.encode(value).encode("utf-8")


def sha256_of(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal; raises as `canonical_json`."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
