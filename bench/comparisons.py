"""Comparisons of requests: 1,000 pairs with planted causes, of which the first
difference and all causes have to be found, and the pages of a conversation of 20,000
messages, in milliseconds of processor time and with their statements.
"""

import random

from . import databases, long_conversation

PAIRS, TURNS, MESSAGES, TIMED = 1_000, 12, 20_000, 50


def report() -> None:
    from django.contrib.auth import get_user_model
    from django.test import Client

    owner = get_user_model().objects.create_user("compared")
    exact, named, count = 0, 0, 0
    while count < PAIRS:
        for is_exact, is_named in compare_pairs(owner, random.Random(count)):
            exact, named, count = exact + is_exact, named + is_named, count + 1
    print(f"{count} pairs: first difference exact in {exact}, all causes in {named}")
    client = Client()
    client.force_login(owner)
    path = make_long(owner)
    for name in ("compare/", "compare.json", "costs/", "costs.json"):
        spent, passed, queries = long_conversation.measure(
            lambda name=name: long_conversation.get(client, path + name)
        )
        print(f"{name:14} {spent:6.1f} ms ({passed:5.1f})  {queries} statements")


def compare_pairs(owner: object, chance: random.Random) -> list[tuple[bool, bool]]:
    from memory import transcript
    from tests.chatsite.contrib.lab.compare import pairs

    talk = pairs.Talk(transcript.create_conversation(owner), chance).begin()
    found = []
    for _ in range(TURNS):
        expected = talk.say(talk.choose())
        figures = pairs.compare(talk.conversation, talk.call.message.seq)
        wires = [each.built.wire for each in figures.compared.requests]
        place = figures.place and (figures.place.message, figures.place.character)
        is_exact = place == pairs.find_where_they_differ(*wires)
        codes = {each.code for each in figures.causes}
        if codes != expected:
            print(f"   expected {sorted(expected)}, found {sorted(codes)}")
        found.append((is_exact, codes == expected))
    return found


def make_long(owner: object) -> str:
    """The address of a conversation whose last 50 replies have requests."""
    from tests.memory import scenes

    conversation = long_conversation.make(owner, MESSAGES)
    for number in range(TIMED):
        text = f"Where is the ferry to pier {number}?"
        scenes.say(conversation, text, tokens_input=3_000, tokens_cached=1_000)
    return f"/c/{conversation.uuid}/"


if __name__ == "__main__":
    databases.run("bench.comparisons", report)
