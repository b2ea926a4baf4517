"""Clarify: the question that settles what a request leaves open, with answers that would do."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.periods import covered_periods, days_of, name_of
from agents.specialists.question import Question, belongs_to
from agents.specialists.wording import dimension_name, label, listing, measure_name, written_in

_MAX_SUGGESTIONS = 12
_SHOWN_OPTIONS = 12

_ASKS: Mapping[str, tuple[str, str]] = {
    "words": ("我不明白“{said}”指的是什么。", 'I do not understand "{said}".'),
    "measure": ("您想看哪个指标？可选：{options}。", "Which measure do you mean? There are: {options}."),
    "measure_said": (
        "“{said}”不能这样计算，可以用：{options}。您想看哪个指标？",
        '"{said}" cannot be computed that way; these can: {options}. Which measure do you mean?',
    ),
    "period": (
        "数据没有完整覆盖{said}。您想看哪个时期？例如：{options}。",
        "The data does not fully cover {said}. Which period do you mean? For example: {options}.",
    ),
    "no_period": ("您想看哪个时期？例如：{options}。", "Which period do you mean? For example: {options}."),
    "threshold": (
        "条件“{said}”无法用现有数据计算；可以按变化的百分比筛选，例如“下降超过15%”。",
        'The condition "{said}" cannot be computed here; a change in per cent can, e.g. "fell by more than 15%".',
    ),
    "value": ("数据中没有“{said}”。现有：{options}。", 'There is no "{said}" in the data. There are: {options}.'),
    "data": (
        "在所问的时期和范围内没有任何记录（{said}）。您想换一个时期或范围吗？例如：{options}。",
        "There are no records for what you asked ({said}). "
        "Which other period or scope do you mean? For example: {options}.",
    ),
    "share": (
        "“{said}”不能和占比一起计算，请去掉其中一项。",
        '"{said}" cannot be combined with a share; please leave one of them out.',
    ),
    "members": (
        "数据里没有单个的“{said}”。可以按以下各项查看：{options}。您想看哪一项？",
        "The data does not tell one of the {said} from another. It can be split by: {options}. Which do you mean?",
    ),
    "choice": ("请在以下几项中选择：{options}。", "Please choose one of: {options}."),
}


def clarify(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """One question for everything that is open; where nothing is named, what there is to ask about.

    Open is what `missing` and `unresolved` list, and `without_records`, an intent with no record in `dataset`.
    """
    zh = inputs["language"] == "zh"
    datasets = sorted(
        (entry for entry in context.resources.entries.values() if isinstance(entry, Dataset)), key=lambda d: d.name
    )
    gaps = [*inputs.get("missing", ()), *_unresolved(inputs, datasets), *_without_records(inputs, context)]
    gaps = gaps or [_words(said) for said in inputs.get("about", ())]
    gaps = [gap for index, gap in enumerate(gaps) if gap not in gaps[:index]]
    sentences = [_sentence(gap, zh) for gap in _told_at_once(gaps, zh)]
    if not sentences:
        sentences = ["我还不明白您想知道什么。" if zh else "I do not yet understand what you would like to know."]
    if not any(gap["options"] for gap in gaps):
        sentences += [_offer(dataset, zh) for dataset in datasets]
    sentences.append("请补充或改写您的问题。" if zh else "Please add to your question or put it another way.")
    suggestions = list(dict.fromkeys(option for gap in gaps for option in gap["options"]))
    if not suggestions:
        kinds = {str(mention["kind"]) for mention in inputs.get("unresolved", ())}
        suggestions = [example for dataset in datasets for example in _examples(dataset, kinds, zh)]
    return {
        "question": ("" if zh else " ").join(sentences)[:4000],
        "suggestions": suggestions[:_MAX_SUGGESTIONS],
        "about": [gap["said"][:500] for gap in gaps if gap["said"]][:50],
        "confidence_score": 1.0,
        "sources": [],
    }


def _unresolved(inputs: Mapping[str, Any], datasets: Sequence[Dataset]) -> list[dict[str, Any]]:
    gaps = []
    for mention in inputs.get("unresolved", ()):
        said = str(mention["text"])
        splits = [name for dataset in datasets for name in _splits(dataset, inputs["language"])]
        is_member = mention["kind"] == "member" and splits
        gaps.append({"what": "members", "said": said, "options": splits} if is_member else _words(said))
    return gaps


def _splits(dataset: Dataset, language: str) -> list[str]:
    """By what the members of an answer can be told apart."""
    model = dataset.model
    return [dimension_name(model, name, language) for name, found in model.dimensions.items() if found.column]


def _told_at_once(gaps: Sequence[Mapping[str, Any]], zh: bool) -> list[Mapping[str, Any]]:
    """All words that nobody understood in one gap, in the place of the first."""
    words = [gap for gap in gaps if gap["what"] == "words"]
    if len(words) < 2:
        return list(gaps)
    said = ("”、“" if zh else '", "').join(str(gap["said"]) for gap in words)
    first = {**words[0], "said": said}
    return [first if gap is words[0] else gap for gap in gaps if gap is words[0] or gap["what"] != "words"]


def _words(said: str) -> dict[str, Any]:
    return {"what": "words", "said": said, "options": []}


def _without_records(inputs: Mapping[str, Any], context: AgentContext) -> list[dict[str, Any]]:
    if "without_records" not in inputs or "dataset" not in inputs:
        return []
    dataset, language = Dataset.of(context, inputs["dataset"]), written_in(inputs["language"])
    question = Question.from_json(inputs["without_records"])
    scope = [
        label(dataset.model, part.dimension, value, language) for part in question.filters for value in part.values
    ]
    said = listing([*scope, name_of(question.interval, language)], language)
    return [{"what": "data", "said": said, "options": covered_periods(dataset.covered, language)}]


def _sentence(gap: Mapping[str, Any], zh: bool) -> str:
    what = gap["what"]
    if what == "period" and not gap["said"]:
        what = "no_period"
    elif what == "measure" and gap["said"]:
        what = "measure_said"
    options: Sequence[str] = gap["options"]
    listed = listing(list(options[:_SHOWN_OPTIONS]), "zh" if zh else "en") + (
        "……" if len(options) > _SHOWN_OPTIONS else ""
    )
    return _ASKS[what][0 if zh else 1].format(said=gap["said"], options=listed)


def _offer(dataset: Dataset, zh: bool) -> str:
    """What a dataset has: measures, regions and the days it covers."""
    language = "zh" if zh else "en"
    measures = listing([measure_name(dataset.model, name, language) for name in dataset.model.measures], language)
    parts = []
    for name, dimension in dataset.model.dimensions.items():
        if dimension.values and len(dimension.values) <= _SHOWN_OPTIONS:
            values = [label(dataset.model, name, value.value, language) for value in dimension.values]
            title = dimension_name(dataset.model, name, language)
            parts.append(f"{title}（{listing(values, 'zh')}）" if zh else f"{title} ({listing(values, 'en')})")
    days = days_of(dataset.covered, language)
    if zh:
        return f"现有数据：{days}；指标有{measures}；可按{'；'.join(parts)}等查看。"
    return f"The data covers {days}; measures: {measures}; by {'; '.join(parts)} and more."


def _examples(dataset: Dataset, kinds: set[str], zh: bool) -> list[str]:
    """What could stand where something was not understood; of every kind a few when nobody knows."""
    model, language = dataset.model, "zh" if zh else "en"
    measures = [measure_name(model, name, language) for name in model.measures]
    periods = covered_periods(dataset.covered, language)
    groups = (
        name for name in model.dimensions if any(belongs_to(model, member, name) for member in model.dimensions)
    )
    places = [
        label(model, name, known.value, language)
        for name in list(groups)[:1]
        for known in model.dimensions[name].values
    ]
    by_kind = {"metric": measures, "period": periods, "place": places}
    named = [example for kind, examples in by_kind.items() if kind in kinds for example in examples]
    return named or [*places[:3], *measures[:3], *periods[:3]]
