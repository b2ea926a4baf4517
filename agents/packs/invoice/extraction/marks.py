"""Currency marks and countries: what ``$``, ``kr`` or ``¥`` can mean, and what a page's addresses say about it."""

import re
from collections.abc import Mapping

CODES = frozenset(
    (
        "EUR",
        "USD",
        "GBP",
        "CHF",
        "CNY",
        "JPY",
        "SEK",
        "NOK",
        "DKK",
        "PLN",
        "CZK",
        "HUF",
        "RON",
        "BGN",
        "TRY",
        "RUB",
        "UAH",
        "CAD",
        "AUD",
        "NZD",
        "SGD",
        "HKD",
        "TWD",
        "KRW",
        "INR",
        "IDR",
        "MYR",
        "THB",
        "PHP",
        "VND",
        "AED",
        "SAR",
        "ILS",
        "ZAR",
        "EGP",
        "MAD",
        "NGN",
        "KES",
        "BRL",
        "MXN",
        "ARS",
        "CLP",
        "COP",
        "PEN",
        "UYU",
        "ISK",
        "QAR",
        "KWD",
        "PKR",
        "BDT",
        "LKR",
        "RSD",
    )
)

SYMBOLS: Mapping[str, tuple[str, ...]] = {
    "€": ("EUR",),
    "euros": ("EUR",),
    "euro": ("EUR",),
    "£": ("GBP",),
    "us$": ("USD",),
    "usd$": ("USD",),
    "u.s.$": ("USD",),
    "c$": ("CAD",),
    "ca$": ("CAD",),
    "cad$": ("CAD",),
    "can$": ("CAD",),
    "a$": ("AUD",),
    "au$": ("AUD",),
    "aud$": ("AUD",),
    "nz$": ("NZD",),
    "s$": ("SGD",),
    "sgd$": ("SGD",),
    "hk$": ("HKD",),
    "hkd$": ("HKD",),
    "nt$": ("TWD",),
    "mx$": ("MXN",),
    "r$": ("BRL",),
    "$": ("USD", "CAD", "AUD", "MXN", "NZD", "SGD", "HKD", "ARS", "CLP", "COP", "TWD"),
    "sfr.": ("CHF",),
    "sfr": ("CHF",),
    "fr.": ("CHF",),
    "chf": ("CHF",),
    "rmb": ("CNY",),
    "cn¥": ("CNY",),
    "jp¥": ("JPY",),
    "¥": ("CNY", "JPY"),
    "元": ("CNY",),
    "人民币": ("CNY",),
    "円": ("JPY",),
    "日元": ("JPY",),
    "美元": ("USD",),
    "欧元": ("EUR",),
    "英镑": ("GBP",),
    "港币": ("HKD",),
    "港元": ("HKD",),
    "kr.": ("DKK", "SEK", "NOK"),
    "kr": ("SEK", "NOK", "DKK", "ISK"),
    "zl": ("PLN",),
    "zł": ("PLN",),
    "kc": ("CZK",),
    "lei": ("RON",),
    "₹": ("INR",),
    "rs.": ("INR", "PKR", "LKR"),
    "rs": ("INR", "PKR", "LKR"),
    "₩": ("KRW",),
    "₺": ("TRY",),
    "₽": ("RUB",),
    "₴": ("UAH",),
    "฿": ("THB",),
    "₫": ("VND",),
    "₪": ("ILS",),
    "₱": ("PHP",),
    "s/": ("PEN",),
    "dollars": ("USD",),
    "franken": ("CHF",),
    "pesos": ("MXN",),
    "yuan": ("CNY",),
}
"""Folded mark to the currencies it can mean, the commonest first. Codes mean themselves."""

# Symbols with letters need a boundary in text, plain symbols do not.
_CODE_WORDS = "|".join(sorted((code.lower() for code in CODES), key=len, reverse=True))
_LETTERED = "|".join(
    re.escape(mark)
    for mark in sorted(
        (mark for mark in SYMBOLS if mark[0].isascii() and mark[0].isalpha()), key=len, reverse=True
    )
)
_BARE = "|".join(
    re.escape(mark)
    for mark in sorted(
        (mark for mark in SYMBOLS if not (mark[0].isascii() and mark[0].isalpha())), key=len, reverse=True
    )
)
MARK_PATTERN = rf"(?<![a-z])(?:(?:{_CODE_WORDS})\s?[$€£¥]?|{_LETTERED})(?![a-z])|{_BARE}"
"""Pattern for a currency mark in folded text."""

MARK = re.compile(MARK_PATTERN)

ZERO_DECIMAL = frozenset({"JPY", "KRW", "VND", "CLP", "ISK", "IDR"})
"""Currencies usually written without decimals."""

COUNTRY_WORDS: Mapping[str, tuple[str, ...]] = {
    "US": ("usa", "united states", "u.s.a.", "united states of america"),
    "GB": ("united kingdom", "england", "scotland", "wales", "uk", "great britain"),
    "CA": ("canada",),
    "AU": ("australia", "nsw", "victoria vic"),
    "NZ": ("new zealand",),
    "SG": ("singapore",),
    "HK": ("hong kong", "hongkong", "香港"),
    "IE": ("ireland",),
    "IN": ("india",),
    "DE": ("deutschland", "germany", "allemagne", "duitsland", "alemania", "德国"),
    "AT": ("osterreich", "austria", "autriche"),
    "CH": ("schweiz", "suisse", "switzerland", "svizzera", "zwitserland", "suiza"),
    "FR": ("france", "frankreich", "frankrijk", "francia"),
    "BE": ("belgique", "belgie", "belgium", "belgien"),
    "LU": ("luxembourg",),
    "NL": ("nederland", "netherlands", "niederlande", "pays-bas", "paises bajos"),
    "ES": ("espana", "spain", "spanien", "espagne", "spanje"),
    "MX": ("mexico", "méxico"),
    "IT": ("italia", "italy", "italien"),
    "PT": ("portugal",),
    "CN": ("china", "p.r. china", "中国", "中國", "上海", "北京", "深圳", "广州", "杭州"),
    "JP": ("japan", "日本", "東京", "tokyo", "osaka"),
    "TW": ("taiwan", "台湾", "台灣"),
    "KR": ("korea",),
    "SE": ("sweden", "sverige"),
    "NO": ("norway", "norge"),
    "DK": ("denmark", "danmark"),
    "FI": ("finland", "suomi"),
    "PL": ("poland", "polska"),
    "CZ": ("czech",),
    "AR": ("argentina",),
    "CL": ("chile",),
    "CO": ("colombia",),
    "BR": ("brasil", "brazil"),
    "ZA": ("south africa",),
}
"""Folded words in an address that name a country."""

COUNTRY_CURRENCY: Mapping[str, str] = {
    "US": "USD",
    "GB": "GBP",
    "CA": "CAD",
    "AU": "AUD",
    "NZ": "NZD",
    "SG": "SGD",
    "HK": "HKD",
    "IE": "EUR",
    "IN": "INR",
    "DE": "EUR",
    "AT": "EUR",
    "CH": "CHF",
    "LI": "CHF",
    "FR": "EUR",
    "BE": "EUR",
    "LU": "EUR",
    "NL": "EUR",
    "ES": "EUR",
    "MX": "MXN",
    "IT": "EUR",
    "PT": "EUR",
    "CN": "CNY",
    "JP": "JPY",
    "TW": "TWD",
    "KR": "KRW",
    "SE": "SEK",
    "NO": "NOK",
    "DK": "DKK",
    "FI": "EUR",
    "PL": "PLN",
    "CZ": "CZK",
    "AR": "ARS",
    "CL": "CLP",
    "CO": "COP",
    "BR": "BRL",
    "ZA": "ZAR",
}


def meanings(mark: str) -> tuple[str, ...]:
    """The currencies a folded mark can mean, the commonest first; empty when it is no currency mark."""
    bare = mark.strip()
    if bare in SYMBOLS:
        return SYMBOLS[bare]
    code = bare.rstrip("$€£¥ ").upper()
    return (code,) if code in CODES else ()
