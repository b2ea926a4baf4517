"""Runs one piece of the evaluation at a time, each in processes of its own, and remembers what is done.

Who plans gets the files of requests and tools; who scores gets gold and the predictions. A piece is run again only
when what it depends on has changed, so a broken run goes on where it stopped.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.planner.suites import Files, Suite

OURS = "policy"


class PieceFailed(RuntimeError):
    """A process of the evaluation failed; its last words are in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the evaluation works and what it evaluates."""

    work: Path
    data: Path
    model: Path | None
    """A planner's file; None for the one that ships, or was promoted in `podium_data`."""
    podium_data: Path
    threads: int
    say: Callable[[str], None]

    @property
    def model_key(self) -> str:
        """What the planner is known by: the hash of its file, or of the committed list that names it."""
        source = self.model or Path("tools/models/pinned.toml")
        return hashlib.sha256(source.read_bytes()).hexdigest()

    def remembered(self, name: str, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of a piece: what was found for this key before, or what `make` finds now."""
        path = self.work / "results" / f"{name}.json"
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))
            if known["key"] == key:
                return dict(known["result"])
        started = time.monotonic()
        result = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps({"key": key, "result": result}), encoding="utf-8")
        scratch.replace(path)
        self.say(f"{name}: {time.monotonic() - started:.1f} s")
        return result

    def _file(self, name: str, key: str, out: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """As `remembered`, for a piece that writes a file, which may have been taken away since."""
        if not out.exists():
            (self.work / "results" / f"{name}.json").unlink(missing_ok=True)
        return self.remembered(name, key, make)

    def predicted(self, suite: Suite, files: Files) -> tuple[Path, dict[str, Any]]:
        """The file of the planner's plans, and what planning took."""
        out = self.work / "predictions" / f"{suite.name}.{OURS}.jsonl"
        key = _key(self.model_key, files.batch, files.tools)
        return out, self._file(f"plan-{suite.name}", key, out, lambda: self._plan(files, out, self.threads))

    def planned_in(self, suite: Suite, files: Files, *, threads: int) -> dict[str, Any]:
        """What it takes to plan a suite with so many threads; the plans do not matter."""
        out = self.work / "predictions" / f"{suite.name}.{OURS}.jsonl"
        key = _key(f"{self.model_key} {threads}", files.batch, files.tools)
        return self._file(f"time-{suite.name}", key, out, lambda: self._plan(files, out, threads))

    def _plan(self, files: Files, out: Path, threads: int) -> dict[str, Any]:
        given = ["--batch", str(files.batch), "--out", str(out), "--threads", str(threads)]
        if files.tools is not None:
            given += ["--tools", str(files.tools)]
        out.parent.mkdir(parents=True, exist_ok=True)
        if self.model is None:
            command = [sys.executable, "-m", "podium.cli", "plan", "--planner", "policy", "--json"]
            return last_object(run([*command, "--data", str(self.podium_data), *given]))
        return last_object(
            run([sys.executable, "-m", "bench.planner.predict", "--model", str(self.model), *given])
        )

    def packs(self, planner: str) -> Path:
        """The file of what a server's planner makes of the Chinese requests to the packs."""
        out = self.work / "predictions" / f"kept-chinese-tasks.{planner}.jsonl"

        def make() -> dict[str, Any]:
            out.parent.mkdir(parents=True, exist_ok=True)
            model = [] if self.model is None else ["--model", str(self.model)]
            command = [sys.executable, "-m", "bench.planner.packs", "--planner", planner, "--out", str(out)]
            return last_object(run([*command, *model]))

        self._file(f"tasks-{planner}", _key(f"{self.model_key} {planner}"), out, make)
        return out

    def baseline(self, name: str, suite: Suite, files: Files) -> Path:
        """The file of a baseline's plans."""
        out = self.work / "predictions" / f"{suite.name}.{name}.jsonl"
        key = _key(name + suite.learn, files.batch, files.tools)
        self._file(f"plan-{suite.name}-{name}", key, out, lambda: self._baseline(name, suite, files, out))
        return out

    def _baseline(self, name: str, suite: Suite, files: Files, out: Path) -> dict[str, Any]:
        out.parent.mkdir(parents=True, exist_ok=True)
        given = ["--batch", str(files.batch), "--out", str(out)]
        if files.tools is not None:
            given += ["--tools", str(files.tools)]
        if name == "rules":
            run([sys.executable, "-m", "podium.cli", "plan", "--planner", "rules", "--json", *given])
        else:
            learn = ["--train", suite.learn, "--data", str(self.data)]
            run([sys.executable, "-m", "conductor.evaluation.baselines", name, *learn, *given])
        return {"out": str(out)}

    def scored(self, suite: Suite, files: Files) -> dict[str, Any]:
        """What `podium eval plans` says of the planner and the baselines."""
        ours, planning = self.predicted(suite, files)
        others = {name: self.baseline(name, suite, files) for name in suite.baselines}

        def score() -> dict[str, Any]:
            given = ["--mode", suite.mode, "--gold", str(files.gold), "--predictions", str(ours)]
            for name, path in others.items():
                given += ["--baseline", f"{name}={path}"]
            return last_object(run([sys.executable, "-m", "podium.cli", "eval", "plans", "--json", *given]))

        return self.remembered(
            f"score-{suite.name}", _key(suite.mode, files.gold, ours, *others.values()), score
        ) | {"planning": planning}


def run(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    """What a process says on stdout.

    Raises:
        PieceFailed: it did not end well.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip()[-2_000:]
        raise PieceFailed(f"{' '.join(command[:8])} ... ended with {done.returncode}: {last}")
    return done.stdout


def last_object(said: str) -> dict[str, Any]:
    """The JSON object on the last line."""
    found = json.loads(said.strip().splitlines()[-1])
    if not isinstance(found, dict):
        raise PieceFailed(f"no object: {said[:200]}")
    return found


def _key(first: str, *files: Path | None) -> str:
    whole = hashlib.sha256(first.encode())
    for path in files:
        whole.update(b"-" if path is None else hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()
