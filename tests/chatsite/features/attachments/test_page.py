"""Files that are not sent yet on pages: the right pane, and the first message."""

import uuid

import pytest
from django.urls import reverse

from chatsite.features.attachments.models import Upload
from memory.models import Conversation

from ...scenes import HTMX, memory_url, signed_in
from .test_uploads import keep

pytestmark = pytest.mark.django_db
# Of nothing; the same in each process, as the names of tests are.
UNKNOWN = "7a1c0000-0000-4000-8000-000000000000"
LONG = "\n".join(f"Lamp {n} costs {n} euros." for n in range(5_000))


@pytest.fixture
def client(alice):
    return signed_in(alice)


class TestDraft:
    def post(self, client, conversation, ids, text=""):
        values = {"draft": text, "files": ids}
        answered = client.post(memory_url("draft", conversation), values, headers=HTMX)
        return answered.content.decode()

    def test_the_right_pane_shows_files_that_wait(self, client, conversation):
        row = keep(conversation.owner, "Lamp 7 costs 12 euros.")
        shown = self.post(client, conversation, str(row.pk))
        assert "Lamp 7 costs 12 euros." in shown
        assert "Next message" in shown
        assert Upload.objects.exists()

    def test_people_read_its_name_in_place_of_marks(self, client, conversation):
        row = keep(conversation.owner, "Lamp 7 costs 12 euros.")
        shown = self.post(client, conversation, str(row.pk), "Look")
        assert shown.count("notes.txt:\nLamp 7 costs 12 euros.") == 2  # closed and open
        _words, _raw, as_sent = shown.rpartition("As the model reads it")
        assert shown.count("&lt;attachment-") == as_sent.count("&lt;attachment-") == 1

    def test_draft_shows_as_much_as_would_be_sent(self, client, conversation, settings):
        settings.ATTACHMENT_TOKENS = 600
        row = keep(conversation.owner, LONG)
        shown = self.post(client, conversation, str(row.pk), "What costs lamp 77?")
        assert "Lamp 77 costs" in shown
        assert "Lamp 2500 costs" not in shown

    @pytest.mark.parametrize("ids", ["no-id", "7 7 7", UNKNOWN, "\0"])
    def test_draft_leaves_out_ids_of_no_file(self, client, conversation, ids):
        assert "Hello" in self.post(client, conversation, ids, "Hello")

    def test_files_of_other_users_are_not_shown(self, client, conversation, bob):
        row = keep(bob, "Bob's secret")
        assert "secret" not in self.post(client, conversation, str(row.pk), "Hello")


class TestFirstMessage:
    def begin(self, client, *rows, text="Hello", client_id="one"):
        values = {
            **{"first": text, "client_id": client_id},
            "attachments": [str(row.pk) for row in rows],
        }
        return client.post(reverse("conversation-create"), values)

    def test_first_message_can_have_files(self, client, alice):
        assert self.begin(client, keep(alice), text="").status_code == 302
        made = Conversation.objects.get()
        assert made.messages.get().files[0].text == "Hello"
        assert made.title == "notes.txt"

    def test_the_same_one_twice_leads_to_the_same_conversation(self, client, alice):
        row = keep(alice)
        first, again = self.begin(client, row), self.begin(client, row)
        assert first["Location"] == again["Location"]
        assert Conversation.objects.count() == 1

    def test_missing_file_makes_no_conversation(self, client, alice, bob):
        for row in (keep(bob), Upload(pk=uuid.uuid4())):
            refused = self.begin(client, row)
            assert refused.status_code == 400
            assert "Attach the file again." in refused.content.decode()
        assert not Conversation.objects.exists()

    def test_ids_that_are_none_are_refused(self, client):
        values = {"first": "Hello", "attachments": ["../x"]}
        refused = client.post(reverse("conversation-create"), values)
        assert refused.status_code == 400
        assert not Conversation.objects.exists()
