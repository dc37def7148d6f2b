"""The page in which diagrams are drawn: what it may do, and who may see it."""

import re

import pytest
from django.contrib.staticfiles import finders

pytestmark = pytest.mark.django_db
SCRIPTS = ("mermaid/mermaid.tiny.js", "diagrams/diagram-frame.js")


@pytest.fixture
def frame(client):
    answer = client.get("/diagram-frame/")
    assert answer.status_code == 200
    return answer


def directives(answer):
    policy = answer["Content-Security-Policy"]
    return dict(each.strip().split(" ", 1) for each in policy.split(";"))


def test_diagram_frame_runs_own_scripts_without_network(frame):
    own = [f"http://testserver/static/{name}" for name in SCRIPTS]
    assert directives(frame) == {
        "default-src": "'none'",
        "script-src": " ".join(own),
        "style-src": "'unsafe-inline'",
        "connect-src": "'none'",
        "form-action": "'none'",
        "base-uri": "'none'",
        "frame-ancestors": "'self'",
        # Also where it is opened by itself.
        "sandbox": "allow-scripts",
    }
    assert re.findall(r'<script src="(.*?)"', frame.content.decode()) == own
    assert all(finders.find(name) for name in SCRIPTS)


def test_diagram_frame_is_embedded_by_own_pages_only(client, frame):
    assert frame["X-Frame-Options"] == "SAMEORIGIN"
    page = client.get("/accounts/login/")
    assert page["X-Frame-Options"] == "DENY"
    assert directives(page)["frame-ancestors"] == "'none'"
    assert directives(page)["frame-src"] == "'self'"


def test_diagram_frame_is_equal_for_all_users_and_cacheable(
    client, frame, conversation
):
    client.force_login(conversation.owner)
    client.cookies["django_language"] = "zh-hans"
    client.cookies["theme"] = "dark"
    mine = client.get("/diagram-frame/")
    assert mine.content == frame.content
    assert not frame.cookies
    assert frame["Cache-Control"] == "public, max-age=300"


def test_diagram_frame_refuses_post(client):
    assert client.post("/diagram-frame/").status_code == 405
