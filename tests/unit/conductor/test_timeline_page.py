"""The timeline as a page: complete, and harmless whatever the task's texts are."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

from conductor.timeline import Span, timeline
from conductor.timeline_page import Subject, timeline_page
from tests.golden.recording import load

BEGIN = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
HOSTILE = "</svg><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload='x"
SUBJECT = Subject(task_id="t-1", status="succeeded", request="What was sold?", trace_id="ab" * 16)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> _Tags:
    reader = _Tags()
    reader.feed(page)
    return reader


def span(name: str, start_s: float, end_s: float, **changes: object) -> Span:
    begun = Span(
        kind="step",
        uid=f"v1s{name}",
        index=0,
        name=name,
        attempt=1,
        start=BEGIN + timedelta(seconds=start_s),
        end=BEGIN + timedelta(seconds=end_s),
        outcome="succeeded",
    )
    return replace(begun, **changes)


def test_it_shows_every_attempt_and_wait_of_a_recorded_task() -> None:
    spans = timeline(load("2026-11-all-kinds"))
    page = parsed(timeline_page(SUBJECT, spans))
    assert page.tags.count("rect") == len(spans)
    assert page.tags.count("tr") == len(spans) + 1
    assert "waits for a person" in page.text
    assert "failed: AGENT_CRASHED" in page.text


def test_a_step_is_drawn_behind_what_it_needed() -> None:
    page = timeline_page(SUBJECT, [span("parse", 0, 1), span("count", 2, 4, after=("v1sparse",))])
    assert parsed(page).tags.count("path") == 1


def test_hostile_texts_stay_text() -> None:
    subject = Subject(task_id=HOSTILE, status=HOSTILE, request=HOSTILE, trace_id=HOSTILE)
    page = timeline_page(subject, [span(HOSTILE, 0, 1, outcome="failed", code=HOSTILE)])
    read = parsed(page)
    assert not {"script", "img"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in ("src", "href")]
    assert "alert(1)" in read.text
    assert "default-src 'none'" in page


def test_it_asks_for_no_other_file() -> None:
    read = parsed(timeline_page(SUBJECT, [span("parse", 0, 1)]))
    addresses = [value for name, value in read.attributes if value and "://" in value and name != "xmlns"]
    assert addresses == []


def test_a_task_of_no_length_and_one_of_none_can_be_shown() -> None:
    assert "0 ms" in parsed(timeline_page(SUBJECT, [span("parse", 0, 0)])).text
    assert "Nothing has run yet" in timeline_page(SUBJECT, [])
