"""An OpenAI-compatible endpoint whose model's name says how it behaves; a real server on a port of its own.

`python -m tests.fakes.model_server` prints the port. `GET /seen` returns what it was asked.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

ROOT = Path(__file__).parents[2]
ANSWER = {
    "said": "It is so. [Source: S1]",
    "confidence_score": 0.8,
    "sources": [{"id": "S1", "kind": "document", "label": "a page", "location": "p. 1", "sha256": ""}],
}
GOOD = json.dumps(ANSWER)
TEXTS = {
    "good": GOOD,
    "prose": "Certainly! " + GOOD + " I hope that it helps.",
    "fenced": f"Here you are:\n```json\n{GOOD}\n```\n",
    "wrong_types": json.dumps({**ANSWER, "confidence_score": "high"}),
    "overconfident": json.dumps({**ANSWER, "confidence_score": 1.0}),
    "unsourced": json.dumps({key: value for key, value in ANSWER.items() if key != "sources"}),
    "long": json.dumps({**ANSWER, "said": "x" * 200_000}),
    "unknown_field": json.dumps({**ANSWER, "approved": True}),
    "nan": json.dumps({**ANSWER, "confidence_score": float("nan")}),
    "deep": GOOD[:-1] + ', "extra": ' + "[" * 500 + "]" * 500 + "}",
    "forged": json.dumps({**ANSWER, "sources": [{**ANSWER["sources"][0], "kind": "sql"}]}),  # type: ignore[index]
}
_SEEN: list[dict[str, Any]] = []


def _chunk(text: str = "", reason: str | None = None, **delta: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text, **delta}, "finish_reason": reason}
    event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


async def _words(text: str, reason: str | None = "stop") -> AsyncIterator[bytes]:
    for start in range(0, len(text), 20):
        yield _chunk(text[start : start + 20])
    if reason is not None:
        yield _chunk(reason=reason)
        yield b"data: [DONE]\n\n"


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield _chunk("and more ")
        await asyncio.sleep(0)


async def _gigabyte() -> AsyncIterator[bytes]:
    yield b'data: {"choices": "'
    for _ in range(16_384):
        yield b"x" * 65_536


async def _drip() -> AsyncIterator[bytes]:
    """A byte now and then: nothing that waits for the next byte only ever runs out of patience."""
    for byte in _chunk("patience, " * 1000):
        yield bytes([byte])
        await asyncio.sleep(0.05)


async def _bomb() -> AsyncIterator[bytes]:
    """A gigabyte, in a megabyte."""
    squeezing = zlib.compressobj(wbits=31)
    for _ in range(1024):
        yield squeezing.compress(bytes(2**20))
    yield squeezing.flush()


async def _hang() -> AsyncIterator[bytes]:
    yield _chunk("wait")
    await asyncio.sleep(3600)


async def _dying() -> AsyncIterator[bytes]:
    yield _chunk(GOOD[:20])
    raise ConnectionError("this model dies")


async def _refusing() -> AsyncIterator[bytes]:
    yield _chunk(refusal="I would rather not.")
    yield _chunk(reason="stop")


def _streams(model: str) -> AsyncIterator[bytes] | None:
    made = {
        "truncated": lambda: _words(GOOD[:40], "length"),
        "filtered": lambda: _words("", "content_filter"),
        "no_end": lambda: _words(GOOD, None),
        "tool_call": lambda: _words("", "tool_calls"),
        "endless": _endless,
        "gigabyte": _gigabyte,
        "hang": _hang,
        "drip": _drip,
        "dies": _dying,
        "refuses": _refusing,
    }
    return made[model]() if model in made else None


def _error(status: int, message: str, **headers: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "error"}}, status, headers=headers)


async def _complete(request: Request) -> Response:
    body = await request.json()
    key = request.headers.get("authorization", "")
    _SEEN.append({"body": body, "authorization": key})
    model, form = body["model"], body.get("response_format", {}).get("type", "none")
    refused: dict[str, Response] = {
        "busy": _error(429, "slow down", **{"retry-after": "7"}),
        "broken": _error(500, "a fuse blew"),
        "bad_key": _error(401, f"no such key: {key}"),
        "redirect": Response(status_code=307, headers={"location": "http://127.0.0.1:9/elsewhere"}),
        "html": Response("<html>a proxy's page</html>", media_type="text/html"),
        "nonsense": Response('data: {"choices": 7}\n\n', media_type="text/event-stream"),
        "bomb": StreamingResponse(_bomb(), headers={"content-encoding": "gzip"}, media_type="text/event-stream"),
        "headers": JSONResponse({}, headers={f"x-{number}": "x" * 8000 for number in range(200)}),
        "gzip": Response(b"x", headers={"content-encoding": "gzip"}, media_type="text/event-stream"),
    }
    if model in refused:
        return refused[model]
    if (model == "object_only" and form == "json_schema") or (model == "no_format" and form != "none"):
        return _error(400, "response_format is not supported")
    stream = _streams(model) or _words(TEXTS.get(model, GOOD))
    return StreamingResponse(stream, media_type="text/event-stream")


async def _seen(_: Request) -> Response:
    return JSONResponse(_SEEN)


def main() -> None:
    """Serve until killed."""
    app = Starlette(routes=[Route("/v1/chat/completions", _complete, methods=["POST"]), Route("/seen", _seen)])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])


@contextmanager
def model_server() -> Iterator[str]:
    """The server as a process of its own; its base URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.model_server"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, "the model server did not start"
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


if __name__ == "__main__":
    main()
