"""Headers of a stranger, and their effects on a site under daphne."""

import email
import re
from contextlib import closing
from http.client import HTTPConnection

import pytest

from tests.clients import Person
from tests.patience import wait_for

pytestmark = pytest.mark.server

NAME = "Daphne-Root-Path"
# The beginning of all addresses, if the site believed it.
PREFIXES = ["@evil.example", ".evil.example", "%40evil.example/x", "/accounts", "\xff"]


@pytest.fixture
def mails(tmp_path):
    """mails() -> the links in all mails that the site has sent."""

    def links():
        found = []
        for path in sorted(tmp_path.glob("*.log")):
            body = email.message_from_bytes(path.read_bytes()).get_payload(decode=True)
            found += re.findall(r"https?://\S+", body.decode())
        return found

    return links


@pytest.fixture
def site(start_site, tmp_path):
    return start_site(EMAIL_URL=f"filemail:///{tmp_path}", MAIL_FROM="site@example.org")


@pytest.fixture
def ann(site):
    """A user with an address that mail is sent to."""
    person = Person(site, "ann")
    code = "from django.contrib.auth.models import User as U; "
    code += "U.objects.update(email='ann@example.org')"
    site.manage("shell", "--no-imports", "-c", code)
    return person


def ask(site, path, headers, method="GET", body=None):
    """The status, the headers and the body of one answer."""
    connection = HTTPConnection("127.0.0.1", site.port, timeout=30)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.headers), answer.read().decode()
    connection.close()
    return found


def ask_for_link(site, address, headers):
    """The status of the form for a forgotten password."""
    path = "/accounts/forgotten/"
    _, got, page = ask(site, path, headers)
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', page)[1]
    cookie = got["Set-Cookie"].partition(";")[0]
    form = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
    body = f"email={address}&csrfmiddlewaretoken={token}"
    sent = {**headers, **form, "Origin": site.url}
    return ask(site, path, sent, "POST", body)[0]


def test_prefix_of_stranger_leads_no_mail_elsewhere(site, ann, mails):
    for count, prefix in enumerate(PREFIXES[:4], 1):
        assert ask_for_link(site, "ann@example.org", {NAME: prefix}) == 302
        wait_for(lambda count=count: len(mails()) == count, what="the mail")
    pattern = re.escape(site.url) + r"/accounts/link/[\w-]{32}/"
    assert [link for link in mails() if not re.fullmatch(pattern, link)] == []


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_of_stranger_changes_no_page(site, prefix):
    for path in ("/", "/accounts/login/", "/x/accounts/login/", "/healthz"):
        plain, forged = (ask(site, path, each) for each in ({}, {NAME: prefix}))
        assert forged[0] == plain[0]
        assert forged[1].get("Location") == plain[1].get("Location")
        hidden = [re.sub(r"\b\w{64}\b", "", each[2]) for each in (plain, forged)]
        assert hidden[0] == hidden[1]
    assert "Traceback" not in site.log()


def test_prefix_of_stranger_opens_no_other_socket(site, ann):
    path = ann.create()
    cookies = "; ".join(f"{each.name}={each.value}" for each in ann.cookies)
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Cookie": cookies}
    headers |= {"Origin": site.url, "Sec-WebSocket-Version": "13"}
    headers |= {"Sec-WebSocket-Key": "x" * 22 + "=="}
    headers |= {"Sec-WebSocket-Protocol": "windowpane.json"}
    for prefix in ("/x", f"/ws{path}", "%00"):
        with closing(HTTPConnection("127.0.0.1", site.port)) as connection:
            sent = {**headers, NAME: prefix}
            connection.request("GET", f"/ws{path}", headers=sent)
            assert connection.getresponse().status == 101
