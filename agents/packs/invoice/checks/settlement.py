"""Settlement terms: IBAN (ISO 13616, check digits by ISO 7064 MOD 97-10), BIC (ISO 9362), currency (ISO 4217)."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from stdnum import bic as bic_number
from stdnum import iban as iban_number
from stdnum.exceptions import InvalidChecksum, InvalidComponent, ValidationError

from agents.invocation import AgentContext
from agents.packs.invoice.checks.outcome import Finding, outcome

# Banks of these territories use the IBAN of the country they belong to (SWIFT IBAN registry).
_SAME_AREA = (
    {"GB", "GG", "JE", "IM"},
    {"FR", "GF", "GP", "MQ", "RE", "PF", "TF", "YT", "NC", "BL", "MF", "PM", "WF"},
)

# Active codes of ISO 4217 list one, without funds, precious metals and testing codes.
_CODES = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD "
    "CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP "
    "GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD "
    "KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN "
    "NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP "
    "SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES "
    "VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
CURRENCIES = frozenset(_CODES.split())


def check_settlement(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Do the account, the bank and the currency exist, and do they fit together?"""
    fields = inputs["invoice"]["fields"]
    findings: list[Finding] = []
    checked: list[str] = []
    if (iban := fields["iban"])["value"] is not None:
        checked.append(f"IBAN {iban['value']}")
        findings.extend(_iban_findings(iban))
    if (bic := fields["bic"])["value"] is not None:
        checked.append(f"BIC {bic['value']}")
        findings.extend(_bic_findings(bic, iban))
    if (currency := fields["currency"])["value"] is not None:
        checked.append(f"currency {currency['value']}")
        if currency["value"] not in CURRENCIES:
            message = f"{currency['value']} is not a currency of ISO 4217"
            findings.append(Finding.at(currency, code="currency_unknown", name="currency", message=message))
    findings.extend(_due_date_findings(fields))
    return outcome(findings, checked, rule="ISO 13616, ISO 9362, ISO 4217", version="python-stdnum registry")


def iban_fault(value: str) -> tuple[str, str] | None:
    """Code and message of what is wrong with an IBAN, or None when it is valid."""
    try:
        # Not the banks of each country: lists of them grow old, and a bank it does not know is no fault.
        iban_number.validate(value, check_country=False)
    except InvalidChecksum:
        return "iban_check_digits", f"the check digits of IBAN {value} are wrong"
    except InvalidComponent:
        return "iban_country", f"IBAN {value} names a country that has no IBAN"
    except ValidationError:
        return "iban_format", f"IBAN {value} does not have the form of its country's accounts"
    return None


def bic_fault(value: str) -> tuple[str, str] | None:
    """Code and message of what is wrong with a BIC, or None when it is valid."""
    try:
        bic_number.validate(value)
    except ValidationError:
        return "bic_format", f"{value} is not a BIC: 8 or 11 characters, bank, country, place and branch"
    return None


def _iban_findings(iban: Mapping[str, Any]) -> list[Finding]:
    fault = iban_fault(iban["value"])
    return [Finding.at(iban, code=fault[0], name="iban", message=fault[1])] if fault else []


def _bic_findings(bic: Mapping[str, Any], iban: Mapping[str, Any]) -> list[Finding]:
    if fault := bic_fault(bic["value"]):
        return [Finding.at(bic, code=fault[0], name="bic", message=fault[1])]
    if iban["value"] is None:
        return []
    bank_country = bic_number.compact(bic["value"])[4:6]
    account_country = iban_number.compact(iban["value"])[:2]
    together = {bank_country, account_country}
    if bank_country == account_country or any(together <= area for area in _SAME_AREA):
        return []
    message = f"the bank is in {bank_country}, the account in {account_country}"
    return [Finding.at(bic, code="bic_country", name="bic", message=message)]


def _due_date_findings(fields: Mapping[str, Any]) -> list[Finding]:
    issued, due = fields["date"]["value"], fields["due_date"]["value"]
    if issued is None or due is None or date.fromisoformat(due) >= date.fromisoformat(issued):
        return []
    message = f"due on {due}, before the invoice's own date {issued}"
    return [Finding.at(fields["due_date"], code="due_before_issue", name="due_date", message=message)]
