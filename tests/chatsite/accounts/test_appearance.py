"""The theme and the right pane as a browser kept them: there from the first byte."""

import pytest
from django.test import Client

from chatsite.ops.unavailable import server_error

pytestmark = pytest.mark.django_db

LOGIN = "/accounts/login/"


def first_bytes(path=LOGIN, **cookies):
    client = Client()
    client.cookies.load(cookies)
    answer = client.get(path)
    return answer.content.decode().split("</head>")[0]


@pytest.mark.parametrize("path", [LOGIN, "/accounts/signup/", "/nothing/here/"])
def test_every_page_begins_with_the_theme_of_its_browser(path):
    head = first_bytes(path, theme="dark")
    assert 'data-theme="dark"' in head
    assert 'name="color-scheme" content="dark"' in head


@pytest.mark.parametrize("cookies", [{}, {"theme": 'x" onload="alert(1)'}])
def test_system_decides_without_a_choice(cookies):
    head = first_bytes(**cookies)
    assert 'data-theme="system"' in head
    assert 'name="color-scheme" content="light dark"' in head


def test_a_page_of_trouble_has_the_theme_too(rf):
    rf.cookies["theme"] = "light"
    answer = server_error(rf.get("/"))
    assert answer.status_code == 500
    assert 'data-theme="light"' in answer.content.decode()


def test_the_theme_is_chosen_without_scripts_too():
    client = Client()
    answer = client.post("/theme/", {"theme": "dark", "next": "/accounts/signup/"})
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/signup/")
    cookie = answer.cookies["theme"]
    assert (cookie.value, cookie["samesite"], cookie["path"]) == ("dark", "Lax", "/")
    assert 'aria-pressed="true">Dark' in client.get(LOGIN).content.decode()


@pytest.mark.parametrize("back", ["", "https://evil.example/", "//evil.example"])
def test_invalid_theme_and_foreign_redirect_are_ignored(back):
    answer = Client().post("/theme/", {"theme": "pink", "next": back})
    assert answer["Location"] == "/"
    assert "theme" not in answer.cookies


def test_the_right_pane_is_drawn_as_it_was_left(client):
    client.cookies.load({"pane": "closed"})
    page = client.post("/c/", {"preset": "layered"}, follow=True)
    assert 'data-pane="closed"' in page.content.decode()
