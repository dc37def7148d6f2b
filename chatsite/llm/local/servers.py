"""The servers of models that `make run` finds on this machine.

Menus offer their models, each with the name of its server in front. None is used until
a user chooses it.
"""

import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from pydantic import ValidationError

from chatsite.llm.provider_file import Model, ModelProvider

HOST = "127.0.0.1"
# The server of `make local`.
SMALL = "SmolLM2"
OWN_NAMES = {HOST, "localhost", "::1"}
SERVERS = {
    **{11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio"},
    **{8000: "vLLM", 8001: "vLLM at 8001", 8135: SMALL},
}
SECONDS, MOST_BYTES, MOST_MODELS = 0.2, 64 * 1024, 20
# An answer to HTTP/1.0 ends with the connection, and comes in one piece.
REQUEST = b"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n"
ANSWER = re.compile(rb"HTTP/1\.[01] 200[ \r].*?\r\n\r\n(.*)", re.DOTALL)
# The terminal shows it. langchain-openai changes the roles for names of the last kind.
MODEL_ID = re.compile(r"(?!o\d)[!-~]{1,80}")


class LocalServer(ModelProvider):
    is_local = True


_found: list[LocalServer] = []


def list_servers() -> list[LocalServer]:
    """Return the servers that were found when the site started."""
    return _found


def find_servers(own_port: int) -> list[LocalServer]:
    """Ask the usual ports for their models, all at once, and keep what is found."""
    addresses = [each.base_url for each in settings.PROVIDERS]
    taken = {own_port, *map(_find_port, [settings.OPENAI_BASE_URL, *addresses])}
    ports = [port for port in SERVERS if port not in taken]
    with ThreadPoolExecutor(len(SERVERS)) as pool:
        answers = [*pool.map(_fetch_model_list, ports)]
    _found[:] = [
        LocalServer(
            name=SERVERS[port], base_url=f"http://{HOST}:{port}/v1", models=models
        )
        for port, answer in zip(ports, answers, strict=True)
        if (models := [*_read_models(answer, SERVERS[port])])
    ]
    return _found


def is_local(name: str) -> bool:
    """Return True for the name of a model that belongs to no other server."""
    server, colon, _rest = name.partition(": ")
    return bool(colon) and server in SERVERS.values()


def is_small(name: str) -> bool:
    """Return True for the model of `make local`, which is often wrong."""
    return name.startswith(f"{SMALL}: ")


def find_model_id(name: str, provider: ModelProvider) -> str:
    """Return the name by which the provider knows a model."""
    prefix = f"{provider.name}: "
    return name.removeprefix(prefix) if provider.is_local else name


def describe_servers() -> str:
    """Return the line of `make run`; "" where no server was found."""
    names = {
        each.name: [find_model_id(model.name, each) for model in each.models]
        for each in _found
        # The server of `make local` runs the default.
        if each.name != SMALL
    }
    shown = [f"{name} ({', '.join(models)})" for name, models in names.items()]
    listed = "; ".join(shown)
    return f"    In the model menu: {listed}. Used only if chosen.\n" if shown else ""


def _find_port(address: str) -> int | None:
    with suppress(ValueError):
        parts = urlsplit(address)
        return parts.port if parts.hostname in OWN_NAMES else None
    return None


def _fetch_model_list(port: int) -> bytes:
    """Return what the server answers in time; b"" if it is too long."""
    end, answer = time.monotonic() + SECONDS, b""
    with suppress(OSError), socket.create_connection((HOST, port), SECONDS) as server:
        server.sendall(REQUEST)
        while len(answer) <= MOST_BYTES and (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            if not (piece := server.recv(MOST_BYTES + 1 - len(answer))):
                break
            answer += piece
    return answer if len(answer) <= MOST_BYTES else b""


def _read_window(row: dict[str, Any]) -> Any:
    """Return the window as vLLM and llama.cpp give it; None: no such field."""
    meta = row.get("meta")
    return row.get("max_model_len") or (
        meta.get("n_ctx") if isinstance(meta, dict) else None
    )


def _read_models(answer: bytes, server: str) -> Iterator[Model]:
    found = ANSWER.match(answer)
    value: Any = None
    with suppress(ValueError, RecursionError):
        value = json.loads(found[1]) if found else None
    data = value.get("data") if isinstance(value, dict) else None
    listed = data if isinstance(data, list) else []
    windows = {
        name: _read_window(each)
        for each in listed
        if isinstance(each, dict)
        and isinstance(name := each.get("id"), str)
        and MODEL_ID.fullmatch(name)
    }
    for name, window in [*windows.items()][:MOST_MODELS]:
        with suppress(ValidationError):
            yield Model(name=f"{server}: {name}", window=window)
