"""Understanding a business request in Chinese or English: names, dates, numbers, typos, and what stays unclear.

Start at `tools.text.normalisation.normalise`.
"""
