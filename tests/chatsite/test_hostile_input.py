"""Hostile input at every endpoint: form fields, query strings, cookies.

Nothing may answer 500, whatever is sent, on either database.
"""

import json
import re
from collections import defaultdict
from functools import partial
from http.cookies import _quote

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.http import QueryDict
from django.test import AsyncClient
from django.urls import get_resolver, reverse

from chatsite.database import RefusedInputError
from chatsite.ops.unavailable import UnavailableMiddleware
from tests.hostile import ROUNDS, SEED, TEXTS, form, randomness
from tests.remembered import remembered

from .review.every_page import make_conversation, places
from .scenes import HTMX, signed_in

pytestmark = [
    pytest.mark.django_db,
    # Filters of Django's own lists; the site goes on with the site's time zone.
    pytest.mark.filterwarnings("ignore:DateTimeField .+ received a naive datetime"),
]

# What forms and addresses carry, each with a value that is right somewhere.
RIGHT = {
    **{"preset": "layered", "overrides": '{"keep": ["turns", 3]}', "seen": "null"},
    **{"policy": '{"preset": "guide"}', "title": "Pears", "first": "2026-11-01"},
    **{"last": "2026-11-02", "text": "Words", "typed": "Words", "signature": "x"},
    **{
        "attachments": "",
        "draft": "Pears?",
        "versions": "1,2",
        "version": "1",
        "seq": "3",
        "next": "/",
    },
    **{"theme": "dark", "language": "en", "q": "pear", "view": "archived"},
    **{"label": "1", "select": "1", "on": "1", "had": "1", "name": "Pears"},
    **{
        "conversation": "",
        "show": "20",
        "open": "",
        "at": "3",
        "reply": "2",
        "before": "5",
        "after": "1",
    },
    **{"format": "json", "uuid": "", "note": "Seen", "cause": "Because", "code": "1"},
    **{"tab": "raw", "turn": "1", "p": "1", "o": "1", "all": "", "accesses": "1"},
    **{
        "compaction": "working",
        "trigger": "tokens",
        "action": "purge",
        "budget": "90000",
    },
    **{"trigger_size": "9", "trigger_kind": "turns", "keep_size": "2", "model": ""},
    **{"keep_kind": "turns", "max_summary_tokens": "300", "initial_prompt": ""},
    **{"username": "boss", "password": "x", "old_password": "x", "email": "a@b.cd"},
    **{"new_password1": "correct horse", "new_password2": "correct horse"},
    **{"password1": "correct horse", "password2": "correct horse", "index": "0"},
    **{"sign_out-password": "x", "deletion-password": "x", "reason": "none"},
    **{"_selected_action": "1", "tokens_per_day": "7", "from_seq": "1"},
    **{"owner__id__exact": "1", "id__in": "1", "created_at__gte": "2026-11-01"},
    **{"created_at__lt": "2026-11-01", "day__gte": "2026-11-01", "state": "done"},
    **{"state__exact": "done", "user__id__exact": "1", "is_staff__exact": "1"},
    **{"created_at__year": "2026", "conversation__uuid__exact": "", "level": "1"},
    **{"flag": "gap", "status__exact": "active", "error__isempty": "1", "pk": "1"},
    **{"act": "edit", "message": "3", "temperature": "1"},
    **{"_changelist_filters": "", "_popup": "1", "_to_field": "id", "e": "1"},
}
COOKIES = ("sessionid", "csrftoken", "django_language", "theme", "pane", "messages")
VALUES = {"seq": 3, "version": 1, "name": "pin"}
# At how many addresses, with how many fields wrong, and in how many ways.
PLACES, MOST_NAMES, SHOTS = 50, 4, 1
KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+")


@pytest.fixture
@remembered
def filled(staff):
    """A conversation with rows in every table; its owner may do everything."""
    return make_conversation(staff, "pear")


@pytest.fixture
def conversation(filled, caplog, settings):
    caplog.set_level("CRITICAL")
    settings.AXES_FAILURE_LIMIT = 1_000_000
    if connection.vendor == "postgresql":
        # The whole test is one transaction, on a busy machine an idle one at times.
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    return filled


@pytest.fixture
def browser(conversation):
    client = signed_in(conversation.owner)
    client.raise_request_exception = False
    return client


def addresses(conversation):
    """Every address of the site and of the administration."""
    found = {place.url for place in places([conversation])}
    known = get_resolver().reverse_dict
    values = defaultdict(lambda: conversation.uuid, VALUES)
    for name in filter(lambda key: isinstance(key, str), known):
        for shapes, *_ in known.getlist(name):
            found |= {f"/{shape % values}" for shape, _keys in shapes}
    # In an order that does not depend on the keys of rows, so that a seed repeats it.
    return sorted(found - {reverse("logout")}, key=lambda url: (KEY.sub("", url), url))


def some_addresses(rng, conversation):
    found = addresses(conversation)
    return rng.sample(found, min(len(found), PLACES * ROUNDS))


def fuzz(door, shots):
    """Send every shot, and fail with those that the site answers with an error; how
    many there were."""
    broken, count = [], 0
    for count, (send, url, what) in enumerate(shots, 1):  # noqa: B007
        with transaction.atomic():
            answer = send()
            transaction.set_rollback(True)
        if answer.status_code >= 500:
            error = answer.exc_info[1] if answer.exc_info else ""
            broken.append(f"{answer.status_code} {url} {error!r} {what[:2_000]!r}")
    assert not broken, f"{door}, FUZZ_SEED={SEED}:\n" + "\n".join(broken)
    return count


@pytest.mark.parametrize("next_page", ["foo", "foo.bar", "/a\0b", "/\ud800", ""])
def test_a_form_leads_back_to_a_page_of_this_site_only(
    browser, conversation, next_page
):
    for url in ("/theme/", reverse("admin:review-rebuild", args=[conversation.pk])):
        body = form({"next": next_page, "theme": "dark"})
        answer = post(browser, url, body, {})
        assert answer.status_code in (302, 400)
        assert answer.get("Location", "/").startswith("/")


@pytest.mark.parametrize("name", ["sessionid", "django_language", "messages"])
@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800"])
def test_a_cookie_that_no_row_can_hold_is_a_bad_request(conversation, name, text):
    # Short keys of sessions are not looked up.
    answer = get(reverse("conversation-list"), {name: text * 9}, {})
    assert answer.status_code in (302, 400)


def test_a_session_that_no_row_can_hold_is_none(conversation):
    answer = get(reverse("conversation-list"), {"sessionid": "a\0b" * 9}, {})
    assert (answer.status_code, answer.url) == (302, "/accounts/login/?next=/")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_value_that_the_database_refuses_is_a_bad_request(rf, db, name):
    with pytest.raises(RefusedInputError) as refused:
        get_user_model().objects.filter(username=name).exists()
    middleware = UnavailableMiddleware(lambda request: None)
    answer = middleware.process_exception(rf.get("/"), refused.value)
    assert answer.status_code == 400
    assert b"could not be understood" in answer.content


@pytest.mark.parametrize("field", ["overrides", "seen", "policy"])
@pytest.mark.parametrize(
    "text",
    [
        '{"initial_prompt": "\\u0000"}',
        '{"initial_prompt": "\\ud800"}',
        '{"\\u0000": 1}',
        '{"batch": ' + "9" * 5_000 + "}",
        '{"batch": NaN}',
        "[" * 900 + "]" * 900,
        "[" * 90_000,
    ],
)
def test_settings_that_no_row_can_hold_are_refused(browser, conversation, field, text):
    fields = {"preset": "layered", "policy": "{}", "seen": "null", field: text}
    for view in ("policy", "policy-undo"):
        url = reverse(f"conversation-{view}", args=[conversation.uuid])
        assert post(browser, url, form(fields), {}).status_code in (302, 409, 422)
        assert post(browser, url, form(fields), HTMX).status_code == 200
    conversation.refresh_from_db()
    assert not re.search(r"\\u0000|\\ud[89a-f]", json.dumps(conversation.policy))


@pytest.mark.parametrize("text", ["\0", "\ud800", "9" * 5_000, str(2**64), "1e999"])
@pytest.mark.parametrize("name", ["q", "p", "o", "owner__id__exact", "id__in", "e"])
def test_lists_of_the_administration_take_any_filter(browser, name, text):
    for model in ("conversation", "message", "modelcall"):
        url = reverse(f"admin:memory_{model}_changelist")
        answer = browser.get(f"{url}?{form({name: text})}")
        assert answer.status_code in (200, 302, 400)


@pytest.fixture
def asked(monkeypatch):
    """The names that views have looked up in what was sent."""
    names = set()
    for method in ("__getitem__", "get", "getlist", "__contains__"):
        original = getattr(QueryDict, method)

        def spy(data, name, *rest, original=original):
            names.add(name)
            return original(data, name, *rest)

        monkeypatch.setattr(QueryDict, method, spy)
    return names


def wrongs(rng, asked):
    """All fields right first, to see which are read; then each of them wrong."""
    asked.clear()
    yield RIGHT
    # Lists of the administration look at all names there are.
    read = sorted(asked & RIGHT.keys())
    for name in rng.sample(read, min(len(read), MOST_NAMES)):
        for text in rng.sample(TEXTS, SHOTS * ROUNDS):
            yield RIGHT | {name: text}
    yield {name: rng.choice(TEXTS) for name in RIGHT}


def test_every_form_field(browser, conversation, asked):
    rng = randomness("form fields")

    def shots():
        for url in some_addresses(rng, conversation):
            for fields in wrongs(rng, asked):
                body, headers = form(fields), rng.choice(({}, HTMX))
                yield partial(post, browser, url, body, headers), url, body

    assert fuzz("form fields", shots()) > 0


def post(browser, url, body, headers):
    kind = "application/x-www-form-urlencoded"
    return browser.post(url, body, content_type=kind, headers=headers)


def test_cookies_and_query_strings(browser, conversation, asked):
    rng = randomness("cookies and query strings")
    session = browser.cookies["sessionid"].value

    def shots():
        for url in some_addresses(rng, conversation):
            for fields in wrongs(rng, asked):
                query, headers = form(fields), rng.choice(({}, HTMX))
                cookies = {"sessionid": session, "pane": "open"}
                if rng.random() < 0.3:
                    cookies[rng.choice(COOKIES)] = rng.choice(TEXTS)
                send = partial(get, f"{url}?{query}", cookies, headers)
                yield send, url, f"{query} {cookies}"

    assert fuzz("cookies and query strings", shots()) > 0


def get(url, cookies, headers):
    """Over ASGI, which reads bytes in another way than WSGI."""
    browser = AsyncClient(raise_request_exception=False)
    pairs = (f"{name}={as_header(text)}" for name, text in cookies.items())
    sent = {**headers, "Cookie": "; ".join(pairs)}
    return async_to_sync(browser.get)(url, headers=sent)


def as_header(text):
    """Return bytes that a header can have; the others quoted, as browsers do."""
    return _quote(text.encode("utf-8", "surrogatepass").decode("latin-1"))
