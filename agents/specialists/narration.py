"""The Markdown of an answer: a sentence that says it, tables that show it, assumptions and sources below."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from agents.specialists.periods import name_of
from agents.specialists.results import Results, Row
from agents.specialists.wording import (
    amount,
    counted,
    dimension_name,
    label,
    listing,
    measure_name,
    number_of,
    percent,
    threshold_percent,
    unit_of,
)
from tools.sql.intent import Interval
from tools.sql.model import SemanticModel

_NAMED_IN_A_SENTENCE = 12
_HASH_SHOWN = 12


def narrate(
    results: Results,
    language: str,
    assumptions: Sequence[str],
    passages: Sequence[Mapping[str, Any]],
    sources: Sequence[Mapping[str, Any]],
) -> str:
    """The whole answer. Quotes (`>`) are notes about the answer, not claims; as lists, each keeps its line."""
    zh = language == "zh"
    blocks = [f"# {_title(results, language)}"]
    match results.question.kind:
        case "changes":
            blocks += _changes(results, language)
        case "share":
            blocks += _shares(results, language)
        case _:
            blocks += _values(results, language)
    first = len(results.sources) + 1
    blocks += [f"{passage['text']} [Source: S{number}]" for number, passage in enumerate(passages, start=first)]
    if assumptions:
        blocks.append("\n".join(f"> - {'假设：' if zh else 'Assumption: '}{said}" for said in assumptions))
    blocks.append("\n".join(_source_line(source, zh) for source in sources))
    return "\n\n".join(blocks) + "\n"


def _title(results: Results, language: str) -> str:
    question, model, zh = results.question, results.model, language == "zh"
    measures = listing([measure_name(model, name, language) for name in question.measures], language)
    scope = _scope(results, language)
    days = name_of(question.interval, language)
    against = ""
    if results.base:
        base = name_of(results.base, language)
        against = f"（与{base}相比）" if zh else f", compared with {base}"
    if zh:
        return f"{scope}{days}{measures}{against}"
    return f"{measures}{' of ' + scope if scope else ''}, {days}{against}"


def _scope(results: Results, language: str, without: str | None = None) -> str:
    """The values that the question is limited to (but for those of one dimension), or ''."""
    names = [
        label(results.model, part.dimension, value, language)
        for part in results.question.filters
        for value in part.values
        if part.dimension != without
    ]
    return listing(names, language)


def _changes(results: Results, language: str) -> list[str]:
    zh, source = language == "zh", results.source_ids["members"]
    members = results.members()
    what = _condition(results, language)
    kind = dimension_name(results.model, str(results.question.dimension), language)
    blocks = []
    named = listing([_member_change(results, row, language) for row in members[:_NAMED_IN_A_SENTENCE]], language)
    more = ("等" if zh else " and others") if len(members) > _NAMED_IN_A_SENTENCE else ""
    # A limit cuts the list, so its length says nothing about how many there are.
    first = results.question.limit is not None and len(members) == results.question.limit
    if zh:
        count = f"按变化幅度列出 {len(members)} 个" if first else f"共 {len(members)} 个"
        said = f"{what}的{kind}{count}：{named}{more}。" if members else f"没有{what}的{kind}。"
    else:
        count = (
            f"{counted(len(members), kind)} of those that {what}"
            if first
            else f"{counted(len(members), kind)} {what}"
        )
        said = f"{count[0].upper()}{count[1:]}{': ' + named if members else ''}{more}."
    blocks.append(f"{said} [Source: {source}]")
    if members:
        blocks.append(_comparison_table(results, members, language, source))
    if left_out := results.not_comparable():
        names = listing([_bracketed(results.names(row, language), language) for row in left_out], language)
        base = name_of(results.base, language) if results.base else ""
        blocks.append(
            f"无法比较（{base}没有可比的数值）：{names}。 [Source: {source}]"
            if zh
            else f"Not comparable (no value to compare with in {base}): {names}. [Source: {source}]"
        )
    heading = "## 合计" if zh else "## Totals"
    totals_source = results.source_ids["totals"]
    return [*blocks, heading, *_comparison(results, results.totals(), language, totals_source)]


def _condition(results: Results, language: str) -> str:
    """`下降超过 15%` or `fell by more than 15%`."""
    change = results.question.change
    if change is None:
        return ""
    zh = language == "zh"
    if change.threshold == 0 and not change.inclusive:
        return {"down": "下降", "up": "增长", "any": "有变化"}[change.direction] if zh else {
            "down": "fell", "up": "rose", "any": "changed"}[change.direction]  # fmt: skip
    size = threshold_percent(change.threshold)
    if zh:
        verb = {"down": "下降", "up": "增长", "any": "变化"}[change.direction]
        return f"{verb}{'达到或超过' if change.inclusive else '超过'} {size} "
    verb = {"down": "fell", "up": "rose", "any": "changed"}[change.direction]
    return f"{verb} by {size} or more" if change.inclusive else f"{verb} by more than {size}"


def _values(results: Results, language: str) -> list[str]:
    source = results.source_ids["members"]
    rows = results.tables["members"]
    if results.question.comparison is not None:
        return _comparison(results, rows, language, source)
    blocks = []
    question = results.question
    ranked = question.limit is not None if question.granularity else question.dimension is not None
    if ranked and rows and (len(rows) > 1 or question.granularity):
        blocks.append(_extremes(results, rows, language, source))
    if ranked or results.question.granularity:
        return [*blocks, _value_table(results, rows, language, source)]
    return [_value_sentence(results, row, language, source) for row in rows]


def _extremes(results: Results, rows: Sequence[Row], language: str, source: str) -> str:
    first = rows[0]
    granularity = results.question.granularity
    name = (
        _group_cell(results, first, granularity, language)
        if granularity
        else _bracketed(results.names(first, language), language)
    )
    measure = measure_name(results.model, results.measure, language)
    said = amount(results.model.measure(results.measure), first[results.measure], language)
    highest = results.question.descending
    if language == "zh":
        return f"{measure}{'最高' if highest else '最低'}的是{name}：{said}。 [Source: {source}]"
    return f"{'Highest' if highest else 'Lowest'} {measure.lower()}: {name}, {said}. [Source: {source}]"


def _value_sentence(results: Results, row: Row, language: str, source: str) -> str:
    model, question = results.model, results.question
    days = name_of(question.interval, language)
    parts = []
    for name in question.measures:
        said = amount(model.measure(name), row[name], language)
        parts.append(f"{measure_name(model, name, language)}{'为 ' if language == 'zh' else ': '}{said}")
    scope = _scope(results, language)
    if scope and any(len(part.values) > 1 for part in question.filters):
        scope += "合计" if language == "zh" else " together"
    if language == "zh":
        return f"{scope}{days}{'，'.join(parts)}。 [Source: {source}]"
    return f"{scope + ', ' if scope else ''}{days}: {'; '.join(parts)}. [Source: {source}]"


def _value_table(results: Results, rows: Sequence[Row], language: str, source: str) -> str:
    model, question = results.model, results.question
    groups = [name for name in (rows[0] if rows else {}) if name not in question.measures]
    header = [_group_title(model, name, question.granularity, language) for name in groups]
    header += [_measure_title(model, name, language) for name in question.measures]
    body = [
        [
            *(_group_cell(results, row, name, language) for name in groups),
            *(number_of(model.measure(name), row[name]) for name in question.measures),
        ]
        for row in rows
    ]
    return _table(header, body, len(groups), source)


def _comparison(results: Results, rows: Sequence[Row], language: str, source: str) -> list[str]:
    sentences = [f"- {_comparison_sentence(results, row, language)} [Source: {source}]" for row in rows]
    if len(rows) <= _NAMED_IN_A_SENTENCE and len(results.question.measures) == 1:
        return ["\n".join(sentences)] if sentences else []
    return [_comparison_table(results, rows, language, source)]


def _comparison_sentence(results: Results, row: Row, language: str) -> str:
    model, name, zh = results.model, results.measure, language == "zh"
    measure = model.measure(name)
    interval, base = results.question.interval, results.base
    who = _bracketed(results.names(row, language), language) or _scope(results, language)
    who = who or ("全部" if zh else "All")
    now, before = amount(measure, row[f"{name}_current"], language), amount(measure, row[f"{name}_base"], language)
    days, days_before = name_of(interval, language), name_of(base, language) if base else ""
    title = measure_name(model, name, language)
    change = row[f"{name}_change"]
    if change is None:
        tail = "无法比较" if zh else "not comparable"
    else:
        verb = _verb(Decimal(str(change)), zh)
        tail = f"{verb} {percent(abs(Decimal(str(change))))}" if Decimal(str(change)) else verb
    if zh:
        return f"{who}：{days}{title} {now}，{days_before} {before}，{tail}。"
    return f"{who}: {title.lower()} {now} in {days}, {before} in {days_before}, {tail}."


def _verb(change: Decimal, zh: bool) -> str:
    if change < 0:
        return "下降" if zh else "down"
    if change > 0:
        return "增长" if zh else "up"
    return "持平" if zh else "unchanged"


def _comparison_table(results: Results, rows: Sequence[Row], language: str, source: str) -> str:
    model, question = results.model, results.question
    names = question.measures
    groups = [name for name in (rows[0] if rows else {}) if name in model.dimensions]
    header = [_group_title(model, name, None, language) for name in groups]
    for name in names:
        title = _measure_title(model, name, language)
        header += [f"{title} {_days(question.interval, language)}", f"{title} {_days(results.base, language)}"]
        header.append("变化" if language == "zh" else "Change")
    body = []
    for row in rows:
        cells = [_group_cell(results, row, name, language) for name in groups]
        for name in names:
            measure = model.measure(name)
            cells += [number_of(measure, row[f"{name}_current"]), number_of(measure, row[f"{name}_base"])]
            change = row[f"{name}_change"]
            cells.append("—" if change is None else percent(str(change), signed=True))
        body.append(cells)
    return _table(header, body, len(groups), source)


def _shares(results: Results, language: str) -> list[str]:
    zh, model = language == "zh", results.model
    measure = model.measure(results.measure)
    dimension = str(results.question.dimension)
    source, whole_source = results.source_ids["members"], results.source_ids["whole"]
    whole = amount(measure, results.tables["whole"][0][results.measure], language)
    title = measure_name(model, results.measure, language)
    days = name_of(results.question.interval, language)
    header = [
        dimension_name(model, dimension, language),
        _measure_title(model, results.measure, language),
        "占比" if zh else "Share",
    ]
    body = []
    for row in results.tables["members"]:
        share = results.share(row)
        cells = [_group_cell(results, row, dimension, language), number_of(measure, row[results.measure])]
        body.append([*cells, "—" if share is None else percent(share)])
    scope = _scope(results, language, without=dimension)
    of_scope = f" of {scope}" if scope else ""
    total = f"{scope}{days}{title}总计 {whole}。" if zh else f"Total {title.lower()}{of_scope} in {days}: {whole}."
    return [f"{total} [Source: {whole_source}]", _table(header, body, 1, f"{source}, {whole_source}")]


def _member_change(results: Results, row: Row, language: str) -> str:
    change = percent(str(row[f"{results.measure}_change"]), signed=True)
    name = results.names(row, language)[-1]
    return f"{name}（{change}）" if language == "zh" else f"{name} ({change})"


def _bracketed(names: Sequence[str], language: str) -> str:
    """`南京（华东）`: the member, and what it belongs to."""
    if len(names) < 2:
        return "".join(names)
    *groups, member = names
    above = listing(list(groups), language)
    return f"{member}（{above}）" if language == "zh" else f"{member} ({above})"


def _group_title(model: SemanticModel, name: str, granularity: str | None, language: str) -> str:
    if name == granularity and name not in model.dimensions:
        return "日期" if language == "zh" else name.capitalize()
    return dimension_name(model, name, language)


def _group_cell(results: Results, row: Row, name: str, language: str) -> str:
    if name != results.question.granularity:
        return label(results.model, name, row[name], language)
    start = date.fromisoformat(str(row[name]))
    match name:
        case "month" | "quarter" | "year":
            months = {"month": 1, "quarter": 3, "year": 12}[name]
            later = start.month - 1 + months
            end = date(start.year + later // 12, later % 12 + 1, 1)
            return name_of(Interval(start=start, end=end), language)
        case _:
            return start.isoformat()


def _measure_title(model: SemanticModel, name: str, language: str) -> str:
    unit = unit_of(model.measure(name), language)
    title = measure_name(model, name, language)
    if not unit:
        return title
    return f"{title}（{unit}）" if language == "zh" else f"{title} ({unit})"


def _days(interval: Interval | None, language: str) -> str:
    return name_of(interval, language) if interval else ""


def _table(header: Sequence[str], body: Sequence[Sequence[str]], text_columns: int, source: str) -> str:
    rule = ["---" if column < text_columns else "---:" for column in range(len(header))]
    lines = [_row(header), _row(rule), *(_row(cells) for cells in body)]
    return "\n".join([*lines, "", f"[Source: {source}]"])


def _row(cells: Sequence[str]) -> str:
    # A bar inside a cell would start another one.
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _source_line(source: Mapping[str, Any], zh: bool) -> str:
    name, sha256 = source["id"], str(source["sha256"])[:_HASH_SHOWN]
    if zh:  # without the English description of the query, so that a Chinese answer stays Chinese
        return f"> - 来源 {name}：{source['location']}，快照 SHA-256 {sha256}…"
    return f"> - Source {name}: {source['label']}, snapshot SHA-256 {sha256}…"
