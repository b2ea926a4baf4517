from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sql.errors import QueryInvalid
from tools.sql.values import Value, canonical_rows, parameters_from_json, parameters_to_json, snapshot_sha256

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.dates(),
    st.datetimes(),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.dictionaries(st.text(), VALUES))
def test_parameters_survive_json(parameters: dict[str, Value]) -> None:
    back = parameters_from_json(parameters_to_json(parameters))
    assert back == parameters
    assert {name: type(value) for name, value in back.items()} == {n: type(v) for n, v in parameters.items()}


@pytest.mark.parametrize(
    "document",
    [
        *({"a": {}}, {"a": {"date": "2026-13-01"}}, {"a": {"decimal": 0.1}}, {"a": {"sql": "x"}}, {"a": "x"}),
        *({"a": None}, {"a": {"integer": True}}, {"a": {"decimal": "one"}}),
        {"a": {"date": "2026-01-01", "text": "x"}},
    ],
)
def test_a_parameter_of_no_known_type_is_refused(document: dict[str, dict[str, object]]) -> None:
    with pytest.raises(QueryInvalid):
        parameters_from_json(document)


def test_rows_have_one_canonical_form() -> None:
    rows = [
        [
            Decimal("1E+2"),
            Decimal("0.10"),
            date(2026, 1, 2),
            datetime.fromisoformat("2026-01-02T03:00"),
            None,
            "华东",
            float("nan"),
            7,
        ]
    ]
    assert (
        canonical_rows(rows).decode() == '[["100","0.10","2026-01-02","2026-01-02T03:00:00",null,"华东","nan",7]]'
    )
    assert len(snapshot_sha256(rows)) == 64
