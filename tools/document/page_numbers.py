"""Is a page missing? A page that says "2 of 3" tells how many there should be."""

import re
from collections.abc import Iterator, Sequence

from tools.document.reading import Box, Page, PageFinding

_WORDS = r"(?:page|pg\.?|seite|blatt|página|pagina|pág\.?|pag\.?|sheet|feuille)"
_OF = r"(?:of|von|de|sur|di|van|/|\|)"
_PATTERNS = (
    re.compile(
        rf"(?<!\w){_WORDS}\s*(?:n[°o.]\s*)?:?\s*(\d{{1,3}})\s*{_OF}\s*(\d{{1,3}})(?!\d|[.,/]\d)", re.IGNORECASE
    ),
    re.compile(r"第\s*(\d{1,3})\s*[页頁张]\s*[,，/、]?\s*[(（]?\s*共\s*(\d{1,3})\s*[页頁张]"),
    re.compile(r"共\s*(?P<total>\d{1,3})\s*[页頁]\s*[,，/、]?\s*第\s*(?P<number>\d{1,3})\s*[页頁]"),
)


def page_label(text: str) -> tuple[int, int] | None:
    """The page's number and the number of pages, where `text` tells them ("Seite 1 von 2", "第1页 共2页")."""
    for pattern in _PATTERNS:
        match = pattern.search(text)
        if match:
            named = match.groupdict()
            number, total = (named["number"], named["total"]) if named else match.group(1, 2)
            if 1 <= int(number) <= int(total):
                return int(number), int(total)
    return None


def missing_pages(pages: Sequence[Page]) -> tuple[PageFinding, ...]:
    """One finding for every document whose page labels name pages that are not there; the box shows the label."""
    labels = list(_labels(pages))
    if not labels:
        return ()
    page, box, _, total = max(labels, key=lambda label: label[3])
    present = {number for _, _, number, _ in labels}
    # Pages without a readable label may be any of the missing ones.
    unlabelled = len(pages) - len({label[0] for label in labels})
    missing = [number for number in range(1, total + 1) if number not in present]
    if len(missing) <= unlabelled:
        return ()
    names = ", ".join(str(number) for number in missing)
    message = f"the page says there are {total} pages; missing: {names}" + (
        f" (of which {unlabelled} may be here without a label)" if unlabelled else ""
    )
    return (PageFinding(code="page_missing", message=message, page=page, box=box),)


def _labels(pages: Sequence[Page]) -> Iterator[tuple[int, Box, int, int]]:
    for page in pages:
        for line in page.lines:
            label = page_label(line.text)
            if label:
                yield page.page, line.box, *label
                break
