"""Blobs: speed against a plain gRPC stream and a file copy, and a gigabyte over thirty breaks with flat memory.

    python -m bench.blobs [--quick] [--json] [--seed N]

Server, client and the plain stream's server are processes of their own; a proxy between them makes the breaks
(`tests.fakes.proxy`). `plain` streams the same chunks into a synced file, without hash, checksums, owners or going
on: the ratio is what the promises cost. `copy` is a file that is copied and synced.
"""

import argparse
import asyncio
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.fakes.proxy import Fault, FaultProxy
from tests.integration.server import ROOT, ServerProcess

_MIB = 2**20
_LOOK_EVERY_S = 0.004
_SETTLED_AFTER_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One blob on its way up or down."""

    way: str
    size_bytes: int
    breaks: int
    """Connections that ended in the middle."""
    wall_s: float
    client_growth_bytes: int
    """Most resident memory during the trip, less that before it."""
    server_growth_bytes: int

    @property
    def mb_per_s(self) -> float:
        """Throughput, waits after breaks included."""
        return self.size_bytes / self.wall_s / 1e6


def write_file(path: Path, size_bytes: int, seed: int) -> str:
    """Write random bytes; their SHA-256."""
    content = random.Random(seed)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        left = size_bytes
        while left:
            piece = content.randbytes(min(left, _MIB))
            file.write(piece)
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()


class ClientProcess:
    """`bench.blob_client` as a process: does what it is told, line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the client was started without pipes")
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self.pid = process.pid

    @classmethod
    async def start(cls, *arguments: str) -> "ClientProcess":
        """Start it and wait until it has moved a first blob up and down."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.blob_client",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        )
        client = cls(process)
        await client.line()
        return client

    async def line(self) -> str:
        """The next line that it says."""
        said = await self._stdout.readline()
        if not said:
            raise RuntimeError(f"the client ended with {await self._process.wait()}")
        return said.decode().strip()

    async def do(self, *words: str) -> str:
        """Tell it something; what it answers."""
        self._stdin.write((" ".join(words) + "\n").encode())
        return await self.line()

    async def end(self) -> None:
        """Have it end."""
        self._stdin.close()
        await self._process.wait()


async def settled_bytes(process: psutil.Process) -> int:
    """Resident memory of a process, once it does not grow any more."""
    most = 0
    since_s = time.monotonic()
    while time.monotonic() - since_s < _SETTLED_AFTER_S:
        now = process.memory_info().rss
        if now > most:
            most, since_s = now, time.monotonic()
        await asyncio.sleep(_LOOK_EVERY_S)
    return most


async def trip(
    proxy: FaultProxy,
    client: ClientProcess,
    server_pid: int,
    words: tuple[str, ...],
    size_bytes: int,
    cuts: int,
    chance: random.Random,
) -> Trip:
    """Have a client move one blob while the way breaks at random places."""
    watched = (psutil.Process(client.pid), psutil.Process(server_pid))
    before = [await settled_bytes(process) for process in watched]
    most = list(before)
    accepted = proxy.accepted
    began_s = time.monotonic()
    moving = asyncio.create_task(client.do(*words))
    made = 0
    while not moving.done():
        if proxy.fault is Fault.NONE and made < cuts:
            made += 1
            proxy.break_with(Fault.CUT, after_bytes=int(size_bytes / cuts * chance.uniform(0.4, 0.9)))
        elif proxy.has_cut:
            # Before the client is back: what is cut while it connects counts as a failed attempt, and gRPC waits.
            proxy.heal()
        for index, process in enumerate(watched):
            most[index] = max(most[index], process.memory_info().rss)
        await asyncio.wait([moving], timeout=_LOOK_EVERY_S)
    wall_s = time.monotonic() - began_s
    proxy.heal()
    said = moving.result()
    if said != "done":
        raise RuntimeError(said)
    return Trip(
        way=words[0],
        size_bytes=size_bytes,
        breaks=proxy.accepted - accepted,
        wall_s=wall_s,
        client_growth_bytes=most[0] - before[0],
        server_growth_bytes=most[1] - before[1],
    )


async def over_breaks(folder: Path, size_bytes: int, cuts: int, seed: int) -> list[Trip]:
    """One blob up and down again over so many breaks; it is checked that it came back whole."""
    chance = random.Random(seed)
    source, target = folder / "source.bin", folder / "target.bin"
    sha256 = write_file(source, size_bytes, seed)
    server = ServerProcess(folder / "data", environment=_room_for(size_bytes))
    await asyncio.to_thread(server.start)
    try:
        if server.process is None:
            raise RuntimeError("the server did not start")
        server_pid = server.process.pid
        async with FaultProxy(server.target) as proxy:
            client = await ClientProcess.start(proxy.address)
            try:
                trips = [
                    await trip(proxy, client, server_pid, words, size_bytes, cuts, chance)
                    for words in (("upload", str(source)), ("download", sha256, str(target)))
                ]
            finally:
                await client.end()
    finally:
        await asyncio.to_thread(server.stop)
    with target.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise RuntimeError("another file came back")
    return trips


async def speeds(folder: Path, size_bytes: int, seed: int, rounds: int) -> dict[str, float]:
    """MB/s of the best round each, one after the other in every round."""
    best: dict[str, float] = {}
    server = ServerProcess(folder / "data", environment=_room_for(size_bytes * (rounds + 1)))
    await asyncio.to_thread(server.start)
    plain = await ClientProcess.start("--plain-server", str(folder / "plain.bin"))
    try:
        plain_address = await plain.do("address")
        client = await ClientProcess.start(server.target)
        for number in range(rounds):
            source = folder / f"source-{number}.bin"
            sha256 = write_file(source, size_bytes, seed + number)
            target = folder / "target.bin"
            contenders = {
                "copy": ("copy", str(source), str(folder / "copy.bin")),
                "plain": ("plain", plain_address, str(source)),
                "upload": ("upload", str(source)),
                "download": ("download", sha256, str(target)),
            }
            for name, words in contenders.items():
                began_s = time.perf_counter()
                if (said := await client.do(*words)) != "done":
                    raise RuntimeError(said)
                speed = size_bytes / (time.perf_counter() - began_s) / 1e6
                best[name] = max(best.get(name, 0.0), speed)
            source.unlink()
        await client.end()
    finally:
        await plain.end()
        await asyncio.to_thread(server.stop)
    return best


def _room_for(size_bytes: int) -> dict[str, str]:
    room = str(4 * size_bytes + 64 * _MIB)
    return {"PODIUM_BLOB_MAX_BYTES": room, "PODIUM_BLOBS_MAX_BYTES": room}


async def measure(size_bytes: int, cuts: int, seed: int, rounds: int) -> dict[str, Any]:
    """All of it, in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="podium-blobs-") as name:
        folder = Path(name)
        (folder / "speeds").mkdir()
        best = await speeds(folder / "speeds", size_bytes // 4, seed, rounds)
        shutil.rmtree(folder / "speeds")
        trips = await over_breaks(folder, size_bytes, cuts, seed)
    return {
        "seed": seed,
        "size_bytes": size_bytes,
        "mb_per_s": best,
        "trips": [asdict(one) | {"mb_per_s": one.mb_per_s} for one in trips],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="64 MiB instead of 1 GiB")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    size_bytes = 64 * _MIB if arguments.quick else 1024 * _MIB
    result = asyncio.run(measure(size_bytes, 30, arguments.seed, 2 if arguments.quick else 3))
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"seed {result['seed']}, {size_bytes / _MIB:.0f} MiB, 30 breaks wanted")
    for name, speed in result["mb_per_s"].items():
        print(f"{name:9} {speed:7.0f} MB/s without breaks")
    for one in result["trips"]:
        print(
            f"{one['way']:9} {one['mb_per_s']:7.0f} MB/s over {one['breaks']} breaks; memory grew by"
            f" {one['client_growth_bytes'] / _MIB:.1f} MiB in the client,"
            f" {one['server_growth_bytes'] / _MIB:.1f} MiB in the server"
        )


if __name__ == "__main__":
    main()
