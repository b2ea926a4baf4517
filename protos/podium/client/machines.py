"""What an operator's tool does about machines: invite, list, revoke. Blocking; needs the role operator."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from podium.client.messages import typed_errors
from podium.link import DEFAULT_DEADLINE, Address, sync_channel
from podium.v1 import identity_pb2, identity_pb2_grpc


class MachinesClient:
    """Speaks to the `IdentityService` of one server; raises errors of `podium.errors`."""

    def __init__(self, address: Address, *, deadline: timedelta = DEFAULT_DEADLINE) -> None:
        self._address = address
        self._channel = sync_channel(address)
        self._deadline_s = deadline.total_seconds()
        self._identities = identity_pb2_grpc.IdentityServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def invite(
        self,
        kind: "identity_pb2.IdentityKind.ValueType",
        *,
        name: str = "",
        lifetime: timedelta | None = None,
        uses: int = 1,
        host_names: Sequence[str] = (),
    ) -> identity_pb2.CreateEnrolmentTokenResponse:
        """An enrolment token; without `lifetime` it is good for as long as the server says.

        Args:
            kind: what may be enrolled with it.
            name: the only name it is for; a machine that has the name is replaced.
            lifetime: how long it is good.
            uses: how many machines may be enrolled with it.
            host_names: for agent hosts, the DNS names and addresses that they are reached by.
        """
        request = identity_pb2.CreateEnrolmentTokenRequest(
            kind=kind, name=name, max_uses=uses, host_names=host_names
        )
        if lifetime is not None:
            request.lifetime.FromTimedelta(lifetime)
        response: identity_pb2.CreateEnrolmentTokenResponse = self._call(
            self._identities.CreateEnrolmentToken, request
        )
        return response

    def machines(
        self, kind: "identity_pb2.IdentityKind.ValueType" = identity_pb2.IDENTITY_KIND_UNSPECIFIED
    ) -> list[identity_pb2.Identity]:
        """The machines that were enrolled, also revoked ones; of one kind, or all."""
        response = self._call(self._identities.ListIdentities, identity_pb2.ListIdentitiesRequest(kind=kind))
        return list(response.identities)

    def revoke(
        self, kind: "identity_pb2.IdentityKind.ValueType", name: str, *, reason: str = ""
    ) -> identity_pb2.RevokeIdentityResponse:
        """Take a machine's certificates back; its live calls end at once.

        Raises:
            NotFound: there is no such machine.
        """
        request = identity_pb2.RevokeIdentityRequest(kind=kind, name=name, reason=reason)
        response: identity_pb2.RevokeIdentityResponse = self._call(self._identities.RevokeIdentity, request)
        return response

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        with typed_errors(self._address):
            return method(request, timeout=self._deadline_s)
