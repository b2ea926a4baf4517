"""Writes to a ledger until it is killed, and says on stdout what was acknowledged.

Every line on stdin forks a process that writes; the parent says `dead PID` when it was killed. So a process that
was killed costs no new start of Python.
"""

import os
import random
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

from podium.errors import InvalidRequest
from tools.ledger.ledger import Item, Ledger

THREADS = 6
SEGMENT_BYTES = 256 * 1024


def say(line: str) -> None:
    """One write, so that lines of several threads stay whole and a kill leaves whole ones."""
    os.write(1, f"{line}\n".encode())


def write_for_ever(folder: Path, turn: str, chance: random.Random) -> None:
    say(f"pid {os.getpid()}")
    ledger = Ledger(folder, clock=lambda: datetime.now(UTC), segment_bytes=SEGMENT_BYTES)
    say(f"open {ledger.head} {ledger.torn.length if ledger.torn else 0}")

    def append(name: str, lengths: random.Random) -> None:
        number = 0
        while True:
            keys = [f"{turn}/{name}/{number + more}" for more in range(lengths.choice((1, 1, 1, 5)))]
            bodies = [{"for": key, "text": "x" * lengths.choice((0, 20, 200, 20_000))} for key in keys]
            items = [Item(body=body, key=key) for key, body in zip(keys, bodies, strict=True)]
            for key, receipt in zip(keys, ledger.append_many(items), strict=True):
                say(f"entry {receipt.sequence} {receipt.hash} {key}")
            number += len(keys)

    for name in range(THREADS):
        own = random.Random(chance.getrandbits(64))
        threading.Thread(target=append, args=(str(name), own), daemon=True).start()
    while True:
        head = ledger.head.sequence
        if head > 3:
            sequence = chance.randint(1, head)
            say(f"redacting {sequence}")
            try:
                receipt = ledger.redact(sequence, reason="test", by="test")
            except InvalidRequest as error:
                say(f"refused {sequence} {type(error).__name__}")
            else:
                say(f"redacted {sequence} {receipt.sequence}")
        threading.Event().wait(0.003)


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    for turn in sys.stdin:
        chance = random.Random(f"{seed}/{turn.strip()}")
        pid = os.fork()
        if pid == 0:
            write_for_ever(folder, turn.strip(), chance)
        _, status = os.waitpid(pid, 0)
        say(f"dead {pid} {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
