"""Checks that nobody else's package stands where ours should: `agents` and `conductor` are others' names too.

openai-agents brings a package `agents`, conductor-python one called `conductor`. Whichever is installed last wins,
without a word. So Podium lives in an environment of its own, and looks (see docs/adr).
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions

from podium.errors import Conflict

OUR_NAMES = ("agents", "cloud", "conductor", "edge", "federation", "podium", "tools")
OUR_DISTRIBUTION = "podium"


class ImportNamesTaken(Conflict):
    """Another distribution in this environment installs packages under our names."""

    code = "IMPORT_NAMES_TAKEN"
    advice = "Install Podium into a virtual environment of its own: make run makes one."


def check_import_names(installed: Mapping[str, Sequence[str]] | None = None) -> None:
    """Look for other distributions that bring packages of our names.

    Args:
        installed: Distributions by top-level package; those of this environment unless given.

    Raises:
        ImportNamesTaken: there are some; `evidence` names them.
    """
    found = packages_distributions() if installed is None else installed
    taken = {
        name: sorted(set(found.get(name, ())) - {OUR_DISTRIBUTION})
        for name in OUR_NAMES
        if set(found.get(name, ())) - {OUR_DISTRIBUTION}
    }
    if taken:
        evidence = [f"{name} is installed by {', '.join(others)}" for name, others in taken.items()]
        raise ImportNamesTaken("another distribution uses Podium's import names", evidence=evidence)
