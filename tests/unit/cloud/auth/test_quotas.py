"""Quotas: how much, of whom, and when again."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from cloud.auth.principal import Principal
from cloud.auth.quotas import CallerQuotas, Quotas
from podium.errors import LimitExceeded


@dataclass
class Seconds:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def _caller(name: str) -> Principal:
    return Principal(name=name, roles=frozenset({"caller"}), kind="caller", caller=name)


ANN, BOB = _caller("ann"), _caller("bob")


def test_a_bucket_fills_evenly_and_says_when() -> None:
    clock = Seconds()
    quotas = Quotas(CallerQuotas(submits_per_minute=6), monotonic_s=clock)
    for _ in range(6):
        quotas.count_submit(ANN)
    with pytest.raises(LimitExceeded, match="6 tasks a minute") as caught:
        quotas.count_submit(ANN)
    assert caught.value.retry_after == timedelta(seconds=10)
    quotas.count_submit(BOB)
    clock.now += 9.9
    with pytest.raises(LimitExceeded) as caught:
        quotas.count_submit(ANN)
    assert caught.value.retry_after is not None
    assert caught.value.retry_after.total_seconds() == pytest.approx(0.1, abs=1e-3)
    clock.now += 0.2
    quotas.count_submit(ANN)
    with pytest.raises(LimitExceeded):
        quotas.count_submit(ANN)
    clock.now += 3600  # it holds a minute's worth, not an hour's
    for _ in range(6):
        quotas.count_submit(ANN)
    with pytest.raises(LimitExceeded):
        quotas.count_submit(ANN)


def test_many_callers_do_not_take_the_memory() -> None:
    quotas = Quotas(CallerQuotas(submits_per_minute=6), monotonic_s=Seconds())
    for number in range(12_000):
        quotas.count_submit(_caller(f"c{number}"))
    assert len(quotas._buckets) == 10_000


def test_bytes_and_streams_are_counted_up_to_the_limit() -> None:
    quotas = Quotas(CallerQuotas(streams=2, blob_bytes=100, open_tasks=5), monotonic_s=Seconds())
    quotas.check_streams(ANN, 1)
    with pytest.raises(LimitExceeded, match="caller_streams"):
        quotas.check_streams(ANN, 2)
    quotas.check_blob_bytes(ANN, 60, 40)
    with pytest.raises(LimitExceeded, match="caller_daily_blob_bytes"):
        quotas.check_blob_bytes(ANN, 60, 41)
    assert quotas.open_limit(ANN) == 5


def test_without_credentials_and_without_limits_nothing_is_refused() -> None:
    clock = Seconds()
    strict = Quotas(CallerQuotas(open_tasks=1, submits_per_minute=1, streams=1, blob_bytes=1), monotonic_s=clock)
    for quotas, principal in ((strict, Principal.local()), (Quotas(CallerQuotas(), monotonic_s=clock), ANN)):
        for _ in range(5):
            quotas.count_submit(principal)
        quotas.check_streams(principal, 10**6)
        quotas.check_blob_bytes(principal, 10**12, 10**12)
        assert quotas.open_limit(principal) is None
