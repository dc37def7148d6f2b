"""Each user pays for the processor time of their own pages and sockets."""

import time
from threading import Thread

import pytest
from django.http import HttpResponse, StreamingHttpResponse

from chatsite.live import fair_share
from chatsite.ops import processor_time
from chatsite.ops.processor_time import Account, ProcessorTimeMiddleware

ME = 1


def work(seconds):
    """Keep the processor busy for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.fixture
def ask(rf, monkeypatch, settings):
    """ask(path, seconds) -> the answer to a request whose view works for so long."""
    monkeypatch.setattr(processor_time, "BURST_SECONDS", 0.05)
    # A tenth: a busy machine takes longer for the work than it costs.
    settings.PROCESSOR_SHARE_PER_USER = 10

    def ask(path="/", seconds=0.0, **extra):
        middleware = ProcessorTimeMiddleware(lambda request: answer(seconds))
        return middleware(rf.get(path, **extra))

    def answer(seconds):
        work(seconds)
        return HttpResponse("well")

    return ask


def test_an_account_above_its_share_gets_429_until_it_is_made_up_for(ask):
    assert ask(seconds=0.14).status_code == 200
    refused = ask()
    assert refused.status_code == 429
    assert refused["Retry-After"] == "1"
    assert refused["Cache-Control"] == "no-store"
    assert "try again in 1 second." in refused.content.decode()
    time.sleep(1.0)
    assert ask().status_code == 200


def test_each_address_and_each_link_pays_for_itself(ask):
    ask("/", 0.2)
    ask("/s/one/", 0.2)
    assert ask("/").status_code == ask("/s/one/files/").status_code == 429
    assert ask("/", REMOTE_ADDR="10.0.0.9").status_code == 200
    assert ask("/s/two/").status_code == 200


def test_requests_of_monitors_are_never_refused(ask):
    for _ in range(2):
        assert ask("/healthz", 0.15).status_code == 200


def test_time_that_a_thread_waits_costs_nothing():
    account = Account()
    with account.timed():
        time.sleep(0.2)
    assert account.rest(burst=0.05) == 0


def test_a_streamed_body_is_paid_for_as_it_is_made(ask, rf):
    def parts():
        for _ in range(4):
            work(0.05)
            yield b"a part"

    middleware = ProcessorTimeMiddleware(lambda _: StreamingHttpResponse(parts()))
    answer = middleware(rf.get("/"))
    assert ask().status_code == 200
    assert b"".join(answer) == b"a part" * 4
    assert ask().status_code == 429


def test_zero_is_no_limit(ask, settings):
    settings.PROCESSOR_SHARE_PER_USER = 0
    for _ in range(2):
        assert ask(seconds=0.2).status_code == 200


def test_accounts_lose_nothing_when_many_threads_spend_at_once(settings):
    settings.PROCESSOR_SHARE_PER_USER = 100
    account = Account()
    threads = [
        Thread(target=lambda: [account.spend(0.01) for _ in range(1000)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.rest(burst=0) == pytest.approx(80, abs=2)


def test_many_new_ones_do_not_make_others_forget_what_they_owe(monkeypatch):
    monkeypatch.setattr(processor_time, "MAX_ACCOUNTS", 3)
    processor_time.account_of_user(ME).spend(100)
    for user_id in range(10, 30):
        processor_time.account_of_user(user_id)
    assert processor_time.account_of_user(ME).rest(0) > 0
    assert len(processor_time._accounts) <= 3


async def test_sockets_and_pages_are_paid_from_one_account(monkeypatch):
    monkeypatch.setattr(fair_share, "BURST_SECONDS", 0.05)
    processor_time.account_of_user(ME).spend(0.1)
    assert fair_share.find_fair_share(ME).is_spent


@pytest.mark.django_db
class TestPeople:
    def test_staff_pay_like_everybody(self, client, staff):
        client.force_login(staff)
        processor_time.account_of_user(staff.pk).spend(1000)
        answer = client.get("/", headers={"accept-language": "zh-hans"})
        assert answer.status_code == 429
        assert int(answer["Retry-After"]) > 1900
        assert "秒后再试" in answer.content.decode()

    def test_a_user_does_not_pay_for_another(self, client, alice, bob):
        processor_time.account_of_user(bob.pk).spend(1000)
        client.force_login(alice)
        assert client.get("/").status_code == 200

    def test_ten_ordinary_pages_a_second_are_never_refused(self, client, alice):
        client.force_login(alice)
        client.get("/")
        started = time.thread_time()
        for _ in range(10):
            assert client.get("/").status_code == 200
        per_second = time.thread_time() - started
        assert per_second < 0.5, "more than half of the processor"
