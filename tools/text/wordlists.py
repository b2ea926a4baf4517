"""The built-in word lists of tools/text/data, read once."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_DATA = Path(__file__).with_name("data")


@cache
def base_language() -> dict[str, Any]:
    """Comparison, direction and period words of any business request, in the form of a vocabulary."""
    language: dict[str, Any] = _load("language.yaml")
    return language


@cache
def ordinary_words() -> tuple[str, ...]:
    """Words and phrases that carry no condition ("please", 请帮我看一下)."""
    lists = _load("ordinary.yaml")
    phrases = (line.strip() for line in lists["en_phrases"].splitlines())
    return (*lists["zh"].split(), *lists["en_words"].split(), *filter(None, phrases))


@cache
def unknown_terms() -> tuple[tuple[str, str], ...]:
    """Pairs of a kind guess and a word that means something no base vocabulary covers ("profit")."""
    return tuple(_terms(_load("terms.yaml")))


@cache
def unknown_places() -> tuple[str, ...]:
    """Names of places the world has, whether or not a pack knows them."""
    lines = (_DATA / "places.txt").read_text(encoding="utf-8").splitlines()
    return tuple(name.strip() for line in lines if line and not line.startswith("#") for name in line.split(","))


@cache
def simplified_characters() -> dict[int, int]:
    """For `str.translate`: traditional Chinese characters to simplified ones, each to one."""
    lines = (_DATA / "traditional.txt").read_text(encoding="utf-8").splitlines()
    pairs = "".join(line for line in lines if not line.startswith("#"))
    return {ord(written): ord(plain) for written, plain in zip(pairs[::2], pairs[1::2], strict=True)}


def _terms(kinds: dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    for kind, languages in kinds.items():
        for words in languages.values():
            for word in words.split():
                yield kind, word.replace("_", " ")


def _load(name: str) -> Any:
    return yaml.safe_load((_DATA / name).read_text(encoding="utf-8"))
