"""Names, numbers and changes as people write them in Chinese and English."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from tools.sql.model import Measure, SemanticModel

_CENTS = Decimal("0.01")
_CURRENCY_ZH = {"CNY": "元"}


def written_in(language: str) -> Literal["zh", "en"]:
    """The language an answer is written in: Chinese for Chinese, English for everything else."""
    return "zh" if language == "zh" else "en"


def label(model: SemanticModel, dimension: str, value: object, language: str) -> str:
    """What people call a value of a dimension."""
    if value is None:
        return "（无）" if language == "zh" else "(none)"
    return model.label(dimension, str(value), written_in(language))


def dimension_name(model: SemanticModel, name: str, language: str) -> str:
    """What people call a dimension."""
    return model.dimension(name).labels.get(written_in(language), name)


def measure_name(model: SemanticModel, name: str, language: str) -> str:
    """What people call a measure."""
    return model.measure(name).labels.get(written_in(language), name)


def unit_of(measure: Measure, language: str) -> str:
    """The unit of a measure, or '' for a count or a ratio."""
    return _CURRENCY_ZH.get(measure.unit, measure.unit) if language == "zh" else measure.unit


def amount(measure: Measure, value: object, language: str) -> str:
    """A measure's value with its unit: `1,234.50 元`, `CNY 1,234.50`, `1,234`, `3.25%`."""
    number = number_of(measure, value)
    unit = unit_of(measure, language)
    if not unit or value is None:
        return number
    return f"{number} {unit}" if language == "zh" else f"{unit} {number}"


def number_of(measure: Measure, value: object) -> str:
    """A measure's value without its unit; money to two decimals, a bare ratio in per cent, counts as they are."""
    if value is None:
        return "—"
    exact = Decimal(str(value))
    if measure.unit:
        return f"{exact.quantize(_CENTS, ROUND_HALF_UP):,}"
    if measure.is_ratio:
        return f"{(exact * 100).quantize(_CENTS, ROUND_HALF_UP)}%"
    return f"{exact:,f}"


def percent(ratio: Decimal | str, *, signed: bool = False) -> str:
    """A ratio in per cent to two decimals: `-15.10%`."""
    hundredfold = (Decimal(ratio) * 100).quantize(_CENTS, ROUND_HALF_UP)
    return f"{hundredfold:+,}%" if signed else f"{hundredfold:,}%"


def threshold_percent(ratio: Decimal | str) -> str:
    """A threshold in per cent as it was asked: `15%`, `7.5%`."""
    text = format(Decimal(ratio) * 100, "f")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def listing(words: list[str], language: str) -> str:
    """Words in a row: `华东、华南` or `East China, South China`."""
    return ("、" if language == "zh" else ", ").join(words)


def counted(number: int, noun: str) -> str:
    """A number of things in English: `1 city`, `4 cities`, `no city`."""
    singular = noun.lower()
    if number <= 1:
        return f"{number or 'no'} {singular}"
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    return f"{number} {plural}"
