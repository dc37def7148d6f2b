"""Texts that were sent with conversations: whose they are, and when they go."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memory import bundle, context, library, prompts, transcript
from memory.models import Conversation, ModelCall, Prompt
from memory.view import rebuilding
from tests.databases import forget_statistics

from .scenes import say, talk

OWN = "You know my secret."


@pytest.fixture
def own(alice):
    made = transcript.create_conversation(alice, system_prompt=OWN)
    talk(made, 1)
    return made


def is_kept(text=OWN):
    return Prompt.objects.filter(text=text).exists()


def test_prompt_is_removed_with_its_last_conversation(own, bob):
    other = transcript.create_conversation(bob, system_prompt=OWN)
    talk(other, 1)
    library.erase_conversation(own)
    assert is_kept()
    library.erase_conversation(other)
    assert not is_kept()


def test_branch_keeps_the_texts_of_its_requests(own, alice):
    made = transcript.create_conversation(alice)
    bundle.write_bundle(made, bundle.read_bundle(own, 2))
    library.erase_conversation(own)
    [call] = made.model_calls.filter(purpose="reply")
    assert rebuilding.verify_context(call)
    library.erase_conversation(made)
    assert not is_kept()


def test_imported_prompt_is_removed_even_without_a_request(alice):
    made = transcript.create_conversation(alice)
    bundle.write_bundle(made, bundle.Bundle(prompts={prompts.hash_text(OWN): OWN}))
    library.erase_conversation(made)
    assert not is_kept()


def test_a_second_request_links_nothing_twice(own):
    built = context.build_request_context(own)
    with CaptureQueriesContext(connection) as asked, transaction.atomic():
        prompts.keep_texts(own, built.texts)
    assert len([each for each in asked if "SAVEPOINT" not in each["sql"]]) <= 4
    assert own.prompts.count() == 2


@pytest.mark.database("sqlite")
@pytest.mark.django_db(transaction=True)
def test_erasing_reads_no_table_from_end_to_end(own, bob):
    talk(transcript.create_conversation(bob), 3)
    with CaptureQueriesContext(connection) as asked:
        library.erase_conversation(own)
    plans = []
    with connection.cursor() as cursor:
        forget_statistics(cursor)
        for each in asked:
            if each["sql"].startswith(("SELECT", "DELETE", "UPDATE")):
                cursor.execute("EXPLAIN QUERY PLAN " + each["sql"].replace("%", "%%"))
                plans += [row[3] for row in cursor.fetchall()]
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN")] == []


def test_old_requests_are_linked_and_unused_texts_removed(own, alice):
    ModelCall.objects.create(
        conversation=own,
        purpose="reply",
        refs={"system": ["x"]},
        sha256="0" * 64,
        model="m",
        tokens_estimated=1,
    )
    own.prompts.clear()
    Prompt.objects.create(sha256="f" * 64, text="Left by an import")
    prompts.link_all()
    prompts.link_all()
    assert own.prompts.count() == 2
    assert not is_kept("Left by an import")


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_a_request_waits_for_an_erasure_and_stores_the_text_again(own, bob):
    other = transcript.create_conversation(bob, system_prompt=OWN)
    gone, going = Event(), Event()

    def erase():
        with transaction.atomic():
            library.erase_conversation(own)
            going.set()
            gone.wait(1)
        connection.close()

    def record():
        going.wait(5)
        say(other, "Hello")
        connection.close()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(erase), threads.submit(record)]:
            done.result(10)
    assert is_kept()
    assert rebuilding.verify_context(other.model_calls.get())


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_an_erasure_waits_for_a_request_that_is_being_recorded(own, bob):
    other = transcript.create_conversation(bob, system_prompt=OWN)
    recorded = Event()

    def record():
        with transaction.atomic():
            say(other, "Hello")
            recorded.set()
            Event().wait(0.5)
        connection.close()

    def erase():
        recorded.wait(5)
        library.erase_conversation(own)
        connection.close()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(record), threads.submit(erase)]:
            done.result(10)
    assert not Conversation.objects.filter(pk=own.pk).exists()
    assert rebuilding.verify_context(other.model_calls.get())


def test_second_erasure_raises_does_not_exist(own):
    library.erase_conversation(own)
    with pytest.raises(Conversation.DoesNotExist):
        library.erase_conversation(own)
