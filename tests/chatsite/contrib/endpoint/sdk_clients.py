"""The SDKs of two providers, unmodified, over ASGI to the site in this process."""

import httpx2
import openai
import pytest

from chatsite import asgi


def make_client(sdk, key, path=""):
    """The options of a client of an SDK.

    The second value keeps the last answer, as the SDK got it.
    """

    class Recorded(httpx2.ASGITransport):
        answer, headers = b"", {}

        async def handle_async_request(self, request):
            response = await super().handle_async_request(request)
            self.answer = b"".join([part async for part in response.stream])
            self.headers = response.headers
            status, headers = response.status_code, response.headers
            return httpx2.Response(status, headers=headers, content=self.answer)

    recorded = Recorded(asgi.answer_http)
    recorded.sdk = sdk
    options = {"base_url": f"http://testserver{path}", "api_key": key}
    made = sdk.DefaultAsyncHttpxClient(transport=recorded)
    return options | {"http_client": made, "max_retries": 0}, recorded


def connect_anthropic(key):
    anthropic = pytest.importorskip("anthropic")
    options, recorded = make_client(anthropic, key)
    return anthropic.AsyncAnthropic(**options), recorded


def connect_openai(key):
    options, recorded = make_client(openai, key, "/v1")
    return openai.AsyncOpenAI(**options), recorded
