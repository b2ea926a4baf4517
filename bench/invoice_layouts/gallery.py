"""Writes a web page that shows the pages with their boxes and every mistake, for a person to look at."""

import html
from collections.abc import Sequence
from pathlib import Path

from bench.invoice_layouts.degrade import Box
from bench.invoice_layouts.generator import GeneratedInvoice
from bench.invoice_layouts.scoring import Outcome, PageScore

_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:24px;background:#f4f5f7;color:#1c1e22}
section{background:#fff;border-radius:8px;padding:16px;margin:0 0 20px}
section{display:grid;grid-template-columns:1fr 1fr;gap:20px}
.page{position:relative}.page img{width:100%;display:block;border:1px solid #d5d8dd}
.box{position:absolute;border:2px solid #2a8a4a;border-radius:2px}
.box.answer{border-color:#c22f2f;border-style:dashed}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:3px 6px;border-bottom:1px solid #e6e8eb;overflow-wrap:anywhere}
.wrong td,.missing td{background:#fdeaea}.spurious td{background:#fff4dc}
.sure{font-weight:700;color:#a01818}h2{font-size:16px;margin:0 0 8px}
"""


def write_gallery(folder: Path, pages: Sequence[tuple[GeneratedInvoice, PageScore]]) -> Path:
    """Write ``index.html`` and the pictures into `folder`, pages with mistakes first; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(pages, key=lambda entry: entry[1].four_right)
    parts = []
    for page, score in ordered:
        (folder / page.file_name).write_bytes(page.image)
        parts.append(_section(page, score))
    target = folder / "index.html"
    target.write_text(
        f"<!doctype html><meta charset=utf-8><title>Held-out invoices</title><style>{_STYLE}</style>"
        "<h1>Held-out invoices</h1><p>Green: where the field is printed."
        " Red, dashed: where a failed answer was read."
        f" Bold: wrong and above the review threshold.</p>{''.join(parts)}",
        encoding="utf-8",
    )
    return target


def _section(page: GeneratedInvoice, score: PageScore) -> str:
    boxes = [_mark(page, box, "box", name) for name, places in page.boxes.items() for box in places]
    boxes += [
        _mark(page, outcome.answer.box, "box answer", name)
        for name, outcome in score.outcomes.items()
        if outcome.answer.box and outcome.verdict in {"wrong", "spurious"}
    ]
    rows = "".join(_row(outcome) for outcome in score.outcomes.values())
    title = f"{page.file_name} · {page.layout} · {page.language}/{page.country} · {page.degradation_details}"
    return (
        f'<section><div class=page><img loading=lazy src="{page.file_name}" alt="">{"".join(boxes)}</div>'
        f"<div><h2>{html.escape(title)}</h2>"
        "<table><tr><th>field<th>verdict<th>expected<th>answer<th>confidence</tr>"
        f"{rows}</table></div></section>"
    )


def _row(outcome: Outcome) -> str:
    sure = outcome.verdict in {"wrong", "spurious"} and not outcome.flagged
    cells = (outcome.field, outcome.verdict, outcome.expected or "", outcome.answer.value or "")
    shown = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    confidence = f"<td{' class=sure' if sure else ''}>{outcome.answer.confidence:.2f}</td>"
    return f"<tr class={outcome.verdict}>{shown}{confidence}</tr>"


def _mark(page: GeneratedInvoice, box: Box, kind: str, title: str) -> str:
    width, height = page.size
    left, top = 100 * box[0] / width, 100 * box[1] / height
    size = f"width:{100 * box[2] / width:.2f}%;height:{100 * box[3] / height:.2f}%"
    return f'<div class="{kind}" title="{title}" style="left:{left:.2f}%;top:{top:.2f}%;{size}"></div>'
