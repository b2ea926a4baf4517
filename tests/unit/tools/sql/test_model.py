from pathlib import Path

import pytest

from tests.unit.tools.sql.shop import MODEL_YAML
from tools.sql.arithmetic import row_sql
from tools.sql.describe import describe
from tools.sql.errors import SemanticModelInvalid, UnknownName
from tools.sql.intent import Interval
from tools.sql.model import SemanticModel, load_model
from tools.sql.warehouse import Warehouse


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("grain: sale\n", "grain: nowhere\n", "table nowhere is not declared"),
        ("time_column: sale.sold_on", "time_column: branch.opened", "not in the grain"),
        ("denominator: receipts", "denominator: profit", "needs profit"),
        ("numerator: revenue, denominator: receipts, ", "numerator: revenue, ", "aggregate and expression"),
        ("{many: branch.area_code", "{many: area.area_code", "no earlier join"),
        ("  - {many: branch.area_code, one: area.area_code}\n", "", "no join reaches the table of dimension area"),
        ("branch: {column: sale.branch_code,", "branch: {", "a column or a granularity"),
        ("expression: pieces, scale", 'expression: "getenv()/2", scale', "pattern"),
        ("name: shop", "name: shop\nsurprise: 1", "Extra inputs"),
        ("month: {granularity: month", "lines: {granularity: month", "share the name lines"),
        ("name: shop", "name: [", "not YAML"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in MODEL_YAML
    path = tmp_path / "model.yaml"
    path.write_text(MODEL_YAML.replace(old, new), encoding="utf-8")
    with pytest.raises(SemanticModelInvalid, match=problem):
        load_model(path)


@pytest.mark.parametrize("expression", ["a -- b", "a ** 2", "count(a)", "a *", "(a", "a b c", "(1 2)"])
def test_an_expression_is_arithmetic_and_nothing_else(expression: str) -> None:
    with pytest.raises(SemanticModelInvalid):
        row_sql(expression, "sale")


def test_labels_by_language(model: SemanticModel) -> None:
    assert model.label("item", "tea", "zh") == "茶"
    assert model.label("item", "nuts", "zh") == "nuts"
    with pytest.raises(UnknownName, match="no dimension 'planet'"):
        model.label("planet", "tea", "zh")


def test_a_description_says_what_there_is(shop: Warehouse, model: SemanticModel) -> None:
    found = describe(shop, model)
    assert [table.name for table in found.tables] == ["sale", "branch", "area"]
    assert [table.row_count for table in found.tables][1:] == [5, 2]
    assert "secret" not in found.schema()
    assert found.schema()["area"] == {"area_code": "VARCHAR", "area_name": "VARCHAR"}
    assert found.values == {
        "branch": ("b1", "b2", "b3", "b4", "b5", "b6"),
        "area": ("north", "south"),
        "item": ("nuts", "rice", "tea"),
    }
    coverage = found.coverage
    assert coverage is not None
    assert coverage.end.isoformat() == "2027-01-03"
    assert found.covers(Interval.model_validate({"start": "2026-01-01", "end": "2027-01-03"}))
    assert not found.covers(Interval.model_validate({"start": "2026-01-01", "end": "2027-01-04"}))
    assert found.as_json()["coverage"] == {"start": coverage.start.isoformat(), "end": "2027-01-03"}


def test_a_model_for_another_database_is_refused(shop: Warehouse, tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(MODEL_YAML.replace("sale.item", "sale.article").replace("area.area_name", "area.title"))
    with pytest.raises(SemanticModelInvalid) as invalid:
        describe(shop, load_model(path))
    assert invalid.value.problems == ("table area has no column title", "table sale has no column article")
