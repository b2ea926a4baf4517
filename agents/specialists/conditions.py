"""Which days, compared with which, and how much of a change a request asks for."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

from agents.specialists.findings import Findings
from agents.specialists.mentions import Mentions
from agents.specialists.periods import covered_periods, days_of, granularity_of, name_of
from agents.specialists.question import Comparison, Kind
from agents.specialists.ranges import first_and_last, is_a_whole, is_from_to
from tools.sql.intent import Change, Filter, Interval, previous_period

_ALTERNATIVES = frozenset(
    {"or", "and", "/", "and/or", "either", "或", "或者", "和", "与", "及", "、", "或是", "还是"}
)
"""What may stand between "rose" and "fell" where either will do; "growth fell" is something else."""
_CHANGE_WORDS = ("变化", "变动", "波动", "chang", "varied", "vary")
_BEFORE_EN = {"month": "month", "quarter": "quarter", "year": "year"}
_BEFORE_ZH = {"month": "上一个月", "quarter": "上一季度", "year": "上一年"}


def kind_of(mentions: Mentions, filters: Sequence[Filter]) -> Kind:
    """Values, members that changed, or parts of a whole."""
    if mentions.of("analysis"):
        return "share"
    asks_members = any(mentions.of(kind) for kind in ("dimension", "grouping"))
    if mentions.of("threshold") or mentions.of("percent"):
        return "changes"
    if mentions.of("direction") and (asks_members or any(len(part.values) > 1 for part in filters)):
        return "changes"
    return "values"


def interval_of(
    mentions: Mentions, kind: Kind, covered: Interval, findings: Findings
) -> tuple[Interval | None, Interval | None]:
    """The days that are asked about, and a second period to compare them with where two are named."""
    asked: list[Interval] = []
    bases: list[Interval] = []
    for entity in mentions.of("period"):
        period = entity["period"]
        (bases if period["is_base"] else asked).append(_days(period))
        if period["assumed_year"]:
            name_zh, name_en = (name_of(_days(period), language) for language in ("zh", "en"))
            findings.assumes(f"“{entity['text']}”理解为{name_zh}。", f'"{entity["text"]}" was taken as {name_en}.')
    asked = sorted(set(asked), key=lambda span: span.start)
    bases = sorted(set(bases), key=lambda span: span.start)
    if len(asked) > 2 or len(bases) > 1 or (len(asked) > 1 and bases):
        findings.lacks("choice", "", [str(entity["text"]) for entity in mentions.of("period")])
        return None, None
    changed = kind == "changes" or bool(mentions.of("direction"))
    two_compared = len(asked) > 1 and bool(mentions.of("comparison"))
    if asked and not bases and changed and not two_compared and not mentions.of("comparison_base"):
        return _compared_with(asked, mentions, findings)
    if len(asked) == 1 and bases and asked[0].start < bases[0].start:
        if changed:
            versus = "与{}相比" if findings.language == "zh" else " versus {}"
            names = [name_of(span, findings.language) for span in (asked[0], bases[0])]
            findings.lacks("choice", "", [a + versus.format(b) for a, b in (names, names[::-1])])
            return None, None
        asked, bases = (
            bases,
            asked,
        )  # "2024 vs 2025": the later is told against the earlier
    if asked:
        earlier = bases[0] if bases else (asked[0] if len(asked) > 1 else None)
        return asked[-1], earlier
    findings.lacks("period", mentions.text_of("period"), covered_periods(covered, findings.language))
    return None, bases[0] if bases else None


def refuse_condition_on_a_share(mentions: Mentions, findings: Findings) -> None:
    """A share that changed, or by month, needs more queries than a share has; dropping the condition is wrong."""
    for kind in ("threshold", "percent", "direction", "comparison_base", "granularity"):
        for entity in mentions.of(kind)[:1]:
            findings.lacks("share", str(entity["text"]))


def _compared_with(
    asked: Sequence[Interval], mentions: Mentions, findings: Findings
) -> tuple[Interval | None, Interval | None]:
    """The days and what they are compared with, where a change is asked about and no comparison is named.

    "From Q1 to Q2" is a change between the two. A change "in July and August" is one in each of them, or one from
    the first to the second; "from January to June" is one in the half year, or one from first to last month.
    """
    said = mentions.of("period")[0]
    ends = first_and_last(said["period"]) if len(asked) == 1 else (asked[0], asked[1])
    if ends is None or (len(asked) == 1 and is_a_whole(mentions.text, said)):
        return asked[-1], None
    first, last = ends
    names = {language: (name_of(first, language), name_of(last, language)) for language in ("zh", "en")}
    if len(asked) == 1 and first.end == last.start and is_from_to(said):
        zh, en = names["zh"], names["en"]
        findings.assumes(
            f"“{said['text']}”理解为{zh[1]}与{zh[0]}相比。",
            f'"{said["text"]}" was taken as {en[1]} versus {en[0]}.',
        )
        return last, first
    older, newer = names["zh" if findings.language == "zh" else "en"]
    zh_versus, en_versus = f"{newer}与{older}相比", f"{newer} versus {older}"
    whole = f"{older}到{newer}整体" if findings.language == "zh" else f"{older} to {newer} as a whole"
    findings.lacks("choice", "", [zh_versus if findings.language == "zh" else en_versus, whole])
    return None, None


def change_of(mentions: Mentions, kind: Kind, of_ratio: bool, findings: Findings) -> Change | None:
    """How much the members must have changed; for `changes` only.

    Args:
        mentions: What was understood.
        kind: What is asked.
        of_ratio: Whether the measure is a ratio itself, so that points and per cent differ.
        findings: Takes what is missing or assumed.
    """
    if kind != "changes":
        return None
    measures = [str(entity["text"]) for entity in mentions.of("metric")]
    if len(set(mentions.values("metric"))) > 1:
        findings.lacks("choice", "", measures)  # "sales and orders fell": each by itself, or both at once?
    thresholds = [*mentions.of("threshold"), *mentions.of("percent")]
    if len(thresholds) > 1:
        findings.lacks("choice", "", [str(entity["text"]) for entity in thresholds])
    quantity: Mapping[str, Any] = thresholds[0]["quantity"] if thresholds else {"value": "0", "unit": "ratio"}
    said = str(thresholds[0]["text"]) if thresholds else ""
    ratio = _ratio(quantity)
    if quantity["unit"] == "percentage_point" and "个点" in said and not of_ratio:
        # 15个点 of what is no ratio itself can only be per cent; 15个百分点 is asked about.
        percent = _ratio({**quantity, "unit": "ratio"})
        ratio = None if percent is None else percent.scaleb(-2)
        findings.assumes(f"“{said}”中的“点”理解为百分比。", f'Points in "{said}" were taken as per cent.')
    operator = quantity.get("operator")
    if ratio is None or operator in ("<", "<="):
        # "Sold more than a million" and "fell by less than 5 %" are conditions no query here can express.
        findings.lacks("threshold", said)
        return None
    if thresholds and operator in (None, "="):
        findings.assumes(f"“{said}”理解为达到或超过该幅度。", f'"{said}" was taken as that much or more.')
    direction = _direction(mentions, said, findings)
    if direction is None:
        return None
    return Change(direction=direction, threshold=ratio, inclusive=bool(thresholds) and operator != ">")


def comparison_of(
    mentions: Mentions,
    kind: Kind,
    filters: Sequence[Filter],
    interval: Interval | None,
    second: Interval | None,
    findings: Findings,
) -> Comparison | None:
    """What the days are compared with: what is named, or else the period before, said as an assumption."""
    named = mentions.one("comparison_base", findings)
    if second is not None:
        if interval is not None and second.overlaps(interval):
            findings.lacks("choice", "", [name_of(span, findings.language) for span in (second, interval)])
            return None
        return second
    if named == "same_period_last_year":
        return "same_period_last_year"
    if named == "previous_period":
        return "previous_period"
    alone = (
        not any(len(part.values) > 1 for part in filters)
        and not mentions.of("dimension")
        and not mentions.of("grouping")
    )
    compares_itself = bool(mentions.of("direction")) or (bool(mentions.of("comparison")) and alone)
    if kind == "changes" or (kind == "values" and compares_itself):
        if interval is not None:
            before = previous_period(interval)
            unit = granularity_of(interval)
            zh, en = (
                _BEFORE_ZH.get(unit or "", "之前同样长的一段时间"),
                _BEFORE_EN.get(unit or "", "period of the same length"),
            )
            findings.assumes(
                f"未指明比较对象：与{zh}（{days_of(before, 'zh')}）相比。",
                f"No period to compare with was named: compared with the {en} before ({days_of(before, 'en')}).",
            )
        return "previous_period"
    return None


def _days(period: Mapping[str, Any]) -> Interval:
    return Interval.model_validate({"start": period["start"], "end": period["end"]})


def _ratio(quantity: Mapping[str, Any]) -> Decimal | None:
    """The threshold as an exact ratio, or None where it is not one that a query can take."""
    if quantity.get("unit") != "ratio":
        return None
    top, _, bottom = str(quantity["value"]).partition("/")
    try:
        ratio = Decimal(top) / Decimal(bottom) if bottom else Decimal(top)
    except ArithmeticError:
        return None
    exact = not bottom or ratio * Decimal(bottom) == Decimal(top)
    # A third has no exact decimal; asking is better than a boundary that is off by a hair.
    return ratio if exact and 0 <= ratio <= 1000 and -int(ratio.as_tuple().exponent) <= 8 else None


def _direction(mentions: Mentions, said: str, findings: Findings) -> Literal["down", "up", "any"] | None:
    directions = set(mentions.values("direction"))
    if directions == {"decrease"}:
        return "down"
    if directions == {"increase"}:
        return "up"
    if not directions and any(word in mentions.text.lower() for word in _CHANGE_WORDS):
        return "any"
    if directions and _either_will_do(mentions):
        return "any"
    options = ["下降", "增长"] if findings.language == "zh" else ["fell", "rose"]
    findings.lacks("choice", said, options)
    return None


def _either_will_do(mentions: Mentions) -> bool:
    """Whether both directions stand side by side: "rose or fell", 涨跌; but not "growth fell"."""
    said = mentions.of("direction")
    for before, after in pairwise(said):
        if set(before["values"]) == set(after["values"]):
            continue
        between = mentions.text[before["end"] : after["start"]].strip().lower()
        side_by_side = not between and len(before["text"]) == len(after["text"]) == 1
        if between not in _ALTERNATIVES and not side_by_side:
            return False
    return True
