"""The page of a comparison, its JSON, its command, and the ways that lead there."""

import json
import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from chatsite.contrib.lab.compare.costs import OF_SECTIONS
from memory import actions
from memory.models import Conversation, ModelCall
from tests.memory.scenes import plant, summarise

from ....scenes import HTMX, memory_url, menu_of, signed_in, talk_in_turns, url
from .pairs import compare

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(conversation):
    """Four messages of two turns, the first summarised after the second reply."""
    summarise(conversation, 1, 2)
    talk_in_turns(conversation, "And <now>?")
    return Conversation.objects.get(pk=conversation.pk)


def read_json(client, chat, **query):
    return client.get(url("compare-json", chat), query).json()


def read_page(client, chat, **query):
    return client.get(url("compare", chat), query).content.decode()


def test_page_shows_summarised_messages_as_one_block(client, chat):
    page = read_page(client, chat, reply=6, **{"with": 4})
    [block] = re.findall(r'block-summarised">\s*<h3>(.*?)</h3>', page, re.DOTALL)
    assert " ".join(strip_tags(block).split()) == "#1 – #2 · now in v1"
    assert "block-gone" not in page
    assert "v1 · #1–#2" in page
    assert "&lt;summary" not in page
    assert "&lt;/history" not in page


def test_pinned_messages_are_shown_without_their_tags(client, chat):
    actions.pin_message(chat, 1)
    talk_in_turns(chat, "Now <b>what</b>?")
    page = read_page(client, chat, reply=8)
    assert re.search(r"#1 · \d{4}-\d\d-\d\d", page)
    assert "&lt;message" not in page
    assert "&lt;pinned" not in page
    assert "Now &lt;b&gt;what" in page


def test_the_json_has_the_promised_form(client, chat):
    found = read_json(client, chat, reply=6, **{"with": 4})
    assert found == {
        "same": False,
        "first_difference": {"message": 1, "character": 0},
        "causes": ["summary", "newest"],
        "parts": found["parts"],
        "uncounted": found["uncounted"],
        "messages": [
            {"a": 0, "b": 0, "change": "equal"},
            {"a": None, "b": 1, "change": "new"},
            {"a": 1, "b": None, "change": "gone"},
            {"a": 2, "b": None, "change": "gone"},
            {"a": 3, "b": 2, "change": "equal"},
            {"a": None, "b": 3, "change": "new"},
            {"a": None, "b": 4, "change": "new"},
        ],
    }
    assert {tuple(part) for part in found["parts"]} == {
        ("name", "tokens", "cached", "price")
    }
    assert read_json(client, chat, reply=6) == found
    assert read_json(client, chat) == found
    back = read_json(client, chat, reply=4, **{"with": 6})
    assert [each["change"] for each in back["messages"]].count("gone") == 3


def test_the_first_request_has_nothing_to_be_compared_with(client, chat):
    found = read_json(client, chat, reply=2)
    assert found["causes"] == ["first"]
    assert found["first_difference"] == {"message": 0, "character": 0}
    assert {each["change"] for each in found["messages"]} == {"new"}
    assert "nothing in the cache" in read_page(client, chat, reply=2)


def test_a_request_is_the_same_as_itself(client, chat):
    found = read_json(client, chat, reply=4, **{"with": 4})
    assert (found["same"], found["first_difference"]) == (True, None)
    assert "to the last character" in read_page(client, chat, reply=4, **{"with": 4})


def test_the_parts_are_what_the_provider_reported(chat, settings):
    settings.PRICE_INPUT = 2.0
    call = ModelCall.objects.get(message__seq=6)
    plant(call, model="gpt-9")
    for reported, cached in ((40, 0), (40, 25), (4_000, 30), (7, 7), (None, None)):
        ModelCall.objects.filter(pk=call.pk).update(
            tokens_input=reported, tokens_cached=cached
        )
        costs = compare(chat, 6).costs
        assert sum(part.tokens for part in costs.parts) + costs.uncounted == costs.total
        sizes = {part.name: part.tokens for part in costs.parts}
        assert sizes == {OF_SECTIONS.get(n, n): size for n, size in call.parts}
        assert costs.is_reported == (reported is not None)
        if reported is not None:
            assert costs.total == reported
            assert sum(part.cached for part in costs.parts) == cached
            fresh = reported - cached + cached / 10
            assert costs.price == pytest.approx(fresh * 2 / 1_000_000)
        assert all(0 <= part.cached <= part.tokens for part in costs.parts)


def test_costs_of_both_requests_stand_beside_each_other(client, chat):
    page = read_page(client, chat, reply=6, **{"with": 4})
    [table] = re.findall(r'<table class="costs">(.*?)</table>', page, re.DOTALL)
    rows = [
        [strip_tags(cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    ]
    heads = ["Part", "Tokens #4", "Tokens #6", "Difference", "From the cache"]
    assert rows[0] == heads
    sizes = {
        title: [int(n.replace("−", "-")) for n in row] for title, *row, _ in rows[1:]
    }
    assert all(after - before == more for before, after, more in sizes.values())
    *parts, total = sizes.values()
    assert [sum(column) for column in zip(*parts, strict=True)] == total
    assert [*sizes][-1].startswith("Total")
    calls = [ModelCall.objects.get(message__seq=seq) for seq in (4, 6)]
    assert total[:2] == [call.tokens_input or call.tokens_estimated for call in calls]
    # Recent messages of the first request are in the summary of the second.
    assert sizes["Summaries"][0] == 0 < sizes["Summaries"][1]
    assert "Tokens #" not in read_page(client, chat, reply=2)


def test_the_page_says_what_changed_word_by_word(client, chat):
    actions.set_system_prompt(chat, "You are a <kind> helper.")
    talk_in_turns(chat, "Last one")
    page = read_page(client, chat, reply=8)
    assert "The instructions to the model have changed." in page
    assert page.count("The provider&#x27;s cache ends here") <= 1
    assert "<del>" in page
    assert "&lt;kind&gt;" in page
    assert "<kind>" not in page
    assert "Uncounted" in page or "Total" in page


def test_texts_that_are_gone_are_named_and_the_rest_is_compared(client, chat):
    client.post(memory_url("message", chat, seq=3, name="delete"), headers=HTMX)
    found = read_json(client, chat, reply=6)
    assert found["missing"] == [3]
    assert found["causes"]
    page = read_page(client, chat, reply=6)
    assert "have been deleted since" in page
    assert "#3" in page
    assert ">What is my budget?<" not in page


def test_summaries_that_went_with_a_message_are_named(client, chat):
    client.post(memory_url("message", chat, seq=1, name="delete"), headers=HTMX)
    found = read_json(client, chat, reply=6)
    assert found["missing_summaries"] == [1]
    assert "summary" in found["causes"]
    assert "erased with a message that they covered" in read_page(client, chat, reply=6)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"reply": "99"}, "No request of a reply #99 is known."),
        ({"reply": "6", "with": "3"}, "No request of a reply #3 is known."),
        ({"reply": "x"}, "whole ones"),
        ({"reply": "-1"}, "whole ones"),
        ({"reply": "6", "with": "1" * 30}, "whole ones"),
    ],
)
def test_page_explains_why_replies_cannot_be_compared(client, chat, query, why):
    answer = client.get(url("compare-json", chat), query)
    assert answer.status_code == 404
    assert why in answer.json()["detail"]
    page = client.get(url("compare", chat), query)
    assert page.status_code == 404
    assert why in page.content.decode()


def test_a_conversation_without_replies_says_so(client, alice):
    from memory import transcript

    empty = transcript.create_conversation(alice)
    assert "no reply yet" in read_page(client, empty)


def test_strangers_find_nothing(bob, chat):
    stranger = signed_in(bob)
    for name in ("compare", "compare-json"):
        assert stranger.get(url(name, chat), {"reply": 6}).status_code == 404


def test_shared_links_show_none_of_it(client, chat):
    from chatsite.features.sharing import services

    share = services.create_share(chat, with_view=True)
    page = client.get(reverse("shared-page", args=[share.token])).content.decode()
    assert "/compare/" not in page


def test_page_takes_ten_statements_at_most(client, chat):
    for name in ("compare", "compare-json"):
        with CaptureQueriesContext(connection) as asked:
            assert client.get(url(name, chat), {"reply": 6}).status_code == 200
        assert len(asked) <= 10, [each["sql"] for each in asked.captured_queries]


def test_the_menu_of_a_reply_and_its_context_lead_there(client, chat):
    address = f"{url('compare', chat)}?reply=4"
    assert menu_of(client, chat, 4).count(address) == 1
    pane = client.get(url("context", chat), {"reply": 4}).content.decode()
    assert pane.count(address) == 1


def test_staff_see_figures_and_no_text(chat, staff_with):
    staff = signed_in(staff_with("metadata"))
    answer = staff.get(reverse("admin:review-request", args=[chat.pk, 6]))
    section = answer.content.decode().split("Compared with the request before")[-1]
    assert "<code>summary</code>" in section
    assert "Instructions:" in section
    assert "What 1 to 2 said" not in section


def test_the_command_says_the_same(chat):
    a, b = ModelCall.objects.filter(message__seq__in=(4, 6)).order_by("id")
    out = StringIO()
    call_command("compare_requests", a.pk, b.pk, "--json", stdout=out)
    assert json.loads(out.getvalue())["causes"] == ["summary", "newest"]
    out = StringIO()
    call_command("compare_requests", a.pk, b.pk, stdout=out)
    assert "cache ends at message 1, character 0" in out.getvalue()
    with pytest.raises(CommandError, match="no request 999"):
        call_command("compare_requests", a.pk, 999)
