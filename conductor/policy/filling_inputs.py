"""What the filler's joint pass takes: the request's pieces, and every step, argument and result of the plan.

The same arrays are built in training and in service.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from conductor.policy.filling_fields import OutputField, ToolFields
from conductor.policy.parts import WIDTH, Array, Floats
from conductor.policy.values.dates import find_dates, find_times
from conductor.policy.values.fields import InputField
from conductor.policy.values.numbers import find_numbers

JOINT = "fill_joint"
"""Part: the arrays of `JointInputs`, batch axis first, to the scores that `filling_decoding` reads."""
STEP, INPUT, OUTPUT = 1, 2, 3
MAX_STEPS = 16
"""Steps beyond share the last number."""
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "any")
_NUMERIC = ("integer", "number")
MAX_ITEMS = 256
"""Inputs of all steps together that are decided at once; the cost grows with their square."""
PIECE_FEATURES = 8
ITEM_FEATURES = 20
OPTION_FEATURES = 3
PAIR_FEATURES = 9
_QUOTES = re.compile(r"\"([^\"]{1,200})\"|(?<!\w)'([^']{1,200})'(?!\w)|“([^”]{1,200})”|‘([^’]{1,200})’")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A step (field None), one of its arguments or one of its results."""

    kind: int
    step: int
    input: InputField | None = None
    output: OutputField | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JointInputs:
    """One request and one sequence of steps."""

    items: tuple[Item, ...]
    arrays: dict[str, Array]


def piece_features(request: str, spans: Sequence[tuple[int, int]]) -> Floats:
    """[pieces, PIECE_FEATURES]: what the encoder, which reads lower case, does not see."""
    marks = np.zeros((len(request) + 1, 5), dtype=np.float32)
    for mention in find_numbers(request):
        if not mention.loose:
            marks[mention.start : mention.end, 0] = 1
            marks[mention.start : mention.end, 1] = mention.percent
    for date in find_dates(request):
        marks[date.start : date.end, 2] = 1
    for time in find_times(request):
        marks[time.start : time.end, 3] = 1
    for match in _QUOTES.finditer(request):
        marks[match.start() + 1 : match.end() - 1, 4] = 1
    features = np.zeros((len(spans), PIECE_FEATURES), dtype=np.float32)
    for row, (start, end) in enumerate(spans):
        if start == end:
            continue
        piece = request[start:end]
        features[row, :5] = marks[start]
        features[row, 5] = piece[0].isupper()
        features[row, 6] = piece.isupper() and len(piece) > 1
        features[row, 7] = start > 0 and request[start - 1].isalnum()
    return features


def joint_inputs(
    request: str,
    spans: Sequence[tuple[int, int]],
    states: Floats,
    steps: Sequence[ToolFields],
) -> JointInputs:
    """The arrays of one request and the tools of its steps, in their order.

    Args:
        request: Its text.
        spans: The characters of its pieces.
        states: What the shared layers made of the pieces, [pieces, WIDTH]; empty leaves them to the caller.
        steps: A tool may come several times.
    """
    items: list[Item] = []
    vectors: list[Floats] = []
    options: list[Floats] = []
    nothing = np.zeros((0, WIDTH), dtype=np.float32)
    with_outputs = len(steps) > 1
    limit = max(8, MAX_ITEMS // max(1, len(steps)))
    for number, whole in enumerate(steps):
        tool = _within(whole, request, limit)
        items.append(Item(kind=STEP, step=number))
        vectors.append(tool.vectors[:1])
        options.append(nothing)
        for field, offered in zip(tool.inputs, tool.options, strict=True):
            items.append(Item(kind=INPUT, step=number, input=field))
            options.append(offered)
        vectors.append(tool.vectors[1 : 1 + len(tool.inputs)])
        if with_outputs:
            for output in tool.outputs:
                items.append(Item(kind=OUTPUT, step=number, output=output))
                options.append(nothing)
            vectors.append(tool.vectors[1 + len(tool.inputs) :])
    stacked = np.concatenate(vectors)
    most = max(1, max(len(offered) for offered in options))
    offered_options = np.zeros((len(items), most, WIDTH), dtype=np.float32)
    option_mask = np.zeros((len(items), most), dtype=np.float32)
    for row, offered in enumerate(options):
        offered_options[row, : len(offered)] = offered
        option_mask[row, : len(offered)] = 1
    arrays: dict[str, Array] = {
        "states": states,
        "mask": np.ones(len(spans), dtype=np.int64),
        "pieces": piece_features(request, spans),
        "items": stacked.reshape(len(items), 2 * WIDTH),
        "item_kind": np.array([item.kind for item in items], dtype=np.int64),
        "item_step": np.array([min(item.step, MAX_STEPS - 1) for item in items], dtype=np.int64),
        "item_features": np.stack([_item_features(item) for item in items]),
        "options": offered_options,
        "option_mask": option_mask,
        "option_features": _option_features(request, items, most),
        "pairs": _pair_features(items),
    }
    return JointInputs(items=tuple(items), arrays=arrays)


def _within(tool: ToolFields, request: str, limit: int) -> ToolFields:
    """The tool with so many inputs, and outputs, at most: required ones and those that the request names first."""
    count = len(tool.inputs)
    if count <= limit and len(tool.outputs) <= limit:
        return tool
    words = set(re.findall(r"[a-z]+", request.lower()))

    def rank(index: int) -> tuple[bool, int, int]:
        field = tool.inputs[index]
        return not field.required, -len(field.bag & words), index

    kept = sorted(sorted(range(count), key=rank)[:limit])
    outputs = range(min(limit, len(tool.outputs)))
    rows = [0, *(1 + index for index in kept), *(1 + count + index for index in outputs)]
    return ToolFields(
        inputs=tuple(tool.inputs[index] for index in kept),
        outputs=tool.outputs[: len(outputs)],
        vectors=tool.vectors[rows],
        options=tuple(tool.options[index] for index in kept),
    )


def _item_features(item: Item) -> Floats:
    features = np.zeros(ITEM_FEATURES, dtype=np.float32)
    if item.output is not None:
        features[_TYPES.index(item.output.type)] = 1
    field = item.input
    if field is not None:
        features[_TYPES.index(field.type)] = 1
        if field.item_type:
            features[7 + _TYPES.index(field.item_type)] = 1
        features[14] = field.required
        features[15] = field.strict
        features[16] = bool(field.options)
        features[17] = field.moment is not None
        features[18] = "default" in field.schema or "default" in field.description.lower()
        features[19] = field.schema.get("default") is True
    return features


def _option_features(request: str, items: Sequence[Item], most: int) -> Floats:
    features = np.zeros((len(items), most, OPTION_FEATURES), dtype=np.float32)
    plain = f" {re.sub(r'[^a-z0-9]+', ' ', request.lower())} "
    known = set(plain.split())
    for row, item in enumerate(items):
        if item.input is None or not item.input.options:
            continue
        default = item.input.schema.get("default")
        for column, option in enumerate(item.input.options):
            words = option.plain.split()
            # Words of scripts without spaces are looked for as they stand.
            stands = f" {option.plain} " in plain or (not option.plain.isascii() and option.text in request)
            features[row, column, 0] = bool(words) and stands
            features[row, column, 1] = sum(word in known for word in words) / max(1, len(words))
            features[row, column, 2] = option.value == default
    return features


def _pair_features(items: Sequence[Item]) -> Floats:
    """[items, items, PAIR_FEATURES]: how an argument (row) and a result of another step (column) look alike."""
    features = np.zeros((len(items), len(items), PAIR_FEATURES), dtype=np.float32)
    outputs = [(index, item, item.output) for index, item in enumerate(items) if item.output is not None]
    if not outputs:
        return features
    columns = np.array([index for index, _, _ in outputs])
    steps = np.array([item.step for _, item, _ in outputs])
    for row, item in enumerate(items):
        field = item.input
        if field is None:
            continue
        pair = np.zeros((len(outputs), PAIR_FEATURES), dtype=np.float32)
        pair[:, 1] = steps > item.step
        pair[:, 2] = steps == item.step - 1
        pair[:, 8] = np.abs(steps - item.step) / MAX_STEPS
        for place, (_, _, output) in enumerate(outputs):
            shared = len(field.bag & output.bag)
            pair[place, 3] = field.words == output.words
            pair[place, 4] = shared / max(1, len(field.bag | output.bag))
            pair[place, 5] = shared / max(1, len(field.bag))
            pair[place, 6] = field.type == output.type
            pair[place, 7] = "any" in (field.type, output.type) or (
                field.type in _NUMERIC and output.type in _NUMERIC
            )
        pair[:, 0] = 1
        pair[steps == item.step] = 0
        features[row, columns] = pair
    return features
