"""A planner that was just exported, for programs that measure it; servers load what is committed or signed."""

import hashlib
from pathlib import Path

from conductor.policy.model import COMMITTED, PlannerModel
from tools.models.pinned import OWN_PACKAGE, PinnedModel, PinnedModels


def local_planner(path: Path, *, threads: int = 1) -> PlannerModel:
    """The planner in a file that whoever started this program answers for.

    Raises:
        OSError: the file cannot be read.
        PlannerModelInvalid: it is no planner.
    """
    content = path.read_bytes()
    entry = PinnedModel(
        name=COMMITTED,
        package=OWN_PACKAGE,
        version="local",
        file=str(path.resolve()),
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        licence="Apache-2.0",
    )
    return PlannerModel.committed(models=PinnedModels({COMMITTED: entry}), threads=threads)
