"""Versions of agents, planners, models, adapters and bundles: signed, promoted, rolled back, served.

`registry` keeps them in a folder that several processes may use at once; `serving` follows a model's current
version.
"""
