"""People who chat through nginx with two processes, PostgreSQL and Redis."""

import re
import time
import urllib.request
from contextlib import ExitStack
from functools import partial

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect

from tests.clients import text_of
from tests.fakes.upstream import tell_story
from tests.forged import ALL, observe
from tests.patience import wait_for
from tests.servers import ROOT

from .test_proxy import ask

DOCS = ROOT / "docs" / "deploy.md"
# Bytes.
FEW_LINES = 400

pytestmark = [pytest.mark.server, pytest.mark.database("postgresql")]


def cookie_header(person):
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in person.cookies)


def test_cookies_are_for_this_host_and_https_only(site, ann):
    names = {cookie.name for cookie in ann.cookies}
    assert names == {"__Host-sessionid", "__Host-csrftoken"}
    assert all(cookie.secure for cookie in ann.cookies)
    session = next(c for c in ann.cookies if c.name == "__Host-sessionid")
    assert session.has_nonstandard_attr("HttpOnly")
    headers = ask(site.nginx, "/accounts/login/").headers
    assert headers["Strict-Transport-Security"].startswith("max-age=31536000")


def test_forged_headers_neither_redirect_nor_hide_the_address(site):
    forged = {"X-Forwarded-Proto": "http", "X-Forwarded-For": "203.0.113.9"}
    page = ask(site.nginx, "/accounts/login/", headers=forged)
    assert page.status == 200
    token = re.search(rb'csrfmiddlewaretoken" value="(\w+)"', page.body)[1].decode()
    body = f"csrfmiddlewaretoken={token}&username=mallory&password=guess"
    kind = "application/x-www-form-urlencoded"
    cookie = page.headers["Set-Cookie"].partition(";")[0]
    sent = {"Content-Type": kind, "Cookie": cookie, "Origin": site.url}
    login = {"method": "POST", "body": body, "headers": {**forged, **sent}}
    assert ask(site.nginx, "/accounts/login/", **login).status == 200
    with psycopg.connect(site.processes[0].env["DATABASE_URL"]) as connection:
        query = "SELECT username, host(ip_address) FROM axes_accessattempt"
        assert connection.execute(query).fetchall() == [("mallory", "127.0.0.1")]


def test_stranger_changes_no_link_redirect_or_policy(site, ann):
    def seen(headers):
        def get(path, sent):
            answer = ask(site.nginx, path, headers=sent)
            return answer.status, dict(answer.headers), answer.body.decode()

        return observe(get, headers)

    for own in ({}, {"Cookie": cookie_header(ann)}):
        plain = seen(own)
        assert plain["/"][0] == (200 if own else 302)
        assert seen({**own, **ALL}) == plain


def test_stranger_leads_no_mail_elsewhere(site, ann, mail_folder):
    with psycopg.connect(site.processes[0].env["DATABASE_URL"]) as connection:
        connection.execute("UPDATE auth_user SET email = 'ann@example.org'")
    path = "/accounts/forgotten/"
    page = ask(site.nginx, path, headers=ALL)
    token = re.search(rb'csrfmiddlewaretoken" value="(\w+)"', page.body)[1].decode()
    body = f"csrfmiddlewaretoken={token}&email=ann@example.org"
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": site.url}
    sent["Cookie"] = page.headers["Set-Cookie"].partition(";")[0]
    answer = ask(site.nginx, path, method="POST", body=body, headers={**ALL, **sent})
    assert (answer.status, answer.headers["Location"]) == (
        302,
        "/accounts/forgotten/sent/",
    )
    [mail] = wait_for(lambda: list(mail_folder.iterdir()), what="the mail")
    link = re.compile(re.escape(site.url) + r"/accounts/link/[\w-]{32}/\s")
    wait_for(lambda: link.search(mail.read_text()), what="the link")


def test_frames_arrive_while_they_are_made(site, ann, provider):
    path = ann.create()
    provider.script("ok-slow:50:0.03")
    times = []
    with ann.chat(path) as chat:
        turn = chat.send("Tell me something")["turn"]
        while (event := chat.event())["type"] != "end":
            if event["type"] == "frame":
                times.append(time.monotonic())
    assert event["turn"] == turn
    assert len(times) >= 8
    # The reply takes 1.5 s; one that was held back would arrive in one go.
    assert times[-1] - times[0] > 0.7
    assert times[len(times) // 2] - times[0] > 0.25


def test_a_socket_of_each_process_sees_the_same_reply(site, ann, provider):
    path = ann.create()
    # Other processes are asked once a second whether they have a page of it.
    provider.script("story:two:40:0.15")
    with ExitStack() as stack:
        chats = [stack.enter_context(ann.chat(path)) for _ in range(2)]
        turn = chats[0].send("Tell me something")["turn"]
        # The first one that may receive an event of the turn after it has begun.
        seen = [read_to_end(chat, turn) for chat in reversed(chats)]
    texts = [text_of(events) for events in seen]
    assert texts == [events[-1]["text"] for events in seen]
    assert texts == [tell_story("two", 40)] * 2
    both = {f"127.0.0.1:{process.port}" for process in site.processes}
    # nginx writes the line when the socket has ended.
    wait_for(lambda: processes_of_sockets(site, path) == both, what="both processes")


def read_to_end(chat, turn):
    """All events up to the end of the turn. Like other clients, this one asks for what
    it has missed when a frame goes on from it."""
    seen = [chat.event()]
    while not (seen[-1]["type"] == "end" and seen[-1]["turn"] == turn):
        if seen[-1]["type"] == "frame" and seen[-1]["base"] > len(text_of(seen)):
            chat.command(type="sync")
        seen.append(chat.event())
    return seen


def processes_of_sockets(site, path):
    pattern = rf'"GET /ws{path}" 101 .* (\S+)'
    return set(re.findall(pattern, site.nginx.access_log))


@pytest.mark.parametrize("origin", ["https://evil.example", "http", None])
def test_a_page_of_another_site_gets_no_socket(site, ann, origin):
    if origin == "http":
        origin = site.url.replace("https", "http")
    address = f"{site.socket_url}/ws{ann.create()}"
    headers = {"Cookie": cookie_header(ann)}
    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin=origin, additional_headers=headers, ssl=site.tls)
    assert refused.value.response.status_code == 403


def test_static_files_are_compressed_and_kept_for_ever(site):
    page = ask(site.nginx, "/accounts/login/").body.decode()
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+\.(?:css|js))"', page)
    assert len(addresses) >= 2
    for address in addresses:
        assert re.search(r"\.[0-9a-f]{12}\.", address)
        found = ask(site.nginx, address, headers={"Accept-Encoding": "gzip"})
        assert found.status == 200
        # What is a few lines would only grow.
        if len(found.body) > FEW_LINES:
            assert found.headers["Content-Encoding"] == "gzip"
            assert found.headers["Vary"] == "Accept-Encoding"
        assert found.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "immutable" not in ask(site.nginx, "/static/staticfiles.json").headers.get(
        "Cache-Control"
    )


def test_installation_reports_that_it_is_healthy(site):
    assert ask(site.nginx, "/healthz").status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_the_machine_itself_can_watch_each_process(site, path):
    headers = {"Authorization": "Bearer token-of-the-tests"}
    for process in site.processes:
        request = urllib.request.Request(process.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            # Not led to HTTPS, where nginx would say that there is no such page.
            assert (response.status, response.url) == (200, process.url + path)


def test_each_process_tells_systemd_that_it_listens_and_is_not_stuck(site, manager):
    words = [manager.recv(64) for _ in range(2 * len(site.processes))]
    assert sorted(words) == [b"READY=1"] * 2 + [b"WATCHDOG=1"] * 2


def test_a_rolling_restart_loses_nothing(site, ann, provider):
    names = ["left", "right"]
    paths = {name: ann.create() for name in names}
    with ExitStack() as stack:
        # One in each process, as the test of the sockets shows.
        chats = {n: stack.enter_context(ann.chat(paths[n])) for n in names}
        # Half a minute at first, a moment when asked for again.
        wish = "mode=story:{0}:200:0.15|story:{0}:200:0.01"
        sent = {n: chats[n].send(wish.format(n)) for n in names}
        for name, chat in chats.items():
            chat.until("frame", turn=sent[name]["turn"])
    for process in site.processes:
        calls = len(provider.calls)
        restart(site, process)
        wait_for(partial(was_asked_again, provider, calls), what="a takeover")
    for name, path in paths.items():
        end = follow(ann, path, sent[name]["turn"])
        assert (end["state"], end["text"]) == ("done", tell_story(name, 200))
        rows = ann.get_json(f"{path}transcript.json")["messages"]
        assert [row["text"] for row in rows][1:] == [end["text"]]
    assert "clean" in site.manage("audit")


def was_asked_again(provider, calls):
    return len(provider.calls) > calls


def restart(site, process):
    """Restart as `systemctl restart` does, and request the site meanwhile."""
    assert process.terminate() == 0
    process.launch()
    for _ in range(5):
        assert ask(site.nginx, "/healthz").status == 200
    process.wait_until_ready()


def follow(person, path, turn):
    """The end of a turn, over as many sockets as it takes."""
    while True:
        try:
            with person.chat(path) as chat:
                chat.command(type="sync")
                return chat.until("end", turn=turn)[-1]
        except (ConnectionClosed, WebSocketException):
            continue


def test_the_upgrade_runs_as_it_is_written(site, ann):
    """The rows are those that a process of the last release leaves, which knows no
    signature.
    """
    (section,) = re.findall(r"(?s)## Upgrade.+?(?=\n## )", DOCS.read_text())
    steps = re.findall(r"(?m)^\d\. (.+)$", section)
    assert "systemctl start windowpane-release" in steps[2]
    assert "systemctl restart windowpane@$port" in steps[3]
    path = ann.create()
    with ann.chat(path) as chat:
        chat.say("Written by the old release")
    site.release()
    with psycopg.connect(site.processes[0].env["DATABASE_URL"]) as connection:
        connection.execute("UPDATE memory_message SET signature = NULL")
        connection.execute("UPDATE memory_modelcall SET signature = NULL")
    for process in site.processes:
        restart(site, process)
    with pytest.raises(RuntimeError, match="signature.message"):
        site.manage("audit")
    commands = re.findall(r"`windowpane-manage ([^`]+)`", steps[4])
    outputs = [site.manage(*command.split()) for command in commands]
    assert commands[-1] == "audit"
    assert "clean" in outputs[-1]
