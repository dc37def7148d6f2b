"""The right to erasure: nothing of a conversation stays but its tombstone."""

import json
import re
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.messages import get_messages
from django.core.management import call_command
from django.db import connection
from django.urls import reverse

from chatsite.accounts import account
from chatsite.contrib.lab.experiments.models import Experiment
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.review.actions import erasing
from chatsite.review.actions.services import State
from chatsite.review.models import AccessEvent, Review, Tombstone
from chatsite.turns import commands, lifecycle
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from memory import library, transcript
from memory.compaction import lease
from memory.models import Conversation, Prompt, RecallEntry
from memory.search import recall
from tests.memory.scenes import summarise, talk
from tests.remembered import remembered

from ..scenes import talk_in_turns

SECRET = "Zebraquark"
KEPT = {"desk_tombstone", "desk_accessevent", "django_admin_log"}


@pytest.fixture
@remembered
def secret(alice):
    """A conversation with its own prompt, of which every part holds one rare word."""
    words = f"Tell nobody about {SECRET} 斑马夸克"
    made = transcript.create_conversation(
        alice, title=words, system_prompt=f"You know {SECRET}."
    )
    talk_in_turns(made, *(f"{words} {n}" for n in range(4)))
    summarise(made, 1, 4, text=f"They spoke of {SECRET}.", structured={"a": SECRET})
    made.refresh_from_db()
    return made


@pytest.fixture
def eraser(client, staff_with):
    """A staff member who may erase, and need not read for that."""
    client.force_login(staff_with("metadata", "purge"))
    return client


def purge(client, *rows, code=None, reason="Asked for by its owner."):
    uuids = [str(row.uuid) for row in rows]
    page = ask(client, *rows)
    shown = re.search(r'review-code">(\w+)<', page)[1]
    fields = {"uuid": uuids, "reason": reason, "code": code or shown}
    return client.post(reverse("admin:review-bulk", args=["purge"]), fields)


def ask(client, *rows):
    if len(rows) == 1:
        url = reverse("admin:review-purge", args=[rows[0].pk])
        return client.get(url).content.decode()
    fields = {"action": "purge", "_selected_action": [row.pk for row in rows]}
    url = reverse("admin:memory_conversation_changelist")
    return client.post(url, fields).content.decode()


def said(response):
    return [str(each) for each in get_messages(response.wsgi_request)]


def tables_with(word):
    """The tables any of whose rows hold the word in any column."""
    found = set()
    for model in apps.get_models():
        for row in model.objects.order_by().values_list():
            if word in json.dumps(row, default=str, ensure_ascii=False):
                found.add(model._meta.db_table)
    return found


class TestErasing:
    def test_erasing_leaves_no_word_in_any_table(self, eraser, staff, secret):
        Review.objects.create(
            conversation=secret, user=staff, username="staff", note=SECRET,
            **vars_of(secret),
        )  # fmt: skip
        Experiment.objects.create(
            conversation=secret, budget=1, last_seq=8, result={"a": SECRET}
        )
        LogEntry.objects.create(
            user=staff,
            content_type=ContentType.objects.get_for_model(Conversation),
            object_id=str(secret.pk),
            object_repr=SECRET,
            action_flag=2,
        )
        assert len(tables_with(SECRET)) >= 7
        assert purge(eraser, secret).status_code == 302
        assert tables_with(SECRET) == set()
        assert tables_with("斑马夸克") == set()
        assert not RecallEntry.objects.exists()
        assert not Prompt.objects.filter(text__contains=SECRET).exists()

    def test_the_tombstone_and_the_logs_say_what_was(self, eraser, secret):
        digest = erasing.fingerprint_conversation(secret)
        purge(eraser, secret)
        stone = Tombstone.objects.get()
        assert stone.conversation == secret.uuid
        assert (stone.messages, stone.summaries, stone.turns) == (8, 1, 4)
        assert (stone.model_calls, stone.sha256) == (5, digest)
        assert (stone.username, stone.reason) == (
            "staff-metadata-purge",
            "Asked for by its owner.",
        )
        assert stone.begun_at == secret.created_at
        event = AccessEvent.objects.get(action="purge")
        assert (event.conversation, event.owner) == (secret.uuid, secret.owner)
        entry = LogEntry.objects.get()
        assert (entry.object_id, entry.is_deletion()) == (str(secret.pk), True)
        assert str(entry) == f"Deleted “{secret}.”"

    def test_the_hash_can_be_had_from_an_export(self, secret):
        value = json.loads(json.dumps(export_thread(secret), default=str))
        names = ("seq", "role", "text", "tool_calls")
        digest = erasing.digest_rows(
            value["conversation"]["uuid"],
            [[row[name] for name in names] for row in value["messages"]],
            [[row["version"], row["text"]] for row in value["summaries"]],
        )
        assert digest == erasing.fingerprint_conversation(secret)
        value["messages"][0]["text"] += "."
        assert digest != erasing.digest_rows(str(secret.uuid), value["messages"], [])

    def test_erasing_stops_running_and_waiting_turns(self, eraser, secret, caplog):
        commands.submit_message(secret, text="One more", client_id="1")
        commands.submit_message(secret, text="And one", client_id="2")
        claim = lifecycle.claim(secret.pk)
        purge(eraser, secret)
        assert lifecycle.checkpoint(claim, SECRET) is lifecycle.LeaseStatus.LOST
        assert (
            lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, SECRET))
            is None
        )
        assert tables_with(SECRET) == set()
        assert lease.due_compactions() == []
        assert SECRET not in caplog.text

    def test_sockets_close_and_runners_are_woken(self, eraser, secret, monkeypatch):
        ended = []

        async def end_all(pk, running):
            ended.append((pk, running))

        monkeypatch.setattr(account, "end_all", end_all)
        commands.submit_message(secret, text="One more", client_id="1")
        claim = lifecycle.claim(secret.pk)
        purge(eraser, secret)
        assert ended == [(secret.pk, [claim.row_id])]

    def test_branches_stay_and_forget_where_they_are_from(self, eraser, secret):
        branch = copies.branch_conversation(secret, 2)
        page = ask(eraser, secret)
        assert "1 other conversation holds copies" in page
        purge(eraser, secret)
        branch.refresh_from_db()
        assert (branch.branched_from, branch.branched_seq) == (None, None)
        assert branch.messages.count() == 2
        prompts = Prompt.objects.filter(text__contains=SECRET)
        assert prompts.count() == 1  # the branch was sent with it, too

    def test_erasing_leaves_other_conversations_as_they_were(self, eraser, secret, bob):
        other = transcript.create_conversation(bob)
        talk(other, 2)
        before = erasing.fingerprint_conversation(other)
        purge(eraser, secret)
        assert erasing.fingerprint_conversation(other) == before
        assert [hit.seq for hit in recall.recall_messages(other, "Text 1")][:1] == [3]

    def test_erasing_works_after_the_owner_has_deleted_it(self, eraser, secret):
        library.delete_conversation(secret)
        purge(eraser, secret)
        assert Tombstone.objects.filter(conversation=secret.uuid).exists()

    def test_an_account_can_end_after_staff_did_something(self, eraser, secret, bob):
        purge(eraser, secret)
        account.delete_account(secret.owner)
        assert AccessEvent.objects.get(action="purge").owner is None


def vars_of(conversation):
    state = State.of_conversation(conversation)
    return {
        "version": state.version,
        "last_seq": state.last_seq,
        "memory_version": state.memory_version,
    }


class TestAsking:
    def test_confirmation_shows_what_will_be_erased(self, eraser, secret):
        page = ask(eraser, secret)
        assert f"<td>{8}</td>" in page
        assert SECRET not in page
        assert str(secret.uuid)[:8] in page
        assert Conversation.objects.filter(deleted_at=None).exists()

    def test_a_wrong_code_erases_nothing(self, eraser, secret):
        for code in ("00000000", "x", "'; --", "\0", "0" * 50):
            assert purge(eraser, secret, code=code).status_code == 422
        assert purge(eraser, secret, reason=" ").status_code == 422
        assert Conversation.objects.filter(deleted_at=None).exists()

    def test_the_code_is_the_beginning_of_the_uuid(self, eraser, secret):
        assert purge(eraser, secret, code=f" {str(secret.uuid)[:8].upper()} ").url
        assert not Conversation.objects.exists()

    def test_the_second_of_two_clicks_is_told(self, eraser, secret):
        purge(eraser, secret)
        fields = {"uuid": str(secret.uuid), "code": str(secret.uuid)[:8], "reason": "x"}
        again = eraser.post(reverse("admin:review-bulk", args=["purge"]), fields)
        assert "staff-metadata-purge has already erased" in said(again)[-1]
        assert Tombstone.objects.count() == 1

    def test_conversation_erased_in_the_meantime_is_reported(
        self, eraser, secret, monkeypatch
    ):
        def vanish(conversation):
            library.erase_conversation(Conversation.objects.get(pk=conversation.pk))
            return []

        page = ask(eraser, secret)
        monkeypatch.setattr(commands, "end_unfinished_turns", vanish)
        code = re.search(r'review-code">(\w+)<', page)[1]
        fields = {"uuid": str(secret.uuid), "code": code, "reason": "x"}
        answer = eraser.post(reverse("admin:review-bulk", args=["purge"]), fields)
        assert "no longer exists" in said(answer)[-1]
        assert not Tombstone.objects.exists()

    def test_several_have_a_code_of_their_own(self, eraser, alice, secret):
        other = transcript.create_conversation(alice)
        first = str(secret.uuid)[:8]
        assert purge(eraser, secret, other, code=first).status_code == 422
        assert purge(eraser, secret, other).status_code == 302
        assert Tombstone.objects.count() == 2
        assert not Conversation.objects.exists()

    def test_selection_of_too_many_is_refused(self, eraser, alice):
        rows = [transcript.create_conversation(alice) for _ in range(51)]
        fields = {"action": "purge", "_selected_action": [row.pk for row in rows]}
        url = reverse("admin:memory_conversation_changelist")
        assert "at most 50" in said(eraser.post(url, fields))[0]


@pytest.mark.django_db(transaction=True)
class TestFiles:
    """The database's own files after an erasure; docs/admin.md describes the same."""

    @pytest.fixture
    def erased(self, bob, alice):
        """Rows of two conversations, one of them erased, beside each other."""
        kept, gone = (
            transcript.create_conversation(bob),
            transcript.create_conversation(alice, title=SECRET),
        )
        for n in range(8):
            talk_in_turns(kept, f"Stays {n} " * 20)
            talk_in_turns(gone, f"{SECRET} {n} " * (1 + n * 40))
            commands.submit_message(gone, text="x", client_id=f"{n}")
            claim = lifecycle.claim(gone.pk)
            for length in (10, 500, 5000):
                lifecycle.checkpoint(claim, (SECRET + " ") * length)
            lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, SECRET))
        erasing.erase_with_tombstone(gone, user=bob, reason="x")
        return kept

    @pytest.mark.database("sqlite")
    def test_sqlite_clears_the_bytes_and_its_journal(self, erased):
        path = Path(connection.settings_dict["NAME"])
        files = [path, *path.parent.glob(f"{path.name}-wal")]
        held = b"".join(each.read_bytes() for each in files)
        assert b"Stays 7" in held
        assert SECRET.encode() not in held
        # The text index holds coded words until its parts are merged.
        call_command("scrub")
        assert vocabulary() == {
            word
            for row in RecallEntry.objects.values_list("terms", "dates")
            for text in row
            for word in text.split()
        }

    @pytest.mark.database("postgresql")
    def test_scrubbing_rewrites_the_tables(self, erased):
        def held(table):
            with connection.cursor() as cursor:
                cursor.execute("CHECKPOINT")
                cursor.execute(
                    "SELECT pg_read_binary_file(pg_relation_filepath(%s::regclass))",
                    [table],
                )
                return bytes(cursor.fetchone()[0])

        tables = ("memory_message", "memory_conversation")
        assert any(SECRET.encode() in held(table) for table in tables)
        call_command("scrub")
        assert not any(SECRET.encode() in held(table) for table in tables)
        assert b"Stays 7" in held("memory_message")


def vocabulary():
    """The words that SQLite's text index knows, from rows of now and of before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE VIRTUAL TABLE temp.vocabulary "
            "USING fts5vocab(main, memory_recall_fts, row)"
        )
        cursor.execute("SELECT term FROM vocabulary")
        known = {term for (term,) in cursor.fetchall()}
        cursor.execute("DROP TABLE temp.vocabulary")
    return known
