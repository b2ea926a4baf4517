"""What the whole page says about its language and country; used where a value alone can be read two ways."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agents.packs.invoice.extraction.frame import Sheet
from agents.packs.invoice.extraction.marks import COUNTRY_WORDS

_WORDS: Mapping[str, str] = {
    "en": """
        invoice date total amount due payment number tax vat description quantity price bill order
        customer subtotal terms please your the and of to for balance unit item
    """,
    "de": """
        rechnung rechnungsnummer datum betrag mwst ust gesamt gesamtbetrag menge preis einzelpreis
        zahlbar kunde kundennummer netto brutto und der die das bitte bezeichnung lieferdatum summe
        steuer seite rechnungsdatum faellig fallig vom
    """,
    "fr": """
        facture date montant tva total ttc ht quantite prix client designation echeance paiement le la
        les et de du des a payer remise commande livraison unitaire numero
    """,
    "nl": """
        factuur factuurnummer factuurdatum datum bedrag btw totaal aantal prijs omschrijving klant
        klantnummer betalen vervaldatum te en van het een incl excl subtotaal
    """,
    "es": """
        factura fecha importe iva total cantidad precio cliente descripcion vencimiento base imponible
        pago el la los y de del numero pedido concepto
    """,
    "it": """
        fattura data importo totale quantita prezzo cliente descrizione scadenza imponibile pagamento il
        e di numero
    """,
    "pt": """
        fatura valor total quantidade preco cliente descricao vencimento pagamento o e de numero
    """,
}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {
    word: tuple(language for language, words in _WORDS.items() if word in words.split())
    for word in " ".join(_WORDS.values()).split()
}

_US_STATE_ZIP = re.compile(
    r"\b(?:al|ak|az|ar|ca|co|ct|de|fl|ga|hi|id|il|in|ia|ks|ky|la|me|md|ma|mi|mn|ms|mo|mt|ne|nv|nh|nj|nm|ny|nc|nd|oh|ok|or|pa|ri|sc|sd|tn|tx|ut|vt|va|wa|wv|wi|wy|dc)"
    r"[ ,]{1,2}\d{5}(?:-\d{4})?\b"
)
_UK_POSTCODE = re.compile(r"\b[a-z]{1,2}\d[a-z\d]?\s?\d[a-z]{2}\b")
_CA_POSTCODE = re.compile(
    r"\b(?:on|qc|bc|ab|mb|sk|ns|nb|nl|pe)\s+[a-z]\d[a-z]\s?\d[a-z]\d\b"
    r"|\b[abceghj-nprstvxy]\d[abceghj-nprstv-z] \d[abceghj-nprstv-z]\d\b"
)
_AU_STATE = re.compile(r"\b(?:nsw|vic|qld|wa|sa|tas|act|nt)\s+\d{4}\b")
_NL_POSTCODE = re.compile(r"\b\d{4}\s?[a-z]{2}\b(?=\s+[a-z]{3})")
_IBAN_COUNTRY = re.compile(
    r"\b(?:iban:?\s?)?(ad|ae|at|be|bg|ch|cy|cz|de|dk|ee|es|fi|fr|gb|gr|hr|hu|ie|is|it|li|lt|lu|lv|mc|mt|nl|no|pl|pt|ro|se|si|sk|tr)\d{2}\s?[a-z0-9]{4}\s?[a-z0-9]{4}"
)
_VAT_COUNTRY = re.compile(r"\b(atu|be|de|dk|es|fi|fr|gb|ie|it|lu|nl|pl|pt|se|che)[- ]?\d{3}[\d. -]{4,9}")
_PHONE_COUNTRY = {
    "1": "US",
    "44": "GB",
    "49": "DE",
    "33": "FR",
    "31": "NL",
    "34": "ES",
    "41": "CH",
    "43": "AT",
    "32": "BE",
    "86": "CN",
    "81": "JP",
    "61": "AU",
    "65": "SG",
    "852": "HK",
    "46": "SE",
    "47": "NO",
    "45": "DK",
    "48": "PL",
    "52": "MX",
}
_PHONE = re.compile(r"(?:\+|\b00)\s?(852|1|4[1345678]|49|3[1-4]|86|81|61|65|52)[\s().-]")
_US_WORDS = re.compile(r"\b(?:sales tax|zip|ein|remit to|bill to|check payable)\b")
_NON_US_WORDS = re.compile(r"\b(?:vat|gst|abn|sort code|iban|cheque|b\.?v\.|gmbh|ltd)\b")


_COUNTRY_OF = {word: country for country, words in COUNTRY_WORDS.items() for word in words}
_COUNTRY_NAME = re.compile(
    "(?<![a-z])(?:"
    + "|".join(re.escape(word) for word in sorted(_COUNTRY_OF, key=len, reverse=True))
    + ")(?![a-z])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Beliefs about the document's origin; weights are relative, not probabilities."""

    languages: Mapping[str, float]
    """Share of recognised words by language; ``zh`` and ``ja`` from their characters."""
    countries: Mapping[str, float]
    country_spans: Mapping[str, tuple[int, int, int]]
    """Segment index, start and end of the text that names a country, for showing it."""
    month_first: float
    """Belief that a numeric date puts the month first."""

    @property
    def language(self) -> str:
        """The likeliest language; ``en`` when nothing is recognised."""
        return max(self.languages, key=lambda name: self.languages[name], default="en")


def read_setting(sheet: Sheet) -> Setting:
    """Weigh words, characters, addresses, account and phone numbers of the whole document."""
    languages = _languages(sheet)
    countries, spans = _countries(sheet)
    text = "\n".join(segment.folded.plain for segment in sheet.segments)
    return Setting(
        languages=languages,
        countries=countries,
        country_spans=spans,
        month_first=_month_first(languages, countries, text),
    )


def _languages(sheet: Sheet) -> dict[str, float]:
    counts: dict[str, float] = {}
    for segment in sheet.segments:
        text = segment.folded.plain
        han = 0 if text.isascii() else sum("一" <= char <= "鿿" for char in text)
        kana = 0 if text.isascii() else sum("ぁ" <= char <= "ヿ" for char in text)
        if han or kana:
            counts["zh"] = counts.get("zh", 0.0) + han / 2
            counts["ja"] = counts.get("ja", 0.0) + kana * 3
        for word in re.findall(r"[a-z]+", text):
            for language in _LANGUAGES_OF.get(word, ()):
                counts[language] = counts.get(language, 0.0) + 1.0
    whole = sum(counts.values()) or 1.0
    return {language: count / whole for language, count in counts.items() if count}


def _countries(sheet: Sheet) -> tuple[dict[str, float], dict[str, tuple[int, int, int]]]:
    weights: dict[str, float] = {}
    spans: dict[str, tuple[int, int, int]] = {}

    def add(country: str, weight: float, index: int, start: int, end: int, *, named: bool = True) -> None:
        weights[country] = weights.get(country, 0.0) + weight
        if named:
            spans.setdefault(country, (index, *sheet.segments[index].folded.span(start, end)))

    for segment in sheet.segments:
        text = segment.folded.plain
        for match in _COUNTRY_NAME.finditer(text):
            add(_COUNTRY_OF[match.group()], 1.0, segment.index, *match.span())
        for pattern, country, weight in (
            (_US_STATE_ZIP, "US", 1.5),
            (_UK_POSTCODE, "GB", 0.8),
            (_CA_POSTCODE, "CA", 1.5),
            (_AU_STATE, "AU", 1.5),
            (_NL_POSTCODE, "NL", 0.6),
        ):
            for match in pattern.finditer(text):
                add(country, weight, segment.index, *match.span(), named=False)
        for match in _IBAN_COUNTRY.finditer(text):
            add(match[1].upper(), 1.2, segment.index, *match.span())
        for match in _VAT_COUNTRY.finditer(text):
            add({"atu": "AT", "che": "CH"}.get(match[1], match[1].upper()), 1.0, segment.index, *match.span())
        for match in _PHONE.finditer(text):
            add(_PHONE_COUNTRY.get(match[1], "US"), 0.4, segment.index, *match.span(), named=False)
    return weights, spans


def _month_first(languages: Mapping[str, float], countries: Mapping[str, float], text: str) -> float:
    if languages.get("en", 0.0) < 0.4 or languages.get("en", 0.0) < max(languages.values(), default=0.0):
        return 0.03
    us, rest = countries.get("US", 0.0), sum(weight for country, weight in countries.items() if country != "US")
    canada = countries.get("CA", 0.0)
    if us + rest > 0.7:
        if canada >= max(us, rest - canada, 0.1):
            return 0.5
        share = us / (us + rest)
        return 0.93 if share > 0.75 else 0.04 if share < 0.1 else 0.5
    score = (
        0.45
        + 0.2 * bool(_US_WORDS.search(text))
        - 0.3 * bool(_NON_US_WORDS.search(text))
        + 0.15 * ("$" in text)
        - 0.2 * ("£" in text or "€" in text)
    )
    return min(0.75, max(0.15, score))
