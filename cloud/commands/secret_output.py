"""Where a command puts a secret that is shown once."""

from pathlib import Path

from podium.errors import InvalidRequest


def require_new(output: Path | None) -> None:
    """Say before the secret is made that it cannot be put there.

    Raises:
        InvalidRequest: the file is there already.
    """
    if output is not None and output.exists():
        raise InvalidRequest(f"{output} is there already", next_step="Name a new file.", field="output")


def put(output: Path, secret: str) -> None:
    """Write a secret into a file that only its owner may read.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    from cloud.auth.files import write_secret

    try:
        write_secret(output, secret.encode() + b"\n")
    except OSError as error:
        raise InvalidRequest(f"{output} cannot be written: {error.strerror}", field="output") from error
