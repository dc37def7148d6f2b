"""The client of the library `mcp`, unmodified, without a server between."""

import json
from contextlib import asynccontextmanager

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from chatsite import asgi

MODERN = "2026-07-28"


@asynccontextmanager
async def connected(key, *, mode=MODERN, url="http://testserver/mcp", **headers):
    headers = {"authorization": f"Bearer {key}", **headers}
    line = httpx2.ASGITransport(app=asgi.answer_http) if "testserver" in url else None
    async with httpx2.AsyncClient(transport=line, headers=headers) as http:
        link = streamable_http_client(url, http_client=http)
        async with Client(link, mode=mode) as client:
            yield client


async def use(client, tool, **arguments):
    """The JSON of an answer; of a refusal its sentence."""
    result = await client.call_tool(tool, arguments)
    [block] = result.content
    return block.text if result.is_error else json.loads(block.text)
