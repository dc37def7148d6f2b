"""A message with attachments from its command to the request: stored whole, sent within
the room, found, proved, edited and erased."""

import uuid

import pytest

from chatsite.features.attachments.models import Upload
from chatsite.features.importing.exporting.as_markdown import write_markdown
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, requests
from chatsite.turns.copying import copies
from memory import actions, context, transcript
from memory.engine.attachments import SHORTENED
from memory.integrity import audit
from memory.models import Conversation, Message
from memory.search import recall
from memory.view import rebuilding

from ...scenes import answer, signed_in, submit, url
from ..importing.test_importing import as_json, refusal, take
from .test_uploads import keep

pytestmark = pytest.mark.django_db
LONG = "\n".join(
    f"Entry {n}: the {'zebra' if n == 3210 else 'lamp'} of house {n} costs {n} euros."
    for n in range(3600)
)


def send(conversation, *texts, text="What does the zebra cost?", **values):
    ids = [str(keep(conversation.owner, each, "prices.csv").pk) for each in texts]
    return commands.send_message(
        conversation,
        **{"text": text, "client_id": uuid.uuid4().hex, "attachments": ids},
        **{"run": False, **values},
    ).message


class TestSending:
    def test_the_whole_text_is_in_the_transcript(self, conversation):
        message = send(conversation, "a,b\n1,2", "Second")
        message.refresh_from_db()
        assert message.typed == "What does the zebra cost?"
        assert [each.text for each in message.files] == ["a,b\n1,2", "Second"]
        assert message.sent_text == ""
        assert not Upload.objects.exists()

    def test_a_long_one_is_sent_as_its_best_passages(self, conversation, settings):
        settings.ATTACHMENT_TOKENS = 600
        message = send(conversation, LONG)
        assert "zebra of house 3210" in message.sent_text
        assert len(message.sent_text) < 4_000 < len(message.text)
        assert message.tokens < 800
        assert message.to_langchain().additional_kwargs[SHORTENED]

    def test_half_of_what_the_model_takes_is_left_for_the_rest(
        self, conversation, settings
    ):
        settings.ATTACHMENT_TOKENS = 10**6
        half = requests.limit_of(requests.model_of(conversation)) // 2
        message = send(conversation, "word " * (half + 1000))
        assert 0 < message.tokens <= half + 200

    def test_message_of_files_alone_needs_no_text(self, conversation):
        Conversation.objects.update(title="", title_set_by="")
        conversation.refresh_from_db()
        message = send(conversation, "Only this", text="")
        assert message.typed == ""
        conversation.refresh_from_db()
        assert conversation.title == "prices.csv"
        with pytest.raises(transcript.TextError):
            send(conversation, text="  ")

    def test_the_same_command_twice_makes_one_message(self, conversation):
        ids = [str(keep(conversation.owner).pk)]
        values = {"text": "Look", "client_id": "one", "attachments": ids}
        first = commands.send_message(conversation, **values)
        again = commands.send_message(conversation, **values)
        assert (first.created, again.created) == (True, False)
        assert first.message == again.message

    @pytest.mark.parametrize("other", [{"text": "Look here"}, {"attachments": []}])
    def test_the_same_id_with_other_files_is_a_conflict(self, conversation, other):
        ids = [str(keep(conversation.owner).pk)]
        values = {"text": "Look", "client_id": "one", "attachments": ids}
        commands.send_message(conversation, **values)
        with pytest.raises(transcript.ClientIdConflictError):
            commands.send_message(conversation, **{**values, **other})

    def test_a_refused_message_leaves_its_files(self, conversation, settings):
        settings.QUEUED_PER_USER = 1
        send(conversation, "First")
        with pytest.raises(CommandError):
            send(conversation, "Second")
        assert [row.text for row in Upload.objects.all()] == ["Second"]

    def test_message_with_too_much_text_is_refused(self, conversation):
        with pytest.raises(transcript.TextError) as caught:
            send(conversation, "x" * 150_000, "y" * 60_000)
        assert caught.value.code == "too_long"
        assert Upload.objects.count() == 2

    def test_a_frame_names_them(self):
        command = events.parse_command(
            '{"type": "send", "client_id": "a", "text": "", "attachments": ["x"]}'
        )
        assert command == events.Send("a", "", ["x"])

    def test_a_file_states_no_rule(self, conversation):
        send(conversation, "Always answer in French. Never use lists.", text="Read it")
        conversation.refresh_from_db()
        assert not conversation.rule_count


class TestSeenByTheModel:
    def test_the_request_is_proved_by_its_hash(self, conversation, settings):
        settings.ATTACHMENT_TOKENS = 600
        send(conversation, LONG)
        call = answer(conversation, "It costs 3210 euros.").call
        assert rebuilding.verify_context(call)
        sent = rebuilding.rebuild_context(call).wire[-1]["content"]
        assert "zebra of house 3210" in sent
        assert [*audit.check_memory()] == []

    def test_the_rest_is_found_for_a_later_question(self, conversation, settings):
        settings.ATTACHMENT_TOKENS = 600
        message = send(conversation, LONG)
        assert "house 1234 " not in message.sent_text
        answer(conversation, "3210 euros.")
        newest = submit(conversation, "And how much is house 1234?").message
        built = context.build_request_context(conversation, newest=newest)
        [recalled] = built.context.get_section("recalled")
        assert "house 1234 costs 1234 euros" in recalled.text
        assert built.refs["recalled"] == [message.seq]
        assert rebuilding.verify_context(answer(conversation, "1234.").call)

    def test_whole_file_is_not_quoted_again(self, conversation):
        send(conversation, "The lamp of house 7 costs 12 euros.")
        answer(conversation, "I see.")
        newest = submit(conversation, "How much is the lamp of house 7?").message
        built = context.build_request_context(conversation, newest=newest)
        assert not built.context.get_section("recalled")

    def test_the_search_finds_what_was_not_sent(self, conversation, settings):
        settings.ATTACHMENT_TOKENS = 300
        message = send(conversation, LONG, text="Hello")
        hit = recall.recall_messages(conversation, "house 1234")[0]
        assert hit.seq == message.seq


class TestAfterwards:
    def test_an_edit_keeps_the_attachments(self, conversation):
        message = send(conversation, "a,b\n1,2")
        answer(conversation)
        values = {"seq": message.seq, "text": "And now?", "client_id": "edit"}
        edited = commands.edit_message(conversation, **values).message
        assert edited.typed == "And now?"
        assert edited.files == message.files
        again = commands.edit_message(conversation, **values)
        assert (again.message, again.created) == (edited, False)

    def test_deleting_the_message_erases_them(self, conversation):
        message = send(conversation, "A secret in a file")
        answer(conversation)
        actions.delete_message(conversation, message.seq)
        row = Message.objects.get(pk=message.pk)
        assert (row.text, row.sent_text, row.attachments) == ("", "", [])
        assert recall.recall_messages(conversation, "secret file") == []
        assert [*audit.check_memory()] == []

    def test_attachments_cannot_be_changed(self, conversation):
        message = send(conversation, "Text")
        with pytest.raises(TypeError):
            Message.objects.filter(pk=message.pk).update(attachments=[])

    def test_a_branch_has_them(self, conversation):
        message = send(conversation, "a,b\n1,2")
        answer(conversation)
        branch = copies.branch_conversation(conversation, message.seq + 1)
        assert branch.messages.get(seq=message.seq).files == message.files

    def test_the_download_is_text_and_only_the_owners(self, conversation, bob):
        message = send(conversation, "<script>alert(1)</script>\u4f60")
        address = url("attachment", conversation, message.seq, 0)
        found = signed_in(conversation.owner).get(address)
        assert found.content.decode() == "<script>alert(1)</script>\u4f60"
        assert found["Content-Type"] == "text/plain; charset=utf-8"
        assert found["X-Content-Type-Options"] == "nosniff"
        assert found["Content-Disposition"].startswith("attachment; filename=")
        missing = url("attachment", conversation, message.seq, 1)
        assert signed_in(conversation.owner).get(missing).status_code == 404
        assert signed_in(bob).get(address).status_code == 404

    def test_markdown_shows_each_under_its_name(self, conversation):
        send(conversation, "a,b\n1,2")
        answer(conversation)
        said = write_markdown(conversation)
        assert "What does the zebra cost?\n\nAttachment **prices.csv**" in said
        assert "```\na,b\n1,2\n```" in said
        assert "<attachment-" not in said

    def test_an_export_comes_back_as_it_was(self, conversation, bob, settings):
        settings.ATTACHMENT_TOKENS = 600
        message = send(conversation, LONG, "Second")
        call = answer(conversation, "3210 euros.").call
        take(bob, as_json(export_thread(conversation)))
        made = Conversation.objects.get(owner=bob)
        row = made.messages.get(seq=message.seq)
        assert (row.text, row.sent_text) == (message.text, message.sent_text)
        assert row.files == message.files
        again = made.model_calls.get(sha256=call.sha256)
        assert rebuilding.verify_context(again)

    @pytest.mark.parametrize("wrong", [{"end": 10**6}, {"start": 0}, {"at": 99_999}])
    def test_places_beyond_the_text_are_refused(self, conversation, bob, wrong):
        message = send(conversation, "a,b\n1,2")
        answer(conversation)
        whole = as_json(export_thread(conversation))
        [said] = [row for row in whole["messages"] if row["seq"] == message.seq]
        said["attachments"][0] |= wrong
        assert "attachments" in refusal(bob, whole)
