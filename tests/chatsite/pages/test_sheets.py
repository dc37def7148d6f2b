"""The right pane as a stack of sheets to scale, and its sentence."""

import re

import pytest

from chatsite.features.importing.exporting.as_markdown import write_markdown
from chatsite.pages.presenters import context_pane, sheets
from chatsite.turns import variations
from memory import actions, transcript
from tests.memory.scenes import summarise

from ..scenes import page_of, signed_in, talk_in_turns, url


def make(user, *texts, **policy):
    made = transcript.create_conversation(user, policy=policy)
    talk_in_turns(made, *texts)
    made.refresh_from_db()
    return made


def rem_of(sheet):
    return float(sheet.height.removesuffix("rem"))


def sheets_of(conversation, **shown):
    view = context_pane.model_view(conversation, **shown)
    return {sheet.kind: sheet for sheet in view.sheets}


@pytest.mark.parametrize("words", [3, 900])
def test_heights_are_proportional_to_tokens(alice, words):
    made = make(alice, "word " * words, "Two", "Three")
    summarise(made, 1, 2)
    filled = [sheet for sheet in sheets_of(made).values() if sheet.section]
    kinds = [sheet.kind for sheet in filled if sheet.kind != "provider"]
    assert kinds == ["system", "summaries", "window"]
    per_rem = {round(sheet.tokens / rem_of(sheet)) for sheet in filled}
    assert len(per_rem) == 1
    assert sum(map(rem_of, filled)) <= sheets.STACK_REM + 0.1


def test_free_sheet_is_torn_when_it_is_nearly_all(alice, settings):
    free = sheets_of(make(alice, "One"))["free"]
    assert free.is_torn
    assert rem_of(free) == sheets.FREE_REM
    settings.CONTEXT_WINDOW = 400
    free = sheets_of(make(alice, "word " * 200))["free"]
    assert not free.is_torn
    assert rem_of(free) < sheets.FREE_REM


def test_an_empty_conversation_has_a_word_for_each(alice):
    made = transcript.create_conversation(alice)
    page = signed_in(alice).get(url("context", made)).content.decode()
    assert "stack is-empty" in page
    words = re.findall(r'class="outline.*?class="name">([^<]+)<', page)
    assert words == [
        *("Summaries", "Pinned", "Rules", "Recent"),
        *("Recalled", "Next message", "Free"),
    ]


def test_the_sentence_counts_what_the_model_reads(alice):
    made = make(alice, "One", "Two", "Three")
    client = signed_in(alice)
    n = context_pane.model_view(made).gauge.used
    assert f"The model reads ≈ {n} tokens: the last 6 messages." in page_of(
        client, made
    )
    summarise(made, 1, 4)
    actions.pin_message(made, 1)
    page = page_of(client, made)
    assert "tokens: 1 summary, 1 pinned message and the last 2 messages." in page
    view = context_pane.model_view(made, draft="Four")
    assert view.contents.endswith("the last 2 messages and your next message")


def lead_of(conversation, **shown):
    return context_pane.model_view(conversation, **shown).account


class TestAccount:
    def test_new_conversation_has_only_instructions(self, alice):
        made = make(alice)
        assert lead_of(made) == "The model reads its instructions."
        assert lead_of(made, draft="One") == "The model reads your next message."

    def test_sentence_leads_the_pane_and_describes_it(self, alice):
        made = make(alice, "One", "Two", "Three")
        page = page_of(signed_in(alice), made)
        lead = "The model reads all 6 of your messages."
        assert f'<p class="reads" id="model-reads">{lead}</p>' in page
        assert 'aria-describedby="model-reads"' in page

    def test_summaries_are_counted_in_words(self, alice):
        made = make(alice, "One", "Two", "Three", "Four")
        summarise(made, 1, 2)
        said = "The model reads 6 of your 8 messages and 1 summary."
        assert lead_of(made) == said
        summarise(made, 3, 4)
        said = (
            "The model reads 4 of your 8 messages, 2 summaries and your next message."
        )
        assert lead_of(made, draft="Five") == said

    def test_pinned_messages_are_read(self, alice):
        made = make(alice, "One", "Two", "Three")
        summarise(made, 1, 4)
        actions.pin_message(made, 1)
        assert "reads 3 of your 6 messages and 1 summary." in lead_of(made)

    def test_recalled_messages_are_counted_beside_the_summary_of_them(self, alice):
        made = make(alice, "My sister is vegetarian", "Two", "Three")
        summarise(made, 1, 2)
        draft = "What does my sister eat?"
        said = "The model reads 4 of your 6 messages, 1 summary"
        lead = f"{said}, 2 recalled messages and your next message."
        assert lead_of(made, draft=draft) == lead
        variations.switch_off(made, ("recalled",))
        assert lead_of(made, draft=draft) == f"{said} and your next message."

    def test_hidden_and_switched_off_messages_are_not_read(self, alice):
        made = make(alice, "One", "Two")
        actions.exclude_messages(made, [1])
        assert "reads 3 of your 4 messages." in lead_of(made)
        variations.switch_off(made, ("message-3",))
        assert "reads 2 of your 4 messages." in lead_of(made)

    def test_sentence_of_a_reply_counts_what_was_before_it(self, alice):
        made = make(alice, "One", "Two")
        said = "For reply #2 the model read the only message before it."
        assert lead_of(made, reply=2) == said
        said = "For reply #4 the model read all 3 messages before it."
        assert lead_of(made, reply=4) == said
        actions.delete_message(made, 1)
        said = "For reply #4 the model read 2 of the 3 messages before it."
        assert lead_of(made, reply=4) == said

    def test_export_begins_with_the_sentence(self, alice):
        made = make(alice, "One", "Two")
        lines = write_markdown(made).splitlines()
        assert lines[2] == "The model reads all 4 of your messages."


def test_sheet_of_a_reply_shows_reported_tokens(alice):
    made = make(alice, "One", "Two")
    view = context_pane.model_view(made, reply=4)
    assert view.is_reported
    page = signed_in(alice).get(f"{url('context', made)}?reply=4").content.decode()
    said = f"For reply #4 the model read {view.call.tokens_input} tokens: the last 2"
    assert said in page


def test_a_pinned_message_is_shown_as_one_and_as_it_is_read(alice):
    made = make(alice, "My sister is vegetarian", "Two", "Three")
    summarise(made, 1, 2)
    actions.pin_message(made, 1)
    pinned = sheets_of(made)["pinned"].section
    assert [message.seq for message in pinned.messages] == [1]
    assert "<pinned>" in pinned.text
    assert [each.label for each in pinned.glances] == ["#1"]


def test_recalled_messages_are_counted_and_shown(alice):
    made = make(alice, "My sister is vegetarian", "Two", "Three")
    summarise(made, 1, 2)
    view = context_pane.model_view(made, draft="What does my sister eat?")
    recalled = next(each for each in view.sections if each.kind == "recalled")
    assert [message.text for message in recalled.messages][:1] == [
        "My sister is vegetarian"
    ]
    assert recalled.glances[0].label == "#1"
    assert "<recalled>" in recalled.text
    n = len(recalled.messages)
    assert f"{n} recalled message" in view.contents


def test_a_closed_sheet_shows_the_beginning_of_its_texts(alice):
    made = make(alice, *(f"Number {n} {'x' * 500}" for n in range(10)))
    glances = sheets_of(made)["window"].section.glances
    assert [each.label for each in glances] == [
        *("#1", "#2", ""),
        *(f"#{seq}" for seq in range(15, 21)),
    ]
    assert glances[0].text.startswith("Number 0")
    assert glances[2].text == "… 12 more"
    assert all(len(each.text) <= sheets.MESSAGE_CHARS for each in glances)


@pytest.mark.parametrize(
    "kind",
    [
        *("tokens", "sha256", "Raw JSON", "accounted for"),
        *("transcript.json", "summaries.json"),
    ],
)
def test_every_figure_is_behind_the_button(alice, kind):
    page = page_of(signed_in(alice), make(alice, "One"))
    about = page[page.index('class="about"') : page.index('class="stack')]
    assert kind in about
    assert (
        kind not in page.partition('<header class="bar"')[2].partition("</header>")[0]
    )
