"""Files in results of tools: kept for people, taken along, and gone with their text."""

import json

import pytest
from channels.db import database_sync_to_async
from django.test import Client

from chatsite.features.importing.exporting.for_staff import mask_export
from chatsite.features.importing.exporting.thread import dump_export, export_thread
from chatsite.features.tools import late_results
from chatsite.features.tools.cards import file_cards
from chatsite.features.tools.models import ResultFile, ToolCall
from chatsite.turns.copying import copies
from memory import actions, library, transcript
from memory.models import Conversation
from tests.fakes import own_tools
from tests.fakes.calling import calling

from ...scenes import Use, page_of, signed_in, use_tools
from ...sockets import Chat
from ..importing.test_importing import take

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice, settings, upstream):
    settings.CHAT_MODEL = "ok"
    settings.TOOLS = own_tools.PATHS
    settings.TOOL_FILE_BYTES = 1_000
    made = transcript.create_conversation(alice)
    Conversation.objects.filter(pk=made.pk).update(tools=own_tools.NAMES)
    made.refresh_from_db()
    return made


@pytest.fixture
def drawn(conversation):
    """Return the files of a late result: stored as those of any other."""
    use_tools(conversation, "Draw it.", Use(name="draw", state="late"))
    call = ToolCall.objects.get()
    blocks = [
        {"type": "text", "text": "A map."},
        own_tools._file(own_tools.PNG, "image/png", "map.png"),
        own_tools._file(own_tools.SVG, "image/svg+xml", "map.svg"),
    ]
    late_results.deliver(call.pk, blocks)
    call.refresh_from_db()
    return call.late_result


def address(conversation, seq, place):
    return f"/c/{conversation.uuid}/messages/{seq}/files/{place}/"


@pytest.mark.parametrize("kind", [*file_cards.PICTURES, *file_cards.SOUNDS])
def test_media_type_is_given_only_if_the_bytes_match(kind):
    (start, *_) = (file_cards.PICTURES | file_cards.SOUNDS)[kind]
    given = ResultFile(kind=kind, data=start + own_tools.SVG)
    assert file_cards.kind_of(given) == kind
    given.data = own_tools.SVG
    assert file_cards.kind_of(given) == "application/octet-stream"


async def test_files_are_stored_with_the_result(conversation, session, upstream):
    upstream.script(calling(("draw", {})), "ok")
    async with Chat(conversation, session) as chat:
        await chat.say("Draw it.")
    # The model has notes.
    sent = upstream.calls[1].messages[-1]["content"]
    assert "[image: map.png, image/png, 70 bytes]" in sent
    assert "iVBOR" not in sent

    def look():
        rows = {row.name: row for row in ResultFile.objects.all()}
        assert bytes(rows["map.png"].data) == own_tools.PNG
        assert rows["online"].url == "https://example.org/map"
        # Of what was too large, only that.
        assert (rows["long.html"].size, rows["long.html"].data) == (2_000, None)
        client = signed_in(conversation.owner)
        page = page_of(client, conversation)
        assert 'alt="map.png"' in page
        assert page.count("<img") - page.count('class="avatar"') >= 1
        assert 'href="https://example.org/map"' in page
        assert 'href="javascript' not in page
        assert "It was too large to be kept." in page
        picture = client.get(address(conversation, 3, 0))
        assert picture["Content-Type"] == "image/png"
        # Neither a picture with scripts, nor what only says that it is one.
        for place, name in ((1, "map.svg"), (2, "no picture.png")):
            given = client.get(address(conversation, 3, place))
            assert given["Content-Type"] == "application/octet-stream"
            assert given.content == own_tools.SVG
            assert f'filename="{name}"' in given["Content-Disposition"]
            assert given["Content-Disposition"].startswith("attachment")
            assert given["X-Content-Type-Options"] == "nosniff"
            assert "sandbox" in given["Content-Security-Policy"]
        for seq, place in ((3, 3), (3, 99), (2, 0), (3, 5)):
            assert client.get(address(conversation, seq, place)).status_code == 404

    await database_sync_to_async(look)()


def test_files_are_404_for_other_users(conversation, drawn, bob, staff):
    for other in (signed_in(bob), signed_in(staff)):
        found = other.get(address(conversation, drawn.seq, 0))
        assert found.status_code == 404
    assert Client().get(address(conversation, drawn.seq, 0)).status_code == 302


def test_files_are_deleted_with_the_text(conversation, drawn):
    actions.delete_message(conversation, drawn.seq)
    assert not ResultFile.objects.exists()
    found = signed_in(conversation.owner).get(address(conversation, drawn.seq, 0))
    assert found.status_code == 404


def test_files_are_deleted_with_the_conversation(conversation, drawn):
    library.erase_conversation(conversation)
    assert not ResultFile.objects.exists()


def test_files_are_exported_and_imported(conversation, drawn):
    whole = json.loads(dump_export(export_thread(conversation)))
    assert [file["name"] for file in whole["files"]] == ["map.png", "map.svg"]
    assert whole["files"][0]["data"].startswith("iVBOR")
    whole["conversation"]["uuid"] = "another"
    taken = take(conversation.owner, whole).imported[0]
    rows = [*taken.result_files.order_by("place")]
    assert [bytes(row.data) for row in rows] == [own_tools.PNG, own_tools.SVG]
    assert {row.message.seq for row in rows} == {drawn.seq}


def test_staff_who_may_not_read_export_no_word_of_them(conversation, drawn):
    masked = json.dumps(mask_export(export_thread(conversation)), default=str)
    assert "map.png" not in masked
    assert "iVBOR" not in masked


def test_a_branch_has_them(conversation, drawn):
    made = copies.branch_conversation(conversation, drawn.seq)
    assert bytes(made.result_files.get(place=0).data) == own_tools.PNG
