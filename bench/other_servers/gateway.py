"""LiteLLM's proxy between the site and the tests' provider, which calls tools."""

import json
import os
from pathlib import Path
from typing import Any

from tests.fakes.calling import calling
from tests.fakes.upstream import Answer, Upstream
from tests.servers import START_TIMEOUT, Server, answers

from . import ADD, SEARCH, visit
from .visit import Outcome

# It asks for prices and reports its use otherwise.
SILENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "DISABLE_ADMIN_UI": "True",
    "NO_DOCS": "True",
}


class Provider(Upstream):
    """Every turn begins with calls, and is answered when their results are there."""

    def next_mode(self, body: dict[str, Any]) -> str | Answer:
        if not body.get("tools") or body["messages"][-1]["role"] != "user":
            return "ok"
        search = (SEARCH, {"query": "ferry pier captain"})
        number = sum(each["role"] == "user" for each in body["messages"])
        if number % 2:
            return calling(search, split=9)
        # Two at once, in pieces that come by turns, behind a text.
        add = (ADD, {"expression": f"{number} + 1"})
        return calling(search, add, text="I look it up. ", split=9)

    @property
    def replies(self) -> list[list[dict[str, Any]]]:
        """The messages of each request that could call tools."""
        return [call.messages for call in self.calls if call.body.get("tools")]


class Proxy(Server):
    """LiteLLM with one model, which is the provider's."""

    name = "litellm"
    # It imports for 20 seconds on an idle machine.
    start_timeout = 4 * START_TIMEOUT

    def __init__(self, python: Path, provider_url: str) -> None:
        super().__init__()
        self.python, self.provider_url = python, provider_url

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        model = {
            "model": "openai/ok",
            "api_base": self.provider_url,
            "api_key": "sk-provider",
        }
        key = visit.SETTINGS["OPENAI_API_KEY"]
        name = visit.SETTINGS["CHAT_MODEL"]
        config = {
            "model_list": [{"model_name": name, "litellm_params": model}],
            "litellm_settings": {"telemetry": False},
            "general_settings": {"master_key": key},
        }
        # JSON is YAML, too.
        (self.folder / "config.yaml").write_text(json.dumps(config))

    def environment(self) -> dict[str, str]:
        # Neither the caller's keys nor their proxies.
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), **SILENT}

    def command(self) -> list[str]:
        program = str(self.python.parent / "litellm")
        config = str(self.folder / "config.yaml")
        address = ["--host", "127.0.0.1", "--port", str(self.port)]
        return [program, "--config", config, *address]

    def is_ready(self) -> bool:
        return answers(f"{self.url}/health/readiness")


def run(python: Path) -> Outcome:
    with Provider() as provider, Proxy(python, provider.url) as proxy:
        outcome = visit.converse(f"{proxy.url}/v1")
        check_provider(provider, outcome)
    return outcome


def check_provider(provider: Provider, outcome: Outcome) -> None:
    """What came out behind the proxy."""
    for violation in provider.violations:
        outcome.faults.append(f"OpenAI would have refused: {violation}")
    got, sent = provider.replies[-1], as_passed_on(outcome.last.get("messages", []))
    outcome.check(got == sent, f"the provider got other messages: {got}")
    keys = {call.headers.get("authorization") for call in provider.calls}
    outcome.check(keys == {"Bearer sk-provider"}, f"the proxy was gone around: {keys}")


def as_passed_on(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the proxy makes of them: it leaves out the `content` of a message that has
    calls and says nothing. Everything else has to be the same."""
    return [
        {name: value for name, value in each.items() if value is not None}
        for each in messages
    ]
