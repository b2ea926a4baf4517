"""Invents bank accounts whose IBAN, national check digits and BIC pass the official tests."""

from random import Random

# ISO 13616 registry: form of the national part; # digit, B the bank's four letters.
_NATIONAL: dict[str, str] = {
    "DE": "##################",
    "AT": "################",
    "CH": "#################",
    "NL": "B##########",
    "GB": "B##############",
    "IE": "B##############",
    "SE": "####################",
    "DK": "##############",
    "FR": "fr",
    "BE": "be",
    "ES": "es",
    "PL": "pl",
}

_BE_BANKS = ("001", "068", "310", "735")  # numbers that the national bank has given out
_PL_BANK_WEIGHTS = (3, 9, 7, 1, 3, 9, 7)
_ES_WEIGHTS = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)


def make_iban(rng: Random, country: str, bank: str) -> str | None:
    """An IBAN of that country with right check digits, or None where the country has no IBANs."""
    form = _NATIONAL.get(country)
    if form is None:
        return None
    makers = {"fr": _french, "be": _belgian, "es": _spanish, "pl": _polish}
    national = makers[form](rng) if form in makers else _fill(rng, form.replace("B", bank))
    return f"{country}{iban_check(country, national)}{national}"


def iban_check(country: str, national: str) -> str:
    """The two check digits of ISO 13616: 98 minus the remainder of the rearranged number by 97."""
    digits = "".join(str(int(character, 36)) for character in f"{national}{country}00")
    return f"{98 - int(digits) % 97:02}"


def make_bic(rng: Random, country: str, bank: str, place: str) -> str:
    """A BIC of eight or eleven characters for that bank and country."""
    return f"{bank}{country}{place}{rng.choice(('', '', 'XXX'))}"


def _fill(rng: Random, form: str) -> str:
    return "".join(str(rng.randrange(10)) if mark == "#" else mark for mark in form)


def _french(rng: Random) -> str:
    bank, branch, account = _fill(rng, "#####"), _fill(rng, "#####"), _fill(rng, "###########")
    key = 97 - (89 * int(bank) + 15 * int(branch) + 3 * int(account)) % 97
    return f"{bank}{branch}{account}{key:02}"


def _belgian(rng: Random) -> str:
    body = rng.choice(_BE_BANKS) + _fill(rng, "#######")
    return f"{body}{int(body) % 97 or 97:02}"


def _spanish(rng: Random) -> str:
    bank, account = _fill(rng, "########"), _fill(rng, "##########")
    return f"{bank}{_spanish_digit('00' + bank)}{_spanish_digit(account)}{account}"


def _spanish_digit(digits: str) -> int:
    rest = 11 - sum(int(digit) * weight for digit, weight in zip(digits, _ES_WEIGHTS, strict=True)) % 11
    return {10: 1, 11: 0}.get(rest, rest)


def _polish(rng: Random) -> str:
    bank = _fill(rng, "#######")
    check = -sum(int(digit) * weight for digit, weight in zip(bank, _PL_BANK_WEIGHTS, strict=True)) % 10
    return f"{bank}{check}{_fill(rng, '################')}"
