"""Personal data in text that leaves as a log line or a span: found by its form and blotted out.

This is the second net. The first is that requests, documents and answers are never put into logs and spans at
all: a name has no form by which it could be found.
"""

import re
import unicodedata

BLOT = "[redacted]"

_GAP = "[ \\t\u00a0\u2007\u2009\u202f\u3000._/\u2010-\u2015\u2212-]{0,3}"
"""What people put between groups of digits."""
_KEPT = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"  # UUID
    r"|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}"  # trace ids and hashes
    r"|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?"  # ISO 8601
    r")(?![0-9A-Za-z])"
)
_DIGITS = re.compile(rf"(?<![0-9A-Za-z])\d(?:{_GAP}\d){{10,}}(?![0-9A-Za-z])")
_GROUP = re.compile(r"\d+")
_IBAN = re.compile(rf"(?<![0-9A-Za-z])[A-Z]{{2}}\d{{2}}(?:{_GAP}[0-9A-Z]){{11,30}}(?![0-9A-Za-z])")
_EMAIL = re.compile(r"[\w.+%'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_PHONE = re.compile(
    rf"(?<![0-9A-Za-z])(?:\+\d(?:{_GAP}[(]?\d[)]?){{7,14}}"  # international
    r"|\(\d{3}\)[ ]?\d{3}[-. ]\d{4}|\d{3}[-.]\d{3}[-.]\d{4}"  # North America
    r"|1[3-9]\d[ -]?\d{4}[ -]?\d{4})(?![0-9A-Za-z])"  # mobile, China
)
_CARD_PREFIX = re.compile(r"3|4|5|6|8[12]|9792|220[0-4]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720")
"""First digits of payment cards. None begins as the number of a moment in this century does: 1 or 20."""
_CARD_LENGTHS = range(13, 20)
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHINESE_ID = re.compile(r"(?<![0-9A-Za-z])[1-9]\d{16}[0-9Xx](?![0-9A-Za-z])")
_SUSPICIOUS = re.compile(r"\d.{0,3}\d.{0,3}\d.{0,3}\d.{0,3}\d|@")


def redacted(text: str) -> str:
    """The text without card numbers, IBANs, e-mail addresses, telephone numbers and Chinese identity numbers.

    UUIDs, hashes and ISO times stay as they are.
    """
    if _SUSPICIOUS.search(text) is None:
        return text
    parts: list[str] = []
    end = 0
    for kept in _KEPT.finditer(text):
        parts += [_blotted(text[end : kept.start()]), kept.group()]
        end = kept.end()
    parts.append(_blotted(text[end:]))
    return "".join(parts)


def _blotted(text: str) -> str:
    text = _EMAIL.sub(BLOT, text)
    text = _IBAN.sub(_iban, text)
    text = _CHINESE_ID.sub(_chinese_id, text)
    text = _DIGITS.sub(_cards, text)
    return _PHONE.sub(BLOT, text)


def _iban(match: re.Match[str]) -> str:
    letters = [character for character in _plain(match.group()) if character.isalnum()]
    # Words may follow the number: the longest beginning that is a valid IBAN counts.
    for length in range(min(len(letters), 34), 14, -1):
        code = "".join(letters[4:length] + letters[:4])
        if int("".join(str(int(character, 36)) for character in code)) % 97 == 1:
            return BLOT + _after(match.group(), length)
    return match.group()


def _after(text: str, length: int) -> str:
    """What follows the first `length` letters and digits."""
    seen = 0
    for place, character in enumerate(text):
        seen += character.isalnum()
        if seen == length:
            return text[place + 1 :]
    return ""


def _chinese_id(match: re.Match[str]) -> str:
    digits = _plain(match.group()).upper()
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, digits, strict=False))
    return BLOT if "10X98765432"[total % 11] == digits[17] else match.group()


def _cards(match: re.Match[str]) -> str:
    """A run of digits with what separates them; other numbers may stand before and after a card's."""
    text = match.group()
    groups = list(_GROUP.finditer(text))
    out, end, first = [], 0, 0
    while first < len(groups):
        last = _card_from(groups, first)
        if last is None:
            first += 1
            continue
        out += [text[end : groups[first].start()], BLOT]
        end, first = groups[last].end(), last + 1
    return "".join([*out, text[end:]])


def _card_from(groups: list[re.Match[str]], first: int) -> int | None:
    """The group that a card number which begins with group `first` ends with."""
    digits, found = "", None
    for place in range(first, len(groups)):
        digits += _plain(groups[place].group())
        if len(digits) > _CARD_LENGTHS[-1]:
            break
        if len(digits) in _CARD_LENGTHS and _CARD_PREFIX.match(digits) and _luhn(digits):
            found = place
    return found


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + place % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def _plain(text: str) -> str:
    """Digits of any script as 0-9."""
    return unicodedata.normalize("NFKC", text) if not text.isascii() else text
