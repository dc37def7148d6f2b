"""evidence.schema.json: the files of all kinds of conversations are valid in it."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from chatsite.contrib.evidence import views
from chatsite.contrib.evidence.link_evidence import collect_shared_file
from chatsite.contrib.evidence.signing_keys import sign_file
from chatsite.features.sharing.services import create_share
from chatsite.turns.requests import reply_call
from memory import actions, transcript

from ...scenes import Use, talk_in_turns, use_tools

pytestmark = pytest.mark.django_db
FOLDER = Path(views.__file__).parent
SCHEMA = json.loads((FOLDER / "evidence.schema.json").read_text())
VALIDATOR = Draft202012Validator(
    SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER
)


def list_names():
    """The names of the fields that the extension adds to a file."""
    parts = SCHEMA["$defs"]
    own = [parts[name]["properties"]["windowpane"] for name in ("dialog", "analysis")]
    for part in (*own, parts["extension"], parts["request"], parts["signature"]):
        yield from part["properties"]


class TestFiles:
    def test_next_request_and_every_reply_are_valid(self, source, download):
        replies = source.model_calls.filter(purpose="reply", message__isnull=False)
        numbers = {*replies.values_list("message__seq", flat=True)}
        for query in ("", *(f"?reply={n}" for n in numbers)):
            VALIDATOR.validate(download(source, query).file)
        assert len(numbers) > 3

    def test_tools_and_erased_messages_are_valid(self, alice, download):
        made = transcript.create_conversation(alice)
        use_tools(made, "What is my budget?", Use())
        actions.delete_message(made, 1)
        evidence = download(made)
        VALIDATOR.validate(evidence.file)
        assert "erased" in evidence.own["account"]
        assert any(
            "tool_calls" in each["windowpane"] for each in evidence.file["dialog"]
        )

    def test_file_of_a_link_is_valid(self, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "One", "Two")
        actions.exclude_messages(made, [1])
        talk_in_turns(made, "Three")
        share = create_share(made, with_view=True, choices={"evidence": "short"})
        call = reply_call(share.conversation, share.last_seq)
        data = sign_file(collect_shared_file(share, call), "https://chat.example.org")
        VALIDATOR.validate(json.loads(data))
        assert b"is_withheld" in data


class TestSchema:
    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (("subject",), None),
            (("extra",), 1),
            (("dialog", 0, "windowpane", "place"), "somewhere"),
            (("dialog", 0, "windowpane", "place"), "summary"),
            (("dialog", 0, "start"), "yesterday"),
            (("windowpane", "messages"), 1.5),
            (("windowpane", "account"), {"lost": 1}),
            (("windowpane_signature", "sha256"), "A" * 64),
        ],
    )
    def test_wrong_values_are_refused(self, alice, download, place, value):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "One")
        file = part = download(made).file
        VALIDATOR.validate(file)
        *path, name = place
        for step in path:
            part = part[step]
        part[name] = value
        with pytest.raises(ValidationError):
            VALIDATOR.validate(file)

    def test_every_field_of_the_extension_is_documented(self):
        documented = {*re.findall(r"`(\w+)`", (FOLDER / "README.md").read_text())}
        assert {*list_names()} - documented == set()
