"""Enrolling a machine and renewing its certificate: the only part of `podium` that loads cryptography.

A running device does not import it; what reads the files without cryptography is `podium.link.MachineIdentity`,
and what decides when to renew is `podium.link.renewing`.
"""
