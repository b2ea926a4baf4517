"""What can go wrong with artefacts.

::

    InvalidRequest
    └── ArtefactInvalid            a name, a version, metrics or a file of another form
    NotFound
    └── ArtefactNotFound
    Conflict
    ├── ArtefactExists             the version is there already, with other content
    ├── ArtefactPinned             the name is pinned: no promotion, no rollback
    ├── CurrentChanged             somebody else moved the current version first
    ├── NothingCurrent             no version was promoted yet
    └── NothingToRollBackTo
    ModelError
    ├── ArtefactUnsigned           nobody answers for it
    └── ArtefactUntrusted          the answer is wrong, or its key is not trusted (any more)
    DataCorrupt
    └── ArtefactCorrupt            the stored bytes are others than those that were added
    ArtefactNotServing             no version of a model could be loaded
"""

from grpc import StatusCode

from podium.errors import Conflict, DataCorrupt, InvalidRequest, NotFound, PodiumError
from tools.models.pinned import ModelError


class ArtefactInvalid(InvalidRequest):
    """An artefact, a key or a signature is described in another form than it must have."""

    code = "ARTEFACT_INVALID"


class ArtefactNotFound(NotFound):
    """There is no artefact, version or key of that name."""

    code = "ARTEFACT_NOT_FOUND"
    advice = "`podium artefacts list` shows what there is."


class ArtefactExists(Conflict):
    """The version exists already, and it is something else; versions never change."""

    code = "ARTEFACT_EXISTS"
    advice = "Add the new content under a new version."


class ArtefactPinned(Conflict):
    """The name is pinned to its current version."""

    code = "ARTEFACT_PINNED"
    advice = "`podium artefacts history` says who pinned it and why; `podium artefacts unpin` lets it move again."


class CurrentChanged(Conflict):
    """Another version became current meanwhile; nothing was changed."""

    code = "ARTEFACT_CURRENT_CHANGED"
    status = StatusCode.ABORTED
    retryable = True
    advice = "See what is current with `podium artefacts show`, and repeat the command if it is still wanted."


class NothingCurrent(Conflict):
    """No version of the name was promoted yet."""

    code = "ARTEFACT_NOTHING_CURRENT"
    advice = "Promote a version with `podium artefacts promote`."


class NothingToRollBackTo(Conflict):
    """No version that was current before can be loaded any more."""

    code = "ARTEFACT_NOTHING_TO_ROLL_BACK_TO"
    advice = "Promote a version that can be loaded; `podium artefacts verify` says which cannot, and why."


class ArtefactUnsigned(ModelError):
    """The artefact is neither in the committed list of packaged models nor signed."""

    code = "ARTEFACT_UNSIGNED"
    advice = "Sign it with `podium artefacts sign`, with a key that `podium artefacts trust` made known here."


class ArtefactUntrusted(ModelError):
    """No signature of the artefact is right and of a key that is trusted here now."""

    code = "ARTEFACT_UNTRUSTED"
    advice = "Have it signed by a trusted key, or `podium artefacts trust PUBLIC_KEY` if you know whose it is."


class ArtefactCorrupt(DataCorrupt):
    """The stored bytes of an artefact are not those that were added."""

    code = "ARTEFACT_CORRUPT"
    advice = "Add the same version again from its source to restore the file, or roll back."


class ArtefactNotServing(PodiumError):
    """No version of a model could be loaded; `evidence` says why for each."""

    code = "ARTEFACT_NOT_SERVING"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Promote a version that can be loaded; `podium artefacts verify` says which cannot, and why."
