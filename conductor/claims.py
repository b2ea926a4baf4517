"""Find the claims of a Markdown answer and the sources they name."""

import re
from collections.abc import Iterator

_SOURCE = re.compile(r"\[(?:Sources?|来源|Quellen?|Fuentes?|Bronn?e?n?)\s*[:：]\s*([^\]]+)\]")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")


def cited(text: str) -> tuple[str, ...]:
    """Source ids in order of appearance, from `[Source: S1]` and `[Source: S1, S2]`."""
    return tuple(
        part.strip()
        for match in _SOURCE.finditer(text)
        for part in re.split(r"[,，;、]", match[1])
        if part.strip()
    )


def claims(markdown: str) -> Iterator[str]:
    """The claims of an answer: each list item, each paragraph, each table with the line that follows it.

    Headings, rules, quotes (notes about the answer), code blocks, lines that only lead in to a list or table (they
    end with a colon) and lines without a letter or digit claim nothing.
    """
    block: list[str] = []
    in_code = in_table = False
    for line in [*markdown.splitlines(), ""]:
        if line.lstrip().startswith("```"):
            in_code = not in_code
            continue
        if in_code:
            continue
        table_row = line.lstrip().startswith("|")
        if in_table and not table_row and not line.strip():
            continue  # the sources of a table may stand below it, after an empty line
        starts_claim = bool(_ITEM.match(line)) or (table_row and not in_table)
        # The rule under a table's header is part of the table and ends nothing.
        ends = not line.strip() or (_claims_nothing(line) and not table_row) or starts_claim
        if in_table and not table_row:
            if cited(line) and not _SOURCE.sub("", line).strip(" .。*_()"):
                block.append(line)
                line = ""
            ends = True
        if ends and block:
            yield "\n".join(block)
            block = []
        in_table = table_row
        if line.strip() and not _claims_nothing(line):
            block.append(line)
    if block:
        yield "\n".join(block)


def is_chinese(text: str) -> bool:
    """Whether a text is mainly Chinese: a fifth of its letters or more are Han characters."""
    letters = len(_LETTER.findall(text))
    return letters > 0 and len(_HAN.findall(text)) * 5 >= letters


def _claims_nothing(line: str) -> bool:
    bare = line.strip()
    return (
        bare.startswith(("#", ">"))
        or not re.search(r"\w", bare)
        or (bare.rstrip("*_ ").endswith((":", "：")) and not cited(bare))
    )
