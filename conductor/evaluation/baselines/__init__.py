"""Simple planners that stand beside the trained one: a figure means little without them.

They write predictions in the form of `podium plan --batch`, read requests and tools only, and learn, if at all,
from training examples: `python -m conductor.evaluation.baselines NAME --help`.
"""
