"""What the checks are given: fields, goods, codes and readings, in the form the extraction hands over."""

CONTEXT = None
"""The checks look at nothing but their input."""


def field(value, *, confidence=0.95, box=(10, 20, 100, 30), page=1):
    if value is None:
        return {
            "value": None,
            "confidence": 0.0,
            "page": None,
            "box": None,
            "source_text": "",
            "reasons": ["none"],
        }
    return {
        "value": value,
        "confidence": confidence,
        "page": page,
        "box": list(box),
        "source_text": value,
        "alternatives": [],
        "reasons": [],
    }


FIELDS = (
    *("number", "date", "due_date", "supplier", "buyer", "currency", "total", "tax", "net"),
    *("iban", "bic", "incoterm", "payment_terms"),
)


def invoice(*, hs_codes=(), goods=(), **fields):
    return {
        "fields": {name: field(fields.get(name)) for name in FIELDS} | {"lines": field(None)},
        "hs_codes": [field(code) for code in hs_codes],
        "goods": [field(text) for text in goods],
        "reasons": [],
    }


def reading(*texts, confidence=0.98, findings=()):
    lines = [
        {
            "text": text,
            "quad": [10, 40 * row, 500, 40 * row, 500, 40 * row + 30, 10, 40 * row + 30],
            "confidence": confidence,
        }
        for row, text in enumerate(texts)
    ]
    page = {
        "page": 1,
        "width": 1240,
        "height": 1754,
        "sharpness": 500.0,
        "orientation_degrees": 0,
        "skew_degrees": 0.0,
    }
    return {
        "name": "a.png",
        "sha256": "0" * 64,
        "media_type": "image/png",
        "pages": [page | {"lines": lines}],
        "findings": list(findings),
        "crops": [],
    }


def codes(output):
    return [finding["code"] for finding in output["findings"]]
