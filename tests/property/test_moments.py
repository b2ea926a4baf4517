"""Moments travel without loss, in any time zone and on either side of 1970."""

from datetime import UTC, datetime, timedelta, timezone

from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from conductor.journal import timestamp_of
from conductor.state import moment

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1901, 1, 1), datetime(2200, 1, 1), timezones=ZONES)  # noqa: DTZ001 - hypothesis adds it


@given(MOMENTS)
def test_a_moment_comes_back_and_is_what_protobuf_makes_of_it(when: datetime) -> None:
    stamp = timestamp_of(when)
    theirs = Timestamp()
    theirs.FromDatetime(when)
    assert stamp == theirs
    assert moment(stamp) == when
    assert moment(stamp).tzinfo is UTC
