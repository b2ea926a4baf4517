"""Who a device is: the files of an enrolled machine, or a name and an address given by hand."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.errors import Conflict, InvalidRequest
from podium.link import Address, IdentityUnusable, MachineIdentity

KIND = "device"


class IdentityInUse(Conflict):
    """Another process on this machine runs with the same identity."""

    code = "IDENTITY_IN_USE"
    advice = "Stop the other process, e.g. the service that watches a folder, or enrol a second identity."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    """As whom a device connects, and where to."""

    name: str
    address: Callable[[], Address]
    """Asked before every connection."""
    folder: Path | None = None
    """The files of an enrolled device; None for one that is not enrolled."""


class MachineAddress:
    """The address that an identity's files say now, so that new files count at once.

    Files that cannot be read for a moment, while a person changes them, are no reason to stop a device.
    """

    def __init__(self, folder: Path, target: str, *, on_problem: Callable[[str], None]) -> None:
        """Read the files.

        Args:
            folder: of the identity.
            target: HOST:PORT instead of what the files say; empty for that.
            on_problem: told in words when they cannot be read later.

        Raises:
            IdentityUnusable: they cannot be read now.
            InvalidRequest: the address is not HOST:PORT.
        """
        self._folder = folder
        self._target = target
        self._on_problem = on_problem
        self.identity = MachineIdentity.load(folder)
        self._last = Address.of_machine(self.identity, target)

    def __call__(self) -> Address:
        """Where to connect to, and as whom."""
        try:
            self._last = Address.of_machine(MachineIdentity.load(self._folder), self._target)
        except InvalidRequest as error:
            self._on_problem(f"going on with the identity as it was: {error.message}")
        return self._last


def enrolled(folder: Path, *, name: str, target: str, on_problem: Callable[[str], None]) -> DeviceIdentity:
    """The identity of an enrolled device.

    Args:
        folder: its files.
        name: what the device was called on the command line; empty to take the certificate's.
        target: see `MachineAddress`.
        on_problem: see `MachineAddress`.

    Raises:
        IdentityUnusable: the files are missing, damaged, or another kind of machine's.
        InvalidRequest: the name is not the certificate's.
    """
    address = MachineAddress(folder, target, on_problem=on_problem)
    identity = address.identity
    if identity.kind != KIND:
        raise IdentityUnusable(
            f"{folder} is the identity of a {identity.kind}, not of a device",
            next_step="Enrol this machine as a device: `podium enroll` with a token for one.",
            field="identity",
        )
    if name not in ("", identity.name):
        raise InvalidRequest(
            f"the identity in {folder} is of the device {identity.name}, not of {name}",
            next_step="Leave out --device (PODIUM_DEVICE): an enrolled device has the name of its certificate.",
            field="device",
        )
    return DeviceIdentity(name=identity.name, address=address, folder=folder)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes of this machine from connecting with the same identity meanwhile.

    Raises:
        IdentityInUse: one does so now.
        IdentityUnusable: the folder cannot be opened.
    """
    try:
        # A folder can be locked without writing into it, and the lock ends with the process.
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise IdentityUnusable(f"{folder} cannot be opened: {error.strerror}", field="identity") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise IdentityInUse(f"another process runs with the identity in {folder}") from error
        yield
    finally:
        os.close(handle)
