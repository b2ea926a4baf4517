"""A tool's fields as the filler reads them: its texts, which pieces belong to which field, their vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from conductor.policy.cards import ToolCard
from conductor.policy.parts import BOTTOM, WIDTH, Floats, PartRunner
from conductor.policy.tokens import TokenBatch, Tokens
from conductor.policy.values.fields import InputField, input_fields, type_of, words_of

TOOL = "fill_tool"
"""Part: `states` [texts, length, WIDTH], `mask` [texts, length] int64 and `pool` [texts, rows, length], the
weights of the pieces in each row, to `vectors` [texts, rows, WIDTH]."""
_LONGEST_DESCRIPTION = 240
_LONGEST_TEXT = 640
_BATCH = 16
MAX_FIELDS = 128
"""Inputs, and outputs, of one tool that are read."""


@dataclass(frozen=True, kw_only=True)
class OutputField:
    """One field of what a tool returns."""

    name: str
    type: str
    words: str
    description: str

    @cached_property
    def bag(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(self.words.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTexts:
    """What is read of a tool: texts, and rows of characters to be pooled, each (text, [(start, end, weight)])."""

    inputs: tuple[InputField, ...]
    outputs: tuple[OutputField, ...]
    texts: tuple[str, ...]
    rows: tuple[tuple[int, tuple[int, int]], ...]
    """Two for the tool (name, description), two for each input and each output, then one for each option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFields:
    """A tool with the vectors of its fields."""

    inputs: tuple[InputField, ...]
    outputs: tuple[OutputField, ...]
    vectors: Floats
    """[1 + inputs + outputs, 2, WIDTH]: the tool, then its fields, each by name and by description."""
    options: tuple[Floats, ...]
    """For each input [options, WIDTH]."""


def tool_texts(card: ToolCard) -> ToolTexts:
    """What is read of `card`; long lists of fields go into several texts that all begin with the tool's name."""
    inputs = _most_needed(input_fields(card.input_schema))
    outputs = tuple(
        OutputField(
            name=name,
            type=type_of(schema),
            words=words_of(name),
            description=str(schema.get("description", "")),
        )
        for name, schema in tuple(card.outputs.items())[:MAX_FIELDS]
    )
    writer = _Writer(words_of(card.name), card.description)
    for field in inputs:
        writer.add_input(field)
    for output in outputs:
        writer.add(f"returns {output.words}", f"({output.type}) {output.description[:_LONGEST_DESCRIPTION]}")
    return ToolTexts(
        inputs=inputs, outputs=outputs, texts=tuple(writer.texts), rows=(*writer.rows, *writer.option_rows)
    )


def _most_needed(fields: tuple[InputField, ...]) -> tuple[InputField, ...]:
    """At most `MAX_FIELDS` in their order, the required ones before the others."""
    if len(fields) <= MAX_FIELDS:
        return fields
    chosen = sorted(range(len(fields)), key=lambda index: (not fields[index].required, index))[:MAX_FIELDS]
    return tuple(fields[index] for index in sorted(chosen))


class _Writer:
    """Writes texts of limited length and notes where things stand."""

    def __init__(self, name: str, description: str) -> None:
        self.texts: list[str] = [""]
        self.rows: list[tuple[int, tuple[int, int]]] = []
        self.option_rows: list[tuple[int, tuple[int, int]]] = []
        self._name = name
        self.add(name, description[:_LONGEST_DESCRIPTION])

    def add(self, name: str, description: str) -> int:
        """Append one field; returns where its description starts."""
        if len(self.texts[-1]) + len(name) + len(description) > _LONGEST_TEXT and self.texts[-1]:
            self.texts.append(self._name)
        text = self.texts[-1]
        start = len(text) + 3 if text else 0
        middle, index = start + len(name), len(self.texts) - 1
        begin = middle + 2
        self.texts[-1] = f"{text} | {name}: {description}" if text else f"{name}: {description}"
        self.rows.append((index, (start, middle)))
        self.rows.append((index, (begin, begin + len(description)) if description.strip() else (start, middle)))
        return begin

    def add_input(self, field: InputField) -> None:
        """Append an input with its options."""
        kind = f"({field.type}{' of ' + field.item_type if field.item_type else ''}) "
        text = kind + field.description[:_LONGEST_DESCRIPTION]
        places: list[tuple[int, int]] = []
        if field.options:
            text += " options:"
            for option in field.options:
                shown = option.text[:60]
                places.append((len(text) + 1, len(text) + 1 + len(shown)))
                text += f" {shown};"
        begin = self.add(field.words, text)
        index = len(self.texts) - 1
        self.option_rows += [(index, (begin + start, begin + end)) for start, end in places]


def pooling(texts: ToolTexts, batch: TokenBatch, first: int) -> list[tuple[int, Floats]]:
    """For every row of `texts` its text in `batch`, which has them from `first` on, and weights of pieces."""
    length = batch.ids.shape[1]
    found = []
    for text, (start, end) in texts.rows:
        weights = np.zeros(length, dtype=np.float32)
        spans = batch.spans[first + text]
        pieces = [i for i, (left, right) in enumerate(spans) if right > left and left < end and start < right]
        # A row that was cut off with a long text is the text as a whole.
        for piece in pieces or range(len(spans)):
            weights[piece] = 1.0
        found.append((first + text, weights / weights.sum()))
    return found


def with_vectors(texts: ToolTexts, rows: Floats) -> ToolFields:
    """A tool with the vectors of its rows [rows, WIDTH]."""
    count = 1 + len(texts.inputs) + len(texts.outputs)
    options, at = [], 2 * count
    for field in texts.inputs:
        options.append(rows[at : at + len(field.options)])
        at += len(field.options)
    return ToolFields(
        inputs=texts.inputs,
        outputs=texts.outputs,
        vectors=rows[: 2 * count].reshape(count, 2, WIDTH),
        options=tuple(options),
    )


def read_tools(parts: PartRunner, tokens: Tokens, cards: Sequence[ToolCard]) -> dict[str, ToolFields]:
    """The fields of `cards` with their vectors, by `ToolCard.key`.

    Raises:
        OnnxError: the runtime failed.
    """
    found: dict[str, ToolFields] = {}
    # Those of like length together, for little padding.
    written = sorted(((card, tool_texts(card)) for card in cards), key=lambda pair: len(pair[1].texts[0]))
    for at in range(0, len(written), _BATCH):
        group = [texts for _, texts in written[at : at + _BATCH]]
        batch = tokens.batch([text for texts in group for text in texts.texts])
        states = parts.run(BOTTOM, {"ids": batch.ids, "mask": batch.mask})["states"].astype(np.float32, copy=False)
        placed: list[list[tuple[int, int]]] = []
        rows_of: list[list[Floats]] = [[] for _ in batch.ids]
        first = 0
        for texts in group:
            places = []
            for text, weights in pooling(texts, batch, first):
                places.append((text, len(rows_of[text])))
                rows_of[text].append(weights)
            placed.append(places)
            first += len(texts.texts)
        pool = np.zeros((len(rows_of), max(map(len, rows_of), default=0), batch.ids.shape[1]), dtype=np.float32)
        for text, rows in enumerate(rows_of):
            pool[text, : len(rows)] = rows if rows else 0.0
        vectors = parts.run(TOOL, {"states": states, "mask": batch.mask, "pool": pool})["vectors"]
        for (card, texts), places in zip(written[at : at + _BATCH], placed, strict=True):
            rows_here = np.stack([vectors[text, row] for text, row in places]).astype(np.float32, copy=False)
            found[card.key] = with_vectors(texts, rows_here)
    return found


@dataclass(frozen=True, slots=True)
class FieldIndex:
    """The fields of registered tools, by `ToolCard.key`."""

    tools: Mapping[str, ToolFields]
