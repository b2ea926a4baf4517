"""``python -m podium.identity.renewal DIR``: renew a machine's certificate and exit.

Started by `podium.link.renewing`; prints one JSON object and exits 0 when the files are new.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from podium.errors import PodiumError
from podium.identity.enrolling import renew


def main(arguments: list[str]) -> int:
    """Renew the identity in the folder named; the exit status."""
    try:
        answer = renew(Path(arguments[0]), clock=lambda: datetime.now(UTC)).to_json()
    except PodiumError as error:
        answer = {
            "error": {
                "code": error.code,
                "message": error.message,
                "next_step": error.next_step,
                "evidence": list(error.evidence),
            }
        }
    sys.stdout.write(json.dumps(answer) + "\n")
    return int("error" in answer)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
