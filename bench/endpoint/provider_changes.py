"""Planted changes between two requests of Anthropic's API, and who finds them.

The first cause that this site finds is compared with the provider's reason.

Usage: python -m bench.endpoint.provider_changes [--changes 1000] [--seed 1]
"""

import argparse
import copy
import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import httpx

from tests.fakes.compacting import CompactingProvider

from .place import make_place
from .strict import WORDS

Body = dict[str, Any]
READ = """
from chatsite.contrib.endpoint.provider_reports.cache_misses import find_cache_miss
from memory.models import ModelCall
import json
calls = ModelCall.objects.select_related("of_client", "conversation").order_by("pk")
found = {each.of_client.response_id: find_cache_miss(each) for each in calls}
print(json.dumps({n: m and [m.said, m.found, m.is_disputed] for n, m in found.items()}))
"""


def make_body(random: Random) -> Body:
    """A request with a system prompt, three tools, and a history with a call."""

    def say(count: int) -> str:
        return " ".join(random.choices(WORDS, k=count))

    tools = [
        {
            "name": f"tool_{n}",
            "description": say(6),
            "input_schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
            },
        }
        for n in range(3)
    ]
    use = {"type": "tool_use", "id": "t1", "name": "tool_0"}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": say(5)}
    return {
        "model": "claude-a",
        "max_tokens": 100,
        "system": [{"type": "text", "text": say(12)}, {"type": "text", "text": say(5)}],
        "tools": tools,
        "messages": [
            {"role": "user", "content": say(9)},
            {"role": "assistant", "content": [use | {"input": {"a": "x", "b": 2}}]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": say(8)},
            {"role": "user", "content": say(7)},
        ],
    }


def swap_model(body: Body, random: Random) -> None:
    body["model"] = "claude-b"


def set_speed(body: Body, random: Random) -> None:
    body["speed"] = "fast"


def edit_system(body: Body, random: Random) -> None:
    body["system"][random.randrange(2)]["text"] += f" {random.choice(WORDS)}"


def swap_system(body: Body, random: Random) -> None:
    body["system"].reverse()


def drop_system(body: Body, random: Random) -> None:
    del body["system"]


def add_tool(body: Body, random: Random) -> None:
    tool = {"name": "tool_9", "description": "new", "input_schema": {"type": "object"}}
    body["tools"].insert(random.randrange(4), tool)


def drop_tool(body: Body, random: Random) -> None:
    body["tools"].pop(random.randrange(3))


def shuffle_tools(body: Body, random: Random) -> None:
    body["tools"] = body["tools"][1:] + body["tools"][:1]


def edit_tool(body: Body, random: Random) -> None:
    random.choice(body["tools"])["description"] += "!"


def shuffle_schema(body: Body, random: Random) -> None:
    schema = random.choice(body["tools"])["input_schema"]
    schema["properties"] = dict(reversed(schema["properties"].items()))


def edit_message(body: Body, random: Random) -> None:
    text = f"Edited {random.choice(WORDS)}."
    random.choice(body["messages"][:-2:3])["content"] = text


def drop_messages(body: Body, random: Random) -> None:
    del body["messages"][: random.choice((3, 4))]


def insert_message(body: Body, random: Random) -> None:
    body["messages"].insert(3, {"role": "user", "content": random.choice(WORDS)})


def edit_call(body: Body, random: Random) -> None:
    body["messages"][1]["content"][0]["input"] = {"b": 2, "a": "x"}


def withdraw_tool(body: Body, random: Random) -> None:
    body["messages"].insert(3, remove("tool_1"))


def set_thinking(body: Body, random: Random) -> None:
    body["thinking"] = {"type": "enabled", "budget_tokens": 1024}


def set_choice(body: Body, random: Random) -> None:
    body["tool_choice"] = {"type": random.choice(("any", "none"))}


# Changes that leave all that was cached as it was.


def mark_cache(body: Body, random: Random) -> None:
    mark = {"type": "ephemeral", "ttl": random.choice(("5m", "1h"))}
    random.choice([*body["system"], *body["tools"]])["cache_control"] = mark


def list_text(body: Body, random: Random) -> None:
    message = random.choice((body["messages"][0], body["messages"][3]))
    if isinstance(text := message["content"], str):
        message["content"] = [{"text": text, "type": "text"}]


def set_limit(body: Body, random: Random) -> None:
    body |= {"max_tokens": 50, "metadata": {"user_id": random.choice(WORDS)}}


def add_tool_later(body: Body, random: Random) -> None:
    body["messages"].append(remove("tool_2"))
    tool = {"type": "tool_reference", "name": "tool_2"}
    added = {"type": "tool_addition", "tool": tool}
    body["messages"].append({"role": "system", "content": [added]})
    body["messages"].append({"role": "user", "content": random.choice(WORDS)})


def remove(name: str) -> Body:
    removed = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}
    return {"role": "system", "content": [removed]}


CHANGES: tuple[Callable[[Body, Random], None], ...] = (
    *(swap_model, set_speed, edit_system, swap_system, drop_system, add_tool),
    *(drop_tool, shuffle_tools, edit_tool, shuffle_schema, edit_message),
    *(drop_messages, insert_message, edit_call, withdraw_tool, set_thinking),
    *(set_choice, mark_cache, list_text, set_limit, add_tool_later),
)


def plant(number: int, random: Random) -> tuple[Body, Body, str]:
    """Return a body, a later one with one to three changes, and their names."""
    before = make_body(random)
    after = copy.deepcopy(before)
    after["messages"] += [
        {"role": "assistant", "content": "An answer."},
        {"role": "user", "content": f"And then, for the {number}th time?"},
    ]
    first = CHANGES[number % len(CHANGES)]
    others = [each for each in CHANGES if each is not first]
    chosen = [first, *random.sample(others, random.choice((0, 0, 1, 2)))]
    # What names a part by its place comes before what moves it.
    chosen.sort(key=CHANGES.index, reverse=True)
    for change in chosen:
        try:
            change(after, random)
        except (KeyError, IndexError):
            # Another change has taken its place away.
            continue
    return before, after, "+".join(each.__name__ for each in chosen)


def play(
    changes: int, seed: int, ask: Callable[[Body], Body]
) -> dict[str, tuple[str, str | None]]:
    """Ask all; return the changes and the provider's reason, by the reply's id."""
    random, asked = Random(seed), {}
    for number in range(changes):
        before, after, names = plant(number, random)
        named = ask(before)["id"]
        after["diagnostics"] = {"previous_message_id": named}
        answer = ask(after)
        reason = (answer["diagnostics"] or {}).get("cache_miss_reason") or {}
        asked[answer["id"]] = names, reason.get("type")
    return asked


def compare(
    asked: dict[str, tuple[str, str | None]], found: dict[str, Any]
) -> list[tuple[str, str | None, Any]]:
    """Return the changes whose first cause is not the provider's reason."""
    reasons = {"settings": "unavailable", "": None, None: None}
    differing = []
    for name, (changes, said) in asked.items():
        miss = found[name] or [None, None, False]
        own = reasons.get(miss[1], f"{miss[1]}_changed")
        if own != said:
            differing.append((changes, said, miss))
    return differing


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, usual in (("changes", 1000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    with CompactingProvider() as provider:
        url = provider.url.removesuffix("/v1")
        env = {"ANTHROPIC_BASE_URL": url, "EXTRAS": "endpoint"}
        with (
            make_place(provider.url, **env) as place,
            httpx.Client(timeout=60, headers={"x-api-key": place.keys[0]}) as client,
        ):

            def ask(body: Body) -> Body:
                answer = client.post(f"{place.site.url}/v1/messages", json=body)
                answer.raise_for_status()
                return answer.json()

            asked = play(options.changes, options.seed, ask)
            found = json.loads(place.site.manage("shell", "-c", READ).splitlines()[-1])
    differing = compare(asked, found)
    same = 1 - len(differing) / len(asked)
    print(f"changes: {len(asked)}, seed {options.seed}")
    print("reasons:", dict(Counter(reason for _, reason in asked.values())))
    print(f"the first cause is the provider's reason: {same:.1%}")
    for names, said, miss in differing:
        print(f"  {names}: the provider says {said}, the site {miss}")


if __name__ == "__main__":
    main()
