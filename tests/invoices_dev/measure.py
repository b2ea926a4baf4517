"""Measure the extraction on the cached development invoices: accuracy by field, and how honest the confidence is.

python -m tests.invoices_dev.measure --show number date --held-out
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path

from agents.packs.invoice.extraction import REVIEW_THRESHOLD, extract, verify_in_text
from tests.invoices_dev.layouts import HELD_OUT
from tools.document.reading import DocumentReading

CORE = ("number", "date", "currency", "total")


def same(name: str, wanted: str, got: str | None) -> bool:
    if got is None:
        return wanted == ""
    if name in {"total", "tax"}:
        try:
            return Decimal(got) == Decimal(wanted or "NaN")
        except InvalidOperation:
            return False
    if name == "supplier":
        return wanted.replace(" ", "").casefold() == got.replace(" ", "").casefold()
    return wanted.replace(" ", "") == got.replace(" ", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("/tmp/podium_invoices"))
    parser.add_argument("--show", nargs="*", default=[], help="print the wrong values of these fields")
    parser.add_argument(
        "--unsure", action="store_true", help="with --show: right values below the threshold instead"
    )
    parser.add_argument("--held-out", action="store_true", help="only families that nothing was fitted on")
    parser.add_argument("--pattern", default="*.json")
    options = parser.parse_args()
    tables: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    buckets: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    unverified, spent, count = 0, 0.0, 0
    out = sys.stdout.write
    for path in sorted(options.corpus.glob(options.pattern)):
        case = json.loads(path.read_text())
        if options.held_out and case["family"] not in HELD_OUT:
            continue
        reading = DocumentReading.from_json(case["reading"])
        started = time.perf_counter()
        result = extract(reading)
        spent += time.perf_counter() - started
        count += 1
        for name in (*CORE, "due_date", "supplier", "tax"):
            field, wanted = result[name], case["truth"].get(name, "")
            if name == "tax" and not Decimal(wanted or "0"):
                continue
            right = same(name, wanted, field.value)
            sure = field.confidence >= REVIEW_THRESHOLD
            if field.value is not None or wanted:
                tables[name][(0 if right else 2) + (0 if sure else 1)] += 1
                if name in CORE:
                    buckets[int(field.confidence * 10)][not right] += 1
            unverified += not verify_in_text(reading, field)
            if name in options.show and (
                right and not sure and field.value is not None if options.unsure else not right
            ):
                kind = f"{case['family']} {case['truth']['lang']} harsh={case['harsh']}"
                out(f"{path.stem} {kind} {name}: want {wanted!r} got {field.value!r} {field.confidence:.2f} ")
                out(f"{field.reasons} src={field.source_text!r}\n")
    out(f"{count} documents, {1000 * spent / max(count, 1):.1f} ms each, {unverified} values not verifiable\n")
    out("field      right  right<0.8  WRONG>=0.8  wrong<0.8  accuracy\n")
    for name, (a, b, c, d) in tables.items():
        out(f"{name:10} {a:5} {b:10} {c:11} {d:10}  {100 * (a + b) / max(1, a + b + c + d):8.1f} %\n")
    core = [sum(tables[name][i] for name in CORE) for i in range(4)]
    wrong = core[2] + core[3]
    share, sure_share = (100 * part / max(1, sum(core)) for part in (core[0] + core[1], core[0]))
    out(f"core: {share:.2f} % right, {sure_share:.1f} % right and sure; of {wrong} wrong {core[3]} below 0.8\n")
    for bucket in sorted(buckets):
        right_count, wrong_count = buckets[bucket]
        out(f"  confidence {bucket / 10:.1f}+: {right_count} right, {wrong_count} wrong\n")


if __name__ == "__main__":
    main()
