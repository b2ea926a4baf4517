"""The one table of who may call what. What is not in it may nobody call.

One test compares it with the services of podium.v1, another calls every method in every role.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from podium.errors import PermissionDenied

VIEWER = "viewer"
CALLER = "caller"
REVIEWER = "reviewer"
OPERATOR = "operator"
ADMINISTRATOR = "administrator"
DEVICE = "device"
SITE = "site"
AGENT_HOST = "agent_host"

PERSON_ROLES = frozenset({VIEWER, CALLER, REVIEWER, OPERATOR, ADMINISTRATOR})
"""Roles that a token gives."""
MACHINE_ROLES = frozenset({DEVICE, SITE, AGENT_HOST})
"""Roles that only a machine's certificate gives. A worker has none: it works on the bus and calls nothing here."""
ROLES = PERSON_ROLES | MACHINE_ROLES

_IMPLIED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        OPERATOR: frozenset({VIEWER, CALLER, REVIEWER}),
        ADMINISTRATOR: frozenset({VIEWER, CALLER, REVIEWER, OPERATOR}),
    }
)

_READ = frozenset({VIEWER, CALLER, OPERATOR, ADMINISTRATOR})
_ASK = frozenset({CALLER, OPERATOR, ADMINISTRATOR})
_RUN = frozenset({OPERATOR, ADMINISTRATOR})
_SEND_BLOBS = frozenset({CALLER, DEVICE, SITE, OPERATOR, ADMINISTRATOR})
_KNOW_AGENTS = frozenset({VIEWER, CALLER, REVIEWER, AGENT_HOST, OPERATOR, ADMINISTRATOR})

MAY_CALL: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        # Of these a plain caller or a device sees and touches only its own tasks (cloud.auth.ownership).
        "/podium.v1.TaskService/SubmitTask": _ASK,
        # A device reads what became of its own observations.
        "/podium.v1.TaskService/GetTask": _READ | {DEVICE},
        "/podium.v1.TaskService/WatchTask": _READ | {DEVICE},
        "/podium.v1.TaskService/ListTasks": _READ,
        "/podium.v1.TaskService/CancelTask": _ASK,
        "/podium.v1.TaskService/ProvideInput": _ASK,
        "/podium.v1.BlobService/Stat": _SEND_BLOBS | {VIEWER, REVIEWER},
        "/podium.v1.BlobService/Upload": _SEND_BLOBS,
        "/podium.v1.BlobService/Download": _READ | {REVIEWER},
        "/podium.v1.BlobService/CollectGarbage": _RUN,
        # A device connects under the name in its certificate; a local administrator stands in for any.
        "/podium.v1.EdgeService/Connect": frozenset({DEVICE, ADMINISTRATOR}),
        "/podium.v1.RegistryService/ListAgents": _KNOW_AGENTS,
        "/podium.v1.RegistryService/GetAgent": _KNOW_AGENTS,
        "/podium.v1.RegistryService/GetPlanner": _KNOW_AGENTS - {AGENT_HOST},
        "/podium.v1.RegistryService/RegisterAgent": _RUN,
        "/podium.v1.RegistryService/SetAgentEnabled": _RUN,
        "/podium.v1.RegistryService/SetAgentWeights": _RUN,
        "/podium.v1.ReviewService/ListReviews": frozenset({VIEWER, REVIEWER, OPERATOR, ADMINISTRATOR}),
        "/podium.v1.ReviewService/ResolveReview": frozenset({REVIEWER, OPERATOR, ADMINISTRATOR}),
        "/podium.v1.IdentityService/CreateEnrolmentToken": _RUN,
        "/podium.v1.IdentityService/ListIdentities": _RUN | {VIEWER},
        "/podium.v1.IdentityService/RevokeIdentity": _RUN,
        "/podium.v1.IdentityService/IssueCallerToken": frozenset({ADMINISTRATOR}),
        "/podium.v1.IdentityService/RevokeCallerTokens": frozenset({ADMINISTRATOR}),
    }
)
"""Method to the roles that may call it."""

OPEN = frozenset({"/podium.v1.IdentityService/Enroll", "/podium.v1.IdentityService/Renew"})
"""Methods that carry their own proof (a one-time token, a signature) and need no other."""

SERVED_ELSEWHERE = frozenset({"podium.v1.AgentService"})
"""Services of podium.v1 that hosts of agents serve; there only the certificate of a Podium server may call."""


def implied(roles: Iterable[str]) -> frozenset[str]:
    """The roles with all that they imply."""
    given = frozenset(roles)
    return given.union(*(_IMPLIED.get(role, frozenset()) for role in given))


def check_may_call(method: str, roles: frozenset[str], who: str) -> None:
    """Let a call pass or not.

    Args:
        method: /package.Service/Method.
        roles: of whoever calls.
        who: their name, for the message.

    Raises:
        PermissionDenied: none of the roles may call the method.
    """
    allowed = MAY_CALL.get(method, frozenset())
    if not allowed & roles:
        needed = ", ".join(sorted(allowed)) or "none"
        raise PermissionDenied(f"{who} may not call {method}; roles that may: {needed}")
