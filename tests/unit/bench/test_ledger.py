from pathlib import Path

from bench import ledger


def test_every_contender_is_measured_with_as_many_threads(tmp_path: Path) -> None:
    disk: list[float] = []
    rates = ledger._measured(tmp_path, 1, 0.02, disk)
    assert set(rates) == {
        *(f"{name} {at_once}" for name in ("ledger", "sqlite", "sqlite-shared") for at_once in (1, 8, 64)),
        "ledger many",
        "sqlite many",
    }
    assert all(rate > 0 for rounds in rates.values() for rate in rounds)
    assert disk
    assert ledger._verified(tmp_path) > 0


def test_ratios_compare_what_used_as_many_threads() -> None:
    assert ledger._ratios({"ledger 1": 10, "sqlite 1": 5, "ledger many": 3, "sqlite many": 4}) == {
        "ledger/sqlite 1": 2.0,
        "ledger/sqlite many": 0.75,
    }
