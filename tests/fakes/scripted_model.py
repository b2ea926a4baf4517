"""An OpenAI-compatible endpoint with one answer: `python -m tests.fakes.scripted_model PORT ANSWER`."""

import json
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route


async def _events() -> AsyncIterator[bytes]:
    for content, reason in ((sys.argv[2], None), ("", "stop")):
        choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        yield b"data: " + json.dumps(event).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


async def _complete(request: Request) -> Response:
    assert (await request.json())["messages"]
    return StreamingResponse(_events(), media_type="text/event-stream")


def main() -> None:
    """Serve until killed."""
    app = Starlette(routes=[Route("/v1/chat/completions", _complete, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")


if __name__ == "__main__":
    main()
