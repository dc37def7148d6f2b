"""Looking closer at the model's view: what it forgot, what it saved, how it stood."""

import json
import re

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from chatsite.pages.presenters import savings, search, snapshot
from chatsite.turns import requests
from memory import actions, transcript
from memory.models import Conversation, Message, ModelCall
from tests.memory.scenes import plant, summarise
from tests.remembered import remembered

from ..scenes import HTMX, Use, signed_in, talk_in_turns, use_tools

VIEWS = {
    "find": ("get", {"q": "x"}),
    "draft": ("post", {"draft": "x"}),
    "moment": ("get", {"reply": 2}),
    "raw": ("get", {}),
    "estimate": ("post", {"preset": "layered"}),
}


def ask(client, conversation, name, **values):
    method, defaults = VIEWS[name]
    address = reverse(f"memory-{name}", args=[conversation.uuid])
    send = getattr(client, method)
    return send(address, {**defaults, **values}, headers=HTMX)


def page(client, conversation, name, **values):
    answer = ask(client, conversation, name, **values)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
@remembered
def long(alice):
    """Ten turns; v1 is the summary of the first twelve messages."""
    made = transcript.create_conversation(alice)
    talk_in_turns(made, *(f"Fact {n}: box {n} holds {n * 11} pears." for n in range(9)))
    talk_in_turns(made, "我妹妹叫小敏，她吃素。")
    summarise(made, 1, 12, text="Box 3 holds 33 pears.")
    made.refresh_from_db()
    return made


@pytest.mark.parametrize("name", VIEWS)
def test_a_stranger_sees_nothing(client, long, bob, name):
    assert ask(client, long, name).status_code == 200
    assert ask(signed_in(bob), long, name).status_code == 404


def is_sent(conversation, text):
    built = requests.next_turn(Conversation.objects.get(pk=conversation.pk))
    return any(text == each["content"] for each in built.wire)


def read_seen(client, conversation, seq, query):
    """Return the HTML of a search result that says how the model sees the message."""
    shown = page(client, conversation, "find", q=query)
    item = shown.partition(f"#message-{seq}")[2].partition("</li>")[0]
    return item.partition('class="found-seen"')[2]


class TestFinding:
    def find(self, conversation, query):
        found = search.search_conversation(conversation, query)
        return {each.seq: (each.location.kind, each.in_summary) for each in found}

    def test_search_shows_where_the_model_sees_a_hit(self, long):
        actions.exclude_messages(long, [17])
        assert self.find(long, "33 pears") == {
            7: ("summary", True),
            8: ("summary", True),
        }
        assert self.find(long, "44 pears")[9] == ("summary", False)
        assert self.find(long, "77 pears")[15] == ("window", None)
        assert self.find(long, "88 pears")[17] == ("excluded", None)

    def test_the_summary_is_asked_for_the_message_not_for_the_search(self, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "We are 4 people and the budget is 3,200 euros.", "Ok")
        summarise(made, 1, 2, text="Budget: what is our budget?")
        made.refresh_from_db()
        [reply, asked] = search.search_conversation(made, "budget")
        assert (asked.seq, asked.in_summary) == (1, False)
        assert "3,200" in asked.missing

    @pytest.mark.parametrize(
        ("summary", "says"),
        [
            (
                "The budget for posters and radio: 9,500 francs a year.",
                "Hidden, but summary v1 still says it. Edit v1",
            ),
            (
                "They talked of 9,500.",
                "Hidden, but summary v1 still says “9,500”. Edit v1",
            ),
            ("They talked of hotels.", "The model does not see it."),
        ],
    )
    def test_a_hidden_message_is_compared_with_what_is_sent(
        self, client, alice, summary, says
    ):
        made = transcript.create_conversation(alice)
        talk_in_turns(
            made,
            "The budget for posters and radio is 9,500 francs.",
            "Ok",
            reply="Good.",
        )
        summarise(made, 1, 2, text=summary, model="")
        made.refresh_from_db()
        actions.exclude_messages(made, [1], edited=actions.EditChoice.KEEP)
        version = made.summaries.get(status="active").version
        text = strip_tags(page(client, made, "find", q="budget"))
        assert says.replace("v1", f"v{version}") in " ".join(text.split())

    def test_message_without_words_is_said_by_none_that_lacks_its_signs(
        self, client, alice
    ):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "👍👍", "Ok")
        summarise(made, 1, 2, text="They talked of hotels.", model="m")
        made.refresh_from_db()
        text = page(client, made, "find", q="👍")
        assert "Summary v1 covers this message but says nothing of it." in text
        actions.exclude_messages(made, [1], edited=actions.EditChoice.KEEP)
        assert "still says it" not in page(client, made, "find", q="👍")

    @pytest.mark.parametrize("name", ["excluded_at", "superseded_at"])
    def test_hidden_message_is_not_sent_because_it_is_pinned(self, client, long, name):
        actions.pin_message(long, 15)
        text = long.messages.get(seq=15).text
        assert is_sent(long, text)
        assert "In full: it is pinned." in read_seen(client, long, 15, "77 pears")
        long.messages.filter(seq=15).update(**{name: timezone.now()})
        assert "In full" not in read_seen(client, long, 15, "77 pears")
        assert not is_sent(long, text)

    def test_message_of_which_a_part_is_sent_is_not_sent_in_full(self, client, long):
        rows = QuerySet(Message).filter(conversation=long, seq=15)
        rows.update(sent_text="Box 7 […]")
        seen = read_seen(client, long, 15, "77 pears")
        assert "Only a part of it is sent." in seen
        assert "In full" not in seen
        assert is_sent(long, "Box 7 […]")

    def test_hidden_signs_that_another_message_has_are_named(self, client, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "👍", "Thank you 👍", reply="Good.")
        made.refresh_from_db()
        actions.exclude_messages(made, [1])
        text = page(client, made, "find", q="👍")
        assert "Hidden, but message #3 says the same and is sent." in text

    def test_a_message_that_says_the_same_as_a_hidden_one_is_named(self, client, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, *["The budget is 9,500 francs."] * 2, reply="Good.")
        made.refresh_from_db()
        actions.exclude_messages(made, [1])
        text = page(client, made, "find", q="budget")
        assert "Hidden, but message #3 says the same and is sent." in text

    def test_a_summary_without_a_word_of_a_message_says_nothing_of_it(
        self, client, alice
    ):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "The dog weighs 15 kilos and is 101 days old.", reply="Ok")
        summarise(made, 1, 2, text="A trip to Nara.", model="m")
        made.refresh_from_db()
        shown = page(client, made, "find", q="dog")
        assert "Summary v1 covers this message but says nothing of it." in shown

    def test_missing_details_are_named_once(self, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "You said: “We are 4 and have 3,200 euros.”", reply="Ok")
        summarise(made, 1, 2, text="They talked.")
        made.refresh_from_db()
        [asked] = search.search_conversation(made, "3,200")
        assert asked.missing == ("We are 4 and have 3,200 euros",)

    def test_other_forms_of_words_are_found_and_marked(self, long):
        talk_in_turns(long, "We met in Zürich.", "Cafe\u0301haus", reply="Ok")
        for query, word in (("zurich", "Zürich"), ("Caféh", "Cafe\u0301h")):
            [hit, *_] = search.search_conversation(long, query)
            assert word in hit.parts

    def test_search_finds_chinese(self, long):
        assert self.find(long, "小敏")[19] == ("window", None)

    def test_search_finds_some_of_the_words(self, long):
        assert 15 in self.find(long, "where is box number 7")

    def test_the_excerpt_shows_what_matches(self, long):
        reply, message = search.search_conversation(long, "77 pears")
        assert reply.parts == ("Reply to: Fact 7: box 7 holds ", "77 pears", ".")
        assert (reply.seq, message.seq) == (16, 15)

    def test_a_long_text_is_cut_around_the_match(self, conversation):
        talk_in_turns(conversation, "a " * 500 + "needle" + " b" * 500)
        hits = search.search_conversation(conversation, "NEEDLE")
        assert len(hits) == 2
        assert all(len("".join(hit.parts)) < 300 for hit in hits)
        assert all(hit.parts[1] == "needle" for hit in hits)

    @pytest.mark.parametrize("query", ["", "  ", "(", "a\\", "%", "' OR 1=1"])
    def test_odd_queries_do_no_harm(self, client, long, query):
        assert ask(client, long, "find", q=query).status_code == 200

    def test_empty_query_lists_what_the_summaries_lack(self, client, long):
        flags = {"dropped": ["#3 number: 11 pears"]}
        counted = ["41 number: #3–#43", "1 name: #3"]
        summarise(long, 13, 14, flags=flags | {"dropped_from": counted})
        page = ask(client, long, "find", q="").content.decode()
        words = "Not in the summary: numbers from 41 messages, names from 1 message"
        assert words in page
        assert "#3–#43" in page
        assert "11 pears" in page
        assert reverse("memory-message", args=[long.uuid, 3, "pin"]) in page
        assert (
            "Not in the summary"
            not in ask(client, long, "find", q="x").content.decode()
        )

    def test_length_of_the_list_is_no_count_when_none_was_noted(self, client, long):
        lines = [f"#{n} number: {n} pears" for n in range(3, 7)]
        summarise(long, 13, 14, flags={"dropped": lines})
        page = ask(client, long, "find", q="").content.decode()
        assert "Some things are not in the summary" in page

    def test_a_full_list_of_hits_is_no_count(self, client, alice):
        many = transcript.create_conversation(alice)
        talk_in_turns(many, *[f"This message {n} is of pears." for n in range(22)])
        page = ask(client, many, "find", q="message").content.decode()
        assert "More than 20 messages; the first 20 are listed." in page
        assert page.count('class="excerpt"') == 20
        page = ask(client, many, "find", q="pear tea").content.decode()
        assert "These match best; none has exactly these words." in page

    def test_a_deleted_text_is_not_found(self, long):
        actions.delete_message(long, 15)
        assert 15 not in self.find(long, "77 pears")

    def test_search_takes_a_fixed_number_of_queries(self, client, long):
        def count(query):
            with CaptureQueriesContext(connection) as seen:
                page(client, long, "find", q=query)
            return len(seen)

        assert count("33 pears") == count("77 pears")

    def test_markup_in_a_message_stays_text(self, client, conversation):
        talk_in_turns(conversation, "<img src=x onerror=alert(1)> pears")
        shown = page(client, conversation, "find", q="pears")
        assert "&lt;img" in shown
        assert "<img" not in shown


class TestSavings:
    def test_a_short_chat_saves_nothing(self, conversation):
        saved = savings.measure_savings(conversation)
        assert (saved.replies, saved.sent, saved.summaries) == (2, 80, 0)
        assert saved.whole > 0

    def test_savings_count_the_whole_transcript_for_every_reply(self, long):
        saved = savings.measure_savings(long)
        sizes = dict(long.messages.values_list("seq", "tokens"))
        prompt = savings.count_text(requests.next_turn(long).wire[0]["content"]) + 4
        expected = sum(
            prompt + sum(size for seq, size in sizes.items() if seq < reply)
            for reply in range(2, 21, 2)
        )
        estimated = expected * long.token_ratio + 10 * long.token_overhead
        assert saved.whole == pytest.approx(estimated, abs=1)

    def test_savings_subtract_the_tokens_of_the_summariser(self, long):
        before = savings.measure_savings(long).net
        call = long.model_calls.get(purpose=ModelCall.Purpose.SUMMARY)
        plant(call, tokens_input=1001, tokens_output=200)
        assert before - savings.measure_savings(long).net == 1200

    def test_money_needs_prices(self, long, settings):
        assert savings.measure_savings(long).money is None
        settings.PRICE_INPUT, settings.PRICE_OUTPUT = 1.0, 5.0
        assert savings.measure_savings(long).money is None  # the demo model's
        long.model = "gpt-9"
        call = long.model_calls.get(purpose=ModelCall.Purpose.SUMMARY)
        plant(call, model="gpt-9", tokens_input=11, tokens_output=2)
        saved = savings.measure_savings(long)
        spent = 11 + 2 * 5
        assert saved.money == pytest.approx((saved.whole - saved.sent - spent) / 1e6)


class TestDraft:
    def test_draft_is_shown_as_if_it_were_sent(self, client, conversation):
        shown = page(client, conversation, "draft", draft="Where to?")
        assert "Next message" in shown
        assert "Where to?" in shown
        assert conversation.messages.count() == 4

    def test_draft_shows_what_would_be_recalled(self, client, long):
        assert "Recalled" in page(client, long, "draft", draft="How many in box 2?")

    @pytest.mark.parametrize("draft", ["", "  \n", "a\0b", "x" * 50_000])
    def test_any_text_is_taken(self, client, conversation, draft):
        assert ask(client, conversation, "draft", draft=draft).status_code == 200


class TestMoment:
    def test_moment_shows_the_messages_of_its_time(self, client, long):
        shown = page(client, long, "moment", reply=6)
        assert re.findall(r'class="message \w+" data-seq="(\d+)"', shown) == list(
            "123456"
        )
        assert "As sent for reply #6" in shown

    def test_moment_shows_the_marks_of_its_time(self, long):
        talk_in_turns(long, "And now?")
        calls = [requests.reply_call(long, seq) for seq in (6, 22)]
        early, late = (snapshot.messages_at(long, call) for call in calls)
        kinds = [each.location.kind for each in early]
        assert kinds == ["window"] * 4 + ["sending", "reply"]
        assert [each.location.version for each in late[:12]] == [1] * 12
        assert late[11].ends.version == 1
        assert late[12].location.kind == "window"

    def test_moment_names_tools_for_readers(self, long):
        use_tools(long, "What did I say?", Use())
        talk_in_turns(long, "And now?")
        last = long.messages.order_by("seq").last()
        shown = snapshot.messages_at(long, requests.reply_call(long, last.seq))
        assert ("Search the whole conversation",) in [each.calls for each in shown]

    def test_moment_of_an_invalid_reply_is_a_404(self, client, long):
        for reply in ("3", "99", "", "x", "-1"):
            assert ask(client, long, "moment", reply=reply).status_code == 404

    def test_later_edits_do_not_show(self, long):
        first = Message.objects.get(conversation=long, seq=1)
        actions.exclude_messages(long, [first.seq])
        call = requests.reply_call(long, 4)
        assert snapshot.messages_at(long, call)[0].location.kind == "window"


class TestRaw:
    def test_raw_request_is_what_is_sent(self, client, long):
        text = re.search(r"<pre[^>]*>(.*)</pre>", page(client, long, "raw"), re.S)[1]
        unescaped = text.replace("&quot;", '"').replace("&#x27;", "'")
        unescaped = unescaped.replace("&lt;", "<").replace("&gt;", ">")
        unescaped = unescaped.replace("&amp;", "&")
        assert json.loads(unescaped) == requests.next_turn(long).wire

    def test_raw_request_of_a_past_reply_is_shown(self, client, long):
        assert "Fact 4" not in page(client, long, "raw", reply=4)


class TestEstimate:
    def test_estimate_names_the_messages_to_summarise(self, client, long):
        settings = {"preset": "langgraph"}
        assert "will summarise messages #13–#18" in page(
            client, long, "estimate", **settings
        )
        assert long.summaries.count() == 1

    def test_estimate_reports_when_nothing_would_be_summarised(self, client, long):
        shown = page(client, long, "estimate", preset="langgraph", no_compaction="on")
        assert "Nothing to summarise yet" in shown
        assert "8 messages" in shown

    def test_estimate_shows_errors_of_the_settings(self, client, long):
        shown = page(client, long, "estimate", overrides='{"keep": ["turns", -1]}')
        assert "-1" in shown
