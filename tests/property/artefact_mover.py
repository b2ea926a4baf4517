"""A process that moves current versions at random until it is killed; it says what was acknowledged.

`python -m tests.property.artefact_mover FOLDER KEY SEED`
"""

import json
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

from podium.errors import Conflict
from tools.artefacts.loading import sha256_of_file
from tools.artefacts.records import Current, Description, Name, Reference, Who, statement
from tools.artefacts.registry import ArtefactRegistry
from tools.artefacts.signing import SigningKey, read_key, sign

NAMES = (Name(kind="planner", name="rules"), Name(kind="bundle", name="site"))
VERSIONS = tuple(str(number) for number in range(1, 6))


def add(registry: ArtefactRegistry, key: SigningKey, reference: Reference, folder: Path) -> None:
    source = folder / f"source-{reference.name.kind}-{reference.version}"
    sha256, size_bytes = sha256_of_file(source)
    description = Description(reference=reference)
    signature = sign(key, statement(description, sha256=sha256, size_bytes=size_bytes))
    registry.add(description, source, who=Who(name="mover"), signatures=(signature,))


def move(registry: ArtefactRegistry, chance: random.Random, who: Who) -> Current | str:
    """One random move; gives what is current after it, or the code of the refusal."""
    name = chance.choice(NAMES)
    expected = chance.choice((None, None, *VERSIONS))
    try:
        match chance.choice(("promote", "promote", "promote", "rollback", "rollback", "pin", "unpin", "unpin")):
            case "promote":
                reference = Reference(name=name, version=chance.choice(VERSIONS))
                return registry.promote(reference, who=who, expected=expected)
            case "rollback":
                return registry.roll_back(name, who=who, expected=expected)
            case "pin":
                return registry.pin(name, who=who)
            case _:
                return registry.unpin(name, who=who)
    except Conflict as error:
        return error.code


def main(folder: Path, key: SigningKey, seed: int) -> None:
    chance = random.Random(seed)
    with ArtefactRegistry(folder / "artefacts", clock=lambda: datetime.now(UTC)) as registry:
        number = 0
        while True:
            number += 1
            if chance.random() < 0.2:
                add(registry, key, Reference(name=chance.choice(NAMES), version=chance.choice(VERSIONS)), folder)
            mark = f"{seed}:{number}"
            said = move(registry, chance, Who(name="mover", why=mark))
            told = said if isinstance(said, str) else [said.sequence, str(said.name), said.version]
            sys.stdout.write(json.dumps({"mark": mark, "said": told}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), read_key(Path(sys.argv[2]).read_bytes()), int(sys.argv[3]))
