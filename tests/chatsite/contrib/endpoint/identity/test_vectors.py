"""The rule as others build it: vectors.json, and the page of the protocol."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import pytest

from chatsite.contrib.endpoint.identity import decision, hints
from chatsite.contrib.endpoint.identity.canonical import UnreadableHistoryError
from chatsite.contrib.endpoint.identity.history import (
    GENESIS,
    READERS,
    VERSION,
    read_history,
)
from tests.servers import ROOT

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
BODIES = [
    pytest.param(each, body, id=f"{each['name']}, {body['wire']} {place}")
    for each in VECTORS["histories"]
    for place, body in enumerate(each["bodies"])
]
SECTION = (ROOT / "chatsite/contrib/endpoint/identity/README.md").read_text()


def read(body):
    return read_history(body["wire"], body["body"])


class TestVectors:
    @pytest.mark.parametrize(("vector", "body"), BODIES)
    def test_a_body_has_these_messages(self, vector, body):
        history = read(body)
        assert history.instructions == vector["instructions"]
        assert [
            {
                "role": each.role,
                "parts": each.parts,
                "digest": each.digest.hex(),
                "chain": each.chain.hex(),
            }
            for each in history.messages
        ] == vector["messages"]

    @pytest.mark.parametrize("vector", VECTORS["histories"], ids=lambda v: v["name"])
    def test_the_hashes_follow_from_the_parts(self, vector):
        chain = hashlib.sha256(b"windowpane identity 1").digest()
        assert chain.hex() == VECTORS["genesis"]
        for each in vector["messages"]:
            said = {"parts": each["parts"], "role": each["role"]}
            written = json.dumps(
                said, ensure_ascii=False, sort_keys=True, separators=(",", ":")
            )
            digest = hashlib.sha256(written.encode()).digest()
            chain = hashlib.sha256(chain + digest).digest()
            assert (digest.hex(), chain.hex()) == (each["digest"], each["chain"])

    def test_vectors_have_this_version(self):
        assert (VECTORS["version"], VECTORS["genesis"]) == (VERSION, GENESIS.hex())
        wires = {each["wire"] for v in VECTORS["histories"] for each in v["bodies"]}
        assert wires == {*READERS}

    def test_other_texts_and_other_roles_are_other_messages(self):
        bodies = [
            {"messages": [{"role": role, "content": text}]}
            for role in ("user", "assistant")
            for text in ("Hello", "hello", " Hello", "")
        ]
        chains = {read_history("chat", body).messages[-1].chain for body in bodies}
        assert len(chains) == len(bodies)

    def test_a_result_of_another_call_is_another_one(self):
        def answered(call):
            function = {"name": "f", "arguments": "{}"}
            calls = [{"id": each, "function": function} for each in "ab"]
            asked = {"role": "assistant", "tool_calls": calls}
            result = {"role": "tool", "tool_call_id": call, "content": "x"}
            return read_history("chat", {"messages": [asked, result]}).messages[-1]

        assert answered("a").chain != answered("b").chain


class TestPage:
    def test_page_has_the_examples(self):
        text, talk = VECTORS["histories"][0], VECTORS["histories"][2]
        shown = [VECTORS["genesis"], *(m["chain"] for m in talk["messages"])]
        shown += [text["messages"][0]["digest"]]
        assert [each for each in shown if each not in SECTION] == []

    def test_page_explains_every_code(self):
        assert [code for code in decision.WHY if f"| `{code}` |" not in SECTION] == []

    def test_page_names_every_header(self):
        names = [*hints.CONVERSATION, hints.AGENT, hints.PARENT_AGENT, hints.COMPACTED]
        names += [hints.RETRIES, "idempotency-key", "prompt_cache_key"]
        assert [name for name in names if f"`{name}`" not in SECTION] == []


class TestBadBodies:
    @pytest.mark.parametrize(
        ("wire", "body", "said"),
        [
            ("chat", {}, "`messages` has to be a list."),
            ("messages", {"messages": "Hello"}, "`messages` has to be a list."),
            ("responses", {"input": 1}, "`input` has to be a list."),
            ("chat", {"messages": ["Hello"]}, "Each of `messages` has to be an object"),
            ("chat", {"messages": [{"content": "x"}]}, "A message has no `role`."),
            (
                "messages",
                {"messages": [{"role": "user", "content": [1]}]},
                "Each block of `content` has to be an object.",
            ),
        ],
    )
    def test_error_explains_a_malformed_body(self, wire, body, said):
        with pytest.raises(UnreadableHistoryError, match=said):
            read_history(wire, body)

    @pytest.mark.parametrize("wire", READERS)
    def test_whatever_json_holds_is_read_or_refused(self, wire):
        odd = (None, 1, 1.5, True, "", [], {}, [None], [{}], [[]], {"type": "text"})
        odd += ({"type": "image_url", "image_url": 3}, "\ud800", {"type": []})
        for value in odd:
            message = {"role": "assistant", "content": value, "tool_calls": value}
            inside = {"role": "user", "content": [value]}
            item = {"type": "function_call", "call_id": value, "arguments": value}
            for each in (value, message, inside, item, {**item, "type": value}):
                body = {"messages": [each], "input": [each], "system": value}
                with suppress(UnreadableHistoryError):
                    read_history(wire, body)
