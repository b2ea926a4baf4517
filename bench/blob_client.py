"""The other processes of `bench.blobs`: one moves files as it is told on stdin, one serves the plain stream."""

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc

from podium.client import Client
from podium.errors import PodiumError
from podium.link import Address, channel_options

_CHUNK_BYTES = 256 * 1024
_SERVICE, _METHOD = "bench.Plain", "Send"


def main() -> None:
    """Serve the plain stream, or be the client of a server."""
    if sys.argv[1] == "--plain-server":
        asyncio.run(_serve_plain(Path(sys.argv[2])))
    else:
        _obey(Address.of(sys.argv[1]))


def _obey(address: Address) -> None:
    with Client(address) as client:
        first = client.upload_bytes(os.urandom(2**20), media_type="application/octet-stream")
        for _ in client.download(first.sha256):
            pass
        print("ready", flush=True)
        for line in sys.stdin:
            match line.split():
                case ["upload", path]:
                    _tell(lambda path=path: client.upload(Path(path)))
                case ["download", sha256, path]:
                    _tell(lambda sha256=sha256, path=path: client.download_to(sha256, Path(path)))
                case ["plain", target, path]:
                    _tell(lambda target=target, path=path: _send_plain(target, Path(path)))
                case ["copy", source, target]:
                    _tell(lambda source=source, target=target: _copy(source, target))


def _tell(work: Any) -> None:
    try:
        work()
    except PodiumError as error:
        print(f"{error.code}: {error.message}", flush=True)
    else:
        print("done", flush=True)


def _copy(source: str, target: str) -> None:
    shutil.copyfile(source, target)
    with open(target, "rb+") as file:
        os.fsync(file.fileno())


def _send_plain(target: str, path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK_BYTES):
                yield piece

    with grpc.insecure_channel(target, options=channel_options()) as channel:
        send: Any = channel.stream_unary(f"/{_SERVICE}/{_METHOD}")
        send(pieces())


async def _serve_plain(path: Path) -> None:
    async def send(pieces: AsyncIterator[bytes], context: Any) -> bytes:
        with path.open("wb", buffering=0) as file:
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(os.fsync, file.fileno())
        return b""

    server = grpc.aio.server()
    handlers: dict[str, Any] = {_METHOD: grpc.stream_unary_rpc_method_handler(send)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_SERVICE, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print("ready", flush=True)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def answer() -> None:
        for _ in sys.stdin:
            print(f"127.0.0.1:{port}", flush=True)
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=answer, daemon=True).start()
    await ended.wait()
    await server.stop(None)


if __name__ == "__main__":
    main()
