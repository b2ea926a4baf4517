"""The client of a line-of-business application: submit, watch, answer, get, cancel, upload.

``Client`` blocks, ``AsyncClient`` is its asyncio twin; both raise the errors of `podium.errors`. ::

    with Client(Address.of("127.0.0.1:7443", ca_file)) as client:
        task = client.submit("Compare last quarter's sales of East China and South China")
        task = client.wait(task.task_id)
        print(task.result.answer_markdown)
"""

from podium.client.asynchronous import AsyncClient
from podium.client.blocking import Client
from podium.link import Address

__all__ = ["Address", "AsyncClient", "Client"]
