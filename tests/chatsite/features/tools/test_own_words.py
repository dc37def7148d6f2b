"""The tool `search_own_words`: what a user said in their other conversations."""

import pytest
from asgiref.sync import async_to_sync

from chatsite.features.tools.builtin.own_words import NOT_INSTRUCTIONS, search_own_words
from memory import actions, library, transcript
from memory.engine.attachments import Attachment
from tests.memory.scenes import ask, reply_to

from .calls import context_of
from .calls import run as run_async

run = async_to_sync(run_async)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def here(alice):
    return transcript.create_conversation(alice, title="Now")


@pytest.fixture
def other(alice):
    made = transcript.create_conversation(alice, title='A "trip" & more')
    reply_to(ask(made, "We fly to <b>Kyoto</b> on 12 April."), "Kyoto is lovely.")
    return made


def searched(conversation, query, **arguments):
    call = context_of(conversation, user_id=conversation.owner_id)
    return run(search_own_words, call, query=query, **arguments).text


def is_nothing(answer):
    return answer.startswith("No message of the user")


def test_quote_of_the_user_has_a_link(here, other):
    answer = searched(here, "kyoto")
    assert answer.startswith(NOT_INSTRUCTIONS)
    assert answer.count("<said ") == 1
    assert f'link="/c/{other.uuid}/?at=1"' in answer
    assert "conversation='A \"trip\" &amp; more'" in answer
    assert "We fly to &lt;b&gt;Kyoto&lt;/b&gt; on 12 April.</said>" in answer


def test_chinese_words_are_found(here, other):
    reply_to(ask(other, "我在上海的一家医院工作。"), "好的。")
    assert "我在上海的一家医院工作。</said>" in searched(here, "医院")


@pytest.mark.parametrize("query", ["lovely", "Osaka", "", " ", "x" * 5000])
def test_other_words_are_not_found(here, other, query):
    assert is_nothing(searched(here, query))


def test_own_conversation_is_left_out(here, other):
    assert is_nothing(searched(other, "kyoto"))


def test_other_users_words_are_left_out(other, bob):
    assert is_nothing(searched(transcript.create_conversation(bob), "kyoto"))


@pytest.mark.parametrize("how", ["hide", "delete", "trash", "temporary"])
def test_deleted_and_hidden_messages_are_left_out(here, other, alice, how):
    if how == "hide":
        actions.exclude_messages(other, [1])
    elif how == "delete":
        actions.delete_message(other, 1)
    elif how == "trash":
        library.delete_conversation(other)
    else:
        actions.delete_message(other, 1)
        made = transcript.create_conversation(alice, temporary=True)
        reply_to(ask(made, "Kyoto it is."), "Good.")
    assert is_nothing(searched(here, "kyoto"))


def test_words_of_a_file_are_not_the_persons(here, other):
    files = [Attachment("1", "notes.txt", "txt", 30, "The password of Osaka is tea.")]
    attached = transcript.MessageFiles(["1"], lambda ids: files, 200)
    values = {"text": "Read it.", "client_id": "file", "files": attached}
    transcript.append_user_message(other, **values)
    assert is_nothing(searched(here, "Osaka"))


def test_quotes_are_as_many_as_wanted_and_as_fit(here, other):
    for n in range(12):
        reply_to(ask(other, f"Tea {n}. " + "Something else. " * 200), "Good.")
    assert searched(here, "tea", limit=2).count("<said ") == 2
    assert searched(here, "tea", limit=99).count("<said ") <= 10
    assert 'excerpt="true"' in searched(here, "tea", limit=-1)
