"""The timeline of a task as one HTML page that needs nothing else: no script, no font, no other file.

Everything that comes from a task is escaped, and the page's own policy forbids scripts and requests, so that what
an agent or a caller wrote can do nothing in the browser of whoever opens the page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape

from conductor.timeline import Span

_ROW_PX = 26
_BAR_PX = 16
_LABEL_PX = 240
_PICTURE_PX = 760
_SHORTEST_BAR_PX = 2.0
_AXIS_PX = 26
_GRID_LINES = 5
_WAITS = {"device": "waits for the device", "question": "waits for the caller", "review": "waits for a person"}

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5b6570; --paper: #ffffff; --line: #d5dae0;
  --ok: #2f7d4f; --bad: #b3372f; --open: #9a6b00; --wait: #4a67b0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #9aa4af; --paper: #14171a; --line: #333a42;
  --ok: #59b37d; --bad: #e5786f; --open: #d9a441; --wait: #8aa5e8; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 24px auto;
  max-width: 1060px; padding: 0 16px; }
h1 { font-size: 20px; margin: 0 0 4px; } .dim { color: var(--dim); } .request { margin: 4px 0 16px;
  overflow-wrap: anywhere; } .picture { overflow-x: auto; } svg text { fill: var(--ink); font-size: 12px; }
svg .dim { fill: var(--dim); } svg line { stroke: var(--line); } svg path { stroke: var(--dim); fill: none; }
.succeeded { fill: var(--ok); } .failed { fill: var(--bad); } .open { fill: var(--open); }
.wait { fill: var(--wait); }
table { border-collapse: collapse; width: 100%; margin-top: 20px; font-size: 13px; } th, td { text-align: left;
  padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; } td.n, th.n {
  text-align: right; font-variant-numeric: tabular-nums; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the page is about."""

    task_id: str
    status: str
    """In lower case, as people see it."""
    request: str
    """In the caller's words."""
    trace_id: str
    route: tuple[str, ...] = ()
    """Every planner that was asked for the plan in force, a line each."""


def timeline_page(subject: Subject, spans: Sequence[Span]) -> str:
    """The page as text, to be written in UTF-8.

    Args:
        subject: the task.
        spans: what `conductor.timeline.timeline` found; may be empty.
    """
    body = (
        f"<h1>Task {escape(subject.task_id)}</h1>"
        f'<div class="dim">{escape(subject.status)}{_facts(spans)} · trace {escape(subject.trace_id)}</div>'
        f'<p class="request">{escape(subject.request)}</p>'
        + "".join(f'<div class="dim">Planner {escape(line)}</div>' for line in subject.route)
    )
    if spans:
        body += f'<div class="picture">{_picture(spans)}</div>{_table(spans)}'
    else:
        body += "<p>Nothing has run yet.</p>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Timeline of task {escape(subject.task_id)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _facts(spans: Sequence[Span]) -> str:
    if not spans:
        return ""
    steps = [span for span in spans if span.kind == "step"]
    whole = max(span.end for span in spans) - min(span.start for span in spans)
    worked = sum((span.end - span.start for span in steps), timedelta(0))
    retries = sum(span.attempt > 1 for span in steps)
    words = f" · {len(steps)} attempts in {_duration(whole)}, {_duration(worked)} of work"
    return words + (f", {retries} of them again" if retries else "")


def _picture(spans: Sequence[Span]) -> str:
    begin = min(span.start for span in spans)
    whole_s = max((max(span.end for span in spans) - begin).total_seconds(), 1e-6)
    scale = _PICTURE_PX / whole_s
    height = _AXIS_PX + _ROW_PX * len(spans)
    pieces = [*_grid(whole_s, height)]
    last_row: dict[str, int] = {}
    for row, span in enumerate(spans):
        left = _LABEL_PX + (span.start - begin).total_seconds() * scale
        width = max((span.end - span.start).total_seconds() * scale, _SHORTEST_BAR_PX)
        top = _AXIS_PX + row * _ROW_PX
        pieces += _needs(span, spans, last_row, left, top, begin, scale)
        kind = span.outcome if span.kind == "step" or span.outcome != "succeeded" else "wait"
        pieces += [
            f"<g><title>{escape(_sentence(span, begin))}</title>",
            f'<text x="0" y="{top + 12}">{escape(_label(span))}</text>',
            f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR_PX}" rx="2"/></g>',
        ]
        last_row[span.uid] = row
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="What ran when, as in the table below" '
        f'width="{_LABEL_PX + _PICTURE_PX + 10}" height="{height}">{"".join(pieces)}</svg>'
    )


def _grid(whole_s: float, height: int) -> list[str]:
    pieces = []
    for number in range(_GRID_LINES + 1):
        x = _LABEL_PX + _PICTURE_PX * number / _GRID_LINES
        anchor = {0: "start", _GRID_LINES: "end"}.get(number, "middle")
        moment = _duration(timedelta(seconds=whole_s * number / _GRID_LINES))
        pieces.append(f'<line x1="{x:.1f}" y1="18" x2="{x:.1f}" y2="{height}"/>')
        pieces.append(f'<text class="dim" x="{x:.1f}" y="12" text-anchor="{anchor}">{moment}</text>')
    return pieces


def _needs(
    span: Span,
    spans: Sequence[Span],
    rows: Mapping[str, int],
    left: float,
    top: float,
    begin: datetime,
    scale: float,
) -> list[str]:
    """Lines from the ends of the steps whose outputs it needed."""
    paths = []
    for uid in span.after:
        if (row := rows.get(uid)) is None:
            continue
        x = _LABEL_PX + (spans[row].end - begin).total_seconds() * scale
        y = _AXIS_PX + row * _ROW_PX + _BAR_PX
        paths.append(f'<path d="M{x:.1f} {y} V{top + _BAR_PX / 2:.0f} H{left:.1f}" opacity="0.6"/>')
    return paths


def _table(spans: Sequence[Span]) -> str:
    begin = min(span.start for span in spans)
    numbers = "".join(f"<th class=n>{name}</th>" for name in ("Step", "Attempt", "From", "Took"))
    head = f"<tr><th>What</th>{numbers}<th>Outcome</th></tr>"
    rows = "".join(
        f"<tr><td>{escape(_subject(span))}</td><td class=n>{span.index if span.index >= 0 else ''}</td>"
        f"<td class=n>{span.attempt or ''}</td><td class=n>{_duration(span.start - begin)}</td>"
        f"<td class=n>{_duration(span.end - span.start)}</td><td>{escape(_outcome(span))}</td></tr>"
        for span in spans
    )
    caption = "<caption class=dim>The same in numbers</caption>"
    return f"<table>{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>"


def _label(span: Span) -> str:
    text = _subject(span) if span.kind != "step" else f"{span.index}: {span.name}"
    if span.attempt > 1 and span.kind == "step":
        text += f" (attempt {span.attempt})"
    return text if len(text) <= 36 else text[:35] + "…"


def _subject(span: Span) -> str:
    return span.name if span.kind == "step" else _WAITS[span.kind]


def _outcome(span: Span) -> str:
    return f"{span.outcome}: {span.code}" if span.code else span.outcome


def _sentence(span: Span, begin: datetime) -> str:
    return (
        f"{_label(span)}: {_outcome(span)}, from {_duration(span.start - begin)} "
        f"for {_duration(span.end - span.start)}"
    )


def _duration(length: timedelta) -> str:
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"
