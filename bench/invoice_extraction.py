"""How well invoices of unknown layout are read: held-out pages through OCR and extractor, beside a baseline.

python -m bench.invoice_extraction --count 60 --json
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agents.packs.invoice.extraction.extract import extract
from bench.invoice_layouts import GeneratedInvoice, generate
from bench.invoice_layouts.answers import FIELDS, Answers, answers_of
from bench.invoice_layouts.gallery import write_gallery
from bench.invoice_layouts.naive import naive_answers
from bench.invoice_layouts.scoring import PageScore, score_page, summary
from tools.document.reader import DocumentReader

HELD_OUT_SEED = 910_000
"""First seed of the held-out range; `--count` seeds from here on were never shown to the extractor's developer."""

_QUICK_PAGES = 10
_QUICK_STRIDE = 7
"""Coprime to the number of layouts and of captures, so that few pages cover many of both."""
_QUICK_SECONDS = 45.0

Clock = Callable[[], float]


def run(
    seeds: Sequence[int], *, threads: int, html: Path | None, clock: Clock, limit_seconds: float | None
) -> dict[str, Any]:
    """Generate, read, extract and score the pages of `seeds`; stops early after `limit_seconds`, and says so."""
    reader = DocumentReader(threads=threads)
    ours: list[PageScore] = []
    baseline: list[PageScore] = []
    shown: list[tuple[GeneratedInvoice, PageScore]] = []
    reading_seconds = extracting_seconds = 0.0
    started = clock()
    for index, seed in enumerate(seeds, start=1):
        if limit_seconds is not None and clock() - started > limit_seconds:
            _say(f"stopped after {index - 1} of {len(seeds)} pages: {limit_seconds:.0f} s are over")
            break
        page = generate(seed)
        before = clock()
        reading = reader.read(page.image, page.file_name)
        read = clock()
        answers = answers_of(extract(reading))
        reading_seconds += read - before
        extracting_seconds += clock() - read
        score = score_page(page, answers)
        ours.append(score)
        baseline.append(score_page(page, naive_answers(reading)))
        shown.append((page, score))
        _say(f"{index}/{len(seeds)} {page.layout} {page.language} {page.degradation}: {_mistakes(score, answers)}")
    pages = max(len(ours), 1)
    result: dict[str, Any] = {
        "seeds": {"first": seeds[0], "last": seeds[-1], "asked": len(seeds)},
        "extractor": summary(ours),
        "baseline": summary(baseline),
        "seconds_per_page": {
            "reading": round(reading_seconds / pages, 3),
            "extraction": round(extracting_seconds / pages, 4),
        },
    }
    if html is not None:
        result["html"] = str(write_gallery(html, shown))
    return result


def table(result: dict[str, Any]) -> str:
    """The result as a table for people."""
    ours, naive = result["extractor"], result["baseline"]
    lines = [
        f"{ours['pages']} pages from seed {result['seeds']['first']}; "
        f"reading {result['seconds_per_page']['reading']} s, "
        f"extraction {result['seconds_per_page']['extraction']} s a page",
        f"{'field':12}{'asked':>6}{'right':>7}{'baseline':>10}{'wrong':>7}{'missing':>9}"
        f"{'flagged':>9}{'sure':>8}{'box':>8}{'spurious':>10}",
    ]
    for name in (*FIELDS, "four_fields"):
        mine = ours["fields"].get(name) or ours["four_fields"]
        other = naive["fields"].get(name) or naive["four_fields"]
        lines.append(
            f"{name:12}{mine['asked']:>6}{_percent(mine['accuracy']):>7}{_percent(other['accuracy']):>10}"
            f"{mine['wrong']:>7}{mine['missing']:>9}{_percent(mine['failures_flagged']):>9}"
            f"{_percent(mine['right_confident']):>8}{_percent(mine['box_right']):>8}{mine['spurious']:>10}"
        )
    whole = "whole_page_accuracy"
    lines.append(
        f"all four right on a page: {_percent(ours['four_fields'][whole])}, "
        f"baseline {_percent(naive['four_fields'][whole])}"
    )
    lines.append("flagged: failures below the review threshold; sure: right ones above it")
    for group in ("by_language", "by_degradation", "by_layout"):
        parts = [f"{name} {_percent(entry['accuracy'])}" for name, entry in ours[group].items()]
        lines.append(f"{group.replace('_', ' ')}: {', '.join(parts)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.invoice_extraction",
        description="Accuracy of the invoice extractor on generated invoices it was not developed on, beside a"
        " baseline that takes the first pattern match.",
        epilog=f"The held-out seeds start at {HELD_OUT_SEED}. Progress goes to stderr.",
    )
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_PAGES} pages, under 60 s")
    parser.add_argument("--count", type=int, default=60, help="number of pages (60)")
    parser.add_argument("--seed", type=int, default=HELD_OUT_SEED, help=f"first seed ({HELD_OUT_SEED})")
    parser.add_argument("--threads", type=int, default=2, help="threads of the OCR (2)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--html", type=Path, metavar="DIR", help="write a page with pictures, boxes and mistakes")
    options = parser.parse_args(arguments)
    if options.count < 1:
        parser.error("--count must be at least 1")
    seeds = range(options.seed, options.seed + options.count)
    if options.quick:
        seeds = range(options.seed, options.seed + _QUICK_PAGES * _QUICK_STRIDE, _QUICK_STRIDE)
    limit = _QUICK_SECONDS if options.quick else None
    result = run(seeds, threads=options.threads, html=options.html, clock=time.perf_counter, limit_seconds=limit)
    print(json.dumps(result, ensure_ascii=False) if options.json else table(result))
    return 0


def _mistakes(score: PageScore, answers: Answers) -> str:
    failed = [
        f"{name} {outcome.verdict} ({answers[name].confidence:.2f})"
        for name, outcome in score.outcomes.items()
        if outcome.verdict not in {"right", "absent"}
    ]
    return ", ".join(failed) or "all right"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
