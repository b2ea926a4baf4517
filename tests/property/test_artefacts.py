"""Exactly one version is current, and the history says how: over any interleaving, and over `kill -9`."""

import json
import queue
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import Conflict
from tests.property.artefact_mover import NAMES, VERSIONS, add, move
from tools.artefacts.checking import faults, history_fault
from tools.artefacts.errors import ArtefactPinned, CurrentChanged, NothingCurrent, NothingToRollBackTo
from tools.artefacts.records import Current, Reference, Who
from tools.artefacts.registry import ArtefactRegistry
from tools.artefacts.signing import SigningKey, new_key

MOVERS, KILLS = 4, 50
WHO = Who(name="ann")


def now() -> datetime:
    return datetime.now(UTC)


def filled(folder: Path) -> tuple[ArtefactRegistry, SigningKey]:
    """A registry in which every name has every version."""
    key = new_key()
    (folder / "key.pem").write_bytes(key.private_pem)
    registry = ArtefactRegistry(folder / "artefacts", clock=now)
    registry.keys.trust(key.public_key, label="test", who=WHO)
    for name in NAMES:
        for version in VERSIONS:
            (folder / f"source-{name.kind}-{version}").write_bytes(f"{name} {version}".encode() * 1_000)
            add(registry, key, Reference(name=name, version=version), folder)
    return registry, key


class Model:
    """What one name should come to, told in the simplest way: a list of what was current, and a pin."""

    def __init__(self) -> None:
        self.current: str | None = None
        self.pinned = False
        self.before: list[str] = []

    def promote(self, version: str) -> type[Conflict] | None:
        if version == self.current:
            return None
        if self.pinned:
            return ArtefactPinned
        if self.current is not None:
            self.before.append(self.current)
        self.before = [item for item in self.before if item != version]
        self.current = version
        return None

    def roll_back(self) -> type[Conflict] | None:
        if self.current is None:
            return NothingCurrent
        if self.pinned:
            return ArtefactPinned
        if not self.before:
            return NothingToRollBackTo
        self.current = self.before.pop()
        return None

    def pin(self, wanted: bool) -> type[Conflict] | None:
        if self.current is None:
            return NothingCurrent
        self.pinned = wanted
        return None


_STEP = st.tuples(
    st.sampled_from(("promote", "promote", "roll_back", "pin", "unpin")),
    st.integers(0, 1),  # which of two connections does it
    st.integers(0, len(NAMES) - 1),
    st.sampled_from(VERSIONS),
    st.sampled_from((None, None, None, *VERSIONS)),
)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory):
    """Two registries on one folder, as two processes would have them."""
    folder = tmp_path_factory.mktemp("two")
    registry, _ = filled(folder)
    other = ArtefactRegistry(folder / "artefacts", clock=now)
    yield registry, other
    registry.close()
    other.close()


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(_STEP, max_size=25))
def test_any_sequence_comes_to_what_the_simplest_model_says(two, steps) -> None:
    first, registries = two[0], two
    models = {name: _resumed(first, name) for name in NAMES}
    for action, which, index, version, expected in steps:
        registry, name = registries[which], NAMES[index]
        refusal = _expected_refusal(models[name], action, version, expected)
        if refusal is None:
            _do(registry, name, action, version, expected)
        else:
            with pytest.raises(refusal):
                _do(registry, name, action, version, expected)
        found = first.current(name)
        told = (None, False) if found is None else (found.version, found.pinned)
        assert told == (models[name].current, models[name].pinned)
        assert history_fault(first, name) is None
    for name in NAMES:
        assert list(first.succession(name)[1:]) == list(reversed(models[name].before))


def _resumed(registry: ArtefactRegistry, name) -> Model:
    """The examples share a registry; each begins where the one before ended."""
    model, found = Model(), registry.current(name)
    if found is not None:
        model.current, model.pinned = found.version, found.pinned
        model.before = list(reversed(registry.succession(name)[1:]))
    return model


def _expected_refusal(model: Model, action: str, version: str, expected: str | None) -> type[Conflict] | None:
    if expected is not None and expected != model.current:
        return CurrentChanged
    if action == "promote":
        return model.promote(version)
    if action == "roll_back":
        return model.roll_back()
    return model.pin(action == "pin")


def _do(registry: ArtefactRegistry, name, action: str, version: str, expected: str | None) -> None:
    if action == "promote":
        registry.promote(Reference(name=name, version=version), who=WHO, expected=expected)
    elif action == "roll_back":
        registry.roll_back(name, who=WHO, expected=expected)
    elif action == "pin":
        registry.pin(name, who=WHO, expected=expected)
    else:
        registry.unpin(name, who=WHO, expected=expected)


@pytest.mark.parametrize("seed", [3, 4])
def test_threads_that_move_at_once(tmp_path: Path, seed: int) -> None:
    registry, _ = filled(tmp_path)
    said: list[list[Current | str]] = [[] for _ in range(4)]

    def work(index: int) -> None:
        chance = random.Random(seed * 100 + index)
        said[index].extend(move(registry, chance, WHO) for _ in range(60))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(item) for item in said] == [60] * 4
    moved = [item for items in said for item in items if not isinstance(item, str)]
    assert {item.sequence for item in moved} == {change.sequence for change in registry.changes()}
    _require_sound(registry)
    registry.close()


@pytest.mark.slow
def test_processes_that_move_at_once_and_are_killed(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    chance = random.Random(seed)
    registry, _ = filled(tmp_path)
    acknowledged: dict[str, Any] = {}
    dead: list[_Mover] = []
    movers = [_Mover(tmp_path, chance.randrange(10**6)) for _ in range(MOVERS)]
    try:
        for _ in range(KILLS):
            victim = chance.randrange(MOVERS)
            movers[victim].wait_for(chance.randint(1, 12))
            time.sleep(chance.random() * 0.01)  # the moment of death is what is random here
            acknowledged |= movers[victim].kill()
            dead.append(movers[victim])
            for name in NAMES:  # also while the others go on
                assert history_fault(registry, name) is None, f"seed {seed}"
            movers[victim] = _Mover(tmp_path, chance.randrange(10**6))
    finally:
        for mover in movers:
            acknowledged |= mover.kill()
    assert not "".join(mover.complaints for mover in (*movers, *dead)), f"seed {seed}"
    history = registry.changes()
    assert [change.sequence for change in history] == list(range(1, len(history) + 1)), f"seed {seed}"
    # What was told to be current was so, by the change that was named; what was refused left nothing.
    done = {mark: said for mark, said in acknowledged.items() if not isinstance(said, str)}
    refused = acknowledged.keys() - done.keys()
    assert len(done) > KILLS, f"seed {seed}"
    assert refused, f"seed {seed}"
    for sequence, name, version in done.values():
        change = history[sequence - 1]
        assert (str(change.name), change.to_version) == (name, version), f"seed {seed}"
    assert not refused & {change.why for change in history}, f"seed {seed}"
    _require_sound(registry)
    registry.close()


def _require_sound(registry: ArtefactRegistry) -> None:
    assert not faults(registry)
    for name in NAMES:
        moved = [change for change in registry.changes(name) if change.action in ("promote", "rollback")]
        found = registry.current(name)
        assert (found is None) == (not moved)
        assert found is None or found.version == moved[-1].to_version
        for artefact in registry.list(kind=name.kind, name=name.name):
            assert registry.load(artefact).data == f"{name} {artefact.reference.version}".encode() * 1_000


class _Mover:
    """One process, and what it said so far."""

    def __init__(self, folder: Path, seed: int) -> None:
        command = [sys.executable, "-m", "tests.property.artefact_mover", str(folder), str(folder / "key.pem")]
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            [*command, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root
        )
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._said: dict[str, Any] = {}
        self.complaints = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with suppress(ValueError):  # the last line may be cut off
                self._lines.put(json.loads(line))

    def _take(self, wait_s: float) -> None:
        told = self._lines.get(timeout=wait_s)
        self._said[told["mark"]] = told["said"]

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            self._take(60.0)

    def kill(self) -> dict[str, Any]:
        """End it with SIGKILL; gives everything it said."""
        self._process.kill()
        self._reader.join()
        with suppress(queue.Empty):
            while True:
                self._take(0.0)
        _, complaints = self._process.communicate()
        self.complaints = complaints.decode()
        return self._said
