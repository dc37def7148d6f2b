"""Calls of tools as cards of the transcript, and as the model gets them."""

import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatsite.features.tools.models import ToolCall
from chatsite.pages.presenters import context_pane, search, sheets, transcript_pane
from chatsite.pages.presenters.calls import RESULT_CHARS
from chatsite.turns.models import Turn
from memory import transcript
from memory.engine.attachments import Attachment, join_attachments

from ...scenes import (
    HTMX,
    Use,
    arrive,
    memory_url,
    menu_of,
    page_of,
    signed_in,
    submit,
    talk_in_turns,
    url,
    use_tools,
)

FILE = Attachment("a", "notes.txt", "txt", 3, "One")
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> {{ 7|add:7 }}"
# Right-to-left override, isolate, zero width and a soft hyphen.
TRICKS = "user\u202egnp.exe\u2066\u200b\xad"


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice, title="Kyoto")


def last_turn(conversation):
    pane = transcript_pane.show_latest_turns(conversation)
    return [i for i in pane.items if isinstance(i, transcript_pane.TurnView)][-1]


def cards_of(conversation):
    return last_turn(conversation).cards


def transcript_of(page):
    return page.partition('id="context"')[0]


def part(page, element_id):
    """The element with this id, as far as the next card or message."""
    start = page.index(f'id="{element_id}"')
    return page[start:].partition("<article")[0]


class TestPlaces:
    def test_a_call_and_its_result_are_one_card_inside_their_turn(
        self, client, conversation
    ):
        use_tools(conversation, "What is my budget?", Use())
        turn = last_turn(conversation)
        assert [row.role for row in turn.messages] == ["user", "assistant", "assistant"]
        [card] = turn.cards
        assert (card.name, card.state) == ("search_transcript", "done")
        assert [answer.seq for answer in card.answers] == [3]
        page = page_of(client, conversation)
        bubbles = re.findall(r'<article class="message (\w+)" id="message-(\d+)"', page)
        assert bubbles == [("user", "1"), ("assistant", "4")]
        assert page.count('class="tool-card tool-done"') == 1
        # Both numbers lead to the card.
        assert 'id="message-2"' in page
        assert 'id="message-3"' in page

    def test_words_before_a_call_are_a_message_above_its_card(
        self, client, conversation
    ):
        use_tools(conversation, "Budget?", Use(), asked="Let me look.")
        page = page_of(client, conversation)
        assert page.index("Let me look.") < page.index('id="call-2-0"')
        assert page.index('id="call-2-0"') < page.index("Here it is.")

    def test_parallel_calls_get_their_own_results(self, conversation):
        uses = [Use(arguments={"query": str(n)}, result=f"hit {n}") for n in range(3)]
        use_tools(conversation, "Look", *uses)
        found = [
            (card.preview, card.answers[0].text) for card in cards_of(conversation)
        ]
        assert found == [(f"query: {n}", f"hit {n}") for n in range(3)]

    def test_cards_are_made_of_messages_without_rows_of_calls(self, conversation):
        use_tools(conversation, "Look", Use(), Use(result=None, state="unknown"))
        ToolCall.objects.all().delete()
        found = [(card.state, len(card.answers)) for card in cards_of(conversation)]
        assert found == [("done", 1), ("unknown", 0)]

    def test_versions_are_leafed_through_with_their_calls(self, client, conversation):
        turn = use_tools(conversation, "Look", Use(), reply="First.")
        transcript.supersede_messages(conversation, 2)
        seq = transcript.reserve_numbers(conversation, 1)
        reply = transcript.append_reply(conversation, seq=seq, text="Second.")
        Turn.objects.filter(pk=turn.pk).update(reply=reply)
        view = last_turn(conversation)
        assert [[row.seq for row in version] for version in view.versions] == [
            [2, 4],
            [5],
        ]
        assert [row.seq for row in view.single_messages] == [1]
        assert page_of(client, conversation).count('class="wording"') == 2

    def test_a_late_result_is_on_the_card_and_where_it_came_in(
        self, client, conversation
    ):
        use = Use(name="remind_me", state="late", result="The result will come later")
        turn = use_tools(conversation, "Remind me", use)
        talk_in_turns(conversation, "Meanwhile")
        row = arrive(turn.tool_calls.get(), "Call Mia!")
        first, second = [
            item
            for item in transcript_pane.show_latest_turns(conversation).items
            if isinstance(item, transcript_pane.TurnView)
        ]
        assert [answer.seq for answer in first.cards[0].answers] == [3, row.seq]
        [arrival] = second.cards
        assert (arrival.is_arrival, arrival.asked_by) == (True, 2)
        page = page_of(client, conversation)
        assert page.count(f'id="message-{row.seq}"') == 1
        assert transcript_of(page).count("Call Mia!") == 2

    def test_a_result_is_pinned_on_its_card(self, client, conversation):
        use_tools(conversation, "What is my budget?", Use())
        for act, label in (("pin", "Unpin"), ("unpin", "Pin")):
            target = memory_url("message", conversation, seq=3, name=act)
            assert client.post(target, headers=HTMX).status_code == 200
            menu = menu_of(client, conversation, 3)
            assert re.findall("(Pin|Unpin)</button>", menu) == [label]

    def test_a_result_without_its_call_is_a_card_of_its_own(self, conversation):
        submit(conversation, "Look")
        seq = transcript.reserve_numbers(conversation, 1)
        values = {"conversation": conversation, "seq": seq, "text": "found"}
        row = conversation.messages.model(role="tool", tool_call_id="gone", **values)
        transcript._save_message(row)
        [card] = cards_of(conversation)
        assert (card.is_arrival, card.asked_by, card.name) == (True, None, "")

    def test_elements_have_unique_ids(self, client, conversation):
        turn = use_tools(conversation, "Look", Use(), Use(state="late"), asked="Hm.")
        arrive(turn.tool_calls.get(place=1), "At last")
        use_tools(conversation, "Again", Use(), Use())
        ids = re.findall(r'\bid="([\w-]+)"', page_of(client, conversation))
        assert len(ids) == len(set(ids))


STATES = {
    "asked": ("Asked", {"result": None}),
    "waiting": ("Waiting for consent", {"result": None}),
    "running": ("Running", {"result": None}),
    "done": ("1.2 s", {}),
    "failed": ("Failed", {"result": "No such page"}),
    "late": ("The result comes later", {"result": "It will come later"}),
    "cancelled": ("Cancelled", {"result": None}),
    "unknown": (
        "It may have run already, so it is not run again.",
        {"result": None},
    ),
}


class TestStates:
    @pytest.mark.parametrize("state", STATES)
    def test_each_says_what_it_is(self, client, conversation, state):
        words, values = STATES[state]
        use_tools(conversation, "Look", Use(state=state, **values))
        card = part(page_of(client, conversation), "message-2")
        assert words in card
        name = {"late": "Pending"}.get(state, str(ToolCall.State(state).label))
        assert f'<span class="tool-state">{name}</span>' in card
        assert ("cancel_call" in card) == (state == "late")
        assert ("consent" in card) == (state == "waiting")

    def test_tools_have_labels_and_a_stopped_call_says_so(self, client, conversation):
        stopped = {"reply": None, "state": Turn.State.STOPPED}
        use_tools(conversation, "Look", Use(state="unknown", result=None), **stopped)
        card = part(page_of(client, conversation), "message-2")
        assert '<span class="tool-state">Stopped</span>' in card
        assert "<bdi>Search the whole conversation</bdi>" in card
        assert 'title="search_transcript"' in card

    def test_a_reminder_is_scheduled(self, client, conversation):
        arguments = {"text": "tea", "in_minutes": 1}
        use = Use(name="remind_me", arguments=arguments, state="late")
        use_tools(conversation, "Remind me", use)
        page = page_of(client, conversation)
        assert '<span class="tool-state">Scheduled</span>' in page
        assert "data-notify" in page

    def test_waiting_card_asks_for_exactly_this_call(self, client, conversation):
        use = Use(name="send_mail", state="waiting", result=None)
        use.columns = {"expires_at": timezone.now()}
        turn = use_tools(
            conversation, "Mail", use, reply=None, state=Turn.State.WAITING
        )
        call = turn.tool_calls.get()
        card = part(page_of(client, conversation), "message-2")
        assert "Run “send_mail”?" in card
        assert card.count(f'name="digest" value="{call.digest}"') == 2
        assert card.count(f'name="call" value="{call.pk}"') == 2
        assert re.findall(r'name="allow" value="(\w+)"', card) == ["true", "false"]
        assert 'name="reason"' in card
        # In the reader's zone and on their clock, as all times.
        answer_by = f'<time datetime="{use.columns["expires_at"].isoformat()}"'
        assert answer_by in card
        assert "Waiting for your answer" in page_of(client, conversation)

    def test_an_answer_is_shown_with_its_reason(
        self, client, admin_client, conversation
    ):
        answered = {"allowed": False, "answered_at": timezone.now(), "reason": "No!"}
        use_tools(conversation, "Mail", Use(state="cancelled", columns=answered))
        card = part(page_of(client, conversation), "message-2")
        assert "You did not allow this call" in card
        assert '<span class="tool-state">Declined</span>' in card
        assert "<bdi>No!</bdi>" in card
        staff = admin_client.get(reverse("admin:tools_toolcall_changelist"))
        assert '<td class="field-outcome_shown">Declined</td>' in staff.text

    def test_a_deleted_call_leaves_no_argument_behind(self, client, conversation):
        turn = use_tools(conversation, "Look", Use(arguments={"query": "secret"}))
        target = reverse("memory-message", args=[conversation.uuid, 2, "delete"])
        assert client.post(target, headers=HTMX).status_code == 200
        assert turn.tool_calls.get().arguments == {}
        assert "secret" not in page_of(client, conversation)


class TestBounds:
    def test_a_large_result_costs_the_page_its_beginning(self, client, conversation):
        small = len(page_of(client, conversation))
        use_tools(conversation, "Look", Use(result="é" * 5_000_000, sent="é" * 100))
        page = page_of(client, conversation)
        assert len(page) < small + 60_000
        assert "Download all 5,000,000 characters" in page
        assert "The model gets 100 of 5,000,000 characters." in page

    def test_long_result_is_not_read_whole(self, conversation):
        use_tools(conversation, "Look", Use(result="x" * 50_000))
        with CaptureQueriesContext(connection) as queries:
            [card] = cards_of(conversation)
        assert len(card.answers[0].text) == RESULT_CHARS
        whole = re.compile(r'("memory_message"|T\d+)\."text", [\w"]+\."')
        assert [q["sql"] for q in queries if whole.search(q["sql"])] == []

    def test_large_arguments_are_shown_in_part(self, client, conversation):
        use_tools(conversation, "Look", Use(arguments={"text": "y" * 50_000}))
        page = transcript_of(page_of(client, conversation))
        assert "y" * 3_900 in page
        assert "y" * 4_100 not in page
        assert url("arguments", conversation, 2, 0) in page

    def test_fifty_calls_take_as_many_statements_as_one(self, conversation, alice):
        counts = []
        for number in (1, 50):
            other = transcript.create_conversation(alice)
            use_tools(other, "Look", *[Use() for _ in range(number)])
            with CaptureQueriesContext(connection) as queries:
                transcript_pane.show_latest_turns(other)
            counts.append(len(queries))
        assert counts[0] == counts[1]

    def test_page_without_tools_makes_no_more_queries(self, conversation):
        talk_in_turns(conversation, "Hello")
        with CaptureQueriesContext(connection) as queries:
            transcript_pane.show_latest_turns(conversation)
        assert not [q for q in queries if "chat_toolcall" in q["sql"]]


class TestHostile:
    def test_words_of_a_tool_never_become_markup(self, client, conversation):
        use = Use(name=HOSTILE[:90], arguments={HOSTILE: HOSTILE}, result=HOSTILE)
        use.columns = {"reason": HOSTILE, "allowed": False}
        use.columns["answered_at"] = timezone.now()
        use_tools(conversation, "Look", use)
        page = page_of(client, conversation)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "14" not in part(page, "message-2").partition("<pre")[2][:200]

    def test_arguments_to_allow_show_hidden_characters(self, client, conversation):
        use = Use(name=TRICKS, arguments={"file": TRICKS, TRICKS: 1}, state="waiting")
        use_tools(conversation, "Run it", use)
        card = part(page_of(client, conversation), "message-2").partition("tool-answer")
        assert not re.search("[\u202e\u2066\u200b\xad]", card[0])
        assert "user\\u202egnp.exe\\u2066\\u200b\\u00ad" in html.unescape(card[0])

    @pytest.mark.parametrize(
        "odd", [{"name": None}, {"name": 5, "args": [1]}, {"args": None, "id": None}]
    )
    def test_odd_calls_have_a_card_too(self, conversation, odd):
        submit(conversation, "Look")
        values = {"conversation": conversation, "text": "", "tool_calls": [odd]}
        row = conversation.messages.model(seq=2, role="assistant", tokens=1, **values)
        row.save()
        assert [card.state for card in cards_of(conversation)] == ["unknown"]


class TestDownloads:
    def test_the_whole_result_is_a_file_of_its_own(self, client, conversation):
        use_tools(conversation, "Look", Use(result=HOSTILE * 1000))
        answer = client.get(url("result", conversation, 3))
        assert answer.content.decode() == HOSTILE * 1000
        assert answer["Content-Type"] == "text/plain; charset=utf-8"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert re.fullmatch(
            r'attachment; filename="conversation-\w{8}.3.txt"',
            answer["Content-Disposition"],
        )

    def test_arguments_are_downloads(self, client, conversation):
        use_tools(conversation, "Look", Use(), Use(arguments={"n": 1}))
        answer = client.get(url("arguments", conversation, 2, 1))
        assert answer.json() == {"n": 1}
        assert answer["Content-Disposition"].startswith("attachment; ")
        missing = url("arguments", conversation, 2, 2)
        assert client.get(missing).status_code == 404
        assert client.get(url("arguments", conversation, 1, 0)).status_code == 404

    def test_downloads_are_results_alone_for_their_owner_alone(
        self, client, bob, conversation
    ):
        use_tools(conversation, "Look", Use())
        for seq in (1, 2, 9):
            assert client.get(url("result", conversation, seq)).status_code == 404
        for target in (
            url("result", conversation, 3),
            url("arguments", conversation, 2, 0),
        ):
            assert signed_in(bob).get(target).status_code == 404
            assert client.post(target).status_code == 405


class TestRightPane:
    def window(self, conversation):
        pane = context_pane.model_view(conversation)
        [section] = [part for part in pane.sections if part.kind == "window"]
        return section.messages

    def test_calls_and_results_stand_as_the_model_gets_them(self, client, conversation):
        use_tools(conversation, "Look", Use(result="x" * 9_000, sent="x" * 200))
        user, call, result, reply = self.window(conversation)
        assert call.calls == (("search_transcript", '{"query": "budget"}'),)
        assert (result.role, result.text) == ("tool", "x" * 200)
        assert result.shortened == (200, 9_000)
        assert {row.shortened for row in (user, call, reply)} == {None}
        page = html.unescape(client.get(url("context", conversation)).content.decode())
        assert 'search_transcript({"query": "budget"})' in page
        assert "Shortened: 200 of 9,000 characters are sent." in page

    def test_a_late_result_is_no_word_of_the_person(self, client, conversation):
        use_tools(conversation, "Weigh it", Use(state="late", late="1,200 g"))
        assert [row.role for row in self.window(conversation)] == [
            *("user", "assistant", "tool", "assistant", "quote")
        ]
        page = client.get(url("context", conversation)).content.decode()
        said = re.findall(r'<span class="who">(.+?)</span>', page)
        assert said == ["You", "Calls", "Tool", "Model", "Quoted result"]


class TestSearch:
    def test_a_result_is_found_and_leads_to_its_card(self, client, conversation):
        use_tools(conversation, "Look", Use(result="The Fushimi shrine " * 50_000))
        [hit] = search.search_conversation(conversation, "fushimi")
        assert (hit.seq, hit.role) == (3, "tool")
        target = memory_url("find", conversation)
        found = client.get(target, {"q": "Fushimi"}, headers=HTMX).content.decode()
        assert "#message-3" in found
        assert ">Tool<" in found
        page = client.get(url("detail", conversation), {"at": 3}).content.decode()
        assert 'id="message-3"' in page

    @pytest.mark.parametrize(
        "quoted",
        [
            '<message n="1" role="user" date="2026-05-03">Sushi &lt;3</message>',
            '<user n="1" date="2026-05-03"/>Sushi &lt;3',
        ],
    )
    def test_hits_are_words_and_no_markup(self, client, conversation, quoted):
        use = Use(result=f"Quoted. {quoted}", arguments={"query": "ramen"})
        use_tools(conversation, "Look", use)
        found = {
            hit.seq: "".join(hit.parts)
            for query in ("sushi", "ramen")
            for hit in search.search_conversation(conversation, query)
        }
        assert found[3] == "Quoted. Sushi <3"
        assert found[2] == "Search the whole conversation"


@pytest.mark.parametrize(
    "found",
    [
        'Quoted. <message n="3" role="user">Sushi, a &lt; b</message>',
        'Quoted.\n<user n="3"/>Sushi, a &lt; b',
    ],
)
def test_a_closed_sheet_shows_calls_and_results_in_words(found):
    calls = (("search_transcript", "{}"),)
    seen = (
        context_pane.SeenMessage(4, "assistant", "", calls),
        context_pane.SeenMessage(5, "tool", found),
        context_pane.SeenMessage(6, "user", "if a<b>c"),
        context_pane.SeenMessage(7, "user", join_attachments("Read", [FILE])[0]),
    )
    section = context_pane.ContextSection("window", "Recent", 9, seen)
    assert [each.text for each in sheets.list_glances(section)] == [
        "Search the whole conversation",
        "Sushi, a < b",
        "if a<b>c",
        "Read\n\nnotes.txt:\nOne",
    ]
