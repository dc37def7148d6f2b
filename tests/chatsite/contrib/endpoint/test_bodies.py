"""Bodies taken apart and put together again."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatsite.contrib.endpoint.store import bodies

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
WRITINGS = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)


def put_together(body):
    texts = [piece.text for piece in body.pieces]
    return bodies.join_body(bodies.pack_runs(body.between), texts)


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=9), VALUES), st.lists(VALUES), WRITINGS)
def test_a_body_is_put_together_as_it_was(value, messages, writing):
    whole = {"model": "x" * 600, **value, "messages": messages, "n": 1}
    raw = json.dumps(whole, **writing).encode("utf-8", "replace")
    body = bodies.read_body(raw)
    assert body.value == json.loads(raw)
    assert put_together(body) == raw
    assert [p.at for p in body.pieces if p.at is not None] == [*range(len(messages))]


def test_repeated_texts_are_packed():
    raw = json.dumps({"messages": [{"role": "user", "content": "x"}] * 2000})
    body = bodies.read_body(raw.encode())
    assert len(bodies.pack_runs(body.between)) == 3


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"[]", b"{", b'{"a":1', b'{"a":1,}', b'{"a" 1}', b'{"a":1}x', b"null"),
        *(b'{"messages":[1,]}', b'{"messages":[1 2]}', b'{"messages":[1', b"\xff{}"),
        *(b'{"messages":[],"messages":[]}', b"{1:2}", b'{"a":\x00}', b"<html>"),
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"1" * 5_000 + b"}",
    ],
)
def test_invalid_body_is_refused_in_words(raw):
    with pytest.raises(bodies.BodyError, match="The body"):
        bodies.read_body(raw)


MESSAGE = '{"role":"user","content":"x"}'


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (f'{{"n":1,"messages":[{MESSAGE}],"n":2}}', "n"),
        ('{"messages":[{"role":"user","role":"tool"}]}', "role"),
        (
            '{"messages":[{"file":{"file_id":"","file_id":"f"}}]}',
            "file_id",
        ),
        ('{"tools":[{"container":"auto","cont\\u0061iner":"c"}]}', "container"),
        ('{"messages":[],"container":{"id":null,"id":"c"}}', "id"),
    ],
)
def test_body_with_a_name_twice_is_refused(raw, name):
    with pytest.raises(bodies.BodyError, match=f"The body has '{name}' twice"):
        bodies.read_body(raw.encode())


@pytest.mark.parametrize("name", ["Model", "MESSAGES", "mes\u017fages", "Container"])
def test_body_with_a_checked_name_in_other_case_is_refused(name):
    raw = json.dumps({"model": "m", "messages": [], name: "x"}).encode()
    with pytest.raises(bodies.BodyError, match="some programs take for"):
        bodies.read_body(raw)


def test_body_may_repeat_names_of_other_objects():
    tools = [{"name": "f", "input_schema": {"Model": {"model": 1}, "Id": {"id": 2}}}]
    raw = json.dumps({"messages": [{"a": 1}, {"a": 2}], "tools": tools, "Extra": 1})
    assert bodies.read_body(raw.encode()).value == json.loads(raw)


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_text_is_taken_out_and_put_back(is_ascii):
    text = 'A "quoted" line\n with é, 水 and \U0001f600, long enough to count.'
    piece = json.dumps({"role": "user", "content": text}, ensure_ascii=is_ascii)
    hollow = bodies.hollow_out(piece, text)
    assert len(hollow.text) < 40
    assert bodies.fill_in(hollow, text) == piece


def test_a_text_that_is_written_in_another_way_stays():
    text = "A long text / with slashes, which some clients escape. " * 2
    piece = json.dumps({"content": text}).replace("/", "\\/")
    assert bodies.hollow_out(piece, text) == bodies.Hollow(piece)
