"""A history that is sent again with each request: read as if all of it were new, at the
price of what is new."""

import gc
import json
import sys
from collections import Counter
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.endpoint.bounded import PATHS
from bench.endpoint.sent_again import make_talk
from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis import find_api_by_name
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.identity import readers
from chatsite.contrib.endpoint.models import BodyPiece
from chatsite.contrib.endpoint.store import body_cache
from chatsite.contrib.endpoint.store.parsed_request import read_client_request
from memory.models import Message

from .asgi_client import Call

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
OTHER = {**CALL, "id": "c2"}
TEXT = [{"type": "text", "text": "Two"}, {"type": "text", "text": " parts "}]
USE = [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]
USE += [{**USE[0], "id": "c2"}]
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "1"}
# What a history is made of, in every order: also in one that no client writes.
ITEMS = {
    "chat": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello é 渡轮 🙂"},
        {"role": "user", "content": TEXT},
        {"role": "assistant", "content": "Good day."},
        {"role": "assistant", "content": None, "tool_calls": [CALL, OTHER]},
        {"role": "tool", "tool_call_id": "c1", "content": "One"},
        {"role": "tool", "tool_call_id": "c2", "content": "Two"},
    ],
    "messages": [
        {"role": "user", "content": "Hello é 渡轮 🙂"},
        {"role": "assistant", "content": USE},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}]},
        {"role": "user", "content": [{**RESULT, "tool_use_id": "c2"}, RESULT, *TEXT]},
    ],
    "responses": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hello é 渡轮 🙂"},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": TEXT},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": "Two"},
        {"type": "function_call_output", "call_id": "c1", "output": "One"},
    ],
}
WRITINGS = ({}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False})
BESIDE = ({}, {"n": 1}, {"system": "As ever."}, {"instructions": "y" * 600})
SAID = {"role": "user", "content": "Hello"}


def clear_cache():
    body_cache.body_cache._by_user.clear()
    body_cache.body_cache.memory = 0


@pytest.fixture(autouse=True)
def _forgotten():
    clear_cache()
    yield
    clear_cache()


def read(wire, raw, owner_id=None):
    asked = read_client_request(find_api_by_name(wire), {}, raw, owner_id=owner_id)
    return asked.body, asked.history._replace(pauses=())


def try_to_read(*given):
    try:
        return read(*given)
    except ApiError as error:
        return str(error)


def write(said, *, before=(), after=(), name="messages", **writing):
    pairs = [("model", "ok"), *before, (name, said), *after]
    written = (f"{json.dumps(n)}:{json.dumps(v, **writing)}" for n, v in pairs)
    return f"{{{', '.join(written)}}}".encode()


def list_known(owner_id=1):
    people = body_cache.body_cache._by_user.items()
    return [kept for whose, own in people if whose[0] == owner_id for kept in own]


@contextmanager
def short():
    """Short histories are cached, too, with many places to go on from."""
    with (
        patch.object(body_cache, "MIN_MESSAGES", 2),
        patch.object(readers, "PAUSE_AFTER", 2),
    ):
        yield


@settings(max_examples=150, deadline=None)
@given(wire=st.sampled_from([*ITEMS]), data=st.data())
def test_cached_prefix_gives_the_result_of_a_full_parse(wire, data):
    name = find_api_by_name(wire).list_name
    said = data.draw(st.lists(st.sampled_from(ITEMS[wire]), min_size=3, max_size=12))
    clear_cache()
    with short():
        for _ in range(4):
            writing = data.draw(st.sampled_from(WRITINGS[:2]))
            before, after = (data.draw(st.sampled_from(BESIDE)) for _ in range(2))
            raw = write(
                said, name=name, before=before.items(), after=after.items(), **writing
            )
            assert try_to_read(wire, raw, 1) == try_to_read(wire, raw)
            cut = data.draw(st.integers(0, 3))
            said = said[: len(said) - cut]
            said = said + data.draw(st.lists(st.sampled_from(ITEMS[wire]), max_size=4))


@pytest.mark.parametrize("writing", WRITINGS)
def test_parser_continues_after_the_longest_cached_prefix(writing):
    said = [{"role": "user", "content": f"Number {n} é"} for n in range(300)]
    read("chat", write(said, **writing), 1)
    said += [{"role": "user", "content": "One more"}]
    raw = write(said, **writing)
    same = body_cache.body_cache._find((1, "chat", "refused"), raw)
    assert same.mark.pause.items >= 300 - readers.PAUSE_AFTER
    assert read("chat", raw, 1) == read("chat", raw)


def test_field_after_the_list_is_not_cached():
    said = [SAID] * 8
    with short():
        read("chat", write(said, before=[("n", 1)], after=[("m", 2)]), 1)
        raw = write([*said, SAID], before=[("n", 1)])
        assert list_known()
        value = read("chat", raw, 1)[0].value
        assert (value["n"], "m" in value) == (1, False)


def test_field_on_both_sides_of_the_list_is_refused():
    said = [SAID] * 8
    with short():
        read("chat", write(said, before=[("n", 1)]), 1)
        assert list_known()
        raw = write([*said, SAID], before=[("n", 1)], after=[("n", 2)])
        assert "'n' twice" in try_to_read("chat", raw, 1)


@pytest.mark.parametrize(
    "end", [b"", b"]", b"]} x", b",]}", b'], "messages": []}', b', "x"]}', b"\xff]}"]
)
def test_invalid_body_has_the_same_error_with_a_cached_prefix(end):
    said = write([SAID] * 8)
    with short():
        read("chat", said, 1)
        raw = said.removesuffix(b"]}") + end
        assert try_to_read("chat", raw, 1) == try_to_read("chat", raw)
        assert isinstance(try_to_read("chat", raw), str)


def test_refused_body_is_not_cached():
    """The history contains the id of a file that another user could own."""
    named = {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}
    with short():
        for said in ([SAID] * 4, [*[SAID] * 4, named], [*[SAID] * 4, named, SAID]):
            answer = try_to_read("chat", write(said), 1)
            assert isinstance(answer, str) is (named in said)
    assert list_known()


def test_cache_is_separate_for_each_user():
    raw = write([SAID] * 100)
    read("chat", raw, 1)
    assert body_cache.body_cache._find((1, "chat", "refused"), raw)
    assert body_cache.body_cache._find((2, "chat", "refused"), raw) is None


def test_longer_body_replaces_the_shorter_one_in_the_cache():
    said = [{"role": "user", "content": f"Number {n}"} for n in range(100)]
    for n in range(200):
        said.append({"role": "user", "content": f"More {n}"})
        # As clients do that mark where the provider's cache should end.
        marked = [*said[:-1], {**said[-1], "cache_control": {"type": "ephemeral"}}]
        read("chat", write(marked), 1)
    assert len(list_known()) == 1


def test_cache_memory_of_one_user_is_limited(monkeypatch):
    monkeypatch.setattr(body_cache, "USER_MEMORY", 600_000)
    monkeypatch.setattr(body_cache, "MAX_MEMORY", 1_500_000)
    read("chat", write([{"role": "user", "content": "Of one"}] * 100), 1)
    for n in range(20):
        read("chat", write([{"role": "user", "content": f"Of two {n}"}] * 200), 2)
        assert sum(each.memory for each in list_known(2)) <= 600_000
    assert len(list_known(1)) == 1
    for person in range(3, 20):
        read("chat", write([{"role": "user", "content": "Of many"}] * 200), person)
        assert body_cache.body_cache.memory <= 1_500_000
    assert not list_known(1)
    assert list_known(19)
    kept = [each for person in range(20) for each in list_known(person)]
    assert body_cache.body_cache.memory == sum(each.memory for each in kept)


@pytest.mark.parametrize("value", ["x" * 500_000, [[]] * 50_000, ["🙂é"] * 20_000])
def test_a_large_message_is_known_up_to_the_one_before(monkeypatch, value):
    monkeypatch.setattr(body_cache, "USER_MEMORY", 1_000_000)
    large = {"role": "user", "content": "x", "more": value}
    read("chat", write([*[SAID] * 70, large, *[SAID] * 70]), 1)
    (kept,) = list_known()
    assert 64 <= len(kept.value["messages"]) <= 70
    assert len(kept.pieces) == len(kept.value["messages"])


# --- what a request costs


class Counted:
    """The statements of a request, and calls of functions."""

    def __init__(self, key, talk):
        talk.ask(len(talk.said))
        raw = talk.write()
        call = Call(PATHS[talk.wire], raw, key=key)
        self.calls = Counter()
        # What else ends meanwhile is not of this request.
        gc.disable()
        with CaptureQueriesContext(connection) as asked:
            sys.setprofile(self._count)
            try:
                async_to_sync(call.run)()
            finally:
                sys.setprofile(None)
                gc.enable()
        assert call.status == 200, call.answer
        talk.take(call.answer)
        self.lineage = call.headers["x-windowpane-lineage"]
        self.statements = [each["sql"].split(" ", 1)[0] for each in asked]

    def _count(self, frame, event, arg):
        if event in ("call", "c_call"):
            self.calls[frame.f_code.co_qualname] += 1


def list_texts(said):
    """Return the texts of users, models and tools, without those that a
    client repeats.
    """
    for each in said:
        content = each.get("content") or each.get("output") or ()
        if isinstance(content, str):
            yield content
        for part in content if isinstance(content, list) else ():
            if part.get("type") in ("text", "output_text") and "<" not in part["text"]:
                yield part["text"]


def make_long(key, talk):
    """Send it; how a request goes after that."""
    Counted(key, talk)
    Counted(key, talk)
    counted = Counted(key, talk)
    assert counted.lineage == "continued"
    return counted


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.django_db(transaction=True)
def test_a_request_costs_what_is_new_in_it(wire, alice, upstream, settings):
    settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
    settings.ANTHROPIC_API_KEY = "sk-test-SECRET"
    key = keys.create_api_key(alice, "script")[1]
    few, many = 100, 500
    short = make_long(key, make_talk(wire, few, has_calls=True))
    talk = make_talk(wire, many, has_calls=True)
    long = make_long(key, talk)
    assert long.statements == short.statements
    more = long.calls.total() - short.calls.total()
    # In C, over lists, there are still some: no function is called for an old message.
    assert more < (many - few) / 4, (long.calls - short.calls).most_common(10)
    # Each text of what was sent three times is in the database once.
    kept = Counter(Message.objects.values_list("text", flat=True))
    pieces = "\n".join(BodyPiece.objects.values_list("text", flat=True))
    texts = [*list_texts(talk.said[:many])]
    assert len(texts) > many * 0.8
    for text in texts:
        assert kept[text] == 1
        assert text not in pieces
