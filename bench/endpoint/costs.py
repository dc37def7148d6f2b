"""python -m bench.endpoint.costs

The costs of the endpoint: the processor time of a request that resends a long history;
the time to the first token, compared with a direct connection; and the processor time
of a forwarded chunk, compared with a word of the site's own chat.
"""

import asyncio
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp

from bench.streaming.contestants import cpu_of_tree
from tests.clients import Person

from .place import Place, make_place
from .provider import Provider

SIZES = (10, 500, 1_000, 2_000)
AGAIN, STREAMS, ROUNDS = 8, 20, 3
# Words in a reply.
SHORT, LONG, PACE = 100, 300, 0.05
LINE = "This sentence stands for what people and models say to each other. "


def cpu_of(place: Place) -> float:
    return cpu_of_tree(place.site.process.pid)


async def ask(session: Any, url: str, key: str, messages: Any, **more: Any) -> Any:
    body = {"model": "m", "messages": messages, **more}
    headers = {"authorization": f"Bearer {key}"}
    address = f"{url}/chat/completions"
    async with session.post(address, json=body, headers=headers) as answer:
        return json.loads(await answer.read())["choices"][0]["message"]


async def send_again(place: Place, session: Any, size: int) -> float:
    """Return the mean processor time in ms of a request that resends this history."""
    url, key = f"{place.site.url}/v1", place.keys[0]
    said = [
        {"role": ("user", "assistant")[n % 2], "content": f"{size} {n} {LINE * 4}"}
        for n in range(size - 1)
    ]
    said.append(await ask(session, url, key, said))
    costs = []
    for n in range(AGAIN):
        said.append({"role": "user", "content": f"{n} {LINE}"})
        before = cpu_of(place)
        said.append(await ask(session, url, key, said))
        # Work after the answer counts, too.
        await asyncio.sleep(0.3)
        costs.append(cpu_of(place) - before)
    return statistics.mean(costs) * 1_000


async def stream_once(session: Any, url: str, key: str, name: str) -> float:
    """Return the seconds until the first token."""
    messages = [{"role": "user", "content": f"Tell me of {name}."}]
    body = {"model": "m", "messages": messages, "stream": True}
    headers, first = {"authorization": f"Bearer {key}"}, 0.0
    started = time.monotonic()
    address = f"{url}/chat/completions"
    async with session.post(address, json=body, headers=headers) as answer:
        async for line in answer.content:
            if not first and b'"content": "' in line and b'"content": ""' not in line:
                first = time.monotonic() - started
    return first


async def stream_many(
    session: Any, url: str, keys: list[str], name: str, apart: float = 0.0
) -> list[float]:
    """Run STREAMS streams that begin `apart` seconds after each other."""
    tasks = []
    for n in range(STREAMS):
        once = stream_once(session, url, keys[n % len(keys)], f"{name} {n}")
        tasks.append(asyncio.create_task(once))
        await asyncio.sleep(apart)
    return await asyncio.gather(*tasks)


def describe(times: list[float]) -> str:
    ordered = sorted(each * 1_000 for each in times)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    return f"p50 {middle:.0f} ms, p95 {late:.0f} ms"


def chat_many(people: list[Person], paths: list[str], name: str) -> None:
    def talk(n: int) -> None:
        with people[n].chat(paths[n]) as chat:
            chat.say(f"Tell me of {name} {n}.")

    with ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(talk, range(STREAMS)))


async def measure() -> None:
    async with Provider().running() as provider:
        with make_place(provider.url, people=4, SIGNUP_ENABLED="true") as place:
            async with aiohttp.ClientSession() as session:
                for size in SIZES:
                    cost = await send_again(place, session, size)
                    print(f"history of {size}: {cost:.0f} ms of processor time")
                provider.pace = PACE
                await compare_first_tokens(provider, place, session)
                await compare_words(provider, place, session)


async def compare_first_tokens(provider: Provider, place: Place, session: Any) -> None:
    """Compare the first tokens of streams that begin in turn until all run at once."""
    provider.words, apart = SHORT, SHORT * PACE / STREAMS
    for what, url, keys in (
        ("direct", provider.url, ["x"]),
        ("here", f"{place.site.url}/v1", place.keys),
    ):
        times: list[float] = []
        for number in range(ROUNDS):
            name = f"{what} {number}"
            times += await stream_many(session, url, keys, name, apart)
        print(f"first token, {what}: {describe(times)}")


async def compare_words(provider: Provider, place: Place, session: Any) -> None:
    """Compare the cost of one more word, without the fixed cost of a turn."""
    people = [Person(place.site, f"chatter{n}") for n in range(STREAMS)]
    paths = [user.create() for user in people]
    costs: dict[tuple[str, int], float] = {}
    for words in (SHORT, LONG):
        provider.words = words
        before = cpu_of(place)
        url = f"{place.site.url}/v1"
        await stream_many(session, url, place.keys, f"{words} words")
        costs["passed-on chunk", words] = cpu_of(place) - before
        before = cpu_of(place)
        await asyncio.to_thread(chat_many, people, paths, f"{words} words")
        costs["word of the chat", words] = cpu_of(place) - before
    for what in ("passed-on chunk", "word of the chat"):
        more = costs[what, LONG] - costs[what, SHORT]
        micros = more / (STREAMS * (LONG - SHORT)) * 1e6
        print(f"{what}: {micros:.0f} µs of processor time")


if __name__ == "__main__":
    asyncio.run(measure())
