"""What these tests stand on: a pack whose task needs a device and an agent host, and processes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.integration.server import PACKS, ROOT, ServerProcess

PERSON = "Erika Mustermann"
CARD = "4111 1111 1111 1111"
AGENTS = Path(__file__).with_name("leaky_agents.py")


FOREIGN: dict[str, dict[str, Any]] = {
    "card": {"engine": "a2a", "settings": {"card": "{}/card", "skill": "other", "confidence": 0.5}},
    "skill": {"engine": "a2a", "settings": {"card": "{}/card", "skill": "lookup", "confidence": 0.5}},
    "tool": {"engine": "mcp", "settings": {"url": "{}/mcp", "tool": "lookup", "confidence": 0.5}},
    "model": {"engine": "openai", "settings": {"base_url": "{}/v1", "model": "m"}},
}
"""Agents elsewhere that requests with these words lead to, by where they are."""


def pack(folder: Path, host: str = "127.0.0.1:1", foreign: str = "http://127.0.0.1:1") -> Path:
    """The test pack: what a device read is read again there, counted on an agent host, and told here.

    Agents of requests in words say what is personal whenever something goes wrong; so do those at `foreign`.
    """
    packs = folder / "packs"
    shutil.copytree(PACKS, packs, dirs_exist_ok=True)
    manifests = packs / "relay" / "manifests"
    reread = yaml.safe_load((manifests / "relay_reread.yaml").read_text())
    (manifests / "page_reread.yaml").write_text(yaml.safe_dump(reread | {"name": "page_reread"}))
    count = yaml.safe_load((manifests / "relay_count.yaml").read_text())
    remote = {"name": "remote_count", "engine": "grpc"}
    remote["settings"] = {"endpoints": [host], "insecure_loopback": True}
    remote["sla"] = {"timeout": 10, "retries": 1}
    (manifests / "remote_count.yaml").write_text(yaml.safe_dump(count | remote))
    stumble = yaml.safe_load((manifests / "relay_stumble.yaml").read_text())
    callable_ = {"settings": {"callable": "tests.integration.telemetry.leaky_agents:stumble"}}
    (manifests / "relay_stumble.yaml").write_text(yaml.safe_dump(stumble | callable_))
    vocabulary = yaml.safe_load((packs / "relay" / "vocabulary.yaml").read_text())
    rules = yaml.safe_load((packs / "relay" / "rules.yaml").read_text())
    kinds = vocabulary["kinds"]["relay"]["values"]
    for word, agent in FOREIGN.items():
        settings = {key: str(value).format(foreign) for key, value in agent["settings"].items()}
        settings |= {key: value for key, value in agent["settings"].items() if not isinstance(value, str)}
        told = {"name": f"{word}_elsewhere", "engine": agent["engine"], "settings": settings}
        told["sla"] = {"timeout": 10, "retries": 0}
        (manifests / f"{word}_elsewhere.yaml").write_text(yaml.safe_dump(stumble | told))
        kinds[word] = [f"elsewhere{word}"]
        crash = next(rule for rule in rules["rules"] if rule["name"] == "relay_crash")
        asked = {"name": f"relay_{word}", "when": crash["when"].replace("crash", word)}
        steps = [{**crash["steps"][0], "tool": f"{word}_elsewhere"}]
        rules["rules"].append(crash | asked | {"steps": steps})
    vocabulary["stop_words"] += ["check", "invoice", "of", "linger", *PERSON.lower().split()]
    (packs / "relay" / "vocabulary.yaml").write_text(yaml.safe_dump(vocabulary))
    for rule in rules["rules"]:
        if rule["name"] == "relay_document":
            rule["steps"] = [
                {"tool": "page_reread", "arguments": {"text": {"request": "payload.name"}}},
                {
                    "tool": "remote_count",
                    "arguments": {"text": {"request": "payload.name"}, "pause_ms": 0},
                    "depends_on": [0],
                },
                {"tool": "relay_tell", "arguments": {"words": {"step": 1, "field": "words"}, "pause_ms": 0}},
            ]
    (packs / "relay" / "rules.yaml").write_text(yaml.safe_dump(rules))
    return packs


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"} | more


@contextmanager
def host(folder: Path, *options: str) -> Iterator[str]:
    """An agent host as a process; where it listens. Its log is FOLDER/host.log."""
    packs = pack(folder)
    with (folder / "host.log").open("a") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "podium.cli", "host", "run", f"{AGENTS}:count"),
                *("--manifest", str(packs / "relay" / "manifests" / "remote_count.yaml")),
                *("--insecure-loopback", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env=environment(),
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on "), (folder / "host.log").read_text()
        yield line.split()[-1]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@contextmanager
def server(
    folder: Path, address_of_host: str, *, foreign: str = "http://127.0.0.1:1", **settings: str
) -> Iterator[ServerProcess]:
    """`podium serve` as a process; its log is FOLDER/server.log."""
    named = {f"PODIUM_{name.upper()}": value for name, value in settings.items()}
    named["PODIUM_PACKS"] = str(pack(folder, address_of_host, foreign))
    running = ServerProcess(folder / "data", environment=named).start()
    assert running.target, running.log()
    try:
        yield running
    finally:
        running.stop()


def device(folder: Path, target: str, name: str, file: Path, *options: str) -> dict[str, Any]:
    """A device as a process, until its task has ended; its log is FOLDER/device.log."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.telemetry.recorded_device", target, name, str(file), *options],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        timeout=60,
        check=False,
    )
    with (folder / "device.log").open("a") as log:
        log.write(done.stderr)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
