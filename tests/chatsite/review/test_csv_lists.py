"""Lists of the admin as files: what the list shows, and nothing that it hides."""

import csv
import io

import pytest
from axes.models import AccessAttempt
from channels.db import database_sync_to_async
from django.contrib.admin import site
from django.test import AsyncClient
from django.urls import reverse

from chatsite.review import csv_lists
from chatsite.review.models import AccessEvent
from chatsite.review.readonly import ShortListAdmin
from memory import transcript
from memory.models import Conversation, Message
from tests.memory.scenes import plant, talk

from .every_page import make_conversation

pytestmark = pytest.mark.django_db(transaction=True)
HANDS = ("metadata", "export")
READS = ("metadata", "content", "export")
SECRET = "Zebraquark"


@pytest.fixture
def fetch(staff_with):
    """fetch(rights or user, model, rows) -> the response and its lines."""
    known = {}

    async def get(rights, model, rows, **params):
        if isinstance(rights, tuple) and rights not in known:
            known[rights] = await in_thread(staff_with, *rights)
        user = known.get(rights, rights)
        client = AsyncClient()
        backend = "django.contrib.auth.backends.ModelBackend"
        await client.aforce_login(user, backend=backend)
        meta = model._meta
        url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        chosen = [row.pk for row in rows]
        form = {"action": "download_csv", "_selected_action": chosen, **params}
        answer = await client.post(url, form)
        if not answer.streaming:
            return answer, []
        text = b"".join([part async for part in answer.streaming_content]).decode()
        assert text.startswith("\ufeff")
        return answer, list(csv.DictReader(io.StringIO(text[1:])))

    return get


async def in_thread(work, *args):
    return await database_sync_to_async(work)(*args)


def make(owner, title):
    made = transcript.create_conversation(owner, title=title)
    talk(made, 1)
    return made


async def test_csv_has_what_the_list_shows(fetch, alice):
    rows = [await in_thread(make, alice, f"{SECRET}, <b>&amp; 你好</b>")]
    answer, lines = await fetch(READS, Conversation, rows)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "conversation-20" in answer["Content-Disposition"]
    (line,) = lines
    assert line["title"] == f"{SECRET}, <b>&amp; 你好</b>"
    assert line["id"] == str(rows[0].uuid)[:8]
    assert (line["owner"], line["messages"]) == ("alice", "2")


async def test_csv_is_masked_as_the_list_is(fetch, alice):
    rows = [await in_thread(make, alice, SECRET)]
    _answer, (line,) = await fetch(HANDS, Conversation, rows)
    assert line["title"] == f"hidden, {len(SECRET)} characters"
    messages = await in_thread(list, Message.objects.all())
    _answer, lines = await fetch(HANDS, Message, messages)
    assert {line["text"][:8] for line in lines} == {"hidden, "}
    events = await in_thread(events_of)
    assert events == [("csv conversation", None), ("csv message", None)]


def events_of():
    rows = AccessEvent.objects.filter(action="csv").order_by("pk")
    return [*rows.values_list("target", "conversation")]


async def test_csv_records_whose_texts_it_has(fetch, alice):
    rows = [await in_thread(make, alice, title) for title in ("One", "Two")]
    await fetch(READS, Conversation, rows)
    whose = {(target, uuid) for target, uuid in await in_thread(events_of) if uuid}
    assert whose == {("list conversation", row.uuid) for row in rows}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", " =", "\uff1d"])
async def test_csv_has_no_text_that_is_a_formula(fetch, alice, start):
    rows = [await in_thread(make, alice, "x")]
    await in_thread(lambda: plant(rows[0], title=f"{start}1+1|cmd"))
    _answer, (line,) = await fetch(READS, Conversation, rows)
    assert line["title"] == f"'{start}1+1|cmd"


async def test_a_file_that_is_not_all_says_so(fetch, alice, monkeypatch):
    monkeypatch.setattr(csv_lists, "MAX_ROWS", 2)
    monkeypatch.setattr(csv_lists, "AT_ONCE", 1)
    rows = [await in_thread(make, alice, title) for title in ("One", "Two", "Three")]
    everything = {"select_across": "1"}
    answer, lines = await fetch(READS, Conversation, rows, **everything)
    assert [line["title"] for line in lines] == ["Three", "Two"]
    assert "-first-2.csv" in answer["Content-Disposition"]


async def test_csv_needs_the_right_to_export(fetch, alice):
    rows = [await in_thread(make, alice, SECRET)]
    answer, lines = await fetch(("metadata", "content"), Conversation, rows)
    assert (answer.status_code, lines) == (302, [])
    assert not await in_thread(events_of)


async def test_each_list_has_it(fetch, alice, django_user_model):
    boss = await in_thread(django_user_model.objects.create_superuser, "boss")
    await in_thread(make_conversation, alice, SECRET)
    await AccessAttempt.objects.acreate(failures_since_start=1)
    listed = [each for each in site._registry.values() if is_listed(each)]
    counts = []
    for each in listed:
        rows = await in_thread(list, each.model.objects.all()[:3])
        answer, lines = await fetch(boss, each.model, rows)
        assert answer.status_code == 200, each
        counts.append(len(lines))
    # Calls of tools, and invitations among the links by mail.
    assert counts.count(0) <= 2
    assert len(counts) >= 18


def is_listed(admin):
    return isinstance(admin, ShortListAdmin)


def test_the_bound_is_said():
    said = ShortListAdmin.download_csv.short_description
    assert f"at most {csv_lists.MAX_ROWS:,} rows" in str(said)
