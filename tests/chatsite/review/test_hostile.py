"""Texts that want to be more than text, in every column of every table: the admin shows
them and does nothing else with them.
"""

from html.parser import HTMLParser
from itertools import product

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group

from tests.memory.scenes import plant

from .every_page import links, make_conversation, places, plant_everywhere

SHORT = "\"><zap zap=''>"
HOSTILE = (
    "zap\"'><zap zap=1><script>zap</script><svg/onload=zap><img src=x onerror=zap>"
    "]]></pre></textarea></title></svg><math zap><!--zap--> &lt;zap&gt; "
    "[x](javascript:zap) {{ 7|add:7 }} {% debug %} ${7*7} \u202ezap\u200b \x1b[31m"
)
METADATA = (
    "trigger",
    "model",
    "username",
    "target",
    "reason",
    "preset",
    "first_name",
    "email",
)
ADDRESSES = {"href", "src", "action", "formaction", "xlink:href", "data", "poster"}


class Reader(HTMLParser):
    """Notes every element and attribute that no template of the site has."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.foreign, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        for name, value in attrs:
            value = (value or "").strip().lower()
            to_script = name in ADDRESSES and not value.startswith(("/", "?", "#", "."))
            if tag == "img" and name == "src":
                to_script = not value.startswith("/static/")
            outside = to_script and not value.startswith("https://")
            if name.startswith("on") or "zap" in name or outside or name == "style":
                self.foreign.append((tag, name, value))
        if "zap" in tag or tag in ("math", "iframe", "object", "embed"):
            self.foreign.append((tag, attrs))

    def handle_comment(self, data):
        if "zap" in data:
            self.foreign.append(("comment", data))

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in ("script", "style") and data.strip():
            self.foreign.append((self.open[-1], data))

    def handle_endtag(self, tag):
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]


@pytest.fixture
def walked(alice, caplog):
    """All places, with the text behind each."""
    caplog.set_level("CRITICAL", logger="django.request")
    rows = [make_conversation(alice, HOSTILE) for _ in range(2)]
    plant_everywhere(rows[1], HOSTILE, short=SHORT, also=METADATA)
    plant(alice, username=HOSTILE[:150], first_name=SHORT, email=SHORT)
    Group.objects.create(name=HOSTILE[:150])
    tried = {"username": HOSTILE[:255], "user_agent": HOSTILE[:255]}
    AccessAttempt.objects.create(failures_since_start=1, **tried)
    return places(rows)


def pages(client, walked):
    for place in walked:
        response = client.get(place.url)
        yield place, response
        if response.status_code == 200 and not response.streaming:
            for url in links(place, response.content.decode()):
                yield place, client.get(url)


def test_hostile_text_is_escaped_on_every_page_of_the_admin(client, staff, walked):
    client.force_login(staff)
    shown = set()
    for place, answer in pages(client, walked):
        assert answer.status_code in (200, 302, 403, 405), place
        if answer["Content-Type"].startswith("text/html"):
            reader = Reader()
            reader.feed(answer.content.decode())
            assert reader.foreign == [], place
            if "{{ 7|add:7 }} {% debug %}" in "".join(reader.text):
                shown.add(place.name)
    assert {"memory_message_change", "memory_summary_change"} <= shown


def test_downloads_are_no_html_pages(client, staff, walked):
    client.force_login(staff)
    found = [place for place in walked if place.name == "staff-export"]
    for place, kind in product(found, ("json", "md")):
        answer = client.post(place.url, {"format": kind})
        assert not answer["Content-Type"].startswith("text/html")
        assert answer["Content-Disposition"].startswith("attachment")
        assert answer["X-Content-Type-Options"] == "nosniff"
    assert found
