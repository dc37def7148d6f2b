"""*Summarise up to here* as a job: it outlives its request, its tab and its process,
is shown in every tab, and nothing that was paid for is paid for again."""

import pytest
from asgiref.sync import async_to_sync

from chatsite.jobs import queue, summary_proposals, tasks
from chatsite.turns.models import Job
from memory import transcript
from memory.leases import Claim, LostError
from memory.models import ModelCall
from tests.patience import wait_for

from ..scenes import (
    HTMX,
    memory_url,
    page_of,
    propose,
    signed_in,
    talk_in_turns,
    work_off,
)

pytestmark = pytest.mark.django_db(transaction=True)


def ask(client, conversation, seq=2):
    return client.post(memory_url("propose", conversation, seq=seq), headers=HTMX)


def summaries():
    return ModelCall.objects.filter(purpose="summary")


@pytest.fixture
def long_ago(alice):
    """A conversation that one request of the summariser can't hold."""
    made = transcript.create_conversation(
        alice, policy={"preset": "guide", "chunk_tokens": 500}
    )
    talk_in_turns(made, *(f"Question {n}. " + "word " * 300 for n in range(4)))
    return made


class TestPage:
    def test_the_request_does_not_wait_for_the_model(self, client, conversation):
        dialog = ask(client, conversation).content.decode()
        assert "Writing a summary" in dialog
        assert not summaries().exists()

    def test_every_tab_shows_it_from_its_start_to_its_end(self, client, conversation):
        ask(client, conversation)
        assert "Writing a summary up to #2" in page_of(client, conversation)
        work_off()
        page = page_of(client, conversation)
        assert "A draft summary up to #2 is ready." in page
        assert 'name="signature"' not in page

    def test_a_dialog_that_waits_is_left_alone_until_the_end(
        self, client, conversation
    ):
        ask(client, conversation)
        waiting = memory_url("proposal", conversation, seq=2) + "?wait=1"
        assert client.get(waiting, headers=HTMX).status_code == 204
        work_off()
        assert b'name="signature"' in client.get(waiting, headers=HTMX).content

    def test_an_error_is_shown_in_every_tab(
        self, client, conversation, upstream, settings
    ):
        settings.SUMMARY_MODEL = "401"
        assert "Try again" in propose(client, conversation, 2)
        assert "No summary up to #2" in page_of(client, conversation)

    def test_draft_names_what_it_lacks(self, client, alice, upstream, settings):
        settings.SUMMARY_MODEL = "ok"
        made = transcript.create_conversation(alice)
        # The fake model keeps the first 80 characters of each message.
        talk_in_turns(made, f"{'Well, ' * 15}the budget is 3,200 francs.", "Thanks")
        dialog = propose(client, made, 2)
        assert "Not in the summary: numbers from 1 message" in dialog
        assert "3,200" in dialog.partition('class="dropped"')[2]
        assert "Keep #1" not in dialog

    def test_asking_twice_is_one_job(self, client, conversation):
        ask(client, conversation)
        ask(client, conversation)
        assert Job.objects.count() == 1

    def test_second_proposal_waits_for_the_first(self, client, conversation):
        talk_in_turns(conversation, "More")
        ask(client, conversation)
        dialog = ask(client, conversation, 4).content.decode()
        assert "Another summary is being written here." in dialog

    def test_accepted_proposal_is_no_longer_offered(self, client, conversation):
        page = propose(client, conversation, 2)
        signature = page.split('name="signature" value="')[1].split('"')[0]
        values = {"signature": signature, "text": "Mine."}
        client.post(memory_url("accept", conversation), values, headers=HTMX)
        assert "is proposed" not in page_of(client, conversation)

    def test_a_proposal_is_dropped(self, client, conversation):
        propose(client, conversation, 2)
        job = Job.objects.get()
        client.post(memory_url("end-job", conversation, job=job.pk), headers=HTMX)
        assert not Job.objects.exists()

    def test_proposal_is_deleted_with_a_message_that_it_may_quote(
        self, client, conversation
    ):
        propose(client, conversation, 2)
        target = memory_url("message", conversation, seq=1, name="delete")
        client.post(target, headers=HTMX)
        assert not Job.objects.exists()

    def test_a_job_of_another_conversation_is_not_there(
        self, client, conversation, bob
    ):
        ask(client, conversation)
        foreign = transcript.create_conversation(bob)
        job = Job.objects.get()
        target = memory_url("end-job", foreign, job=job.pk)
        assert signed_in(bob).post(target, headers=HTMX).status_code == 404


class TestPaidOnce:
    def cut_short(self, conversation, monkeypatch, end):
        """A job that has paid for one request of several when it ends."""
        claim = summary_proposals.start_proposal(conversation, 6, "")
        save = tasks.RunningJob.save

        async def save_and_end(running, saved):
            await save(running, saved)
            end(running)

        with monkeypatch.context() as patch:
            patch.setattr(tasks.RunningJob, "save", save_and_end)
            async_to_sync(tasks.run_job)(claim)
        return Job.objects.get(pk=claim.row_id)

    def resume(self, client, conversation):
        page = propose(client, conversation, 6)
        assert 'name="signature"' in page
        hashes = list(summaries().values_list("sha256", flat=True))
        assert len(hashes) == len(set(hashes)) > 1

    def test_answers_are_reused_after_a_cancellation(
        self, client, long_ago, monkeypatch
    ):
        job = self.cut_short(long_ago, monkeypatch, lambda running: running.cancel())
        assert (job.state, summaries().count()) == ("cancelled", 1)
        self.resume(client, long_ago)

    def test_answers_are_reused_after_the_process_died(
        self, client, long_ago, monkeypatch
    ):
        def die(running):
            raise LostError

        job = self.cut_short(long_ago, monkeypatch, die)
        queue.close_job(Claim(job.pk, job.owner), "failed", queue.DIED)
        assert "was restarted" in page_of(client, long_ago)
        self.resume(client, long_ago)

    def test_answer_that_is_no_summary_is_requested_again(
        self, client, conversation, upstream, settings
    ):
        settings.SUMMARY_MODEL = "empty"
        propose(client, conversation, 2)
        asked = len(upstream.calls)
        settings.SUMMARY_MODEL = "ok"
        assert 'name="signature"' in propose(client, conversation, 2)
        assert len(upstream.calls) == asked + 1


def test_a_slow_summary_outlives_its_request(start_site, upstream):
    """A server gives up a request long before a slow summariser has written."""
    from tests.clients import Person

    site = start_site(
        OPENAI_BASE_URL=upstream.url,
        OPENAI_API_KEY="x",
        CHAT_MODEL="ok",
        SUMMARY_MODEL="ok-slow:30:0.1",
        TITLES_ENABLED="false",
    )
    alice = Person(site, "alice")
    path = alice.create()
    with alice.chat(path) as chat:
        chat.say("One")
        chat.say("Two")
    # The summary takes three seconds: the answer does not wait for it.
    alice.post(f"{path}memory/summarise/2/propose/")
    assert "Writing a summary up to #2" in alice.get(path)
    wait_for(lambda: "A draft summary up to #2 is ready." in alice.get(path), 20)
    assert 'name="signature"' in alice.get(f"{path}memory/summarise/2/proposal/")
