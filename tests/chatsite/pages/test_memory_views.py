"""Actions of a user on the model's view from the page, and their undo."""

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from chatsite.turns import audit as chat_audit
from memory import context, versions
from memory.integrity import audit
from tests.memory.scenes import summarise
from tests.remembered import remembered

from ..scenes import HTMX, memory_url, propose, signed_in, talk_in_turns

POSTS = {
    "message": {"seq": 1, "name": "pin"},
    "propose": {"seq": 2},
    "accept": {},
    "rewrite": {"version": 1},
    "restore": {"version": 1},
    "reinstate": {},
    "rebuild": {},
}
GETS = {
    "preview": {"seq": 2},
    "summaries": {},
    "diff": {"version": 1},
    "edit": {"version": 1},
    "policy": {},
}


def post(client, conversation, view, values=None, **kwargs):
    return client.post(memory_url(view, conversation, **kwargs), values, headers=HTMX)


def get(client, conversation, view, **kwargs):
    return client.get(memory_url(view, conversation, **kwargs), headers=HTMX)


def window(conversation):
    return context.build_request_context(conversation).refs["window"]


def in_force(conversation):
    return [(row.version, row.text) for row in versions.active_summaries(conversation)]


def undo(client, notice):
    """Send the form of a notice."""
    page = notice.content.decode()
    target = re.search(r'action="([^"]+)"', page)[1]
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
    return client.post(target, fields, headers=HTMX)


@pytest.fixture
@remembered
def compacted(conversation):
    """v1 of messages 1 and 2; 3 and 4 are the window."""
    summarise(conversation, 1, 2, text="They said hello.")
    return conversation


class TestAccess:
    @pytest.mark.parametrize("name", [*POSTS, *GETS])
    def test_a_stranger_gets_the_404_of_a_missing_one(self, compacted, bob, name):
        send = post if name in POSTS else get
        kwargs = (POSTS | GETS)[name]
        foreign = send(signed_in(bob), compacted, name, **kwargs)
        compacted.uuid = uuid.uuid4()
        missing = send(signed_in(bob), compacted, name, **kwargs)
        assert foreign.status_code == missing.status_code == 404
        assert foreign.content == missing.content

    @pytest.mark.parametrize("name", POSTS)
    def test_changes_want_a_post_with_a_token(self, client, alice, compacted, name):
        target = memory_url(name, compacted, **POSTS[name])
        assert client.get(target).status_code == 405
        strict = signed_in(alice, enforce_csrf_checks=True)
        assert strict.post(target).status_code == 403
        assert Client().post(target).status_code == 302

    @pytest.mark.parametrize("seq", ["0", "99999999999999999999", "x"])
    def test_a_number_that_can_not_be_is_not_there(self, client, compacted, seq):
        base = reverse("conversation-detail", args=[compacted.uuid])
        answer = client.post(f"{base}memory/messages/{seq}/pin/")
        assert answer.status_code == 404

    def test_an_unknown_act_is_not_there(self, client, compacted):
        answer = post(client, compacted, "message", seq=1, name="explode")
        assert answer.status_code == 404


class TestEditedSummaries:
    """A user's words over a message that is hidden, shown or deleted."""

    @pytest.fixture
    def edited(self, client, compacted):
        post(client, compacted, "rewrite", {"text": "My words."}, version=1)
        return compacted

    def act(self, client, conversation, name="leave-out", **values):
        return post(client, conversation, "message", values, seq=1, name=name)

    def answer(self, client, question, edited):
        """Send the form of the dialog."""
        page = question.content.decode()
        assert f'name="edited" value="{edited}"' in page
        target = re.search(r'hx-post="([^"]+)"', page)[1]
        fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
        return client.post(target, fields | {"edited": edited}, headers=HTMX)

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("leave-out", "Nothing was changed yet"),
            ("delete", "Nothing was changed yet"),
        ],
    )
    def test_the_person_is_asked_in_a_dialog(self, client, edited, name, says):
        question = self.act(client, edited, name)
        assert question.headers["HX-Retarget"] == "#dialog-body"
        assert says in question.content.decode()
        assert "Your edited summary v2 covers this message" in question.content.decode()
        assert in_force(edited) == [(2, "My words.")]
        kept = self.answer(client, question, "keep")
        assert "Your summary stays, as v3." in kept.content.decode()
        assert in_force(edited) == [(3, "My words.")]
        assert not context.visible_messages(edited).filter(seq=1).exists()

    def test_edited_summary_can_be_written_again(self, client, edited):
        question = self.act(client, edited)
        done = self.answer(client, question, "write")
        assert "Its summary is being written again." in done.content.decode()
        assert in_force(edited) == []

    @pytest.mark.parametrize("answer", ["keep", "write"])
    def test_undo_brings_the_same_version_back(self, client, edited, answer):
        done = self.act(client, edited, edited=answer)
        hidden = in_force(edited)
        undone = undo(client, done)
        assert "Its summary was restored." in undone.content.decode()
        assert in_force(edited) == [(2, "My words.")]
        undo(client, undone)
        assert in_force(edited) == hidden
        assert list(audit.check_memory()) == []

    def test_the_answer_goes_for_the_reply_as_well(self, client, edited):
        done = self.act(client, edited, edited="keep")
        reply = memory_url("message", edited, seq=2, name="leave-out")
        assert reply in done.content.decode()
        client.post(reply, {"edited": "keep"}, headers=HTMX)
        assert in_force(edited) == [(4, "My words.")]
        assert not context.visible_messages(edited).filter(seq__lte=2).exists()

    def test_undo_asks_before_it_replaces_words_that_were_written_since(
        self, client, edited
    ):
        done = self.act(client, edited, edited="write")
        summarise(edited, 1, 2, text="By the model.")
        post(client, edited, "rewrite", {"text": "Mine, once more."}, version=3)
        question = undo(client, done)
        assert "Nothing was changed yet" in question.content.decode()
        assert in_force(edited)[0][1] == "Mine, once more."
        self.answer(client, question, "keep")
        assert in_force(edited)[0][1] == "Mine, once more."
        assert list(audit.check_memory()) == []

    def test_a_shorter_version_is_restored_after_a_question(self, client, edited):
        summarise(edited, 1, 1, text="Hello.", status="superseded")
        question = post(client, edited, "restore", version=3)
        assert "Nothing was changed yet" in question.content.decode()
        assert in_force(edited) == [(2, "My words.")]
        self.answer(client, question, "write")
        assert in_force(edited) == [(4, "Hello.")]

    @pytest.mark.parametrize("edited_as", [None, "ask"])
    def test_other_clients_get_the_question_as_a_conflict(
        self, client, edited, edited_as
    ):
        target = memory_url("message", edited, seq=1, name="leave-out")
        values = {"edited": edited_as} if edited_as else {}
        answer = client.post(target, values)
        assert (answer.status_code, b"v2" in answer.content) == (409, True)
        assert client.post(target, {"edited": "keep"}).status_code == 302
        assert in_force(edited) == [(3, "My words.")]

    def test_unknown_answer_is_refused(self, client, edited):
        refused = self.act(client, edited, edited="perhaps")
        assert "ask, keep, write" in refused.content.decode()
        assert in_force(edited) == [(2, "My words.")]

    def test_every_version_can_be_restored(self, client, edited):
        self.act(client, edited, edited="write")
        history = get(client, edited, "summaries").content.decode()
        assert history.count(">Restore<") == 2
        assert history.count("It was written when the model saw #1.") == 2
        post(client, edited, "restore", version=2)
        assert in_force(edited) == [(3, "My words.")]

    def test_deleted_version_is_not_offered(self, client, edited):
        self.act(client, edited, "delete", edited="keep")
        history = get(client, edited, "summaries").content.decode()
        assert ">Restore<" not in history


class TestMessages:
    def test_leaving_out_and_undoing_it(self, client, conversation):
        notice = post(client, conversation, "message", seq=3, name="leave-out")
        assert window(conversation) == [[1, 2], [4, 4]]
        undo(client, notice)
        assert window(conversation) == [[1, 4]]
        assert b"summary" not in notice.content

    def test_the_reply_that_may_repeat_it_is_hidden_in_one_more_step(
        self, client, conversation
    ):
        notice = post(client, conversation, "message", seq=3, name="leave-out")
        also = memory_url("message", conversation, seq=4, name="leave-out")
        assert also in notice.content.decode()
        notice = client.post(also, headers=HTMX)
        assert window(conversation) == [[1, 2]]
        assert "Hide the reply" not in notice.content.decode()
        notice = post(client, conversation, "message", seq=3, name="bring-back")
        assert "Hide the reply" not in notice.content.decode()

    def test_notice_tells_what_becomes_of_the_summary(self, client, compacted):
        notice = post(client, compacted, "message", seq=1, name="leave-out")
        assert "Its summary is being written again." in notice.content.decode()

    def test_pinning_and_undoing_it(self, client, compacted):
        notice = post(client, compacted, "message", seq=1, name="pin")
        assert context.build_request_context(compacted).refs["pinned"] == [[1, 1]]
        undo(client, notice)
        assert context.build_request_context(compacted).refs["pinned"] == []

    def test_deleting_can_not_be_undone(self, client, conversation):
        notice = post(client, conversation, "message", seq=1, name="delete")
        assert b"Undo" not in notice.content
        assert conversation.messages.get(seq=1).text == ""

    def test_a_deleted_reply_is_nowhere(self, client, conversation):
        post(client, conversation, "message", seq=2, name="delete")
        assert "Reply to: Hello" not in list(
            conversation.turns.values_list("text", flat=True)
        )
        found = [
            each.code for each in (*audit.check_memory(), *chat_audit.check_turns())
        ]
        assert found == []

    def test_missing_message_is_reported(self, client, conversation):
        notice = post(client, conversation, "message", seq=77, name="pin")
        assert 'role="alert"' in notice.content.decode()
        assert "#77" in notice.content.decode()

    def test_action_redirects_to_the_page_without_htmx(self, client, conversation):
        target = memory_url("message", conversation, seq=1, name="pin")
        assert client.post(target).url.endswith(f"/c/{conversation.uuid}/")
        again = memory_url("message", conversation, seq=77, name="pin")
        assert client.post(again).status_code == 409


@pytest.mark.django_db(transaction=True)
class TestCompactionByHand:
    def test_the_preview_says_what_will_happen(self, client, conversation):
        page = get(client, conversation, "preview", seq=2).content.decode()
        assert "The model stops reading messages #1–#2" in page
        assert "Hello" in page
        assert versions.active_summaries(conversation) == []

    def test_the_preview_says_where_it_would_save_nothing(self, client, conversation):
        page = get(client, conversation, "preview", seq=2).content.decode()
        assert '<h2 id="dialog-title">Summarise #1–#2</h2>' in page
        assert "This would probably not save anything" in page
        assert '<button class="primary">' not in page

    def test_the_preview_says_why_it_can_not_be(self, client, conversation):
        page = get(client, conversation, "preview", seq=4).content.decode()
        assert "be summarised: it is not in the window" in page

    def test_a_proposal_is_accepted_and_undone(self, client, conversation):
        page = propose(client, conversation, 2)
        signature = re.search(r'name="signature" value="([^"]+)"', page)[1]
        values = {"signature": signature, "text": "My own words."}
        notice = post(client, conversation, "accept", values)
        assert in_force(conversation) == [(1, "My own words.")]
        assert window(conversation) == [[3, 4]]
        undo(client, notice)
        assert window(conversation) == [[1, 4]]

    @pytest.mark.parametrize(
        ("model", "said"), [("401", "key"), ("empty", "summary is empty")]
    )
    def test_a_failing_model_is_said(
        self, client, conversation, upstream, settings, model, said
    ):
        settings.SUMMARY_MODEL = model
        page = propose(client, conversation, 2)
        assert said in re.search(r'role="alert">([^<]+)<', page)[1]
        assert "Try again" in page
        assert versions.active_summaries(conversation) == []

    def test_messages_since_the_preview_stay_in_the_window(self, client, conversation):
        page = propose(client, conversation, 2)
        signature = re.search(r'name="signature" value="([^"]+)"', page)[1]
        talk_in_turns(conversation, "And now?")
        post(client, conversation, "accept", {"signature": signature, "text": "Both."})
        assert window(conversation) == [[3, 6]]

    def test_a_stale_proposal_is_refused(self, client, conversation):
        page = propose(client, conversation, 2)
        signature = re.search(r'name="signature" value="([^"]+)"', page)[1]
        post(client, conversation, "message", seq=1, name="leave-out")
        notice = post(
            client, conversation, "accept", {"signature": signature, "text": "x"}
        )
        assert "changed since" in notice.content.decode()
        assert versions.active_summaries(conversation) == []


class TestVersions:
    def test_rewriting_and_undoing_it(self, client, compacted):
        notice = post(client, compacted, "rewrite", {"text": "They met."}, version=1)
        assert in_force(compacted) == [(2, "They met.")]
        undo(client, notice)
        assert in_force(compacted) == [(3, "They said hello.")]

    @pytest.mark.parametrize("text", ["", " \n", "x" * 32_001, "a\0b"])
    def test_a_wrong_text_is_refused(self, client, compacted, text):
        notice = post(client, compacted, "rewrite", {"text": text}, version=1)
        assert 'role="alert"' in notice.content.decode()
        assert in_force(compacted) == [(1, "They said hello.")]

    def test_an_older_one_is_restored(self, client, compacted):
        post(client, compacted, "rewrite", {"text": "Other."}, version=1)
        post(client, compacted, "restore", version=1)
        assert in_force(compacted) == [(3, "They said hello.")]

    def test_rebuild_of_all_summaries_can_be_undone(self, client, compacted):
        notice = post(client, compacted, "rebuild")
        assert window(compacted) == [[1, 4]]
        undo(client, notice)
        assert in_force(compacted) == [(2, "They said hello.")]

    @pytest.mark.parametrize("numbers", ["x", "1,-2", "99", "1" * 30])
    def test_nonsense_is_not_reinstated(self, client, compacted, numbers):
        notice = post(client, compacted, "reinstate", {"versions": numbers})
        assert 'role="alert"' in notice.content.decode()
        assert in_force(compacted) == [(1, "They said hello.")]

    def test_summary_by_a_model_is_not_called_edited(self, client, compacted):
        page = get(client, compacted, "summaries").content.decode()
        assert "will no longer be used" not in page

    def test_the_history_shows_them_all(self, client, compacted):
        post(client, compacted, "rewrite", {"text": "Other."}, version=1)
        page = get(client, compacted, "summaries").content.decode()
        assert page.index("Other.") < page.index("They said hello.")
        assert "edited from v1" in page
        assert "Your edited version v2 will no longer be used." in page
        assert "The model reads about" in page

    def test_the_diff_shows_what_changed(self, client, compacted):
        post(client, compacted, "rewrite", {"text": "They said goodbye."}, version=1)
        page = get(client, compacted, "diff", version=2).content.decode()
        assert "<del>hello</del><ins>goodbye</ins>" in page

    def test_a_closed_version_is_one_line_of_words(self, client, compacted):
        said = "Facts:\n- **One** & <b>two</b>\n- 3"
        post(client, compacted, "rewrite", {"text": said}, version=1)
        page = get(client, compacted, "summaries").content.decode()
        line = page.partition('<summary dir="auto">')[2].partition("</summary>")[0]
        words = "Facts: One &amp; two 3"
        assert " ".join(line.split()) == words

    def test_hostile_text_stays_text(self, client, compacted):
        post(client, compacted, "rewrite", {"text": "<img src=x onerror=1>"}, version=1)
        for name in ("diff", "edit"):
            page = get(client, compacted, name, version=2).content.decode()
            assert "<img" not in page

    def test_a_version_that_is_not_there(self, client, compacted):
        assert get(client, compacted, "diff", version=9).status_code == 404
