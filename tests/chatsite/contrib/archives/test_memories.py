"""Memories of ChatGPT and Claude, imported as facts that wait for an answer."""

import io
import json
import zipfile

import pytest
from django.urls import reverse

from chatsite.contrib.archives.memories import list_statements
from chatsite.features.facts.models import Fact
from chatsite.features.facts.services import keep_fact
from chatsite.features.facts.store import facts_of
from chatsite.features.importing.files.reading import SITES
from memory.models import Conversation
from tests.chatsite.features.importing.test_importing import take, work_off
from tests.chatsite.scenes import violations

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "Ann writes a book about ships. " + "She likes the sea very much indeed. " * 8
CLAUDE = {
    "conversations_memory": f"**Work context**\n\nAnn is a nurse in Oslo.\n\n{LONG}",
    "project_memories": {"p-1": "The garden has three beds.", "p-2": None},
    "account_uuid": "a-1",
}
CHATGPT = {
    "memories": [
        {"id": "1", "content": "Lives in Kyoto.", "created_timestamp": 1_700_000_000},
        {"id": "2", "content": "[2025-03-02] - Is vegetarian.", "updated_at": "soon"},
        {"id": "3", "content": 7},
        "no entry",
    ]
}
TALK = {
    "uuid": "c-1",
    "name": "Ships",
    "chat_messages": [{"uuid": "m", "sender": "human", "text": "Hello"}],
}


def words_of(user):
    return [fact.words for fact in facts_of(user.pk).order_by("pk")]


def test_memory_of_claude_becomes_offered_facts_with_their_source(alice):
    outcome = take(alice, [CLAUDE])
    [made] = outcome.imported
    found = words_of(alice)
    assert found[:2] == ["Ann is a nurse in Oslo.", "Ann writes a book about ships."]
    assert found[-1] == "The garden has three beds."
    assert "Work context" not in " ".join(found)
    assert {fact.state for fact in Fact.objects.all()} == {"offered"}
    fact = Fact.objects.select_related("message").first()
    assert (fact.conversation, fact.message.role) == (made, "user")
    assert made.title == "Memory of Claude"
    keep_fact(alice.pk, fact.pk)
    assert violations() == []


def test_memory_of_chatgpt_becomes_facts_without_the_day_before_them(alice):
    [made] = take(alice, CHATGPT).imported
    assert words_of(alice) == ["Lives in Kyoto.", "Is vegetarian."]
    assert made.messages.get().created_at.year == 2023
    assert made.imported_from.startswith("chatgpt:memory-")


def test_memory_is_imported_once_and_a_later_state_again(alice):
    take(alice, CHATGPT)
    assert take(alice, CHATGPT).imported == []
    later = {"memories": [*CHATGPT["memories"], {"content": "Has a dog."}]}
    assert len(take(alice, later).imported) == 1


@pytest.mark.parametrize("name", ["memories.json", "memories/a-1.json"])
def test_archive_of_claude_brings_its_memory_along(alice, name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data/conversations.json", json.dumps([TALK]))
        archive.writestr(f"data/{name}", json.dumps([CLAUDE]))
        archive.writestr("memories.json", "of another folder")
    outcome = take(alice, file.getvalue())
    assert len(outcome.imported) == 2
    assert "Ann is a nurse in Oslo." in words_of(alice)


@pytest.mark.parametrize(
    "item",
    [
        {"conversations_memory": None},
        {"conversations_memory": ["x"], "project_memories": [1]},
        {"memories": []},
        {"memories": [None, {"content": " "}]},
    ],
)
def test_memory_without_words_is_left_out_with_a_reason(alice, item):
    outcome = take(alice, [item])
    assert (outcome.imported, len(outcome.notices)) == ([], 1)
    assert not Conversation.objects.exists()


def test_more_facts_than_there_is_room_for_are_reported(alice):
    rows = [{"content": f"Fact number {number}."} for number in range(120)]
    outcome = take(alice, {"memories": rows})
    assert len(words_of(alice)) == 100
    assert "20" in str(outcome.notices)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- One.\n* Two", ["One.", "Two"]),
        ("# Head\n**Head**\n**Head:** words", ["**Head:** words"]),
        ("x" * 201, []),
        ("好" * 150 + "。" + "的" * 150, ["好" * 150 + "。", "的" * 150]),
        ("\n \n- \n[unknown] - ", []),
    ],
)
def test_statements_are_lines_or_sentences_of_long_ones(text, found):
    assert [text[a:b] for a, b in list_statements(text)] == found


def paste(client, text, site):
    given = {"memories": text, "site": site}
    answer = client.post(reverse("import"), given)
    work_off()
    return answer


@pytest.mark.parametrize("site", ["chatgpt", "claude"])
def test_pasted_lines_become_offered_facts_with_their_source(alice, client, site):
    client.force_login(alice)
    text = "- Ann is a nurse in Oslo.\n[2025-03-02] - Is vegetarian."
    assert paste(client, text, site).status_code == 302
    assert words_of(alice) == ["Ann is a nurse in Oslo.", "Is vegetarian."]
    assert {fact.state for fact in Fact.objects.all()} == {"offered"}
    [made] = Conversation.objects.all()
    assert made.title == f"Memory of {SITES[site]}"
    assert violations() == []


@pytest.mark.parametrize(
    ("text", "site"),
    [(" ", "claude"), ("Is vegetarian.", "other"), ("a" * 100_001, "claude")],
)
def test_bad_pasted_lines_are_refused_in_their_form(alice, client, text, site):
    client.force_login(alice)
    answer = paste(client, text, site)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "form-error" in page.partition("memories-heading")[2]
    assert "form-error" not in page.partition("memories-heading")[0]
    assert not Conversation.objects.exists()
