"""Labels that the lexicon does not list, recognised by the stems they are made of.

``Rechnungskennziffer`` or ``Numéro de la présente facture`` are in no list, but an invoice stem together with a
number stem says what they are. Such labels are weaker than listed ones.
"""

from agents.packs.invoice.extraction.lexicon import FAIR, WEAK, Phrase

_INVOICE = (
    "invoice",
    "rechn",
    "fact",
    "fakt",
    "fattur",
    "fatur",
    "bill",
    "发票",
    "發票",
    "票据",
    "beleg",
    "請求書",
)
_NUMBER = ("num", "nr", "no", "code", "kenn", "ref", "id", "#", "号", "編号", "编码", "serie")
_DATE = ("dat", "fech", "jour", "tag", "日期", "时间", "日付")
_ISSUE = (
    "issu",
    "ausst",
    "erstell",
    "emis",
    "emi",
    "expedi",
    "uitg",
    "edit",
    "etabli",
    "开具",
    "出具",
    "created",
    "print",
)
_DUE = (
    "fallig",
    "zahlbar",
    "due",
    "echean",
    "verval",
    "vencim",
    "payable",
    "payment",
    "zahlung",
    "pago",
    "betal",
    "到期",
    "付款",
    "截止",
)
_TOTAL = (
    "total",
    "gesamt",
    "summe",
    "totaal",
    "importe",
    "montant",
    "betrag",
    "bedrag",
    "amount",
    "合计",
    "总额",
    "总计",
    "总价",
)
_GROSS = (
    "incl",
    "inkl",
    "brutto",
    "gross",
    "ttc",
    "due",
    "pay",
    "zahl",
    "pagar",
    "betal",
    "grand",
    "end",
    "final",
    "含税",
    "应付",
    "voldoen",
)
_NOT_TOTAL = (
    "excl",
    "exkl",
    "netto",
    "ohne",
    "hors",
    "ht",
    "sans",
    "sin",
    "base",
    "vor",
    "before",
    "zwischen",
    "sub",
    "net",
    "sous",
    "不含",
    "税额",
)
_OTHERS = tuple(
    [
        "deliver",
        "liefer",
        "livr",
        "entreg",
        "lever",
        "order",
        "bestel",
        "command",
        "pedid",
        "kund",
        "custom",
        "client",
        "klant",
        "vat",
        "ust",
        "mwst",
        "tva",
        "btw",
        "iva",
        "tax",
        "steuer",
        "ship",
        "versand",
        "auftrag",
        "angebot",
        "contract",
        "vertrag",
        "period",
        "zeitraum",
        "account",
        "konto",
        "bank",
        "skont",
        "rabatt",
        "discount",
        "remise",
        "qty",
        "menge",
        "gewicht",
        "订单",
        "客户",
        "送货",
        "合同",
        "运",
        "数量",
        "税",
        "paid",
        "bezahlt",
        "deposit",
        "anzahl",
        "acompte",
        "page",
        "seite",
    ]
)


def guess(compact: str) -> Phrase | None:
    """The meaning of a compact label text by its stems, or None."""
    if _has(compact, _DUE) and _has(compact, _DATE):
        return Phrase(kind="due", strength=FAIR)
    if _has(compact, _OTHERS):
        return None
    if _has(compact, _INVOICE) and _has(compact, _DATE) and not _has(compact, ("nr", "num", "号")):
        return Phrase(kind="date", strength=FAIR)
    if _has(compact, _ISSUE) and _has(compact, _DATE):
        return Phrase(kind="date", strength=FAIR)
    if _has(compact, _TOTAL) and not _has(compact, _NOT_TOTAL):
        return Phrase(kind="total", strength=FAIR if _has(compact, _GROSS) or _has(compact, _INVOICE) else WEAK)
    if _has(compact, _INVOICE) and _has(compact, _NUMBER):
        return Phrase(kind="number", strength=FAIR)
    return None


def _has(text: str, stems: tuple[str, ...]) -> bool:
    return any(stem in text for stem in stems)
