"""The files of batch planning: rows in, plans out, and the decisions that made them where they are asked for.

A row is `{"id", "request"[, "tools"]}` and nothing else. A row with another key, such as one that carries steps,
fails the whole file before anything is planned.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from conductor.policy.batch import BatchPlan, BatchRow
from conductor.policy.cards import ToolCard, ToolCardInvalid
from conductor.policy.decisions import decisions_row
from conductor.policy.drafting import Links
from podium.errors import InvalidRequest

LONGEST_REQUEST = 20_000
"""Characters of one request."""
_LONGEST_LINE = 16 * 2**20
_MOST_TOOLS = 20_000
_ROW_KEYS = frozenset({"id", "request", "tools"})
_REGISTRY_KEYS = frozenset({"tools", "links"})


class BatchInvalid(InvalidRequest):
    """A file of batch planning that has another form; the message names the line and the key."""

    code = "BATCH_INVALID"
    advice = 'Give one {"id", "request"[, "tools"]} a line and no other key; a tool has a name and a description.'


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTools:
    """The tools that rows without tools of their own are planned over."""

    cards: tuple[ToolCard, ...]
    links: Links | None
    """None when the file says nothing of which tool may follow which."""


def read_rows(path: Path) -> tuple[BatchRow, ...]:
    """Every row of a file.

    Raises:
        BatchInvalid: the file cannot be read, or a line has another form.
    """
    found: list[BatchRow] = []
    known: dict[str, ToolCard] = {}
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            found.append(_row(_parsed(line, f"{path}:{number}"), f"{path}:{number}", known))
    return tuple(found)


def read_tools(path: Path) -> BatchTools:
    """The tools and links of a `--tools` file.

    Raises:
        BatchInvalid: the file cannot be read or has another form.
    """
    value = _parsed(b"".join(_lines(path, longest=64 * _LONGEST_LINE)), str(path))
    if unknown := sorted(set(value) - _REGISTRY_KEYS):
        _refuse(str(path), unknown[0], f"has the unknown key {unknown[0]!r}")
    cards = _cards(value.get("tools"), str(path), {})
    links = value.get("links", [])
    if not isinstance(links, list) or not all(
        isinstance(link, list) and len(link) == 2 and all(isinstance(name, str) for name in link) for link in links
    ):
        _refuse(str(path), "links", "links is no list of [tool, tool that may follow it]")
    allowed = frozenset((first, second) for first, second in links)
    return BatchTools(cards=cards, links=allowed or None)


def write_plans(path: Path, plans: Iterable[BatchPlan], *, decisions: Path | None = None) -> int:
    """Write plans, one a line; the file is there whole or not at all.

    Args:
        path: Where the plans go.
        plans: What is written.
        decisions: Where the decisions go that made them, those of one plan a line; there before the plans are.

    Returns:
        How many there were.

    Raises:
        BatchInvalid: a file cannot be written, or a plan has no JSON form.
    """
    count = 0
    with ExitStack() as stack:
        out = stack.enter_context(_WholeFile(path, "out"))
        chosen = stack.enter_context(_WholeFile(decisions, "decisions")) if decisions is not None else None
        for plan in plans:
            out.write(_written(plan.to_json(), plan, "out"))
            if chosen is not None:
                chosen.write(_written(decisions_row(plan.decisions, plan=plan.id), plan, "decisions"))
            count += 1
        out.finish()
        if chosen is not None:
            chosen.finish()
            chosen.appear()
        out.appear()
    return count


def require_apart(out: Path, *others: Path | None, field: str = "out") -> None:
    """Return only if what is written takes the place of nothing that is read or written besides.

    Args:
        out: Where something is written.
        others: What else is read or written; None for what is not there.
        field: What `out` is called in the error.

    Raises:
        BatchInvalid: `out` is one of the others.
    """
    for path in others:
        if path is None:
            continue
        if path.resolve() == out.resolve() or (path.exists() and out.exists() and path.samefile(out)):
            _refuse(str(out), field, "is named for something else as well; what is written would take its place")


class _WholeFile:
    """A file that takes its place when all of it is written, and leaves nothing behind otherwise."""

    def __init__(self, path: Path, field: str) -> None:
        self._path = path
        self._field = field

    def __enter__(self) -> Self:
        try:
            self._target = self._path.resolve()
            if self._target.exists() and not self._target.is_file():
                _refuse(str(self._path), self._field, "is no file that could be written")
            # A name of its own: two commands with one OUT must not write into each other.
            handle, name = tempfile.mkstemp(
                prefix=f".{self._target.name}.", suffix=".partial", dir=self._target.parent
            )
            self._scratch = Path(name)
            self._file = open(handle, "w", encoding="utf-8")
        except OSError as error:
            self._unwritable(error)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        except OSError as error:
            self._unwritable(error)
        finally:
            self._scratch.unlink(missing_ok=True)

    def write(self, line: str) -> None:
        """Add a line."""
        try:
            self._file.write(line + "\n")
        except OSError as error:
            self._unwritable(error)

    def finish(self) -> None:
        """See to it that everything is on the disk."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._scratch.chmod(0o666 & ~_umask())
        except OSError as error:
            self._unwritable(error)

    def appear(self) -> None:
        """Take the place; nothing is written after that."""
        try:
            self._scratch.replace(self._target)
        except OSError as error:
            self._unwritable(error)

    def _unwritable(self, error: OSError) -> NoReturn:
        raise BatchInvalid(f"{self._path}: cannot be written: {error.strerror}", field=self._field) from error


def _written(value: Mapping[str, Any], plan: BatchPlan, field: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        _refuse(f"the plan of {plan.id!r}", field, f"has no JSON form: {error}")


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current


def _lines(path: Path, *, longest: int = _LONGEST_LINE) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    _refuse(f"{path}:{number}", "request", f"is longer than {longest} bytes")
                yield line
    except OSError as error:
        _refuse(str(path), "in", f"cannot be read: {error.strerror}")


def _parsed(line: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_no_number, object_pairs_hook=_object)
        # A lone surrogate is no text: nothing could be made of it or written about it.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        _refuse(place, "", f"is no JSON: {str(error)[:200]}")
    if not isinstance(value, dict):
        _refuse(place, "", "is no JSON object")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    names = [name for name, _ in pairs]
    if len(found) < len(names):
        for key in _ROW_KEYS:
            if names.count(key) > 1:
                raise ValueError(f"the key {key!r} stands there twice")
    return found


def _row(value: Mapping[str, Any], place: str, known: dict[str, ToolCard]) -> BatchRow:
    if unknown := sorted(set(value) - _ROW_KEYS):
        _refuse(place, unknown[0], f"has the unknown key {unknown[0]!r}")
    key, request = value.get("id"), value.get("request")
    if isinstance(key, bool) or not isinstance(key, str | int | float):
        _refuse(place, "id", "has no id that is a number or a text")
    if not isinstance(request, str) or not request.strip():
        _refuse(place, "request", "has no request")
    if len(request) > LONGEST_REQUEST:
        _refuse(
            place, "request", f"has a request of {len(request)} characters; at most {LONGEST_REQUEST} are read"
        )
    tools = _cards(value["tools"], place, known) if "tools" in value else None
    return BatchRow(id=key, request=request, tools=tools)


def _cards(value: Any, place: str, known: dict[str, ToolCard]) -> tuple[ToolCard, ...]:
    """The cards; equal ones once, in the row and in memory, so that what is computed of them is as well."""
    if not isinstance(value, list) or len(value) > _MOST_TOOLS:
        _refuse(place, "tools", f"tools is no list of at most {_MOST_TOOLS}")
    try:
        cards = [ToolCard.from_json(item) for item in value]
        own = {card.key: known.setdefault(card.key, card) for card in cards}
        return tuple(own.values())
    except ToolCardInvalid as error:
        raise BatchInvalid(f"{place}: {error.message}", field=error.field) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise BatchInvalid(f"{place}: a tool is not usable: {error}", field="tools") from error


def _refuse(place: str, field: str, message: str) -> NoReturn:
    raise BatchInvalid(f"{place}: {message}", field=field)
