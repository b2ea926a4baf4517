"""The invoice pack: from a scanned page to checked fields and a risk report."""
