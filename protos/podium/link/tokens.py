"""The bearer token that somebody gave, read from a file or the environment and never quoted."""

from collections.abc import Mapping
from pathlib import Path

from podium.errors import InvalidRequest

VARIABLE = "PODIUM_TOKEN"


def given_token(token_file: Path | None, environment: Mapping[str, str]) -> str:
    """The token of a file, or else the one that `PODIUM_TOKEN` holds; '' when none was given.

    Raises:
        InvalidRequest: the file cannot be read, or what was given is no token.
    """
    if token_file is not None:
        return token_of(token_file)
    return _checked(environment.get(VARIABLE, "").strip(), VARIABLE)


def token_of(path: Path) -> str:
    """The token in a file.

    Raises:
        InvalidRequest: the file cannot be read, is empty or holds no token.
    """
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds no token"
        # Without its cause: a decoding error carries the bytes.
        raise InvalidRequest(
            f"the token file {path} cannot be used: {why}",
            next_step="Give a file of your own with --token-file, or run the command as the server's user.",
            field="token_file",
        ) from None
    if not token:
        raise InvalidRequest(f"the token file {path} is empty", field="token_file")
    return _checked(token, str(path))


def _checked(token: str, where: str) -> str:
    if not all("!" <= character <= "~" for character in token):
        raise InvalidRequest(f"what {where} holds is no token: it has blanks or other signs", field="token_file")
    return token
