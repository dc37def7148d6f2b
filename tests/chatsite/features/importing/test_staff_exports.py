"""Copies to hand over: whole for those who may read, without words for the others."""

import hashlib
import io
import json
import zipfile

import pytest
from channels.db import database_sync_to_async
from django.test import AsyncClient, Client
from django.urls import reverse

from chatsite.review.models import AccessEvent
from memory import library, transcript
from tests.memory.scenes import plant, summarise

from ...scenes import talk_in_turns
from .test_importing import take

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "Zebraquark"
POLICY = {"preset": "guide", "important": [SECRET], "final_prompt": f"Mind {SECRET}."}


@pytest.fixture
def conversations(alice):
    return [make(alice, f"{name} {SECRET}") for name in ("One", "Two")]


def make(owner, title):
    made = transcript.create_conversation(
        owner, title=title, system_prompt=f"{SECRET}!", policy=dict(POLICY)
    )
    talk_in_turns(made, f"Say {SECRET}", "你好")
    summarise(
        made, 1, 2, text=f"About {SECRET}.", structured={"a": SECRET},
        flags={"unsupported": [SECRET]},
    )  # fmt: skip
    asked = {"name": "f", "args": {"q": SECRET}, "id": "1"}
    plant(made.messages.get(seq=2), tool_calls=[asked])
    call = made.model_calls.filter(purpose="reply").first()
    plant(call, error=SECRET, refs={**call.refs, SECRET: SECRET})
    return made


@pytest.fixture
def fetch(staff_with):
    """fetch(rights, rows, act) -> what came, as bytes."""
    known = {}

    async def get(rights, rows, act, meanwhile=None):
        if rights not in known:
            known[rights] = await in_thread(staff_with, *rights)
        client = AsyncClient()
        await client.aforce_login(
            known[rights], backend="django.contrib.auth.backends.ModelBackend"
        )
        url, fields = asked(rows, act)
        answer = await client.post(url, fields)
        assert "attachment" in answer["Content-Disposition"]
        if meanwhile:
            await in_thread(library.erase_conversation, meanwhile)
        return b"".join([part async for part in answer.streaming_content])

    return get


async def in_thread(work, *args):
    return await database_sync_to_async(work)(*args)


def asked(rows, act):
    """The page of one conversation, or the list for several."""
    if len(rows) == 1:
        url = reverse("staff-export", args=[rows[0].pk])
        return url, {"format": act, "uuid": rows[0].uuid}
    url = reverse("admin:memory_conversation_changelist")
    return url, {"action": act, "_selected_action": [row.pk for row in rows]}


READER = ("metadata", "content", "export")
CLERK = ("metadata", "export")


def logged():
    rows = AccessEvent.objects.filter(action="export").order_by("id")
    return list(rows.values_list("conversation", "target"))


class TestRights:
    @pytest.mark.parametrize("right", [None, "content", "purge"])
    def test_export_needs_a_right_of_its_own(self, client, staff_with, alice, right):
        row = make(alice, "One")
        url, fields = asked([row], "json")
        client.force_login(staff_with("metadata", *filter(None, [right])))
        assert client.post(url, fields).status_code == 403
        page = reverse("admin:memory_conversation_change", args=[row.pk])
        assert url not in client.get(page).content.decode()
        client.force_login(staff_with("metadata", "export"))
        assert url in client.get(page).content.decode()
        assert client.post(url, {"format": "xml"}).status_code == 302

    def test_export_needs_a_csrf_token(self, staff_with, alice):
        url, fields = asked([make(alice, "One")], "json")
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(staff_with("metadata", "export"))
        assert strict.post(url, fields).status_code == 403


class TestWhole:
    async def test_export_has_everything_and_is_logged(self, fetch, conversations):
        [one, _] = conversations
        value = json.loads(await fetch(READER, [one], "json"))
        assert value["texts"] is True
        assert value["conversation"]["title"] == f"One {SECRET}"
        assert [row["text"] for row in value["messages"]][0] == f"Say {SECRET}"
        assert await in_thread(logged) == [(one.uuid, "export json")]

    async def test_export_can_be_markdown(self, fetch, conversations):
        text = (await fetch(READER, conversations[:1], "md")).decode()
        assert f"# One {SECRET}" in text
        assert "你好" in text

    async def test_many_are_one_document_that_can_be_imported(
        self, fetch, conversations, bob
    ):
        value = json.loads(await fetch(READER, conversations, "export_json"))
        assert value["exported_by"] == "staff-metadata-content-export"
        document = {"conversations": value["conversations"]}
        outcome = await in_thread(take, bob, document)
        assert len(outcome.imported) == 2
        assert len(await in_thread(logged)) == 2

    async def test_many_are_a_zip_with_two_files_each(self, fetch, conversations):
        data = await fetch(READER, conversations, "export_zip")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
            texts = [archive.read(name).decode() for name in names]
        assert sorted(names) == sorted(
            f"conversation-{row.uuid}.{form}"
            for row in conversations
            for form in ("json", "md")
        )
        assert all(SECRET in text for text in texts)
        assert [t for _, t in await in_thread(logged)] == ["export json md"] * 2

    async def test_conversation_erased_meanwhile_is_left_out(
        self, fetch, conversations
    ):
        one, two = conversations
        data = await fetch(READER, [one, two], "export_json", meanwhile=two)
        [left] = json.loads(data)["conversations"]
        assert left["conversation"]["uuid"] == str(one.uuid)

    async def test_broken_references_stop_no_export(self, fetch, conversations):
        [one, _] = conversations
        call = await one.model_calls.filter(purpose="reply").afirst()
        await in_thread(lambda: plant(call, refs={"system": 1}))
        assert "references are broken" in (await fetch(READER, [one], "md")).decode()


class TestMasked:
    async def test_masked_export_has_no_words(self, fetch, conversations):
        for act in ("json", "md"):
            text = (await fetch(CLERK, conversations[:1], act)).decode()
            assert SECRET not in text
            assert "你好" not in text
            assert (await in_thread(logged))[-1][1] == f"export {act}, without texts"

    async def test_masked_export_of_many_has_no_words(self, fetch, conversations):
        packed = await fetch(CLERK, conversations, "export_zip")
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            files = [archive.read(name) for name in archive.namelist()]
        for data in (await fetch(CLERK, conversations, "export_json"), b"".join(files)):
            assert SECRET.encode() not in data
            assert data.count(b"sha256") > 10

    async def test_the_numbers_and_the_hashes_stay(self, fetch, conversations):
        value = json.loads(await fetch(CLERK, conversations[:1], "json"))
        first, text = value["messages"][0], f"Say {SECRET}"
        assert value["texts"] is False
        assert (first["seq"], first["text"]) == (1, None)
        assert first["text_length"] == len(text)
        assert first["text_sha256"] == hashlib.sha256(text.encode()).hexdigest()
        [summary] = value["summaries"]
        assert (summary["version"], summary["last_seq"]) == (1, 2)
        assert (summary["text"], summary["structured"]) == (None, None)
        assert value["conversation"]["title_length"] == len(f"One {SECRET}")
        assert value["conversation"]["policy"]["preset"] == "guide"
        assert value["model_calls"][0]["sha256"]
        assert set(value["prompts"].values()) == {None}

    async def test_texts_are_masked_if_staff_may_not_read(
        self, fetch, conversations, settings
    ):
        settings.STAFF_CAN_READ_CHATS = False
        data = await fetch(READER, conversations, "export_json")
        assert SECRET.encode() not in data
