"""The end of an account while everything goes on, and what is left of it: nothing."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.urls import reverse

from chatsite.accounts import account
from chatsite.contrib.lab.experiments.models import Experiment
from chatsite.features.feedback.services import give_feedback
from chatsite.features.labels import services as labels
from chatsite.review.actions import erasing, people
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import bundle, context, library, prompts, transcript
from memory.integrity import audit
from memory.models import Conversation, Message, ModelCall
from memory.search import recall
from tests.clients import Person
from tests.memory.scenes import summarise

from ..scenes import signed_in, talk_in_turns
from .test_account import post

WORD = "zyqqplanted"


def plant(user, staff, word=WORD):
    """Put the word in every place that can hold what a user wrote."""
    made = transcript.create_conversation(
        user, title=f"T {word}", system_prompt=f"P {word}"
    )
    for n in range(5):
        talk_in_turns(made, f"{word} {n}")
    give_feedback(made, 2, "bad", f"F {word}")
    labels.give_labels(labels.find_or_make_labels(user, [f"L {word}"]), [made])
    summarise(made, 1, 4, text=f"S {word}", flags={"unsupported": [word]})
    texts = {prompts.hash_text(f"I {word}"): f"I {word}"}
    bundle.write_bundle(
        transcript.create_conversation(user), bundle.Bundle(prompts=texts)
    )
    Experiment.objects.create(
        conversation=made,
        user=staff,
        model="demo",
        budget=1,
        last_seq=2,
        result={"steps": {"versions": [{"text": word}]}},
    )
    for row in (made, user):
        LogEntry.objects.create(
            user=staff,
            content_type=ContentType.objects.get_for_model(row),
            object_id=str(row.pk),
            object_repr=word,
            action_flag=CHANGE,
        )
    library.delete_conversation(made)
    return made


def tables_with(text):
    """Tables with a row that holds the text, those of the database itself included."""
    with connection.cursor() as cursor:
        names = [*connection.introspection.table_names(cursor), "pg_statistic"]
        found = []
        for name in names:
            quoted = connection.ops.quote_name(name)
            cursor.execute(
                f"SELECT count(*) FROM {quoted} AS t "  # noqa: S608
                "WHERE t::text LIKE %s",
                [f"%{text}%"],
            )
            found += [name] if cursor.fetchone()[0] else []
    return found


def bytes_of_database():
    path = Path(connection.settings_dict["NAME"])
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


def deleted_by(staff, user):
    """Delete as the admin does: first what the user wrote, then the account."""
    for conversation in Conversation.objects.filter(owner=user):
        erasing.erase_with_tombstone(conversation, user=staff)
    page = reverse("admin:auth_user_delete", args=[user.pk])
    done = signed_in(staff).post(page, {"post": "yes"})
    assert done.status_code == 302, done.content.decode()
    entry = LogEntry.objects.get(action_flag=DELETION)
    assert (entry.object_repr, entry.user) == (f"account {user.pk}", staff)


@pytest.mark.django_db(transaction=True)
class TestNothingIsLeft:
    @pytest.fixture
    def zyq(self, staff):
        user = get_user_model().objects.create_user(WORD, f"{WORD}@x.org", "secret-9")
        plant(user, staff)
        # Of tables that are left empty, PostgreSQL keeps the statistics it had.
        plant(staff, staff, "stays")
        return user

    @pytest.fixture(params=["by the person", "by staff", "erased"])
    def leave(self, request, zyq, staff):
        """leave(): the account is deleted, in each way that there is."""
        return {
            "by the person": partial(account.delete_account, zyq),
            "by staff": partial(deleted_by, staff, zyq),
            "erased": partial(people.erase_person, zyq, by=staff, reason="Asked."),
        }[request.param]

    @pytest.mark.database("sqlite")
    def test_file_holds_no_word_after_deletion(self, zyq, staff, leave):
        signed_in(zyq), signed_in(zyq)
        assert WORD.encode() in bytes_of_database()
        leave()
        call_command("scrub")
        assert WORD.encode() not in bytes_of_database()
        assert b"stays" in bytes_of_database()
        people = [row.get_decoded()["_auth_user_id"] for row in Session.objects.all()]
        assert set(people) <= {str(staff.pk)}

    @pytest.mark.database("postgresql")
    def test_tables_hold_no_word_after_deletion(self, zyq, leave):
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        assert "pg_statistic" in tables_with(WORD)
        leave()
        assert set(tables_with(WORD)) <= {"pg_statistic"}
        call_command("scrub")
        assert tables_with(WORD) == []


@pytest.mark.django_db(transaction=True)
class TestWhileThingsGoOn:
    def test_a_reply_that_goes_on_writes_nothing_more(self, alice):
        made = transcript.create_conversation(alice)
        sent = commands.submit_message(made, text="One", client_id="1")
        claim = lifecycle.claim(made.pk)
        commands.submit_message(made, text="Two", client_id="2")
        built = context.build_request_context(made, newest=sent.message, model="demo")
        claim = lifecycle.begin(claim, built, "demo")
        lifecycle.checkpoint(claim, "Half")
        assert commands.end_unfinished_turns(made) == [sent.turn.pk]
        assert lifecycle.checkpoint(claim, "Half of it") is lifecycle.LeaseStatus.LOST
        assert lifecycle.begin(claim, built, "demo") is lifecycle.LeaseStatus.LOST
        states = Turn.objects.values_list("state", "text")
        assert [*states.order_by("pk")] == [("stopped", "Half"), ("stopped", "")]
        assert [*audit.check_memory()] == []
        account.delete_account(alice)
        assert (
            lifecycle.finish(claim, lifecycle.TurnResult("done", "All of it")) is None
        )
        assert not Message.objects.exists()

    def test_rows_that_come_in_between_do_not_make_it_fail(self, alice, bob):
        """Act as a runner does that has not noticed it: request after request."""
        made = [transcript.create_conversation(alice) for _ in range(3)]
        kept = transcript.create_conversation(bob)
        talk_in_turns(kept, "Stays")
        ended = Event()

        def write(conversation):
            count = 0
            while not ended.is_set():
                try:
                    talk_in_turns(conversation, "More")
                    recall.index_all()
                    count += 1
                except (DatabaseError, AttributeError, Conversation.DoesNotExist):
                    time.sleep(0.01)
                except Turn.DoesNotExist:
                    continue
            connection.close()
            return count

        with ThreadPoolExecutor(3) as threads:
            writers = [threads.submit(write, each) for each in made]
            time.sleep(1)
            try:
                account.delete_account(alice)
            finally:
                ended.set()
            assert sum(writer.result(20) for writer in writers)
        assert not get_user_model().objects.filter(username="alice").exists()
        assert {row.conversation for row in ModelCall.objects.all()} == {kept}
        assert [*audit.check_memory()] == []

    def test_deletion_reports_a_conflict_and_can_be_repeated(self, alice, monkeypatch):
        talk_in_turns(transcript.create_conversation(alice), "Hello")
        client = signed_in(alice)

        def busy(*args):
            raise DatabaseErrorNow

        class DatabaseErrorNow(account.OperationalError):
            pass

        monkeypatch.setattr(account, "_remove_account", busy)
        answer = post(client, "account-delete")
        assert answer.status_code == 422
        assert "Try again" in answer.content.decode()
        monkeypatch.undo()
        assert b"Account deleted" in post(client, "account-delete").content
        assert not QuerySet(get_user_model()).exists()
        assert not Session.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_deletion_over_http_works_while_a_reply_is_streamed(start_site):
    """Deletion answered 500 before, and account, texts and sessions stayed."""
    site = start_site(DEMO_TOKENS_PER_SECOND="20")
    person = Person(site, "leaving")
    other = Person(site, "staying")
    path = person.create()
    with person.chat(path) as chat:
        chat.send("Tell me a long story " * 50)
        chat.until("frame")
        where = person.post(
            "/account/delete/", **{"deletion-password": "correct horse battery"}
        )
        assert where == "/account/delete/"
    assert "Log in" in person.get("/")
    assert "leaving" not in site.manage("audit")
    with other.chat(other.create()) as chat:
        assert chat.say("Hello")["state"] == "done"
