"""The timeline of a conversation: every version beside what it was made of; and the
request inspector: what was sent for a reply, from where, and if it holds.
"""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.review.models import AccessEvent, Review
from chatsite.review.timeline import picture, steps
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import actions, context, transcript
from memory.models import Message, Prompt, Summary
from tests.memory.scenes import plant, say, summarise, talk
from tests.remembered import remembered

Status = Summary.Status


@pytest.fixture
def timeline(reviewer, conversation):
    """timeline(v=1) -> the page's text on one line, as the reviewer sees it."""

    def get(**params):
        response = reviewer.get(url_of(conversation), params)
        assert response.status_code == 200
        return " ".join(response.content.decode().split())

    return get


@pytest.fixture
@remembered
def told(conversation):
    """A fact lost, one invented, and one message of its own for each version."""
    say(conversation, "Anna pays 300 euros on 12 May.")
    summarise(conversation, 1, 8, text="They talked.")
    first = conversation.summaries.get()
    return summarise(
        conversation, 1, 10, replaces=[first], text="Anna pays 4711 euros, says Kafka."
    )


def url_of(conversation):
    return reverse("admin:review-timeline", args=[conversation.pk])


def marked(text, kind):
    return re.findall(rf'<mark class="fact-{kind}" title="[^"]+">([^<]+)</mark>', text)


def test_step_underlines_lost_and_invented_facts(timeline, told):
    text = timeline()
    assert marked(text, "new") == ["4711", "Kafka"]
    assert marked(text, "lost") == ["300", "12 May."] * 2
    assert "2 facts are" in text
    assert "underlined with dashes" in text


def test_step_trusts_the_flags_of_the_version(timeline, told):
    plant(told, flags={"unsupported": ["Anna"]})
    assert marked(timeline(), "new") == ["Anna", "4711", "Kafka"]


def test_step_shows_its_messages_beside_its_text(timeline, told):
    text = timeline(v=2).partition("Source")[2].partition("<form")[0]
    assert re.findall(r">#(\d+)</a> (User|Assistant)", text) == [
        ("9", "User"),
        ("10", "Assistant"),
    ]
    assert "v1 of #1–#8" in text
    assert 'href="?v=2">v2 of #1–#10' in timeline(v=1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("They paid ten.", "They paid six.", "They paid <del>ten</del><ins>six</ins>."),
        ("我们住在京都。", "我们住在东京。", "我们住在<ins>东</ins>京<del>都</del>。"),
    ],
)
def test_comparison_takes_any_two_versions(timeline, conversation, old, new, words):
    summarise(conversation, 1, 2, text=old)
    summarise(conversation, 3, 4, text="between")
    summarise(conversation, 5, 6, text=new)
    assert words in timeline(a=1, b=3)


def test_page_names_a_missing_version(timeline, told):
    assert "There is no version 7." in timeline(v=7)
    assert "There is no version 9." in timeline(a=9, b=2, v=2)


def test_map_draws_a_bar_with_words_for_every_version(timeline, told):
    plant(conversation_row(told, 1), status=Status.STALE)
    text = timeline(v=2)
    url = re.escape(url_of(told.conversation))
    bars = re.findall(rf'<a href="{url}\?v=(\d)" aria-label="([^"]+)"([^>]*)>', text)
    shown = ' aria-current="true"'
    assert bars == [
        ("2", "v2, level 0, messages #1–#10, current", shown),
        ("1", "v1, level 0, messages #1–#8, out of date", ""),
        ("2", "v2, level 0, messages #1–#10, current", shown),
    ]
    assert "style=" not in text


def conversation_row(summary, version):
    return summary.conversation.summaries.get(version=version)


def test_bars_are_where_their_messages_are():
    rows = [
        Summary(version=1, first_seq=1, last_seq=50, status="active"),
        Summary(version=2, first_seq=51, last_seq=90, status="active", level=1),
    ]
    drawn = picture.of_levels(1, rows, newest=100, shown=2)
    places = [(int(bar["x"]), int(bar["width"])) for bar in drawn.bars]
    span = picture.RIGHT - picture.LEFT
    assert places == [
        (picture.LEFT + span // 2, span * 4 // 10),
        (picture.LEFT, span // 2),
        (picture.LEFT + span * 9 // 10, span - span * 9 // 10),
    ]
    assert [name["text"] for name in drawn.names] == ["level 1", "level 0", "window"]


@pytest.mark.parametrize("newest", [1, 7, 80, 99, 1234, 10_000_000])
def test_scale_has_few_numbers(newest):
    drawn = picture.of_levels(1, [], newest=newest, shown=0)
    assert 1 <= len(drawn.ticks) <= 10
    assert all(picture.LEFT <= int(tick["x"]) <= picture.RIGHT for tick in drawn.ticks)


def test_a_fact_is_marked_whole_or_not_at_all():
    text = "In 2012 we paid 12 to Ann, not Anna."
    pieces = steps.mark_facts(text, ["12", "Ann"])
    assert [piece for piece, is_marked in pieces if is_marked] == ["12", "Ann"]
    assert "".join(piece for piece, _is_marked in pieces) == text


def test_links_to_steps_name_their_keys(timeline, conversation):
    for n in range(1, 4):
        summarise(conversation, n, n)
    text = timeline(v=2)
    assert 'href="?v=1" data-step="["' in text
    assert 'href="?v=3" data-step="]"' in text
    assert "<kbd>[</kbd>" in text


def test_list_shows_a_part_of_many_versions(timeline, conversation):
    values = {"conversation": conversation, "status": "superseded", "model": "m"}
    Summary.objects.bulk_create(
        Summary(version=n, first_seq=1, last_seq=2, **values) for n in range(1, 101)
    )
    text = timeline(v=45)
    assert text.count('aria-label="v') == 40
    assert "v41–v80 of 100" in text
    assert 'href="?v=40"' in text
    assert 'href="?v=81"' in text


def test_page_says_when_nothing_was_compacted(timeline):
    assert "Nothing has been summarised yet" in timeline()


def test_the_transcript_says_where_the_model_sees_each_message(timeline, conversation):
    summarise(conversation, 1, 4)
    actions.exclude_messages(conversation, [8])
    plant(conversation.messages.get(seq=7), text="Forged")
    text = timeline(tab="transcript")
    assert text.count('<a href="?v=1">summarised (v1)</a>') == 4
    assert "hidden from the model" in text
    assert text.count("changed since it was written") == 1
    assert text.count(">request<") == 4


def test_the_transcript_has_a_hundred_messages_a_page(timeline, conversation):
    Message.objects.bulk_create(
        Message(conversation=conversation, seq=n, role="user", text="x", tokens=1)
        for n in range(9, 251)
    )
    assert timeline(tab="transcript").count('<li id="m') == 100
    text = timeline(tab="transcript", seq=230)
    assert 'id="m230" class="review-wanted"' in text
    assert text.count('<li id="m') == 50
    assert "Page 3 of 3" in text


def test_the_model_s_view_goes_from_reply_to_reply(timeline, conversation):
    text = timeline(tab="view", reply=4)
    assert "the hash matches what was sent" in text
    assert 'href="?tab=view&amp;reply=2"' in text
    assert 'href="?tab=view&amp;reply=6"' in text
    assert "No request is known" in timeline(tab="view", reply=3)


def test_the_raw_tab_has_references_and_what_was_sent(timeline, conversation):
    text = timeline(tab="raw")
    call = conversation.model_calls.get(message__seq=8)
    assert text.count(call.sha256) == 2
    assert "&quot;newest&quot;: 7" in text
    assert "&quot;content&quot;: &quot;Text 3&quot;" in text


def test_the_log_has_everything_in_the_order_of_time(timeline, conversation, alice):
    summarise(conversation, 1, 2, status="failed", text="", error="timeout")
    timeline()
    seen = {"version": 1, "last_seq": 8, "memory_version": 1}
    Review.objects.create(
        conversation=conversation, username="rita", note="Odd.", **seen
    )
    text = timeline(tab="log").partition("<tbody>")[2]
    places = [text.index(w) for w in ("rita", "timeline v1", "Version v1", "Reply #2")]
    assert places == sorted(places)
    assert "Odd." in text


def test_page_records_what_was_read(timeline, told, client, staff_with):
    timeline(v=1)
    timeline(tab="transcript")
    timeline(tab="log")
    client.force_login(staff_with("metadata"))
    assert client.get(url_of(told.conversation)).status_code == 200
    targets = AccessEvent.objects.order_by("pk").values_list("target", flat=True)
    assert [*targets] == ["timeline v1", "transcript #1–#10", "log"]


@pytest.mark.parametrize("tab", ["steps", "transcript", "view", "raw", "log"])
def test_page_hides_texts_from_staff_who_see_numbers_alone(
    client, staff_with, told, tab
):
    client.force_login(staff_with("metadata", "export", "purge"))
    say(told.conversation, "Zanzibar")
    url = url_of(told.conversation)
    for query in ({"tab": tab}, {"tab": tab, "a": 1, "b": 2, "v": 2, "reply": 12}):
        text = client.get(url, query).content.decode()
        for words in ("Zanzibar", "Kafka", "Text 1", "They talked", "Audited"):
            assert words not in text


@pytest.mark.parametrize("value", ["-1", "9" * 40, "2147483647", "\0٣"])
def test_page_survives_odd_queries(reviewer, told, value):
    names = ("v", "a", "b", "page", "reply", "seq")
    for tab in ("steps", "transcript", "view", "log", value):
        query = {"tab": tab, **dict.fromkeys(names, value)}
        response = reviewer.get(url_of(told.conversation), query)
        assert response.status_code == 200, tab


def test_page_takes_as_many_queries_for_many_versions_as_for_few(reviewer, alice):
    counts = []
    for size in (4, 12):
        made = transcript.create_conversation(alice)
        talk(made, size)
        older = summarise(made, 1, size)
        summarise(made, 1, size + 2, replaces=[older])
        found = []
        for query in ({}, {"tab": "transcript"}, {"tab": "view"}, {"tab": "log"}):
            reviewer.get(url_of(made), query)
            with CaptureQueriesContext(connection) as queries:
                reviewer.get(url_of(made), query)
            found.append(len(queries))
        counts.append(found)
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 26


def request_url(conversation, seq):
    return reverse("admin:review-request", args=[conversation.pk, seq])


@pytest.fixture
def inspector(reviewer, conversation):
    """inspector(8) -> the page's text, as the reviewer sees it."""

    def get(seq):
        response = reviewer.get(request_url(conversation, seq))
        assert response.status_code == 200
        return response.content.decode()

    return get


@pytest.fixture
def replied(conversation):
    """#10 answers #9, with #1–#4 in a summary, #2 pinned, the rest in the window."""
    summarise(conversation, 1, 4, text="They began.")
    actions.pin_message(conversation, 2)
    return say(conversation, "And now?")


def execute(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        assert cursor.rowcount == 1


class TestRequestInspector:
    def test_inspector_shows_where_each_part_comes_from(self, inspector, replied):
        text = inspector(10)
        parts = re.findall(r'class="review-part review-part-(\w+)"', text)
        assert parts == ["system", "summaries", "pinned", "window", "newest", "reply"]
        for name in ("v1 of #1–#4", "#2", "#5", "#9"):
            assert f">{name}</a>" in text
        assert "the hash matches what was sent" in text
        assert "Reply to: And now?" in text
        assert AccessEvent.objects.get().target == "request #10"

    def test_inspector_compares_the_estimate_with_reported_tokens(
        self, inspector, replied
    ):
        plant(replied, tokens_estimated=150, tokens_input=100, tokens_cached=64)
        plant(replied, tokens_output=7, first_token_ms=321, total_ms=4321, attempts=2)
        text = inspector(10)
        for words in ("the estimate was +50 %", "36 uncached", "321 ms", "4,321 ms"):
            assert words in text

    @pytest.mark.parametrize(
        ("table", "change", "where"),
        [
            ("memory_message", "text = 'Forged'", "seq = 6"),
            ("memory_message", "role = 'assistant'", "seq = 5"),
            ("memory_summary", "text = 'Forged'", "version = 1"),
        ],
    )
    def test_inspector_finds_and_names_a_forged_text(
        self, inspector, replied, table, change, where
    ):
        execute(f"UPDATE {table} SET {change} WHERE {where}")  # noqa: S608
        text = inspector(10)
        assert "the hash does not match" in text
        assert text.count("changed since it was written") == 1

    def test_inspector_finds_a_forged_reference(self, inspector, replied):
        refs = {**replied.refs, "window": [[6, 8]]}
        value = connection.ops.adapt_json_value(refs, None)
        execute(
            "UPDATE memory_modelcall SET refs = %s WHERE id = %s", value, replied.pk
        )
        assert "the hash does not match" in inspector(10)

    def test_inspector_finds_a_forged_reply(self, inspector, replied):
        execute("UPDATE memory_message SET text = 'Forged' WHERE seq = 10")
        text = inspector(10)
        assert "the hash matches what was sent" in text
        assert "changed since it was written" in text

    def test_inspector_distinguishes_erased_from_forged_texts(
        self, inspector, conversation, replied
    ):
        actions.delete_message(conversation, 6)
        assert "can no longer be verified" in inspector(10)

    @pytest.mark.parametrize("refs", [{}, [], {"system": 5}, "text"])
    def test_inspector_survives_broken_references(self, inspector, replied, refs):
        plant(replied, refs=refs)
        assert "The references are broken" in inspector(10)

    def test_inspector_shows_a_prompt_that_has_changed(self, inspector, replied):
        plant(Prompt.objects.get(text__startswith="You are"), text="You are a pirate.")
        assert "the hash does not match" in inspector(10)

    def test_inspector_shows_the_request_of_a_turn_without_a_reply(
        self, inspector, conversation
    ):
        message = commands.submit_message(
            conversation, text="Hm?", client_id="x"
        ).message
        claim = lifecycle.claim(conversation.pk)
        built = context.build_request_context(conversation, newest=message, model="m")
        claim = lifecycle.begin(claim, built, "m")
        lifecycle.finish(
            claim, lifecycle.TurnResult(Turn.State.FAILED, "", error="timeout")
        )
        text = inspector(message.seq + 1)
        assert "the hash matches what was sent" in text
        assert "This request got no reply" in text

    def test_inspector_of_an_invalid_reply_is_a_404(self, reviewer, conversation):
        assert reviewer.get(request_url(conversation, 1)).status_code == 404
        assert reviewer.get(request_url(conversation, 99)).status_code == 404

    def test_a_reply_that_was_written_elsewhere_has_no_request(
        self, inspector, conversation
    ):
        row = conversation.messages.get(seq=8)
        plant(row.model_calls.get(), message=conversation.messages.get(seq=6))
        assert "its request is unknown" in inspector(8)

    def test_inspector_hides_texts_from_staff_who_see_numbers_alone(
        self, client, staff_with, conversation, replied
    ):
        client.force_login(staff_with("metadata", "export", "purge"))
        text = client.get(request_url(conversation, 10)).content.decode()
        assert "the hash matches what was sent" in text
        assert "hidden, 8 characters" in text
        for words in ("And now?", "They began", "Text 1", "Reply to"):
            assert words not in text
        assert not AccessEvent.objects.exists()
