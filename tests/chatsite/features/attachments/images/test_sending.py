"""Images on their way to a model: what was sent is what is shown and proved."""

import uuid
from base64 import b64decode

import pytest
from channels.db import database_sync_to_async
from django.template.loader import render_to_string

from chatsite.features.attachments import uploads
from chatsite.llm import dialects
from chatsite.pages.presenters import context_pane
from chatsite.turns import requests
from memory import actions, context, transcript
from memory.engine.compose import digest_wire
from memory.images import image_source
from memory.models import Conversation
from memory.view import rebuilding
from tests.memory.scenes import summarise

from ....scenes import HTMX, answer, memory_url, signed_in, submit, url
from ....sockets import Chat
from . import pictures
from .scenes import keep_image, send_images

pytestmark = pytest.mark.django_db(transaction=True)
COLOURS = ("red", "green", "blue")


def images_in(messages):
    """Return the contents of the image parts of a request's messages."""
    parts = [
        part
        for each in messages
        if isinstance(each["content"], list)
        for part in each["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [b64decode(each.partition(",")[2]) for each in urls]


def built_now(conversation):
    return requests.next_turn(Conversation.objects.get(pk=conversation.pk))


class TestRequest:
    def test_request_has_the_bytes_of_the_newest_message(self, conversation):
        message = send_images(conversation)
        built = built_now(conversation)
        assert images_in(built.wire) == [bytes(message.image_files.get().data)]
        assert built.wire[-1]["content"][0] == {"type": "text", "text": message.text}
        assert built.refs["images"] == [[message.seq, 0, 85]]

    def test_request_is_rebuilt_to_its_hash(self, conversation):
        send_images(
            conversation, *(keep_image(conversation.owner, colour=c) for c in COLOURS)
        )
        answer(conversation)
        submit(conversation, "And now?")
        answer(conversation)
        calls = conversation.model_calls.filter(purpose="reply").order_by("-pk")[:2]
        assert all(rebuilding.verify_context(call) for call in calls)
        assert [len(call.refs["images"]) for call in calls] == [3, 3]
        assert images_in(rebuilding.rebuild_context(calls[0]).wire)

    def test_tokens_of_images_count(self, conversation):
        plain = built_now(conversation).tokens
        message = send_images(conversation)
        text = requests.context.conversation_counter(conversation)(
            [message.to_langchain()]
        )
        assert built_now(conversation).tokens == plain + text + 85

    def test_a_model_that_takes_none_gets_the_name(self, conversation, settings):
        settings.IMAGE_MODELS = ["other"]
        send_images(conversation)
        built = built_now(conversation)
        assert images_in(built.wire) == []
        assert "[image: cat.png, 40 x 30 pixels, 1 KB]" in built.wire[-1]["content"]
        assert "images" not in built.refs

    def test_the_newest_ten_go_along(self, conversation):
        owner = conversation.owner
        first = send_images(conversation, *(keep_image(owner) for _ in range(8)))
        answer(conversation)
        second = send_images(conversation, *(keep_image(owner) for _ in range(4)))
        refs = built_now(conversation).refs["images"]
        places = [(seq, n) for seq, n, _ in refs]
        assert places == [
            *((first.seq, n) for n in range(2, 8)),
            *((second.seq, n) for n in range(4)),
        ]

    def test_a_pinned_message_brings_its_image_back(self, conversation):
        message = send_images(conversation)
        answer(conversation)
        conversation.refresh_from_db()
        summarise(conversation, 1, message.seq + 1)
        assert images_in(built_now(conversation).wire) == []
        actions.pin_message(conversation, message.seq)
        submit(conversation, "What was on it?")
        assert len(images_in(built_now(conversation).wire)) == 1
        answer(conversation)
        assert rebuilding.verify_context(conversation.model_calls.latest("pk"))

    def test_name_alone_is_sent_without_the_bytes(self, conversation):
        send_images(conversation).image_files.all().delete()
        assert images_in(built_now(conversation).wire) == []

    def test_a_message_with_more_than_the_model_takes_is_refused(
        self, conversation, settings
    ):
        settings.CONTEXT_WINDOW = 400
        rows = [keep_image(conversation.owner) for _ in range(6)]
        with pytest.raises(requests.CommandError):
            send_images(conversation, *rows)
        assert not conversation.image_files.exists()

    def test_a_conversation_without_images_asks_for_none(
        self, conversation, django_assert_max_num_queries, monkeypatch
    ):
        monkeypatch.setattr(image_source, "current", None)
        submit(conversation, "Nothing > but text")
        assert built_now(conversation).wire

    def test_neighbours_are_joined_with_their_images(self, conversation, monkeypatch):
        send_images(conversation)
        shape = context.Shape(joined=True)
        newest = conversation.messages.latest("seq")
        actions.exclude_messages(conversation, [newest.seq - 1])
        built = context.build_request_context(conversation, newest=newest, shape=shape)
        roles = [each["role"] for each in built.wire]
        assert all(a != b for a, b in zip(roles, roles[1:], strict=False))
        assert len(images_in(built.wire)) == 1

    def test_a_deleted_image_is_in_no_request_that_is_shown(self, conversation):
        message = send_images(conversation)
        answer(conversation)
        call = conversation.model_calls.latest("pk")
        actions.delete_message(conversation, message.seq)
        assert images_in(rebuilding.rebuild_context(call).wire) == []
        assert rebuilding.is_erased(call)


class TestPane:
    def pane(self, conversation, **values):
        client = signed_in(conversation.owner)
        return client.get(url("context", conversation), values).content.decode()

    def test_pane_shows_which_images_were_sent(self, conversation, settings):
        message = send_images(conversation)
        reply = answer(conversation).reply
        address = f"messages/{message.seq}/images/0/?size=small"
        for shown in (
            self.pane(conversation),
            self.pane(conversation, reply=reply.seq),
        ):
            assert address in shown
            assert "40 × 30 · 85 tokens" in shown
            assert "only the names" not in shown
        settings.IMAGE_MODELS = ["other"]
        shown = self.pane(conversation)
        assert address not in shown
        assert "The model gets only the names of these images: cat.png" in shown
        # What was sent before stays as it was.
        assert address in self.pane(conversation, reply=reply.seq)

    def test_a_draft_has_its_images(self, conversation, alice, settings):
        rows = uploads.find_files(alice.pk, [str(keep_image(alice).pk)])
        built = requests.next_turn(conversation, "Look", rows)
        assert built.refs["images"] == [[conversation.next_seq, 0, 85]]
        assert len(images_in(built.wire)) == 1
        pane = context_pane.model_view(conversation, draft="Look", files=rows)
        assert pane.images_unsent == ()
        settings.IMAGE_MODELS = ["other"]
        pane = context_pane.model_view(conversation, draft="Look", files=rows)
        assert pane.images_unsent == ("cat.png",)

    def test_the_names_of_many_are_no_long_list(self):
        """The images are hundreds, as an import of replies can have."""
        context = {"images_unsent": [f"{n}.png" for n in range(300)]}
        told = render_to_string("chat/_images_unsent.html", {"context": context})
        assert "names of these images: 0.png, 1.png, 2.png" in told
        assert len(told) < 400

    def test_pages_have_no_bytes(self, conversation):
        send_images(conversation)
        answer(conversation)
        client = signed_in(conversation.owner)
        raw = client.get(memory_url("raw", conversation), headers=HTMX)
        assert "data:image/png;base64,… (" in raw.content.decode()
        assert "iVBOR" not in raw.content.decode()
        told = client.get(url("context-json", conversation)).json()
        assert len(images_in(told["messages"])) == 1
        assert digest_wire(told["messages"]) == told["sha256"]


class TestWire:
    @pytest.fixture
    def site(self, settings, upstream):
        settings.CHAT_MODEL = "ok"
        settings.IMAGE_MODELS = ["*"]
        return upstream

    async def say(self, chat, *rows, text="What is this?"):
        ids = [str(row.pk) for row in rows]
        values = {"client_id": uuid.uuid4().hex, "text": text, "attachments": ids}
        await chat.command(type="send", **values)
        ack = (await chat.until("ack"))[-1]
        return (await chat.until("end", turn=ack["turn"]))[-1]

    async def test_sent_request_equals_the_recorded_one(self, alice, session, site):
        made, row = await database_sync_to_async(self._begin)(alice)
        async with Chat(made, session) as chat:
            assert (await self.say(chat, row))["state"] == "done"
            assert (await self.say(chat, text="Are you sure?"))["state"] == "done"

        def look():
            calls = made.model_calls.filter(purpose="reply").order_by("pk")
            for call, request in zip(calls, site.calls, strict=True):
                assert digest_wire(request.messages) == call.sha256
                assert images_in(request.messages) == [
                    pictures.make("PNG", colour="red")
                ]
                assert rebuilding.verify_context(call)

        await database_sync_to_async(look)()
        assert site.violations == []

    async def test_a_server_that_refuses_images_gets_their_names(
        self, alice, session, site, settings
    ):
        """The model changes in the middle of a conversation."""
        settings.CHAT_MODEL = "strict:images"
        made, row = await database_sync_to_async(self._begin)(alice)
        async with Chat(made, session) as chat:
            first = await self.say(chat, row)
            again = await self.say(chat, text="And?")
        assert [first["state"], again["state"]] == ["done", "done"]
        # It was asked once whether it takes them.
        assert [len(images_in(each.messages)) for each in site.calls] == [1, 0, 0]
        assert "[image: cat.png" in str(site.calls[1].messages)

        def look():
            calls = made.model_calls.filter(purpose="reply").order_by("pk")
            assert all(rebuilding.verify_context(call) for call in calls)
            assert made.image_files.exists()

        await database_sync_to_async(look)()

    def _begin(self, alice):
        return transcript.create_conversation(alice), keep_image(alice)


@pytest.mark.parametrize(
    "said",
    [
        "Invalid content type. image_url is only supported by certain models.",
        "image input is not supported - hint: you may need to provide the mmproj",
        "llama3 is not a multimodal model",
        "No endpoints found that support image input",
        "messages[0]: unknown variant `image_url`, expected `text`",
        "'messages.1' : for 'role:user' : content must be a string",
    ],
)
def test_refusals_of_images_are_known(said):
    assert dialects.refuses_images(said.lower())


@pytest.mark.parametrize(
    "said", ["Invalid image data.", "The image is too large: 21 MB.", "Bad request."]
)
def test_refusals_of_one_image_are_no_such(said):
    assert not dialects.refuses_images(said.lower())
