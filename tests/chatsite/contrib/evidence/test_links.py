"""The evidence of a link: what strangers get of a reply, and what they never get."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from chatsite.contrib.evidence import verify
from chatsite.features.sharing import pace, presenter
from chatsite.features.sharing.services import create_share, revoke_share
from memory import actions, transcript
from tests.memory.scenes import compact, summarise

from ...scenes import HTMX, signed_in, talk_in_turns

pytestmark = pytest.mark.django_db
TRIMMING = {"strategy": "window", "trigger": ["messages", 6], "keep": ["messages", 2]}


@pytest.fixture(autouse=True)
def nothing_was_asked_before():
    presenter.cache.clear()
    pace.pace.clear()


@pytest.fixture
def talked(alice):
    made = transcript.create_conversation(alice, title="")
    talk_in_turns(made, "My name is Ines.", "I live in Porto.", "Where do I live?")
    made.refresh_from_db()
    return made


def share(conversation, choice="whole", **chosen):
    choices = {"evidence": choice} if choice else {}
    return create_share(conversation, with_view=True, choices=choices, **chosen)


def address(link, reply=None):
    query = f"?reply={reply}" if reply else ""
    return reverse("shared-evidence", args=[link.token]) + query


def read(link, reply=None):
    """The file of a link, checked with the keys that its page has."""
    client = Client()
    answer = client.get(address(link, reply))
    assert answer.status_code == 200
    assert "noindex" in answer["X-Robots-Tag"]
    keys = client.get("/.well-known/windowpane-keys.json").content
    is_right, text = verify.verify(answer.content, keys)
    assert is_right, text
    return json.loads(answer.content), text


class TestFile:
    def test_stranger_verifies_a_reply(self, talked):
        file, text = read(share(talked))
        assert "the request rebuilds to its hash" in text
        assert "5 of 5 messages accounted for: 5 sent" in text
        assert file["dialog"][2]["body"] == "I live in Porto."

    def test_file_names_no_owner_and_no_other_conversation(self, talked):
        data = json.dumps(read(share(talked))[0])
        assert talked.owner.get_username() not in data
        assert str(talked.uuid) not in data

    def test_file_ends_with_the_reply(self, talked):
        link = share(talked, last_seq=4)
        talk_in_turns(talked, "My code is Quetzal.")
        actions.pin_message(talked, 1)
        for reply in (None, 2, 4):
            file, _ = read(link, reply)
            data = json.dumps(file)
            assert "Quetzal" not in data
            assert "Where do I" not in data
            assert "pinned_at" not in data
            assert file["windowpane"]["changes"] == []
            assert len(file["windowpane"]["calls"]) == 1
        assert Client().get(address(link, 6)).status_code == 404

    def test_hidden_messages_are_without_text(self, talked):
        actions.exclude_messages(talked, [1])
        talk_in_turns(talked, "And now?")
        file, text = read(share(talked))
        assert "Ines" not in json.dumps(file["dialog"][0])
        assert file["dialog"][0]["windowpane"]["is_withheld"]
        assert "1 left out by their owner" in text

    def test_reply_is_gone_when_a_message_of_it_is_hidden(self, talked):
        link = share(talked)
        actions.exclude_messages(talked, [3])
        assert Client().get(address(link, 6)).status_code == 404
        assert Client().get(address(link, 2)).status_code == 200

    def test_summaries_that_were_sent_are_in_it(self, talked):
        summarise(talked, 1, 4)
        talk_in_turns(talked, "What is my name?")
        file, text = read(share(talked))
        assert "4 in one summary" in text
        assert [each["windowpane"]["version"] for each in file["analysis"]] == [1]

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(("choice", "body"), [("whole", True), ("short", False)])
    def test_texts_that_were_not_read_can_be_left_out(self, alice, choice, body):
        made = transcript.create_conversation(alice, policy=TRIMMING)
        talk_in_turns(made, "My name is Ines.", "Two", "Three")
        compact(made)
        made.refresh_from_db()
        talk_in_turns(made, "Four")
        file, text = read(share(made, choice))
        assert "4 left out by a rule" in text
        assert ("Ines" in json.dumps(file["dialog"])) == body
        assert file["dialog"][4]["body"] == "Three"

    def test_rules_can_be_left_out(self, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "Always answer in rhymes.", "Hello")
        made.refresh_from_db()
        link = share(made, without_rules=True)
        file, text = read(link)
        own = file["windowpane"]
        assert own["request"]["body"] == []
        assert "rules" not in own["sections"]
        assert "rules" not in json.loads(own["request"]["refs"])
        assert "the request is not rebuilt: its owner has left out a part" in text
        page = Client().get(f"/s/{link.token}/").content.decode()
        assert "part-rules" not in page
        assert "Raw JSON" not in page
        assert Client().get(f"/s/{link.token}/raw/").status_code == 404


class TestAccess:
    def test_link_without_evidence_has_no_file(self, talked):
        link = share(talked, "")
        assert Client().get(address(link)).status_code == 404
        assert "data-verify" not in Client().get(f"/s/{link.token}/").content.decode()

    def test_guessed_link_gets_the_same_404(self, talked):
        link = share(talked)
        revoke_share(talked, link.pk)
        ended = Client().get(address(link))
        link.token = "x" * 32
        guessed = Client().get(address(link))
        assert ended.status_code == guessed.status_code == 404
        assert ended.content == guessed.content
        assert "noindex" in guessed["X-Robots-Tag"]

    def test_downloads_of_a_link_are_limited(self, talked, settings):
        settings.EVIDENCE_PER_MINUTE = 2
        link = share(talked)
        codes = [Client().get(address(link)).status_code for _ in range(4)]
        assert codes[0] == 200
        assert codes[-1] == 429

    def test_page_has_the_keys_and_the_button(self, talked):
        page = Client().get(f"/s/{share(talked).token}/").content.decode()
        assert 'data-file="evidence.json?reply=6"' in page
        assert "&quot;keys&quot;: [{" in page

    def test_verifier_is_the_code_of_the_page(self):
        answer = Client().get("/.well-known/windowpane-verify.js")
        assert answer["Content-Type"] == "text/javascript"
        code = answer.content.decode()
        assert "async function verify(data, keys, proof)" in code
        assert code.endswith("export { verify };\n")
        assert "document." not in code


class TestDialog:
    def test_owner_chooses_evidence_in_the_dialog(self, talked):
        client = signed_in(talked.owner)
        dialog = client.get(reverse("share", args=[talked.uuid])).content.decode()
        assert 'id="share-evidence"' in dialog
        data = {"last_seq": 4, "evidence": "short", "without_rules": "on", "days": 7}
        made = client.post(
            reverse("share-create", args=[talked.uuid]), data, headers=HTMX
        ).content.decode()
        link = talked.shares.get()
        assert link.choices == {"evidence": "short"}
        assert link.with_view
        assert link.without_rules
        assert "with evidence" in made
        assert read(link)[1]

    def test_unknown_choice_makes_no_link(self, talked):
        client = signed_in(talked.owner)
        data = {"last_seq": 4, "evidence": "everything"}
        client.post(reverse("share-create", args=[talked.uuid]), data, headers=HTMX)
        assert not talked.shares.exists()
