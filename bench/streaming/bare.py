"""The least that Channels and daphne can do: a socket that passes a reply on, word by
word, and keeps nothing. MODE=raw reads the provider's bytes, MODE=langchain uses
ChatOpenAI.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import django
from django.conf import settings

settings.configure(SECRET_KEY=os.urandom(16).hex(), ALLOWED_HOSTS=["*"])
django.setup()

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.routing import ProtocolTypeRouter  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402

# An empty frame would not be sent.
END = "\n"
PROVIDER = urlsplit(os.environ["OPENAI_BASE_URL"])


async def read_raw(text: str) -> AsyncIterator[str]:
    reader, writer = await asyncio.open_connection(PROVIDER.hostname, PROVIDER.port)
    message = {"role": "user", "content": text}
    body = json.dumps({"model": "bench", "messages": [message], "stream": True})
    writer.write(
        f"POST {PROVIDER.path}/chat/completions HTTP/1.1\r\nHost: bench\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    try:
        async for line in reader:
            if line.startswith(b"data: [DONE]"):
                return
            if line.startswith(b"data: "):
                yield json.loads(line[6:])["choices"][0]["delta"].get("content", "")
    finally:
        writer.close()


async def read_langchain(text: str) -> AsyncIterator[str]:
    async for chunk in model.astream(text):
        yield chunk.text


if os.environ["MODE"] == "raw":
    read = read_raw
else:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="bench", api_key="none")
    read = read_langchain


class Relay(AsyncWebsocketConsumer):
    async def receive(self, text_data: str = "", bytes_data: bytes = b"") -> None:
        async for piece in read(text_data):
            if piece:
                await self.send(text_data=piece)
        await self.send(text_data=END)


application = ProtocolTypeRouter(
    {"http": get_asgi_application(), "websocket": Relay.as_asgi()}
)
