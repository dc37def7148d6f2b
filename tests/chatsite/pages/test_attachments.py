"""Files of messages on pages: cards, the right pane and the replay."""

import uuid

import pytest

from chatsite.turns import commands
from memory.engine.attachments import Attachment, join_attachments
from memory.models import Message

from ..scenes import answer, memory_url, menu_of, page_of, signed_in, url

pytestmark = pytest.mark.django_db
LONG = "\n".join(f"Lamp {n} costs {n} euros." for n in range(5_000))


@pytest.fixture
def client(alice):
    return signed_in(alice)


def send(conversation, *files, text="Look"):
    """A message with these files, as one that is edited keeps its own."""
    attachments = [
        Attachment(str(uuid.uuid4()), name, "txt", 5, body) for name, body in files
    ]
    whole, places = join_attachments(text, attachments)
    kept = Message(text=whole, attachments=places)
    client_id = uuid.uuid4().hex
    values = {"text": text, "client_id": client_id, "kept": kept}
    return commands.submit_message(conversation, **values).message


class TestCard:
    def test_card_shows_the_beginning_and_a_link_to_the_whole_file(
        self, client, conversation
    ):
        message = send(conversation, ("lamps.txt", LONG))
        answer(conversation)
        page = page_of(client, conversation)
        assert "lamps.txt" in page
        assert "Lamp 12 costs" in page
        assert "Lamp 4999 costs" not in page.split('id="context"')[0]
        assert url("attachment", conversation, message.seq, 0) in page
        assert "more characters." in page

    def test_styles_come_with_the_first_file(self, client, conversation):
        sheet = "/static/css/files.css"
        link = f'<link rel="stylesheet" href="{sheet}">'
        assert link not in page_of(client, conversation)
        send(conversation, ("lamps.txt", "Hello"))
        page = page_of(client, conversation)
        assert link in page
        # For a page that had none so far.
        assert f'data-styles="{sheet}"' in page

    def test_typed_text_is_shown_apart_from_files(self, client, conversation):
        message = send(conversation, ("a.txt", "In the file"), text="**Typed**")
        page = page_of(client, conversation)
        left = page.split('id="context"')[0]
        assert "<strong>Typed</strong>" in left
        assert "<template data-raw>**Typed**</template>" in left
        assert "&lt;attachment-" not in left
        assert message.text.count("<attachment-") == 1

    @pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "{{ 7 }}{% x %}"])
    def test_text_of_a_file_is_never_html(self, client, conversation, hostile):
        send(conversation, (hostile, hostile))
        page = page_of(client, conversation)
        assert "<script>alert" not in page
        assert hostile.replace("<", "&lt;").replace(">", "&gt;") in page

    def test_card_shows_how_much_the_model_gets(self, client, conversation, settings):
        settings.ATTACHMENT_TOKENS = 300
        message = send(conversation, ("lamps.txt", LONG), text="What costs lamp 77?")
        answer(conversation)
        page = page_of(client, conversation)
        assert f"{len(message.sent_text):,} of {len(message.text):,} characters" in page
        assert "In part: its files are long." in menu_of(
            client, conversation, message.seq
        )
        # On the right, too.
        assert "Shortened:" in page.split('id="context"')[1]

    def test_the_replay_says_that_it_was_sent_in_part(
        self, client, conversation, settings
    ):
        settings.ATTACHMENT_TOKENS = 300
        send(conversation, ("lamps.txt", LONG), text="What costs lamp 77?")
        answer(conversation)
        send(conversation, text="And lamp 78?")
        reply = answer(conversation).reply
        shown = client.get(memory_url("moment", conversation), {"reply": reply.seq})
        assert "Sent in part" in shown.content.decode()

    def test_the_replay_names_it(self, client, conversation):
        send(conversation, ("lamps.txt", "Lamp"))
        reply = answer(conversation).reply
        shown = client.get(memory_url("moment", conversation), {"reply": reply.seq})
        assert "lamps.txt" in shown.content.decode()
