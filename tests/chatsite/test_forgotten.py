"""Deleted texts are in no column of any table, in no file, and in nothing that is made
of them: a word is planted in every column that can hold one, found by introspection, so
a new column has to be cleared, or named here with a reason.
"""

import random
from datetime import timedelta
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import ForeignKey, QuerySet
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chatsite.contrib.endpoint.models import (
    BodyPiece,
    ClientConversation,
    ClientMessage,
    ProviderSummary,
)
from chatsite.contrib.lab.examples.models import ExampleAnswer
from chatsite.contrib.lab.examples.services import mark_example
from chatsite.contrib.lab.experiments.models import Experiment
from chatsite.contrib.lab.trials.models import Trial
from chatsite.features.attachments.models import (
    FilePassage,
    ImageFile,
    LongFile,
    LongFileUse,
)
from chatsite.features.facts.models import Fact
from chatsite.features.feedback.services import give_feedback
from chatsite.features.review_queue.models import QueueItem
from chatsite.features.rules.models import Rule
from chatsite.features.sharing.models import Share
from chatsite.features.tools.models import ResultFile
from chatsite.features.tree.services import edit_as_branch, list_branch
from chatsite.review.actions import erasing
from chatsite.review.models import Review
from chatsite.turns import commands
from chatsite.turns.models import Job
from memory import library, transcript
from memory.models import Conversation, Message, ModelCall, RecallEntry
from memory.search import recall
from tests.memory.scenes import plant, summarise
from tests.remembered import remembered

from .accounts.test_leaving import bytes_of_database
from .features.attachments.test_uploads import keep as keep_file
from .review.every_page import APPS, in_place, text_columns
from .scenes import (
    HTMX,
    Use,
    answer,
    memory_url,
    talk_in_turns,
    url,
    use_tools,
)

# Of messages, and of what belongs to the conversation itself.
WORD, OWN = "zqforgotten", "zqownwords"
# What has nothing to do with any message, and stays until its conversation is deleted.
OF_CONVERSATION = {
    "memory_conversation.title": "a person has set it",
    "memory_conversation.title_seqs": "numbers",
    "memory_conversation.system_prompt": "a person has written it",
    "memory_conversation.model": "a name",
    "memory_conversation.policy": "settings of a person",
    "memory_conversation.tools": "names",
    "memory_conversation.staged_by": "a token",
    "memory_conversation.imported_from": "an id",
    "memory_conversation.token_sums": "numbers",
    "memory_conversation.set_aside": "numbers",
    "memory_conversation.compaction_owner": "a token",
    "memory_prompt.text": "it was sent with all messages",
    "endpoint_clientconversation.client": "an id",
    "memory_label.name": "a person's own list of names",
    "memory_label.key": "a person's own list of names",
    "desk_review.username": "a name",
    "desk_review.note": "words of staff, who are told that they stay",
    "review_queue_queueitem.note": "words of staff, who are told that they stay",
    "chat_share.token": "a token",
    "chat_share.choices": "codes that the owner chose among",
    "chat_share.reason": "words of staff, who are told that the owner reads them",
}
# Numbers, hashes, codes, names and ids: what the rows that stay are still good for.
OF_ROWS = {
    "memory_message.client_id": "an id",
    "memory_message.tool_call_id": "an id",
    "memory_message.signature": "a hash",
    "memory_summary.trigger": "a kind and numbers",
    "memory_summary.trigger_kind": "a kind",
    "memory_summary.preset": "a name",
    "memory_summary.policy_hash": "a hash",
    "memory_summary.prompt_hash": "a hash",
    "memory_summary.model": "a name",
    "memory_summary.error": "a code",
    "memory_summary.signature": "a hash",
    "memory_summary.status_signature": "a hash",
    "memory_modelcall.refs": "numbers, hashes and names",
    "memory_modelcall.parts": "numbers, and the names of parts",
    "memory_modelcall.sha256": "a hash",
    "memory_modelcall.body_sha256": "a hash",
    "memory_modelcall.body_fields": "options of the site's own, by name",
    "memory_modelcall.model": "a name",
    "memory_modelcall.provider": "a name",
    "memory_modelcall.error": "a code",
    "memory_modelcall.signature": "a hash",
    "chat_job.kind": "a name",
    "chat_job.slot": "a name",
    "chat_job.owner": "a token",
    "attachments_imagefile.type": "a kind",
    "attachments_longfile.sha256": "a hash",
    "attachments_filepassage.terms": "coded words",
    "endpoint_bodypiece.digest": "a hash",
    "endpoint_bodypiece.item_id": "an id",
    "endpoint_providersummary.api": "a name",
    "endpoint_providersummary.provider": "a name",
    "endpoint_clientmessage.chain": "a hash",
    "endpoint_clientmessage.digest": "a hash",
    "endpoint_clientmessage.role": "a name",
    "chat_turn.owner": "a token",
    "chat_turn.model": "a name",
    "chat_turn.error": "a code",
    "chat_toolcall.call_id": "an id",
    "chat_toolcall.name": "a name",
    "chat_toolcall.owner": "a token",
    "chat_toolcall.tool_digest": "a hash of the tool",
    "chat_toolcall.error": "a code",
    "examples_exampleanswer.model": "a name",
    "examples_exampleanswer.preset": "a name",
    "examples_exampleanswer.error": "a code",
    "desk_experiment.policy": "settings of staff",
    "desk_experiment.model": "a name",
    "desk_experiment.error": "a code",
    "desk_experiment.owner": "a token",
    "facts_fact.names": "hashes",
    "trials_trial.changes": "numbers and names",
    "trials_trial.model": "a name",
    "trials_trial.error": "a code",
    "trials_trial.owner": "a token",
}


def make_conversation(owner, word):
    """One with rows in every table that has any for a conversation."""
    made = transcript.create_conversation(owner, title=OWN, system_prompt=OWN)
    file = str(keep_file(owner, word, f"{word}.txt").pk)
    values = {"text": f"One {word}", "client_id": "a", "attachments": [file]}
    commands.send_message(made, **values, run=False)
    answer(made, word)
    talk_in_turns(made, "Always answer in French.")
    late = Use("remind_me", {"text": word}, late=f"Reminder: {word}")
    late.columns = {"handle": {"text": word}}
    waits = Use("remind_me", {"text": word}, "late", f"Later, {word}")
    waits.columns = {"handle": {"text": word}, "next_look_at": Now()}
    no = Use("calculate", {"expression": word}, "cancelled", f"No: {word}")
    no.columns = {"reason": word, "error": "refused"}
    use_tools(made, f"Remind me of {word}", late, waits, no, reply=word)
    made.refresh_from_db()
    first = summarise(made, 1, 2, text=word, flags={"carried": [word]})
    summarise(made, 1, 4, text=word, structured={"a": word}, replaces=[first])
    summarise(made, 5, 9, text="", status="failed", error="timeout")
    give_feedback(made, 2, "bad", word)
    example = mark_example(made, 2, owner, "wrong", word)
    answered = {"conversation": made, "example": example, "user": owner}
    ExampleAnswer.objects.create(**answered, model="m")
    plant_image(made, word)
    plant_long_file(made, word)
    Rule.objects.get_or_create(
        conversation=made,
        message=made.messages.get(seq=3),
        defaults={"start": 0, "end": 6, "state": "confirmed", "text": word},
    )
    Fact.objects.get_or_create(
        conversation=made,
        message=made.messages.get(seq=3),
        defaults={"owner": owner, "start": 0, "end": 6, "state": "kept", "text": word},
    )
    for model, values in rows_besides(made, word):
        model.objects.create(conversation=made, **values)
    plant_in_all(made, word)
    return made


def plant_image(made, word):
    data = word.encode()
    ImageFile.objects.create(
        **{"conversation": made, "message": made.messages.get(seq=1)},
        **{"file_id": uuid4(), "type": "image/png", "size": 1},
        **{"data": data, "small": data},
    )


def plant_long_file(made, word):
    values = {"conversation": made, "message": made.messages.get(seq=1)}
    file = LongFile.objects.create(owner=made.owner, sha256="a", chars=len(word))
    LongFileUse.objects.create(**values, file=file)
    values = {"file": file, "number": 1, "start": 0, "end": len(word)}
    FilePassage.objects.create(**values, text=word, terms="")


def rows_besides(made, word):
    versions = [{"first_seq": 1, "last_seq": 99, "text": word}]
    result = {"steps": {"versions": versions}, "sides": {"real": {"lost": [word]}}}
    values = {"user": made.owner, "model": "m", "budget": 1, "last_seq": 99}
    yield Experiment, {**values, "state": "done", "result": result}
    values = {"user": made.owner, "version": 1, "last_seq": 2, "memory_version": 1}
    yield Review, {**values, "note": OWN}
    found = {"source": 1, "number": 2, "found_at": timezone.now()}
    yield QueueItem, {**found, "kind": "turn", "note": OWN}
    first = made.messages.get(seq=1)
    yield ClientConversation, {"family": made.uuid, "client": "an id", "length": 1}
    values = {"message": first, "digest": b"a", "is_ascii": True}
    yield BodyPiece, {**values, "number": 0, "text": f'{{"content":"{word}"}}'}
    values = {"api": "messages", "last_seq": 99}
    yield ProviderSummary, {**values, "block": f'{{"content":"{word}"}}'}
    values = {"message": first, "digest": b"a", "chain": b"a", "owner": made.owner}
    yield ClientMessage, {**values, "position": 0, "role": "user", "size": 1}
    yield Trial, {"message": made.messages.get(seq=2), "model": "m", "state": "done"}
    answer = made.messages.filter(role="tool").first()
    yield ResultFile, {"message": answer, "place": 0, "data": word.encode()}
    asked = {"seq": 2, "typed": word, "focus": word}
    saved = {"0": [word, "stop"]}
    values = {"user": made.owner, "slot": "a", "owner": "a", "state": "done"}
    result = {"text": word}
    yield (
        Job,
        {
            **values,
            "kind": "proposal",
            "values": asked,
            "saved": saved,
            "result": result,
        },
    )
    ends = timezone.now() + timedelta(days=1)
    yield Share, {"token": "t" * 32, "last_seq": 99, "expires_at": ends}


# Tables without rows of a conversation.
APART = {
    "accounts_namekey": "digests of a name, which go with the account",
    "budgets_budget": "numbers",
    "evidence_signingkey": "the site's keys",
    "evidence_signedfile": "hashes of signed files, which no text leads to",
    "quiz_guesscount": "two numbers",
    "sharing_guest": "a number and a time",
    "budgets_monthlyuse": "numbers, and the names of models",
    "memory_agentthread": "threads of agents outside of the site",
    "memory_upload": "files that were not sent",
    "announcements_announcement": "words of staff for everyone",
    "chat_preferences": "of a person",
    "chat_presence": "of a process",
    "devices_device": "of a person",
    "desk_accessevent": "its tests say that it has no texts",
    "desk_tombstone": "written when a conversation is erased",
    "experiments_sample": "numbers, names and settings of staff",
    "endpoint_apikey": "goes with the account of the person",
    "endpoint_providererasure": "ids of replies that the provider is to delete",
    "endpoint_clientrequest": "codes, counts and ids, which go with their request",
    "retention_retentionrun": "numbers",
    "tree_branch": "numbers, and the id of a message",
    "switches_switchedoff": "names of models and tools, and reasons of staff",
    "signin_mailedlink": "goes with the account of the person",
    "signin_membership": "goes with the account of the person",
}


def plant_in_all(conversation, word):
    """The word in each column that no reason is given for."""
    for app in APPS:
        for model in apps.get_app_config(app).get_models():
            table = model._meta.db_table
            names = [f for f in columns_of(model) if name_of(f) not in OF_ROWS]
            columns = [f for f in names if name_of(f) not in OF_CONVERSATION]
            rows = rows_of(model, conversation) if columns else ()
            assert rows or not columns or table in APART, f"no row is made in {table}"
            for row in rows:
                plant(row, **{f.name: with_word(row, f, word) for f in columns})


def columns_of(model):
    """Return the columns that can hold words, bytes included."""
    yield from text_columns(model)
    for field in model._meta.concrete_fields:
        if field.get_internal_type() == "BinaryField":
            yield field


def name_of(field):
    return f"{field.model._meta.db_table}.{field.column}"


def rows_of(model, conversation):
    """Return the rows of the conversation itself, of one of its rows, or
    linked to it.
    """
    if model is Conversation:
        return QuerySet(model).filter(pk=conversation.pk)
    if model is FilePassage:
        return QuerySet(model).filter(file__uses__conversation=conversation)
    for field in model._meta.get_fields():
        if field.related_model is Conversation and (
            field.concrete or field.many_to_many
        ):
            return QuerySet(model).filter(**{field.name: conversation})
    for field in model._meta.concrete_fields:
        if isinstance(field, ForeignKey) and field.related_model is Message:
            by = {f"{field.name}__conversation": conversation}
            return QuerySet(model).filter(**by)
    return QuerySet(model).none()


def with_word(row, field, word):
    value = getattr(row, field.name)
    if word in readable(value) or row._meta.model is RecallEntry:
        return value  # where and how the site itself has put it
    if field.get_internal_type() != "JSONField":
        return f"{value} {word}"[-(field.max_length or 1_000) :]
    if isinstance(row, Message) and field.name != "extras":
        return value  # what it has names calls and files
    return in_place(value or {}, word)


def places_of(word):
    """The columns of all tables, those of the database's text index too, that have the
    word in a row."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                has = [word in readable(value) for value in row]
                found |= {
                    f"{table}.{n}" for n, is_in in zip(names, has, strict=True) if is_in
                }
    return found


def readable(value):
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode(errors="replace")
    return str(value)


def delete_messages(client, conversation):
    for seq in conversation.messages.order_by("seq").values_list("seq", flat=True):
        target = memory_url("message", conversation, seq=seq, name="delete")
        assert client.post(target, headers=HTMX).status_code == 200


@pytest.fixture
@remembered
def planted(alice):
    return make_conversation(alice, WORD)


@pytest.mark.django_db
class TestTables:
    def test_each_table_of_the_site_has_the_word(self, planted):
        """Or else the other tests prove nothing."""
        columns = {
            name_of(field)
            for app in APPS
            for model in apps.get_app_config(app).get_models()
            for field in columns_of(model)
            if model._meta.db_table not in APART
        }
        coded = {"memory_recallentry.terms", "memory_recallentry.dates"}
        assert columns - places_of(WORD) - coded <= {*OF_ROWS, *OF_CONVERSATION}
        assert {*OF_ROWS, *OF_CONVERSATION} <= columns

    def test_columns_hold_no_word_of_deleted_messages(self, client, planted):
        assert recall.recall_messages(planted, WORD)
        delete_messages(client, planted)
        assert places_of(WORD) == set()
        assert set(RecallEntry.objects.values_list("terms", "dates")) == {("", "")}
        assert not recall.recall_messages(planted, WORD)

    def test_exports_pages_and_links_hold_no_word_of_deleted_messages(
        self, client, planted
    ):
        delete_messages(client, planted)
        names = ("detail", "transcript", "context-json", "summaries")
        names += ("export-json", "export-md")
        for name in names:
            answer = client.get(url(name, planted))
            assert (name, answer.status_code) == (name, 200)
            assert WORD not in answer.content.decode(), name
        shared = Client().get(reverse("shared-page", args=[planted.shares.get().token]))
        assert (shared.status_code, WORD in shared.content.decode()) == (200, False)


WORDS = [f"zqsecret{n}x" for n in range(1, 9)]
ORDERS = {
    "first to last": WORDS,
    "last to first": WORDS[::-1],
    "from the middle": [*WORDS[3:], *WORDS[:3]],
    **{
        f"shuffled by {seed}": random.Random(seed).sample(WORDS, len(WORDS))
        for seed in range(5)
    },
}


@pytest.mark.django_db
class TestOrders:
    """Each message has a word of its own, as has its reply; the title is the site's."""

    @pytest.fixture
    @remembered
    def talked(self, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, *WORDS)
        made.refresh_from_db()
        return made

    def delete(self, client, conversation, word):
        rows = conversation.messages.filter(text__contains=word).order_by("-seq")
        for seq in rows.values_list("seq", flat=True):
            target = memory_url("message", conversation, seq=seq, name="delete")
            client.post(target, {"edited": "write"}, headers=HTMX)

    @pytest.mark.parametrize("order", ORDERS)
    def test_columns_lose_the_words_of_a_deleted_message(self, client, talked, order):
        summarise(talked, 1, 8, text=" ".join(WORDS[:4]), model="m")
        for word in ORDERS[order]:
            self.delete(client, talked, word)
            assert places_of(word) == set()

    @pytest.mark.parametrize("order", ORDERS)
    def test_titles_that_a_model_made_have_no_such_word(self, client, talked, order):
        rows = Conversation.objects.filter(pk=talked.pk)
        rows.update(title=f"About {WORDS[1]}", title_seqs=[1, 4])
        for word in ORDERS[order]:
            self.delete(client, talked, word)
            assert word not in rows.get().title
            is_kept = {WORDS[0], WORDS[1]}.isdisjoint(
                ORDERS[order][: ORDERS[order].index(word) + 1]
            )
            assert (rows.get().title == f"About {WORDS[1]}") is is_kept

    def test_title_that_an_older_release_wrote_goes_with_what_it_asked_about(
        self, client, talked
    ):
        """The title records the request, and leaves the sources of the title before."""
        rows = Conversation.objects.filter(pk=talked.pk)
        values = {"purpose": "title", "sha256": "0" * 64, "model": "m"}
        values |= {"refs": {"messages": [3, 4]}, "tokens_estimated": 1}
        ModelCall.objects.create(conversation=talked, **values)
        rows.update(title=f"About {WORDS[1]}", title_set_by="auto", title_seqs=[1])
        assert transcript.list_title_seqs(talked) == [1, 3, 4]
        self.delete(client, talked, WORDS[1])
        assert WORDS[1] not in rows.get().title

    @pytest.mark.parametrize("source", ["auto", "copy"])
    def test_a_title_of_unknown_messages_goes_with_any(self, client, talked, source):
        rows = Conversation.objects.filter(pk=talked.pk)
        rows.update(title="From somewhere", title_set_by=source, title_seqs=None)
        self.delete(client, talked, WORDS[6])
        assert rows.get().title == WORDS[0]

    def test_a_title_of_a_person_stays(self, client, talked):
        transcript.rename_conversation(talked, "Mine")
        for word in WORDS:
            self.delete(client, talked, word)
        talked.refresh_from_db()
        assert talked.title == "Mine"

    @pytest.mark.parametrize("place", [0, 2, 5])
    def test_branches_forget_the_title_that_went_over(self, client, talked, place):
        made = edit_as_branch(talked, seq=2 * place + 1, text="Else", client_id="b")
        list_branch(made)
        self.delete(client, talked, WORDS[0])
        assert places_of(WORDS[0]) == set()


@pytest.mark.django_db(transaction=True)
@pytest.mark.database("sqlite")
def test_the_file_has_no_word_of_deleted_messages(client, planted):
    assert WORD.encode() in bytes_of_database()
    delete_messages(client, planted)
    library.empty_journal()
    assert WORD.encode() not in bytes_of_database()


@pytest.mark.django_db(transaction=True)
class TestConversation:
    @pytest.mark.parametrize("by", ["purge", "undo ended", "staff", "temporary"])
    def test_deleted_conversation_leaves_nothing(self, client, planted, staff, by):
        if by == "staff":
            erasing.erase_with_tombstone(planted, user=staff, reason="Asked for.")
        elif by == "temporary":
            rows = Conversation.objects.filter(pk=planted.pk)
            rows.update(temporary_until=Now())
            client.post(url("delete", planted))
            library.purge_deleted()
        else:
            client.post(url("delete", planted))
            assert library.purge_deleted() == 0
            if by == "purge":
                rows = Conversation.objects.filter(pk=planted.pk)
                rows.update(deleted_at=Now() - library.UNDO * 2)
            else:
                library.end_undo(planted.owner, [planted.uuid])
            assert library.purge_deleted() == 1
        assert not Conversation.objects.exists()
        assert places_of(WORD) == places_of(OWN) == set()
        if connection.vendor == "sqlite":
            held = bytes_of_database()
            assert WORD.encode() not in held
            assert OWN.encode() not in held
