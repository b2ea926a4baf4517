"""Which examples train, which select and which are kept for the reported figures; fixed before the first training.

An example's part follows from SHA-256 alone, so a new reader, another order or more data move nothing. UltraTool
has two kept parts: requests whose set of tools never occurs in training (`disjoint`), and random ones. What is
reported was never trained on and never used to choose anything; choices are made on the `select` parts.
"""

import hashlib
from collections.abc import Iterable
from typing import Literal

from conductor.training.examples import Example

Part = Literal["train", "select", "select_disjoint", "dev", "dev_disjoint"]


def part_of(example: Example) -> Part:
    """The part an example belongs to."""
    if example.source == "ultratool":
        return _ultratool(example)
    share = _share(f"{example.source}/{example.id}")
    if example.source == "nestools":
        return "dev" if share < 0.20 else "select" if share < 0.30 else "train"
    if example.source == "bfcl/multiple":
        return "dev" if share < 0.40 else "select" if share < 0.55 else "train"
    if example.source.startswith("written/"):
        return "dev" if share < 0.10 else "select" if share < 0.15 else "train"
    return "dev" if share < 0.08 else "select" if share < 0.13 else "train"


def members(examples: Iterable[Example], *parts: Part) -> tuple[Example, ...]:
    """Those of the parts, in their order."""
    return tuple(example for example in examples if part_of(example) in parts)


def _ultratool(example: Example) -> Part:
    by_set = _share("ultratool set " + " ".join(sorted(example.tool_set)))
    if by_set < 0.10:
        return "dev_disjoint"
    if by_set < 0.18:
        return "select_disjoint"
    share = _share(f"ultratool/{example.id}")
    return "dev" if share < 0.09 else "select" if share < 0.15 else "train"


def _share(key: str) -> float:
    """A number in [0, 1) that depends on the key alone."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
