"""Codes of an app and recovery codes: at the log-in, and before the admin opens."""

import base64
import hmac
import re
import struct
import time

import pytest
import requests

from .conftest import PASSWORD, Browser, call_commands

pytestmark = [pytest.mark.server, pytest.mark.database("sqlite")]
ENV = {"SECOND_FACTOR": "staff"}
SETUP = "/account/second-factor/"
CODE = "/accounts/code/"


def make_code(secret, steps=0):
    """The code of an app now, or so many half minutes later."""
    counter = struct.pack(">Q", int(time.time()) // 30 + steps)
    digest = hmac.new(base64.b32decode(secret), counter, "sha1").digest()
    start = digest[-1] & 15
    number = struct.unpack(">I", digest[start : start + 4])[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


@pytest.fixture(scope="module")
def made():
    """{options: names of people who are there and whom no test has met}"""
    return {}


@pytest.fixture
def make_user(organisation, made):
    """Return a function that makes a user, and returns name and logged-in browser."""

    def make(*options):
        names = made.setdefault(options, [])
        if not names:
            names += [f"p{time.monotonic_ns()}{n}" for n in range(1 if options else 7)]
            each = [("create_user", name, PASSWORD, *options) for name in names]
            call_commands(organisation, *each)
        name, browser = names.pop(), Browser(organisation)
        browser.log_in(name)
        return name, browser

    return make


def set_up(browser):
    """The secret of the app, and the recovery codes."""
    page = browser.get(SETUP).text
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page)[1]
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
    fields = {"code": make_code(secret), "password": PASSWORD}
    answer = browser.session.post(
        browser.site.url + SETUP,
        {"csrfmiddlewaretoken": token, **fields},
        timeout=60,
    )
    codes = re.findall(r"<code>(\d{8})</code>", answer.text)
    assert len(codes) == 10, answer.text
    return secret, codes


def test_log_in_asks_for_a_code_that_works_once(make_user, organisation, ask):
    name, browser = make_user()
    secret, codes = set_up(browser)
    again = Browser(organisation)
    assert again.log_in(name).headers["Location"] == CODE
    assert not again.is_in
    assert again.get("/").status_code == 302
    assert again.post(CODE, CODE, code="000000").status_code == 422
    code = make_code(secret, 1)
    assert again.post(CODE, CODE, code=code).headers["Location"] == "/"
    assert again.is_in
    for used in (code, codes[0]):
        other = Browser(organisation)
        other.log_in(name)
        status = other.post(CODE, CODE, code=used).status_code
        assert status == (422 if used == code else 302)
    other = Browser(organisation)
    other.log_in(name)
    assert other.post(CODE, CODE, code=codes[0]).status_code == 422
    assert other.post(CODE, CODE, code=codes[1]).status_code == 302
    kept = str(ask("SELECT data FROM mfa_authenticator"))
    assert secret not in kept
    assert codes[2] not in kept


def test_the_page_that_was_wanted_follows_and_no_other_site(make_user, organisation):
    name, browser = make_user()
    _secret, codes = set_up(browser)
    for wanted, found in (("/account/", "/account/"), ("//evil.example", "/")):
        again = Browser(organisation)
        fields = {"username": name, "password": PASSWORD, "next": wanted}
        again.post("/accounts/login/", **fields)
        assert again.post(CODE, CODE, code=codes.pop()).headers["Location"] == found


def test_wrong_codes_lock_as_wrong_passwords_do(make_user, organisation):
    name, browser = make_user()
    secret, codes = set_up(browser)
    again = Browser(organisation)
    again.log_in(name)
    statuses = [
        again.post(CODE, CODE, code=f"{n:06}").status_code
        for n in range(10)
        if f"{n:06}" not in (make_code(secret, step) for step in range(-1, 3))
    ]
    assert statuses[0] == 422
    assert statuses[-1] == 429
    other = Browser(organisation)
    assert other.log_in(name).status_code == 429
    assert again.get(CODE).status_code == 200
    assert browser.is_in


def test_turning_off_and_new_codes_take_a_code(make_user):
    _name, browser = make_user()
    _secret, codes = set_up(browser)
    off, renew = f"{SETUP}off/", f"{SETUP}codes/"
    assert browser.post(off, off, code="000000").status_code == 422
    page = browser.post(renew, renew, code=codes[0]).text
    fresh = re.findall(r"<code>(\d{8})</code>", page)
    assert not set(fresh) & set(codes)
    assert browser.post(off, off, code=codes[1]).status_code == 422
    assert browser.post(off, off, code=fresh[0]).status_code == 302
    assert "Set up a second factor" in browser.get("/account/").text


def test_setup_needs_the_password_and_a_code(make_user):
    _name, browser = make_user()
    secret = re.search(r"<code>([A-Z2-7]{32})<", browser.get(SETUP).text)[1]
    wrong = {"code": make_code(secret), "password": "wrong"}
    assert browser.post(SETUP, "/account/", **wrong).status_code == 422
    wrong = {"code": "12", "password": PASSWORD}
    assert browser.post(SETUP, "/account/", **wrong).status_code == 422
    assert "Set up a second factor" in browser.get("/account/").text


# The adapter is part of an app that the tests' own settings lack.
WHO = """
from django.conf import settings
from django.test import RequestFactory
from allauth.account.adapter import get_adapter
headers = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}
for settings.BEHIND_PROXY, remote in ((True, "127.0.0.1"), (False, "192.0.2.1")):
    request = RequestFactory().get("/", REMOTE_ADDR=remote, headers=headers)
    print(get_adapter(request).get_client_ip(request))
"""


def test_wrong_codes_are_counted_by_the_address_of_the_person(organisation):
    said = organisation.manage("shell", "--no-imports", "-c", WHO)
    assert said.split() == ["203.0.113.7", "192.0.2.1"]


class TestStaff:
    def test_the_admin_opens_with_it_alone(self, make_user, organisation):
        name, browser = make_user("--staff")
        assert browser.get("/admin/").headers["Location"] == SETUP
        assert browser.get("/").status_code == 200
        older = Browser(organisation)
        older.log_in(name)
        _secret, codes = set_up(browser)
        assert browser.get("/admin/").status_code == 200
        # A session that is older than the factor has not given it.
        prove = f"{SETUP}prove/"
        assert older.get("/admin/").headers["Location"] == prove
        assert older.post(prove, prove, code=codes[0]).headers["Location"] == "/admin/"
        assert older.get("/admin/").status_code == 200

    @pytest.mark.parametrize("prefix", [None, "/x", "/admin", "@evil.example"])
    def test_address_written_otherwise_opens_no_admin(self, make_user, prefix):
        _name, browser = make_user("--staff")
        headers = {} if prefix is None else {"Daphne-Root-Path": prefix}
        starts = ("", "/x", "/.", "/x/..", "/%2e", "/admin")
        pages = ("/admin/", "/%61dmin/auth/user/", "/admin/settings/", "/admin;x/")
        for path in [start + page for start in starts for page in pages]:
            url = f"{browser.site.url}{path}"
            sent = requests.Request("GET", url, headers).prepare()
            sent.url = url  # as it is, with its dots
            sent.prepare_cookies(browser.session.cookies)
            answer = browser.session.send(sent, allow_redirects=False, timeout=60)
            assert (answer.status_code, answer.headers.get("Location")) in (
                (302, SETUP),
                (404, None),
            )

    def test_the_admin_has_no_log_in_of_its_own(self, organisation):
        stranger = Browser(organisation)
        for answer in (
            stranger.get("/admin/login/?next=/admin/"),
            stranger.post("/admin/login/", username="staff", password=PASSWORD),
        ):
            assert answer.headers["Location"].startswith("/accounts/login/?next=")

    def test_users_who_are_not_staff_need_no_second_factor(self, make_user):
        _name, browser = make_user()
        assert "admin area opens only" not in browser.get("/account/").text


def test_log_in_by_a_provider_asks_for_a_code(browse, idp):
    browser = browse()
    browser.enter()
    page = browser.get(SETUP).text
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page)[1]
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
    data = {"csrfmiddlewaretoken": token, "code": make_code(secret)}
    answer = browser.session.post(browser.site.url + SETUP, data, timeout=60)
    codes = re.findall(r"<code>(\d{8})</code>", answer.text)
    again = browse()
    assert again.enter().headers["Location"] == CODE
    assert not again.is_in
    assert again.post(CODE, CODE, code=codes[0]).status_code == 302
    assert again.is_in


class TestPasskeys:
    @pytest.mark.parametrize(
        "credential",
        [
            *(
                "",
                "{",
                "[]",
                "{}",
                '{"response": []}',
                '{"response": {"userHandle": 1}}',
            ),
            '{"id": "AA", "rawId": "AA", "type": "public-key", "response": '
            '{"clientDataJSON": "e30", "authenticatorData": "AA", "signature": "AA", '
            '"userHandle": "MQ"}}',
            "x" * 30_000,
        ],
        ids=range(8),
    )
    def test_invalid_passkey_is_refused_at_log_in(self, organisation, credential):
        stranger = Browser(organisation)
        path = "/accounts/passkey/"
        assert stranger.post(path, path, credential=credential).status_code == 422
        assert not stranger.is_in

    def test_invalid_passkey_is_not_added(self, make_user):
        _name, browser = make_user()
        path = f"{SETUP}passkeys/"
        fields = {"name": "Phone", "password": PASSWORD}
        for credential in ("", "{}", '{"id": "AA", "response": {}}'):
            answer = browser.post(path, path, credential=credential, **fields)
            assert answer.status_code == 422
