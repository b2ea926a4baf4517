"""Invented invoices that the extractor was not developed on, as printed by businesses and captured by people.

``generate(seed)`` gives one: picture, truth, boxes. The wording, companies, layouts and captures here share
nothing with the generator the extractor was developed on, and whoever develops the extractor does not look here.
"""

from bench.invoice_layouts.generator import GeneratedInvoice, generate

__all__ = ["GeneratedInvoice", "generate"]
