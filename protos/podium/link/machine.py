"""The files of an enrolled machine, read without any cryptography: gRPC itself does TLS.

`podium enroll` writes them (package `podium.identity`, a process of its own); devices, sites, workers and agent
hosts read them with `MachineIdentity.load`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from podium.errors import InvalidRequest

IDENTITY_FILE = "identity.json"
KEY_FILE = "key.pem"
CERTIFICATE_FILE = "certificate.pem"
CA_FILE = "ca.pem"
CURRENT = "current"
"""Link to the set of files in force, which renewal exchanges at once; see `podium.identity.folder`."""


def files_in_force(folder: Path) -> Path:
    """Where the files of an identity really lie; reading all of them there gives files that belong together."""
    return (folder / CURRENT).resolve() if (folder / CURRENT).is_symlink() else folder


def moment_in(about: Mapping[str, str], name: str) -> datetime:
    """A moment that `podium enroll` noted.

    Raises:
        ValueError, KeyError, TypeError: there is none, or it does not say its time zone.
    """
    moment = datetime.fromisoformat(about[name])
    if moment.tzinfo is None:
        raise ValueError(f"{name} has no time zone")
    return moment


class IdentityUnusable(InvalidRequest):
    """The files of an enrolled machine are missing or damaged."""

    code = "IDENTITY_UNUSABLE"
    advice = "Enrol the machine: `podium enroll` writes the files; it needs a token from the operator."


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineIdentity:
    """Who a machine is: the certificate it shows and the key that proves it."""

    folder: Path
    kind: str
    """device, site, worker or agent_host."""
    name: str
    server: str
    """HOST:PORT of the server's port for machines."""
    expires: datetime
    """When the certificate expires, with its time zone."""
    certificate_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)
    ca_pem: bytes = field(repr=False)

    @classmethod
    def load(cls, folder: Path) -> "MachineIdentity":
        """Read the files that `podium enroll` wrote.

        Raises:
            IdentityUnusable: a file is missing or damaged; the message names it.
        """
        try:
            # One set throughout: a renewal between two reads would give a key that is not the certificate's.
            place = files_in_force(folder)
            about = json.loads((place / IDENTITY_FILE).read_text(encoding="utf-8"))
            return cls(
                folder=folder,
                kind=str(about["kind"]),
                name=str(about["name"]),
                server=str(about["server"]),
                expires=moment_in(about, "expires"),
                certificate_pem=(place / CERTIFICATE_FILE).read_bytes(),
                key_pem=(place / KEY_FILE).read_bytes(),
                ca_pem=(place / CA_FILE).read_bytes(),
            )
        except OSError as error:
            raise IdentityUnusable(
                f"{error.filename} cannot be read: {error.strerror}", field="identity"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise IdentityUnusable(
                f"{folder / IDENTITY_FILE} is damaged: {type(error).__name__}", field="identity"
            ) from error
